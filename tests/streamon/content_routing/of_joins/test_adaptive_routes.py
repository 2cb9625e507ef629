"""Joins whose elements take different orders by what they say."""

from __future__ import annotations

import numpy as np
import pytest

import minidsms
from minidsms.joins.join import Join

SIDES = "stuv"
"""Streams that every element of r must find a partner in."""


def scene(window: str, **options: object) -> tuple[minidsms.Connection, minidsms.Query, Join]:
    options = {"cost_model": "fixed", "profile_rate": 1.0, "join_plan": "mjoin", "caching": "off"} | options
    db = minidsms.connect(**options)
    db.execute("CREATE STREAM r (k TEXT, " + ", ".join(f"{x} INTEGER" for x in SIDES) + ")")
    for x in SIDES:
        db.execute(f"CREATE STREAM {x}1 (x INTEGER)")
    sides = ", ".join(f"{x}1 {window}" for x in SIDES)
    where = " AND ".join(f"r.{x} = {x}1.x" for x in SIDES)
    q = db.query(f"SELECT ISTREAM(r.k, r.s) FROM r [RANGE 1], {sides} WHERE {where}")
    join = next(op for op in q.network.operators if isinstance(op, Join))
    return db, q, join


def push(db: minidsms.Connection, instants: range) -> None:
    """In each class of r another side is never found, the others always are; one row in fifty finds all."""
    rng = np.random.default_rng(instants.start)
    for ts in instants:
        for x in SIDES:
            db.push(f"{x}1", {"x": np.arange(50)}, ts=np.full(50, ts))
        missing = rng.integers(0, len(SIDES), 500)
        columns = {"k": [f"lacks {SIDES[m]}" for m in missing]}
        for number, x in enumerate(SIDES):
            columns[x] = np.where((missing == number) & (rng.random(500) < 0.98), 99, rng.integers(0, 50, 500))
        db.push("r", columns, ts=np.full(500, ts))
    db.advance(instants.stop - 1)


@pytest.mark.parametrize("window", ["[RANGE 1]", "[ROWS 50]"])
def test_elements_of_one_input_take_different_orders_where_classes_are_dropped_by_different_inputs(window: str) -> None:
    db, q, join = scene(window)
    plain, expected, other = scene(window, routing="off")
    for each in (db, plain):
        push(each, range(1, 12))
    assert q.fetch() == expected.fetch() != []
    assert [d.technique for d in q.decisions()].count("join routing") > 0
    (told,) = [line for line in q.explain(analyze=True).splitlines() if "routed by k" in line]
    assert "4 orders" in told and "%" in told
    before = join.answer.state.inspected, other.answer.state.inspected
    for each in (db, plain):
        push(each, range(12, 20))
    routed, usual = (j.answer.state.inspected - b for j, b in zip((join, other), before))
    assert routed < usual - 1000, "of 4,000 elements of r three in four would find a partner in vain"
    kept = join._pipelines.rows.bundle.pipelines
    assert len(np.unique(kept)) >= 4
    assert q.fetch() == expected.fetch() != []
    held = sum(each.nbytes for each in join.synopses())
    join.take_routes(())
    assert held - sum(each.nbytes for each in join.synopses()) == kept.nbytes > 0


def test_routes_are_given_up_when_classes_no_longer_differ() -> None:
    db, q, join = scene("[RANGE 1]")
    push(db, range(1, 8))
    assert join.plan.routes
    rng = np.random.default_rng(0)
    for ts in range(8, 60):
        for x in SIDES:
            db.push(f"{x}1", {"x": np.arange(50)}, ts=np.full(50, ts))
        columns = {x: rng.integers(0, 50, 500) for x in SIDES} | {"k": ["lacks s", "lacks t"] * 250}
        columns["v"] = np.full(500, 99)
        db.push("r", columns, ts=np.full(500, ts))
    db.advance(59)
    assert not join.plan.routes
    assert q.decisions()[-1].reason == "content: routes no longer pay"


def test_a_join_that_is_not_to_be_routed_has_no_such_place() -> None:
    _, _, join = scene("[RANGE 1]", routing="off")
    assert "join routing" not in {a.technique for a in join.adaptations()}
    _, _, join = scene("[RANGE 1]")
    assert "join routing" in {a.technique for a in join.adaptations()}


def test_routes_that_no_join_could_take_are_not_legal() -> None:
    from minidsms.expressions.classifiers import Classifier, Reading
    from minidsms.expressions.routes import Routes

    _, _, join = scene("[RANGE 1]")
    (routing,) = [a for a in join.adaptations() if a.technique == "join routing"]
    order = join.orders[0]
    by_k = Classifier(0, "k", Reading.VALUE, 3)
    whole = Routes(order, (by_k,), (order, order[::-1]), bytes(3))
    assert routing.executor.is_legal(((0, whole),))
    assert not routing.executor.is_legal(((0, whole), (0, whole)))
    assert not routing.executor.is_legal(((0, Routes(order, (by_k,), (order[:-1],), bytes(3))),))
    assert not routing.executor.is_legal(
        ((0, Routes(order, (Classifier(9, "z", Reading.VALUE, 3),), (order,), bytes(3))),)
    )
