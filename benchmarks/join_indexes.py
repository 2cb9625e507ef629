"""What indexes by several columns gain in joins whose equalities make cycles: `python -m benchmarks.join_indexes`.

The complete join of four streams, each compared with each by columns of their own, and the star, where there is nothing
to gain; windows of 8,192 rows that are full when the clock starts. Rates are told by processor time against
`join_index = hash`, median of the rounds with least and greatest; answers are compared.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import combinations

import numpy as np

import minidsms

STREAMS = "ABCD"
ROWS = 8_192
PUSH = 1_024
GOALS = {("complete", 200): 10.0, ("complete", 100): 20.0, ("star", 1_000): 0.98}
INDEXES = ("hash", "patterns", "auto", "bit_address")


def query_of(shape: str) -> tuple[dict[str, list[str]], str]:
    """(columns by stream, query): a column of its own, in both streams, for each pair that is compared."""
    pairs = [pair for pair in combinations(STREAMS, 2) if shape == "complete" or "A" in pair]
    columns = {s: [f"c{n}" for n, pair in enumerate(pairs) if s in pair] for s in STREAMS}
    windows = ", ".join(f"{s} [RANGE {ROWS}]" for s in STREAMS)
    equalities = " AND ".join(f"{a}.c{n} = {b}.c{n}" for n, (a, b) in enumerate(pairs))
    return (
        columns,
        f"SELECT ISTREAM({', '.join(f'{s}.{columns[s][0]}' for s in STREAMS)}) FROM {windows} WHERE {equalities}",
    )


def run(shape: str, values: int, index: str, ticks: int) -> tuple[float, int]:
    """(us an element once windows are full, rows put out)."""
    columns, query = query_of(shape)
    rng = np.random.default_rng(1)
    with minidsms.connect(join_index=index, join_plan="mjoin") as db:
        for s in STREAMS:
            db.execute(f"CREATE STREAM {s} ({', '.join(f'{c} INTEGER' for c in columns[s])})")
        q = db.query(query)
        began = 0.0
        for ts in range(0, ROWS + ticks, PUSH):
            data = {s: {c: rng.integers(0, values, PUSH) for c in columns[s]} for s in STREAMS}
            if ts == ROWS:
                began = time.process_time()
            for s in STREAMS:
                db.push(s, data[s], ts=np.arange(ts, ts + PUSH))
        seconds = time.process_time() - began
        return 1e6 * seconds / (len(STREAMS) * ticks), q.fetch_arrow().num_rows


def main() -> None:
    """Print a line for each case and index."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.join_indexes", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ticks", type=int, default=4 * PUSH, help="of the stretch that is timed")
    options = parser.parse_args()
    for (shape, values), goal in GOALS.items():
        rounds = [{index: run(shape, values, index, options.ticks) for index in INDEXES} for _ in range(options.rounds)]
        assert all(len({rows for _, rows in each.values()}) == 1 for each in rounds), "answers differ"
        for index in INDEXES:
            ratios = sorted(each["hash"][0] / each[index][0] for each in rounds)
            told = f"{statistics.median(ratios):6.2f} times hash ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            least = min(each[index][0] for each in rounds)
            print(f"{shape:9}{values:6,} values  {index:9}{least:8.2f} us an element {told}  goal {goal:g}", flush=True)


if __name__ == "__main__":
    main()
