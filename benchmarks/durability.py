"""What a folder costs: pushes under each durability beside memory, opening, and the longest call during a checkpoint.

    python -m benchmarks.durability [--rows 2000000] [--rounds 3] [--large 40000000]

Kinds take turns in every round; ratios are of one round, and medians of them are told: of the processor's time, which
other programs do not change much, and of rates, for a machine at rest. State is a window, or as many groups: "opening"
carries the log of it out again. `--large` measures only checkpoints, of large state, beside pushes of one row and of
65,536: what one takes of the rate, and what that comes to where they are made by interval, one second in thirty-one;
and three, with one twentieth more pushed before each but the first: what they write, and their processor time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import minidsms
from minidsms.durability.checkpoints import SHARE

PUSH = 65_536
QUERIES = {
    "window": "SELECT k % 1000, COUNT(*), SUM(v) FROM S [RANGE {n}] GROUP BY k % 1000",
    "groups": "SELECT k, COUNT(*), SUM(v) FROM S GROUP BY k",
}
KINDS = ("memory", "os", "batch", "sync")


@dataclass
class Cost:
    """Of an element, in nanoseconds: of the processor (all threads), and as a client waits for it."""

    processor: float
    wall: float


def columns(first: int, n: int) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[Any]]:
    """(columns, instants) of a push."""
    at = np.arange(first, first + n)
    return {"k": at, "v": (at % 100).astype(float)}, at


def opened(folder: str | None, n: int, state: str = "window", **options: Any) -> minidsms.Connection:
    """A connection with one query."""
    db = minidsms.connect(folder, **options)
    if "s" not in db.catalog.streams:
        db.execute("CREATE STREAM S (k INTEGER, v FLOAT)")
        db.query(QUERIES[state].format(n=n), "q")
    return db


def cost(kind: str, rows: int) -> Cost:
    """Of elements pushed and answers fetched."""
    pushes = [columns(first, PUSH) for first in range(0, rows, PUSH)]
    with tempfile.TemporaryDirectory() as folder:
        options = {} if kind == "memory" else {"durability": kind}
        with opened(None if kind == "memory" else folder, 100_000, **options) as db:
            started_s, used_s = time.perf_counter(), time.process_time()
            for data, ts in pushes:
                db.push("S", data, ts=ts)
                db.queries["q"].fetch_arrow()
            n = len(pushes) * PUSH / 1e9
            return Cost((time.process_time() - used_s) / n, (time.perf_counter() - started_s) / n)


def checkpoint(state: str, rows: int, size: int = 1) -> str:
    """What a checkpoint of so many rows or groups costs, pushes of `size` rows beside it, and opening it."""
    with tempfile.TemporaryDirectory() as folder:
        with opened(folder, rows, state, durability="batch") as db:
            at = 0
            alone_s: list[float] = []
            while at < rows + (20 * size if size > 1 else 0):
                data, ts = columns(at, PUSH)
                started_s = time.perf_counter()
                db.push("S", data, ts=ts)
                alone_s.append(time.perf_counter() - started_s)
                db.queries["q"].fetch_arrow()
                at += PUSH
            held = db.queries["q"].nbytes + sum(db.stream_store("S")[0].nbytes for _ in range(state == "window"))
            pushing_s: list[float] = []
            used_s = time.process_time()
            making = threading.Thread(target=db.checkpoint)
            making_s = time.perf_counter()
            making.start()
            while making.is_alive():
                data, ts = columns(at, size)
                data["k"] = data["k"] % rows
                started_s, own_s = time.perf_counter(), time.thread_time()
                db.push("S", data, ts=ts)
                used_s += time.thread_time() - own_s
                pushing_s.append(time.perf_counter() - started_s)
                db.queries["q"].fetch_arrow()
                at += size
                if size == 1:
                    time.sleep(0.001)
            making_s = time.perf_counter() - making_s
            used_s = time.process_time() - used_s
            nbytes = db.execute("SHOW CHECKPOINTS").rows[-1][4]
        started_s, opening_s = time.perf_counter(), time.process_time()
        with opened(folder, rows, state):
            opening_s, wall_s = time.process_time() - opening_s, time.perf_counter() - started_s
    longest = ", ".join(f"{1000 * s:.0f}" for s in sorted(pushing_s)[-3:])
    made = f"a checkpoint of {nbytes / 1e6:.0f} MB took {used_s:.2f} s of the processor, {making_s:.1f} s in all"
    beside = f"the longest of {len(pushing_s)} pushes of {size:,} meanwhile {longest} ms"
    if size > 1:
        rate = statistics.median(alone_s[-20:]) / statistics.mean(pushing_s)
        lost = (1 - rate) / (SHARE + 1)
        beside += f" (alone {1000 * max(alone_s[-20:]):.0f}), at {rate:.2f} of the rate, by interval {lost:.1%} less"
    took = f"opening {opening_s:.2f} s of the processor, {wall_s:.2f} s in all"
    return f"{state} of {rows:,} ({held / 1e6:.0f} MB): {made}, {beside}; {took}"


def repeated(state: str, rows: int) -> str:
    """What a checkpoint of so many rows or groups writes and costs, and the next ones, when little has come."""
    told = []
    with tempfile.TemporaryDirectory() as folder, opened(folder, rows, state, durability="os") as db:
        at = 0
        for end in (rows, rows * 21 // 20, rows * 22 // 20):
            while at < end:
                data, ts = columns(at, PUSH)
                data["k"] = data["k"] % rows
                db.push("S", data, ts=ts)
                db.queries["q"].fetch_arrow()
                at += PUSH
            used_s = _used_s()
            db.checkpoint()
            used_s = _used_s() - used_s
            *_, written, _ = db.execute("SHOW CHECKPOINTS").rows[-1]
            told.append(f"{written / 1e6:.0f} MB, {used_s:.2f} s")
    return f"{state} of {rows:,}: checkpoints one after the other write, and take of the processor, {'; '.join(told)}"


def _used_s() -> float:
    """Of the processor, by the children that have ended, too."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", type=int, metavar="ROWS", help="only checkpoints of state of so many rows or groups")
    options = parser.parse_args()
    if options.large is not None:
        for state in QUERIES:
            for size in (1, PUSH):
                print(checkpoint(state, options.large, size), flush=True)
            print(repeated(state, options.large), flush=True)
        return
    cost("memory", PUSH)  # kernels are loaded
    rounds = [{kind: cost(kind, options.rows) for kind in KINDS} for _ in range(options.rounds)]
    for kind in KINDS:
        found = [statistics.median(1e9 / each[kind].wall for each in rounds)]
        found += [statistics.median(each["memory"].processor / each[kind].processor for each in rounds)]
        found += [statistics.median(each["memory"].wall / each[kind].wall for each in rounds)]
        print(
            f"{kind:8}{found[0]:14,.0f} elements/s, of memory {found[1]:.2f} by the processor, {found[2]:.2f} by time"
        )
    for state in QUERIES:
        print(checkpoint(state, 1_000_000))


if __name__ == "__main__":
    main()
