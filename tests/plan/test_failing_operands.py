"""What stands left of IN, ANY and ALL, and what subqueries are looked up by, fails where it is asked for alone
(docs/semantics R4).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from minidsms.testing.compare import difference_of, run_definition, run_engine
from minidsms.testing.feeds import Advance, Push, Step
from minidsms.testing.generators import Case

DECLARED = "CREATE STREAM A (k INTEGER, v INTEGER, t TEXT)", "CREATE STREAM B (k INTEGER, v INTEGER)"
NUMBER = "CAST(A.t AS INTEGER)"
OPERANDS = (
    f"{NUMBER} IN (SELECT k FROM B)",
    f"{NUMBER} NOT IN (SELECT k FROM B)",
    f"{NUMBER} IN (SELECT k FROM B WHERE B.v = A.k)",
    f"{NUMBER} NOT IN (SELECT k FROM B WHERE B.v < A.k)",
    f"({NUMBER}, A.v + 1) IN (SELECT k, v FROM B)",
    f"({NUMBER}, 1) NOT IN (SELECT k, v FROM B)",
    f"{NUMBER} < ALL (SELECT k FROM B)",
    f"{NUMBER} = ANY (SELECT k FROM B)",
)
LOOKED_UP_BY = (
    f"EXISTS (SELECT 1 FROM B WHERE B.k = {NUMBER})",
    f"(SELECT COUNT(*) FROM B WHERE B.k = {NUMBER}) = 0",
    f"(SELECT MIN(v) FROM B WHERE B.k = {NUMBER}) IS NULL",
)
PLACES = (
    "SELECT {} AS c FROM A",
    "SELECT CASE WHEN k = 2 THEN {} END AS c FROM A",
    "SELECT k FROM A WHERE {}",
    "SELECT k FROM A WHERE k = 1 OR {}",
    "SELECT k FROM A WHERE {} AND k IN (SELECT k + 7 FROM B)",
    "SELECT k FROM A WHERE {} AND v * 2 > 4",
    "SELECT k FROM A WHERE {} AND k < (SELECT MAX(k) FROM B)",
)
READ = (
    "SELECT k FROM A WHERE EXISTS (SELECT 1 FROM (SELECT k, v * 2 AS w FROM B) AS d WHERE d.k = A.k)",
    "SELECT k FROM A WHERE NOT EXISTS (SELECT 1 FROM (SELECT k, v * 2 AS w FROM B) AS d WHERE d.k < A.k)",
    "SELECT k, (SELECT MAX(d.k) FROM (SELECT k FROM B WHERE v * 2 > 4) AS d WHERE d.k = A.k) AS m FROM A",
    "WITH d AS (SELECT k, SUM(v * 2) FROM B GROUP BY k) SELECT k FROM A WHERE 1 IN (SELECT k FROM d WHERE k < A.k)",
    "SELECT k FROM A WHERE EXISTS (SELECT 1 FROM B LEFT JOIN B AS c ON c.v * 2 > B.k WHERE B.k = A.k)",
)
LEFT_OPEN = (
    "SELECT k FROM A WHERE EXISTS (SELECT 1 FROM B WHERE B.k = A.k AND B.v * 2 > 4)",
    "SELECT k, (SELECT SUM(B.v * 2) FROM B WHERE B.k = A.k) AS s FROM A",
)
FOUND: tuple[Step, ...] = tuple(
    [Advance(3), *(Push("B", ((1, 1, row),)) for row in ((7, 3), (None, None), (1, 3), (1, 1)))]
)


def agree(query: str, found: Step) -> None:
    for text in ("x", "1"):
        case = Case(DECLARED, query, (Push("A", ((1, 1, (1, 2**62, text)),)), found, Advance(9)))
        assert not difference_of(run_definition(case), run_engine(case, compilation="off")), case


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("place", PLACES)
def test_what_stands_left_fails_where_the_comparison_is_asked_for(place: str, operand: str) -> None:
    for found in FOUND:
        agree(place.format(operand), found)


@pytest.mark.parametrize("asked", LOOKED_UP_BY)
@pytest.mark.parametrize("place", [place for place in PLACES if place != PLACES[2]])
def test_what_a_subquery_is_looked_up_by_fails_where_it_is_asked_for(place: str, asked: str) -> None:
    for found in FOUND[1:]:
        agree(place.format(asked), found)


@pytest.mark.parametrize("query", READ)
@pytest.mark.parametrize("asking", [(), (1,), (3,)])
def test_what_a_subquery_reads_fails_whether_or_not_a_row_asks_for_it(query: str, asking: tuple[int, ...]) -> None:
    asked = [Push("A", ((1, 1, (k, 1, "1")),)) for k in asking]
    case = Case(DECLARED, query, (*asked, Push("B", ((2, 1, (1, 1)), (3, 1, (2, 2**62)))), Advance(9)))
    expected = run_definition(case)
    assert expected.failed_at == 3
    assert not difference_of(expected, run_engine(case, compilation="off"))


@pytest.mark.parametrize("query", LEFT_OPEN)
def test_what_stands_beside_an_outer_row_may_fail_for_rows_that_nobody_asks_for(query: str) -> None:
    case = Case(DECLARED, query, (Push("B", ((3, 1, (2, 2**62)),)), Advance(9)))
    expected = run_definition(case)
    assert expected.failed_at is None
    assert not difference_of(expected, run_engine(case, compilation="off"))
    assert not difference_of(expected, replace(expected, failed_at=3))
    assert difference_of(replace(expected, may_fail=False), replace(expected, failed_at=3))
