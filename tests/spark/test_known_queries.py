"""Spark answers Linear Road and NEXMark as the definition does, and the queries over the flights as the engine."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import minidsms
from minidsms.cql.binder import bind
from minidsms.cql.parser import parse_query
from minidsms.cql.printer import print_query
from minidsms.spark.running import prepare_connected
from minidsms.statements.script import connect_for_script, load_script
from minidsms.testing.compare import Answer, difference_of, netted
from minidsms.testing.definition import answer
from tests import test_linear_road as linear_road
from tests import test_nexmark as nexmark
from tests.long.spark_answers import answer_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

LINEAR_ROAD = (
    "CurCarSeg",
    "SegEntryStr",
    "SegAvgSpeed",
    "AccSeg",
    "AccNotifyStr",
    "SegToll",
    "TollStr",
    "Balance",
    "DirVol",
    "FullestSeg",
)
"""Views of the script that stand on nearly all others."""


@pytest.mark.parametrize("name", nexmark.QUERIES)
def test_nexmark(spark: SparkSession, name: str) -> None:
    catalog, text, fed = nexmark.declared(), nexmark.TEXT, nexmark.history()
    query = bind(nexmark.QUERIES[name].query, catalog, text)
    expected = Answer(tuple(answer(query.node, fed, nexmark.LAST)))
    assert expected.changes
    assert (
        difference_of(expected, answer_of(spark, print_query(nexmark.QUERIES[name].query), catalog, fed, nexmark.LAST))
        == ""
    )


@pytest.mark.parametrize("view", LINEAR_ROAD)
def test_linear_road(spark: SparkSession, view: str) -> None:
    text, fed, _ = linear_road.small_history()
    until = max(ts for ts, _ in fed.streams["carlocstr"])
    with connect_for_script() as db:
        load_script(db, text, only_declare=True)
        cql = f"select * from {view}"
        query = bind(parse_query(cql), db.catalog, cql)
        expected = Answer(tuple(answer(query.node, fed, until)))
        assert difference_of(expected, answer_of(spark, cql, db.catalog, fed, until)) == ""


def test_the_flights_of_2013(spark: SparkSession, tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "examples"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(examples))
        example = runpy.run_path(str(examples / "flights.py"))
        year = example["read_year"]()
        fast = spark.newSession()  # these are no tiny data
        fast.conf.set("spark.sql.codegen.wholeStage", "true")
        fast.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
        with minidsms.connect(time_unit="m") as db:
            db.execute((example["FOLDER"] / "inputs.cql").read_text())
            inputs = [s.name for s in db.catalog.streams.values() if not s.is_system]
            for name in [*inputs, *(r.name for r in db.catalog.relations.values())]:
                db.archive(name, str(tmp_path))
            for name in example["QUERIES"]:
                db.execute((example["FOLDER"] / f"{name}.cql").read_text())
            example["replay"](db, year)
            for name in example["QUERIES"]:
                query = db.queries[name]
                live = netted((c.ts, c.sign, c.row) for c in query.fetch())
                frame = prepare_connected(db, query.expanded, None, fast).frame(until=year.last + 1440)
                assert netted((r[0], r[1], tuple(r[2:])) for r in frame.collect()) == live, name
    for module in ("flights_timeline", "flights_tables"):
        sys.modules.pop(module, None)
