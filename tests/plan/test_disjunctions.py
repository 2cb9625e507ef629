"""A demand that all branches of an OR share is made once, so that it can be joined on."""

from __future__ import annotations

from random import Random

import pytest

from minidsms import connect
from minidsms.testing.compare import check
from minidsms.testing.feeds import Advance, Push
from minidsms.testing.generators import Case

TABLES = ("CREATE RELATION L (k INTEGER, q INTEGER)", "CREATE RELATION P (k INTEGER, b INTEGER)")
QUERY = "SELECT L.q FROM L, P WHERE (L.k = P.k AND P.b = 1 AND L.q < 5) OR (L.k = P.k AND P.b = 2 AND L.q > 7)"


def test_an_equality_of_all_branches_is_joined_on() -> None:
    with connect() as db:
        for table in TABLES:
            db.execute(table)
        plan = db.query(QUERY).explain()
    assert "MJoin k = k" in plan and "Cartesian" not in plan


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1024])
def test_the_answer_is_that_of_the_or_as_written(batch_size: int) -> None:
    lines = tuple((1 + i // 4, 1, (None if i == 7 else i % 3, i)) for i in range(12))
    parts = tuple((1, 1, (None if i == 3 else i % 3, 1 + i % 2)) for i in range(5))
    case = Case(TABLES, QUERY, (Push("P", parts), Push("L", lines), Advance(9)))
    assert check(case, batch_size=batch_size) == "agreed"


STREAMS = (
    "CREATE STREAM S (k INTEGER, v INTEGER)",
    "CREATE STREAM R (k INTEGER, w INTEGER)",
    "CREATE RELATION L (k INTEGER, w INTEGER)",
)
PARTED = (
    ("SELECT a.k, v, w FROM S [RANGE 9] AS a, R [RANGE 5] AS b WHERE a.k = b.k OR v = w", 2),
    ("SELECT a.k, v, w FROM S [ROWS 6] AS a JOIN L AS b ON (a.k = b.k AND v > 2) OR (v = w AND w < 4) OR a.k = w", 3),
    ("SELECT a.k, v, w FROM S [RANGE 9] AS a LEFT JOIN R [ROWS 4] AS b ON a.k = b.k OR v = w", 2),
    ("SELECT a.k, v, b.k, w FROM S [RANGE 9] AS a FULL JOIN L AS b ON a.k = b.k OR v = w", 2),
    ("SELECT a.k, v, w FROM S [RANGE 9] AS a, R [ROWS 4] AS b WHERE a.k IN (b.k, w) OR (v = w AND a.k <> 2)", 3),
    ("SELECT RSTREAM(a.k, v, w) FROM S [NOW] AS a, L AS b WHERE a.k = b.k OR v = w", 2),
    ("SELECT a.k, v FROM S [RANGE 9] AS a WHERE NOT EXISTS (SELECT 1 FROM L WHERE L.k = a.k OR L.w = a.v)", 2),
    ("SELECT v, c.w FROM S [RANGE 9] AS a, R [RANGE 5] AS b, L AS c WHERE (a.k = b.k OR v = b.w) AND c.k = b.k", 3),
)


@pytest.mark.parametrize("query, joins", PARTED)
def test_an_or_of_equalities_is_a_union_of_joins(query: str, joins: int) -> None:
    with connect() as db:
        for declared in STREAMS:
            db.execute(declared)
        plan = db.query(query).explain()
    physical = plan.split("Physical plan")[1]
    assert physical.count("MJoin") + physical.count("LookupJoin") == joins and "every" not in physical
    assert ("LookupJoin" in physical) == ("[NOW]" in query)


@pytest.mark.parametrize(
    "condition",
    [
        "a.k = b.k OR v > w",
        "a.k = b.k OR v = 3",
        "a.k = b.k AND (v = w OR v = b.k)",
        "a.k = 3 OR v / w = 1 OR a.k = b.k",
    ],
)
def test_what_no_branch_or_all_are_linked_by_stays_one_join(condition: str) -> None:
    with connect() as db:
        for declared in STREAMS:
            db.execute(declared)
        plan = db.query(f"SELECT v, w FROM S [RANGE 9] AS a, R [RANGE 5] AS b WHERE {condition}").explain()
    assert plan.split("Physical plan")[1].count("Join") == 1


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1024])
@pytest.mark.parametrize("query", [query for query, _ in PARTED])
def test_the_union_has_each_pair_once(query: str, batch_size: int) -> None:
    rng = Random(batch_size)

    def row() -> tuple[int | None, int | None]:
        return rng.choice((None, 1, 2, 3, 4)), rng.choice((None, 1, 2, 3, 4))

    steps: list[Push] = []
    present: list[tuple[int | None, int | None]] = []
    for ts in range(1, 25):
        for name in "SR":
            steps.append(Push(name, tuple((ts, 1, row()) for _ in range(rng.choice((0, 1, 1, 3))))))
        gone = [present.pop(rng.randrange(len(present))) for _ in range(rng.choice((0, 0, 1, 2))) if present]
        come = [row() for _ in range(rng.choice((0, 1, 2)))]
        present += come
        steps.append(Push("L", tuple((ts, sign, each) for sign, rows in ((-1, gone), (1, come)) for each in rows)))
    case = Case(STREAMS, query, (*(step for step in steps if step.rows), Advance(60)))
    assert check(case, batch_size=batch_size) == "agreed"
