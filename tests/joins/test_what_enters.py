"""RSTREAM of joins whose rows last an instant: what enters is passed on, and no account is kept of what is present."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import minidsms
from minidsms.testing.compare import check, run_definition
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case, declaration
from tests.seeds import seeds

NAMES = ["Sa", "Sb", "Sc", "Rel"]
ENTERING = [
    "SELECT RSTREAM(Sa.v, Rel.a) FROM Sa [NOW] JOIN Rel ON Rel.k = Sa.k",
    "SELECT RSTREAM(Sa.v, Rel.a, Rel.t) FROM Sa [NOW] LEFT JOIN Rel ON Rel.k = Sa.k",
    "SELECT RSTREAM(Sa.k, Rel.a) FROM Sa [NOW] LEFT JOIN Rel ON Rel.k = Sa.k AND Rel.a < Sa.v",
    "SELECT RSTREAM(Sa.v + 1 AS c, b.v) FROM Sa [NOW] JOIN Sb [PARTITION BY k ROWS 1] AS b USING (k) WHERE Sa.v > 0",
    "SELECT RSTREAM(Sa.v, b.v) FROM Sa [NOW], Sb [ROWS 2] AS b WHERE Sa.k = b.k AND Sa.v < b.v",
    "SELECT RSTREAM(Sa.v, b.v, Rel.a) FROM Sa [NOW], Sb [ROWS 3] AS b, Rel WHERE Sa.k = b.k AND b.t = Rel.t",
    "SELECT RSTREAM(Sa.v, Sb.v) FROM Sa [NOW] JOIN Sb [RANGE 3] ON Sb.k = Sa.k WHERE Sb.v > 0",
    "SELECT RSTREAM(Sa.v, Sb.v) FROM Sb [RANGE 3] JOIN Sa [NOW] ON Sb.k = Sa.k",
    "SELECT RSTREAM(Sa.v, Sb.v) FROM Sa [NOW] LEFT JOIN Sb [RANGE 3] ON Sb.k = Sa.k",
    "SELECT RSTREAM(Sa.v, Sb.v, Sc.b) FROM Sa [NOW], Sb [RANGE 3], Sc [RANGE 4] WHERE Sb.k = Sa.k AND Sc.k = Sb.k",
    "SELECT RSTREAM(a.v, b.v) FROM Sa [NOW] AS a, Sb [NOW] AS b, Rel WHERE a.k = b.k AND Rel.k = b.k",
    "SELECT RSTREAM(v) FROM Sa [NOW] WHERE v > (SELECT AVG(v) FROM Sa [RANGE 4])",
    "SELECT RSTREAM(v) FROM Sa [NOW] AS a WHERE v >= (SELECT MAX(v) FROM Sb [ROWS 3] AS b WHERE b.k = a.k)",
    "SELECT RSTREAM(v, (SELECT COUNT(*) FROM Sb [RANGE 3]) AS n) FROM Sa [NOW]",
    "SELECT RSTREAM(v) FROM Sa [NOW] WHERE k IN (SELECT k FROM Sb [ROWS 2]) OR v > 1",
    "SELECT RSTREAM(Sa.v, n) FROM Sa [NOW] JOIN (SELECT k, COUNT(*) AS n FROM Sb [RANGE 3] GROUP BY k) AS g USING (k)",
    "SELECT RSTREAM(1 AS one) FROM Sa [NOW] JOIN Rel ON Rel.k = Sa.k",
    "SELECT RSTREAM(Rel.a) FROM Sa [NOW] JOIN Rel ON Rel.k = Sa.k AND Rel.t = Sa.t AND Rel.k = Sa.v",
    "SELECT RSTREAM(Sa.v * Rel.a AS p) FROM Rel JOIN Sa [NOW] ON Rel.k * 1.5 = Sa.k AND Rel.a IS NOT NULL",
    "SELECT RSTREAM(Sa.v, u.v) FROM Sa [NOW], (SELECT k, v FROM Sb [ROWS 1] UNION ALL SELECT k, a FROM Rel) AS u(k, v)"
    " WHERE Sa.k = u.k",
    "SELECT RSTREAM(Sa.v, Rel.a) FROM Sa [NOW] JOIN Rel ON Rel.k = Sa.k OR Rel.a = Sa.v OR Rel.t = Sa.t",
    "RSTREAM (SELECT k, v FROM Sa [NOW] WHERE v > 0 UNION ALL SELECT Sb.k, a FROM Sb [NOW] JOIN Rel USING (k))",
]
STARS = [
    "SELECT RSTREAM(Sa.v, b.v, c.b) FROM Sa [NOW], Sb [PARTITION BY k ROWS 1] AS b, Sc [PARTITION BY k ROWS 1] AS c"
    " WHERE Sa.k = b.k AND c.k = b.k",
    "SELECT RSTREAM(Sa.v, Sa.k, Rel.a, n) FROM Rel, (SELECT k, COUNT(*) AS n FROM Sb [RANGE 3] GROUP BY k) AS g,"
    " Sa [NOW] WHERE Rel.t = Sa.t AND g.k = Sa.k AND Sa.v > 0",
    "SELECT RSTREAM(b.t, c.b, Rel.a) FROM Sa [NOW], Sb [PARTITION BY k ROWS 1] AS b, Sc [PARTITION BY k ROWS 1] AS c,"
    " Rel WHERE Sa.k = b.k AND c.k = Sa.k AND Rel.t = b.t AND Rel.k = c.k AND (Rel.a > 0 OR c.b)",
]
NEW_IN_STARS = [query.replace("RSTREAM", "ISTREAM") for query in STARS]
STAYING = [
    "SELECT RSTREAM(Sa.v, Rel.a) FROM Sa [RANGE 2] JOIN Rel ON Rel.k = Sa.k",
    "SELECT RSTREAM(Rel.a, Sa.v) FROM Rel LEFT JOIN Sa [NOW] ON Rel.k = Sa.k",
    "SELECT RSTREAM(Sa.v, Sb.v) FROM Sa [RANGE 3] JOIN Sb [RANGE 3] ON Sb.k = Sa.k",
    "SELECT RSTREAM(Sa.v, Sb.v) FROM Sa [RANGE 2] LEFT JOIN Sb [NOW] ON Sb.k = Sa.k",
    "SELECT RSTREAM(k, COUNT(*) AS n) FROM Sa [NOW] GROUP BY k",
    "SELECT RSTREAM(v) FROM Sa [NOW] UNION ALL SELECT RSTREAM(v) FROM Sb [RANGE 2]",
]
"""Some row outlives its instant, or a join lets its rows go by itself."""
WAYS: tuple[dict[str, Any], ...] = (
    {"adaptive": "off"},
    {"forced_every": 1},
    {"forced_every": 3, "compilation": "off"},
    {"join_plan": "xjoin"},
    {"state_reduction": "k-mon", "threads": 2},
)


@pytest.mark.parametrize("query", ENTERING + STARS + NEW_IN_STARS + STAYING)
def test_the_answer_is_that_of_the_definition(query: str) -> None:
    for seed in seeds(8):
        feed = random_feed(Random(seed), NAMES, 16, may_be_extreme=False)
        case = Case(tuple(map(declaration, NAMES)), query, feed, registered=0 if seed % 3 else 2)
        expected = run_definition(case)
        for i, way in enumerate(WAYS[seed % 2 :: 2]):
            batch_size = (1, 2, 7, 65_536)[(seed // 2 + i) % 4]
            assert check(case, None if seed % 2 else 1, expected, batch_size=batch_size, **way) == "agreed"


@pytest.mark.parametrize(("query", "passes"), [(q, True) for q in ENTERING + STARS] + [(q, False) for q in STAYING])
def test_the_plan_keeps_an_account_only_where_rows_may_stay(query: str, passes: bool) -> None:
    with minidsms.connect() as db:
        for name in NAMES:
            db.execute(declaration(name))
        plan = db.query(query).explain()
    assert ("Entering" in plan or "Lookup Join" in plan) == passes and ("RStream" in plan) != passes


@pytest.mark.parametrize("query", [*STARS, *NEW_IN_STARS])
@pytest.mark.parametrize("join_plan", ["auto", "mjoin", "xjoin"])
def test_stars_are_looked_up_where_no_plan_was_asked_for(query: str, join_plan: str) -> None:
    with minidsms.connect(join_plan=join_plan) as db:
        for name in NAMES:
            db.execute(declaration(name))
        names = [op.name for op in db.query(query).network.operators]
    assert ("LookupJoin" in names) == (join_plan == "auto") and ("MJoin" in names) == (join_plan != "auto")


def test_a_join_of_relations_with_many_rows_of_a_key_is_no_star() -> None:
    query = "SELECT RSTREAM(Sa.v) FROM Sa [NOW], Sb [ROWS 9] AS b, Sc [ROWS 9] AS c WHERE Sa.k = b.k AND c.k = Sa.k"
    with minidsms.connect() as db:
        for name in NAMES:
            db.execute(declaration(name))
        assert "LookupJoin" not in [op.name for op in db.query(query).network.operators]


def test_rows_that_a_window_reads_again_stand_in_their_order() -> None:
    with minidsms.connect() as db:
        for name in NAMES:
            db.execute(declaration(name))
        inner = "SELECT RSTREAM(Sa.v) FROM Sa [NOW] JOIN Rel ON Rel.k = Sa.k"
        assert "RStream" in db.query(f"SELECT SUM(v) FROM ({inner}) [ROWS 2]").explain()


def test_equal_rows_of_instants_that_follow_each_other_are_both_put_out() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE RELATION R (k INTEGER, v INTEGER)")
        query = db.query("SELECT RSTREAM(v) FROM S [NOW] JOIN R ON R.k = S.k")
        db.push("R", (1, 10), ts=0)
        db.push("S", [(1,), (1,)], ts=[1, 2])
        db.push("R", (1, 10), ts=3, sign=-1)
        db.push("R", (1, 11), ts=3)
        db.push("S", (1,), ts=3)
        db.advance(9)
        assert [(c.ts, c.row) for c in query.fetch()] == [(1, (10,)), (2, (10,)), (3, (11,))]


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
def test_a_join_takes_the_stream_itself_and_puts_out_no_deletions(kind: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, a INTEGER); CREATE RELATION R (k INTEGER, v INTEGER)")
        query = db.query(f"SELECT RSTREAM(a + v AS c) FROM S [NOW] {kind} R ON R.k = S.k")
        db.push("R", (1, 10), ts=0)
        for ts in range(1, 6):
            db.push("S", (1, ts), ts=ts)
        db.advance(9)
        (join,) = [op for op in query.network.operators if "Join" in op.name]
        assert (join.counters.elements_in, join.counters.elements_out) == (6, 5)
        assert [c.row for c in query.fetch()] == [(10 + ts,) for ts in range(1, 6)]
