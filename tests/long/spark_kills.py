"""Kills of ingests, compactions and streaming queries at random moments: whatever is lost or comes twice is told.

`python -m tests.long.spark_kills --kills N` lets processes work at an archive and kills them, Java included,
until N have been killed; what a killed one has left the next goes on with, and in the end everything is compared.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import minidsms
from minidsms.archive import files
from minidsms.archive.compacting import compact
from minidsms.archive.format import Archive, find
from minidsms.archive.verifying import verify

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILES, _ROWS = 8, 40
_DECLARED = "CREATE STREAM S (at INTEGER, k INTEGER, v INTEGER) TIMESTAMP BY at"
_QUERY = "ISTREAM (SELECT k, COUNT(*) AS n, MAX(v) AS most FROM S [RANGE 500] GROUP BY k)"
_READY = "ready"
Rows = Counter[tuple[int, ...]]


# ------------------------------------------------------------------------------------------------- what is killed


def _ingest(folder: Path) -> None:
    """Every raw file, one after the other, with a compaction between."""
    from minidsms.spark.ingest import ingest

    spark = _spark()
    for number in range(_FILES):
        ingest(str(folder / "raw" / f"{number}.json"), str(folder / "data"), _DECLARED, "json", spark=spark)
        if number % 3 == 2:
            compact(find(str(folder / "data"), "S"))


def _stream(folder: Path) -> None:
    """The raw files as a stream, a file a batch, and the query's changes into an archive."""
    from minidsms.spark import register, stream

    spark = _spark()
    register(spark)
    reader = spark.readStream.schema("at long, k long, v long").option("maxFilesPerTrigger", 1)
    changes = stream(_QUERY, {"S": reader.json(str(folder / "raw"))}, _DECLARED, parts=2)
    writing = changes.writeStream.format("minidsms").option("name", "answers").option("batch", "kills")
    writing = writing.option("path", str(folder / "data")).option("checkpointLocation", str(folder / "checkpoint"))
    writing.trigger(availableNow=True).start().awaitTermination()


def _compact(folder: Path) -> None:
    """Rows in many small files, which compactions merge again and again."""
    with minidsms.connect() as db:
        db.execute(_DECLARED)
        db.archive("S", str(folder / "data"))
    archive = find(str(folder / "data"), "S")
    print(_READY, flush=True)
    rows = [row for number in range(_FILES) for row in raw(number)]
    for i in range(len(_found(archive)) // 4, len(rows) // 4):
        with minidsms.connect() as db:
            db.execute(f"{_DECLARED} ARCHIVE '{folder / 'data'}'")
            db.push("S", rows[4 * i : 4 * i + 4], ts=[row[0] for row in rows[4 * i : 4 * i + 4]])
        if i % 3 == 2:
            compact(archive)


WORK: dict[str, Callable[[Path], None]] = {"ingest": _ingest, "stream": _stream, "compact": _compact}


def _spark() -> SparkSession:
    from minidsms.spark.session import session
    from tests.long.spark_answers import SMALL

    spark = session("local[1]", SMALL)
    spark.range(1).count()
    print(_READY, flush=True)
    return spark


# --------------------------------------------------------------------------------------------- what must be there


def raw(number: int) -> list[tuple[int, int, int]]:
    """The rows of a raw file; files follow one another in time."""
    rng = Random(number)
    times = sorted(rng.randrange(number * 1000, number * 1000 + 1000) for _ in range(_ROWS))
    return [(at, rng.randrange(5), number * _ROWS + i) for i, at in enumerate(times)]


def _wanted(kind: str) -> Rows:
    """The rows of the archive in the end: those fed, or the live engine's answers, less the open last instant."""
    rows = [row for number in range(_FILES) for row in raw(number)]
    if kind != "stream":
        return Counter(rows)
    last = rows[-1][0]
    with minidsms.connect() as db:
        db.execute(_DECLARED)
        query = db.query(_QUERY)
        db.push("S", rows)
        db.advance(last)
        return Counter((c.ts, *c.row) for c in query.fetch() if c.ts < last)


def _found(archive: Archive) -> Rows:
    """The rows of an archive, those of answers with their instants."""
    fields = archive.metadata.fields
    tables = files.read(archive)
    own = [] if "at" in fields else ["_ts"]
    return Counter(row for t in tables for row in zip(*(t[name].to_pylist() for name in [*own, *fields])))


def check(kind: str, kills: int, rng: Random, tell: Callable[[int], None]) -> int:
    """Let work be done and killed so often at most, and compare. How many were. AssertionError with the difference."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "raw").mkdir()
        for number in range(_FILES):
            text = "".join(json.dumps(dict(zip(("at", "k", "v"), row))) + "\n" for row in raw(number))
            (folder / "raw" / f"{number}.json").write_text(text)
            os.utime(folder / "raw" / f"{number}.json", (number, number))  # streams take the oldest first
        killed = failed = 0
        while not _is_done(kind, folder, None if killed >= kills else rng):
            killed += 1
            tell(killed)
            failed += killed > kills
            assert failed < 3, "left alone, it fails"
        archive = find(str(folder / "data"), "answers" if kind == "stream" else "S")
        wanted, found = _wanted(kind), _found(archive)
        assert wanted == found, f"{kind}: lost {wanted - found}, too many {found - wanted}"
        assert list(verify(archive)) == []
    return min(killed, kills)


def _is_done(kind: str, folder: Path, rng: Random | None) -> bool:
    """Let a process work, and kill it at a random moment of its work where rng is given; whether it ended before."""
    command = [sys.executable, "-m", "tests.long.spark_kills", "--work", kind, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        begun = time.monotonic()
        try:
            ended = process.wait(None if rng is None or not ready else rng.uniform(0, _longest(folder, kind)))
        except subprocess.TimeoutExpired:
            ended = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if ended == 0:
            _lasted[kind] = time.monotonic() - begun
    time.sleep(0.5)  # Spark's workers see that Java is gone
    return ended == 0


_lasted: dict[str, float] = {}
"""How long the work of a kind took when it was left alone, in seconds."""


def _longest(folder: Path, kind: str) -> float:
    """In how many seconds a kill falls on the work: half of all that is to be done, so that several fall on it."""
    return _lasted.get(kind, 4.0 if kind == "compact" else 30.0) / 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill; the exit status is 1 after a difference."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.spark_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=60, help="in all")
    parser.add_argument("--kind", choices=list(WORK), action="append", help="may be repeated (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.work is not None:
        WORK[options.work[0]](Path(options.work[1]))
        return 0
    rng, killed = Random(options.seed), Counter[str]()
    while killed.total() < options.kills:
        for kind in options.kind or WORK:
            left = options.kills - killed.total()

            def tell(n: int, kind: str = kind) -> None:
                print(f"\r{killed.total() + n} killed, {kind} ", end="", file=sys.stderr, flush=True)

            try:
                killed[kind] += check(kind, min(left, 5), rng, tell)
            except AssertionError as difference:
                print(f"\nseed {options.seed}: {difference}", flush=True)
                return 1
            print(
                ", ".join(f"{n} of {kind}" for kind, n in killed.items()),
                "killed, nothing lost or repeated",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
