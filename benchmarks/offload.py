"""`python -m benchmarks.offload --rows N`: a query over an archive, on Spark and by replay into the live engine.

Every contestant is a process of its own; told are wall-clock seconds without the start of Spark, CPU seconds (of the
Java machine and its workers, or of the engine), the greatest memory, and whether both gave as many changes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from minidsms.spark.costs import WAYS

KEYS = 1000
ROWS_A_SECOND = 1000
QUERIES = {
    "filter": "SELECT car, speed FROM Pos [NOW] WHERE speed > 29.5",
    "average": "SELECT road, AVG(speed), COUNT(*) FROM Pos [RANGE 30 SECONDS SLIDE 10 SECONDS] GROUP BY road",
    "sliding": "ISTREAM (SELECT road, SUM(car) FROM Pos [RANGE 30 SECONDS] GROUP BY road)",
    "maximum": "SELECT road, MAX(speed) FROM Pos [RANGE 60 SECONDS SLIDE 60 SECONDS] GROUP BY road",
    "rows": "SELECT ISTREAM(road, speed) FROM Pos [ROWS 1000] WHERE speed > 29.9",
    "latest": "SELECT car, speed FROM Pos [PARTITION BY car ROWS 1] WHERE speed > 29.0",
    "join": (
        "ISTREAM (SELECT A.car, A.speed, B.speed FROM Pos [NOW] A, Pos [RANGE 5 SECONDS] B "
        "WHERE A.car = B.car AND A.speed > B.speed + 20.0)"
    ),
}


def write_archive(folder: str, rows: int) -> None:
    """A stream of positions: `ROWS_A_SECOND` on average, with ties; roads are used unevenly."""
    from minidsms.archive import files
    from minidsms.archive.format import Metadata, create
    from minidsms.elements import Schema, Type

    schema = Schema.of(("car", Type.INTEGER), ("road", Type.TEXT), ("speed", Type.FLOAT))
    archive = create(folder, Metadata("Pos", "stream", "ms", schema, 86_400_000))
    rng = np.random.default_rng(1)
    roads = np.array([f"road {i}" for i in range(KEYS)])
    for start in range(0, rows, 1_000_000):
        n = min(1_000_000, rows - start)
        ts = np.sort(rng.integers(start * 1000 // ROWS_A_SECOND, (start + n) * 1000 // ROWS_A_SECOND, n))
        columns = {
            "_ts": ts,
            "_arrival": np.arange(start, start + n),
            "_sign": np.ones(n, np.int8),
            "car": rng.integers(0, 20_000, n),
            "road": roads[np.minimum(rng.zipf(1.3, n) - 1, KEYS - 1)],
            "speed": rng.random(n) * 30,
        }
        files.write(archive, pa.table(columns, schema=archive.metadata.arrow_schema))


def live(folder: str, cql: str, until: int) -> dict[str, Any]:
    """Replay flat out into the engine."""
    import minidsms

    with minidsms.connect() as db:
        db.execute("CREATE STREAM Pos (car INTEGER, road TEXT, speed FLOAT)")
        query = db.query(cql)
        changes = 0
        started, cpu = time.perf_counter(), time.process_time()
        db.replay(folder, progress=None)
        db.advance(until)
        while len(table := query.fetch_arrow()):
            changes += len(table)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return {"seconds": seconds, "cpu_s": cpu, "memory_mb": memory, "changes": changes}


def spark(folder: str, cql: str, until: int, by: str | None) -> dict[str, Any]:
    """The same on Spark, on this machine, by a way (None: the one that is chosen)."""
    from minidsms.spark import run
    from minidsms.spark.session import session

    running = session(config={"spark.driver.memory": "4g"})
    running.range(1000).groupBy("id").count().collect()  # the first job of all loads most of Spark's classes
    java = int(running._jvm.java.lang.ProcessHandle.current().pid())
    started, cpu = time.perf_counter(), cpu_s(java)
    changes = run(cql, folder, until=until, by=by).count()
    seconds, cpu = time.perf_counter() - started, cpu_s(java) - cpu
    return {"seconds": seconds, "cpu_s": cpu, "memory_mb": _memory_mb(java), "changes": changes}


def cpu_s(process: int) -> float:
    """The CPU seconds of a process and all below it, ended or not."""
    ticks = 0
    waiting = [process]
    while waiting:
        place = Path(f"/proc/{waiting.pop()}")
        try:
            ticks += sum(map(int, (place / "stat").read_text().rsplit(")", 1)[1].split()[11:15]))
            for task in (place / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except OSError:  # it has ended meanwhile, and counts with its parent
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def _memory_mb(process: int) -> int:
    """The greatest resident memory of a process and the sum of that of what runs below it now."""
    total = 0
    waiting = [process]
    while waiting:
        place = Path(f"/proc/{waiting.pop()}")
        try:
            total += int((place / "status").read_text().split("VmHWM:")[1].split()[0]) >> 10
            for task in (place / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, IndexError):
            continue
    return total


def main() -> None:
    """Measure and print a line of JSON per query and contestant."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.offload", description=__doc__)
    parser.add_argument("--rows", type=int, action="append", help="may be repeated (default 1,000,000)")
    parser.add_argument("--case", action="append", choices=list(QUERIES))
    parser.add_argument("--only", choices=("live", "spark", *WAYS), help="one contestant: Spark, also by a way")
    parser.add_argument("--contestant", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant is not None:
        who, name, folder, until = options.contestant
        text = QUERIES[name]
        by = who if who in WAYS else None
        print(json.dumps(live(folder, text, int(until)) if who == "live" else spark(folder, text, int(until), by)))
        return
    for rows in options.rows or [1_000_000]:
        with tempfile.TemporaryDirectory() as folder:
            write_archive(folder, rows)
            until = rows * 1000 // ROWS_A_SECOND
            for name in options.case or QUERIES:
                for who in ("live", "spark") if options.only is None else (options.only,):
                    command = [
                        sys.executable,
                        "-m",
                        "benchmarks.offload",
                        "--contestant",
                        who,
                        name,
                        folder,
                        str(until),
                    ]
                    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                    figures = {k: round(v, 1) for k, v in json.loads(told.splitlines()[-1]).items()}
                    print(json.dumps({"rows": rows, "query": name, "who": who, **figures}), flush=True)


if __name__ == "__main__":
    main()
