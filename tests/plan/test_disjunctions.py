"""A demand that all branches of an OR share is made once, so that it can be joined on."""

from __future__ import annotations

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
