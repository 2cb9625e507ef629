"""Which queries can be cut into parts for engines in tasks: by key, by time, or not at all."""

from __future__ import annotations

import pytest

from minidsms.cql.binder import bind
from minidsms.cql.catalog import Catalog, RelationDef, StreamDef
from minidsms.cql.parser import parse_query
from minidsms.elements import Schema, Type
from minidsms.spark.partitioning import ByKey, BySlices, Whole, partitioning
from minidsms.testing.user_definitions import USER_AGGREGATES, USER_FUNCTIONS

S = Schema.of(("k", Type.INTEGER), ("v", Type.INTEGER))
LISTS = Schema.of(("k", Type.INTEGER), ("list", Type.INTEGER.list_type))


def cut(text: str) -> ByKey | BySlices | Whole:
    """How the query's plan can be cut."""
    from minidsms.spark.compiler import logical_plan

    catalog = Catalog(functions=dict(USER_FUNCTIONS), aggregates=dict(USER_AGGREGATES))
    catalog.streams = {name.lower(): StreamDef(name, S) for name in ("A", "B")}
    catalog.streams["l"] = StreamDef("L", LISTS)
    catalog.relations = {"r": RelationDef("R", S)}
    return partitioning(logical_plan(bind(parse_query(text), catalog, text).node, text))


def test_groups_are_cut_by_their_key() -> None:
    assert cut("SELECT k, ua_span(v) FROM A GROUP BY k") == ByKey({"a": 0})


def test_a_join_on_the_key_is_cut_by_it_on_both_sides() -> None:
    found = cut(
        "SELECT A.k, uf_twice(B.v) FROM A [PARTITION BY k ROWS 1], B [RANGE 3], R WHERE A.k = B.v AND B.v = R.k"
    )
    assert found == ByKey({"a": 0, "b": 1, "r": 0})


def test_without_the_key_in_the_answer_equal_rows_of_different_keys_could_cancel() -> None:
    assert isinstance(cut("SELECT ISTREAM(ua_span(v)) FROM A GROUP BY k"), Whole)


def test_elements_of_lists_are_no_key_for_equal_ones_stand_in_different_lists() -> None:
    assert isinstance(cut("SELECT e, COUNT(*) FROM L, UNNEST(L.list) AS e GROUP BY e"), Whole)
    assert cut("SELECT e, k, COUNT(*) FROM L, UNNEST(L.list) AS e GROUP BY e, k") == ByKey({"l": 0})


def test_ranges_are_cut_by_time_whatever_the_key() -> None:
    assert cut("SELECT ISTREAM(ua_span(v)) FROM A [RANGE 3] GROUP BY k") == BySlices(5)
    assert cut("SELECT k, ua_span(v) FROM A [RANGE 3] GROUP BY k") == BySlices(4)


def test_first_rows_and_windows_that_hop_are_cut_by_time() -> None:
    assert cut("SELECT k FROM A [RANGE 3] ORDER BY v LIMIT 2") == BySlices(4)
    assert cut("SELECT k, window_end, ts FROM A [HOP 3 EVERY 2]") == BySlices(6)


def test_sessions_are_numbered_over_all_keys_and_reach_back_without_bound() -> None:
    found = cut("SELECT k FROM A [SESSION 3 PARTITION BY k]")
    assert isinstance(found, Whole) and "SESSION" in found.no_key and "SESSION" in found.no_time


def test_a_join_on_something_else_is_cut_by_time() -> None:
    found = cut("ISTREAM (SELECT A.k, uf_twice(B.v) FROM A [RANGE 30], B [RANGE 3 SLIDE 2] WHERE A.k < B.k)")
    assert found == BySlices(32)


def test_windows_over_derived_streams_add_up() -> None:
    text = "SELECT COUNT(*) FROM (RSTREAM (SELECT uf_twice(k) AS k FROM A [RANGE 30] WHERE v > 0)) [RANGE 5]"
    assert cut(text) == BySlices(37)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("SELECT k, ua_span(v) FROM A [ROWS 3] GROUP BY k", "ROWS"),
        ("SELECT ua_span(v) FROM A", "without GROUP BY"),
        ("RSTREAM (SELECT k, ua_span(v) FROM A GROUP BY k)", "RSTREAM"),
    ],
)
def test_what_cannot_be_cut_says_why(text: str, word: str) -> None:
    found = cut(text)
    assert isinstance(found, Whole)
    assert word in found.no_key
    assert "without bound" in found.no_time
