"""ISTREAM of rows that last an instant: what enters, less what was there an instant before."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import minidsms
from minidsms.testing.compare import check, run_definition
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case, declaration
from tests.seeds import seeds

NAMES = ["Sa", "Sb", "Sc", "Rel"]
MOMENTARY = [
    "SELECT ISTREAM(k, v) FROM Sa [NOW]",
    "SELECT ISTREAM(k) FROM Sa [NOW] WHERE v > 0",
    "SELECT ISTREAM(t, ts) FROM Sa [NOW]",
    "SELECT ISTREAM(1 AS one) FROM Sa [NOW]",
    "SELECT ISTREAM(k, e) FROM Sa [NOW], UNNEST([k, v, NULL]) AS e",
    "SELECT ISTREAM(Sa.k, Rel.a) FROM Sa [NOW] JOIN Rel ON Rel.k = Sa.k",
    "SELECT ISTREAM(Rel.a, Sa.t) FROM Sa [NOW] LEFT JOIN Rel ON Rel.k = Sa.k",
    "SELECT ISTREAM(Sa.k, Sb.v) FROM Sa [NOW] JOIN Sb [RANGE 3] ON Sb.k = Sa.k",
    "SELECT ISTREAM(Sa.k, b.v) FROM Sa [NOW] LEFT JOIN Sb [ROWS 3] AS b ON b.k = Sa.k AND b.v < Sa.v",
    "SELECT ISTREAM(k) FROM Sa [NOW] WHERE k IN (SELECT k FROM Sb [ROWS 3])",
    "SELECT ISTREAM(k) FROM Sa [NOW] WHERE k NOT IN (SELECT k FROM Rel)",
    "SELECT ISTREAM(v) FROM Sa [NOW] WHERE v > (SELECT AVG(v) FROM Sa [RANGE 4])",
    "SELECT ISTREAM(k) FROM Sa [NOW] UNION ALL SELECT ISTREAM(k) FROM Sb [NOW]",
    "ISTREAM (SELECT k FROM Sa [NOW] UNION ALL SELECT k FROM Sb [NOW])",
    "ISTREAM (SELECT k FROM (SELECT RSTREAM(k, v) FROM Sa [ROWS 2]) [NOW] WHERE v > 0)",
    "ISTREAM (SELECT k FROM (SELECT ISTREAM(k) FROM Sa [NOW]) [NOW])",
    "SELECT COUNT(*) FROM (SELECT ISTREAM(k) FROM Sa [NOW]) [RANGE 3]",
]
LASTING = [
    "SELECT ISTREAM(k) FROM Sa [RANGE 2]",
    "SELECT DSTREAM(k) FROM Sa [NOW]",
    "SELECT ISTREAM(k, COUNT(*)) FROM Sa [NOW] GROUP BY k",
    "SELECT ISTREAM(a.k) FROM Sa [NOW] AS a, Sb [RANGE 3] AS b, Sc [RANGE 3] AS c WHERE a.k = b.k AND b.k = c.k",
    "SELECT ISTREAM(Sb.k) FROM Sa [NOW] JOIN Sb [RANGE 3] ON Sb.k = Sa.k OR Sb.v = Sa.v FULL JOIN Rel ON Rel.k = Sb.k",
    "SELECT SUM(k) FROM (SELECT ISTREAM(k) FROM Sa [NOW] WHERE k IN (SELECT k FROM Rel)) [ROWS 2]",
]
WAYS: tuple[dict[str, Any], ...] = (
    {"adaptive": "off"},
    {"forced_every": 1},
    {"forced_every": 3, "compilation": "off"},
    {"state_reduction": "k-mon", "threads": 2},
)


@pytest.mark.parametrize("query", MOMENTARY + LASTING)
def test_the_answer_is_that_of_the_definition(query: str) -> None:
    for seed in seeds(8):
        feed = random_feed(Random(seed), NAMES, 24, may_be_extreme=False)
        case = Case(tuple(map(declaration, NAMES)), query, feed, registered=0 if seed % 3 else 2)
        expected = run_definition(case)
        for i, way in enumerate(WAYS[seed % 2 :: 2]):
            batch_size = (1, 2, 7, 65_536)[(seed // 2 + i) % 4]
            assert check(case, None if seed % 2 else 1, expected, batch_size=batch_size, **way) == "agreed"


@pytest.mark.parametrize(("query", "passes"), [(q, True) for q in MOMENTARY] + [(q, False) for q in LASTING])
def test_nothing_is_netted_where_rows_last_an_instant(query: str, passes: bool) -> None:
    with minidsms.connect() as db:
        for name in NAMES:
            db.execute(declaration(name))
        plan = db.query(query).explain()
    assert ("Istream of rows of one instant" in plan) == passes and ("\n        RangeWindow NOW" in plan) <= (
        not passes
    )


@pytest.mark.parametrize("batch_size", [1, 2, 65_536])
def test_an_instant_of_more_rows_than_are_gathered_at_once_is_compared_as_one(batch_size: int) -> None:
    n = 20_000
    with minidsms.connect(batch_size=batch_size) as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER); CREATE RELATION R (k INTEGER, a INTEGER)")
        query = db.query("SELECT ISTREAM(S.v, a) FROM S [NOW] JOIN R ON R.k = S.k")
        db.push("R", {"k": [1] * n, "a": list(range(n))}, ts=0)
        db.push("S", [(1, 5), (1, 5), (1, 6), (1, 6), (1, 5), (1, 5)], ts=[1, 2, 2, 3, 3, 5])
        db.advance(9)
        assert Counter((change.ts, change.row[0]) for change in query.fetch()) == {(1, 5): n, (2, 6): n, (5, 5): n}
