"""A key that is found, and declared by nobody, lets rows of results go; where it breaks they are there again."""

from __future__ import annotations

from itertools import count

import pytest

import minidsms
from minidsms.connection import Connection
from minidsms.limits import allowance
from minidsms.operators import k_mon_join
from minidsms.operators.k_mon_join import KMonJoin
from minidsms.query import Query

QUERY = "SELECT P.x, F.y FROM P [RANGE 40000], F [RANGE 40000] WHERE P.k = F.k"


def joined(**settings: object) -> tuple[Connection, Query]:
    db = minidsms.connect(**settings)
    db.execute("CREATE STREAM P (k INTEGER, x INTEGER); CREATE STREAM F (k INTEGER, y INTEGER)")
    return db, db.query(QUERY)


def feed(db: Connection, first: int, end: int) -> None:
    """Flows, and after each the packet that joins it, two ticks apart."""
    keys = list(range(first, end))
    db.push("F", {"k": keys, "y": keys}, ts=[2 * k for k in keys])
    db.push("P", {"k": keys, "x": keys}, ts=[2 * k + 1 for k in keys])
    db.advance(2 * end - 1)


def rows_held(q: Query) -> int:
    """Rows of both streams that the join holds."""
    plan = str(q.explain(analyze=True))
    return sum(int(plan.split(f"rows of {name} ")[1].split(";")[0].replace(",", "")) for name in "PF")


def test_rows_of_results_that_hold_go_under_a_key_that_was_found() -> None:
    db, q = joined(state_reduction="k-mon")
    for first in range(0, 12_000, 500):
        feed(db, first, first + 500)
    assert len(q.fetch()) == 12_000
    assert rows_held(q) < 4000  # of 24,000 in their windows, all of which are parts of results
    assert "results 12,000" in str(q.explain(analyze=True))


def test_all_of_them_end_in_time_and_meet_a_second_row_of_the_key() -> None:
    answers = []
    for settings in ({"state_reduction": "k-mon"}, {"state_reduction": "off"}):
        db, q = joined(**settings)
        for first in range(0, 6000, 500):
            feed(db, first, first + 500)
        db.push("F", {"k": [5, 17, 5], "y": [-1, -2, -3]}, ts=[12_001, 12_002, 12_003])
        db.push("P", {"k": [5, 18], "x": [-4, -5]}, ts=[12_004, 12_005])
        feed(db, 6100, 12_000)
        db.advance(70_000)
        changes = q.fetch()
        answers.append(sorted((c.ts, c.sign, c.row) for c in changes))
        assert sum(c.sign for c in changes) == 0
    assert answers[0] == answers[1]


def test_rows_are_kept_again_once_the_key_is_none() -> None:
    db, q = joined(state_reduction="k-mon")
    for first in range(0, 6000, 500):
        feed(db, first, first + 500)
    before = rows_held(q)
    for again in range(3):
        db.push("F", {"k": [5, 5], "y": [7, 8]}, ts=[12_001 + again] * 2)
        db.push("P", {"k": [5, 5], "x": [7, 8]}, ts=[12_001 + again] * 2)
    feed(db, 6100, 6800)
    assert before < 4000 < 12_000 <= rows_held(q)
    assert "results " not in str(q.explain(analyze=True)).split("KMonJoin")[1].split("]")[0]


def test_a_call_that_keeps_what_holds_asks_whether_it_has_taken_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, keeps, keep_results = count(), [False], KMonJoin._keep_results

    def keep(join: KMonJoin, root: int) -> None:
        keeps[0] = True
        keep_results(join, root)
        keeps[0] = False

    # A look at the clock takes a millisecond there, and nothing elsewhere.
    monkeypatch.setattr(allowance, "monotonic", lambda: next(looks) / 1000 if keeps[0] else 0.0)
    monkeypatch.setattr(KMonJoin, "_keep_results", keep)
    monkeypatch.setattr(k_mon_join, "_TUPLES", 2)
    db, q = joined(state_reduction="k-mon", statement_timeout="60 MILLISECONDS")
    for first in range(0, 6000, 500):
        if q.state == "running":
            feed(db, first, first + 500)
    assert keeps[0]
    assert q.failure is not None and "statement_timeout" in q.failure[1]
