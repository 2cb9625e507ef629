"""Joins are ordered by samples, so that conditions which go together do not mislead; the answer stays what it is."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import minidsms
from minidsms.archive import rates
from minidsms.archive.format import Archive, ArchiveFile, archives_in
from minidsms.cql import bound
from minidsms.cql.binder import bind
from minidsms.cql.functions import can_fail
from minidsms.cql.parser import parse_query
from minidsms.plan.logical import nodes
from minidsms.spark import join_order, run
from minidsms.spark.compiler import logical_plan
from minidsms.spark.costs import Box
from minidsms.spark.join_order import SampledJoin, Sizes, Switchable, order_joins
from minidsms.spark.running import prepare
from minidsms.spark.sampling import Sample
from minidsms.testing.compare import netted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = (
    "SELECT T.km, F.amount, city FROM Trip [RANGE 200] T, Sale [RANGE 300] S, Fine [RANGE 200] F, Home "
    "WHERE T.car = S.car AND S.owner = F.owner AND Home.owner = F.owner AND make = 'a' AND model = 'a1' AND {}"
)


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> tuple[minidsms.Connection, str]:
    """Every car of a make is of one model, and half of the fines are great."""
    folder = str(tmp_path_factory.mktemp("joins"))
    db = minidsms.connect()
    db.execute(
        "CREATE STREAM Trip (car INTEGER, km INTEGER);"
        "CREATE STREAM Sale (car INTEGER, owner INTEGER, make TEXT, model TEXT)"
    )
    db.execute("CREATE STREAM Fine (owner FLOAT, amount FLOAT); CREATE RELATION Home (owner INTEGER, city TEXT)")
    for name in ("Trip", "Sale", "Fine", "Home"):
        db.archive(name, folder)
    db.push("Home", [(owner, f"city {owner % 3}") for owner in range(40)], ts=0)
    n = 1000
    times = list(range(0, 2 * n, 2))
    make = ["abcd"[i * 7 % 4] for i in range(n)]
    db.push("Sale", [(i % 300, i % 40, m, f"{m}1") for i, m in enumerate(make)], ts=times)
    db.push("Trip", [(i * 11 % 300, i) for i in range(n)], ts=times)
    db.push("Fine", [(None if i % 9 == 0 else i * 3 % 40, i % 20) for i in range(n)], ts=times)
    db.advance(2 * n)
    db.flush()
    return db, folder


def joins(db: minidsms.Connection, folder: str, text: str) -> list[SampledJoin]:
    """The joins of the plan, the lowest first."""
    query = bind(parse_query(text), db.catalog, text)
    root = order_joins(logical_plan(query.node, text), archives_in(folder), db.catalog)
    return [node for node in nodes(root) if isinstance(node, SampledJoin)]


def test_the_input_that_lets_little_through_is_joined_first(archived: tuple[minidsms.Connection, str]) -> None:
    db, folder = archived

    def first_two(condition: str) -> set[str]:
        lowest = joins(db, folder, QUERY.format(condition))[0]
        below = [node for child in lowest.inputs for node in nodes(child)]
        return {node.name for node in below if isinstance(node, bound.Declared)}

    assert first_two("amount >= 0.0 AND km = 7") == {"Trip", "Sale"}
    assert first_two("amount = 19.0 AND T.km > 0") <= {"Fine", "Sale", "Home"}


def test_sizes_are_about_what_the_joins_give(archived: tuple[minidsms.Connection, str]) -> None:
    db, folder = archived
    *_, last = joins(db, folder, QUERY.format("amount > 9.0"))
    inserted = [c for c in _live(db, folder, QUERY.format("amount > 9.0")) if c.sign > 0]
    assert last.rows.low / 2 < len(inserted) < last.rows.high * 2
    assert last.small and "sent to all tasks" in last.text()


def _live(db: minidsms.Connection, folder: str, text: str) -> list[minidsms.Change]:
    """What the live engine answers over the archives."""
    query = db.execute(f"CREATE QUERY past AS {text} BACKFILL FROM '{folder}'")
    changes = query.fetch()
    db.execute("DROP QUERY past")
    return changes


def test_conditions_that_may_fail_see_the_rows_of_all_joins(archived: tuple[minidsms.Connection, str]) -> None:
    db, folder = archived
    text = QUERY.format("km * S.owner > 3")
    found = joins(db, folder, text)
    assert len(found) == 3 and not any(can_fail(node.condition) for node in found if node.condition is not None)


def test_an_order_that_is_never_bad_is_taken_before_one_that_may_be_best() -> None:
    exact = Box(1000.0, 1000.0)
    sizes = Sizes((exact, exact, exact), (100.0,) * 3, {(0, 1): Box(1e-6, 1.0), (1, 2): Box(1e-3, 1e-3)}, 1000.0)
    order, regret = sizes.least_regret()
    assert order[:2] in ((1, 2), (2, 1)) and regret < 4
    assert sizes.small_side((0,), 1) == "right"
    assert Sizes((exact,) * 3, (100.0,) * 3, {}, 1000.0).least_regret() == ((0, 1, 2), 1.0)


def test_a_part_is_counted_first_where_all_orders_depend_on_it_and_it_is_cheap() -> None:
    fine, open_ = Box(1e4, 1e4), Box(10.0, 1e5)
    linked = {(0, 1): Box(1e-2, 1e-2), (1, 2): Box(1e-3, 1e-3)}
    sizes = Sizes((open_, fine, fine), (100.0,) * 3, linked, 1000.0)
    first, regret = sizes.part_to_know()
    assert first == (0,) and regret < 1.2 < sizes.least_regret()[1]
    known = replace(sizes, counted={frozenset((0, 1)): Box(50.0, 50.0)})
    assert known.of((0, 1)) == Box(50.0, 50.0) and known.of((0, 1, 2)).high < sizes.of((0, 1, 2)).high


@pytest.fixture
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes are open."""
    monkeypatch.setattr(join_order, "_FIRST_ROWS", 200)
    monkeypatch.setattr(join_order, "_MORE_ROWS", 200)


@pytest.fixture
def always_open(small_samples: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No order is ever good enough, and counting is always worth it."""
    monkeypatch.setattr(join_order, "_ROBUST", 0.0)
    monkeypatch.setattr(join_order, "_WORTH", 0.0)


THREE = QUERY.replace(", Home ", " ").replace("Home.owner = F.owner AND ", "").replace(", city", "")


@pytest.mark.usefixtures("always_open")
def test_the_rest_is_ordered_by_what_the_first_part_has_given(
    archived: tuple[minidsms.Connection, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    db, folder = archived
    text = THREE.format("amount > 9.0 AND km < 100")
    query = bind(parse_query(text), db.catalog, text)
    root = order_joins(logical_plan(query.node, text), archives_in(folder), db.catalog)
    (node,) = (n for n in nodes(root) if isinstance(n, Switchable))
    assert "ordered when the first input has been counted" in node.text() and len(node.parts) == 3
    monkeypatch.setattr(join_order, "_ROBUST", math.inf)
    orders = set()
    for rows in (1, 10_000_000):
        cars = pa.array([i * 7 % 300 for i in range(300)], pa.int64())
        plan = node.after(Sample((cars,) * len(node.parts[0].schema), 300, 300, rows, 200.0))
        assert plan.schema == node.schema
        lowest = next(n for n in nodes(plan) if isinstance(n, SampledJoin))
        orders.add(any(child is node.parts[0] for child in lowest.inputs))
    assert orders == {True, False}


@pytest.mark.usefixtures("small_samples")
def test_what_was_counted_counts_more_than_a_sample(
    spark: SparkSession, archived: tuple[minidsms.Connection, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    db, folder = archived
    monkeypatch.setattr(rates, "LEAST_ROWS", 1)
    text = THREE.format("amount >= 14.0")
    before = joins(db, folder, text)[-1].rows
    prepare(text, folder, spark=spark, by="frames").count_joins()
    told = prepare(text, folder, spark=spark, by="frames").choice.root
    inserted = sum(c.sign > 0 for c in _live(db, folder, text))
    last = [n for n in nodes(told) if isinstance(n, SampledJoin)][-1].rows
    assert last.low <= inserted <= last.high < 1.1 * last.low and before.is_open


def test_among_inputs_that_are_all_linked_the_two_that_rarely_meet_come_first() -> None:
    pairs = dict.fromkeys(itertools.combinations(range(5), 2), Box(1e-2, 2e-2)) | {(2, 4): Box(1e-6, 1e-5)}
    order, _ = Sizes((Box(1000.0, 2000.0),) * 5, (100.0,) * 5, pairs, 1000.0).least_regret()
    assert set(order[:2]) == {2, 4}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT F.amount FROM Sale [RANGE 3] S, Fine [RANGE 5] F WHERE S.car > 3 AND S.owner = F.owner",
        "SELECT F.amount FROM Sale [RANGE 3] S, Fine [RANGE 5] F WHERE TRY_CAST(S.model AS FLOAT) = F.owner",
        "SELECT a FROM (SELECT car + 1 AS a FROM Sale [RANGE 3]) S, Trip [RANGE 3] T WHERE a = T.car",
        "SELECT a FROM (SELECT 1 AS a FROM Sale [RANGE 3] WHERE NULL) S, Trip [RANGE 3] T WHERE a = T.car",
    ],
)
def test_sizes_are_told_whatever_columns_an_input_has(archived: tuple[minidsms.Connection, str], text: str) -> None:
    assert len(joins(*archived, text)) == 1


def test_nothing_is_called_small_where_the_log_does_not_tell_of_every_file(
    archived: tuple[minidsms.Connection, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = Archive._all_files

    def all_but_one(archive: Archive) -> list[ArchiveFile]:
        return [replace(file, statistics=None) if i == 0 else file for i, file in enumerate(every(archive))]

    monkeypatch.setattr(Archive, "_all_files", all_but_one)
    assert not joins(*archived, QUERY.format("amount > 9.0"))


@pytest.mark.parametrize("is_open", [False, True])
def test_the_answer_is_that_of_the_live_engine_in_any_order(
    spark: SparkSession, archived: tuple[minidsms.Connection, str], is_open: bool, request: pytest.FixtureRequest
) -> None:
    db, folder = archived
    if is_open:
        request.getfixturevalue("always_open")
    text = THREE.format("amount = 16.0 AND T.km > F.amount")
    live = netted((c.ts, c.sign, c.row) for c in _live(db, folder, text))
    rows = run(text, folder, by="frames", spark=spark, until=2000).collect()
    assert netted((r[0], r[1], tuple(r[2:])) for r in rows) == live and live
