"""Archives: what archiving costs the engine, and how fast a replay is, with and without push-down.

Contestants are interleaved, and the median counts. Overhead is of the pushing thread's CPU time: what the
archiver's own thread needs, another core gives. Rates are of rows in the archive, by the clock and by CPU time.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

import minidsms
from benchmarks.offload import cpu_s as cpu_s_of
from minidsms.archive import files
from minidsms.archive.format import Metadata, create
from minidsms.elements import Schema, Type

OVERHEAD_GOAL = 0.10
RATE_GOAL = 5_000_000
QUERIES = {
    "filter 1 %": "SELECT ISTREAM(car) FROM Pos [NOW] WHERE speed > 99",
    "filter 10 %, all columns": "SELECT ISTREAM(*) FROM Pos [NOW] WHERE speed > 90",
    "average per road": "SELECT ISTREAM(road, AVG(speed)) FROM Pos [RANGE 30 SECONDS] GROUP BY road",
}
_CHUNK = 65_536
_TURN = 4
"""Pushes between two changes of the connection."""

_ROADS = pa.array([f"A{i}" for i in range(100)])


def _columns(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {
        "car": rng.integers(0, 5000, n),
        "speed": np.round(rng.random(n) * 100, 1),
        "road": _ROADS.take(pa.array(rng.integers(0, 100, n))),
        "lane": rng.integers(0, 4, n),
    }


def _connect(query: str) -> tuple[minidsms.Connection, minidsms.Query]:
    db = minidsms.connect()
    db.execute("CREATE STREAM Pos (car INTEGER, speed FLOAT, road TEXT, lane INTEGER)")
    return db, db.query(query)


def overhead(rows: int) -> dict[str, dict[str, float]]:
    """What archiving a stream adds to the pushing thread's CPU time, per query, as a share; and rows a second.

    Two connections take turns, one of which archives. In the first quarter memory for what waits to be written comes
    from the system, page by page; that is told apart as `at first`.
    """
    rng = np.random.default_rng(0)
    chunks = [_columns(rng, _CHUNK) for _ in range(20)]
    turns = max(8, rows // (_CHUNK * _TURN))
    found = {}
    for name, query in QUERIES.items():
        folder = tempfile.mkdtemp()
        sides = [_connect(query), _connect(query)]
        sides[1][0].archive("Pos", folder)
        cpu = np.zeros((turns, 2))
        for turn in range(turns):
            for side, (db, q) in enumerate(sides):
                started = time.thread_time()
                for i in range(turn * _TURN, (turn + 1) * _TURN):
                    db.push("Pos", chunks[i % len(chunks)], ts=np.arange(i * _CHUNK, (i + 1) * _CHUNK) // 10)
                    q.fetch_arrow()
                cpu[turn, side] = time.thread_time() - started
        for db, _ in sides:
            db.close()
        shutil.rmtree(folder)
        first, rest = np.median(cpu[: turns // 4], axis=0), np.median(cpu[turns // 4 :], axis=0)
        found[name] = {
            "overhead": round(float(rest[1] / rest[0]) - 1, 3),
            "at first": round(float(first[1] / first[0]) - 1, 3),
            "rows/s": round(_TURN * _CHUNK / rest[1]),
        }
    return found


def replay(rows: int, rounds: int, engines: tuple[str, ...] = ("local",)) -> dict[str, dict[str, float]]:
    """Rows a second of a replay, per query: with push-down and without it, by the clock and by CPU time."""
    folder = tempfile.mkdtemp()
    try:
        _write(folder, rows)
        found = {}
        for name, query in QUERIES.items():
            for engine in engines:
                runs: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
                for _ in range(rounds):
                    for push_down in (True, False):
                        runs[push_down].append(_replay(folder, query, engine, push_down))
                figures = {}
                for push_down, label in ((True, "pushed down"), (False, "whole")):
                    wall, cpu = (median(t[i] for t in runs[push_down]) for i in (0, 1))
                    figures |= {f"{label}, rows/s": round(rows / wall), f"{label}, rows/CPU s": round(rows / cpu)}
                found[f"{name}, {engine}"] = figures
        return found
    finally:
        shutil.rmtree(folder)


def _replay(folder: str, query: str, engine: str, push_down: bool) -> tuple[float, float]:
    db, q = _connect(query)
    java = _java() if engine == "spark" else None

    def cpu_s() -> float:
        return time.process_time() + (0.0 if java is None else cpu_s_of(java))

    with db:
        wall, cpu = time.perf_counter(), cpu_s()
        db.replay(folder, push_down=push_down, engine=engine)
        q.fetch_arrow()
        return time.perf_counter() - wall, cpu_s() - cpu


def _java() -> int:
    """The process of Spark's Java machine, which this starts."""
    from minidsms.spark.session import session

    return int(session(config={"spark.driver.memory": "4g"})._jvm.java.lang.ProcessHandle.current().pid())


def _write(folder: str, rows: int) -> None:
    """An archive of a million rows a file."""
    columns = [("car", Type.INTEGER), ("speed", Type.FLOAT), ("road", Type.TEXT), ("lane", Type.INTEGER)]
    metadata = Metadata("Pos", "stream", "ms", Schema.of(*columns), 86_400_000)
    archive = create(folder, metadata)
    rng = np.random.default_rng(0)
    for first in range(0, rows, 1_000_000):
        n = min(1_000_000, rows - first)
        number = np.arange(first, first + n)
        table = pa.table({"_ts": number // 10, "_arrival": number, "_sign": np.ones(n, np.int8), **_columns(rng, n)})
        files.write(archive, table.cast(metadata.arrow_schema))


def measure(rows: int, rounds: int, with_spark: bool = False) -> dict[str, Callable[[], dict[str, dict[str, float]]]]:
    """The measurements by name, to be called."""
    engines = ("local", "spark") if with_spark else ("local",)
    return {
        f"archiving (goal: overhead at most {OVERHEAD_GOAL})": lambda: overhead(rows),
        f"replay (goal: {RATE_GOAL:,} rows/s)": lambda: replay(rows, rounds, engines),
    }


def main() -> None:
    """`python -m benchmarks.archives [rows] [spark]`."""
    import sys

    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    for title, run in measure(rows, 3, "spark" in sys.argv[2:]).items():
        print(title)
        for name, figures in run().items():
            print(f"  {name}: " + ", ".join(f"{k} {v:,}" for k, v in figures.items()))


if __name__ == "__main__":
    main()
