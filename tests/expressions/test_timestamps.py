"""The parts of a timestamp are those of datetime, for every tick, and the calendar goes on where datetime ends."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import minidsms
from minidsms.cql.times import iso_ticks
from minidsms.expressions.timestamps import iso_of_ticks, part
from minidsms.expressions.value import Value

EPOCH = datetime.datetime(1970, 1, 1)
UNITS_NS = [
    1,
    1000,
    10**6,
    10**9,
    60 * 10**9,
    3600 * 10**9,
    86400 * 10**9,
    7,
    100 * 10**6,
    90 * 10**9,
    7 * 86400 * 10**9,
]
PARTS = ("year", "month", "day", "hour", "minute", "second", "dayofweek")


def parts_of(ticks: int, tick_ns: int) -> list[int]:
    found = []
    for name in PARTS:
        function = part(name, tick_ns)
        assert function is not None
        found.append(int(function(Value(np.array([ticks]))).values[0]))
    return found


@given(st.datetimes(), st.sampled_from(UNITS_NS))
def test_parts_are_those_of_datetime(moment: datetime.datetime, tick_ns: int) -> None:
    delta = moment - EPOCH
    ns = (delta.days * 86400 + delta.seconds) * 10**9 + delta.microseconds * 1000
    ticks = ns // tick_ns
    if not -(2**63) <= ticks < 2**63:
        return
    try:
        then = EPOCH + datetime.timedelta(microseconds=ticks * tick_ns // 1000)
    except OverflowError:
        return
    weekday = (then.weekday() + 1) % 7
    expected = [then.year, then.month, then.day, then.hour, then.minute, then.second, weekday]
    assert parts_of(ticks, tick_ns) == expected


@pytest.mark.parametrize("ticks", [2**63 - 1, -(2**63)])
@pytest.mark.parametrize("tick_ns", UNITS_NS)
def test_the_last_instants_have_parts_too(ticks: int, tick_ns: int) -> None:
    _, month, day, hour, minute, second, weekday = parts_of(ticks, tick_ns)
    assert 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 60
    assert weekday == (ticks * tick_ns // (86400 * 10**9) + 4) % 7


@given(st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**14), 10**15))
@example(-62_198_755_200_000 - 1)
@example(-62_135_596_800_000 - 1)
@example(253_402_300_800_000)
def test_reading_an_iso_text_undoes_writing_it(ticks: int) -> None:
    assert iso_ticks(iso_of_ticks(ticks, 10**6), 10**6) == ticks


def test_other_names_are_no_parts() -> None:
    assert part("century", 10**6) is None


_WRITTEN = (
    "CAST(t AS TEXT)",
    "CAST(i AS TEXT)",
    "STRFTIME(t, '%Y-%m-%d %H:%M')",
    "STRFTIME(t, '%d.%m. %p')",
    "STRFTIME(t, '%I:%M:%S.%f')",
    "STRFTIME(t, 'no field')",
    "TO_CHAR(t, 'DD Mon YYYY HH24:MI:SS.MS')",
    "DAYNAME(t)",
    "MONTHNAME(t)",
)


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s", "m", "d"])
@pytest.mark.parametrize("call", _WRITTEN)
def test_many_instants_are_written_as_each_alone(call: str, unit: str) -> None:
    tick_ns = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "d": 86_400 * 10**9}[unit]
    a_day = max(86_400 * 10**9 // tick_ns, 1)
    edges = [day * a_day + step for day in (-135_000, -1, 0, 15_000, 106_000) for step in (-1, 0, 1, 500, a_day // 2)]
    rows = [(t // step * step, t) for t in edges if abs(t) < 2**63 for step in (1, 10, 1000)]
    rows[3] = (None, None)

    def answer(size: int) -> list[tuple[object, ...]]:
        with minidsms.connect(time_unit=unit) as db:
            db.execute("CREATE STREAM S (t TIMESTAMP, i INTEGER)")
            query = db.query(f"SELECT {call} FROM S")
            for first in range(0, len(rows), size):
                db.push("S", rows[first : first + size], ts=first)
            db.advance(len(rows))
            return [change.row for change in query.fetch()]

    assert answer(len(rows)) == answer(1)


@pytest.mark.parametrize("call", ["CAST(t AS TEXT)", "DAYNAME(t)"])
def test_many_instants_of_far_years_are_written_as_each_alone(call: str) -> None:
    rows = [(t,) for t in (2**63 - 1, -(2**63) + 1, 2**55, 0, None, 1500, 253_402_300_800_000, 253_402_300_799_999)]
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t TIMESTAMP)")
        query = db.query(f"SELECT {call} FROM S")
        db.push("S", rows * 5, ts=0)
        together = [change.row for change in query.fetch()]
        for ts, row in enumerate(rows, 1):
            db.push("S", row, ts=ts)
        assert together == [change.row for change in query.fetch()] * 5
