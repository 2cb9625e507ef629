"""Cases of the benchmarks beside another tree of the sources: `python -m benchmarks.beside OTHER_TREE CASE ..`.

Both trees run the same cases in turn, each in a process of its own that stays, so that a busy machine slows both alike.
Taken is the time of the pushing thread without the garbage collector, whose work grows with what is loaded.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

_SERVER = """
import gc, json, sys, time
sys.path.insert(0, ".")
from benchmarks import contestants
from benchmarks.cases import CASES
gc.disable()
gc.collect = lambda *generation: 0
feeds = {}
for line in sys.stdin:
    name, events = line.split()
    case = next(case for case in CASES if case.name == name)
    if line not in feeds:
        feeds[line] = case.feeds(int(events))
    began = time.thread_time()
    answer = contestants.engine(case, feeds[line]).answer
    print(json.dumps([time.thread_time() - began, answer.num_rows]), flush=True)
"""


def ask(process: subprocess.Popen[str], case: str, events: int) -> tuple[float, int]:
    """(seconds, rows) of one run."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{case} {events}\n")
    process.stdin.flush()
    seconds, rows = json.loads(process.stdout.readline())
    return seconds, rows


def main() -> None:
    """Print least seconds of both trees, and the median of the ratios of neighbouring runs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beside", description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--events", type=int, default=200_000)
    options = parser.parse_args()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _SERVER], cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for tree in (options.other, Path.cwd())
    ]
    for case in options.cases:
        taken: list[list[float]] = [[], []]
        for number in range(options.rounds + 1):
            runs = [ask(process, case, options.events) for process in processes]
            assert runs[0][1] == runs[1][1], f"{case}: {runs[0][1]} rows there, {runs[1][1]} here"
            if number:  # the first round compiles
                for seconds, run in zip(taken, runs):
                    seconds.append(run[0])
        ratio = statistics.median(here / there for there, here in zip(*taken))
        print(f"{case:12} there {min(taken[0]):.4f} s, here {min(taken[1]):.4f} s, ratio {ratio:.3f}", flush=True)
    for process in processes:
        process.kill()


if __name__ == "__main__":
    main()
