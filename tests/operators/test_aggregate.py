"""GROUP BY against groups recomputed from all rows at every instant: every aggregate, cuts anywhere, any deletions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from minidsms.elements import Column, Schema, Type
from minidsms.operators.aggregate import Aggregate, AggregateSpec
from minidsms.operators.operator import Operator
from minidsms.synopses.object_states import ObjectAggregate
from minidsms.testing.definition_aggregates import mean, stddev, variance
from minidsms.values.dictionary import TextDictionary
from tests.operators.harness import (
    Element,
    Row,
    elements,
    feed,
    queue,
    random_cuts,
    random_relation,
    random_window,
    run_in_order,
)
from tests.seeds import seeds

INT, FLOAT, TEXT, BOOL, SPAN = Type.INTEGER, Type.FLOAT, Type.TEXT, Type.BOOLEAN, Type.INTERVAL
SCHEMA = Schema.of(("k", INT), ("t", TEXT), ("i", INT), ("f", FLOAT), ("b", BOOL), ("d", SPAN))
WORDS = ["m", "z", "a", "q", "b", "y", "c"]
"""The text of code c is WORDS[c - 1]: codes are not in the order of the texts."""


class Texts(TextDictionary):
    """A dictionary whose ranks are renumbered whenever it is asked about a larger code."""

    def __init__(self) -> None:
        super().__init__()
        self.known = 0

    def ranks(self, codes: np.ndarray) -> np.ndarray:
        self.known = max(self.known, int(codes.max(initial=0)))
        order = sorted(WORDS[: self.known])
        return np.array([order.index(WORDS[c - 1]) for c in codes.tolist()], np.int64)

    def encode(self, values: Sequence[str | None]) -> Column:
        return Column(np.array([WORDS.index(v) + 1 for v in values if v is not None], np.int64))

    def decode(self, column: Column) -> list[str | None]:
        valid = [True] * len(column) if column.valid is None else column.valid.tolist()
        return [WORDS[c - 1] if ok else None for c, ok in zip(column.values.tolist(), valid)]


class Longest:
    """A user aggregate: the spread of the values."""

    def __init__(self) -> None:
        self.values: list[int] = []

    def add(self, value: int, word: str) -> None:
        self.values.append(value * len(word))

    def remove(self, value: int, word: str) -> None:
        self.values.remove(value * len(word))

    def result(self) -> int:
        return max(self.values) - min(self.values)


SPREAD = ObjectAggregate("spread", Longest, (INT, TEXT), INT, values=2)


def spec(function: str, arg: int | None = None, distinct: bool = False) -> AggregateSpec:
    arg_type = Type.NULL if arg is None else SCHEMA[arg].type
    if function in ("avg", "variance", "stddev"):
        result = FLOAT
    else:
        result = INT if function == "count" else arg_type
    return AggregateSpec(function, arg, result, arg_type, distinct)


def twin(call: AggregateSpec, rows: list[Row]) -> Any:
    """What the aggregate is, from the group's rows in arrival order."""
    if call.objects is not None:
        values: list[Any] = [row[call.args[0]] for row in rows if row[call.args[0]] is not None and row[1] is not None]
        return max(values) - min(values) if values else None
    if call.arg is None:
        return len(rows)
    if call.function in ("first", "last"):
        return rows[0 if call.function == "first" else -1][call.arg] if rows else None
    values = [row[call.arg] for row in rows if row[call.arg] is not None]
    if call.distinct:
        values = sorted(set(values))
    if call.function == "count":
        return len(values)
    if not values:
        return None
    if call.function in ("min", "max"):
        pick: Callable[..., Any] = min if call.function == "min" else max
        return pick(values, key=lambda v: WORDS[v - 1]) if call.arg_type is TEXT else pick(values)
    if any(math.isinf(v) for v in values):
        total = sum(v for v in values if math.isinf(v))
        return None if call.function in ("variance", "stddev") or math.isnan(total) else total
    exact = [Fraction(v) for v in values]
    if call.function == "sum":
        return int(sum(exact)) if call.arg_type is not FLOAT else rounded(sum(exact, Fraction(0)))
    if call.function == "avg":
        return rounded(sum(exact, Fraction(0)) / len(exact))
    if len(exact) < 2:
        return None
    mean = sum(exact) / len(exact)
    variance = float(sum((v - mean) ** 2 for v in exact) / (len(exact) - 1))
    return variance if call.function == "variance" else math.sqrt(variance)


def rounded(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float) and math.isfinite(a):
        return math.isclose(a, b, rel_tol=1e-14, abs_tol=0.0)
    return type(a) is type(b) and a == b


def expected_states(
    items: Sequence[Element], keys: Sequence[int], calls: Sequence[AggregateSpec], is_global: bool = False
) -> dict[int, dict[Row, Row]]:
    """Every group at every instant. A group is computed afresh from its rows at each instant that changes them."""
    groups: dict[Row, dict[int, Row]] = {(): {}} if is_global else {}
    shown = {(): tuple(twin(c, []) for c in calls)} if is_global else {}
    result = {}
    for ts, at in groupby(sorted(items, key=lambda e: e[0]), key=lambda e: e[0]):
        changed = set()
        for _, sign, row, seq in at:
            key = tuple(row[k] for k in keys)
            changed.add(key)
            if sign > 0:
                groups.setdefault(key, {})[seq] = row
            else:
                del groups[key][seq]
        for key in changed:
            rows = [groups[key][seq] for seq in sorted(groups[key])]
            if rows or is_global:
                shown[key] = tuple(twin(c, rows) for c in calls)
            else:
                del groups[key]
                shown.pop(key, None)
        result[ts] = dict(shown)
    return result


def check(out: list[Element], expected: dict[int, dict[Row, Row]], n_keys: int) -> None:
    """Replaying the output gives the expected groups at every instant, and nothing is put out that did not change."""
    shown: dict[Row, Row] = {}
    at = 0
    for ts, groups in expected.items():
        before = dict(shown)
        while at < len(out) and out[at][0] <= ts:
            instant, sign, row = out[at]
            assert instant == ts
            key, results = row[:n_keys], row[n_keys:]
            if sign < 0:
                assert shown.pop(key) == results
            else:
                assert key not in shown
                assert before.get(key) != results
                shown[key] = results
            at += 1
        assert set(shown) == set(groups), ts
        for key, results in groups.items():
            wrong = [(j, a, b) for j, (a, b) in enumerate(zip(shown[key], results)) if not same(a, b)]
            assert not wrong, (ts, key, wrong)
    assert at == len(out)


def some_rows(seed: int, n: int, keys: int = 3, floats: Sequence[Any] = (None, 0.25, -1.5, 3.0, 1e16)) -> list[Row]:
    rng = random.Random(seed)
    return [
        (
            rng.randrange(keys) or None,
            rng.choice((None, 1, 2, 3, 4, 5, 6, 7)[: 2 + i // 10]),
            rng.choice((None, 0, -7, 5, 5, 2**57, -(2**57), rng.randrange(1000))),
            rng.choice(list(floats)),
            rng.choice((None, True, False)),
            rng.randrange(-50, 50),
        )
        for i in range(n)
    ]


ALL = [
    spec("count"),
    *(spec("count", i) for i in (1, 3)),
    *(spec(f, i) for f in ("sum", "avg", "variance", "stddev") for i in (2, 3)),
    spec("sum", 5),
    *(spec(f, i) for f in ("min", "max", "first", "last") for i in range(1, 6)),
    *(spec(f, i, distinct=True) for f in ("count", "sum", "avg") for i in (2, 3)),
    spec("count", 1, distinct=True),
    spec("min", 3, distinct=True),
    AggregateSpec("spread", None, INT, objects=SPREAD, args=(5, 1), label="SPREAD(d, t)"),
]


@pytest.mark.parametrize("seed", seeds(6))
@pytest.mark.parametrize("keys", [(0,), (0, 1), ()])
def test_every_aggregate_is_that_of_the_rows_present(seed: int, keys: tuple[int, ...]) -> None:
    fifo = seed % 2 == 0
    rows = some_rows(seed, 90)
    items = random_window(rows, seed, size=7) if fifo else random_relation(rows, seed)
    expected = expected_states(items, keys, ALL, is_global=not keys)
    for cuts in ([], random_cuts(seed, 100), list(range(130))):
        operator = Aggregate(queue(SCHEMA), keys, ALL, is_global=not keys, input_fifo=fifo, texts=Texts())
        check(run_in_order(operator, [items], cuts), expected, len(keys))


@pytest.mark.parametrize("seed", range(4))
def test_infinities_and_huge_floats_come_and_go(seed: int) -> None:
    values = (None, math.inf, -math.inf, 1.7e308, -1.7e308, 1.0, 0.5, 5e-324)
    items = random_relation(some_rows(seed, 120, floats=values), seed, life=6)
    calls = [spec(f, 3) for f in ("sum", "avg", "min", "max", "first")]
    out = run_in_order(Aggregate(queue(SCHEMA), [0], calls), [items], random_cuts(seed, 100))
    check(out, expected_states(items, [0], calls), 1)


@pytest.mark.parametrize("values", [(1.7e308, 1.6e308, 1.5e308), (1.7e308, -1.7e308, 0.0), (1e160, 2e160, -1e160),
                                    (5e-324, 1e-323), (3e-170, 1e-170), (1.7e308,) * 3])  # fmt: skip
def test_a_deviation_is_a_float_also_where_the_variance_is_none(values: tuple[float, ...]) -> None:
    items = [(1, 1, (1, None, None, value, None, 0), seq) for seq, value in enumerate(values)]
    calls = [spec(f, 3) for f in ("stddev", "variance", "avg")]
    ((_, _, row),) = run_in_order(Aggregate(queue(SCHEMA), [0], calls), [items])
    expected = (stddev(values), variance(values), mean(values))
    assert row[1:] == pytest.approx(expected, rel=1e-15, abs=0.0)


def test_float_sums_do_not_drift() -> None:
    rng = random.Random(5)
    values = [rng.uniform(-1, 1) * 10.0 ** rng.randrange(-8, 8) for _ in range(20_000)]
    rows: list[Row] = [(1, None, None, value, None, 0) for value in values]
    items = random_window(rows, 1, size=3)
    calls = [spec("sum", 3), spec("avg", 3), spec("variance", 3)]
    out = run_in_order(Aggregate(queue(SCHEMA), [0], calls, input_fifo=True), [items], range(0, 20_000, 1000))
    for ts, sign, row in out[-400:]:
        if sign > 0:
            present = [r[3] for r in _present(items, ts)]
            assert math.isclose(row[1], math.fsum(present), rel_tol=1e-15, abs_tol=1e-30)


def _present(items: Sequence[Element], ts: int) -> list[Row]:
    near = [e for e in items if ts - 3 < e[0] <= ts and e[1] > 0]
    return [e[2] for e in near]


def test_variance_survives_a_large_offset_and_is_never_negative() -> None:
    rows: list[Row] = [(1, None, 10**18 + i % 3, 1e9 + (i % 3) * 1e-3, None, 0) for i in range(60)]
    items = random_window(rows, 3, size=4)
    calls = [spec("variance", 2), spec("variance", 3), spec("stddev", 2)]
    expected = expected_states(items, [0], calls)
    check(run_in_order(Aggregate(queue(SCHEMA), [0], calls), [items], [9]), expected, 1)
    equal: list[Row] = [(1, None, 7, 0.1, None, 0)] * 30
    out = run_in_order(Aggregate(queue(SCHEMA), [0], calls), [random_window(equal, 1)])
    assert {row[1:] for _, _, row in out} <= {(None, None, None), (0.0, 0.0, 0.0)}


def test_a_group_without_rows_disappears_and_equal_results_are_not_put_out_again() -> None:
    calls = [spec("max", 2)]
    row: Row = (1, None, 5, None, None, 0)
    items: list[Element] = [(1, 1, row, 0), (2, 1, row, 1), (3, -1, row, 0), (4, -1, row, 1), (5, 1, row, 2)]
    out = run_in_order(Aggregate(queue(SCHEMA), [0], calls, input_fifo=True), [items])
    assert out == [(1, 1, (1, 5)), (4, -1, (1, 5)), (5, 1, (1, 5))]
    assert run_in_order(Aggregate(queue(SCHEMA), [0], []), [items]) == [(1, 1, (1,)), (4, -1, (1,)), (5, 1, (1,))]


GLOBAL = [spec("count"), spec("sum", 2), spec("max", 1), spec("first", 2)]
EMPTY: Row = (0, None, None, None)


@pytest.mark.parametrize("cuts", [[], [1, 2], [3], list(range(12))])
def test_a_query_without_group_by_has_one_row_from_the_first_arrival_on(cuts: list[int]) -> None:
    ts_only = Schema(())
    items: list[Element] = [(7, 1, (1, 1, 5, None, None, 0), 0), (9, -1, (1, 1, 5, None, None, 0), 0)]

    def build() -> Operator:
        return Aggregate(queue(SCHEMA), [], GLOBAL, True, True, queue(ts_only), Texts())

    assert run_in_order(build(), [items, [(3, 1, ())]], cuts) == [
        (3, 1, EMPTY),
        (7, -1, EMPTY),
        (7, 1, (1, 5, 1, 5)),
        (9, -1, (1, 5, 1, 5)),
        (9, 1, EMPTY),
    ]
    assert run_in_order(build(), [items, [(7, 1, ())]], cuts)[0] == (7, 1, (1, 5, 1, 5))
    # Rows of a base relation may be there before a window's first arrival: the row waits for that.
    assert run_in_order(build(), [items, [(8, 1, ())]], cuts) == [
        (8, 1, (1, 5, 1, 5)),
        (9, -1, (1, 5, 1, 5)),
        (9, 1, EMPTY),
    ]
    assert run_in_order(build(), [[], [(5, 1, ())]], cuts) == [(5, 1, EMPTY)]
    assert run_in_order(build(), [items, []], cuts) == []


@pytest.mark.parametrize("cuts", [[], [2], list(range(9))])
def test_a_sum_that_overflows_at_a_closed_instant_ends_the_answer_there(cuts: list[int]) -> None:
    def row(value: int) -> Row:
        return (1, None, value, None, None, 0)

    big = 2**63 - 1
    items: list[Element] = [
        (1, 1, row(big), 0),
        (2, -1, row(big), 0),
        (2, 1, row(5), 1),
        (2, 1, row(big), 2),
        (2, 1, row(-5), 3),
        (4, 1, row(1), 4),
        (5, -1, row(big), 2),
    ]
    calls = [spec("avg", 2), AggregateSpec("sum", 2, INT, INT, label="SUM(i)")]
    operator = Aggregate(queue(SCHEMA), [0], calls)
    out = run_in_order(operator, [items], cuts)
    # Inside instant 2 the running sum passes the limit; at its end it does not.
    assert [(ts, s, r[2]) for ts, s, r in out] == [(1, 1, big), (2, -1, big), (2, 1, big)] or [
        (ts, s, r[2]) for ts, s, r in out
    ] == [(1, 1, big)]
    assert operator.failure is not None
    assert (operator.failure.ts, operator.failure.reason) == (4, "SUM(i) overflows INTEGER")


class Fussy(Longest):
    def add(self, value: int, word: str) -> None:
        if value > 40:
            raise ValueError("too much")
        super().add(value, word)


def test_a_user_aggregate_that_raises_ends_the_answer_at_that_instant() -> None:
    fussy = ObjectAggregate("fussy", Fussy, (INT, TEXT), INT, values=2)
    calls = [spec("count"), AggregateSpec("fussy", None, INT, objects=fussy, args=(5, 1))]
    items: list[Element] = [(ts, 1, (1, 1, None, None, None, d), ts) for ts, d in ((1, 3), (2, 10), (3, 41), (4, 1))]
    operator = Aggregate(queue(SCHEMA), [0], calls, texts=Texts())
    assert run_in_order(operator, [items]) == [
        (1, 1, (1, 1, 0)),
        (2, -1, (1, 1, 0)),
        (2, 1, (1, 2, 7)),
    ]
    assert operator.failure is not None and operator.failure.ts == 3 and "too much" in operator.failure.reason


@pytest.mark.parametrize("fifo", [True, False])
def test_ever_new_groups_run_in_flat_memory(fifo: bool) -> None:
    calls = [c for c in ALL if c.objects is None]
    operator = Aggregate(queue(SCHEMA), [0], calls, input_fifo=fifo, texts=Texts())
    sizes = []
    for part in range(12):
        rows: list[Row] = [(part * 3000 + i + 1, 1 + i % 7, i, i / 2, True, 1) for i in range(3000)]
        items = [(e[0] + part * 10_000, *e[1:]) for e in random_window(rows, part, size=200)]
        feed(operator, [items], range(part * 10_000, (part + 1) * 10_000, 500), until=(part + 1) * 10_000)
        sizes.append(operator.groups.nbytes)
    assert max(sizes[2:]) <= sizes[1]
    assert len(operator.groups) == 0


def test_memory_comes_back_when_most_groups_have_gone() -> None:
    operator = Aggregate(queue(SCHEMA), [0], [c for c in ALL if c.objects is None], input_fifo=False, texts=Texts())
    rows: list[Row] = [(i + 1, 1 + i % 7, i, i / 2, True, 1) for i in range(6000)]
    born: list[Element] = [(1, 1, row, i) for i, row in enumerate(rows)]
    gone: list[Element] = [(ts + 2, -1, row, ts) for ts, row in enumerate(rows[:5900])]
    kept = [(10_000, -1, row, i) for i, row in enumerate(rows) if i >= 5950]
    expected = expected_states([(1, 1, row, i) for i, row in enumerate(rows) if 5900 <= i < 5950], [0], ALL[:-1])[1]
    run_in_order(operator, [born], until=1)
    full = operator.groups.nbytes
    run_in_order(operator, [gone], range(2, 6000, 50), until=9000)
    out = run_in_order(operator, [kept], until=10_000)
    assert operator.groups.nbytes * 3 < full
    again = run_in_order(operator, [[(10_001, -1, row, i) for i, row in enumerate(rows) if 5900 <= i < 5950]])
    check([(1, 1, row) for _, _, row in again], {1: expected}, 1)
    assert len(out) == len(again) == 50


@pytest.mark.parametrize("fifo", [True, False])
def test_state_goes_out_as_arrays_and_comes_back(fifo: bool) -> None:
    calls = [c for c in ALL if c.objects is None]
    rows = some_rows(8, 90, keys=12)
    items = random_window(rows, 8, size=25) if fifo else random_relation(rows, 8, life=30)
    middle = items[len(items) // 2][0]
    start = [e for e in items if e[0] <= middle]
    rest = [e for e in items if e[0] > middle]
    operator = Aggregate(queue(SCHEMA), [0], calls, input_fifo=fifo, texts=Texts())
    run_in_order(operator, [start], until=middle)
    restored = Aggregate(queue(SCHEMA), [0], calls, input_fifo=fifo, texts=Texts())
    restored.groups.restore(operator.groups.arrays())
    codes = {int(c) for a in operator.groups.live_codes() for c in a} - {0}
    assert codes <= set(range(1, 8)) and codes
    assert feed(restored, [rest]) == feed(operator, [rest])
    assert elements([]) == []
    assert operator.describe().figures["groups"] == len(operator.groups)
