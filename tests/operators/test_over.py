"""OVER against its definition (docs/semantics R7), where what is kept depends on what is known of the rows."""

from __future__ import annotations

import math
from collections import Counter
from random import Random
from typing import Any

import pytest

import minidsms
from minidsms.testing.compare import check, run_definition
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case, declaration
from tests.seeds import seeds

NAMES = ("Sa", "Rel")
IN_ORDER = [
    "ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts)",
    "RANK() OVER (ORDER BY ts NULLS FIRST, v DESC)",
    "DENSE_RANK() OVER (PARTITION BY k ORDER BY ts, v)",
    "LAG(t, 2) OVER (PARTITION BY k ORDER BY ts)",
    "LEAD(v) OVER (PARTITION BY k ORDER BY ts)",
    "LAG(t, 2, t) OVER (PARTITION BY k ORDER BY ts)",
    "LEAD(v, 1, k - v) OVER (PARTITION BY k ORDER BY ts)",
    "SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS 2 PRECEDING)",
    "SUM(x) OVER (PARTITION BY k ORDER BY ts)",
    "AVG(x) OVER (ORDER BY ts ROWS UNBOUNDED PRECEDING)",
    "AVG(CAST(v AS INTERVAL)) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    "MAX(t) OVER (PARTITION BY k ORDER BY ts)",
    "COUNT(*) OVER (ORDER BY ts DESC)",
    "SUM(x) OVER (PARTITION BY k ORDER BY ts RANGE 3 PRECEDING)",
    "MIN(v) OVER (ORDER BY ts RANGE BETWEEN 4 PRECEDING AND 1 PRECEDING)",
    "MAX(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING)",
    "AVG(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING)",
    "COUNT(v) OVER (ORDER BY ts ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)",
    "SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)",
    "SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)",
    "MAX(t) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING)",
    "FIRST_VALUE(t) OVER (PARTITION BY k ORDER BY ts)",
    "LAST_VALUE(v) OVER (PARTITION BY k ORDER BY ts)",
    "NTH_VALUE(v, 3) OVER (PARTITION BY k ORDER BY ts ROWS UNBOUNDED PRECEDING)",
    "FIRST_VALUE(v) OVER (ORDER BY ts ROWS 3 PRECEDING)",
    "NTH_VALUE(t, 2) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN 3 PRECEDING AND CURRENT ROW)",
    "NTILE(3) OVER (PARTITION BY k ORDER BY ts)",
    "CUME_DIST() OVER (ORDER BY ts)",
]
FRAMES = [
    "",
    "RANGE 1 PRECEDING",
    "RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING",
]
FIRST = ["ROW_NUMBER", "RANK", "DENSE_RANK"]


def case_of(query: str, seed: int) -> Case:
    feed = random_feed(Random(seed), NAMES, 40, may_be_extreme=False)
    return Case(tuple(map(declaration, NAMES)), query, feed)


@pytest.mark.parametrize("call", IN_ORDER)
def test_rows_that_no_later_row_can_change_are_let_go_and_the_answer_stays(call: str) -> None:
    case = case_of(f"SELECT k, v, {call} AS r FROM Sa", 1)
    expected = run_definition(case)
    for batch_size in (1, 7, 1000):
        assert check(case, None, expected, batch_size=batch_size) == "agreed"


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1000])
@pytest.mark.parametrize("key", ["d", "d DESC NULLS FIRST"])
def test_a_frame_reaches_so_many_days_from_a_date(key: str, batch_size: int) -> None:
    frames = (
        "RANGE 1 PRECEDING",
        "RANGE BETWEEN INTERVAL '2 days' PRECEDING AND 24 HOURS PRECEDING",
        "RANGE BETWEEN CURRENT ROW AND INTERVAL '1' WEEK FOLLOWING",
    )
    aggregates = ("SUM(v)", "FIRST_VALUE(v)", "MAX(k)", "MEDIAN(v)")
    calls = [f"{call} OVER (PARTITION BY k ORDER BY {key} {frame})" for frame in frames for call in aggregates]
    query = f"SELECT d, v, {', '.join(f'{call} AS c{i}' for i, call in enumerate(calls))} FROM Sf [RANGE 4]"
    feed = random_feed(Random(batch_size), ("Sf",), 40, may_be_extreme=False)
    assert check(Case((declaration("Sf"),), query, feed), batch_size=batch_size) == "agreed"


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1000])
@pytest.mark.parametrize("key", ["v", "v DESC NULLS FIRST, x", "ts"])
@pytest.mark.parametrize("source", ["Sa", "Sa [RANGE 4]", "Sa [ROWS 6]"])
def test_a_frame_reaches_so_many_groups_of_equal_keys(source: str, key: str, batch_size: int) -> None:
    over = f"OVER (PARTITION BY k ORDER BY {key} GROUPS BETWEEN"
    calls = (
        f"SUM(v) {over} 1 PRECEDING AND CURRENT ROW), DENSE_RANK() OVER (PARTITION BY k ORDER BY {key}), "
        f"COUNT(*) {over} UNBOUNDED PRECEDING AND 1 PRECEDING), LAST_VALUE(t) {over} CURRENT ROW AND 1 FOLLOWING), "
        f"MAX(x) {over} 1 FOLLOWING AND UNBOUNDED FOLLOWING), ARRAY_AGG(v) {over} 1 PRECEDING AND 1 PRECEDING)"
    )
    assert check(case_of(f"SELECT k, {calls} FROM {source}", batch_size), batch_size=batch_size) == "agreed"


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("key", ["v", "v DESC NULLS FIRST"])
def test_a_frame_holds_what_its_bounds_say_whatever_the_order(frame: str, key: str) -> None:
    rows = f"OVER (PARTITION BY k ORDER BY {key} {frame})"
    picked = f"FIRST_VALUE(t) {rows} AS a, LAST_VALUE(t) {rows} AS b, NTH_VALUE(t, 2) {rows} AS c"
    shares = f"PERCENT_RANK() OVER (ORDER BY {key}) AS d, CUME_DIST() OVER (PARTITION BY k ORDER BY {key}) AS e"
    for query in (
        f"SELECT k, v, SUM(x) {rows} AS s, MIN(x) {rows} AS m, {picked} FROM Sa [ROWS 6]",
        f"SELECT k, v, {shares}, NTILE(2) OVER (PARTITION BY k ORDER BY {key}) AS n FROM Sa [RANGE 4]",
    ):
        assert check(case_of(query, 3), batch_size=7) == "agreed"


@pytest.mark.parametrize("function", FIRST)
@pytest.mark.parametrize("source", ["Sa", "Sa [ROWS 5]", "Rel"])
def test_only_the_first_rows_of_each_partition_are_told_where_no_others_are_asked_for(
    function: str, source: str
) -> None:
    rank = f"{function}() OVER (PARTITION BY k ORDER BY t DESC NULLS FIRST)"
    for seed in seeds(2):
        for condition in ("n <= 2", "n = 1", "3 > n AND k = 1"):
            case = case_of(f"SELECT k, t FROM (SELECT k, t, {rank} AS n FROM {source}) WHERE {condition}", seed)
            expected = run_definition(case)
            for batch_size in (1, 1000):
                assert check(case, None, expected, batch_size=batch_size) == "agreed"


def held(query: str, rows: int) -> Any:
    """How many rows OVER keeps after so many."""
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
        q = db.query(query)
        for i in range(rows):
            db.push("S", (i % 3, i % 50), ts=i)
        db.advance(rows)
        over = next(operator for operator in q.network.operators if operator.name == "Over")
        return over.describe().figures["rows"]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("SELECT LAG(v, 2) OVER (PARTITION BY k ORDER BY ts) AS a FROM S", 6),
        ("SELECT SUM(v) OVER (ORDER BY ts ROWS 4 PRECEDING) AS a FROM S", 4),
        ("SELECT SUM(v) OVER (PARTITION BY k ORDER BY ts) AS a FROM S", 0),
        ("SELECT MIN(v) OVER (ORDER BY ts RANGE 5 PRECEDING) AS a FROM S", 6),
        ("SELECT MIN(v) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING) AS a FROM S", 2),
        ("SELECT NTH_VALUE(v, 3) OVER (PARTITION BY k ORDER BY ts) AS a FROM S", 0),
        ("SELECT v FROM (SELECT v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS n FROM S) WHERE n < 3", 6),
    ],
)
def test_what_is_kept_does_not_grow_with_the_stream(query: str, kept: int) -> None:
    assert held(query, 60) == held(query, 300) == kept


def test_a_running_sum_that_does_not_fit_ends_the_query_at_its_instant() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        q = db.query("SELECT SUM(v) OVER (ORDER BY ts) AS s FROM S")
        db.push("S", (2**62,), ts=1)
        db.push("S", (2**62,), ts=2)
        db.advance(5)
        assert [row for _, _, row in q.fetch()] == [(2**62,)]
        with pytest.raises(minidsms.Error, match=r"SUM\(v\) overflows INTEGER"):
            q.fetch()


def test_frames_of_many_partitions_move_through_large_pushes() -> None:
    """Against plain loops; frames get long, short again and long in others, so that rings grow, move and are packed."""
    rng = Random(3)
    n = 12_000
    rows = [(rng.randrange(1 + i % 900), rng.choice((None, i, -i, 5)), rng.random()) for i in range(n)]
    instants = sorted(rng.randrange(4 * n if i % 3 else n) for i in range(n))
    distinct = [t for i, t in enumerate(instants) if not i or t != instants[i - 1]]
    rows = rows[: len(distinct)]
    over = "OVER (PARTITION BY k ORDER BY ts"
    expected = []
    partitions: dict[int, list[tuple[int, Any, float]]] = {}
    for ts, (k, v, x) in zip(distinct, rows):
        before = partitions.setdefault(k, [])
        before.append((ts, v, x))
        near = [(v, x) for t, v, x in before if t >= ts - 9000]
        least = min((v for v, _ in near if v is not None), default=None)
        nine = sum(v for _, v, _ in before[-9:] if v is not None)
        is_null = all(v is None for _, v, _ in before[-9:])
        lag = before[-4][1] if len(before) > 3 else None
        expected.append((k, lag, None if is_null else nine, least, math.fsum(x for _, x in near), near[0][0]))
    for size in (37, n):
        with minidsms.connect() as db:
            db.execute("CREATE STREAM S (k INTEGER, v INTEGER, x FLOAT)")
            q = db.query(
                f"SELECT k, LAG(v, 3) {over}) AS a, SUM(v) {over} ROWS 8 PRECEDING) AS b, MIN(v) {over} RANGE 9000"
                f" PRECEDING) AS c, SUM(x) {over} RANGE 9000 PRECEDING) AS d, FIRST_VALUE(v) {over} RANGE 9000"
                " PRECEDING) AS e FROM S"
            )
            for i in range(0, len(rows), size):
                db.push("S", rows[i : i + size], ts=distinct[i : i + size])
            db.advance(distinct[-1] + 1)
            assert [change.row for change in q.fetch()] == expected


@pytest.mark.parametrize(("keys", "rows", "before"), [(40, 1500, 0), (40, 1500, 300), (3, 5000, 10), (300, 600, 100)])
def test_many_rows_come_to_many_partitions_at_one_instant(keys: int, rows: int, before: int) -> None:
    rng = Random(1)
    drawn = [(rng.randrange(keys), rng.randrange(2000)) for _ in range(before + rows)]
    with minidsms.connect() as db:
        db.execute("CREATE RELATION R (k INTEGER, v INTEGER);")
        query = db.query("SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS n FROM R")
        for ts, come in ((1, drawn[:before]), (2, drawn[before:])):
            db.push("R", come, ts=[ts] * len(come))
            db.advance(ts)
        present: Counter[tuple[Any, ...]] = Counter()
        for change in query.fetch():
            present[change.row] += change.sign
    places: Counter[int] = Counter()
    expected: Counter[tuple[Any, ...]] = Counter()
    for key, value in sorted(drawn):
        places[key] += 1
        expected[key, value, places[key]] += 1
    assert +present == expected


def test_of_equal_rows_that_swap_results_at_an_instant_none_is_told() -> None:
    """Those at both ends of them see changes, those between do not."""
    with minidsms.connect() as db:
        db.execute("CREATE RELATION R (v INTEGER)")
        count = "COUNT(*) OVER (ORDER BY v ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)"
        q = db.query(f"SELECT ISTREAM(v, {count} AS n) FROM R")
        db.push("R", [(1,), *[(2,)] * 5], ts=[1] * 6)
        db.push("R", (1,), ts=2, sign=-1)
        db.push("R", (3,), ts=2)
        db.advance(3)
        assert [tuple(row) for ts, _, row in q.fetch() if ts == 2] == [(3, 2)]


def test_what_is_kept_of_a_stream_whose_rows_look_ahead_does_not_grow() -> None:
    frames = {"ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING": 9, "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING": 6}
    for frame, kept in frames.items():
        query = f"SELECT ISTREAM(SUM(v) OVER (PARTITION BY k ORDER BY ts {frame}) AS s) FROM S"
        assert held(query, 60) == held(query, 300) == kept
    frame = "RANGE BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING"
    query = f"SELECT ISTREAM(MAX(v) OVER (ORDER BY ts {frame}) AS s) FROM S"
    assert held(query, 60) == held(query, 300) == 4


@pytest.mark.parametrize("source", ["S", "S [ROWS 9]"])
@pytest.mark.parametrize("call", ["COUNT(DISTINCT v)", "COUNT_DISTINCT(v)", "APPROX_COUNT_DISTINCT(v)"])
def test_of_different_values_each_counts_once(call: str, source: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        q = db.query(f"SELECT v, {call} OVER (ORDER BY ts ROWS 2 PRECEDING) AS n FROM {source}")
        db.push("S", [(5,), (5,), (None,), (5,), (7,), (7,)], ts=list(range(6)))
        db.advance(9)
        assert [change.row for change in q.fetch() if change.sign > 0] == [
            (5, 1),
            (5, 1),
            (None, 1),
            (5, 1),
            (7, 2),
            (7, 2),
        ]


@pytest.mark.parametrize("source", ["S", "S [ROWS 9]"])
def test_rows_of_one_instant_come_to_lists_in_the_order_of_their_values(source: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        lists = "ARRAY_AGG(v) OVER w AS l, ARRAY_AGG(v) FILTER (WHERE v IS DISTINCT FROM 2) OVER w AS f"
        q = db.query(f"SELECT v, {lists} FROM {source} WINDOW w AS (ORDER BY ts RANGE 1 PRECEDING)")
        db.push("S", [(2,), (1,), (None,), (3,)], ts=[1, 1, 1, 2])
        db.advance(1)
        assert sorted((c.row for c in q.fetch()), key=str) == [
            (1, [None, 1, 2], [None, 1]),
            (2, [None, 1, 2], [None, 1]),
            (None, [None, 1, 2], [None, 1]),
        ]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("ROW_NUMBER(DISTINCT v)", "ROW_NUMBER takes no DISTINCT"),
        ("STRING_AGG(CAST(v AS TEXT) ORDER BY v)", "values come in the order of OVER"),
        ("ARRAY_AGG(DISTINCT v)", "ARRAY_AGG with OVER takes no DISTINCT"),
        ("MODE(v ORDER BY v)", "MODE with OVER takes its arguments only"),
        ("CORR(v)", "CORR takes 2 arguments, not 1"),
        ("LAG(v, 0) IGNORE NULLS", "LAG IGNORE NULLS looks at other rows"),
        ("MISSING(v)", "MISSING takes no OVER"),
    ],
)
def test_what_no_frame_gives_is_refused(call: str, reason: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        with pytest.raises(minidsms.Error, match=reason):
            db.query(f"SELECT {call} OVER (ORDER BY ts) FROM S")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("JSON_AGG(v)", ["[1]", "[1,null]", "[null,2]"]),
        ("JSON_AGG(v) FILTER (WHERE v > 1 OR v IS NULL)", [None, "[null]", "[null,2]"]),
        ("JSON_OBJECT_AGG(CAST(v AS TEXT), v) FILTER (WHERE v > 1)", [None, None, '{"2":2}']),
        ("EARLIEST_BY_OFFSET(v)", [1, 1, 2]),
        ("LATEST_BY_OFFSET(v) FILTER (WHERE v < 2)", [1, 1, None]),
        ("LATEST_BY_OFFSET(v)", [1, 1, 2]),
        ("FIRST(v)", [1, 1, None]),
        ("LAST(v)", [1, None, 2]),
    ],
)
def test_aggregates_in_other_words_are_of_frames_too(call: str, expected: list[Any]) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        q = db.query(f"SELECT {call} OVER (ORDER BY ts ROWS 1 PRECEDING) AS r FROM S")
        of_a_group = db.query(f"SELECT {call} AS r FROM S [ROWS 2]")
        db.push("S", [(1,), (None,), (2,)], ts=[1, 2, 3])
        db.advance(3)
        assert [change.row[0] for change in q.fetch()] == expected
        assert of_a_group.snapshot() == [(expected[-1],)]


def test_of_far_neighbours_that_are_not_null_a_stream_keeps_as_many_as_are_asked_for() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        q = db.query("SELECT v, LAG(v, 2, -1) IGNORE NULLS OVER (ORDER BY ts) AS r FROM S")
        db.push("S", [(1,), (None,), (2,), (3,), (None,)], ts=[1, 2, 3, 4, 5])
        db.advance(5)
        assert [change.row for change in q.fetch()] == [(1, -1), (None, -1), (2, -1), (3, 1), (None, 2)]


@pytest.mark.parametrize("call", ["LAG(v, 2) IGNORE NULLS", "ARG_MAX(v, v)", "CORR(v, v)", "LAST_N(v, 2)", "MIN(v, 2)"])
def test_rows_that_are_forgotten_are_not_counted_as_held(call: str) -> None:
    with minidsms.connect(memory_limit=4_000_000) as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        q = db.query(f"SELECT {call} OVER (ORDER BY ts) AS r FROM S")
        for first in range(0, 50_000, 1000):
            db.push("S", {"v": range(1000)}, ts=range(first, first + 1000))
            q.fetch()
