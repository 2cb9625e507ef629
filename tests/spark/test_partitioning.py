"""Which queries can be cut into parts for engines in tasks: by key, by time, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from minidsms.cql.binder import bind
from minidsms.cql.catalog import Catalog, RelationDef, StreamDef
from minidsms.cql.parser import parse_query
from minidsms.elements import Schema, Type
from minidsms.spark.partitioning import ByKey, BySlices, Whole, by_key, partitioning
from minidsms.testing.compare import bind_case, netted, run_definition
from minidsms.testing.feeds import Push, random_feed
from minidsms.testing.generators import Case, declaration, with_feed
from minidsms.testing.user_definitions import USER_AGGREGATES, USER_FUNCTIONS
from tests.seeds import seeds

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


NAMES = ["Sa", "Sb", "Sf", "Rel"]
BY_KEY = (
    "SELECT k + 1 AS n, k FROM Sa [RANGE 3] WHERE v > 1",
    "SELECT k, SUM(v) AS s, MAX(x) AS m FROM Sa GROUP BY k",
    "SELECT a.k, b.v FROM Sa [PARTITION BY k ROWS 1] AS a, Sb [RANGE 3] AS b, Rel AS r WHERE a.k = b.k AND b.k = r.k",
    "SELECT a.k, b.v FROM Sa [RANGE 4] AS a LEFT JOIN Sb AS b ON a.k = b.k AND a.v < b.v",
    "SELECT DISTINCT t, k FROM Sa [RANGE 5 SLIDE 2]",
    "SELECT k FROM Sa [RANGE 5] UNION SELECT k FROM Rel",
    "SELECT k, t FROM Sa EXCEPT ALL SELECT k, t FROM Sb [RANGE 3]",
    "SELECT k, v FROM Sa [RANGE 9] WHERE k IN (SELECT k FROM Sb [RANGE 4])",
    "SELECT k, v FROM Sa AS a WHERE NOT EXISTS (SELECT * FROM Sb [RANGE 4] AS b WHERE b.k = a.k)",
    "SELECT k, (SELECT SUM(v) FROM Sb WHERE Sb.k = Sa.k) AS s FROM Sa",
    "SELECT k, window_end, COUNT(*) AS n FROM Sa [HOP 4 EVERY 2] GROUP BY k, window_end",
    "SELECT k, ts, e FROM Sf [RANGE 6], UNNEST(l) AS e",
    "SELECT e, k, COUNT(*) AS n FROM Sf, UNNEST(l) AS e GROUP BY e, k",
    "SELECT DSTREAM(k, v) FROM Sa [PARTITION BY k ROWS 2]",
    "SELECT k, COUNT(*) AS n FROM (SELECT ISTREAM(k, v) FROM Sa [RANGE 3] WHERE v < 3) [RANGE 4] GROUP BY k",
)


def parts_of(case: Case, how: ByKey) -> Iterator[Case]:
    """The case with those elements alone whose keys are of one part."""
    for part in range(3):
        pushes = [
            Push(s.name, tuple(e for e in s.rows if hash(e[2][how.columns[s.name.lower()]]) % 3 == part))
            if isinstance(s, Push) and s.name.lower() in how.columns
            else s
            for s in case.feed
        ]
        yield with_feed(case, tuple(step for step in pushes if not isinstance(step, Push) or step.rows))


@pytest.mark.parametrize("query", BY_KEY)
def test_the_answers_of_the_parts_are_together_that_of_the_whole(query: str) -> None:
    from minidsms.spark.compiler import logical_plan

    for seed in seeds(12):
        case = Case(tuple(map(declaration, NAMES)), query, random_feed(Random(seed), NAMES, 16, may_be_extreme=False))
        how = by_key(logical_plan(bind_case(case).node, query))
        assert isinstance(how, ByKey)
        together = [change for part in parts_of(case, how) for change in run_definition(part).changes]
        assert netted(together) == run_definition(case).netted
