"""Generated cases that once differed, each by a bug of its own; they stay as they were drawn."""

from __future__ import annotations

import pytest

from minidsms.testing.compare import check, check_together, run_definition
from minidsms.testing.feeds import Advance, Push
from minidsms.testing.generators import Case, random_case
from minidsms.testing.grammar import Options

SEEDS = (
    10_448,  # a global row over a base relation began before its windows
    13_371,  # a filter moved below one that can fail, and hid the failure
    119_908,  # a semijoin that ends in a projection passed for append-only
)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("batch_size", [1, 2, 7, 1024])
def test_a_case_that_once_differed_agrees(seed: int, batch_size: int) -> None:
    assert check(random_case(seed, Options(forms=False)), batch_size=batch_size) == "agreed"


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1024])
@pytest.mark.parametrize("query", ["SELECT SUM(k * k) AS s FROM {}", "SELECT COUNT(*) AS n FROM {} WHERE k * k > 1"])
def test_what_fails_before_the_start_of_a_global_row_fails_the_query(query: str, batch_size: int) -> None:
    rows = Push("R", ((1, 1, (2**63 - 1,)),))
    tables = ("CREATE STREAM S (a INTEGER)", "CREATE RELATION R (k INTEGER)")
    case = Case(tables, query.format("R LEFT JOIN S [ROWS 1] ON a = k"), (rows, Advance(9)))
    assert run_definition(case).failed_at == 1
    assert check(case, batch_size=batch_size) == "agreed"


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1024])
@pytest.mark.parametrize("state_reduction", ["swj", "k-mon"])
@pytest.mark.parametrize("length", [2**62, 2**62 + 2, 2**63 - 1])
@pytest.mark.parametrize("first", [-(2**62) + 1, -3, 2**62 - 9])
def test_joins_that_are_reduced_keep_the_rows_of_the_longest_windows(
    first: int, length: int, state_reduction: str, batch_size: int
) -> None:
    tables = ("CREATE STREAM S (k INTEGER, v INTEGER)", "CREATE STREAM T (k INTEGER, w INTEGER)")
    query = f"SELECT S.k, v, w FROM S [RANGE {length}] JOIN T [RANGE 2] ON S.k = T.k"
    rows = [Push("ST"[i % 2], ((first + i, 1, (i // 2 % 2, i)),)) for i in range(6)]
    case = Case(tables, query, (*rows, Advance(first + 8)))
    assert check(case, state_reduction=state_reduction, batch_size=batch_size) == "agreed"


@pytest.mark.parametrize("batch_size", [1, 2, 7])
@pytest.mark.parametrize(
    "source",
    [
        "R AS b LEFT JOIN S [RANGE 3] AS c ON c.a = b.k WHERE b.k = x.k",
        "S [RANGE 3] AS c RIGHT JOIN R AS b ON c.a <> b.k WHERE b.k = x.k",
        "(SELECT a AS k FROM S [RANGE 3] UNION ALL SELECT k FROM R) AS b WHERE b.k = x.k",
        "(VALUES (1), (2)) AS b(k) LEFT JOIN S [RANGE 3] AS c ON c.a = b.k WHERE b.k = x.k",
        "R AS b WHERE b.k = x.k AND b.k NOT IN (SELECT a + 1 FROM S [RANGE 3])",
        "S [RANGE 3] AS c JOIN R AS b ON c.a <= b.k WHERE b.k = x.k",
        "S [RANGE 3] AS c LEFT JOIN R AS b ON c.a <= b.k WHERE c.a = x.k",
    ],
)
def test_a_correlated_aggregate_has_no_row_before_the_start_of_its_block(source: str, batch_size: int) -> None:
    tables = ("CREATE STREAM S (a INTEGER)", "CREATE RELATION R (k INTEGER)")
    feed = (Push("R", ((1, 1, (1,)), (3, 1, (2,)))), Push("S", ((5, 1, (1,)), (7, 1, (2,)))), Advance(12))
    query = f"SELECT k, (SELECT MAX(b.k) FROM {source}) AS m FROM R AS x"
    case = Case(tables, query, feed)
    assert (3, +1, (2, None)) in run_definition(case).changes
    assert check(case, batch_size=batch_size) == "agreed"


@pytest.mark.parametrize("batch_size", [1, 7])
def test_a_window_that_moves_in_steps_moves_over_rows_written_out_alone(batch_size: int) -> None:
    tables = ("CREATE RELATION R (k INTEGER)",)
    query = (
        "RSTREAM (SELECT c.a, k FROM (ISTREAM (SELECT COUNT(*) AS a FROM (VALUES (1), (2)))) [RANGE 6 SLIDE 2] AS c, R)"
    )
    case = Case(tables, query, (Push("R", ((1, 1, (7,)),)), Advance(9)))
    assert run_definition(case).changes == tuple((ts, 1, (2, 7)) for ts in (2, 4, 6))
    assert check(case, batch_size=batch_size) == "agreed"


@pytest.mark.parametrize("window", ["RANGE 2 SLIDE 2", "RANGE 4 SLIDE 2", "TUMBLE 2", "RANGE 2"])
@pytest.mark.parametrize("operator", ["", "DSTREAM"])
def test_a_query_that_joins_a_family_later_does_not_see_rows_of_others_leave(window: str, operator: str) -> None:
    texts = [f"{operator} (SELECT m, COUNT(*) AS n FROM S [{window}] WHERE k = {k} GROUP BY m)" for k in range(10)]
    feed = (Push("S", ((4, 1, (8, 0)),)), Advance(5), Push("S", ((7, 1, (9, None)),)), Advance(18))
    cases = [
        Case(("CREATE STREAM S (k INTEGER, m INTEGER)",), text, feed, 2 * (i == 9)) for i, text in enumerate(texts)
    ]
    assert check_together(cases, {}) == "agreed"


@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k FROM S [NOW] AS a JOIN R AS r ON 9223372036854775807 + r.v > 0 JOIN S [RANGE 3] AS b ON b.v = 7",
        "SELECT a.k FROM S [NOW] AS a JOIN (R AS r JOIN R AS q ON 9223372036854775807 + r.v > 0) ON q.k = 7",
        "SELECT a.k, (SELECT COUNT(*) FROM R AS r JOIN R AS q ON 9223372036854775807 + r.v > 0 JOIN R AS p ON p.k = 8"
        " WHERE r.v = a.v) AS n FROM S [RANGE 3] AS a",
    ],
)
def test_the_ons_of_inner_joins_are_one_conjunction_also_without_where(query: str, batch_size: int) -> None:
    tables = ("CREATE STREAM S (k INTEGER, v INTEGER)", "CREATE RELATION R (k INTEGER, v INTEGER)")
    feed = (Push("R", ((8, 1, (1, 1)),)), Push("S", ((8, 1, (1, 3)),)), Advance(19))
    assert check(Case(tables, query, feed), batch_size=batch_size) == "agreed"


@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("on", ["9223372036854775807 + b.k > 0", "a.v = b.v AND 9223372036854775807 + a.k > 0"])
@pytest.mark.parametrize(("join", "where"), [("LEFT", "a.v = 7"), ("RIGHT", "b.v = 7"), ("FULL", "a.v = 7")])
def test_where_hides_nothing_that_fails_in_the_on_of_an_outer_join(
    join: str, where: str, on: str, batch_size: int
) -> None:
    query = f"SELECT a.k, b.v FROM S [RANGE 2] AS a {join} JOIN S [RANGE 3] AS b ON {on} WHERE {where}"
    case = Case(("CREATE STREAM S (k INTEGER, v INTEGER)",), query, (Push("S", ((8, 1, (1, 1)),)), Advance(19)))
    assert run_definition(case).failed_at == 8
    assert check(case, batch_size=batch_size) == "agreed"


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT v FROM (SELECT v, k FROM (SELECT ISTREAM(a.v, b.k) FROM S AS a, S AS b)) [ROWS 1]",
        "SELECT LAST(v) FROM (SELECT RSTREAM(k, v) FROM (SELECT RSTREAM(a.v, b.k) FROM S AS a, S AS b) [NOW])",
        "SELECT w.v, a.v FROM S AS a ASOF JOIN (SELECT a.v, b.k FROM S AS a ASOF JOIN S AS b USING (k, ts)) AS w "
        "ON a.ts >= w.ts",
    ],
)
def test_rows_of_one_instant_are_ordered_for_windows_over_streams_over_their_stream(
    query: str, batch_size: int
) -> None:
    rows = ((4, 1, (2, 0)), (5, 1, (3, 4)), (5, 1, (0, 7)), (5, 1, (2, None)), (5, 1, (2, 9)), (6, 1, (2, 3)))
    case = Case(("CREATE STREAM S (k INTEGER, v INTEGER)",), query, (Push("S", rows), Advance(9)))
    assert check(case, batch_size=batch_size) == "agreed"


_LOOKED_AT = (
    "CREATE STREAM S (k TEXT, v INTEGER)",
    "CREATE STREAM T (k TEXT, v INTEGER)",
    "CREATE RELATION R (k TEXT, v INTEGER)",
)
_FEED_OF_THREE = (
    Push("R", ((1, 1, ("a", 1)), (1, 1, ("b", 3)), (1, 1, (None, 2)))),
    Push("S", ((2, 1, ("a", 1)), (2, 1, ("b", 2)), (3, 1, (None, 1)))),
    Push("T", ((3, 1, ("a", 1)), (3, 1, ("a", 2)), (4, 1, ("b", None)))),
    Push("R", ((5, -1, ("a", 1)), (5, 1, ("a", 4)))),
    Push("S", ((6, 1, ("a", 4)), (6, 1, ("b", 1)))),
    Push("T", ((6, 1, ("b", 1)), (6, 1, ("b", 4)), (6, 1, (None, 4)))),
    Advance(14),
)


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1024])
@pytest.mark.parametrize("rest", [", ({})", " JOIN ({}) ON S.k = T.k", " LEFT JOIN ({}) ON S.k = T.k"])
def test_a_condition_that_can_fail_looks_at_its_own_rows_in_a_join_in_parentheses(rest: str, batch_size: int) -> None:
    of_r = "T [RANGE 4] JOIN R ON T.v * R.v > (SELECT COUNT(*) FROM S [RANGE 5] AS y WHERE y.k = R.k)"
    query = f"SELECT S.v AS a, T.v AS b, R.v AS c FROM S [RANGE 3]{rest.format(of_r)}"
    case = Case(_LOOKED_AT, query, _FEED_OF_THREE)
    assert {row[2] for _, _, row in run_definition(case).changes} > {3, 4}
    assert check(case, batch_size=batch_size) == "agreed"


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1024])
@pytest.mark.parametrize("join", ["LEFT", "RIGHT", "FULL", "SEMI", "ANTI"])
@pytest.mark.parametrize(
    "asked",
    [
        "S.k = T.k AND EXISTS (SELECT * FROM R WHERE R.k = S.k AND R.v > S.v)",
        "S.k = T.k AND T.v NOT IN (SELECT v FROM R WHERE R.k = T.k)",
        "S.v = (SELECT MAX(v) FROM R WHERE R.k = T.k) OR T.v < ALL (SELECT v FROM R)",
        "(SELECT SUM(v) FROM R WHERE R.v <= S.v) = (SELECT SUM(v) FROM S [RANGE 5] AS y WHERE y.v <= T.v)",
        "S.k = T.k AND S.v * T.v > (SELECT v FROM R WHERE R.k = T.k)",
    ],
)
def test_a_subquery_in_on_is_asked_for_the_rows_of_its_side(asked: str, join: str, batch_size: int) -> None:
    shown = "S.k, S.v" if join in ("SEMI", "ANTI") else "S.k, S.v, T.k AS tk, T.v AS tv"
    query = f"SELECT {shown} FROM S [RANGE 3] {join} JOIN T [RANGE 4] ON {asked}"
    case = Case(_LOOKED_AT, query, _FEED_OF_THREE)
    assert run_definition(case).changes
    assert check(case, batch_size=batch_size) == "agreed"


@pytest.mark.parametrize("batch_size", [1, 7, 1024])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT S.v, x.v AS w FROM S [RANGE 3] LEFT JOIN LATERAL (SELECT v FROM T [RANGE 4] WHERE T.k = S.k) AS x"
        " ON x.v IN (SELECT v FROM R WHERE R.v >= x.v)",
        "SELECT v, (SELECT COUNT(*) FROM T [RANGE 4] AS x LEFT JOIN R ON x.k = R.k"
        " AND R.v > (SELECT MIN(v) FROM T [RANGE 2] AS y WHERE y.k = R.k) WHERE x.v <= S.v) FROM S [RANGE 3]",
        "SELECT v, (SELECT SUM(R.v) FROM T [RANGE 4] AS x FULL JOIN R ON x.k = R.k"
        " AND x.v IN (SELECT y.v FROM T [RANGE 2] AS y WHERE y.v < S.v) WHERE R.v >= S.v) FROM S [RANGE 3]",
    ],
)
def test_a_subquery_in_on_may_stand_in_what_looks_at_a_row_outside_it(query: str, batch_size: int) -> None:
    case = Case(_LOOKED_AT, query, _FEED_OF_THREE)
    assert run_definition(case).changes
    assert check(case, batch_size=batch_size) == "agreed"


@pytest.mark.parametrize("call", ["ARRAY_AGG(DISTINCT v)", "COLLECT_SET(v)", "ARRAY_AGG(DISTINCT v ORDER BY v)"])
def test_different_values_of_chosen_rows_are_in_the_order_of_values(call: str) -> None:
    rows = Push(
        "R", tuple((1, 1, (k, v)) for k, v in (("a", 2), ("a", 10), ("b", 1), ("a", None), ("a", 10), ("a", -3)))
    )
    case = Case(_LOOKED_AT, f"SELECT {call} FILTER (WHERE k = 'a') AS every FROM R", (rows, Advance(3)))
    assert run_definition(case).changes == ((1, 1, ((-3, 2, 10, None),)),)
    assert check(case) == "agreed"
