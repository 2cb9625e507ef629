"""Who answers a case, and how long it takes: the engine, the kernel, DuckDB; and those who only count.

A contestant is prepared once per round outside the clock (connection, registration, the cutting of the input); the
clock runs from the first element given to the whole answer in memory as columns.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

import minidsms
from benchmarks.cases import Case
from benchmarks.counting import Counting, Sums
from benchmarks.feeds import Feeds, last_instant, parts, push_all
from minidsms.process.side_by_side import usable_threads

T = TypeVar("T")

CHUNK = 65_536
"""Elements of the longest stream in one push, where streams must be interleaved."""

THREADS = 2
"""Of DuckDB."""


def engine_threads() -> int | str:
    """What the engine is told where others have THREADS: 'auto', if that is as many here, else the number."""
    return "auto" if usable_threads("auto") == THREADS else THREADS


@dataclass(frozen=True)
class Run:
    """One round of one contestant. operators: the engine's own figures."""

    seconds: float
    answer: pa.Table
    operators: tuple[dict[str, Any], ...] = ()


def engine(case: Case, feeds: Feeds, chunk: int = CHUNK, **options: Any) -> Run:
    """minidsms, input pushed in parts of `chunk` (one stream alone: at once)."""
    size = chunk if len(feeds) > 1 or chunk != CHUNK else max(len(f) for f in feeds.values())
    pieces = list(parts(feeds, size))
    until = last_instant(feeds)
    with minidsms.connect(**{**case.options, **options}) as db:
        db.execute(case.declarations)
        query = db.query(case.cql)
        seconds, answer = timed(lambda: (push_all(db, pieces, until), query.fetch_arrow())[1])
        return Run(seconds, answer, tuple(query.stats()["operators"]))


def kernel(case: Case, feeds: Feeds) -> Run:
    """The hand-written kernel; compiled before."""
    assert case.kernel is not None
    run, until = case.kernel, last_instant(feeds)
    return Run(*timed(lambda: run(feeds, until)))


def hashing_kernel(case: Case, feeds: Feeds) -> Run:
    """The hand-written kernel that knows nothing of the keys; compiled before."""
    assert case.hashing is not None
    run, until = case.hashing, last_instant(feeds)
    return Run(*timed(lambda: run(feeds, until)))


def duckdb_batch(case: Case, feeds: Feeds) -> Run:
    """DuckDB over tables of its own."""
    return _duckdb(case.duckdb, feeds)


def counting_kernel(counting: Counting, feeds: Feeds) -> Run:
    """The hand-written kernel that only counts; compiled before."""
    until = last_instant(feeds)
    seconds, sums = timed(lambda: counting.kernel(feeds, until))
    return Run(seconds, pa.table([[value] for value in sums], names=[str(i) for i in range(len(sums))]))


def counting_duckdb(counting: Counting, feeds: Feeds) -> Run:
    """DuckDB, counting the rows of its fastest text and summing their columns."""
    return _duckdb(f"SELECT count(*), sum(COLUMNS(* EXCLUDE (ts)))::BIGINT FROM ({counting.duckdb})", feeds)


def _duckdb(text: str, feeds: Feeds) -> Run:
    """On two threads."""
    with duckdb.connect(config={"threads": THREADS}) as con:
        for name, feed in feeds.items():
            con.register("incoming", feed.table())
            con.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
        text = text.replace("{until}", str(last_instant(feeds)))
        return Run(*timed(lambda: con.sql(text).to_arrow_table()))


def sums(counted: Run) -> Sums:
    """What one of those who only count has found."""
    return tuple(column[0].as_py() for column in counted.answer.columns)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds and what the work gives; garbage is collected before, not within."""
    gc.collect()
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, answer
