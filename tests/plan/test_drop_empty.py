"""A side of a union is dropped where it never has a row, and nobody would miss it."""

from __future__ import annotations

from random import Random

import pytest

from minidsms import connect
from minidsms.testing.compare import check
from minidsms.testing.generators import Case, declaration, random_feed

DROPPED = (
    "SELECT k FROM Sa [RANGE 3] WHERE v > (SELECT MAX(v) FROM Sb [ROWS 3])",
    "SELECT k FROM Sa [RANGE 3] WHERE v + 0.5 > (SELECT AVG(v) FROM Sb [ROWS 3])",
    "SELECT a.k FROM Sa [RANGE 3] AS a WHERE v <> (SELECT MIN(b.v) FROM Sb [RANGE 3] AS b WHERE b.k = a.k)",
    "SELECT k, v FROM Sa [RANGE 3] UNION ALL SELECT k, v FROM Sa [RANGE 3] WHERE v = NULL",
    "SELECT k, v FROM Sa [RANGE 3] WHERE v = CASE WHEN k > 1 THEN NULL ELSE NULL END "
    "UNION ALL SELECT k, v FROM Sa [RANGE 3]",
)
KEPT = (
    "SELECT k FROM Sa [RANGE 3] WHERE COALESCE(v > (SELECT MAX(v) FROM Sb [ROWS 3]), TRUE)",
    "SELECT k FROM Sa [RANGE 3] WHERE (SELECT MAX(v) FROM Sb [ROWS 3]) IS NULL",
    "SELECT k, v FROM Sa [RANGE 3] UNION ALL SELECT k, v FROM Sa [RANGE 3] WHERE 9223372036854775807 * v = NULL",
    "SELECT k, v FROM Sa [RANGE 3] UNION ALL SELECT k, v FROM Sb [RANGE 3] WHERE v = NULL",
)
ASKS_WHETHER_ANYTHING_ARRIVED = (
    "SELECT a.k FROM Sa [RANGE 3] AS a WHERE v > (SELECT COUNT(*) FROM Sb [RANGE 3] AS b WHERE b.k = a.k)",
    "SELECT a.k FROM Sa [RANGE 3] AS a WHERE v > (SELECT MAX(v) FROM Sb [ROWS 3] AS b WHERE b.k = a.k HAVING 1 = 1)",
)


def plan(cql: str) -> str:
    with connect() as db:
        for stream in ("Sa", "Sb"):
            db.execute(declaration(stream))
        return "\n".join(line for (line,) in db.execute("EXPLAIN " + cql)).partition("Logical plan")[2]


@pytest.mark.parametrize("cql", DROPPED)
def test_a_side_without_rows_is_dropped(cql: str) -> None:
    assert "Union" not in plan(cql)


@pytest.mark.parametrize("cql", KEPT)
def test_a_side_that_has_rows_can_fail_or_reads_more_is_kept(cql: str) -> None:
    assert "Union" in plan(cql)


@pytest.mark.parametrize("cql", ASKS_WHETHER_ANYTHING_ARRIVED)
def test_a_correlated_aggregate_that_is_not_null_of_no_row_has_its_row_from_the_first_arrival_on(cql: str) -> None:
    assert "started" in plan(cql)
    assert "started" not in plan(DROPPED[2])


@pytest.mark.parametrize("cql", [*DROPPED, *KEPT, *ASKS_WHETHER_ANYTHING_ARRIVED])
@pytest.mark.parametrize("seed", range(4))
def test_answers_are_those_of_the_definition(cql: str, seed: int) -> None:
    declared = tuple(map(declaration, ("Sa", "Sb")))
    assert check(Case(declared, cql, random_feed(Random(seed), ["Sa", "Sb"], 10))) == "agreed"
