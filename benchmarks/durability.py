"""What a folder costs: pushes under each durability beside memory, opening, and the longest call during a checkpoint.

    python -m benchmarks.durability [--rows 2000000] [--rounds 3]

Rates are medians of rounds that take turns; "opening" carries the log of a full window out again.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from typing import Any

import numpy as np
import numpy.typing as npt

import minidsms

PUSH = 65_536
QUERY = "SELECT k, COUNT(*), SUM(v) FROM S [RANGE {window}] GROUP BY k"
KINDS = ("memory", "os", "batch", "sync")


def columns(first: int, n: int) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[Any]]:
    """(columns, instants) of a push."""
    at = np.arange(first, first + n)
    return {"k": at * 7919 % 1000, "v": (at % 100).astype(float)}, at


def opened(folder: str | None, window: int, **options: Any) -> minidsms.Connection:
    """A connection with one query."""
    db = minidsms.connect(folder, **options)
    if "s" not in db.catalog.streams:
        db.execute("CREATE STREAM S (k INTEGER, v FLOAT)")
        db.query(QUERY.format(window=window), "q")
    return db


def rate(kind: str, rows: int) -> float:
    """Elements a second, as a client sees them."""
    with tempfile.TemporaryDirectory() as folder:
        options = {} if kind == "memory" else {"durability": kind}
        with opened(None if kind == "memory" else folder, 100_000, **options) as db:
            started_s = time.perf_counter()
            for first in range(0, rows, PUSH):
                data, ts = columns(first, PUSH)
                db.push("S", data, ts=ts)
                db.queries["q"].fetch_arrow()
            return rows / (time.perf_counter() - started_s)


def opening(rows: int) -> tuple[float, float, float]:
    """(seconds to open a window of so many rows, of a checkpoint beside small pushes, of the longest of these)."""
    with tempfile.TemporaryDirectory() as folder:
        with opened(folder, rows, durability="batch") as db:
            for first in range(0, rows, PUSH):
                data, ts = columns(first, PUSH)
                db.push("S", data, ts=ts)
            db.queries["q"].fetch_arrow()
            at, longest_s = rows + PUSH, 0.0
            making = threading.Thread(target=db.checkpoint)
            checkpoint_s = time.perf_counter()
            making.start()
            while making.is_alive():
                started_s = time.perf_counter()
                db.push("S", (at % 1000, 1.0), ts=at)
                longest_s = max(longest_s, time.perf_counter() - started_s)
                at += 1
                time.sleep(0.001)
            checkpoint_s = time.perf_counter() - checkpoint_s
        started_s = time.perf_counter()
        with opened(folder, rows):
            return time.perf_counter() - started_s, checkpoint_s, longest_s


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rate("memory", PUSH)  # kernels are loaded
    rounds = [{kind: rate(kind, options.rows) for kind in KINDS} for _ in range(options.rounds)]
    for kind in KINDS:
        found = statistics.median(each[kind] for each in rounds)
        beside = statistics.median(each[kind] / each["memory"] for each in rounds)
        print(f"{kind:8}{found:14,.0f} elements/s  {beside:.2f} of memory")
    seconds, checkpoint_s, longest_s = opening(1_000_000)
    print(f"opening a window of 1,000,000 rows: {seconds:.2f} s")
    print(f"a checkpoint of it: {checkpoint_s:.2f} s, the longest push meanwhile {longest_s * 1000:.0f} ms")


if __name__ == "__main__":
    main()
