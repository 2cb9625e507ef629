"""A few elements are written value by value: with the bytes of many."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from minidsms.answers.results import ResultCodec
from minidsms.elements import Batch, Column, Field, Schema, Type
from minidsms.sinks import few_rows
from minidsms.sinks.csv_format import CsvFormat
from minidsms.sinks.json_format import JsonFormat
from minidsms.sinks.lines import lines_of
from minidsms.values.coded import FIRST_DAY, LAST_DAY
from minidsms.values.dictionary import TextDictionary

TEXTS = (
    "", " ", "a", "a,b", 'say "x"', "two\nlines", "cr\r", "\ttab", "tab\t", "a\tb", "\x00", "\x0b", "a\x0b", "\x1b[31m",
    "\x7f", "\x85", "\xa0", "\u2028x", "x\u2029", "é\U0001f600", "back\\slash", "end\n", "{}", "null", "\u3000", "\x1f",
)  # fmt: skip
FLOATS = (
    0.0, 1.0, -1.5, 0.1, 1 / 3, 1e-4, 9.9e-5, 1e-5, 1e-6, 1.5e-7, 123456.789, 999999999999999.0, 1e15, 1.5e15, 1e16,
    123456789012345680.0, 1e21, 1e22, 1e100, 1e300, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"),
    9007199254740993.0, 2**53 + 0.0, 1e14, 0.30000000000000004,
)  # fmt: skip
INTEGERS = (0, 1, -1, 2**63 - 1, -(2**63), 10**12, 1500, -1, -86_400_001)
DAYS = (0, -1, 19_782, FIRST_DAY, LAST_DAY)
TIMES = (0, 1, 86_399_999_999, 3_600_000_000, 1_000_000)
VALUES: dict[Type, tuple[Any, ...]] = {
    Type.INTEGER: INTEGERS, Type.FLOAT: FLOATS, Type.BOOLEAN: (True, False), Type.TEXT: TEXTS, Type.NULL: (None,),
    Type.TIMESTAMP: INTEGERS, Type.INTERVAL: INTEGERS, Type.DATE: DAYS, Type.TIME: TIMES,
    Type.decimal(9, 2): (Decimal("0.00"), Decimal("-0.05"), Decimal("1234567.89")),
    Type.decimal(38, 0): (Decimal(10**38 - 1), Decimal(-(10**37)), Decimal(0)),
    Type.decimal(38, 20): (Decimal(0).scaleb(-20), Decimal(1).scaleb(-20), Decimal("-12345.67890123456789012345")),
}  # fmt: skip
NESTED = Type.TEXT.list_type


@pytest.mark.parametrize("tick_ns", [1, 1_000, 1_000_000, 10**9, 60 * 10**9])
@pytest.mark.parametrize("format", [CsvFormat, JsonFormat])
def test_a_few_elements_have_the_bytes_of_many(
    format: Callable[..., Any], tick_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(tick_ns)
    types = [*VALUES, Type.TEXT]
    schema = Schema(tuple(Field(f"c{i}", t) for i, t in enumerate(types)))
    texts = TextDictionary()
    n = 60
    drawn = [[None if rng.random() < 0.1 else rng.choice(VALUES[t]) for _ in range(n)] for t in types]
    columns = [Column.nulls(n, t) if t is Type.NULL else texts.column(values, t) for t, values in zip(types, drawn)]
    ts = np.sort(np.array([rng.choice(INTEGERS[:3]) for _ in range(n)]))
    batch = Batch(ts, np.array([rng.choice((1, -1)) for _ in range(n)], np.int8), columns)
    for has_times in (False, True):
        codec = ResultCodec(schema, texts, tick_ns, has_times)
        monkeypatch.setattr(few_rows, "FEW", 0)
        many = [lines_of(format(schema, codec), batch.slice(i, i + 1)) for i in range(n)]
        assert lines_of(format(schema, codec), batch) == b"".join(many)
        monkeypatch.setattr(few_rows, "FEW", n)
        assert [lines_of(format(schema, codec), batch.slice(i, i + 1)) for i in range(n)] == many
        assert lines_of(format(schema, codec), batch) == b"".join(many)


@pytest.mark.parametrize("type_", [t for t in VALUES if t is not Type.NULL])
@pytest.mark.parametrize("format", [CsvFormat, JsonFormat])
def test_every_value_has_the_bytes_of_many(
    format: Callable[..., Any], type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = TextDictionary()
    schema = Schema((Field("c", type_),))
    values = [None, *VALUES[type_]]
    batch = Batch(np.arange(len(values)), None, [texts.column(values, type_)])
    codec = ResultCodec(schema, texts, 1_000_000, False)
    monkeypatch.setattr(few_rows, "FEW", 0)
    many = lines_of(format(schema, codec), batch)
    monkeypatch.setattr(few_rows, "FEW", 100)
    assert lines_of(format(schema, codec), batch) == many


@pytest.mark.parametrize("format", [CsvFormat, JsonFormat])
def test_nested_values_are_left_to_arrow(format: Callable[..., Any]) -> None:
    texts = TextDictionary()
    schema = Schema((Field("c", NESTED), Field("d", Type.INTEGER)))
    batch = Batch(np.zeros(1, np.int64), None, [texts.column([("a", None)], NESTED), Column(np.array([7]))])
    line = lines_of(format(schema, ResultCodec(schema, texts, 1, False)), batch)
    assert line in (b'0,1,"[""a"", null]",7\n', b'{"_ts":0,"_sign":1,"c":["a", null],"d":7}\n')


@pytest.mark.parametrize("format", [CsvFormat, JsonFormat])
@pytest.mark.parametrize("few", [0, 100])
@pytest.mark.parametrize("beside", ["a", 'a,"b'])
def test_instants_of_far_years_are_written_as_they_are(
    format: Callable[..., Any], few: int, beside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_rows, "FEW", few)
    texts = TextDictionary()
    schema = Schema((Field("at", Type.TIMESTAMP), Field("t", Type.TEXT)))
    values = [2**60, -(2**60), 253402300800000, 10**15, 0, None]
    columns = [texts.column(values, Type.TIMESTAMP), texts.column([beside] * len(values), Type.TEXT)]
    batch = Batch(np.arange(len(values)), None, columns)
    written = lines_of(format(schema, ResultCodec(schema, texts, 1_000_000, False)), batch).decode().splitlines()
    instants = (
        "36536598-01-28 21:54:06.976Z",
        "-36532659-12-03 02:05:53.024Z",
        "10000-01-01 00:00:00.000Z",
        "33658-09-27 01:46:40.000Z",
        "1970-01-01 00:00:00.000Z",
    )
    assert all(instant in line for instant, line in zip(instants, written[-6:-1], strict=True))


@pytest.mark.parametrize("format", [CsvFormat, JsonFormat])
def test_far_instants_in_lists_are_written(format: Callable[..., Any]) -> None:
    texts = TextDictionary()
    schema = Schema((Field("at", Type.TIMESTAMP.list_type),))
    batch = Batch(np.arange(1), None, [texts.column([[2**60, 1, None]], Type.TIMESTAMP.list_type)])
    written = lines_of(format(schema, ResultCodec(schema, texts, 1_000_000, False)), batch).decode()
    assert "36536598-01-28 21:54:06.976+00:00" in written and "1970-01-01 00:00:00.001000+00:00" in written
