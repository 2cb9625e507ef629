"""Every form of semantics.md, from text to tree."""

from __future__ import annotations

import re

import pytest

from minidsms.cql import syntax as s
from minidsms.cql.errors import CqlError
from minidsms.cql.parser import parse, parse_query, parse_type
from minidsms.elements import Type


def select(text: str) -> s.Select:
    query = parse_query(text)
    assert isinstance(query, s.Select)
    return query


def expression(text: str) -> s.Expr:
    return select(f"SELECT {text} FROM S").items[0].expr


def condition(text: str) -> s.Expr:
    where = select(f"SELECT a FROM S WHERE {text}").where
    assert where is not None
    return where


def window(text: str) -> s.Window | None:
    source = select(f"SELECT a FROM S [{text}]").sources[0]
    assert isinstance(source, s.TableRef)
    return source.window


def table(name: str) -> s.TableRef:
    return s.TableRef(name)


A, B, C = s.Name("a"), s.Name("b"), s.Name("c")


# ------------------------------------------------------------------------------------------------------ windows


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RANGE 10 SECONDS", s.RangeWindow(s.Duration("10", "second"))),
        ("Range 2 Minutes", s.RangeWindow(s.Duration("2", "minute"))),
        ("range 1 day", s.RangeWindow(s.Duration("1", "day"))),
        ("RANGE 10,000", s.RangeWindow(s.Duration("10000"))),
        ("RANGE 1.50 HOURS", s.RangeWindow(s.Duration("1.5", "hour"))),
        ("RANGE 10 SECONDS SLIDE 2", s.RangeWindow(s.Duration("10", "second"), s.Duration("2"))),
        ("TUMBLE 1 MINUTE", s.HopWindow(s.Duration("1", "minute"))),
        ("HOP 5 MINUTES EVERY 30", s.HopWindow(s.Duration("5", "minute"), s.Duration("30"))),
        ("SESSION 5", s.SessionWindow(s.Duration("5"))),
        ("SESSION 30 MINUTES PARTITION BY a", s.SessionWindow(s.Duration("30", "minute"), (A,))),
        ("RANGE UNBOUNDED", s.UnboundedWindow()),
        ("Rows Unbounded", s.UnboundedWindow()),
        ("NOW", s.NowWindow()),
        ("ROWS 5", s.RowsWindow(5)),
        ("ROWS 1,000,000 SLIDE 5", s.RowsWindow(1_000_000, 5)),
        ("PARTITION BY a ROWS 4", s.PartitionWindow((A,), 4)),
        (
            "PARTITION BY a, S.b ROWS 4 RANGE 5 DAYS",
            s.PartitionWindow((A, s.Name("b", "S")), 4, s.Duration("5", "day")),
        ),
        ("PARTITION BY rows, range ROWS 1", s.PartitionWindow((s.Name("rows"), s.Name("range")), 1)),
        ("PARTITION BY a ROWS 4 SLIDE 2", s.PartitionWindow((A,), 4, None, s.Duration("2"))),
    ],
)
def test_a_window_is_read_in_any_letter_case_and_unit(text: str, expected: s.Window) -> None:
    assert window(text) == expected


# -------------------------------------------------------------------------------------------------- expressions


def test_operators_bind_as_in_sql() -> None:
    assert expression("a + b * c") == s.Binary("+", A, s.Binary("*", B, C))
    assert expression("a - b - c") == s.Binary("-", s.Binary("-", A, B), C)
    assert condition("a OR b AND NOT c = a") == s.Logical(
        "or", (A, s.Logical("and", (B, s.Unary("not", s.Binary("=", C, A)))))
    )


def test_a_chain_of_one_connective_is_one_node_whatever_its_parentheses() -> None:
    assert condition("(a AND b) AND c") == condition("a AND (b AND c)") == s.Logical("and", (A, B, C))


def test_both_spellings_of_inequality_are_one() -> None:
    assert condition("a != b") == condition("a <> b") == s.Binary("<>", A, B)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-5", -5),
        ("- -5", 5),
        ("+5", 5),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1.5", 1.5),
        (".5", 0.5),
        ("2.", 2.0),
        ("1e3", 1000.0),
        ("'it''s'", "it's"),
        ("''", ""),
        ("NULL", None),
        ("true", True),
        ("False", False),
    ],
)
def test_a_literal_has_its_value(text: str, value: object) -> None:
    literal = expression(text)
    assert isinstance(literal, s.Literal)
    assert (type(literal.value), literal.value) == (type(value), value)


def test_an_interval_has_three_spellings() -> None:
    ten = s.Interval(s.Duration("10", "second"))
    assert expression("INTERVAL '10' SECOND") == expression("10 SECONDS") == expression("interval 10 seconds") == ten
    assert expression("INTERVAL '-10' SECOND") == s.Unary("-", ten)
    assert (
        expression("INTERVAL '10 secs'") == expression("'10 sec'::INTERVAL") == expression("INTERVAL '00:00:10'") == ten
    )
    assert expression("INTERVAL (a) SECONDS") == s.Binary("*", s.Interval(s.Duration("1", "second")), s.Name("a"))


def test_braces_are_a_struct_or_a_map() -> None:
    fields = (s.Pair(s.Name("a"), s.Literal(1)), s.Pair(s.Name("b c"), s.Call("LIST_VALUE", (s.Literal(2),))))
    assert expression("{'a': 1, 'b c': [2]}") == expression('{a: 1, "b c": [2]}') == s.Call("STRUCT", fields)
    assert expression("MAP {1: a}") == s.Call("MAP", (s.Pair(s.Literal(1), s.Name("a")),))
    assert expression("l[{'a': {'b': 1}}.a.b : 2]") == expression("l[STRUCT(a := STRUCT(b := 1)).a.b : 2]")


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("a%_", "a(?s:.*)(?s:.)"),
        ("(a|b)+[%_.]{2}", "(a|b)+[%_.]{2}"),
        (r"1.5\%^", r"1\.5%\^"),
        ("[]a]%", "[]a](?s:.*)"),
        ("[^[:alpha:]_][%[:digit:].]", "[^[:alpha:]_][%[:digit:].]"),
        (r"[\]%]_", r"[\]%](?s:.)"),
    ],
)
def test_similar_to_is_a_regular_expression_with_the_signs_of_like(pattern: str, meant: str) -> None:
    called = s.Call("REGEXP_FULL_MATCH", (s.Name("a"), s.Literal(meant)))
    assert expression(f"a SIMILAR TO '{pattern}'") == called
    assert expression(f"a NOT SIMILAR TO '{pattern}'") == s.Unary("not", called)


def test_a_lambda_has_its_word_or_an_arrow() -> None:
    assert expression("TRANSFORM(l, lambda x, i: x + i)") == expression("TRANSFORM(l, (x, i) -> x + i)")
    assert expression('FILTER(l, LAMBDA "x y": "x y"[1:2] = m)') == expression('FILTER(l, "x y" => "x y"[1:2] = m)')
    assert expression("l[lambda : 2]") == expression("LIST_SLICE(l, `lambda`, 2)")


def test_months_are_units_of_what_stands_behind_interval() -> None:
    two = s.Interval(s.Duration("2", "month"))
    assert expression("INTERVAL 2 MONTHS") == expression("INTERVAL '2' MONTH") == expression("INTERVAL '2 mons'") == two
    select = parse_query("SELECT 2 MONTHS, INTERVAL '2 days' year, interval (v) day FROM S")
    assert isinstance(select, s.Select)
    assert [item.alias for item in select.items] == ["MONTHS", "year", None]


def test_predicates_of_words_are_read_with_their_negations() -> None:
    assert condition("a BETWEEN 1 AND 2 AND b") == s.Logical("and", (s.Between(A, s.Literal(1), s.Literal(2)), B))
    assert condition("a NOT BETWEEN b AND c") == s.Between(A, B, C, negated=True)
    assert condition("a IS NULL") == s.IsNull(A)
    assert condition("a IS NOT NULL") == s.IsNull(A, negated=True)
    assert condition("a IS DISTINCT FROM b") == s.IsDistinctFrom(A, B)
    assert condition("a IS NOT DISTINCT FROM b") == s.IsDistinctFrom(A, B, negated=True)
    assert condition("a IS NOT TRUE") == s.IsDistinctFrom(A, s.Literal(True))
    assert condition("a LIKE 'x!%' ESCAPE '!'") == s.Like(A, s.Literal("x!%"), s.Literal("!"))
    assert condition("a NOT LIKE b") == s.Like(A, B, negated=True)
    assert condition("a IN (1, b)") == s.InList(A, (s.Literal(1), B))
    assert condition("a NOT IN (b)") == s.InList(A, (B,), negated=True)


def test_subqueries_stand_in_every_predicate() -> None:
    inner = select("SELECT b FROM R")
    sub = "(SELECT b FROM R)"
    assert condition(f"a IN {sub}") == s.InQuery(A, inner)
    assert condition(f"(a, b) NOT IN ({sub})") == s.InQuery(s.Row((A, B)), inner, negated=True)
    assert condition(f"NOT EXISTS {sub}") == s.Unary("not", s.Exists(inner))
    assert condition(f"a >= ALL {sub}") == s.Quantified(">=", "all", A, inner)
    assert condition(f"a = SOME {sub}") == condition(f"a = ANY {sub}") == s.Quantified("=", "any", A, inner)
    assert condition(f"a = ({sub})") == s.Binary("=", A, s.ScalarQuery(inner))
    assert condition(f"a IN ({sub}, 3)") == s.InList(A, (s.ScalarQuery(inner), s.Literal(3)))


@pytest.mark.parametrize(
    "text",
    [
        "a IS DISTINCT FROM {}",
        "EXTRACT(DAY FROM t) = {}",
        "a IN (SELECT a FROM S [ROWS 2]) AND b = {}",
        "a = (SELECT MAX(a) FROM S) AND b = {}",
        "SUBSTRING(t FROM {}) = 'a'",
        "TRIM(BOTH 'a' FROM {}) = 'a'",
    ],
)
def test_brackets_are_an_index_behind_a_from_that_begins_no_clause_or_whose_query_has_ended(text: str) -> None:
    assert condition(text.format("l[1]")) == condition(text.format("ELEMENT_AT(l, 1)"))


def test_brackets_behind_the_keys_of_distinct_on_and_behind_partition_by_enclose_a_list() -> None:
    assert select("SELECT DISTINCT ON (a) [a, b] FROM S") == select("SELECT DISTINCT ON (a) LIST_VALUE(a, b) FROM S")
    of_pairs = "SELECT COUNT(*) OVER (PARTITION BY {} ORDER BY a) FROM S"
    assert select(of_pairs.format("[a, b]")) == select(of_pairs.format("LIST_VALUE(a, b)"))


@pytest.mark.parametrize("behind", ["UNION ALL SELECT a FROM T", "EXCEPT SELECT a FROM T", "INTERSECT SELECT a FROM T"])
def test_asc_and_desc_stand_before_whatever_may_follow_the_keys(behind: str) -> None:
    first = "SELECT DISTINCT ON (a) a FROM S ORDER BY a, b"
    falling = parse_query(f"{first} DESC {behind}")
    assert falling == parse_query(f"({first} DESC) {behind}") != parse_query(f"{first} ASC {behind}")
    assert parse_query(f"{first} ASC {behind}") == parse_query(f"{first} {behind}")


@pytest.mark.parametrize("clause", ["INTO 'file.csv'", "WITH HISTORY", "ARCHIVE 'folder'", "BACKFILL FROM 'folder'"])
def test_desc_stands_before_the_clauses_of_a_query_that_is_created(clause: str) -> None:
    first = "SELECT DISTINCT ON (a) a FROM S ORDER BY a, b"
    assert parse(f"CREATE QUERY q AS {first} DESC {clause}") == parse(f"CREATE QUERY q AS ({first} DESC) {clause}")


def test_a_stream_name_may_stand_for_its_whole_row() -> None:
    query = select("Select * From S0 Where S0 in (Select * From S1 [Rows 10,000])")
    assert query.where == s.InQuery(s.Name("S0"), select("SELECT * FROM S1 [ROWS 10000]"))


def test_calls_take_distinct_and_star() -> None:
    assert expression("COUNT(*)") == s.Call("COUNT", (s.Star(),))
    assert expression("count(DISTINCT a)") == s.Call("count", (A,), distinct=True)
    assert expression("f()") == s.Call("f", ())
    assert expression("substring(a, 1, 2)") == s.Call("substring", (A, s.Literal(1), s.Literal(2)))


def test_case_and_cast_are_read() -> None:
    assert expression("CASE WHEN a THEN b END") == s.Case(None, ((A, B),))
    assert expression("CASE a WHEN 1 THEN b WHEN 2 THEN c ELSE a END") == s.Case(
        A, ((s.Literal(1), B), (s.Literal(2), C)), A
    )
    assert expression("CAST(a AS VARCHAR(10))") == s.Cast(A, Type.TEXT)
    assert expression("TIMESTAMP '2020-01-01'") == s.TypedText(s.Literal("2020-01-01"), Type.TIMESTAMP)


def test_words_of_windows_units_and_clauses_are_free_to_be_names() -> None:
    words = (
        "day rows range now first last interval second key format slack timestamp left istream any archive stream set"
    )
    query = select(f"SELECT {', '.join(words.split())}, first(day), `select` FROM S GROUP BY day, by")
    assert [i.expr for i in query.items[:-2]] == [s.Name(w) for w in words.split()]
    assert query.items[-2].expr == s.Call("first", (s.Name("day"),))
    assert query.items[-1].expr == s.Name("select")
    assert query.group_by == (s.Name("day"), s.Name("by"))


@pytest.mark.parametrize("word", ["ilike", "rlike", "regexp"])
def test_an_operator_that_is_a_word_is_free_to_be_a_name(word: str) -> None:
    text = "SELECT w, a AS w, w w w FROM S w [NOW], T [NOW] w WHERE NOT w = -1 AND NOT w AND w < 2 AND w NOT w w"
    bare = re.sub(r"\bw\b", word, text)
    quoted = re.sub(r"\bw\b", f'"{word}"', text.replace("w w w", f"w {word} w").replace("NOT w w", f"NOT {word} w"))
    assert select(bare) == select(quoted)
    assert isinstance(expression("a ILIKE left(b, 1)"), s.Like)


def test_backquoted_names_keep_every_character() -> None:
    assert expression("`a b`.`c``d`") == s.Name("c`d", "a b")


def test_comments_run_to_the_end_of_the_line() -> None:
    assert parse_query("SELECT a -- the 'key'\nFROM S #> 'x' (\n;") == select("SELECT a FROM S")


# ------------------------------------------------------------------------------------------------------- queries


def test_both_spellings_of_a_relation_to_stream_operator_are_one() -> None:
    for op in ("ISTREAM", "Dstream", "rstream"):
        expected = s.RelationToStream(op.lower(), select("SELECT a, b FROM S WHERE a > 1"))
        assert parse_query(f"SELECT {op}(a, b) FROM S WHERE a > 1") == expected
        assert parse_query(f"{op} (SELECT a, b FROM S WHERE a > 1)") == expected
    assert parse_query("SELECT ISTREAM(DISTINCT a) FROM S") == parse_query("ISTREAM(SELECT DISTINCT a FROM S)")
    assert parse_query("SELECT ISTREAM(*) FROM S") == s.RelationToStream("istream", select("SELECT * FROM S"))


def test_select_has_all_its_clauses() -> None:
    query = select("SELECT DISTINCT a x, S.b AS y, S.*, * FROM S, T u WHERE a GROUP BY a, b HAVING c")
    assert query.distinct
    assert [(i.expr, i.alias) for i in query.items] == [
        (A, "x"),
        (s.Name("b", "S"), "y"),
        (s.Star("S"), None),
        (s.Star(), None),
    ]
    assert query.sources == (table("S"), s.TableRef("T", None, "u"))
    assert (query.where, query.group_by, query.having) == (A, (A, B), C)


def test_intersect_binds_tighter_and_the_others_group_to_the_left() -> None:
    one, two, three = (select(f"SELECT {n} FROM S") for n in (1, 2, 3))
    assert parse_query("SELECT 1 FROM S UNION ALL SELECT 2 FROM S EXCEPT SELECT 3 FROM S") == s.SetOperation(
        "except", False, s.SetOperation("union", True, one, two), three
    )
    assert parse_query("SELECT 1 FROM S UNION SELECT 2 FROM S INTERSECT ALL SELECT 3 FROM S") == s.SetOperation(
        "union", False, one, s.SetOperation("intersect", True, two, three)
    )
    assert parse_query("(SELECT 1 FROM S UNION DISTINCT SELECT 2 FROM S) INTERSECT (SELECT 3 FROM S)") == (
        s.SetOperation("intersect", False, s.SetOperation("union", False, one, two), three)
    )


@pytest.mark.parametrize("operator", ["UNION ALL", "EXCEPT", "INTERSECT", "UNION SELECT a FROM R INTERSECT"])
@pytest.mark.parametrize("last", ["(SELECT a FROM T)", "T", "(SELECT a FROM T ORDER BY b LIMIT 5)", "(VALUES (1))"])
def test_order_by_behind_the_last_operand_is_of_the_whole(operator: str, last: str) -> None:
    whole, order = f"SELECT a FROM S {operator} {last}", "ORDER BY a DESC LIMIT 3 OFFSET 1"
    expected = parse_query(f"SELECT * FROM ({whole}) {order}")
    assert parse_query(f"{whole} {order}") == parse_query(f"({whole}) {order}") == expected
    assert select(f"SELECT * FROM ({whole} {order}) AS x").sources == (s.QueryRef(expected, alias="x"),)


def test_an_operand_may_be_a_bare_name_as_in_stream() -> None:
    everything = {n: select(f"SELECT * FROM {n}") for n in "RS"}
    union = s.SetOperation("union", False, everything["R"], everything["S"])
    assert parse_query("R UNION S") == union
    assert parse_query("Istream(R UNION S)") == s.RelationToStream("istream", union)
    assert select("SELECT a FROM (R UNION S)").sources == (s.QueryRef(union),)


def test_a_query_stands_in_any_number_of_parentheses() -> None:
    plain = select("SELECT a FROM S")
    assert parse_query("(((SELECT a FROM S)))") == plain
    assert select("SELECT a FROM ((SELECT a FROM S)) AS x").sources == (s.QueryRef(plain, None, "x"),)


def test_joins_group_to_the_left_and_take_on_or_using() -> None:
    on = s.Binary("=", s.Name("x", "A"), s.Name("x", "B"))
    names = (s.Name("y"), s.Name("z"))
    first = s.Join("inner", table("A"), table("B"), on)
    assert select("SELECT a FROM A JOIN B ON A.x = B.x").sources == (first,)
    assert select("SELECT a FROM A INNER JOIN B ON A.x = B.x LEFT JOIN C USING (y, z) CROSS JOIN D").sources == (
        s.Join("cross", s.Join("left", first, table("C"), using=names), table("D")),
    )
    assert select("SELECT a FROM A RIGHT OUTER JOIN (B FULL JOIN C USING (y, z)) ON TRUE").sources == (
        s.Join("right", table("A"), s.Join("full", table("B"), table("C"), using=names), s.Literal(True)),
    )


def test_streams_and_queries_in_parentheses_take_window_and_alias() -> None:
    query = select(
        "SELECT a FROM (CarStr [PARTITION BY cid ROWS 1]) AS LastRep, (SELECT a FROM S) [RANGE 5 SECONDS] AS x (q),"
        " (A JOIN B ON TRUE) j, S [NOW] n"
    )
    last = s.TableRef("CarStr", s.PartitionWindow((s.Name("cid"),), 1))
    assert query.sources == (
        s.ParenthesisedRef(last, None, "LastRep"),
        s.QueryRef(select("SELECT a FROM S"), s.RangeWindow(s.Duration("5", "second")), "x", ("q",)),
        s.ParenthesisedRef(s.Join("inner", table("A"), table("B"), s.Literal(True)), None, "j"),
        s.TableRef("S", s.NowWindow(), "n"),
    )


def test_the_linear_road_query_of_the_thesis_is_read() -> None:
    query = select(
        """Select distinct sid From
             (Select cid, sid From (CarStr [Partition By cid Rows 1]) as LastRep,
                (Select distinct cid From CarStr [Range 30 seconds]) as CurActiveCars
              Where LastRep.cid = CurActiveCars.cid) as CurCarSeg,
             (Select cid From CarStr [Partition By cid Rows 4] Group By cid
              Having count (distinct xpos) = 1 and count(*) = 4) as AccCars
           Where CurCarSeg.cid = AccCars.cid"""
    )
    assert [getattr(i, "alias", None) for i in query.sources] == ["CurCarSeg", "AccCars"]


def test_a_span_covers_its_part_of_the_text() -> None:
    text = "SELECT a,  (b + c) * 2 AS x\nFROM S [ROWS 5] s2 WHERE a IN (SELECT b FROM T)"
    query = select(text)
    product = query.items[1].expr
    assert isinstance(product, s.Binary)
    assert query.where is not None
    spans = [product.span, product.left.span, query.items[1].span, query.sources[0].span, query.where.span, query.span]
    assert [text[a:b] for a, b in spans] == [
        "(b + c) * 2",
        "(b + c)",
        "(b + c) * 2 AS x",
        "S [ROWS 5] s2",
        "a IN (SELECT b FROM T)",
        text,
    ]


# ---------------------------------------------------------------------------------------------------- statements


def statement(text: str) -> s.Statement:
    (found,) = parse(text)
    return found


def test_statements_stand_apart_by_semicolons_and_empty_ones_do_not_count() -> None:
    assert [type(x) for x in parse("; SELECT a FROM S;; SHOW STREAMS ; ")] == [s.QueryStatement, s.Show]
    assert parse("") == parse(" -- nothing\n") == []


def test_create_stream_takes_its_clauses_in_any_order() -> None:
    expected = s.CreateStream(
        "Pos",
        (s.ColumnDef("car", Type.INTEGER), s.ColumnDef("at", Type.TIMESTAMP), s.ColumnDef("key", Type.TEXT)),
        timestamp_by=s.Name("at"),
        slack=s.Duration("10000", "millisecond"),
        late_drop=True,
        key=(s.Name("car"), s.Name("key")),
        source=s.Source("pos.csv", "csv"),
        archive="old",
    )
    columns = "CREATE STREAM Pos (car INTEGER, at TIMESTAMP, key CHAR(4))"
    clauses = ["TIMESTAMP BY at", "SLACK 10,000 MILLISECONDS", "LATE DROP", "KEY (car, key)", "FROM 'pos.csv'"]
    clauses += ["FORMAT CSV", "ARCHIVE 'old'"]
    assert statement(" ".join([columns, *clauses])) == expected
    assert statement(" ".join([columns, *reversed(clauses)])) == expected


@pytest.mark.parametrize(
    ("word", "type_"),
    [
        ("int", Type.INTEGER),
        ("BIGINT", Type.INTEGER),
        ("double", Type.FLOAT),
        ("DOUBLE PRECISION", Type.FLOAT),
        ("real", Type.FLOAT),
        ("bool", Type.BOOLEAN),
        ("STRING", Type.TEXT),
        ("varchar(20)", Type.TEXT),
        ("byte", Type.TEXT),
        ("char(3)", Type.TEXT),
        ("char", Type.TEXT),
        ("interval", Type.INTERVAL),
    ],
)
def test_a_type_goes_by_several_names(word: str, type_: Type) -> None:
    assert statement(f"CREATE STREAM S (a {word})") == s.CreateStream("S", (s.ColumnDef("a", type_),))


def test_a_type_can_be_read_alone() -> None:
    assert (parse_type("integer"), parse_type("TIMESTAMP"), parse_type("char(3)")) == (
        Type.INTEGER,
        Type.TIMESTAMP,
        Type.TEXT,
    )
    for text in ("", "integr", "integer integer", "char(3"):
        with pytest.raises(CqlError):
            parse_type(text)


def test_register_is_the_word_of_stream_for_create() -> None:
    text = "STREAM S (A integer, B float, C byte, D char(4))"
    assert statement(f"Register {text};") == statement(f"CREATE {text}")
    assert statement("register relation R (A integer)") == s.CreateRelation("R", (s.ColumnDef("A", Type.INTEGER),))


def test_statements_of_later_milestones_are_read_too() -> None:
    columns = (s.ColumnDef("a", Type.INTEGER),)
    generator = s.Generator("nexmark", (s.Literal(1), s.Literal("x")), "json")
    assert statement("CREATE STREAM S (a INTEGER) FROM GENERATOR nexmark(1, 'x') FORMAT json") == s.CreateStream(
        "S", columns, source=generator
    )
    assert statement("CREATE STREAM S (a INTEGER) FROM GENERATOR g()") == s.CreateStream(
        "S", columns, source=s.Generator("g")
    )
    query = select("SELECT a FROM S")
    tail = "INTO 'out.csv' FORMAT csv ARCHIVE 'f' WITH HISTORY BACKFILL FROM 'old'"
    assert statement(f"CREATE QUERY q AS SELECT a FROM S {tail}") == s.CreateQuery(
        "q", query, "out.csv", "csv", "f", True, "old"
    )
    assert statement("ALTER QUERY q SET adaptive = off") == s.AlterQuery("q", "set", "adaptive", "off")
    actions = {"PAUSE": "pause", "resume": "resume", "PIN PLAN": "pin plan"}
    actions |= {"UNPIN": "unpin plan", "UNPIN PLAN": "unpin plan"}
    for words, action in actions.items():
        assert statement(f"ALTER QUERY q {words}") == s.AlterQuery("q", action)
    assert statement("ALTER STREAM pause RESUME") == s.AlterStream("pause", "resume")


def test_explain_takes_options_in_parentheses_as_other_databases_do() -> None:
    assert statement("EXPLAIN (FORMAT JSON) q") == s.Explain("q", format="json")
    assert statement("EXPLAIN (ANALYZE, FORMAT 'svg') q") == s.Explain("q", True, "svg")
    assert statement("EXPLAIN ANALYZE (FORMAT mermaid) q") == s.Explain("q", True, "mermaid")
    assert statement("EXPLAIN (RULES) q") == s.Explain("q", rules=True)
    for text in ("EXPLAIN (FORMAT jsn) q", "EXPLAIN (ANALYZE, ANALYZE) q", "EXPLAIN (COST) q", "EXPLAIN () q"):
        with pytest.raises(CqlError):
            statement(text)


def test_the_remaining_statements_are_read() -> None:
    query = select("SELECT a FROM S")
    assert statement("CREATE VIEW v AS SELECT a FROM S") == s.CreateView("v", query)
    assert statement("CREATE VIEW v (x) AS (SELECT a FROM S)") == s.CreateView("v", query, ("x",))
    assert statement("CREATE QUERY q AS SELECT a FROM S") == s.CreateQuery("q", query)
    for kind in ("stream", "relation", "view", "query"):
        assert statement(f"DROP {kind.upper()} x") == s.Drop("x", kind)
    for what in ("streams", "queries", "views", "settings"):
        assert statement(f"SHOW {what}") == s.Show(what)
    assert statement("DESCRIBE S") == s.Describe("S")
    assert statement("EXPLAIN q") == s.Explain("q")
    assert statement("EXPLAIN SELECT a FROM S") == s.Explain(query)
    assert statement("EXPLAIN ANALYZE SELECT a FROM S") == s.Explain(query, analyze=True)
    assert statement("EXPLAIN ANALYZE q") == s.Explain("q", analyze=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", "off"),
        ("on", "on"),
        ("all", "all"),
        ("Chain", "Chain"),
        ("'ticks'", "ticks"),
        ("true", True),
        ("10", 10),
        ("-3", -3),
        ("0.5", 0.5),
    ],
)
def test_a_setting_is_a_word_a_string_or_a_number(text: str, value: object) -> None:
    assert statement(f"SET x = {text}") == s.SetSetting("x", value)  # type: ignore[arg-type]


def test_a_count_of_nothing_is_of_rows() -> None:
    for behind in ("", " FILTER (WHERE a > 1)", " OVER (ORDER BY a)"):
        assert statement(f"SELECT COUNT(){behind} FROM S") == statement(f"SELECT COUNT(*){behind} FROM S")


def test_a_frame_reaches_as_far_as_the_text_of_an_interval() -> None:
    forms = ("INTERVAL '90 minutes' PRECEDING", "INTERVAL '90' MINUTE PRECEDING")
    queries = [f"SELECT SUM(a) OVER (ORDER BY ts RANGE {form}) FROM S" for form in forms]
    assert statement(queries[0]) == statement(queries[1])
    between = "BETWEEN INTERVAL '2 hours' PRECEDING AND INTERVAL '1 hour' PRECEDING"
    assert statement(f"SELECT SUM(a) OVER (ORDER BY ts RANGE {between}) FROM S") is not None


def test_a_comment_begins_behind_a_name_too() -> None:
    for behind in ("# time(1) is over", "#", " #time(30 sec)", "#lengthy (notes)", "#time flies", "#a (b)"):
        assert statement(f"SELECT a FROM S{behind}") == statement("SELECT a FROM S")
