"""Streams: what push takes and refuses, timestamps, slack, heartbeats, and that a refused call changes nothing."""

from __future__ import annotations

import dataclasses
import datetime
import random
from collections import OrderedDict
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import minidsms
from minidsms.cql.catalog import StreamDef
from minidsms.cql.errors import DataError, Error, LateElementError
from minidsms.elements import MAX_INSTANT, Schema, Type
from minidsms.inputs import StreamInput
from minidsms.values.dictionary import TextDictionary


@dataclasses.dataclass
class Car:
    car: int
    speed: float
    road: str


SCHEMA = Schema.of(("car", Type.INTEGER), ("speed", Type.FLOAT), ("road", Type.TEXT))
ALL_TYPES = Schema.of(
    ("i", Type.INTEGER),
    ("f", Type.FLOAT),
    ("b", Type.BOOLEAN),
    ("t", Type.TEXT),
    ("at", Type.TIMESTAMP),
    ("d", Type.INTERVAL),
)
MS = 1_000_000


def stream(schema: Schema = SCHEMA, clock: Any = None, **options: Any) -> StreamInput:
    return StreamInput(StreamDef("Pos", schema, **options), TextDictionary(), MS, clock)


def content(source: StreamInput) -> list[tuple[int, tuple[Any, ...]]]:
    """(ts, row) of everything in the store, in its order."""
    ts, columns = source.store.arrays()
    return list(zip(ts.tolist(), source.converter.rows(columns)))


def state(source: StreamInput) -> tuple[Any, ...]:
    """Everything a call may change."""
    waiting_ts, waiting = source._waiting.arrays()
    return (
        content(source),
        waiting_ts.tolist(),
        source.converter.rows(waiting),
        source.progress,
        source.greatest_ts,
        source.ended,
        vars(source.counters).copy(),
        list(source.rejected),
    )


ROWS = [(1, 1.5, "A"), (2, 2.5, None), (3, None, "B")]
COLUMNS = {"car": [1, 2, 3], "speed": [1.5, 2.5, None], "road": ["A", None, "B"]}


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        [list(row) for row in ROWS],
        [dict(zip(SCHEMA.names, row)) for row in ROWS],
        COLUMNS,
        {"ROAD": COLUMNS["road"], "Speed": np.array([1.5, 2.5, np.nan]), "CAR": np.array([1, 2, 3], np.int16)},
        {
            "car": np.ma.masked_array([1, 2, 3]),
            "speed": np.ma.masked_array([1.5, 2.5, 9.0], [0, 0, 1]),
            "road": np.array(["A", None, "B"], object),
        },
        {"car": pl.Series([1, 2, 3]), "speed": pd.Series([1.5, 2.5, None]), "road": pd.Series(["A", None, "B"])},
        pa.table(COLUMNS),
        pa.RecordBatch.from_pydict(COLUMNS),
        pl.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS, index=[7, 8, 9]),
        pa.table({**COLUMNS, "road": pa.array(COLUMNS["road"]).dictionary_encode()}),
        pa.table({**COLUMNS, "road": pa.array(COLUMNS["road"], pa.large_string())}),
        pa.table({**COLUMNS, "road": pa.array(COLUMNS["road"], pa.string_view())}),
        pa.table({**COLUMNS, "speed": pa.array([1.5, 2.5, None], pa.float32())}),
        pa.concat_tables([pa.table(COLUMNS).slice(0, 1), pa.table(COLUMNS).slice(1)]),
    ],
    ids=lambda data: type(data).__name__,
)
def test_the_same_rows_are_taken_from_every_container(data: Any) -> None:
    source = stream()
    assert source.push(data, ts=[10, 11, 11]) == 3
    assert content(source) == list(zip([10, 11, 11], ROWS))


def test_a_single_tuple_or_dict_is_one_row() -> None:
    source = stream()
    assert source.push((1, 2, "A"), ts=5) == 1
    assert source.push({"car": 2, "speed": None, "road": None}, ts=6) == 1
    assert content(source) == [(5, (1, 2.0, "A")), (6, (2, None, None))]


def test_timestamps_are_ints_arrays_datetimes_or_iso_texts() -> None:
    source = stream(Schema.of(("a", Type.INTEGER)))
    noon = datetime.datetime(1970, 1, 1, 12)
    source.push((1,), ts=1)
    source.push([(2,), (3,)], ts=np.array([2, 3]))
    source.push((4,), ts=np.int64(4))
    source.push((5,), ts=noon)
    source.push((6,), ts=noon.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-1))))
    source.push((7,), ts="1970-01-01T14:00:00.0019Z")
    source.push((8,), ts=np.datetime64("1970-01-01T15"))
    source.push([(9,)], ts=pa.array([57_600_000_000_999], pa.timestamp("ns", "Europe/Paris")))
    hour = 3_600_000
    assert [ts for ts, _ in content(source)] == [1, 2, 3, 4, 12 * hour, 13 * hour, 14 * hour + 1, 15 * hour, 57_600_000]


def test_a_time_between_ticks_is_floored_also_before_1970() -> None:
    source = stream(Schema.of(("at", Type.TIMESTAMP)))
    source.push({"at": np.array([-1, 1, 999_999, 1_000_000], "datetime64[ns]")}, ts=0)
    source.push((datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),), ts=0)
    assert [row[0] for _, row in content(source)] == [-1, 0, 0, 1, -1]


def test_timestamp_by_reads_the_column() -> None:
    source = stream(Schema.of(("at", Type.TIMESTAMP), ("v", Type.INTEGER)), timestamp_by=0)
    source.push((5, 1))
    source.push([("1970-01-01T00:00:00.006Z", 2), (7, 3)])
    source.push(pa.table({"at": pa.array([8000], pa.timestamp("us")), "v": [4]}))
    assert [ts for ts, _ in content(source)] == [5, 6, 7, 8]


@pytest.mark.parametrize("data", [(None, 1), [(5, 1), (None, 2)], {"at": np.array(["NaT"], "datetime64[s]"), "v": [1]}])
def test_a_null_timestamp_is_refused(data: Any) -> None:
    source = stream(Schema.of(("at", Type.TIMESTAMP), ("v", Type.INTEGER)), timestamp_by=0)
    with pytest.raises(DataError, match="timestamp is NULL"):
        source.push(data)
    assert content(source) == []


def test_the_clock_never_makes_a_row_late() -> None:
    times = iter([10, 5, 12, 3])
    source = stream(Schema.of(("a", Type.INTEGER)), clock=lambda: next(times))
    source.push((1,))
    source.push((2,))
    source.advance(20)
    source.push([(3,), (4,)])
    source.push((5,))
    assert [ts for ts, _ in content(source)] == [10, 10, 21, 21, 21]


def test_a_stream_without_any_timestamp_says_how_to_give_one() -> None:
    for data in ((1, 2.0, "A"), ROWS):
        with pytest.raises(DataError, match="TIMESTAMP BY"):
            stream().push(data)


@pytest.mark.parametrize(
    "column, good, bad",
    [
        ("i", 2**63 - 1, 2**63),
        ("i", -(2**63), -(2**63) - 1),
        ("i", np.uint8(3), True),
        ("i", 1, 1.0),
        ("i", 1, "1"),
        ("i", 1, np.timedelta64(1, "s")),
        ("f", 1, "1.0"),
        ("f", np.float32(1.5), False),
        ("f", 1e300, 10**400),
        ("b", np.True_, 1),
        ("b", False, "false"),
        ("t", "x", b"x"),
        ("t", "", 1),
        ("t", "x", "\ud800"),
        ("at", datetime.date(2024, 1, 1), 1.5),
        ("at", 5, "yesterday"),
        ("at", pd.Timestamp("2024-01-01"), True),
        ("d", datetime.timedelta(seconds=1), "1 s"),
        ("d", np.timedelta64(1, "s"), 0.5),
    ],
)
def test_each_type_takes_its_values_and_refuses_others_in_every_container(column: str, good: Any, bad: Any) -> None:
    schema = Schema((next(f for f in ALL_TYPES if f.name == column),))
    for wrap in (lambda v: (v,), lambda v: [(v,)], lambda v: {column: [v]}, lambda v: {column: np.array([v], object)}):
        source = stream(schema)
        assert source.push(wrap(good), ts=1) == 1
        before = state(source)
        with pytest.raises(DataError, match=f'row 0, column "{column}"'):
            source.push(wrap(bad), ts=2)
        assert state(source) == before


@pytest.mark.parametrize("null", [None, float("nan"), np.nan, np.datetime64("NaT"), pd.NaT, pd.NA, np.ma.masked])
def test_every_kind_of_missing_value_is_null(null: Any) -> None:
    source = stream(ALL_TYPES)
    source.push((null,) * 6, ts=1)
    source.push([(null,) * 6, (1, 1.0, True, "x", 1, 1)], ts=1)
    assert [row for _, row in content(source)][:2] == [(None,) * 6] * 2
    _, columns = source.store.arrays()
    assert all(c.valid is not None and not c.values[~c.valid].any() for c in columns)


def test_nan_is_null_and_negative_zero_is_zero_in_every_container() -> None:
    values = [float("nan"), -0.0, 1.0]
    for data in ([(v,) for v in values], {"f": values}, {"f": np.array(values)}, pa.table({"f": values})):
        source = stream(Schema.of(("f", Type.FLOAT)))
        source.push(data, ts=1)
        assert [row[0] for _, row in content(source)] == [None, 0.0, 1.0]
        _, (column,) = source.store.arrays()
        assert column.words()[1] == 0
    source = stream(Schema.of(("f", Type.FLOAT)))
    source.push((-0.0,), ts=1)
    assert source.store.arrays()[1][0].words()[0] == 0


@pytest.mark.parametrize(
    "data, message",
    [
        ((1, 2.0), "the row has 2 values, not 3"),
        ([(1, 2.0, "A"), (1,)], "row 1 has 1 value, not 3"),
        ({"car": [1], "speed": [1.0]}, 'column "road" is missing'),
        ({"car": [1], "speeed": [1.0], "road": ["A"]}, 'did you mean "speed"'),
        ({"car": [1], "CAR": [1], "speed": [1.0], "road": ["A"]}, "given twice"),
        ({"car": [1, 2], "speed": [1.0], "road": ["A"]}, 'column "speed" has 1 value,'),
        ([(1, 2.0, "A"), {"car": 1}], "row 1 does not read like the others"),
        (5, "cannot read rows from 5"),
        (((1, 2.0, "A") for _ in range(2)), r"help: .*list\(rows\)"),
        ({(1, 2.0, "A")}, r"help: .*list\(rows\)"),
        (pl.LazyFrame({"car": [1], "speed": [1.0], "road": ["A"]}), r"help: .*frame\.collect\(\)"),
        (pd.Series({"car": 1, "speed": 2.0, "road": "A"}), r"help: .*row\.to_dict\(\)"),
        (np.array([[1, 2.0], [3, 4.0]]), r"help: .*list\(map\(tuple, array\.tolist\(\)\)\)"),
        ([1, 2.0, "A"], r"help: .*tuple\(row\)"),
        (pd.Series([1, 2.0, "A"]), r"help: give a tuple, a list"),
        (Car(1, 2.0, "A"), r"help: .*asdict\(row\)"),
        ([Car(1, 2.0, "A")], r"help: .*\[dataclasses\.asdict\(row\) for row in rows\]"),
        ([Car(1, 2.0, "A")] * 3, r"help: .*\[dataclasses\.asdict\(row\) for row in rows\]"),
        (Car, r"help: give a tuple, a list"),
        ('{"car": 1}', r"help: .*json\.loads\(text\)"),
        ("abc", "cannot read rows"),
        (np.arange(3), "name its column"),
        (pa.array([1, 2]), "cannot be read as an Arrow table"),
        ({"car": np.zeros((2, 2)), "speed": [1.0], "road": ["A"]}, "2 dimensions"),
        (pa.table({"car": [1.5], "speed": [1.0], "road": ["A"]}), "double cannot be read as INTEGER"),
        ([(1, 2.0, "A"), (2**63, 1.0, "A")], 'row 1, column "car"'),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(data: Any, message: str) -> None:
    source = stream()
    with pytest.raises(DataError, match=message):
        source.push(data, ts=1)
    assert content(source) == [] and source.progress == stream().progress


def test_a_row_at_or_before_the_progress_is_late_and_the_call_changes_nothing() -> None:
    source = stream(Schema.of(("a", Type.INTEGER)))
    source.push((1,), ts=10)
    source.push((2,), ts=10)
    before = state(source)
    for data, ts in (((3,), 9), ([(3,), (4,)], [11, 10]), ([(3,), (4,), (5,)], [12, 11, 12])):
        with pytest.raises(LateElementError, match="SLACK"):
            source.push(data, ts=ts)
        assert state(source) == before


def test_a_late_row_is_told_by_how_much() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (at TIMESTAMP) TIMESTAMP BY at SLACK 2 SECONDS; CREATE STREAM T (v INTEGER)")
        db.push("S", (1_767_225_600_000,))
        db.push("T", (1,), ts=10)
        with pytest.raises(LateElementError, match=r"late by 2\.5 s: timestamp 2025-12-31 23:59:55\.5, but "):
            db.push("S", (1_767_225_595_500,))
        with pytest.raises(LateElementError, match="late by 3: timestamp 7, but the stream has passed 9"):
            db.push("T", (1,), ts=7)


def test_late_drop_takes_the_others_and_keeps_the_late_ones_as_rejected() -> None:
    source = stream(Schema.of(("a", Type.TEXT)), late_drop=True)
    assert source.push([("x",), ("late",), ("y",)], ts=[5, 4, 6]) == 2
    assert source.push(("later",), ts=1) == 0
    assert content(source) == [(5, ("x",)), (6, ("y",))]
    assert [row for row, _ in source.rejected] == [("late",), ("later",)]
    assert (source.counters.accepted, source.counters.late_dropped, source.counters.rejected) == (2, 2, 2)


def test_only_the_newest_rejected_rows_are_kept() -> None:
    source = stream(Schema.of(("a", Type.INTEGER)), late_drop=True)
    source.push((0,), ts=10)
    source.push({"a": np.arange(2500)}, ts=1)
    assert source.counters.rejected == source.rejected.count == 2500
    assert [row for row, _ in source.rejected] == [(i,) for i in range(1500, 2500)]


def test_slack_releases_in_timestamp_order_and_ties_by_arrival() -> None:
    source = stream(Schema.of(("a", Type.INTEGER)), slack=5)
    for i, ts in enumerate([10, 8, 10, 6, 8]):
        source.push((i,), ts=ts)
    assert source.progress == 4 and content(source) == []
    source.push((5,), ts=14)
    assert source.progress == 8
    assert content(source) == [(6, (3,)), (8, (1,)), (8, (4,))]
    source.advance(10)
    assert content(source)[3:] == [(10, (0,)), (10, (2,))]
    source.finish()
    assert source.progress == MAX_INSTANT and content(source)[-1] == (14, (5,))


def test_an_ended_stream_takes_nothing_more() -> None:
    source = stream(Schema.of(("a", Type.INTEGER)))
    source.finish()
    for data in ((1,), [(1,)]):
        with pytest.raises(LateElementError, match="ended"):
            source.push(data, ts=1)


def test_a_heartbeat_moves_the_progress_and_never_back() -> None:
    source = stream(Schema.of(("a", Type.INTEGER)))
    source.advance(10)
    source.advance(3)
    assert source.progress == 10
    with pytest.raises(LateElementError):
        source.push((1,), ts=10)
    source.push((1,), ts=11)


def test_instants_out_of_range_are_refused() -> None:
    source = stream(Schema.of(("a", Type.INTEGER)))
    for ts in (2**62, -(2**62), 2**70):
        for data in ((1,), [(1,)]):
            with pytest.raises(DataError, match=r"-2\*\*62 < ts < 2\*\*62"):
                source.push(data, ts=ts)
    with pytest.raises(DataError, match=r"-2\*\*62 < ts < 2\*\*62"):
        source.push([(1,), (2,)], ts=[1, 2**62])
    source.push([(1,), (2,)], ts=[1 - 2**62, 2**62 - 1])


def test_number_arrays_without_nulls_are_not_copied() -> None:
    source = stream(Schema.of(("i", Type.INTEGER), ("f", Type.FLOAT)))
    ints, floats = np.arange(1000), np.arange(1000.0)
    for data in ({"i": ints, "f": floats}, pa.table({"i": pa.array(ints), "f": pa.array(floats)})):
        _, (i, f) = source.converter.columns(data)
        assert np.shares_memory(i.values, ints) and np.shares_memory(f.values, floats)


def test_what_waits_is_not_the_callers_array() -> None:
    source = stream(Schema.of(("i", Type.INTEGER)), slack=100)
    values, ts = np.arange(10), np.arange(10)
    source.push({"i": values}, ts=ts)
    values[:] = -1
    ts[:] = -1
    source.finish()
    assert content(source) == [(i, (i,)) for i in range(10)]


def test_live_codes_are_those_of_the_store_and_of_what_waits() -> None:
    source = stream(Schema.of(("t", Type.TEXT)), slack=5)
    source.push(("a",), ts=1)
    source.push([("b",), (None,)], ts=9)
    codes = set(np.concatenate(list(source.live_codes())).tolist()) - {0}
    assert {source.converter.dictionary.text(code) for code in codes} == {"a", "b"}


# ------------------------------------------------------------------------------------------------------------ laws

events = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=30)
cuts = st.lists(st.integers(1, 6), max_size=30)


class SlowInput:
    """What slack means, row by row."""

    def __init__(self, slack: int) -> None:
        self.slack = slack
        self.progress = -1000
        self.waiting: list[tuple[int, int, int]] = []
        self.released: list[tuple[int, int]] = []
        self.late: list[int] = []
        self.arrivals = 0

    def push(self, ts: int, value: int) -> None:
        if ts <= self.progress:
            self.late.append(value)
            return
        self.waiting.append((ts, self.arrivals, value))
        self.arrivals += 1
        self.advance(max(self.progress, ts - self.slack - 1))

    def advance(self, ts: int) -> None:
        self.progress = max(self.progress, ts)
        ready = sorted(row for row in self.waiting if row[0] <= self.progress + 1)
        self.waiting = [row for row in self.waiting if row not in ready]
        self.released += [(t, v) for t, _, v in ready]


@given(events, cuts, st.integers(0, 12), st.integers(0, 40))
@example([(10, 0), (3, 0), (9, 0)], [3], 5, 0)
def test_slack_and_late_drop_do_not_depend_on_batches(
    pushed: list[tuple[int, int]], sizes: list[int], slack: int, heartbeat: int
) -> None:
    slow = SlowInput(slack)
    fast = stream(Schema.of(("v", Type.INTEGER)), slack=slack, late_drop=True)
    fast.advance(-1000)
    rows = [(ts, i) for i, (ts, _) in enumerate(pushed)]
    position = 0
    for size in [*sizes, *[1] * len(rows)]:
        part = rows[position : position + size]
        position += size
        for ts, value in part:
            slow.push(ts, value)
        if len(part) == 1:
            fast.push((part[0][1],), ts=part[0][0])
        else:
            fast.push([(v,) for _, v in part], ts=[ts for ts, _ in part])
        if position % 5 == 0:
            slow.advance(heartbeat - 20)
            fast.advance(heartbeat - 20)
        assert [(ts, row[0]) for ts, row in content(fast)] == slow.released
        assert [row[0] for row, _ in fast.rejected] == slow.late
        assert fast.progress == slow.progress and fast.waiting == len(slow.waiting)


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.datetimes()
    | st.timedeltas()
    | st.sampled_from([np.int8(1), np.nan, pd.NaT, np.datetime64("2020"), np.zeros(2), pa.array([1]), object(), 2**63]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from(["i", "f", "b", "t", "at", "d", "x", 1]), inner, max_size=7)
    ),
    max_leaves=12,
)
good_row = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.booleans(),
    st.text(max_size=3),
    st.integers(-100, 100),
    st.integers(-100, 100),
)


@settings(max_examples=150, deadline=None)
@given(
    junk | st.lists(good_row | junk, max_size=4) | st.lists(st.tuples(*[junk] * 6), max_size=3),
    st.none() | st.integers(0, 9) | st.lists(st.integers(0, 9), max_size=4) | junk,
)
def test_whatever_is_pushed_only_our_errors_escape_and_then_nothing_has_changed(data: Any, ts: Any) -> None:
    source = stream(ALL_TYPES, slack=1)
    source.push((1, 1.0, True, "x", 1, 1), ts=5)
    before = state(source)
    try:
        source.push(data, ts=ts)
    except Error:
        assert state(source) == before


@settings(max_examples=100, deadline=None)
@given(st.lists(good_row, max_size=5))
def test_rows_columns_and_arrow_store_the_same_words(rows: list[tuple[Any, ...]]) -> None:
    columns = dict(zip(ALL_TYPES.names, map(list, zip(*rows)))) if rows else {n: [] for n in ALL_TYPES.names}
    stores = []
    for data in ([*rows], columns, pa.table(columns) if rows else columns):
        source = stream(ALL_TYPES)
        source.push(data, ts=1)
        stores.append(content(source))
    names, turned = ALL_TYPES.names, ALL_TYPES.names[::-1]
    forms: list[Callable[[tuple[Any, ...]], Any]] = [
        lambda row: row,
        lambda row: [row],
        lambda row: dict(zip(names, row)),
        lambda row: dict(zip(turned, row[::-1])),
        lambda row: [dict(zip(turned, row[::-1]))],
    ]
    for form in forms:
        one = stream(ALL_TYPES)
        for row in rows:
            one.push(form(row), ts=1)
        stores.append(content(one))
    assert all(store == stores[0] for store in stores)


def test_after_a_heartbeat_has_freed_what_waited_a_stream_takes_rows_again_under_the_memory_limit() -> None:
    import minidsms

    db = minidsms.connect(memory_limit="1 MB")
    db.execute("CREATE STREAM A (v INTEGER); CREATE STREAM B (v INTEGER)")
    q = db.query("ISTREAM (SELECT v FROM A [NOW] UNION ALL SELECT v FROM B [NOW])")
    ts = 0
    with pytest.raises(minidsms.MemoryLimitError):
        while ts < 1_000:
            db.push("A", [(i,) for i in range(1000)], ts=ts)
            ts += 1
    db.advance(ts + 20)
    q.fetch()
    assert db.push("A", (7,), ts=ts + 30) == 1
    db.push("B", (8,), ts=ts + 30)
    db.advance(ts + 30)
    assert sorted(c.row for c in q.fetch()) == [(7,), (8,)]


def test_a_push_into_a_view_or_a_query_says_what_it_is() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER); CREATE VIEW W AS SELECT v FROM S; CREATE QUERY q AS SELECT v FROM S")
        for name, what in (("W", "view"), ("q", "query")):
            with pytest.raises(minidsms.Error, match=f"{name} is a {what}, whose rows come"):
                db.push(name, (1,), ts=1)


@pytest.mark.parametrize("data", [(50, 1), [(1, 0), (50, 1)], {"t": [1, 50], "v": [0, 1]}])
def test_ts_says_nothing_else_than_timestamp_by(data: Any) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t INTEGER, v INTEGER) TIMESTAMP BY t")
        query = db.query("SELECT v FROM S")
        with pytest.raises(DataError, match=r"ts is 1, and t, the stream's TIMESTAMP BY, 50") as refused:
            db.push("S", data, ts=1)
        assert "leave ts out" in str(refused.value)
        for absent in ((None, 1), [(1, 0), (None, 1)], {"t": [1, None], "v": [0, 1]}):
            with pytest.raises(DataError, match=r"ts is 1, and t, the stream's TIMESTAMP BY, NULL\nhelp: give t its"):
                db.push("S", absent, ts=1)
        assert db.push("S", [(1, 2), (3, 4)], ts=[1, 3]) == 2
        db.advance(3)
        assert [change.row for change in query.fetch()] == [(2,), (4,)]


def test_dicts_may_order_and_spell_their_names_in_different_ways() -> None:
    source = stream()
    rows: list[Any] = [{"car": 1, "speed": 2.0, "road": "A"}, {"ROAD": "B", "Car": 3, "speed": None}]
    rows += [OrderedDict(road="C", car=4, speed=5.0)]
    for i, given_rows in enumerate((rows[:2], rows, rows[2:] * 2, rows[:1] * 3)):
        source.push(given_rows, ts=i)
    read = [(1, 2.0, "A"), (3, None, "B"), (4, 5.0, "C")]
    assert [row for _, row in content(source)] == [*read[:2], *read, *read[2:] * 2, *read[:1] * 3]
    other = {"car": 1, "speed": 2.0, "rode": "A"}
    for refused, told in (([rows[0], other], 'row 1: unknown column "rode"'), ([other] * 2, "row 0: unknown column")):
        with pytest.raises(DataError, match=told):
            source.push(refused, ts=9)
    with pytest.raises(DataError, match='row 1: column "road" is missing'):
        source.push([rows[0], {"car": 1, "speed": 2.0}], ts=9)


@pytest.mark.parametrize("n", [1, 16, 17])
def test_a_few_values_of_arrow_are_read_as_many_are(n: int) -> None:
    values = [[1, None, -(2**63)], [-0.0, float("nan"), None], [True, None, False], ["a", None, ""]]
    kinds = [pa.int64(), pa.float64(), pa.bool_(), pa.string()]
    read = [[1, None, -(2**63)], [0.0, None, None], [True, None, False], ["a", None, ""]]
    schema = Schema.of(("i", Type.INTEGER), ("f", Type.FLOAT), ("b", Type.BOOLEAN), ("t", Type.TEXT))
    for text in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        source = stream(schema)
        arrays = [pa.array((v * n)[:n], kind) for v, kind in zip(values, [*kinds[:3], text])]
        source.push(pa.table(arrays, names=["i", "f", "b", "t"]), ts=0)
        assert [row for _, row in content(source)] == list(zip(*((r * n)[:n] for r in read)))
    with pytest.raises(DataError, match=r"not valid Unicode|cannot be read"):
        bad = pa.Array.from_buffers(
            pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
        )
        source.push({"i": pa.array([1]), "f": pa.array([1.0]), "b": pa.array([True]), "t": bad}, ts=1)


@pytest.mark.parametrize(("digits", "scale"), [(9, 2), (15, 15), (18, 2), (38, 20), (38, 0)])
def test_an_arrow_decimal_is_the_float_nearest_to_it(digits: int, scale: int) -> None:
    rng = random.Random(scale)
    numbers = [rng.randrange(-(10**n), 10**n) for n in (digits, min(digits, 5)) for _ in range(50)]
    values = [Decimal(f"{number}E-{scale}") for number in numbers]
    for type_ in (pa.decimal128(digits, scale), pa.decimal256(digits, scale)):
        for array in (pa.array([*values, None], type_), pa.array([values[0], None, *values], type_).slice(1)):
            source = stream(Schema.of(("f", Type.FLOAT)))
            source.push({"f": array}, ts=1)
            assert [row[0] for _, row in content(source)] == [
                None if v is None else float(v) for v in array.to_pylist()
            ]


@pytest.mark.parametrize("n", [1, 40])
def test_days_of_arrow_are_dates_of_the_years_1_to_9999(n: int) -> None:
    days = pa.array([19_000, None, *[-719_162, 2_932_896] * n], pa.int32()).view(pa.date32())
    for good in (days, days.cast(pa.date64())):
        source = stream(Schema.of(("d", Type.DATE)))
        source.push({"d": good}, ts=1)
        assert [row for _, row in content(source)] == [(day,) for day in good.to_pylist()]
    for beyond in (-719_163, 2_932_897):
        bad = pa.array([0] * n + [beyond], pa.int32()).view(pa.date32())
        with pytest.raises(DataError, match=f'row {n}, column "d": a day outside the years 1 to 9999'):
            stream(Schema.of(("d", Type.DATE))).push({"d": bad}, ts=1)


@pytest.mark.parametrize("n", [1, 40])
def test_whole_numbers_of_arrow_are_no_truths(n: int) -> None:
    with pytest.raises(
        DataError, match=r'"b": an Arrow column of int8 cannot be read as BOOLEAN\nhelp: cast it to bool'
    ):
        stream(Schema.of(("b", Type.BOOLEAN))).push({"b": pa.array([1] * n, pa.int8())}, ts=1)


def test_a_table_with_texts_for_numbers_or_numbers_for_texts_is_told_how_to_change_it() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (n INTEGER, t TEXT)")
        with pytest.raises(DataError, match="an Arrow column of string cannot be read as INTEGER\nhelp: make numbers"):
            db.push("S", pa.table({"n": ["1"], "t": ["a"]}), ts=1)
        with pytest.raises(DataError, match="an Arrow column of int64 cannot be read as TEXT\nhelp: make texts"):
            db.push("S", pa.table({"n": [1], "t": [2]}), ts=1)
