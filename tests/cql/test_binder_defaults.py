"""Windows, and what is written out by default (docs/semantics W, S, D)."""

from __future__ import annotations

from dataclasses import replace

import pytest

import minidsms
from minidsms.cql import bound
from minidsms.cql.binder import bind_view, is_monotonic
from minidsms.cql.bound import StreamKind
from minidsms.cql.errors import CqlError
from minidsms.cql.parser import parse_query
from minidsms.cql.printer import print_query
from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.elements import Type
from tests.cql.catalogs import bind_text, error, find, shape, small_catalog, with_view


def spec(window: str) -> WindowSpec:
    node = find(bind_text(f"SELECT a FROM S [{window}]").node, bound.Window)
    assert isinstance(node, bound.Window)
    return node.spec


# --------------------------------------------------------------------------------------------------------- windows


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("RANGE 10 SECONDS", WindowSpec(WindowKind.RANGE, range_=10_000)),
        ("RANGE 10", WindowSpec(WindowKind.RANGE, range_=10)),
        ("RANGE 0", WindowSpec(WindowKind.RANGE, range_=0)),
        ("NOW", WindowSpec(WindowKind.RANGE, range_=0)),
        ("RANGE 1 MINUTE SLIDE 10 SECONDS", WindowSpec(WindowKind.RANGE, range_=60_000, slide=10_000)),
        ("RANGE UNBOUNDED", WindowSpec(WindowKind.UNBOUNDED)),
        ("ROWS UNBOUNDED", WindowSpec(WindowKind.UNBOUNDED)),
        ("ROWS 10,000", WindowSpec(WindowKind.ROWS, rows=10_000)),
        ("TUMBLE 1 MINUTE", WindowSpec(WindowKind.HOP, range_=60_000, slide=60_000)),
        ("HOP 1 MINUTE EVERY 10 SECONDS", WindowSpec(WindowKind.HOP, range_=60_000, slide=10_000)),
        ("SESSION 1 MINUTE PARTITION BY a", WindowSpec(WindowKind.SESSION, range_=60_000, keys=(0,))),
        ("ROWS 4 SLIDE 2", WindowSpec(WindowKind.ROWS, rows=4, slide=2)),
        ("PARTITION BY c, S.a ROWS 2", WindowSpec(WindowKind.PARTITION, rows=2, keys=(2, 0))),
        ("PARTITION BY a ROWS 2 RANGE 5", WindowSpec(WindowKind.PARTITION, range_=5, rows=2, keys=(0,))),
    ],
)
def test_a_window_is_ticks_rows_and_positions(window: str, expected: WindowSpec) -> None:
    assert spec(window) == expected


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        ("ROWS 0", "at least 1"),
        ("ROWS 2 SLIDE 0", "at least 1"),
        ("RANGE 5 SLIDE 0", "at least one tick"),
        ("RANGE 0 SLIDE 5", "at least one tick"),
        ("HOP 5 EVERY 0", "at least one tick"),
        ("TUMBLE 0", "at least one tick"),
        ("RANGE 1 NANOSECOND", "does not fall on a tick"),
        ("RANGE 999999999999 DAYS", "does not fit"),
        ("PARTITION BY q ROWS 1", 'unknown column "q"'),
    ],
)
def test_a_window_that_cannot_be_is_refused(window: str, reason: str) -> None:
    assert reason in error(f"SELECT a FROM S [{window}]")


@pytest.mark.parametrize("window", [f"HOP {2**62 + 1} EVERY 2", f"RANGE {2**62 + 1} SLIDE 2", f"TUMBLE {2**62 + 1}"])
def test_a_window_that_shows_its_bounds_starts_within_64_bits(window: str) -> None:
    for column in ("window_start", "window_end"):
        assert "at most 4611686018427387904 ticks" in error(f"SELECT {column} FROM S [{window}]")
    joined = f"S [{window}] AS s ASOF JOIN S AS t ON s.a = t.a AND s.ts >= t.ts"
    assert "at most" in error(f"SELECT window_start FROM {joined}")


def test_a_partition_window_does_not_slide() -> None:
    assert "SLIDE" in error("SELECT a FROM S [PARTITION BY a ROWS 2 SLIDE 2]")


def test_a_window_in_parentheses_belongs_to_the_stream() -> None:
    node = bind_text("SELECT LastRep.a FROM (S [PARTITION BY a ROWS 1]) AS LastRep").node
    assert shape(node) == "Project(Window(S))"


def test_a_base_relation_takes_no_window() -> None:
    assert '"R" is a relation' in error("SELECT * FROM R [ROWS 5]")


def test_a_window_on_a_window_is_refused() -> None:
    assert "already has a window" in error("SELECT * FROM (S [NOW]) [ROWS 5]")


# -------------------------------------------------------------------------------------------------------- defaults


def test_a_stream_without_window_is_unbounded_and_a_monotonic_query_is_an_istream() -> None:
    bound_query = bind_text("SELECT a FROM S WHERE b > 1")
    assert shape(bound_query.node) == "ISTREAM(Project(Filter(Window(S))))"
    assert "ISTREAM(a)" in print_query(bound_query.expanded)
    assert "S [RANGE UNBOUNDED]" in print_query(bound_query.expanded)


@pytest.mark.parametrize(
    ("text", "monotonic"),
    [
        ("SELECT a FROM S", True),
        ("SELECT a FROM S [ROWS UNBOUNDED]", True),
        ("SELECT a FROM S [RANGE 5]", False),
        ("SELECT a FROM R", False),
        ("SELECT DISTINCT a FROM S", True),
        ("SELECT a FROM S GROUP BY a", True),
        ("SELECT a, COUNT(*) FROM S GROUP BY a", False),
        ("SELECT COUNT(*) FROM S", False),
        ("SELECT S1.b FROM S1, S2 WHERE S1.a = S2.a", True),
        ("SELECT S1.b FROM S1, R", False),
        ("SELECT S1.b FROM S1 LEFT JOIN S2 ON S1.a = S2.a", False),
        ("SELECT a FROM S UNION SELECT a FROM S1", True),
        ("SELECT a FROM S INTERSECT SELECT a FROM S1", True),
        ("SELECT a FROM S EXCEPT SELECT a FROM S1", False),
        ("SELECT a FROM S WHERE a IN (SELECT a FROM S1)", True),
        ("SELECT a FROM S WHERE a NOT IN (SELECT a FROM S1)", False),
        ("SELECT a FROM S WHERE a IN (SELECT a FROM S1 [ROWS 2])", False),
        ("SELECT a FROM S WHERE EXISTS (SELECT * FROM S1 WHERE S1.a = S.b) AND b > 1", True),
        ("SELECT a FROM S WHERE a > ALL (SELECT a FROM S1)", False),
        ("SELECT a FROM S WHERE a > ANY (SELECT a FROM S1)", True),
        ("SELECT a + (SELECT MAX(a) FROM S1) FROM S", False),
    ],
)
def test_only_what_can_never_shrink_becomes_an_istream(text: str, monotonic: bool) -> None:
    node = bind_text(text).node
    assert (node.kind == "stream") is monotonic
    assert is_monotonic(node) is monotonic


def test_both_spellings_of_istream_mean_the_same() -> None:
    a = bind_text("SELECT ISTREAM(a, SUM(b)) FROM S [NOW] GROUP BY a")
    b = bind_text("ISTREAM (SELECT a, SUM(b) FROM S [NOW] GROUP BY a)")
    assert shape(a.node) == shape(b.node) and a.node.schema == b.node.schema and a.expanded == b.expanded


def test_a_monotonic_subquery_with_a_window_gets_istream() -> None:
    bound_query = bind_text("SELECT a FROM (SELECT a FROM S WHERE b > 1) [ROWS 5] AS x")
    assert shape(bound_query.node) == "Project(Window(ISTREAM(Project(Filter(Window(S))))))"
    assert "ISTREAM(a)" in print_query(bound_query.expanded)


def test_another_subquery_with_a_window_is_an_error_that_shows_how_to_write_it() -> None:
    message = error("SELECT a FROM (SELECT a FROM S [ROWS 3]) [RANGE 5 SECONDS]")
    assert "can lose rows" in message and "(ISTREAM (SELECT ..)) [RANGE 5 SECONDS]" in message


def test_a_derived_stream_without_window_is_unbounded() -> None:
    bound_query = bind_text("SELECT COUNT(*) FROM (SELECT DSTREAM(a) FROM S [ROWS 3]) AS d")
    assert shape(bound_query.node) == "Project(Aggregate(Window(DSTREAM(Project(Window(S))))))"
    assert "[RANGE UNBOUNDED] AS d" in print_query(bound_query.expanded)


def test_star_is_written_out_with_names() -> None:
    shown = print_query(bind_text("SELECT * FROM S1 [NOW], S2 [NOW]").expanded)
    assert "S1.a, b, S2.a, c" in " ".join(shown.split())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM S",
        "SELECT * FROM S1, S2 [ROWS 3] WHERE S1.a = S2.a",
        "SELECT * FROM S1 [NOW] FULL JOIN S2 [NOW] USING (a)",
        "SELECT a FROM (SELECT a FROM S) [ROWS 5]",
        "SELECT * FROM S WHERE a IN (SELECT a FROM S1 WHERE S1.b = S.b)",
        "SELECT * FROM (SELECT a, a FROM S), S1",
        "SELECT a FROM S UNION SELECT ISTREAM(a) FROM S1",
        "SELECT x FROM V [ROWS 3]",
        "SELECT * FROM W",
        "SELECT COUNT(*) FROM (SELECT a FROM S) AS d (z) GROUP BY z",
    ],
)
def test_the_expanded_query_means_the_same_and_expands_to_itself(text: str) -> None:
    catalog = with_view(small_catalog(), "CREATE VIEW V (x) AS SELECT a FROM S WHERE b > 1")
    with_view(catalog, "CREATE VIEW W AS SELECT RSTREAM(a) FROM S [NOW]")
    first = bind_text(text, catalog)
    printed = print_query(first.expanded)
    second = bind_text(printed, catalog)
    assert second.node.schema.types == first.node.schema.types
    assert print_query(second.expanded) == printed
    assert parse_query(printed) == first.expanded
    # A query that is a stream in its text and one that became one have the same nodes.
    assert shape(second.node).count("Window") == shape(first.node).count("Window")


def test_rstream_speaks_at_its_windows_and_relations() -> None:
    node = bind_text("SELECT RSTREAM(S.a) FROM S [ROWS 2], R").node
    assert isinstance(node, bound.RelationToStream)
    assert [shape(e) for e in node.events] == ["Window(S)", "R"] and not node.ticks


def test_rstream_speaks_at_ticks_when_the_setting_says_so() -> None:
    catalog = small_catalog()
    catalog.rstream_ticks = True
    node = bind_text("SELECT RSTREAM(a) FROM S [ROWS 2]", catalog).node
    assert isinstance(node, bound.RelationToStream) and node.ticks


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("SELECT ISTREAM(a) FROM S WHERE b > 1", True),
        ("SELECT RSTREAM(a) FROM S [NOW]", True),
        ("SELECT RSTREAM(a) FROM S [ROWS 1]", False),
        ("SELECT ISTREAM(a) FROM S [NOW]", False),
        ("SELECT DSTREAM(a) FROM S", False),
        ("SELECT ISTREAM(DISTINCT a) FROM S", False),
        ("SELECT ISTREAM(S1.a) FROM S1, S2", False),
        ("SELECT ISTREAM(a) FROM S WHERE a IN (SELECT a FROM R)", False),
    ],
)
def test_filters_and_projections_of_one_stream_keep_its_order(text: str, keeps: bool) -> None:
    if "DISTINCT" in text:
        text = "ISTREAM (SELECT DISTINCT a FROM S)"
    node = bind_text(text).node
    assert isinstance(node, bound.RelationToStream) and node.keeps_order is keeps


def test_a_join_over_streams_without_windows_is_warned_of() -> None:
    warnings = bind_text("SELECT S1.a FROM S1, S2 [NOW] WHERE S1.a = S2.a").warnings
    assert warnings == ("S1 has no window: the join keeps every row, as with [RANGE UNBOUNDED]",)
    assert bind_text("SELECT a FROM S").warnings == ()


@pytest.mark.parametrize(
    ("condition", "is_told"),
    [
        ("ts > CURRENT_TIMESTAMP - INTERVAL '5' MINUTE", True),
        ("at >= CURRENT_TIMESTAMP - INTERVAL '5' MINUTE AND v > 1", True),
        ("CURRENT_TIMESTAMP - INTERVAL '5' MINUTE < At.at", True),
        ("since > CURRENT_TIMESTAMP - INTERVAL '5' MINUTE", False),
        ("HOUR(at) = 3 AND CURRENT_TIMESTAMP > TIMESTAMP '2024-01-01'", False),
    ],
)
def test_an_instant_compared_with_itself_is_warned_of(condition: str, is_told: bool) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM At (at TIMESTAMP, since TIMESTAMP, v INTEGER) TIMESTAMP BY at")
        db.query(f"SELECT v FROM At WHERE {condition}")
        assert any("At [RANGE 5 MINUTES] holds the last five minutes" in told for told in db.warnings) == is_told


# ----------------------------------------------------------------------------------------------------------- views


def test_a_view_is_bound_once_however_often_it_is_named() -> None:
    catalog = with_view(small_catalog(), "CREATE VIEW V AS SELECT a, COUNT(*) AS n FROM S [ROWS 5] GROUP BY a")
    node = find(bind_text("SELECT x.a FROM V x, V y WHERE x.a = y.a", catalog).node, bound.Join)
    assert isinstance(node, bound.Join) and node.left is node.right


def test_a_monotonic_view_with_a_window_becomes_one_stream() -> None:
    catalog = with_view(small_catalog(), "CREATE VIEW V AS SELECT a FROM S WHERE b > 1")
    node = find(bind_text("SELECT x.a FROM V [ROWS 1] x, V [ROWS 2] y", catalog).node, bound.Join)
    assert isinstance(node, bound.Join)
    assert node.left.inputs[0] is node.right.inputs[0] and node.left.inputs[0].kind == "stream"


def test_a_view_that_can_shrink_takes_no_window() -> None:
    catalog = with_view(small_catalog(), "CREATE VIEW V AS SELECT a FROM S [ROWS 3]")
    with pytest.raises(CqlError) as caught:
        bind_text("SELECT a FROM V [NOW]", catalog)
    assert "(ISTREAM (SELECT * FROM V)) [NOW]" in str(caught.value)


def test_a_views_columns_and_types_are_those_declared() -> None:
    catalog = with_view(small_catalog(), "CREATE VIEW V (p, q) AS SELECT a, COUNT(*) FROM S [NOW] GROUP BY a")
    assert bind_text("SELECT q, p FROM V", catalog).node.schema.names == ("q", "p")
    assert bind_view(catalog.views["v"], catalog).schema.names == ("p", "q")


def test_a_scripts_view_has_the_types_its_vtable_gives() -> None:
    catalog = with_view(small_catalog(), "CREATE VIEW V AS SELECT ISTREAM(a) FROM S")
    catalog.views["v"] = replace(catalog.views["v"], columns=("p",), types=(Type.FLOAT,))
    node = bind_text("SELECT p FROM V [NOW]", catalog).node
    assert str(node.schema) == "p FLOAT"
    catalog.views["v"] = replace(catalog.views["v"], types=(Type.TEXT,))
    with pytest.raises(CqlError, match="is INTEGER, not TEXT"):
        bind_text("SELECT p FROM V", catalog)


def test_forty_views_each_used_twice_bind_in_linear_time() -> None:
    catalog = with_view(small_catalog(), "CREATE VIEW v0 AS SELECT a FROM S [ROWS 5]")
    for i in range(1, 61):
        with_view(catalog, f"CREATE VIEW v{i} AS SELECT x.a FROM v{i - 1} x, v{i - 1} y WHERE x.a = y.a")
    assert bind_text("SELECT a FROM v60", catalog).streams == ("S",)


def test_a_chain_of_many_views_binds() -> None:
    catalog = with_view(small_catalog(), "CREATE VIEW v0 AS SELECT a FROM S")
    for i in range(1, 61):
        with_view(catalog, f"CREATE VIEW v{i} AS SELECT ISTREAM(a) FROM v{i - 1} WHERE a <> {i}")
    assert bind_text("SELECT a FROM v60", catalog).node.kind == "stream"


def test_a_view_that_names_itself_is_refused() -> None:
    catalog = with_view(small_catalog(), "CREATE VIEW V AS SELECT a FROM S")
    with_view(catalog, "CREATE VIEW W AS SELECT a FROM V")
    catalog.views["v"] = catalog.views.pop("w")
    with pytest.raises(CqlError, match="defined by itself"):
        bind_text("SELECT a FROM V", catalog)


def test_an_error_in_a_view_shows_the_views_text() -> None:
    catalog = with_view(small_catalog(), "CREATE VIEW V AS SELECT speed FROM P")
    del catalog.streams["p"]
    with pytest.raises(CqlError) as caught:
        bind_text("SELECT speed FROM V", catalog)
    assert "CREATE VIEW V AS SELECT speed FROM P" in str(caught.value)


def test_the_kind_of_stream_operator_is_kept() -> None:
    node = bind_text("DSTREAM (SELECT a FROM S [NOW])").node
    assert isinstance(node, bound.RelationToStream) and node.op is StreamKind.DSTREAM
