"""A number beside a DECIMAL has the digits that are written, however many a FLOAT would have (docs/semantics R4)."""

from __future__ import annotations

from decimal import Decimal

import pytest

import minidsms
from minidsms.cql.parser import parse_query
from minidsms.cql.printer import print_query
from minidsms.testing.compare import check, run_definition
from minidsms.testing.feeds import Advance, Push
from minidsms.testing.generators import Case

LONG = "230584300921369.3951"
NEAR = "230584300921369.3952"
"""The same FLOAT."""
ROWS = [Decimal(LONG), Decimal(NEAR), -Decimal(LONG), Decimal("1.0000"), None]


@pytest.mark.parametrize(
    "condition",
    [
        f"p = {LONG}",
        f"p = -{LONG}",
        f"p - {LONG} = 0.0001",
        f"p > {LONG}",
        f"p IN ({LONG}, 1)",
        f"p IN ({', '.join([LONG, *map(str, range(40))])})",
        f"p IN ({', '.join([LONG, *(f'{i}.5' for i in range(40))])})",
        f"p BETWEEN {LONG} AND {LONG}",
        f"COALESCE(p, {LONG}) = {LONG}",
        f"CASE WHEN p = {LONG} THEN p = {NEAR} ELSE p = {NEAR} END",
    ],
)
def test_all_digits_of_a_number_count_beside_a_decimal(condition: str) -> None:
    query = f"SELECT p FROM S WHERE {condition}"
    rows = tuple((ts, 1, (p,)) for ts, p in enumerate(ROWS))
    case = Case(("CREATE STREAM S (p DECIMAL(38, 4))",), query, (Push("S", rows), Advance(9)))
    assert check(case) == "agreed"
    exact = query.replace(LONG, f"DECIMAL '{LONG}'").replace(NEAR, f"DECIMAL '{NEAR}'")
    exact = exact.replace(f"-DECIMAL '{LONG}'", f"DECIMAL '-{LONG}'")
    assert run_definition(case).changes == run_definition(Case(case.declarations, exact, case.feed)).changes
    printed = print_query(parse_query(query))
    assert LONG in printed and parse_query(printed) == parse_query(query)


@pytest.mark.parametrize("call", ["QUANTILE_DISC(x, {})", "PERCENTILE_DISC({}) WITHIN GROUP (ORDER BY x)"])
@pytest.mark.parametrize(("share", "found"), [("0.5", 1.0), ("0.50000000000000000001", 2.0)])
def test_a_percentage_is_the_decimal_that_is_written(call: str, share: str, found: float) -> None:
    query = f"SELECT {call.format(share)} AS q FROM S"
    case = Case(("CREATE STREAM S (x FLOAT)",), query, (Push("S", ((1, 1, (1.0,)), (1, 1, (2.0,)))), Advance(9)))
    assert check(case) == "agreed"
    assert [row for _, sign, row in run_definition(case).changes if sign > 0] == [(found,)]


def test_what_is_inserted_has_the_digits_written() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (p DECIMAL(38, 4), x FLOAT)")
        query = db.query("SELECT p, x FROM S [RANGE 9]")
        db.execute(
            f"INSERT INTO S (p, x, ts) VALUES ({LONG}, {LONG}, 1), (-{LONG}, 1, 1), (0.00001000000000000001, 1, 1)"
        )
        db.advance(1)
        expected = [(Decimal(LONG), float(LONG)), (-Decimal(LONG), 1.0), (Decimal("0.0000"), 1.0)]
        assert sorted(query.snapshot(), key=repr) == sorted(expected, key=repr)


def test_groups_of_numbers_that_are_one_float_are_told_apart() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (p DECIMAL(38, 4))")
        query = db.query(f"SELECT p + {LONG} AS a, p + {NEAR} AS b FROM S [RANGE 9] GROUP BY p + {LONG}, p + {NEAR}")
        db.push("S", (Decimal(0),), ts=1)
        db.advance(1)
        assert query.snapshot() == [(Decimal(LONG), Decimal(NEAR))]


@pytest.mark.parametrize(
    "one", ["CAST(1 AS FLOAT)", "CAST(1.5 AS FLOAT)", "TRY_CAST(1 AS FLOAT)", "-CAST(1.5 AS FLOAT)"]
)
def test_a_number_that_is_cast_to_float_stays_one_beside_a_decimal(one: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (p DECIMAL(9, 2))")
        assert str(db.query(f"SELECT p * {one} AS a, COALESCE(p, {one}) AS b FROM S").schema) == "a FLOAT, b FLOAT"
