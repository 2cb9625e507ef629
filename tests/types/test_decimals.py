"""DECIMAL as whole columns of computed codes, as single values, and where codes are not computed: always the same."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import minidsms
from minidsms.cql.errors import DataError, Error
from minidsms.durability.blocks import Content
from minidsms.durability.kept_state import take_texts, texts_entry
from minidsms.elements import Column
from minidsms.expressions import decimals
from minidsms.inputs.values import ValueRefused, decimal_value
from minidsms.kernels.aggregation import FAILED, NULL, VALUE
from minidsms.synopses.decimal_sums import DecimalSums
from minidsms.synopses.group_state import Argument, Run
from minidsms.testing.compare import check
from minidsms.testing.feeds import Advance, Push
from minidsms.testing.generators import Case
from minidsms.values.arrow_types import codes_of_decimals, decimals_of_codes
from minidsms.values.coded import CODE_OF_ZERO, MOST_COMPUTED, scaled, text_of_digits
from minidsms.values.dictionary import TextDictionary
from minidsms.values.types import Type

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
DECLARED = "CREATE STREAM D (k INTEGER, p DECIMAL(12, 2), q DECIMAL(18, 4), w DECIMAL(38, 6), x FLOAT)"
NEAR = (0, 1, 49, 50, 51, 99, 100, 150, 2**31, 10**12 - 1, 10**18 - 1)
FAR = (2**53 + 1, MOST_COMPUTED, MOST_COMPUTED + 1, 2**62, 2**63, 2**64 + 1, 10**30, 10**38 - 1)
FLOATS = (0.0, 0.5, 2.675, 0.005, 1.005, 1e-9, 123456.785, 1e15, 4e17, 0.1 + 0.2, 9007199254740993.0, 1e22, 1e300)
EXPRESSIONS = (
    "p + q", "p - q", "p * q", "p % 0.3", "q % p", "p * 1.19", "p * k", "q + k", "w + p", "w - w", "w * 2", "w * w",
    "w % 7", "-p", "-w", "ABS(q)", "ABS(w)", "FLOOR(q)", "CEIL(q)", "ROUND(q)", "ROUND(q, 1)", "ROUND(q, -3)",
    "ROUND(w, 2)", "ROUND(p, k)", "FLOOR(w)", "CEIL(w)", "ROUND(q, 9)", "ROUND(w, -30)",
    "TRUNC(q)", "TRUNC(p, 1)", "TRUNC(q, -3)", "TRUNC(w, 2)", "TRUNC(w)", "TRUNC(p, k)", "TRUNC(q, 9)", "TRUNC(w, -30)",
    "TRY_CAST(p AS DECIMAL(6, 1))", "TRY_CAST(q AS DECIMAL(18, 0))", "TRY_CAST(w AS DECIMAL(18, 6))",
    "TRY_CAST(q AS DECIMAL(38, 30))", "TRY_CAST(w AS DECIMAL(38, 0))", "TRY_CAST(k AS DECIMAL(18, 8))",
    "TRY_CAST(x AS DECIMAL(18, 2))", "TRY_CAST(x AS DECIMAL(38, 20))", "TRY_CAST(x AS DECIMAL(5, 0))",
    "CAST(p AS FLOAT)", "CAST(q AS FLOAT)", "CAST(w AS FLOAT)", "CAST(p AS INTEGER)", "TRY_CAST(w AS INTEGER)",
    "CAST(p AS BOOLEAN)", "CAST(w AS TEXT)", "p < q", "p >= w", "w > 0.5", "q <> p", "p IN (0.5, 1, q)", "w = k",
    "LEAST(p, q)", "GREATEST(w, p)", "LEAST(w, -w)", "COALESCE(p, q, w)", "NULLIF(p, q)", "p / q", "w BETWEEN p AND q",
    "CASE WHEN p > q THEN p ELSE w END", "p IS DISTINCT FROM q", "CAST(k > 0 AS DECIMAL(3, 1))",
)  # fmt: skip
QUERIES = (
    "SELECT k AS c0, SUM(p) AS c1, SUM(q * 2) AS c2, MIN(p) AS c3, MAX(w) AS c4, AVG(q) AS c5 FROM D [ROWS 5]"
    " GROUP BY k",
    "SELECT SUM(DISTINCT w) AS c0, COUNT(DISTINCT p) AS c1, MIN(w) AS c2, MAX(q) AS c3 FROM D [RANGE 4]",
    "SELECT k AS c0, MIN(w) AS c1, MAX(w) AS c2, MAX(p) AS c3, SUM(w) AS c4 FROM D [PARTITION BY k ROWS 3] GROUP BY k",
    "SELECT SUM(p) AS c0, MAX(p) AS c1, MIN(w) AS c2, QUANTILE_DISC(w, 0.5) AS c3 FROM D [RANGE 6 SLIDE 2]",
    "SELECT w AS c0, COUNT(*) AS c1 FROM D [ROWS 6] GROUP BY w",
    "SELECT DISTINCT p AS c0, w AS c1 FROM D [RANGE 3]",
    "SELECT a.p AS c0, b.w AS c1 FROM D [ROWS 4] AS a, D [RANGE 3] AS b WHERE a.p = b.p AND a.w <= b.w",
    "SELECT w AS c0, p AS c1 FROM D [ROWS 9] ORDER BY w DESC, p LIMIT 3",
    "SELECT k AS c0, SUM(w) OVER (PARTITION BY k ORDER BY p) AS c1, LAG(w) OVER (ORDER BY w) AS c2 FROM D [ROWS 4]",
    "SELECT MAX(x.s) AS c0 FROM (SELECT k, SUM(p) AS s FROM D [ROWS 7] GROUP BY k) AS x",
    "SELECT a.k AS c0 FROM D [NOW] AS a WHERE a.w > (SELECT AVG(w) FROM D [ROWS 5])",
    "SELECT AVG(DISTINCT p) AS c0, AVG(q) FILTER (WHERE k > 0) AS c1 FROM D [RANGE 3] GROUP BY ROLLUP (k)",
    "SELECT k AS c0, AVG(q) OVER (PARTITION BY k ORDER BY p ROWS 1 PRECEDING) AS c1 FROM D [ROWS 4]",
)


@pytest.fixture(params=["columns", "values"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "values":
        monkeypatch.setattr(decimals, "of_columns", lambda *call: lambda values: None)
        monkeypatch.setattr(decimals, "cast", lambda *types: None)


def drawn(rng: random.Random, digits: int, scale: int, far: Sequence[int]) -> Decimal | None:
    """NULL, what lies near, or far where the type can have it."""
    if rng.random() < 0.1:
        return None
    found = rng.choice([d for d in NEAR if d < 10**digits])
    if far and digits > 18 and rng.random() < 0.5:
        found = rng.choice(far)
    return scaled(rng.choice((1, -1)) * found, scale)


def case_of(query: str, seed: int, far: Sequence[int]) -> Case:
    rng = random.Random(f"{query} {seed}")
    rows = []
    for i in range(40):
        k = None if rng.random() < 0.1 else rng.choice((0, 1, -2, 3))
        x = None if rng.random() < 0.1 else rng.choice((1, -1)) * rng.choice(FLOATS)
        values = (drawn(rng, *of, far) for of in ((12, 2), (18, 4), (38, 6)))
        rows.append((1 + i // rng.choice((1, 2)), 1, (k, *values, x)))
    rows.sort(key=lambda row: row[0])
    return Case((DECLARED,), query, (Push("D", tuple(rows)), Advance(60)))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_are_what_the_definition_says(expression: str) -> None:
    for seed, far in enumerate(((), FAR)):
        case = case_of(f"SELECT RSTREAM({expression} AS c0) FROM D [NOW]", seed, far)
        assert check(case, batch_size=1000) == "agreed"


@pytest.mark.parametrize("query", QUERIES)
def test_queries_are_what_the_definition_says(query: str) -> None:
    far = FAR[:-1]  # a few of the last one have more than 38 digits together, which is a failure
    for seed, (beside, batch_size) in enumerate((((), 1000), (far, 1000), (far, 1), (far, 7))):
        assert check(case_of(query, seed, beside), batch_size=batch_size, compilation="at once") == "agreed"
    for batch_size in (1, 7, 1000):
        assert check(case_of(query, 4, FAR[-1:]), batch_size=batch_size) == "agreed"


def test_sums_are_exact_whatever_comes_and_goes() -> None:
    rng, texts, type_ = random.Random(5), TextDictionary(), Type.decimal(38, 0)
    sums = DecimalSums(type_, texts)
    sums.resize(3)
    present: list[list[int]] = [[], [], []]
    for _ in range(30):
        ids, weights, digits, expected = [], [], [], []
        for _ in range(20):
            group = rng.randrange(3)
            if present[group] and rng.random() < 0.5:
                value, weight = present[group].pop(rng.randrange(len(present[group]))), -1
            else:
                value, weight = rng.choice((1, -1)) * rng.choice((*NEAR, *FAR)), 1
                present[group].append(value)
            ids.append(group), weights.append(weight), digits.append(value)
            expected.append(sum(present[group]) if present[group] else None)
        n = len(ids)
        codes = texts.digits_column(digits).values
        results, status = np.zeros((n, 1), np.int64), np.zeros((n, 1), np.int8)
        arrays = np.array(ids), results, results.view(np.float64), status
        run = Run(None, None, None, *arrays)  # type: ignore[arg-type]
        sums.advance(run, Argument(codes, np.ones(n, np.int8), np.array(weights, np.int8)), 0)  # type: ignore[arg-type]
        for code, told, total in zip(results[:, 0], status[:, 0], expected):
            if total is not None and abs(total) >= 10**38:
                assert told == FAILED
                continue
            assert told == (NULL if total is None else VALUE)
            assert texts.values(Column(np.array([code])), type_) == [None if total is None else Decimal(total)]
        sums.restore(sums.arrays(np.arange(3)), 3)


@pytest.mark.parametrize("kind", [pa.decimal128(12, 2), pa.decimal256(40, 2), pa.decimal128(9, 1), pa.int64()])
def test_arrow_columns_are_read_at_once(kind: pa.DataType) -> None:
    type_ = Type.decimal(12, 2)
    values = [None, Decimal("-3"), Decimal("0"), Decimal("99999"), None, Decimal("7")]
    array = pa.array(values, kind if pa.types.is_decimal(kind) else pa.decimal128(9, 0)).cast(kind).slice(1)
    column = codes_of_decimals(array, type_)
    assert column is not None and TextDictionary().values(column, type_) == values[1:]
    told = decimals_of_codes(column, type_)
    assert told is not None and told.type == pa.decimal128(12, 2) and told.to_pylist() == values[1:]


def test_no_values_behind_an_offset_are_a_column() -> None:
    type_ = Type.decimal(38, 2)
    array = pa.Array.from_buffers(pa.decimal128(38, 2), 0, [None, pa.py_buffer(b"")], offset=1)  # as readers give them
    column = codes_of_decimals(array, type_)
    assert column is not None and TextDictionary().values(column, type_) == []


def test_arrow_columns_that_do_not_fit_are_looked_at_value_by_value() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (p DECIMAL(4, 2), w DECIMAL(38, 2))")
        query = db.query("SELECT p, w FROM S [NOW]")
        array = pa.array([Decimal("1.50"), Decimal("12.345")], pa.decimal128(9, 3))
        for column, message in ((array, "row 1.*more than 2 digits"), (pa.array([1, 100]), "row 1.*does not fit")):
            with pytest.raises(Error, match=message):
                db.push("S", {"p": column, "w": column}, ts=1)
        far = [Decimal("1.00"), Decimal(10**35), None]
        db.push("S", {"p": [Decimal("1"), Decimal("NaN"), None], "w": pa.array(far)}, ts=1)
        db.advance(1)
        expected: list[tuple[Any, ...]] = [(Decimal("1.00"), far[0]), (None, far[1]), (None, None)]
        assert sorted((c.row for c in query.fetch()), key=str) == sorted(expected, key=str)


def test_a_text_of_digits_is_a_text() -> None:
    """A DECIMAL and a TEXT of the same characters have codes of their own."""
    text = text_of_digits(150)
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t TEXT, p DECIMAL(9, 2))")
        query = db.query("SELECT t, UPPER(t), p, MIN(t) FROM S [NOW] WHERE t = '" + text + "' GROUP BY t, p")
        db.push("S", [(text, Decimal("1.50")), ("b", None)], ts=1)
        db.advance(1)
        assert [c.row for c in query.fetch()] == [(text, text, Decimal("1.50"), text)]


def test_state_with_decimals_of_an_older_version_is_refused() -> None:
    texts = TextDictionary()
    codes = texts.encode([text_of_digits(150), "a"]).values
    entry = texts_entry(texts, [codes])
    assert entry is not None
    fields, pieces = entry
    payload = b"".join(bytes(part) for piece in pieces for part in piece)
    take_texts(TextDictionary(), dict(fields), Content(None, memoryview(payload), ""))
    del fields["version"]
    with pytest.raises(Error, match="older minidsms"):
        take_texts(TextDictionary(), dict(fields), Content(None, memoryview(payload), ""))


def test_codes_are_in_the_order_of_their_decimals() -> None:
    texts, type_ = TextDictionary(), Type.decimal(38, 0)
    digits = sorted({sign * d for sign in (1, -1) for d in (*NEAR, *FAR)})
    column = texts.digits_column([None, *digits])
    for codes in (column.values, np.tile(column.values, 30)):
        ranks = texts.ranks(codes)[: len(column)]
        assert (np.diff(ranks) > 0).all()
    assert texts.column([Decimal(d) for d in digits], type_).values.tolist() == column.values.tolist()[1:]
    assert (column.values < 0).sum() == sum(abs(d) <= MOST_COMPUTED for d in digits)
    assert texts.digits_column([0]).values[0] == CODE_OF_ZERO
    texts.sweep([column.values[column.values <= 0]])
    assert len(texts) == 0


SPELT = [
    "1.5", "-0", "+1.50", "007", "99.99", "100.00", "99.994", ".5", "5.", "1e1", " 2 ", "", "x", "-0.01", "1.", "1_0",
]  # fmt: skip
NUMBERS = [1, -3, 100, 2**62, 10**19, 0.1, 0.125, 99.995, 1e-9, 1e20, math.nan, math.inf, -99.99, -0.0]
EXACT = [Decimal("1.50"), Decimal("-0.0"), Decimal("0E+10"), Decimal("NaN"), Decimal("1.555")]


@pytest.mark.parametrize(
    "type_", [Type.decimal(4, 2), Type.decimal(2, 2), Type.decimal(3, 0), Type.decimal(38, 2)], ids=str
)
@pytest.mark.parametrize("value", [*SPELT, *NUMBERS, *EXACT], ids=repr)
def test_a_value_of_a_column_is_read_as_alone(type_: Type, value: Any) -> None:
    alone: Any = "refused"
    with contextlib.suppress(ValueRefused):
        alone = decimal_value(value, type_)
    usual = type(value)(0)
    columns: list[Any] = [[value], [value] * 40, [usual] * 40 + [value], [None] * 40 + [value]]
    if isinstance(value, str):
        columns += [pa.array(["0"] * 40 + [value]), pa.array([None] * 40 + [value], pa.large_string())]
    for column in columns:
        with minidsms.connect() as db:
            db.execute(f"CREATE STREAM S (x {type_})")
            q = db.query("SELECT x FROM S")
            read: Any = "refused"
            with contextlib.suppress(DataError):
                db.push("S", {"x": column}, ts=1)
                db.advance(1)
                read = q.fetch()[-1].row[0]
        assert str(read) == str(alone)


def test_zero_with_an_exponent_fits_every_decimal() -> None:
    for zero in (Decimal("0E+10"), "0e10", Decimal("-0E+40")):
        assert str(decimal_value(zero, Type.decimal(2, 2))) == "0.00"


MEANS = [
    "AVG(d)",
    "AVG(DISTINCT d)",
    "AVG(d) OVER ()",
    "AVG(d) FILTER (WHERE d < 2)",
    "MEDIAN(d)",
    "QUANTILE_CONT(d, 0.5)",
]


@pytest.mark.parametrize("mean", MEANS)
def test_means_of_decimals_are_those_of_their_digits(mean: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (d DECIMAL(5, 2))")
        query = db.query(f"SELECT DISTINCT {mean} FROM S [ROWS 2]")
        for ts, values in enumerate([("1.25", "-2.05"), ("0.10", "0.20")]):
            db.push("S", [(value,) for value in values], ts=ts)
            db.advance(ts)
            assert query.snapshot() == [((-0.4, 0.15)[ts],)]


@pytest.mark.parametrize(
    ("text", "rounded"),
    [("1.255", "1.26"), ("-1.255", "-1.26"), (" 9e-3 ", "0.01"), ("-0.004", "0.00"), ("99.995", None), ("1,5", None)],
)
def test_cast_of_text_rounds_and_push_refuses_to(text: str, rounded: str | None) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t TEXT, d DECIMAL(4, 2))")
        query = db.query("SELECT RSTREAM(TRY_CAST(t AS DECIMAL(4, 2))) FROM S [NOW]")
        db.push("S", (text, None), ts=1)
        db.advance(1)
        assert query.fetch()[0].row == (None if rounded is None else Decimal(rounded),)
        with pytest.raises(Error):
            db.push("S", (None, text), ts=2)
