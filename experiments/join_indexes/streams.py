"""Four streams, each compared with each by a column of their own, of which some change how selective they are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

STREAMS = "ABCD"
PAIRS = list(combinations(STREAMS, 2))
COLUMNS = {s: [f"c{n}" for n, pair in enumerate(PAIRS) if s in pair] for s in STREAMS}
VALUES = np.array([30, 60, 120, 240, 480, 960])
"""Of the columns: the more, the fewer rows are equal."""
PERIOD = 5_000
"""Tuples of a stream after which columns change."""
PUSH = 500
"""Rows."""

Rows = dict[str, dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]]


def query(window: int) -> str:
    """The complete join."""
    windows = ", ".join(f"{s} [ROWS {window}]" for s in STREAMS)
    equalities = " AND ".join(f"{a}.c{n} = {b}.c{n}" for n, (a, b) in enumerate(PAIRS))
    return f"SELECT ISTREAM({', '.join(f'{s}.{COLUMNS[s][0]}' for s in STREAMS)}) FROM {windows} WHERE {equalities}"


def pushes(rows: int, changing: int, seed: int) -> Iterator[tuple[int, Rows]]:
    """(first instant, rows of every stream) of so many rows a stream; after each period as many columns as said have
    changed places in VALUES.
    """
    rng = np.random.default_rng(seed)
    values = VALUES.copy()
    for ts in range(0, rows, PUSH):
        if ts and ts % PERIOD == 0 and changing:
            chosen = rng.choice(len(values), changing, replace=False)
            values[chosen] = np.roll(values[chosen], 1)
        data = {s: {c: rng.integers(0, values[int(c[1:])], PUSH) for c in COLUMNS[s]} for s in STREAMS}
        yield ts, data
