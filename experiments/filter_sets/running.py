"""Query sets over streams, in the engine: columns looked at, time, and the best and worst order there is."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from experiments.filter_sets.workload import QuerySet, Rows
from minidsms import connect
from minidsms.screens.asc import Constructs
from minidsms.screens.level import Level
from minidsms.screens.sequence import Sequence

PUSH = 10_000


@dataclass(frozen=True)
class Cost:
    """Of all tuples of a run: ASCs looked at, arrows of regions followed, and ns a tuple in the screen.

    trace: ASCs looked at in each push.
    """

    looked: int
    micro: int
    ns: float
    trace: tuple[int, ...] = ()


class Run:
    """One connection with a query set under a strategy."""

    def __init__(self, queries: QuerySet, strategy: str, **options: Any) -> None:
        self._db = connect(screening=strategy, cost_model="fixed", **options)
        self._columns = queries.columns
        self._db.execute("CREATE STREAM D (" + ", ".join(f"a{c} INTEGER" for c in range(queries.columns)) + ")")
        self._queries = [self._db.query(f"SELECT ISTREAM(a0) FROM D WHERE {text}") for text in queries.conditions()]

    def level(self, rows: Rows) -> Level:
        """The screen's tables, once something has passed."""
        self._push(rows[:1], 0)
        (screen,) = self._queries[0].network.group.screens  # type: ignore[union-attr]
        return screen.levels[0]

    def _push(self, rows: Rows, ts: int) -> None:
        data = {f"a{c}": np.ascontiguousarray(rows[:, c]) for c in range(self._columns)}
        self._db.push("D", data, ts=np.full(len(rows), ts))

    def cost(self, rows: Rows, sequence: Sequence | None = None) -> Cost:
        """Push all rows. sequence: the one to stay with."""
        level = self.level(rows)
        if sequence is not None:
            level.follow(sequence)
        trace = []
        before = level.looked, level.micro, level.time_ns
        for ts, start in enumerate(range(0, len(rows), PUSH), 1):
            at = level.looked
            self._push(rows[start : start + PUSH], ts)
            trace.append(level.looked - at)
            for query in self._queries:
                query.fetch_arrow()
        spent = level.time_ns - before[2]
        return Cost(level.looked - before[0], level.micro - before[1], spent / len(rows), tuple(trace))


def constructs_of(level: Level) -> Constructs:
    """The bitmaps of a level that has no home lists."""
    assert isinstance(level.constructs, Constructs)
    return level.constructs


def cost(queries: QuerySet, rows: Rows, strategy: str, **options: Any) -> Cost:
    """Of a strategy."""
    return Run(queries, strategy, **options).cost(rows)


def extremes(queries: QuerySet, rows: Rows, sample: int = 20_000) -> tuple[Sequence, Sequence]:
    """(the best, the worst) fixed order over the first rows.

    What a sequence costs depends on the sets of columns that its beginnings are, so that all of them are compared by
    dynamic programming over sets, where the paper tries every order.
    """
    level = Run(queries, "written").level(rows)
    constructs = constructs_of(level)
    n = len(constructs.columns)
    chosen = rows[:sample]
    keys = np.ascontiguousarray(chosen[:, constructs.columns].T)
    at = level.domains.regions_of(keys, np.ones(keys.shape, np.bool_))
    words = [constructs.bits[at[c]] for c in range(n)]

    @cache
    def alive(chosen: frozenset[int]) -> float:
        grb = words[min(chosen)].copy()
        for c in chosen - {min(chosen)}:
            grb &= words[c]
        return float(grb.any(axis=1).mean())

    found = []
    for choose in (min, max):
        best: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {frozenset(): (0.0, ())}
        for size in range(1, n + 1):
            for combination in itertools.combinations(range(n), size):
                key = frozenset(combination)
                options = []
                for last in combination:
                    cost_before, order = best[key - {last}]
                    reached = alive(key - {last}) if size > 1 else 1.0
                    options.append((cost_before + reached, (*order, last)))
                best[key] = choose(options)
        found.append(Sequence(best[frozenset(range(n))][1]))
    return found[0], found[1]


def deviation_of_ones(queries: QuerySet, rows: Rows) -> float:
    """Standard deviation of the share of ones in the bitmaps of regions, mean over columns (table 1)."""
    constructs = constructs_of(Run(queries, "written").level(rows))
    shares = np.bitwise_count(constructs.bits).sum(axis=1) / len(queries.queries)
    parts = [shares[a + 1 : b] for a, b in itertools.pairwise(constructs.domains.first.tolist())]
    return float(np.mean([part.std() for part in parts]))
