"""Printing is the inverse of parsing, and its layout is fixed."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minidsms.cql import syntax as s
from minidsms.cql.parser import _GRAMMAR, parse, parse_query
from minidsms.cql.printer import print_expression, print_query, print_statement
from minidsms.cql.words import CAST_TEXTS, MAKE_ROWS
from minidsms.elements import Type

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

# ----------------------------------------------------------------------------------- trees as the parser gives them

WORDS = (
    "day rows range now slide by key format interval timestamp escape any some into with natural left select istream "
    "qualify window lateral exclude replace rename fetch over following symmetric semi anti"
)
NAMES = st.one_of(st.sampled_from(["a", "b", "S", "T", *WORDS.split()]), st.text(min_size=1, max_size=6))
LITERALS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x or 0.0),
    st.text(max_size=8),
).map(s.Literal)
UNITS = st.sampled_from(["nanosecond", "microsecond", "millisecond", "second", "minute", "hour", "day", "week"])
LENGTHS = st.builds(s.Duration, st.integers(0, 99).map(str), st.sampled_from(["month", "quarter", "year"]))
NUMBERS = st.one_of(st.integers(0, 2**63 - 1).map(str), st.sampled_from(["0.5", "2.25"]))
DURATIONS = st.builds(s.Duration, NUMBERS, st.one_of(st.none(), UNITS))
COLUMNS = st.builds(s.Name, NAMES, st.one_of(st.none(), NAMES))
ROWS = st.integers(0, 2**63 - 1)
COMPARISONS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
OPTIONAL_NAME = st.one_of(st.none(), NAMES)
WINDOWS = st.one_of(
    st.builds(s.RangeWindow, DURATIONS, st.one_of(st.none(), DURATIONS)),
    st.builds(s.HopWindow, DURATIONS, st.one_of(st.none(), DURATIONS)),
    st.builds(s.SessionWindow, DURATIONS, st.lists(COLUMNS, max_size=2).map(tuple)),
    st.just(s.NowWindow()),
    st.just(s.UnboundedWindow()),
    st.builds(s.RowsWindow, ROWS, st.one_of(st.none(), ROWS)),
    st.builds(
        s.PartitionWindow,
        st.lists(COLUMNS, min_size=1, max_size=2).map(tuple),
        ROWS,
        st.one_of(st.none(), DURATIONS),
        st.one_of(st.none(), DURATIONS),
    ),
)
OPTIONAL_WINDOW = st.one_of(st.none(), WINDOWS)
ATOMS = st.one_of(
    COLUMNS, LITERALS, st.builds(s.Interval, st.builds(s.Duration, NUMBERS, UNITS)), st.builds(s.Interval, LENGTHS)
)


def several(parts: st.SearchStrategy[s.Expr], least: int = 1) -> st.SearchStrategy[tuple[s.Expr, ...]]:
    return st.lists(parts, min_size=least, max_size=3).map(tuple)


def is_cast(cast: s.Cast) -> bool:
    """A text that is written is read as an INTERVAL at once."""
    is_text = isinstance(cast.operand, s.Literal) and isinstance(cast.operand.value, str)
    return not (is_text and cast.type is Type.INTERVAL)


def minus(operand: s.Expr) -> s.Expr:
    return operand if isinstance(operand, s.Literal) else s.Unary("-", operand)


def logical(op: str, operands: tuple[s.Expr, ...]) -> s.Expr:
    flat: list[s.Expr] = []
    for o in operands:
        flat.extend(o.operands if isinstance(o, s.Logical) and o.op == op else (o,))
    return s.Logical(op, tuple(flat))


def expressions(queries: st.SearchStrategy[s.Query]) -> st.SearchStrategy[s.Expr]:
    def larger(e: st.SearchStrategy[s.Expr]) -> st.SearchStrategy[s.Expr]:
        pair = st.tuples(e, e)
        return st.one_of(
            e.map(minus),
            e.map(lambda x: s.Unary("not", x)),
            st.builds(s.Binary, st.sampled_from(["+", "-", "*", "/", "%", "||"]), e, e),
            st.builds(s.Binary, COMPARISONS, e, e),
            st.builds(logical, st.sampled_from(["and", "or"]), several(e, 2)),
            st.builds(s.IsNull, e, st.booleans()),
            st.builds(s.IsDistinctFrom, e, e, st.booleans()),
            st.builds(s.Between, e, e, e, st.booleans()),
            st.builds(s.Like, e, e, st.one_of(st.none(), st.text(max_size=2).map(s.Literal)), st.booleans()),
            st.builds(s.InList, e, several(e), st.booleans()),
            st.builds(s.Call, NAMES, several(e), st.booleans()),
            st.builds(s.Call, NAMES, st.sampled_from([(), (s.Star(),)])),
            st.builds(s.Case, st.one_of(st.none(), e), st.lists(pair, min_size=1, max_size=2).map(tuple), e),
            st.builds(s.Cast, e, st.sampled_from([*Type.SCALARS, Type.TEXT.list_type, Type.decimal(9, 2)])).filter(
                is_cast
            ),
            st.builds(s.Row, several(e, 2)),
            st.builds(s.InQuery, e, queries, st.booleans()),
            st.builds(s.Exists, queries),
            st.builds(s.ScalarQuery, queries),
            st.builds(s.ScalarQuery, queries.filter(lambda query: not isinstance(query, s.Limited)), st.just(True)),
            st.builds(s.Quantified, COMPARISONS, st.sampled_from(["all", "any"]), e, queries),
        )

    return st.recursive(ATOMS, larger, max_leaves=5)


def from_items(queries: st.SearchStrategy[s.Query], e: st.SearchStrategy[s.Expr]) -> st.SearchStrategy[s.FromItem]:
    names = st.lists(NAMES, max_size=2).map(tuple)
    first = st.one_of(
        st.builds(s.TableRef, NAMES, OPTIONAL_WINDOW, OPTIONAL_NAME),
        st.builds(s.TableRef, NAMES, OPTIONAL_WINDOW, NAMES, names),
        st.builds(s.QueryRef, queries, OPTIONAL_WINDOW),
        st.builds(s.QueryRef, queries, OPTIONAL_WINDOW, NAMES, names),
        st.builds(s.QueryRef, queries, st.none(), NAMES, names, st.just(True)),
        st.builds(s.Unnest, e, NAMES, names, st.booleans()),
    )
    kinds, halves = st.sampled_from(["inner", "left", "right", "full"]), st.sampled_from(["semi", "anti"])
    using = st.lists(st.builds(s.Name, NAMES), min_size=1, max_size=2).map(tuple)

    def is_more_than_a_query(item: s.FromItem) -> bool:
        return not (isinstance(item, s.QueryRef) and item.window is None and item.alias is None)

    def larger(items: st.SearchStrategy[s.FromItem]) -> st.SearchStrategy[s.FromItem]:
        enclosed = items.filter(is_more_than_a_query)
        return st.one_of(
            st.builds(s.ParenthesisedRef, enclosed, WINDOWS, OPTIONAL_NAME),
            st.builds(s.ParenthesisedRef, enclosed, st.none(), NAMES),
            st.builds(s.Join, st.one_of(kinds, halves), items, items, e),
            st.builds(lambda k, l, r, u: s.Join(k, l, r, using=u), st.one_of(kinds, halves), items, items, using),
            st.builds(s.Join, st.just("cross"), items, items),
            st.builds(lambda k, l, r: s.Join(k, l, r, natural=True), kinds, items, items),
            st.builds(
                lambda k, l, r, c, u: s.Join(k, l, r, on=c, using=u, as_of=True),
                st.sampled_from(["inner", "left"]),
                items,
                items,
                e,
                st.one_of(st.just(()), using),
            ),
        )

    return st.recursive(first, larger, max_leaves=3)


def selects(queries: st.SearchStrategy[s.Query]) -> st.SearchStrategy[s.Select]:
    e = expressions(queries)
    star = st.builds(s.Star, OPTIONAL_NAME)
    items = st.one_of(st.builds(s.SelectItem, star), st.builds(s.SelectItem, e, OPTIONAL_NAME))
    maybe = st.one_of(st.none(), e)
    return st.builds(
        s.Select,
        st.lists(items, min_size=1, max_size=3).map(tuple),
        st.lists(from_items(queries, e), min_size=1, max_size=2).map(tuple),
        maybe,
        st.one_of(st.just(()), st.just((s.EveryKey(),)), several(e)),
        maybe,
        st.booleans(),
        maybe,
    )


SMALLEST = st.builds(lambda n: s.Select((s.SelectItem(s.Star()),), (s.TableRef(n),)), NAMES)


def common_tables(queries: st.SearchStrategy[s.Query]) -> st.SearchStrategy[tuple[s.CommonTable, ...]]:
    columns = st.lists(NAMES, max_size=2).map(tuple)
    table = st.builds(s.CommonTable, NAMES, queries, columns)
    return st.lists(table, min_size=1, max_size=2, unique_by=lambda t: t.name.lower()).map(tuple)


def larger_queries(queries: st.SearchStrategy[s.Query]) -> st.SearchStrategy[s.Query]:
    operators = st.sampled_from(["union", "except", "intersect"])
    return st.one_of(
        selects(queries),
        st.builds(s.SetOperation, operators, st.booleans(), queries, queries),
        st.builds(s.SetOperation, st.just("union"), st.booleans(), queries, queries, st.just(True)),
        st.builds(s.RelationToStream, st.sampled_from(["istream", "dstream", "rstream"]), queries),
        st.builds(s.With, common_tables(queries), queries),
    )


QUERIES: st.SearchStrategy[s.Query] = st.recursive(SMALLEST, larger_queries, max_leaves=4)
QUICK = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@QUICK
@given(QUERIES)
def test_what_is_printed_parses_back_to_an_equal_tree(query: s.Query) -> None:
    assert repr(parse_query(print_query(query))) == repr(query)


PLACES = (
    "SELECT {} FROM a",
    "SELECT x AS {} FROM a",
    "SELECT a.{} FROM a",
    "SELECT x FROM {} AS b",
    "SELECT x FROM a AS {}",
    "SELECT x FROM a JOIN {} ON b",
    "SELECT x FROM a WHERE {}",
    "SELECT x FROM a WHERE x BETWEEN {} AND 3",
    "SELECT x FROM a WHERE {} GROUP BY x",
    "SELECT x FROM a GROUP BY {} HAVING {}",
    "SELECT x FROM a QUALIFY {}",
    "SELECT SUM({}) FILTER (WHERE {}) OVER (PARTITION BY {} ORDER BY {} ROWS 3 PRECEDING) FROM a",
    "SELECT x FROM a [PARTITION BY {} ROWS 3]",
    "SELECT x FROM a UNION SELECT {} FROM b",
    "SELECT x FROM {} [ROWS 3]",
    "SELECT x FROM a [ROWS 3] AS {} ({}, y)",
    "SELECT x FROM a AS {} ({}, y) [ROWS 3], {} [RANGE 3] AS b",
    "SELECT {}[1], {} < 'x', 'x' || {}, ARRAY(SELECT {} FROM {}) FROM a",
    "SELECT CASE {} WHEN {} THEN {} ELSE {} END, ({}, x) < (y, {}), LIST_TRANSFORM(x, ({}) => {} + 1) FROM a",
    "SELECT x FROM a, UNNEST({}) WITH ORDINALITY AS {} ({}, y), UNNEST({}) WITH ORDINALITY",
    "SELECT SUM({}) OVER (ORDER BY {} DESC GROUPS 3 PRECEDING), SUM(x) OVER (ORDER BY {} GROUPS CURRENT ROW) FROM a",
    "SELECT SUM(x) OVER ({} GROUPS 1 PRECEDING), SUM(x) OVER {} FROM a WINDOW {} AS (ORDER BY x)",
    "SELECT x FROM a ASOF JOIN {} MATCH_CONDITION (a.{} >= {}.y) USING ({})",
)


@pytest.mark.parametrize("place", PLACES)
def test_a_name_that_is_a_word_of_the_language_can_stand_wherever_a_name_can(place: str) -> None:
    terminals = (terminal.name for terminal in _GRAMMAR.loaded().terminals)
    words = map(str.lower, {*terminals, *CAST_TEXTS, *MAKE_ROWS, "ORDINALITY"})
    assert repr(parse_query(place.replace("{}", "größe"))) == repr(parse_query(place.replace("{}", "`größe`")))
    for word in filter(str.isalpha, words):
        query = parse_query(place.replace("{}", f"`{word}`"))
        assert repr(parse_query(print_query(query))) == repr(query), word


@QUICK
@given(QUERIES, NAMES)
def test_a_query_prints_as_well_inside_create_query(query: s.Query, name: str) -> None:
    statement = s.CreateQuery(name, query, "a'b", "csv", "f", True, "old")
    assert repr(parse(print_statement(statement))) == repr([statement])


@pytest.mark.parametrize(
    "text",
    [
        "WITH a AS (SELECT 1), lateral (x) AS (SELECT 2) SELECT x FROM lateral",
        "SELECT a, lateral(a), lateral((a)) FROM S WHERE b IN (1, lateral (b))",
        "SELECT lateral FROM S, lateral, LATERAL (S UNION SELECT 1), LATERAL ((VALUES (a))), (LATERAL (FROM S)) AS x",
    ],
)
def test_lateral_is_a_name_where_no_query_follows(text: str) -> None:
    query = parse_query(text)
    assert repr(parse_query(print_query(query))) == repr(query)


@pytest.mark.parametrize(
    "rest",
    ["", "* 2", "[1]", ".a", "::INTEGER", "|| 'a'", "-> 'a'", "AT TIME ZONE 'UTC'"],
)
def test_symmetric_is_a_column_where_no_value_follows(rest: str) -> None:
    place = "SELECT a FROM S WHERE a BETWEEN {} AND symmetric"
    query = parse_query(place.format(f"symmetric {rest}"))
    assert repr(query) == repr(parse_query(place.format(f"`symmetric` {rest}")))
    assert repr(parse_query(print_query(query))) == repr(query)


@pytest.mark.parametrize("low", ["-1", "- 1", "+1", "+ 1", "-a", "-(a)", "1", "a", "(a)", "symmetric", "--c\n -1"])
def test_symmetric_is_a_keyword_before_a_value(low: str) -> None:
    both = parse_query(f"SELECT a FROM S WHERE a BETWEEN {low} AND 3 OR a BETWEEN 3 AND {low}")
    assert repr(parse_query(f"SELECT a FROM S WHERE a BETWEEN SYMMETRIC {low} AND 3")) == repr(both)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT semi, anti FROM A, semi JOIN anti ON semi = 1 AND anti JOIN B ON x = semi JOIN C ON semi.x IN anti",
        "SELECT x FROM semi SEMI JOIN anti AS semi USING (semi) ANTI JOIN semi ON semi.x = anti JOIN anti ON semi",
        "SELECT x FROM A AS anti JOIN B AS semi ON NOT semi JOIN C ON anti OR semi LEFT SEMI JOIN anti ON x = y",
        "SELECT lateral.x FROM lateral [RANGE 5] AS lateral (x, y), (lateral JOIN lateral l (x) ON lateral = 1)",
    ],
)
def test_words_of_joins_are_names_where_a_name_must_stand(text: str) -> None:
    quoted = re.sub(r"\b(semi|anti|lateral)\b", r"`\1`", text)
    assert repr(parse_query(text)) == repr(parse_query(quoted))


@QUICK
@given(expressions(SMALLEST))
def test_an_expression_prints_with_the_parentheses_it_needs(expr: s.Expr) -> None:
    query = parse_query(f"SELECT {print_expression(expr)} FROM S")
    assert isinstance(query, s.Select)
    assert repr(query.items[0].expr) == repr(expr)


def test_a_list_of_one_scalar_query_is_not_taken_for_a_query() -> None:
    query = parse_query("SELECT a FROM S WHERE a IN (+(SELECT b FROM T))")
    assert isinstance(query, s.Select) and isinstance(query.where, s.InList)
    assert parse_query(print_query(query)) == query


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM `from` (day INTEGER, `a b` TEXT) TIMESTAMP BY day SLACK 1 SECOND LATE DROP KEY (day)",
        "CREATE STREAM S (a INTEGER) FROM 'x''y' FORMAT csv",
        "CREATE STREAM S (a INTEGER) FROM 'x' WITH (follow = TRUE, wait = 5 SECONDS, `group` = 'it''s', n = -1.5)",
        "CREATE QUERY q AS SELECT a FROM S INTO 'x' FORMAT json WITH (append = TRUE, with = off) WITH HISTORY",
        "CREATE RELATION slack (key INTEGER) FROM GENERATOR format(1, 'x') FORMAT json ARCHIVE 'y'",
        "CREATE VIEW view (by, slack) AS SELECT * FROM S",
        "CREATE OR REPLACE VIEW view AS SELECT * FROM S",
        "CREATE OR REPLACE QUERY query AS SELECT * FROM S INTO 'f.csv'",
        "CREATE VIEW IF NOT EXISTS if AS WITH with AS (SELECT a FROM S) SELECT a FROM with",
        "CREATE STREAM IF NOT EXISTS key (key INTEGER) KEY (key)",
        "CREATE QUERY IF NOT EXISTS if AS SELECT a FROM S WITH HISTORY",
        "DROP VIEW query",
        "DROP QUERY IF EXISTS if",
        "DROP QUERY if",
        "ALTER QUERY pin SET plan = 'x'",
        "ALTER QUERY q PIN PLAN",
        "ALTER QUERY plan UNPIN PLAN",
        "ALTER QUERY stream PAUSE",
        "ALTER STREAM `select` RESUME",
        "SHOW SETTINGS",
        "DESCRIBE `select`",
        "EXPLAIN analyze",
        "EXPLAIN ANALYZE analyze",
        "EXPLAIN (ANALYZE, FORMAT svg) format",
        "EXPLAIN ANALYZE (FORMAT json) rules",
        "EXPLAIN (RULES) (SELECT rules FROM format)",
        "EXPLAIN (format UNION S)",
        "EXPLAIN R UNION S",
        "SET `all` = -2.5",
        "SET x = 'it''s'",
        "SET x = FALSE",
    ],
)
def test_every_statement_prints_and_parses_back(text: str) -> None:
    statements = parse(text)
    assert repr(parse(print_statement(statements[0]))) == repr(statements)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "NOT " * 195 + "a FROM S",
        "SELECT a" + " || a" * 195 + " FROM S",
        "SELECT a" + " + (a" * 195 + ")" * 195 + " FROM S",
        "SELECT a FROM " + "(SELECT a FROM " * 98 + "S" + ")" * 98,
        "SELECT a FROM S WHERE " + "a IN (SELECT a FROM S WHERE " * 98 + "TRUE" + ")" * 98,
        "SELECT " + "f(" * 195 + "a" + ")" * 195 + " FROM S",
        "SELECT a FROM S" + " UNION ALL SELECT a FROM S" * 195,
    ],
)
def test_trees_as_deep_as_they_may_be_print(text: str) -> None:
    query = parse_query(text)
    assert print_query(parse_query(print_query(query))) == print_query(query)


def test_the_layout_has_a_line_per_clause_and_indents_inner_queries() -> None:
    text = """select distinct a, istream as x
              from S [range 1 second slide 500 millisecond] p, (T join U using (k)) [now] as v
              where a in (select istream(b) from R [partition by c rows 5] group by b having count(*) > 1)
              and not c = -1"""
    assert print_query(parse_query(text)) == (
        "SELECT DISTINCT a, `istream` AS x\n"
        "FROM S [RANGE 1 SECOND SLIDE 500 MILLISECONDS] AS p, (T JOIN U USING (k)) [NOW] AS v\n"
        "WHERE a IN (\n"
        "  SELECT ISTREAM(b)\n"
        "  FROM R [PARTITION BY c ROWS 5]\n"
        "  GROUP BY b\n"
        "  HAVING count(*) > 1\n"
        ")\n"
        "  AND NOT c = -1"
    )


def test_set_operations_stand_between_their_operands() -> None:
    text = "select a from S union all select b from T except (select c from U intersect select d from V)"
    assert print_query(parse_query(f"rstream ({text})")) == (
        "RSTREAM (\n"
        "  SELECT a\n  FROM S\n"
        "  UNION ALL\n"
        "  SELECT b\n  FROM T\n"
        "  EXCEPT\n"
        "  (\n"
        "    SELECT c\n    FROM U\n"
        "    INTERSECT\n"
        "    SELECT d\n    FROM V\n"
        "  )\n"
        ")"
    )


@pytest.mark.parametrize("end", ["NULL", "TRUE", "a = 1", "a = 'x'", "a > 5 SECONDS", "a IN (1)"])
def test_a_natural_join_may_stand_behind_any_condition(end: str) -> None:
    text = f"SELECT a FROM S JOIN T ON {end} NATURAL JOIN U"
    assert parse_query(print_query(parse_query(text))) == parse_query(text)
