"""Filters in a process of their own, which has no compiler loaded, as in the programs of users.

Six filters of arithmetic, written worst first and best first, run in turn, each in a new process with kept kernels;
the ratio of their processor time says what adapting from the first slices brings.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import numpy as np

import minidsms

EVENTS, PART = 2_000_000, 50_000
PASSED = (990, 950, 900, 700, 400, 100)
"""Of a thousand tuples, those that a filter lets pass."""
GOAL = 0.9


def run(order: str) -> tuple[float, int]:
    """CPU seconds of the pushes; the tuple before which the last order was taken, 0 where the one written stayed."""
    rng = np.random.default_rng(0)
    columns = {f"a{j}": rng.integers(0, 1000, EVENTS) for j in range(len(PASSED))}
    filters = [f"(a{j} * {2 * j + 3} + {j}) % 1000 < {passed}" for j, passed in enumerate(PASSED)]
    condition = " AND ".join(filters if order == "worst" else reversed(filters))
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S ({', '.join(f'{name} INTEGER' for name in columns)})")
        query = db.query(f"SELECT a0 FROM S WHERE {condition}")
        start = time.process_time()
        for first in range(0, EVENTS, PART):
            part = {name: values[first : first + PART] for name, values in columns.items()}
            db.push("S", part, ts=np.arange(first, first + PART))
        seconds = time.process_time() - start
        decisions = query.decisions()
        return seconds, decisions[-1].instant if decisions else 0


def measure(rounds: int = 5) -> dict[str, float]:
    """Rates of the worst order over those of the best, by pairs of runs; the tuple from which the last order ran."""
    seconds: dict[str, list[float]] = {"worst": [], "best": []}
    decided = 0
    for _ in range(rounds):
        for order, taken in seconds.items():
            told = subprocess.run(
                [sys.executable, "-m", "benchmarks.new_process", order], capture_output=True, text=True, check=True
            )
            time_s, instant = told.stdout.split()
            taken.append(float(time_s))
            decided = max(decided, int(instant)) if order == "worst" else decided
    ratios = [best / worst for best, worst in zip(seconds["best"], seconds["worst"])]
    found = {"fastest": min(seconds["best"]) / min(seconds["worst"]), "median": statistics.median(ratios)}
    found |= {"least": min(ratios), "greatest": max(ratios)}
    return {"goal": GOAL, **{name: round(value, 3) for name, value in found.items()}, "last order from": decided}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*run(sys.argv[1]))
    else:
        print(measure())
