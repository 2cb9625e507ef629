"""Which patterns the index of a join gets, by what its steps inspect."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

import minidsms
from minidsms.connection import Connection
from minidsms.kernels.access_methods.bit_addresses import Bits
from minidsms.query import Query
from minidsms.streamon import loop
from minidsms.streamon.join_index import adaptive_index, reoptimizer
from minidsms.streamon.join_index.adaptive_index import spare_index
from minidsms.streamon.join_index.selection import UnitCosts, Workload, select
from minidsms.streamon.loop import adaptations_of

TABLES = {"A": "x y", "B": "x z", "C": "y z"}
TRIANGLE = (
    "SELECT ISTREAM(A.x) FROM A [RANGE 600], B [RANGE 600], C [RANGE 600] WHERE A.x = B.x AND A.y = C.y AND B.z = C.z"
)
FIXED: dict[str, Any] = {"cost_model": "fixed", "filter_ordering": "static", "join_plan": "mjoin"}


def triangle(db: Connection, cql: str = TRIANGLE) -> Query:
    for name, columns in TABLES.items():
        db.execute(f"CREATE STREAM {name} ({', '.join(c + ' INTEGER' for c in columns.split())})")
    return db.query(cql)


def push(db: Connection, values: int, rows: int, begin: int = 0) -> None:
    rng = random.Random(begin)
    for ts in range(begin, begin + rows, 100):
        for name in TABLES:
            at = list(range(ts, ts + 100))
            db.push(name, [(rng.randrange(values), rng.randrange(values)) for _ in at], ts=at)


def patterns(query: Query) -> tuple[object, ...]:
    (each,) = [a for a in adaptations_of(query.network.operators) if a.technique == "join index"]
    plan: tuple[object, ...] = each.executor.plan
    return plan


def test_patterns_are_taken_where_steps_pass_many_rows_and_given_up_where_they_do_not() -> None:
    with minidsms.connect(**FIXED) as db:
        query = triangle(db)
        push(db, 20, 1500)
        assert any(patterns(query))
        lines = query.explain(analyze=True)
        assert "index of C: also by (y, z)" in lines
        push(db, 100_000, 12_000, 1500)
        assert patterns(query) == ()
        reasons = [(d.technique, d.reason) for d in query.decisions()]
        assert reasons == [("join index", "c_d: they save more than they take")] * 2


def test_keys_that_hardly_repeat_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "ENOUGH", 300)
    with minidsms.connect(**FIXED) as db:
        query = triangle(db)
        push(db, 100_000, 6000)
        assert not query.decisions()


@pytest.mark.parametrize("asked", ["hash", "patterns"])
def test_what_was_asked_for_stays(asked: str) -> None:
    with minidsms.connect(**FIXED, join_index=asked) as db:
        query = triangle(db)
        push(db, 20, 600)
        assert not query.decisions()
        assert ("also by" in query.explain(analyze=True)) == (asked == "patterns")


def test_a_join_without_a_cycle_has_no_choice() -> None:
    with minidsms.connect(**FIXED, join_index="patterns") as db:
        query = triangle(db, TRIANGLE.rpartition(" AND ")[0])
        techniques = [a.technique for a in adaptations_of(query.network.operators)]
        assert "join ordering" in techniques and "join index" not in techniques


@pytest.mark.parametrize(("grown", "spared"), [(float("inf"), 0.0), (1.25, 0.0), (float("inf"), float("inf"))])
def test_patterns_that_turn_out_dearer_are_given_up_unless_windows_have_filled_or_slots_are_spared(
    grown: float, spared: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "ENOUGH", 300)
    monkeypatch.setattr(adaptive_index, "GROWN", grown)
    monkeypatch.setattr(adaptive_index, "SPARED", spared)
    with minidsms.connect(**FIXED) as db:
        query = triangle(db)
        push(db, 20, 1500)
        assert any(patterns(query))
        query.decisions()[-1].measured_gain = 2 * adaptive_index.DEARER
        push(db, 20, 1500, 1500)
        is_given_up = patterns(query) == () and query.decisions()[-1].reason == "dearer than without, as measured"
        assert is_given_up == (grown > 2 and not spared)


def test_pipelines_over_patterns_take_over_from_a_tree_that_costs_more() -> None:
    with minidsms.connect(**(FIXED | {"join_plan": "auto", "caching": "off"})) as db:
        query = triangle(db)
        (tree,) = [a for a in adaptations_of(query.network.operators) if a.technique == "join plan"]
        tree.budget = replace(tree.budget, worth_tuples=10_000)
        tree.take(((0, 1), 2), "asked for by the test")
        push(db, 20, 1200)
        assert tree.executor.plan == ((0, 1), 2) and patterns(query) == ()
        push(db, 20, 4800, 1200)
        assert tree.executor.plan == (0, 1, 2) and any(patterns(query))
        assert ", with patterns " in query.explain(analyze=True)
        told = [(d.technique, d.instant) for d in query.decisions()][1:]
        assert [technique for technique, _ in told] == ["join plan", "join index"] and told[0][1] == told[1][1]


CLIQUE = " AND ".join(f"{a}.{a}{b} = {b}.{a}{b}".lower() for a, b in combinations("ABCD", 2))


@pytest.mark.parametrize("compared", [0.1, 100.0])
def test_where_memory_is_short_bits_or_columns_alone_take_the_place_of_patterns(
    compared: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = []
    for is_short in (False, True):
        with minidsms.connect(**FIXED) as db:
            for name in "ABCD":
                columns = [f"{a}{b}".lower() for a, b in combinations("ABCD", 2) if name in (a, b)]
                db.execute(f"CREATE STREAM {name} ({', '.join(c + ' INTEGER' for c in columns)})")
            windows = ", ".join(f"{name} [RANGE 400]" for name in "ABCD")
            query = db.query(f"SELECT ISTREAM(a.ab) FROM {windows} WHERE {CLIQUE}")
            rng = random.Random(5)
            for ts in range(0, 900, 50):
                if ts == 600:
                    held = query.network.operators
                    assert any(patterns(query))
                    if is_short:
                        monkeypatch.setattr(reoptimizer, "COSTS", UnitCosts(0.1, compared, 0.1))
                        assert spare_index(held, ts)
                for name in "ABCD":
                    rows = [tuple(rng.randrange(14) for _ in range(3)) for _ in range(50)]
                    db.push(name, rows, ts=list(range(ts, ts + 50)))
            answers.append(sorted(tuple(change) for change in query.fetch()))
            plan = patterns(query)
            if is_short:
                assert all(isinstance(each, Bits) for each in plan) if compared < 1 else plan == ()
            else:
                assert any(plan) and not any(isinstance(each, Bits) for each in plan)
    assert answers[0] == answers[1] and len(answers[0]) > 50


def test_bits_of_a_column_are_no_more_than_tell_its_values_apart() -> None:
    workload = Workload(1.0, 40.0, 8_192, {0b01: 0.5, 0b11: 0.5})
    assert select(2, 14, workload, UnitCosts())[0] > 3
    assert select(2, 14, workload, UnitCosts(), telling=(3, 14))[0] <= 3
