"""Filters that run together keep what they keep one by one, and as many rows reach each place."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minidsms.cql.bound import Expr
from minidsms.elements import Column
from minidsms.expressions import Context, predicate, programs
from minidsms.expressions.filter_tests import Members
from minidsms.expressions.filters import Filter
from minidsms.expressions.joint_program import JointProgram
from minidsms.expressions.predicate import joint_of, narrow_by
from minidsms.expressions.value import Frame
from minidsms.kernels import filtering
from minidsms.values.dictionary import TextDictionary
from tests.expressions.generating import (
    BOOLEAN,
    EDGE,
    INTEGER,
    SCHEMA,
    batch_of,
    call,
    column,
    expressions,
    literal,
    rows,
)  # fmt: skip
from tests.expressions.test_programs import programmable

SLOW = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
EDGES = [0, 1, -1, 7, -7, 999, 1000, -1000, 2**31, -(2**31) - 1, 2**50, -(2**50) - 1, 2**53 + 1, EDGE - 1, -EDGE]


@pytest.fixture(autouse=True)
def of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicate, "FROM", 1)


class Setting:
    """SET compilation, as filters are told of it."""

    asked = "at once"

    def context(self) -> Context:
        return Context(TextDictionary(), compilation=lambda: self.asked)


SETTING = Setting()


def narrowed(
    filters: list[Filter], frame: Frame, order: list[int], among: np.ndarray | None, joint: JointProgram | None
) -> tuple[Any, ...]:
    reached = [0] * (len(order) + 1)
    kept, wrong = narrow_by(filters, order, frame, among, True, reached, joint)
    return reached, None if kept is None else kept.tolist(), None if wrong is None else wrong.tolist()


def by_numpy(filters: list[Filter], frame: Frame, order: list[int], among: np.ndarray | None) -> tuple[Any, ...]:
    SETTING.asked = "off"
    try:
        return narrowed(filters, frame, order, among, joint_of(filters))
    finally:
        SETTING.asked = "at once"


def agrees(filters: list[Filter], frame: Frame, order: list[int], among: np.ndarray | None) -> None:
    expected = by_numpy(filters, frame, order, among)
    joint = joint_of(filters)
    for together in (None, joint, joint):
        found = narrowed(filters, frame, order, among, together)
        assert found == expected, (order, [each.text for each in filters])


def laid(array: Any, random: Random) -> Any:
    """The same values elsewhere: not writeable, amid others, not side by side, or across words."""
    match random.randrange(10):
        case 0:
            array = array.copy()
            array.flags.writeable = False
        case 1:
            array = np.concatenate((array[:1], array, array[:1]))[1:-1]
        case 2:
            array = np.repeat(array, 2)[::2]
        case 3:
            array = np.frombuffer(b"0" + array.tobytes(), array.dtype, len(array), 1)
    return array


def part_of(columns: list[Column], random: Random) -> Frame:
    """All rows, some that follow one another, or any."""
    n = len(columns[0].values)
    frame, start = Frame(lambda index: columns[index], n), random.randrange(n)
    match random.randrange(3):
        case 0:
            return frame.slice(start, random.randint(start + 1, n))
        case 1:
            return frame.subset(np.array(sorted(random.sample(range(n), random.randint(1, n)))))
    return frame


def random_tests(random: Random) -> list[Expr]:
    """Conditions which most rows pass or few; some fail."""
    compared = ["<", "<=", ">", ">=", "=", "<>"]

    def draw() -> Expr:
        match random.randrange(10):
            case 0:
                return call(BOOLEAN, random.choice(compared), column("f"), literal(random.choice([0.0, 1.5, -1.5])))
            case 1:
                return call(BOOLEAN, "in", column("i"), *(literal(random.choice(EDGES)) for _ in range(4)))
            case 2:
                return call(BOOLEAN, random.choice(["=", "<>"]), column("t"), literal(random.choice(["a", "b"])))
            case 3:
                return call(BOOLEAN, "is null", column(random.choice("ijft")))
            case 4:
                return random.choice([column("b"), call(BOOLEAN, "not", column("b"))])
            case 5:
                rest = call(INTEGER, "%", column(random.choice("ij")), literal(random.choice([3, 1000, -7])))
                return call(BOOLEAN, random.choice(compared), rest, literal(random.choice([0, 1, -1, 500])))
            case 6 | 7:
                computed = call(INTEGER, random.choice("+-*/%"), column("i"), column("j"))
                return call(BOOLEAN, random.choice(compared), computed, literal(random.choice(EDGES)))
        return call(BOOLEAN, random.choice(compared), column(random.choice("ij")), literal(random.choice(EDGES)))

    return [draw() for _ in range(random.randint(2, 6))]


def random_case(random: Random, n: int, nulls: float) -> tuple[list[Filter], list[Column]]:
    def value(values: list[Any]) -> Any:
        return None if random.random() < nulls else random.choice(values)

    context = SETTING.context()
    ranges = [EDGES, [1, 2, 3, 500, 999], list(range(-4, 4))]
    kinds = [
        random.choice(ranges), random.choice(ranges), [0.0, 1.5, -2.0, float("inf")], [False, True], ["a", "b", "c"]
    ]  # fmt: skip
    table = []
    for _ in range(n):
        values = dict(zip("ijfbt", map(value, kinds)))
        table.append(tuple(values.get(f.name) for f in SCHEMA))
    batch = batch_of(table, context.dictionary)
    columns = [
        Column(laid(c.values, random), None if c.valid is None else laid(c.valid, random))
        for c in map(batch.column, range(len(SCHEMA)))
    ]
    return [Filter(expr, context) for expr in random_tests(random)], columns


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 700])
@pytest.mark.parametrize("nulls", [0.0, 0.3])
def test_tests_of_columns_run_together(n: int, nulls: float) -> None:
    random = Random(f"{n} {nulls}")
    for _ in range(60):
        filters, columns = random_case(random, n, nulls)
        order = random.sample(range(len(filters)), random.randint(1, len(filters)))
        for _ in range(3):
            frame = part_of(columns, random)
            among = np.array(sorted(random.sample(range(frame.n), random.randint(1, frame.n))))
            for asked in (None, among):
                agrees(filters, frame, order, asked)


def test_threads_run_the_same_filters_at_once_on_rows_of_their_own() -> None:
    random = Random(0)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(30):
            filters, columns = random_case(random, 500, random.choice([0.0, 0.3]))
            joint, numbers = joint_of(filters), range(len(filters))
            jobs = [
                (part_of(columns, random), random.sample(numbers, random.choice(numbers[1:]) + 1)) for _ in range(6)
            ]
            begin = threading.Barrier(len(jobs))

            def run(
                job: tuple[Frame, list[int]], filters: Any = filters, joint: Any = joint, begin: Any = begin
            ) -> Any:
                begin.wait()
                return [narrowed(filters, *job, None, joint) for _ in range(3)]

            with ThreadPoolExecutor(len(jobs)) as threads:
                found = list(threads.map(run, jobs))
            assert found == [[by_numpy(filters, *job, None)] * 3 for job in jobs]
    finally:
        sys.setswitchinterval(before)


@SLOW
@given(
    st.lists(st.one_of(programmable(BOOLEAN, 1), expressions(BOOLEAN, 1)), min_size=2, max_size=5),
    rows(30).filter(len),
    st.randoms(use_true_random=False),
)
def test_programs_tests_and_what_is_neither_run_in_any_order(
    parts: list[Expr], table: list[tuple[Any, ...]], random: Random
) -> None:
    table = table * random.choice([1, 6])
    context = SETTING.context()
    frame = Frame(batch_of(table, context.dictionary).column, len(table))
    filters = [Filter(expr, context) for expr in parts]
    order = random.sample(range(len(filters)), len(filters))
    some = np.array(sorted(random.sample(range(len(table)), random.randint(1, len(table)))))
    for among in (None, some):
        agrees(filters, frame, order, among)


def test_a_program_for_narrow_integers_is_given_up_among_others() -> None:
    context = Context(TextDictionary())
    over = [
        call(BOOLEAN, "<", call(INTEGER, "%", call(INTEGER, "*", column(c), literal(48271)), literal(1000)), literal(k))
        for c, k in (("i", 900), ("j", 800))
    ]
    filters = [Filter(expr, context) for expr in (*over, call(BOOLEAN, ">", column("i"), literal(-5)))]
    joint = joint_of(filters)
    assert joint is not None
    rng = np.random.default_rng(0)
    for turn in range(programs.MOST_FAR + 3):
        values = [Column(rng.integers(0, 2**31, 200)), Column(rng.integers(0, 2**40, 200))]
        frame = Frame(lambda index, values=values: values[index % 2], 200)  # type: ignore[misc]
        agreeing = []
        for together in (None, joint):
            reached = [0] * 4
            kept, wrong = narrow_by(filters, (2, 0, 1), frame, None, True, reached, together)
            assert kept is not None and wrong is None
            agreeing.append((reached, kept.tolist()))
        assert agreeing[0] == agreeing[1] and len(agreeing[0][1]) > 10
        table = joint.table(200, True)
        assert table is not None
        (run, *_) = table.runs((2, 0, 1))
        counts, _, _ = joint.narrow(table, run, frame, None)  # type: ignore[arg-type]
        # Each narrow_by alone, and each that ended before the filter of wide integers, met them.
        assert len(counts) == (2 if 2 * (turn + 1) < programs.MOST_FAR else 3)


def sum_of(terms: int) -> Expr:
    """i and many constants: those are one where integers are narrow, and a register each where they are not."""
    total: Expr = column("i")
    for n in range(terms):
        total = call(INTEGER, "+", total, literal(3 * n + 1))
    return total


@pytest.mark.parametrize("terms", [50, 58, 70])
def test_what_needs_too_many_registers_for_wide_integers_is_left_to_numpy(terms: int) -> None:
    context = SETTING.context()
    rest = call(INTEGER, "%", sum_of(terms), literal(7))
    filters = [
        Filter(call(BOOLEAN, "<", column("j"), literal(150)), context),
        Filter(call(BOOLEAN, "=", rest, literal(3)), context),
        Filter(call(BOOLEAN, ">", rest, literal(-1)), context),
    ]
    joint, added = joint_of(filters), sum(3 * n + 1 for n in range(terms))
    for turn in range(programs.MOST_FAR + 3):
        values = np.arange(200) * (1 << 40 if turn else 1)
        columns = Column(values), Column(np.arange(200))
        frame = Frame(lambda index, columns=columns: columns[index], 200)  # type: ignore[misc]
        expected = ((values + added) % 7 == 3)[:150].nonzero()[0].tolist()
        for order in ([0, 1, 2], [2, 1, 0]):
            kept, wrong = narrow_by(filters, order, frame, None, True, None, joint)
            assert kept is not None and kept.tolist() == expected and wrong is None


def test_items_stay_where_a_thread_was_told_that_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads may ask for the first time at once: the second one does so while the first places the items."""
    test = Members(np.arange(5), False)
    place, told = filtering.place_members, []

    def placing(*arguments: Any) -> None:
        monkeypatch.setattr(filtering, "place_members", place)
        told.append(test.words())
        place(*arguments)

    monkeypatch.setattr(filtering, "place_members", placing)
    told.append(test.words())
    assert told[0] == told[1] == test.words()


def test_a_row_that_is_not_in_question_does_not_fail() -> None:
    context = Context(TextDictionary())
    product = call(BOOLEAN, "<", call(INTEGER, "*", column("i"), column("i")), literal(10**6))
    filters = [Filter(product, context), Filter(call(BOOLEAN, ">", column("i"), literal(10)), context)]
    joint = joint_of(filters)
    assert joint is not None
    frame = Frame(lambda index: Column(np.where(np.arange(100) == 50, EDGE - 1, np.arange(100))), 100)
    among, table = np.delete(np.arange(100), 50), joint.table(100, True)
    assert table is not None
    (run, _) = table.runs((0, 1))
    counts, kept, wrong = joint.narrow(table, run, frame, among)  # type: ignore[arg-type]
    assert kept is not None and (counts, kept.tolist(), wrong) == ([99, 88], among[11:].tolist(), None)


def test_columns_that_do_not_lie_side_by_side_are_called_by_themselves() -> None:
    context = SETTING.context()
    filters = [Filter(call(BOOLEAN, ">", column(c), literal(3)), context) for c in "ij"]
    filters.append(Filter(call(BOOLEAN, ">", call(INTEGER, "+", column("j"), literal(1)), literal(5)), context))
    valid = (np.arange(200) % 3 > 0)[::2]
    strided = Column(np.arange(200)[::2]), Column(np.arange(100), valid)
    for i in range(2):
        frame = Frame(lambda index, i=i: strided[(index + i) % 2], 100)  # type: ignore[misc]
        for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
            agrees(filters, frame, order, None)
            agrees(filters, frame, order, np.arange(0, 100, 3))


def test_one_filter_is_not_run_together_with_none() -> None:
    context = Context(TextDictionary())
    one = Filter(call(BOOLEAN, ">", column("i"), literal(3)), context)
    assert joint_of([one]) is None and JointProgram.of([None, None]) is None
