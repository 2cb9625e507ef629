"""The queries that are measured: CQL, input, the kernel and the SQL that answer the same, and the goal."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import nexmark, sql
from benchmarks.answers import as_answer
from benchmarks.counting import AS_WRITTEN, BEST_ORDER, WORST_ORDER
from benchmarks.feeds import Feed, Feeds, last_instant

Kernel = Callable[[Feeds, int], pa.Table]
"""(feeds, last closed instant) -> the answer as `answers.fingerprint` wants it."""

BID = "CREATE STREAM bid (auction INTEGER, price INTEGER);"


@dataclass(frozen=True)
class Goals:
    """Ratios of rates to reach: to the kernel that only counts, to DuckDB that only counts, and to the one that hashes
    (None: there is none).
    """

    of_counting: float
    of_duckdb: float
    of_hashing: float | None = None


@dataclass(frozen=True)
class Case:
    """One query.

    feeds: makes input of so many elements.  kernel: gives the whole answer; None where there is none.  duckdb: a text
    of benchmarks.sql.  goals: None where none is set.
    options: of the connection.  hashing: a kernel that gives the whole answer and knows nothing of the keys.
    """

    name: str
    declarations: str
    cql: str
    feeds: Callable[[int], Feeds]
    duckdb: str
    kernel: Kernel | None = None
    goals: Goals | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    hashing: Kernel | None = None


@functools.lru_cache(maxsize=2)
def _market(bids: int) -> Feeds:
    return nexmark.nexmark(bids)


def _bids(*columns: str) -> Callable[[int], Feeds]:
    return lambda n: {"bid": nexmark.only(_market(n), "bid", *columns)}


def _bids_and_auctions(bid: tuple[str, ...], auction: tuple[str, ...]) -> Callable[[int], Feeds]:
    return lambda n: {
        "bid": nexmark.only(_market(n), "bid", *bid),
        "auction": nexmark.only(_market(n), "auction", *auction),
    }


def _arrays(feed: Feed) -> list[np.ndarray]:
    return [feed.ts, *(feed.array(c) for c in feed.columns)]


def _filter_kernel(feeds: Feeds, until: int) -> pa.Table:
    from benchmarks.limits_filters import filter_kernel

    ts, auction, price = filter_kernel(*_arrays(feeds["bid"]))
    return as_answer(ts, None, auction, price)


def filters10_kernel(feeds: Feeds, until: int, order: tuple[int, ...] = AS_WRITTEN) -> pa.Table:
    """The ten filters in the given order of their numbers."""
    from benchmarks.limits_filters import filters_kernel

    ts, *columns = _arrays(feeds["tuples"])
    rounds = np.array(sql.HASH_ROUNDS, np.int64)
    out_ts, first, last = filters_kernel(ts, tuple(columns), rounds, np.array(order, np.int64))
    return as_answer(out_ts, None, first, last)


def _distinct_kernel(feeds: Feeds, until: int) -> pa.Table:
    from benchmarks.limits_filters import distinct_kernel

    ts, key = _arrays(feeds["bid"])
    out_ts, sign, out_key = distinct_kernel(ts, key, sql.RANGE, until)
    return as_answer(out_ts, sign, out_key)


def _limit(module: str, name: str, streams: tuple[str, ...]) -> Kernel:
    """Function `name` of a module of limits: it takes each stream's ts and columns, then the last instant, and gives
    (ts, sign or None, columns..). Loaded when first called: its kernels compile.
    """

    def run(feeds: Feeds, until: int) -> pa.Table:
        function = getattr(importlib.import_module(f"benchmarks.{module}"), name)
        return as_answer(*function(*(a for s in streams for a in _arrays(feeds[s])), until))

    return run


def _outer_join_kernel(feeds: Feeds, until: int) -> pa.Table:
    from benchmarks.limits_relations import outer_join

    ts, sign, auction, price, is_null = outer_join(*_arrays(feeds["bid"]), *_arrays(feeds["auction"]), until)
    return as_answer(ts, sign, auction, pa.array(price, mask=is_null))


def _relation_kernel(feeds: Feeds, until: int) -> pa.Table:
    from benchmarks.limits_relations import relation

    return as_answer(*relation(feeds, until))


def _text_keys_kernel(feeds: Feeds, until: int) -> pa.Table:
    from benchmarks.limits_groups import text_keys

    return text_keys(feeds, until)


def _nulls_kernel(feeds: Feeds, until: int) -> pa.Table:
    from benchmarks.limits_groups import nulls

    return nulls(feeds, until)


CASES = (
    Case(
        "filter",
        BID,
        "SELECT auction, price FROM bid WHERE auction % 123 = 0",
        _bids("auction", "price"),
        sql.FILTER,
        _filter_kernel,
        Goals(0.3, 1),
    ),
    Case(
        "filters10",
        f"CREATE STREAM tuples ({', '.join(f'a{j} INTEGER' for j in range(10))});",
        f"SELECT a0, a9 FROM tuples WHERE {sql.ten_conditions(AS_WRITTEN)}",
        nexmark.ten_attributes,
        sql.FILTERS10,
        filters10_kernel,
        options={"adaptive": "off"},
    ),
    Case(
        "filters10_adaptive",
        f"CREATE STREAM tuples ({', '.join(f'a{j} INTEGER' for j in range(10))});",
        f"SELECT a0, a9 FROM tuples WHERE {sql.ten_conditions(WORST_ORDER)}",
        nexmark.ten_attributes,
        sql.FILTERS10,
        lambda feeds, until: filters10_kernel(feeds, until, BEST_ORDER),
        Goals(0.7, 2),
    ),
    Case(
        "lag",
        BID,
        "SELECT auction, price - LAG(price) OVER (PARTITION BY auction ORDER BY ts) AS d FROM bid",
        _bids("auction", "price"),
        sql.LAG,
    ),
    Case(
        "running_sum",
        BID,
        "SELECT auction, SUM(price) OVER (PARTITION BY auction ORDER BY ts) AS s FROM bid",
        _bids("auction", "price"),
        sql.RUNNING_SUM,
    ),
    Case(
        "winagg",
        BID,
        "SELECT auction, COUNT(*), MAX(price) FROM bid [RANGE 10 SECONDS SLIDE 2 SECONDS] GROUP BY auction",
        _bids("auction", "price"),
        sql.WINAGG,
        _limit("limits", "winagg", ("bid",)),
        Goals(0.25, 2),
    ),
    Case(
        "running",
        BID,
        "SELECT auction, COUNT(*), MAX(price) FROM bid [RANGE 10 SECONDS] GROUP BY auction",
        _bids("auction", "price"),
        sql.RUNNING,
        _limit("limits", "running", ("bid",)),
        Goals(0.2, 1.5, 0.85),
        hashing=_limit("limits", "running_hashed", ("bid",)),
    ),
    Case(
        "join",
        BID + "CREATE STREAM auction (id INTEGER, seller INTEGER);",
        "SELECT ISTREAM(bid.auction, price, seller) FROM bid [RANGE 10 SECONDS], auction [RANGE 10 SECONDS] "
        "WHERE bid.auction = auction.id",
        _bids_and_auctions(("auction", "price"), ("id", "seller")),
        sql.JOIN,
        _limit("limits_joins", "join", ("bid", "auction")),
        Goals(0.2, 0.8, 0.85),
        hashing=_limit("limits_joins", "join_hashed", ("bid", "auction")),
    ),
    Case(
        "mjoin3",
        "CREATE STREAM R (a INTEGER); CREATE STREAM S (a INTEGER, b INTEGER); CREATE STREAM T (b INTEGER);",
        "SELECT ISTREAM(R.a, S.b) FROM R [RANGE 2500], S [RANGE 2500], T [RANGE 2500] WHERE R.a = S.a AND S.b = T.b",
        nexmark.three_streams,
        sql.MJOIN3,
        _limit("limits_joins", "mjoin3", ("R", "S", "T")),
        Goals(0.25, 1.5),
    ),
    Case(
        "distinct",
        "CREATE STREAM bid (bidder INTEGER);",
        "SELECT DISTINCT bidder FROM bid [RANGE 10 SECONDS]",
        _bids("bidder"),
        sql.DISTINCT,
        _distinct_kernel,
    ),
    Case(
        "except",
        "CREATE STREAM bid (bidder INTEGER); CREATE STREAM auction (seller INTEGER);",
        "SELECT bidder FROM bid [RANGE 10 SECONDS] EXCEPT SELECT seller FROM auction [RANGE 10 SECONDS]",
        _bids_and_auctions(("bidder",), ("seller",)),
        sql.EXCEPT,
        _limit("limits_sets", "except_", ("bid", "auction")),
    ),
    Case(
        "partition",
        BID,
        "SELECT auction, price FROM bid [PARTITION BY auction ROWS 10]",
        _bids("auction", "price"),
        sql.PARTITION,
        _limit("limits_sets", "partition", ("bid",)),
    ),
    Case(
        "outer_join",
        BID + "CREATE STREAM auction (id INTEGER);",
        "SELECT A.id, B.price FROM auction [RANGE 10 SECONDS] AS A LEFT JOIN bid [RANGE 10 SECONDS] AS B "
        "ON B.auction = A.id",
        _bids_and_auctions(("auction", "price"), ("id",)),
        sql.OUTER_JOIN,
        _outer_join_kernel,
    ),
    Case(
        "text_keys",
        "CREATE STREAM bid (channel TEXT, price INTEGER);",
        "SELECT channel, COUNT(*), SUM(price) FROM bid [RANGE 10 SECONDS] GROUP BY channel",
        _bids("channel", "price"),
        sql.TEXT_KEYS,
        _text_keys_kernel,
    ),
    Case(
        "nulls",
        BID,
        "SELECT auction, COUNT(price), MAX(price) FROM bid [RANGE 10 SECONDS] GROUP BY auction",
        lambda n: nexmark.with_nulls(_market(n)),
        sql.NULLS,
        _nulls_kernel,
    ),
    Case(
        "relation",
        "CREATE RELATION rates (currency INTEGER, rate INTEGER); "
        "CREATE STREAM bid (auction INTEGER, price INTEGER, currency INTEGER);",
        "SELECT ISTREAM(auction, price, rate) FROM bid [NOW], rates WHERE bid.currency = rates.currency",
        lambda n: nexmark.currencies(_market(n)),
        sql.RELATION,
        _relation_kernel,
    ),
)

__all__ = ["CASES", "Case", "Kernel", "filters10_kernel", "last_instant"]
