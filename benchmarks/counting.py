"""What a query costs where its answer is only counted: the physical limit, beside which the engine's rates are shown.

Two contestants count: a kernel (`count_only`), and DuckDB in the text that is fastest for it, on two threads. They may
leave out what a continuous query owes: rows that are taken back, netting, every expiry. Filters and joins count the
rows that are put out, windows with SLIDE the rows of each window, running aggregates one row a bid, with its group's
state. All of this follows from the engine's answer, too, and is compared with it; but for the join of three, where
ISTREAM nets three rows of a hundred thousand that enter while an equal one leaves, so that those who count are compared
with each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks import sql
from benchmarks.feeds import Feeds

Sums = tuple[int, ...]
"""How many rows, and the sum of each of their columns."""


@dataclass(frozen=True)
class Counting:
    """How a case is counted. kernel: (feeds, last closed instant) -> the sums.  duckdb: text of the rows, of which the
    columns but the first, an instant, are summed.  of_answer: the sums that the engine's answer implies; None where it
    does not determine them.
    """

    kernel: Callable[[Feeds, int], Sums]
    duckdb: str
    of_answer: Callable[[pa.Table, Feeds, int], Sums] | None


def _column(answer: pa.Table, i: int) -> np.ndarray:
    return answer.column(i).to_numpy().astype(np.int64)


def _of_rows(answer: pa.Table, feeds: Feeds, until: int) -> Sums:
    """Nothing is ever taken back: the answer's rows are the rows."""
    return answer.num_rows, *(int(_column(answer, i).sum()) for i in range(2, answer.num_columns))


def _of_windows(answer: pa.Table, feeds: Feeds, until: int) -> Sums:
    """A change at a boundary holds in every window from there on."""
    held = _column(answer, 1) * (until // sql.SLIDE - _column(answer, 0) // sql.SLIDE + 1)
    return int(held.sum()), *(int((held * _column(answer, i)).sum()) for i in range(2, answer.num_columns))


def _of_states(answer: pa.Table, feeds: Feeds, until: int) -> Sums:
    """At every bid its group's row, which is the group's last insertion up to then."""
    bid = feeds["bid"]
    inserted = _column(answer, 1) > 0
    instants, *columns = (_column(answer, i)[inserted] for i in (0, *range(2, answer.num_columns)))
    moments = columns[0] * (until + 1) + instants  # in the order of (auction, instant)
    order = np.argsort(moments, kind="stable")
    found = order[np.searchsorted(moments[order], bid.array("auction") * (until + 1) + bid.ts, side="right") - 1]
    return len(bid), *(int(column[found].sum()) for column in columns)


def _kernel(name: str, *streams: str) -> Callable[[Feeds, int], Sums]:
    """A kernel over each stream's instants and columns. Loaded when first called: it compiles."""

    def run(feeds: Feeds, until: int) -> Sums:
        from benchmarks import count_only

        arrays = [a for s in streams for a in (feeds[s].ts, *(feeds[s].array(c) for c in feeds[s].columns))]
        return tuple(map(int, getattr(count_only, name)(*arrays, until)))

    return run


def _filter(feeds: Feeds, until: int) -> Sums:
    from benchmarks.count_only import filter_

    return tuple(map(int, filter_(feeds["bid"].array("auction"), feeds["bid"].array("price"))))


def _filters10(order: tuple[int, ...]) -> Callable[[Feeds, int], Sums]:
    def run(feeds: Feeds, until: int) -> Sums:
        from benchmarks.count_only import filters10

        columns = tuple(feeds["tuples"].array(c) for c in feeds["tuples"].columns)
        rounds = np.array(sql.HASH_ROUNDS, np.int64)
        return tuple(map(int, filters10(columns, rounds, np.array(order, np.int64))))

    return run


AS_WRITTEN = tuple(range(10))
BEST_ORDER, WORST_ORDER = (1, 3, 5, 7, 9, 6, 2, 8, 0, 4), (4, 0, 8, 2, 6, 9, 7, 5, 3, 1)
"""Of the filters of filters10: by the rounds of their hashes."""

COUNTED = {
    "filter": Counting(_filter, sql.FILTER_COUNTED, _of_rows),
    "filters10": Counting(_filters10(AS_WRITTEN), sql.filters10(AS_WRITTEN), _of_rows),
    "filters10_adaptive": Counting(_filters10(BEST_ORDER), sql.filters10(BEST_ORDER), _of_rows),
    "winagg": Counting(_kernel("winagg", "bid"), sql.WINAGG_COUNTED, _of_windows),
    "running": Counting(_kernel("running", "bid"), sql.RUNNING_COUNTED, _of_states),
    "join": Counting(_kernel("join", "bid", "auction"), sql.JOIN_COUNTED, _of_rows),
    "mjoin3": Counting(_kernel("mjoin3", "R", "S", "T"), sql.MJOIN3_COUNTED, None),
}
"""By the names of the cases."""
