"""Whatever is pushed, a connection takes it or raises an Error; a call that raises has changed nothing."""

from __future__ import annotations

import datetime
import decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import minidsms

NUMBERS: list[Any] = [True, 0, -1, 2**63 - 1, 2**63, -(2**63), 10**400, 1.5, float("nan"), float("inf"), -0.0, 1j]
TEXTS: list[Any] = ["", "a", "\x00", "\ud800", "1", b"a", "1970-01-01 00:00:01", memoryview(b"abc")]
CONTAINERS: list[Any] = [[], (), {}, {"k": 1}, [None], [[1]], set(), range(3), slice(1)]
TIMES: list[Any] = [datetime.datetime(2020, 1, 1), datetime.date.min, datetime.timedelta(days=10**8), datetime.time(1)]
ARRAYS: list[Any] = [np.array([1, 2]), np.array([[1]]), np.array(["a"]), np.array([None], object), np.zeros(0)]
ARROW: list[Any] = [pa.array([1]), pa.nulls(2), pa.table({"k": [1]}), pa.table({"k": [1], "x": [1.0], "t": ["a"]})]
OTHERS: list[Any] = [
    None,
    object(),
    int,
    len,
    decimal.Decimal("1.5"),
    np.int8(3),
    np.float32(1.5),
    np.datetime64("NaT"),
]
GARBAGE = [*NUMBERS, *TEXTS, *CONTAINERS, *TIMES, *ARRAYS, *ARROW, *OTHERS]


def anything(rng: Random, depth: int = 2) -> Any:
    """A value, or values in tuples, lists and dicts."""
    form = rng.randrange(8) if depth else 0
    several = range(rng.randint(0, 4))
    if form == 1:
        return tuple(anything(rng, depth - 1) for _ in several)
    if form in (2, 3):
        return [tuple(anything(rng, 0) for _ in range(3)) for _ in several]
    if form == 4:
        return {rng.choice(("k", "x", "t", "K", "", 1)): [anything(rng, 0) for _ in range(2)] for _ in range(3)}
    if form == 5:
        return {"k": [1, 2], "x": [1.0, None], "t": anything(rng, 1)}
    if form == 6:
        return [{"k": anything(rng, 0), "x": 1.0, "t": "a"}]
    return rng.choice(GARBAGE)


@pytest.fixture
def db() -> minidsms.Connection:
    connection = minidsms.connect()
    columns = "(k INTEGER, x FLOAT, t TEXT)"
    connection.execute(f"CREATE STREAM S {columns} SLACK 3; CREATE STREAM D {columns} LATE DROP")
    connection.execute("CREATE STREAM B (k INTEGER, x TIMESTAMP, t BOOLEAN) TIMESTAMP BY x")
    connection.execute(f"CREATE RELATION R {columns}")
    return connection


@pytest.mark.parametrize("start", range(0, 1200, 300))
def test_garbage_is_refused_with_an_error_and_leaves_no_trace(db: minidsms.Connection, start: int) -> None:
    query = db.query("SELECT k FROM S UNION ALL SELECT k FROM D UNION ALL SELECT k FROM R UNION ALL SELECT k FROM B")
    for seed in range(start, start + 300):
        rng = Random(seed)
        name = rng.choice(("S", "D", "B", "R"))
        ts = rng.choice((seed, seed, [seed, seed + 1], None, anything(rng)))
        data = anything(rng)
        before = db.stream_input(name).counters.accepted
        try:
            sign = {"sign": anything(rng)} if name == "R" and rng.random() < 0.3 else {}
            taken = db.push(name, data, ts=ts, **sign)
            assert db.stream_input(name).counters.accepted - before == taken
        except minidsms.Error:
            assert db.stream_input(name).counters.accepted == before
        except Exception as error:
            raise AssertionError(f"seed {seed}: push({name!r}, {data!r}, ts={ts!r})") from error
    query.fetch()


def test_garbage_heartbeats_are_refused_with_an_error(db: minidsms.Connection) -> None:
    for seed in range(300):
        rng = Random(seed)
        value, name = anything(rng), rng.choice((None, "S", "R", "nothing"))
        try:
            db.advance(value, name)
        except minidsms.Error:
            pass
        except Exception as error:
            raise AssertionError(f"seed {seed}: advance({value!r}, {name!r})") from error
    db.push("S", (1, 1.0, "a"), ts=2**61)


def test_periods_of_pandas_are_refused_as_their_numbers_count_in_units_of_their_own() -> None:
    import pandas as pd

    db = minidsms.connect()
    db.execute("CREATE STREAM S (at TIMESTAMP)")
    with pytest.raises(minidsms.DataError, match=r"pandas\.period"):
        db.push("S", pd.DataFrame({"at": pd.period_range("2020", "2021", freq="M")}), ts=1)


def test_an_error_shows_an_array_on_one_line() -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (a INTEGER, b INTEGER)")
    with pytest.raises(minidsms.DataError) as caught:
        db.push("S", np.array([[1, 2], [3, 4]]), ts=1)
    assert "array([[1, 2], [3, 4]])" in str(caught.value)
