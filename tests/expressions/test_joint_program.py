"""Filters that run together keep what they keep one by one, and as many rows reach each place."""

from __future__ import annotations

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


def agrees(filters: list[Filter], frame: Frame, order: list[int], among: np.ndarray | None) -> None:
    found: list[Any] = []
    joint = joint_of(filters)
    for together in (None, joint, joint):
        reached = [0] * (len(order) + 1)
        kept, wrong = narrow_by(filters, order, frame, among, True, reached, together)
        failed = [] if wrong is None else wrong.tolist()
        found.append((reached, None if kept is None else kept.tolist(), failed))
    assert found[1] == found[0] and found[2] == found[0], (order, [each.text for each in filters])


def random_tests(random: Random) -> list[Expr]:
    """Conditions on one column, which most rows pass or few."""
    compared = ["<", "<=", ">", ">=", "=", "<>"]

    def draw() -> Expr:
        match random.randrange(8):
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
        return call(BOOLEAN, random.choice(compared), column(random.choice("ij")), literal(random.choice(EDGES)))

    return [draw() for _ in range(random.randint(2, 6))]


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 700])
@pytest.mark.parametrize("nulls", [0.0, 0.3])
def test_tests_of_columns_run_together(n: int, nulls: float) -> None:
    random = Random(f"{n} {nulls}")

    def value(values: list[Any]) -> Any:
        return None if random.random() < nulls else random.choice(values)

    for _ in range(60):
        context = Context(TextDictionary())
        ranges = [EDGES, [1, 2, 3, 500, 999], list(range(-4, 4))]
        kinds = [
            random.choice(ranges), random.choice(ranges), [0.0, 1.5, -2.0, float("inf")], [False, True], ["a", "b", "c"]
        ]  # fmt: skip
        table = []
        for _ in range(n):
            values = dict(zip("ijfbt", map(value, kinds)))
            table.append(tuple(values.get(f.name) for f in SCHEMA))
        batch = batch_of(table, context.dictionary)
        filters = [Filter(expr, context) for expr in random_tests(random)]
        order = random.sample(range(len(filters)), random.randint(1, len(filters)))
        among = np.array(sorted(random.sample(range(n), random.randint(1, n))))
        for asked in (None, among):
            agrees(filters, Frame(batch.column, n), order, asked)


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
    context = Context(TextDictionary())
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
    context = Context(TextDictionary(), compilation=lambda: "at once")
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
    context = Context(TextDictionary())
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
