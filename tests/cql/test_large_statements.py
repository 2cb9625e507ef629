"""However large a statement is: it is planned, or refused with a CqlError, and its parts are looked at a few times.

Work is counted in calls of Python functions, which do not depend on the machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import minidsms
from minidsms.cql import syntax, views
from minidsms.cql.catalog import ViewDef
from minidsms.cql.errors import CqlError
from minidsms.cql.lexer import MAX_TOKENS
from minidsms.cql.parser import parse_query
from minidsms.cql.printer import print_query
from minidsms.cql.session import Piece, Session


def connection(**options: Any) -> minidsms.Connection:
    db = minidsms.connect(**options)
    db.execute("CREATE STREAM S (a INTEGER, x FLOAT, t TEXT, at TIMESTAMP)")
    return db


def calls_of(fn: Callable[[], object]) -> int:
    """How many Python functions a call enters."""
    count = 0

    def seen(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        fn()
    finally:
        sys.setprofile(None)
    return count


def listed(n: int) -> str:
    return f"SELECT a FROM S WHERE a IN ({', '.join(map(str, range(n)))})"


def conjuncts(n: int) -> str:
    return "SELECT a FROM S WHERE " + " AND ".join(f"a <> {i}" for i in range(n))


def apart(n: int) -> str:
    return "SELECT a FROM S WHERE " + " AND ".join(f"a <> {3 * i} AND t <> 'x{i}'" for i in range(n // 2))


def ranges(n: int) -> str:
    return "SELECT a FROM S WHERE " + " OR ".join(f"a BETWEEN {5 * i} AND {5 * i + 2}" for i in range(n))


def sums(n: int) -> str:
    return "SELECT " + ", ".join(f"SUM(a + {i}) AS s{i}" for i in range(n)) + " FROM S [ROWS 3]"


def joined(n: int) -> str:
    conditions = " AND ".join(f"s0.a = s{i}.a" for i in range(1, n))
    return f"SELECT s0.a FROM {', '.join(f'S [ROWS 2] s{i}' for i in range(n))} WHERE {conditions}"


def columns(n: int) -> str:
    return "SELECT " + ", ".join(f"a AS c{i}" for i in range(n)) + " FROM S"


@pytest.mark.parametrize(
    ("text", "n"),
    [(listed, 2000), (conjuncts, 200), (apart, 200), (ranges, 100), (sums, 200), (columns, 400)],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_four_times_the_statement_is_at_most_six_times_the_work(text: Callable[[int], str], n: int) -> None:
    def register(count: int) -> int:
        db = connection()
        db.query(text(8)).close()  # what is imported and made once
        return calls_of(lambda: db.query(text(count)).explain())

    assert register(4 * n) <= 6 * register(n)


def test_a_literal_of_a_hundred_thousand_costs_the_calls_that_print_it() -> None:
    db = connection()
    db.query(listed(40)).close()
    assert calls_of(lambda: db.query(listed(100_000))) < 15 * 100_000


def test_a_long_list_of_literals_is_one_node_and_prints_as_it_was_written() -> None:
    query = parse_query(listed(50))
    assert isinstance(query, syntax.Select) and isinstance(query.where, syntax.InList)
    assert query.where.items == (syntax.LiteralList(tuple(range(50))),)
    assert parse_query(print_query(query)) == query


@pytest.mark.parametrize(
    ("column", "items", "hits"),
    [
        ("a", [str(i) for i in range(-20, 20)], 3),
        ("x", [*(str(i) for i in range(40)), "2.5", "-0.0"], 4),
        ("a", [*(f"{i}.5" for i in range(40)), "3"], 1),
        ("t", [f"'it''s {i}'" for i in range(40)], 2),
        ("at", [f"'2024-01-01 00:00:{i:02d}'" for i in range(40)], 2),
        ("at", [str(i) for i in range(1000, 1040)], 1),
    ],
)
@pytest.mark.parametrize("negation", ["", "NOT "])
@pytest.mark.parametrize("beside", ["", " OR a > 100"], ids=["a filter", "inside an expression"])
def test_a_long_list_is_compared_as_a_short_one_is(
    column: str, items: list[str], hits: int, negation: str, beside: str
) -> None:
    first = 1_704_067_200_000
    rows = [
        (0, 0.0, "it's 0", first),
        (3, 2.5, "it's 1", first + 1000),
        (5, 7.0, "other", 1000),
        (50, 39.0, None, None),
        (None, None, "it''s 2", 5),
    ]
    db = connection()
    condition = f"{column} {negation}IN ({', '.join(items)}){beside}"
    long = db.query(f"SELECT a, x, t, at FROM S WHERE {condition}")
    # An item that is no literal, and always NULL: the list is read item by item.
    short = db.query(
        f"SELECT a, x, t, at FROM S WHERE {condition.replace('IN (', f'IN (NULLIF({column}, {column}), ')}"
    )
    for ts, row in enumerate(rows):
        db.push("S", row, ts=ts)
    db.advance(10)
    found = [change.row for change in long.fetch()]
    if not negation:
        assert found == [change.row for change in short.fetch()]
        assert len(found) == hits
    else:
        known = sum(row["axt".find(column) if column != "at" else 3] is not None for row in rows)
        assert len(found) == known - hits


def test_a_long_list_of_the_wrong_type_is_told_as_a_short_one_is() -> None:
    db = connection()
    with pytest.raises(CqlError, match="cannot compare TEXT and INTEGER"):
        db.query(f"SELECT a FROM S WHERE t IN ({', '.join(map(str, range(50)))})")
    with pytest.raises(CqlError, match="a row of 2 is compared with a row of 1"):
        db.query(f"SELECT a FROM S WHERE (a, x) IN ({', '.join(map(str, range(50)))})")
    with pytest.raises(CqlError, match="is not an ISO time"):
        db.query(f"SELECT a FROM S WHERE at IN ({', '.join(repr(str(i)) for i in range(50))})")


def test_an_integer_in_a_long_list_that_does_not_fit_is_refused_at_its_place() -> None:
    items = [*map(str, range(50)), "9223372036854775808"]
    with pytest.raises(CqlError, match="does not fit in 64 bits") as caught:
        connection().query(f"SELECT a FROM S WHERE a IN ({', '.join(items)})")
    assert caught.value.span is not None
    assert caught.value.text[slice(*caught.value.span)] == "9223372036854775808"


def test_a_chain_of_a_hundred_thousand_conditions_is_refused_before_it_is_parsed() -> None:
    text = "SELECT a FROM S WHERE " + " AND ".join(["a<>1"] * 100_000)
    with pytest.raises(CqlError, match=f"more than {MAX_TOKENS:,} words and symbols"):
        connection().query(text)


@pytest.mark.parametrize("n", [257, 330, 3000])
def test_a_join_of_more_inputs_than_the_limit_is_refused(n: int) -> None:
    db = connection()
    with pytest.raises(CqlError, match="a query may have 256 inputs") as caught:
        db.query(joined(n))
    assert "input_limit" in caught.value.hint
    assert not db.queries


@pytest.mark.parametrize("call", ["query", "execute", "explain"])
def test_a_plan_deeper_than_the_stack_is_refused(call: str) -> None:
    db = connection(input_limit=5000)
    text = f"SELECT s0.a FROM {', '.join(f'S [ROWS 2] s{i}' for i in range(1000))}"
    with pytest.raises(CqlError, match="nests too deeply"):
        db.query(text) if call == "query" else db.execute(text if call == "execute" else f"EXPLAIN {text}")
    assert not db.queries
    assert db.execute(joined(3)).name == "q1"


def test_views_that_double_a_row_are_refused_at_ten_thousand_columns() -> None:
    db = connection()
    db.execute("CREATE VIEW v0 AS SELECT a, x FROM S [ROWS 5]")
    with pytest.raises(CqlError, match="at most 10,000 are possible"):
        for i in range(1, 20):
            db.execute(f"CREATE VIEW v{i} AS SELECT l.*, r.* FROM v{i - 1} l, v{i - 1} r")


def test_literal_limit_counts_all_constants_of_a_query() -> None:
    db = connection(literal_limit=50)
    db.query(listed(50)).close()
    with pytest.raises(CqlError, match="a query may have 50 literals"):
        db.query(listed(51))
    with pytest.raises(CqlError, match="literal_limit"):
        db.query(conjuncts(51))
    db.execute("SET literal_limit = none")
    db.query(conjuncts(51))


def test_a_view_is_bound_once_however_many_stand_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[str] = []
    real = views._bind_one_view

    def counted(view: ViewDef, session: Session) -> Piece:
        bound.append(view.name)
        return real(view, session)

    monkeypatch.setattr(views, "_bind_one_view", counted)
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER); CREATE VIEW v0 AS SELECT a FROM S [RANGE 5]")
        for i in range(1, 30):
            db.execute(f"CREATE VIEW v{i} AS SELECT l.a FROM v{i - 1} l, v{i // 2} r WHERE l.a = r.a")
        assert len(bound) == 30


def test_what_a_view_stands_on_may_change_before_another_stands_on_it() -> None:
    with minidsms.connect() as db:
        db.create_function("f", lambda x: x, ["INTEGER"], "INTEGER")
        db.execute("CREATE STREAM S (a INTEGER); CREATE VIEW v AS SELECT a, f(a) AS b FROM S [RANGE 5]")
        db.execute("CREATE VIEW w AS SELECT a + 1 AS a, b FROM v")
        db.execute("CREATE OR REPLACE VIEW v AS SELECT a, f(a) AS b, 'x' AS t FROM S [RANGE 5]")
        db.execute("CREATE VIEW x AS SELECT t || 'y' AS t FROM v")
        db.execute("DROP VIEW x; DROP VIEW w; DROP VIEW v; DROP STREAM S; CREATE STREAM S (a TEXT)")
        db.execute("CREATE VIEW v AS SELECT a, 1 AS b FROM S [RANGE 5]")
        with pytest.raises(minidsms.CqlError, match="TEXT"):
            db.execute("CREATE VIEW w AS SELECT a + 1 AS a, b FROM v")
        db.execute("SET input_limit = 3")
        db.execute("CREATE VIEW two AS SELECT l.a FROM v l, S r")
        with pytest.raises(minidsms.CqlError, match="3 inputs"):
            db.execute("CREATE VIEW three AS SELECT l.a FROM two l, S r")
