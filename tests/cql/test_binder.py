"""Blocks, names and joins (docs/semantics R1, R3)."""

from __future__ import annotations

import pytest

from minidsms.cql import bound
from minidsms.cql.binder import relation_def, stream_def, view_def
from minidsms.cql.errors import CqlError
from minidsms.cql.parser import parse
from minidsms.cql.printer import print_query
from minidsms.elements import Type
from tests.cql.catalogs import bind_text, column, condition, error, find, shape, small_catalog, write


def write_condition(text: str) -> str:
    return write(condition(text))


def exprs(text: str) -> list[str]:
    node = find(bind_text(text).node, bound.Project)
    assert isinstance(node, bound.Project)
    return [write(e) for e in node.exprs]


def test_a_block_has_the_agreed_shape() -> None:
    text = "SELECT DISTINCT a, SUM(b) FROM S [ROWS 5], R WHERE S.a = R.a GROUP BY a HAVING COUNT(*) > 1"
    inside = "Aggregate(Filter(INNER Join(Window(S), R)))"
    assert shape(bind_text(text).node) == f"Distinct(Project(Filter({inside})))"


def test_commas_make_a_left_deep_product_in_from_order() -> None:
    node = bind_text("SELECT * FROM S1 [NOW], S2 [NOW], S3 [NOW]").node
    assert shape(node) == "Project(INNER Join(INNER Join(Window(S1), Window(S2)), Window(S3)))"
    assert node.schema.names == ("a", "b", "a", "c", "a", "d")


def test_names_are_case_insensitive_and_keep_the_spelling_of_the_query() -> None:
    bound_query = bind_text("select CAR, p.Speed from p [now]")
    assert bound_query.node.schema.names == ("CAR", "Speed")
    assert bound_query.streams == ("P",)


def test_an_expression_without_alias_is_called_as_it_is_written() -> None:
    assert bind_text("SELECT a  +  1, b AS x FROM S [NOW]").node.schema.names == ("a + 1", "x")


def test_a_qualified_star_shows_one_table() -> None:
    assert exprs("SELECT S2.*, 1 FROM S1 [NOW], S2 [NOW]") == ["#2", "#3", "1"]


def test_an_unknown_column_names_the_candidates_and_the_nearest() -> None:
    message = error("SELECT car,\n  speeed FROM P [RANGE 30 SECONDS]")
    assert 'error: unknown column "speeed"' in message
    assert "2 |   speeed" in message
    assert "^^^^^^ P has: car, speed, road" in message
    assert 'help: did you mean "speed"?' in message


def test_an_unknown_stream_names_the_nearest() -> None:
    message = error("SELECT * FROM Q [NOW]")
    assert 'unknown stream, relation or view "Q"' in message and "there are: S, S1" in message


def test_a_renamed_table_is_known_by_its_alias_only() -> None:
    assert '"P" is called "x" here' in error("SELECT P.car FROM P [NOW] AS x")


def test_a_column_of_two_tables_is_ambiguous() -> None:
    message = error("SELECT a FROM S1 [NOW], S2 [NOW]")
    assert 'column name "a" is ambiguous' in message and "write S1.a or S2.a" in message


def test_a_column_that_where_equates_may_be_named_bare() -> None:
    assert exprs("SELECT a FROM S1 [NOW], S2 [NOW] WHERE S2.a = S1.a AND a > 1") == ["#0"]


def test_equality_reaches_through_a_third_table() -> None:
    assert exprs("SELECT a FROM S1 [NOW], S2 [NOW], S3 [NOW] WHERE S1.a = S2.a AND S2.a = S3.a") == ["#0"]


def test_an_equality_under_or_equates_nothing() -> None:
    assert "ambiguous" in error("SELECT a FROM S1 [NOW], S2 [NOW] WHERE S1.a = S2.a OR S1.a = 1")


def test_a_column_equated_by_a_join_condition_may_be_named_bare() -> None:
    assert exprs("SELECT a FROM S1 [NOW] LEFT JOIN S2 [NOW] ON S1.a = S2.a") == ["#0"]


def test_a_full_join_equates_nothing() -> None:
    assert "ambiguous" in error("SELECT a FROM S1 [NOW] FULL OUTER JOIN S2 [NOW] ON S1.a = S2.a")


def test_using_merges_the_columns_of_an_inner_join() -> None:
    assert exprs("SELECT * FROM S1 [NOW] JOIN S2 [NOW] USING (a)") == ["#0", "#1", "#3"]


def test_using_takes_the_right_column_of_a_right_join() -> None:
    assert exprs("SELECT a, b FROM S1 [NOW] RIGHT JOIN S2 [NOW] USING (a)") == ["#2", "#1"]


def test_using_takes_whichever_is_there_in_a_full_join() -> None:
    assert exprs("SELECT a FROM S1 [NOW] FULL JOIN S2 [NOW] USING (a)") == ["coalesce(#0, #2)"]


def test_using_merges_over_three_tables() -> None:
    text = "SELECT * FROM S1 [NOW] JOIN S2 [NOW] USING (a) JOIN S3 [NOW] USING (a)"
    assert exprs(text) == ["#0", "#1", "#3", "#5"]


def test_star_shows_a_merged_column_where_its_join_begins() -> None:
    assert exprs("SELECT * FROM R, S1 [NOW] JOIN S2 [NOW] USING (a)") == ["#0", "#1", "#2", "#3", "#5"]


def test_merged_columns_may_still_be_named_by_their_table() -> None:
    assert exprs("SELECT S2.a FROM S1 [NOW] JOIN S2 [NOW] USING (a)") == ["#2"]


def test_positions_in_a_parenthesised_join_are_those_of_its_own_row() -> None:
    node = bind_text("SELECT * FROM S [NOW], (S1 [NOW] JOIN S2 [NOW] USING (a)) AS j WHERE j.c = S.c").node
    assert write(condition("SELECT * FROM S [NOW], (S1 [NOW] JOIN S2 [NOW] USING (a)) AS j WHERE j.c = S.c")) == (
        "(#6 = #2)"
    )
    assert node.schema.names == ("a", "b", "c", "a", "b", "c")
    product = find(node, bound.Join)
    assert isinstance(product, bound.Join) and isinstance(product.right, bound.Join)
    assert product.right.condition is not None and write(product.right.condition) == "(#0 = #2)"


def test_a_name_may_not_stand_twice_in_from() -> None:
    assert '"S" stands twice in FROM' in error("SELECT * FROM S [NOW], S [ROWS 2]")


def test_a_stream_used_twice_is_one_node() -> None:
    node = find(bind_text("SELECT * FROM S [NOW] x, S [ROWS 2] y").node, bound.Join)
    assert isinstance(node, bound.Join)
    assert node.left is not node.right and node.left.inputs[0] is node.right.inputs[0]


def test_a_query_that_names_a_column_needs_from() -> None:
    assert "FROM" in error("SELECT a")


# ---------------------------------------------------------------------------------------------------------- groups


def test_expressions_over_aggregates_stand_over_the_groups_row() -> None:
    assert exprs("SELECT a, SUM(b) / COUNT(*) + a FROM S [NOW] GROUP BY a") == ["#0", "((#1 / #2) + #0)"]


def test_equal_aggregates_are_computed_once() -> None:
    node = find(bind_text("SELECT SUM(b), sum(S.b) + 1 FROM S [NOW] HAVING SUM(b) > 0").node, bound.Aggregate)
    assert isinstance(node, bound.Aggregate)
    assert len(node.aggregates) == 1 and node.is_global


def test_a_group_key_may_be_an_expression_or_an_alias() -> None:
    assert exprs("SELECT a % 10 AS k, a % 10 + 1, COUNT(*) FROM S [NOW] GROUP BY k") == ["#0", "(#0 + 1)", "#1"]


def test_a_column_of_from_goes_before_an_alias_in_group_by() -> None:
    node = find(bind_text("SELECT a, b AS c FROM S [NOW] GROUP BY a, b, c").node, bound.Aggregate)
    assert isinstance(node, bound.Aggregate)
    assert [write(k) for k in node.keys] == ["#0", "#1", "#2"]


def test_the_select_list_knows_the_names_before_each_expression() -> None:
    assert exprs("SELECT a + 1 AS x, x * 2 AS y, y - x FROM S [NOW]") == [
        "(#0 + 1)", "((#0 + 1) * 2)", "(((#0 + 1) * 2) - (#0 + 1))"
    ]  # fmt: skip
    assert exprs("SELECT a + 1 AS b, b FROM S [NOW]") == ["(#0 + 1)", "#1"]  # a column comes first
    assert exprs("SELECT a AS x, SUM(b) AS s, s + x FROM S [NOW] GROUP BY a") == ["#0", "#1", "(#1 + #0)"]
    assert exprs("SELECT a % 10 AS k, k + 1 AS m, COUNT(*) AS n FROM S [NOW] GROUP BY m, k")[1:] == ["#0", "#2"]
    assert len(exprs("SELECT a AS x, x + 1 AS y, COUNT(*) AS n, n * 2 AS m FROM S [NOW] GROUP BY ALL")) == 4
    ranked = "SELECT a, COUNT(*) AS n, RANK() OVER (ORDER BY n) AS r, r - 1 AS s FROM S [NOW] GROUP BY a QUALIFY s < 3"
    assert isinstance(find(bind_text(ranked).node, bound.Over), bound.Over)


@pytest.mark.parametrize(
    "select",
    [
        "SELECT x + 1 AS y, a AS x FROM S",
        "SELECT x + 1 AS x FROM S",
        "SELECT y AS x, x AS y, COUNT(*) FROM S GROUP BY x",
        "SELECT a AS x, b AS x, x + 1 FROM S",
        "SELECT a AS x, SUM(x) FROM S [NOW] GROUP BY a",
        "SELECT a AS x, b AS x, COUNT(*) FROM S [NOW] GROUP BY x + 1",
        "SELECT x + 1 AS x FROM S WHERE x > 1",
        "SELECT a AS x, b AS x FROM S WHERE x > 1",
        "SELECT a AS x FROM S WHERE a IN (SELECT b FROM R WHERE x > 1)",
    ],
)
def test_a_name_of_the_select_list_is_unknown_before_it_and_inside_aggregates(select: str) -> None:
    assert "unknown column" in error(select)


def test_what_a_name_stands_for_knows_no_parameters_of_the_lambdas_around_it() -> None:
    outside = exprs("SELECT a + 1 AS x, x AS y, TRANSFORM([1], a -> a + x) AS z FROM S")
    assert exprs("SELECT a + 1 AS x, TRANSFORM([1], a -> a + x) AS z FROM S") == [outside[0], outside[2]]
    assert exprs("SELECT a AS x, TRANSFORM([1], x -> x + 1) FROM S") == exprs(
        "SELECT a, TRANSFORM([1], y -> y + 1) FROM S"
    )
    exprs("SELECT SUM(a) AS s, TRANSFORM([1], e -> e * s) AS z FROM S [NOW]")


@pytest.mark.parametrize(
    ("select", "keys"),
    [
        ("SELECT MAX(a) AS b, b % 2 AS p FROM S [NOW] GROUP BY ALL", ["(#1 % 2)"]),
        ("SELECT MAX(a) AS b, b AS p FROM S [NOW] GROUP BY ALL", ["#1"]),
        ("SELECT COUNT(*) AS n, CARDINALITY(TRANSFORM([a], n -> n)) AS m FROM S [NOW] GROUP BY ALL", None),
        ("SELECT COUNT(*) AS n, n + 1 AS m FROM S [NOW] GROUP BY ALL", []),
        ("SELECT 5 AS x, x AS y, a, COUNT(*) AS n FROM S [NOW] GROUP BY ALL", ["#0"]),
    ],
)
def test_group_by_all_takes_what_is_made_of_columns(select: str, keys: list[str] | None) -> None:
    node = find(bind_text(select).node, bound.Aggregate)
    assert isinstance(node, bound.Aggregate)
    assert len(node.keys) == 1 if keys is None else [write(key) for key in node.keys] == keys


def test_where_knows_the_names_of_the_select_list() -> None:
    where = write_condition
    assert where("SELECT a + 1 AS x, x * 2 AS y FROM S WHERE y > 1") == "(((#0 + 1) * 2) > 1)"
    assert where("SELECT a + 1 AS b FROM S WHERE b > 1") == "(#1 > 1)"  # a column comes first
    assert where("SELECT a + 1 AS m, COUNT(*) AS n FROM S [NOW] WHERE m > 1 GROUP BY m HAVING n > 1") == "(#1 > 1)"
    inner = "SELECT a + 1 AS car FROM S [NOW] WHERE car = 1"
    correlated = find(bind_text(f"SELECT speed FROM P [NOW] WHERE EXISTS ({inner})").node, bound.Filter)
    assert "outer" in repr(correlated).lower()  # so do those of an enclosing query


@pytest.mark.parametrize(
    ("select", "clause"),
    [
        ("SELECT a, SUM(b) AS s FROM S [NOW] WHERE s > 1 GROUP BY a", "HAVING"),
        ("SELECT a, SUM(b) AS s, s + 1 AS m FROM S [NOW] WHERE m > 1 GROUP BY a", "HAVING"),
        ("SELECT a, ROW_NUMBER() OVER (ORDER BY b) AS n FROM S [NOW] WHERE n = 1", "QUALIFY"),
    ],
)
def test_what_where_does_not_know_stands_in_another_clause(select: str, clause: str) -> None:
    assert f"put the condition in {clause}" in error(select)
    condition = select[select.index("WHERE") + 6 :].split(" GROUP BY")[0]
    moved = select.replace(f" WHERE {condition}", "") + f" {clause} {condition}"
    bind_text(moved)


def test_a_column_without_a_value_in_a_group_gives_way_to_a_name_of_the_select_list() -> None:
    having = "SELECT a, SUM(b) AS b, COUNT(*) AS c FROM S [NOW] GROUP BY a HAVING b > 1 AND SUM(b) < 9 AND MAX(c) > c"
    assert write_condition(having) == "and((#1 > 1), (#1 < 9), (#3 > #2))"
    assert write_condition("SELECT b AS a, a AS b FROM S [NOW] GROUP BY a, b HAVING a > 1") == "(#0 > 1)"  # the column
    assert write_condition("SELECT a % 2 AS a, SUM(b) AS b FROM S [NOW] GROUP BY a % 2 HAVING a % 2 < b") == "(#0 < #1)"
    assert "has no single value" in error("SELECT a, SUM(b) AS s FROM S [NOW] GROUP BY a HAVING c > 1")
    assert "has no single value" in error("SELECT a, SUM(b) AS b, b + 1 FROM S [NOW] GROUP BY a")
    top = "SELECT a, SUM(b) AS b FROM S [NOW] GROUP BY a QUALIFY RANK() OVER (ORDER BY a) < b ORDER BY -b LIMIT 2"
    assert isinstance(find(bind_text(top).node, bound.Top), bound.Top)


def test_where_of_several_sets_of_keys_knows_the_names_as_they_are_written() -> None:
    query = "SELECT a + 1 AS x, x * 2 AS y, COUNT(*) FROM S [NOW] WHERE y > 1 GROUP BY ROLLUP(x)"
    expanded = print_query(bind_text(query).expanded)
    assert expanded.count("WHERE (a + 1) * 2 > 1") == 2
    assert print_query(bind_text(expanded).expanded) == expanded


def test_a_name_in_where_beside_a_parameter_of_its_column_is_expanded_to_what_means_the_same() -> None:
    query = "SELECT a + 1 AS x, COUNT(*) FROM S [NOW] WHERE LIST_SUM(LIST_FILTER([b], lambda a: x <= a)) > 1 GROUP BY"
    expanded = print_query(bind_text(f"{query} x").expanded)
    assert condition(expanded) == condition(f"{query} x")
    assert "call the parameter otherwise" in error(f"{query} ROLLUP (x)")


def test_expressions_of_order_by_know_the_names_of_the_select_list() -> None:
    node = find(bind_text("SELECT a + 1 AS x FROM S [NOW] ORDER BY x * 2 LIMIT 3").node, bound.Top)
    assert isinstance(node, bound.Top) and isinstance(node.input, bound.Project)
    assert [write(e) for e in node.input.exprs] == ["(#0 + 1)", "((#0 + 1) * 2)"]


def test_names_that_double_what_they_stand_for_are_refused_before_they_take_long() -> None:
    doubled = ", ".join(f"x{i} + x{i} AS x{i + 1}" for i in range(60))
    assert "names stand for more than 10,000 parts" in error(f"SELECT a AS x0, {doubled} FROM S")


def test_a_column_outside_group_by_is_an_error_that_names_it() -> None:
    message = error("SELECT a, b, COUNT(*) FROM S [NOW] GROUP BY a")
    assert 'column "b" has no single value in a group' in message and "GROUP BY" in message


def test_a_star_over_groups_needs_every_column_as_a_key() -> None:
    assert exprs("SELECT * FROM S1 [NOW] GROUP BY a, b") == ["#0", "#1"]
    assert 'column "b"' in error("SELECT * FROM S1 [NOW] GROUP BY a")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT a FROM S WHERE SUM(b) > 1", "may not stand in WHERE"),
        ("SELECT SUM(COUNT(*)) FROM S [NOW]", "may not stand in the aggregate SUM"),
        ("SELECT a FROM S GROUP BY COUNT(*)", "may not stand in GROUP BY"),
        ("SELECT COUNT(*) FROM S GROUP BY 1", "GROUP BY"),
        ("SELECT SUM(*) FROM S", "COUNT(*)"),
        ("SELECT MIN(a, b) FROM S", "LEAST"),
        ("SELECT SUM(road) FROM P", "SUM does not take TEXT"),
        ("SELECT FIRST(a) FROM R", "arrival order of one windowed stream"),
        ("SELECT LAST(S1.a) FROM S1, S2", "arrival order of one windowed stream"),
        ("SELECT VARIANCE(DISTINCT a) FROM S", "takes no DISTINCT"),
        ("SELECT ABS(DISTINCT a) FROM S", "takes no DISTINCT"),
        ("SELECT VARIANCE(v) FROM E [NOW]", "VARIANCE does not take INTERVAL"),
    ],
)
def test_a_misplaced_aggregate_is_refused(text: str, reason: str) -> None:
    assert reason in error(text)


def test_first_and_last_read_one_windowed_stream_through_a_filter() -> None:
    assert exprs("SELECT FIRST(a), LAST(b) FROM S [ROWS 3] WHERE c > 1") == ["#0", "#1"]


def test_distinct_is_no_difference_to_min_and_max() -> None:
    node = find(bind_text("SELECT MIN(DISTINCT a), COUNT(DISTINCT a) FROM S [NOW]").node, bound.Aggregate)
    assert isinstance(node, bound.Aggregate)
    assert [a.distinct for a in node.aggregates] == [False, True]


def test_the_events_of_a_global_aggregate_are_its_windows_or_its_relations() -> None:
    for text, expected in (
        ("SELECT COUNT(*) FROM S [NOW], R", ["Window(S)"]),
        ("SELECT COUNT(*) FROM R", ["R"]),
        ("SELECT COUNT(*) FROM R WHERE a IN (SELECT a FROM S1 [ROWS 2])", ["Window(S1)"]),
    ):
        node = find(bind_text(text).node, bound.Aggregate)
        assert isinstance(node, bound.Aggregate)
        assert [shape(e) for e in node.events] == expected


# --------------------------------------------------------------------------------------------------- set operators


def test_set_operators_take_their_names_from_the_left_and_agree_on_types() -> None:
    node = bind_text("SELECT car FROM P [NOW] UNION SELECT speed AS s FROM P [NOW]").node
    assert shape(node) == "UNION(Project(Window(P)), Project(Window(P)))"
    assert str(node.schema) == "car FLOAT"


def test_set_operators_refuse_different_widths_and_types() -> None:
    assert "as many columns" in error("SELECT a FROM S UNION SELECT a, b FROM S")
    assert "cannot bring together" in error("SELECT car FROM P EXCEPT SELECT road FROM P")


def test_in_a_script_set_operators_keep_duplicates() -> None:
    catalog = small_catalog()
    catalog.bag_set_operations = True
    bound_query = bind_text("SELECT a FROM S [NOW] EXCEPT SELECT a FROM R", catalog)
    assert shape(bound_query.node).startswith("EXCEPT ALL")


# ---------------------------------------------------------------------------------------------------- declarations


def test_a_stream_declaration_resolves_its_columns_and_times() -> None:
    text = "CREATE STREAM n (k INTEGER, at TIMESTAMP) TIMESTAMP BY at SLACK 2 SECONDS LATE DROP KEY (k) FROM 'f.csv'"
    (statement,) = parse(text)
    declared = stream_def(statement, small_catalog(), text)  # type: ignore[arg-type]
    assert (declared.timestamp_by, declared.slack, declared.late_drop, declared.key) == (1, 2000, True, (0,))
    assert declared.source is not None and declared.source.path == "f.csv"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CREATE STREAM s (a INTEGER)", 'there is a stream "s" already'),
        ("CREATE STREAM n (a INTEGER, A TEXT)", 'the column "A" stands twice'),
        ("CREATE STREAM n (a INTEGER) TIMESTAMP BY b", 'unknown column "b"'),
        ("CREATE STREAM n (a TEXT) TIMESTAMP BY a", "this is TEXT"),
        ("CREATE STREAM n (a INTEGER) FROM 'x.csv'", "needs TIMESTAMP BY"),
        ("CREATE RELATION n (a INTEGER) KEY (x)", 'unknown column "x"'),
        ("CREATE VIEW s AS SELECT * FROM P", "already"),
        ("CREATE VIEW n (x, y) AS SELECT a FROM S", "2 column names for 1"),
        ("CREATE VIEW n AS SELECT x FROM S AS t (x, y, z, u)", "4 column names for"),
        ("CREATE VIEW n AS SELECT q FROM S", 'unknown column "q"'),
    ],
)
def test_a_faulty_declaration_is_refused(text: str, reason: str) -> None:
    (statement,) = parse(text)
    define = {"CreateStream": stream_def, "CreateRelation": relation_def, "CreateView": view_def}
    with pytest.raises(CqlError) as caught:
        define[type(statement).__name__](statement, small_catalog(), text)  # type: ignore[operator]
    assert reason in str(caught.value)


def test_a_bare_null_takes_the_type_beside_it() -> None:
    assert column("i + NULL").type is Type.INTEGER and column("COALESCE(NULL, x)").type is Type.TEXT
