"""File to file: CSV in, results out through `minidsms run`, the five queries the STREAM prototype was measured with."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

import minidsms

KEYS = 1000

# tuples/s of the prototype (C++, 2004) on this class of machine, text file to text file; see the peers.
PROTOTYPE = {"filter": 4.5e6, "rows": 0.9e6, "groups": 0.33e6, "join": 0.47e6, "mjoin3": 0.65e6}

QUERIES = {
    "filter": "SELECT k, v FROM A WHERE k < 100",
    "rows": "SELECT k, v FROM A [ROWS 1000]",
    "groups": "SELECT k, COUNT(*), SUM(v) FROM A [RANGE 1000] GROUP BY k",
    "join": "SELECT ISTREAM(A.v, B.v) FROM A [ROWS 1000], B [ROWS 1000] WHERE A.k = B.k",
    "mjoin3": "SELECT ISTREAM(A.v, B.v, C.v) FROM A [ROWS 1000], B [ROWS 1000], C [ROWS 1000] "
    "WHERE A.k = B.k AND B.k = C.k",
}


def measure(rows: int) -> dict[str, dict[str, float]]:
    """Per query: tuples read and lines written per second of the whole process, start included."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, cql in QUERIES.items():
            streams = [s for s in "ABC" if f"FROM {s} " in cql or f" {s} [" in cql]
            for i, stream in enumerate(streams):
                _write(Path(folder, f"{stream}.csv"), rows // len(streams), i, len(streams))
            found[name] = _run(folder, cql, streams, rows // len(streams) * len(streams))
    return found


def measure_broken_rows(rows: int) -> dict[str, float]:
    """Processor time of reading a CSV file whose times are ISO texts, by the share of rows whose time is none.

    Whole runs of a count per key, in this process, after one that is not counted; seconds per million rows.
    """
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for share in (0.0, 0.0, 0.0005, 0.01):
            path = Path(folder, f"{share}.csv")
            _write_events(path, rows, share)
            start = time.process_time()
            _count_events(path)
            found[f"{share:.2%}"] = round((time.process_time() - start) / rows * 1e6, 2)
    return found


def _write_events(path: Path, rows: int, broken: float) -> None:
    rng = np.random.default_rng(1)
    at = np.datetime_as_string(np.datetime64("2026-01-01", "ms") + np.arange(rows) * 50).astype(object)
    at[rng.random(rows) < broken] = "yesterday"
    columns = {"at": at, "page": rng.integers(0, 13, rows), "ms": rng.integers(0, 1000, rows)}
    pa.csv.write_csv(pa.table(columns), path, pa.csv.WriteOptions(quoting_style="none"))


def _count_events(path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(
            f"CREATE STREAM E (at TIMESTAMP, page INTEGER, ms INTEGER) TIMESTAMP BY at FROM '{path}';"
            "CREATE QUERY q AS SELECT page, COUNT(*) FROM E [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY page"
        )
        db.run()


def _write(path: Path, rows: int, offset: int, step: int) -> None:
    """One tuple a tick, keys drawn evenly."""
    rng = np.random.default_rng(offset)
    ts = np.arange(rows, dtype=np.int64) * step + offset
    columns = {"ts": ts, "k": rng.integers(0, KEYS, rows), "v": rng.integers(0, 1_000_000, rows)}
    pa.csv.write_csv(pa.table(columns), path)


def _run(folder: str, cql: str, streams: list[str], rows: int) -> dict[str, float]:
    declarations = "\n".join(
        f"CREATE STREAM {s} (ts INTEGER, k INTEGER, v INTEGER) TIMESTAMP BY ts FROM '{folder}/{s}.csv';"
        for s in streams
    )
    script, out = Path(folder, "script.cql"), Path(folder, "out.csv")
    script.write_text(f"{declarations}\nCREATE QUERY q AS {cql} INTO '{out}';\n")
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "minidsms", "run", str(script), "--quiet"], check=True, capture_output=True)
    seconds = time.perf_counter() - start
    with out.open("rb") as lines:
        written = sum(block.count(b"\n") for block in iter(lambda: lines.read(1 << 20), b"")) - 1
    return {
        "rows": rows,
        "tuples_per_s": round(rows / seconds),
        "lines_per_s": round(written / seconds),
        "lines": written,
    }
