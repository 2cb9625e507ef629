"""`python -m benchmarks.tpch [--scale N] [--rounds N] [QUERY ..]`: each query as written beside the same by hand.

Both are run in turn in one process, each time in a new connection: the tables are pushed, the answer is taken. Shown is
the least process time of each, and their ratio (goal: at most 3).  Exit code 1 when two answers differ.
"""

from __future__ import annotations

import argparse
import sys
import time

import pyarrow as pa

import minidsms
from benchmarks.tpch.by_hand import BY_HAND
from benchmarks.tpch.queries import QUERIES
from benchmarks.tpch.running import is_same, loaded

GOAL = 3.0


def timed(text: str, tables: dict[str, pa.Table]) -> tuple[float, list[tuple[object, ...]]]:
    """Seconds of the process, from the first push to the answer, and the answer."""
    with minidsms.connect() as db:
        query = loaded(db, {}).query(text)
        began = time.process_time()
        for name, table in tables.items():
            db.push(name, table, ts=1)
        db.advance(2)
        answer = query.snapshot()
        return time.process_time() - began, answer


def main(arguments: list[str]) -> int:
    """Measure and print a line a query."""
    from benchmarks.tpch.tables import tables

    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpch", description=__doc__)
    parser.add_argument("queries", nargs="*", type=int, help="default: all that are written by hand")
    parser.add_argument("--scale", type=float, default=10.0, help="10: 60,000 line items")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    made = tables(options.scale)
    wrong = False
    print(f"{made['lineitem'].num_rows:,} line items; least of {options.rounds} in turn, ms of the process")
    for number in options.queries or sorted(BY_HAND):
        runs = [[timed(text, made) for text in (QUERIES[number], BY_HAND[number])] for _ in range(options.rounds)]
        written, by_hand = (min(seconds for seconds, _ in column) for column in zip(*runs))
        same = is_same(runs[0][0][1], runs[0][1][1])
        wrong = wrong or not same
        verdict = ("" if written <= GOAL * by_hand else "  ABOVE THE GOAL") + ("" if same else "  DIFFERENT ANSWERS")
        print(
            f"q{number:<3} {1000 * written:8.1f} {1000 * by_hand:8.1f}   {written / by_hand:5.2f}{verdict}", flush=True
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
