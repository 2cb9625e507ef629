"""Linear Road and NEXMark, as published, three ways: live, replayed from the archives of that run, and on Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from minidsms import Error
from minidsms.connection import Connection
from minidsms.cql import syntax
from minidsms.cql.printer import print_query
from minidsms.cql.stream_script import parse_script
from minidsms.spark.running import prepare_connected
from minidsms.statements.script import connect_for_script, load_script
from minidsms.testing.compare import netted
from tests import test_linear_road as linear_road
from tests.published_queries import LINEAR_ROAD, NEXMARK, Published
from tests.test_published_queries import feed_of, prepared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BENCHMARKS = (*NEXMARK, *(query for query in LINEAR_ROAD if query.name.startswith("Linear Road")))


def fetched(query: Any) -> dict[int, Any]:
    """What has changed at each instant."""
    return netted((c.ts, c.sign, tuple(c.row)) for c in query.fetch())


def feed_live(db: Connection, query: Published) -> None:
    """Push what the query is fed, a row at a time."""
    for ts, name, sign, row in feed_of(query):
        signs: dict[str, Any] = {"sign": [sign]} if name in query.relations else {}
        db.push(name, [row], ts=[ts], **signs)


def check_three_ways(query: Published, folder: str, ways: int) -> None:
    """The three answers are equal at every instant. ways: how many of those that Spark can go are gone."""
    until = query.span + 60
    with prepared(query) as db:
        for name in (*query.streams, *query.relations):
            db.archive(name, folder, partition=query.span // 3)
        running = db.query(query.text)
        feed_live(db, query)
        db.advance(until)
        live = fetched(running)
        assert len(live) >= 2
        db.flush()
        for by in ("frames", "engines", "replay"):
            if ways == 0:
                break
            try:
                frame = db.offload(running, until=until, by=by)
            except Error:
                continue
            ways -= 1
            assert netted((r[0], r[1], tuple(r[2:])) for r in frame.collect()) == live, by
    with prepared(query) as db:
        replayed = db.query(query.text)
        db.replay(folder)
        db.advance(until)
        assert fetched(replayed) == live


@pytest.mark.parametrize("query", BENCHMARKS[::2], ids=lambda query: query.name)
def test_a_benchmark_query_is_answered_alike_live_replayed_and_on_spark(
    query: Published, spark: SparkSession, tmp_path: Path
) -> None:
    """Every second one; the next test has all."""
    check_three_ways(query, str(tmp_path), 1)


@pytest.mark.long
@pytest.mark.parametrize("query", BENCHMARKS, ids=lambda query: query.name)
def test_a_benchmark_query_is_answered_alike_over_more_rows_and_both_ways_on_spark(
    query: Published, spark: SparkSession, tmp_path: Path
) -> None:
    rows = 150 if any(word in query.text for word in ("ROWS UNBOUNDED", "12 HOUR")) else 3000
    check_three_ways(replace(query, rows=rows), str(tmp_path), 3)


@pytest.mark.long
def test_the_script_of_linear_road_is_answered_alike_live_replayed_and_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    text, fed, _ = linear_road.small_history()
    asked = [e.statement.query for e in parse_script(text) if isinstance(e.statement, syntax.QueryStatement)]
    queries = [print_query(tree) for tree in asked]
    names = ("CarLocStr", "BalanceReq", "Upstream")
    until = max(ts for ts, _ in fed.streams["carlocstr"])
    with connect_for_script() as db:
        load_script(db, text, only_declare=True)
        for name in names:
            db.archive(name, str(tmp_path), partition=1000)
        running = [db.query(query) for query in queries]
        db.push("Upstream", [row for _, _, row in fed.relations["upstream"]], ts=0)
        for name, rows in fed.streams.items():
            db.push(name, [row for _, row in rows], ts=[ts for ts, _ in rows])
        db.advance(until)
        live = [fetched(query) for query in running]
        assert len(live) >= 10
        assert sum(map(bool, live)) >= 9
        for query, told in zip(queries, live):
            rows = prepare_connected(db, query, None, spark).frame(until=until).collect()
            assert netted((r[0], r[1], tuple(r[2:])) for r in rows) == told, query
    with connect_for_script() as db:
        load_script(db, text, only_declare=True)
        running = [db.query(query) for query in queries]
        db.replay(str(tmp_path))
        db.advance(until)
        for query, told in zip(running, live):
            assert fetched(query) == told
