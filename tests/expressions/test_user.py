"""User functions: rows, NULLs, results of the wrong type, and exceptions that stay with their row."""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Callable
from datetime import date, time
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.cql.bound import ColumnRef, UserCall
from minidsms.cql.catalog import FunctionDef
from minidsms.elements import Batch, Column, Type
from minidsms.expressions import Context, Evaluator, compile_predicate
from minidsms.values.dictionary import TextDictionary
from tests.expressions.generating import BOOLEAN, FLOAT, INTEGER, TEXT, call, column, literal

FAILURE = "failed"


def results(
    function: Callable[..., Any], values: list[Any], arg: Type, result: Type, vectorized: bool = False
) -> list[Any]:
    d = TextDictionary()
    definition = FunctionDef("F", function, (arg,), result, vectorized)
    evaluator = Evaluator(UserCall(result, "F", (ColumnRef(arg, 0),)), Context(d, functions={"f": definition}))
    if arg is TEXT:
        data = d.encode(values)
    else:
        valid = np.array([v is not None for v in values])
        data = Column(np.array([v or 0 for v in values], arg.dtype), None if valid.all() else valid)
    value = evaluator(lambda index: data, len(values))
    items = d.decode(value.column()) if result is TEXT else value.values.tolist()
    return [
        FAILURE
        if value.failed is not None and value.failed[i]
        else None
        if value.valid is not None and not value.valid[i]
        else item
        for i, item in enumerate(items)
    ]


NAMES_OF_CQL = """abs SUBSTR sum Mean lag row_number median list coalesce case cast distinct any select null unnest
exists grouping"""


@pytest.mark.parametrize("name", NAMES_OF_CQL.split())
def test_a_name_of_cql_is_refused(name: str) -> None:
    class Nothing:
        add = remove = result = lambda *_: None

    with minidsms.connect() as db:
        for define in (
            lambda: db.create_function(name, abs, ["INTEGER"], "INTEGER"),
            lambda: db.create_aggregate(name, Nothing, ["INTEGER"], "INTEGER"),
        ):
            with pytest.raises(minidsms.Error, match=f'"{name}" is a (built-in function|word of CQL); choose another'):
                define()
        db.create_function("day_of", abs, ["INTEGER"], "INTEGER")


def test_a_scalar_function_sees_python_values_and_none() -> None:
    seen: list[Any] = []
    results(lambda x: seen.append(x), [1, None], INTEGER, INTEGER)
    results(lambda x: seen.append(x), ["a", None], TEXT, INTEGER)
    assert seen == [1, None, "a", None] and type(seen[0]) is int


def test_an_exception_fails_its_row_only() -> None:
    assert results(lambda x: 10 // x, [1, 0, 5], INTEGER, INTEGER) == [10, FAILURE, 2]


@pytest.mark.parametrize("is_vectorized", [False, True])
def test_a_function_that_exits_fails_its_row_but_what_a_signals_handler_raises_amid_it_ends_the_call(
    is_vectorized: bool,
) -> None:
    class Ending:
        def __call__(self, number: int, frame: object) -> None:
            sys.exit(number)

    def exits(x: Any) -> Any:
        if np.any(np.asarray(x) == 7):
            sys.exit(7)
        if np.any(np.asarray(x) == 8):
            signal.raise_signal(signal.SIGTERM)
        return x

    def ends_once(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        sys.exit(number)

    before = signal.getsignal(signal.SIGTERM)
    try:
        for handler in (Ending(), functools.partial(ends_once), lambda *told: sys.exit(*told[:1])):
            signal.signal(signal.SIGTERM, handler)
            assert results(exits, [1, 7, 3], INTEGER, INTEGER, is_vectorized) == [1, FAILURE, 3]
            with pytest.raises(SystemExit, match=str(int(signal.SIGTERM))):
                results(exits, [1, 8], INTEGER, INTEGER, is_vectorized)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("gives", "type_", "found"),
    [(2**63, INTEGER, FAILURE), (1.5, INTEGER, FAILURE), ("x", INTEGER, FAILURE), (1, BOOLEAN, FAILURE),
     (1, TEXT, FAILURE), ("\ud800", TEXT, FAILURE), (None, TEXT, None), (float("nan"), FLOAT, None), (3, FLOAT, 3.0),
     (np.int64(4), INTEGER, 4)],
)  # fmt: skip
def test_a_result_is_of_the_declared_type_or_a_failure(gives: Any, type_: Type, found: Any) -> None:
    assert results(lambda x: gives, [1], INTEGER, type_) == [found]


def test_a_vectorised_function_sees_only_rows_without_null() -> None:
    assert results(lambda x: x * 2, [1, None, 3], INTEGER, INTEGER, True) == [2, None, 6]
    assert results(lambda x: np.array([t + "!" for t in x], object), ["a", None], TEXT, TEXT, True) == ["a!", None]


def test_a_vectorised_exception_is_narrowed_to_its_rows() -> None:
    def picky(x: Any) -> Any:
        if (x == 7).any():
            raise ValueError("seven")
        return x

    assert results(picky, [1, 7, 3, 7, 5], INTEGER, INTEGER, True) == [1, FAILURE, 3, FAILURE, 5]


def test_a_vectorised_result_of_the_wrong_shape_fails() -> None:
    assert results(lambda x: np.zeros(5, np.int64), [1, 2], INTEGER, INTEGER, True) == [FAILURE, FAILURE]


def test_a_predicate_calls_a_function_only_for_rows_still_open() -> None:
    seen: list[int] = []
    definition = FunctionDef("f", lambda x: seen.append(x) or True, (INTEGER,), BOOLEAN)  # type: ignore[func-returns-value]
    condition = call(
        BOOLEAN, "and", call(BOOLEAN, ">", column("i"), literal(1)), UserCall(BOOLEAN, "f", (column("i"),))
    )
    batch = Batch(np.zeros(3, np.int64), None, [Column(np.array([1, 2, 3]))])
    mask, failed = compile_predicate(condition, Context(TextDictionary(), functions={"f": definition}))(batch)
    assert mask.tolist() == [False, True, True] and failed is None and seen == [2, 3]


def test_what_a_vectorised_function_keeps_of_its_result_stays_its_own() -> None:
    kept: list[Any] = []

    def keeping(x: Any) -> Any:
        if kept:
            kept[0][:] = -1
        kept[:] = [x * 2]
        return kept[0]

    definition = FunctionDef("f", keeping, (INTEGER,), INTEGER, vectorized=True)
    evaluator = Evaluator(
        UserCall(INTEGER, "f", (column("i"),)), Context(TextDictionary(), functions={"f": definition})
    )
    columns = Column(np.array([1, 2, 3]))
    first = evaluator(lambda index: columns, 3)
    second = evaluator(lambda index: columns, 3)
    assert first.values.tolist() == second.values.tolist() == [2, 4, 6]
    view = FunctionDef("g", lambda x: kept[0][:3], (INTEGER,), INTEGER, vectorized=True)
    viewing = Evaluator(UserCall(INTEGER, "g", (column("i"),)), Context(TextDictionary(), functions={"g": view}))
    shown = viewing(lambda index: columns, 3)
    kept[0][:] = 0
    assert shown.values.tolist() == [2, 4, 6]


def test_a_universal_function_gives_of_constants_and_columns_what_one_of_rows_gives() -> None:
    columns = Column(np.array([12, 7, 18]))
    for args in ((column("i"), literal(6)), (literal(6), column("i")), (literal(6), literal(4)), (column("i"),) * 2):
        found = []
        for function in (np.gcd, lambda a, b: np.gcd(a, b)):
            definition = FunctionDef("f", function, (INTEGER, INTEGER), INTEGER, vectorized=True)
            context = Context(TextDictionary(), functions={"f": definition})
            found.append(Evaluator(UserCall(INTEGER, "f", args), context)(lambda index: columns, 3))
        assert found[0].values.tolist() == found[1].values.tolist() and len(found[0].values) == 3
        assert columns.values.tolist() == [12, 7, 18]


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize(
    ("type_", "values", "wrong"),
    [
        ("DECIMAL(9, 2)", [Decimal("1.50"), Decimal("-7.25"), None, Decimal("1.50")], Decimal("1.555")),
        ("DECIMAL(38, 10)", [Decimal("9" * 28 + ".5000000000"), None], "x"),
        ("DATE", [date(2024, 2, 29), None, date(1, 1, 1)], "x"),
        ("TIME", [time(1, 2, 3, 4), None], date(2024, 2, 29)),
        ("INTEGER[]", [[1, None, 2], [], None, [1]], ["a"]),
        ("TEXT[]", [["a", None], None], [1]),
        ("STRUCT(a INTEGER, d DATE)", [{"a": 1, "d": date(2024, 2, 29)}, None, {"a": None, "d": None}], {"b": 1}),
        ("MAP(TEXT, DECIMAL(9, 2))", [{"a": Decimal("1.50")}, {}, None], {1: 2}),
    ],
)
def test_values_of_all_types_come_and_go_as_rows_show_them(
    type_: str, values: list[Any], wrong: Any, vectorized: bool
) -> None:
    seen: list[Any] = []

    def same(x: Any) -> Any:
        seen.extend(x if vectorized else [x])
        return x

    def bad(x: Any) -> Any:
        return np.array([wrong, None], object)[: len(x)] if vectorized else wrong

    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (x {type_})")
        db.create_function("same", same, [type_], type_, vectorized=vectorized)
        db.create_function("bad", bad, [type_], type_, vectorized=vectorized)
        query = db.query("SELECT RSTREAM(same(x) AS r) FROM S [NOW]")
        failing = db.query("SELECT RSTREAM(bad(x) AS r) FROM S [NOW]")
        db.push("S", [(value,) for value in values], ts=list(range(len(values))))
        db.advance(9)
        assert [change.row for change in query.fetch()] == [(value,) for value in values]
        assert [v for v in seen if v is not None] == [v for v in values if v is not None]
        with pytest.raises(minidsms.QueryError, match="bad must give"):
            failing.fetch()


@pytest.mark.parametrize(
    ("type_", "values", "wrong"),
    [
        ("DATE", [date(2024, 2, 29), None, date(1, 1, 1)], "x"),
        ("TIME", [time(1, 2, 3, 4), None], date(2024, 2, 29)),
        ("INTEGER[]", [[1, None, 2], [], None, [1]], ["a"]),
        ("STRUCT(a INTEGER, d DATE)", [{"a": 1, "d": date(2024, 2, 29)}, None], {"b": 1}),
        ("MAP(TEXT, DECIMAL(9, 2))", [{"a": Decimal("1.50")}, {}, None], {1: 2}),
    ],
)
def test_aggregates_are_given_values_as_rows_show_them(type_: str, values: list[Any], wrong: Any) -> None:
    class Newest:
        """The value that came last of those present."""

        def __init__(self) -> None:
            self.values: list[Any] = []

        def add(self, value: Any) -> None:
            self.values.append(value)

        def remove(self, value: Any) -> None:
            self.values.remove(value)

        def result(self) -> Any:
            return self.values[-1] if self.values else None

    class Wrong(Newest):
        """It gives what is not of the type."""

        def result(self) -> Any:
            return wrong

    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (x {type_})")
        db.create_aggregate("newest", Newest, [type_], type_)
        db.create_aggregate("bad", Wrong, [type_], type_)
        query = db.query("SELECT newest(x) AS r FROM S [ROWS 1]")
        failing = db.query("SELECT bad(x) AS r FROM S [ROWS 1]")
        for ts, value in enumerate(values):
            db.push("S", [(value,)], ts=ts)
            db.advance(ts)
            assert query.snapshot() == [(value,)]
        with pytest.raises(minidsms.QueryError, match="bad: "):
            failing.fetch()
