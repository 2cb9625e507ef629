"""Programs give what the definition says, in blocks of any size, of all rows or some, one result or several."""

from __future__ import annotations

from functools import cache
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minidsms
from minidsms.cql.bound import Call, Case, Cast, Expr, LiteralList
from minidsms.elements import Batch, Column, Type
from minidsms.expressions import Context, Projection, programs
from minidsms.expressions.filters import Filter
from minidsms.expressions.program_writer import MOST_LISTED, written
from minidsms.expressions.programs import Programmed, Runner
from minidsms.expressions.value import Frame, Value
from minidsms.kernels import expressions as steps
from minidsms.machine_code.templates import Form
from minidsms.values.dictionary import TextDictionary
from tests.expressions.generating import (
    BOOLEAN,
    EDGE,
    FLOAT,
    INTEGER,
    SCHEMA,
    TEXT,
    batch_of,
    call,
    column,
    expressions,
    literal,
    rows,
)  # fmt: skip
from tests.expressions.test_expressions import FAILURE, alike, by_definition, obeys_the_invariants

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@cache
def programmable(type_: Type, depth: int) -> st.SearchStrategy[Expr]:
    """Expressions that programs can compute."""
    leaves = st.one_of(
        st.sampled_from([column(f.name) for f in SCHEMA if f.type is type_]),
        expressions(type_, 0),
    )
    if not depth:
        return leaves
    inner = {t: programmable(t, depth - 1) for t in (INTEGER, FLOAT, BOOLEAN, TEXT)}
    own, truth = inner[type_], inner[BOOLEAN]
    of_two = {INTEGER: "+-*/%", FLOAT: "+-*/"}
    compared = st.sampled_from([INTEGER, FLOAT, BOOLEAN]).flatmap(
        lambda t: st.tuples(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "is distinct from"]), inner[t], inner[t])
    )
    names = ["coalesce", "nullif"] if type_ is TEXT else ["coalesce", "nullif", "least", "greatest"]
    choices = [
        st.tuples(truth, own, own).map(lambda c: Case(type_, (c[:2],), c[2])),
        st.tuples(st.sampled_from(names), own, own).map(lambda c: Call(type_, c[0], c[1:])),
    ]
    if type_ in of_two:
        choices += [
            st.tuples(st.sampled_from(of_two[type_]), own, own).map(lambda c: Call(type_, c[0], c[1:])),
            st.tuples(st.sampled_from(["neg", "abs"]), own).map(lambda c: Call(type_, c[0], c[1:])),
        ]
    if type_ is FLOAT:
        choices.append(st.one_of(inner[INTEGER], truth).map(lambda e: Cast(FLOAT, e)))
    if type_ is BOOLEAN:
        choices += [
            compared.map(lambda c: Call(BOOLEAN, c[0], c[1:])),
            st.tuples(st.sampled_from(["and", "or", "=", "<>"]), truth, truth).map(
                lambda c: Call(BOOLEAN, c[0], c[1:])
            ),
            st.tuples(inner[TEXT], inner[TEXT]).map(lambda c: Call(BOOLEAN, "=", c)),
            st.one_of(*inner.values()).map(lambda e: Call(BOOLEAN, "is null", (e,))),
            st.one_of(inner[INTEGER], inner[FLOAT]).map(lambda e: Cast(BOOLEAN, e)),
            truth.map(lambda e: Call(BOOLEAN, "not", (e,))),
            st.lists(inner[INTEGER], min_size=2, max_size=5).map(lambda c: Call(BOOLEAN, "in", tuple(c))),
        ]
    return st.one_of(leaves, *choices, *choices)


def told(value: Value | None, type_: Type, n: int, dictionary: TextDictionary) -> list[Any]:
    assert value is not None, "numpy was asked"
    obeys_the_invariants(value, type_, n)
    items = dictionary.decode(value.column()) if type_ is TEXT else value.values.tolist()
    valid = np.ones(n, bool) if value.valid is None else value.valid
    failed = np.zeros(n, bool) if value.failed is None else value.failed
    return [FAILURE if f else item if v else None for item, v, f in zip(items, valid, failed)]


@pytest.mark.parametrize("block", [1, 5, 512])
def test_a_program_computes_what_the_definition_says(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(programs, "BLOCK", block)
    some = [programmable(t, 2) for t in (INTEGER, FLOAT, BOOLEAN)]

    @SLOW
    @given(st.lists(st.one_of(some), min_size=1, max_size=3), rows(30).filter(len))
    def law(exprs: list[Expr], table: list[tuple[Any, ...]]) -> None:
        dictionary = TextDictionary()
        batch = batch_of(table, dictionary)
        n = len(batch)
        values = Programmed(exprs, dictionary).values(Frame(batch.column, n))
        for expr, value in zip(exprs, values):
            expected, found = by_definition(expr, table), told(value, expr.type, n, dictionary)
            assert all(map(alike, expected, found)), (expr, expected, found)

    law()


@pytest.mark.parametrize("block", [7, 100])
def test_a_program_keeps_the_rows_of_a_condition(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(programs, "BLOCK", block)

    @SLOW
    @given(programmable(BOOLEAN, 2), rows(30).filter(len), st.randoms(use_true_random=False))
    def law(condition: Expr, table: list[tuple[Any, ...]], random: Random) -> None:
        table = table * 6
        dictionary = TextDictionary()
        frame = Frame(batch_of(table, dictionary).column, len(table))
        expected = by_definition(condition, table)
        some = np.array(sorted(random.sample(range(len(table)), random.randint(1, len(table)))))
        for among in (None, some):
            found = Programmed((condition,), dictionary, is_condition=True).keep(frame, among)
            assert found is not None
            asked = range(len(table)) if among is None else among.tolist()
            assert found[0].tolist() == [i for i in asked if expected[i] in (True, FAILURE)]
            wrong = [i for i in asked if expected[i] == FAILURE]
            assert (found[1] is None) == (not wrong) and (found[1] is None or found[1].tolist() == wrong)

    law()


@pytest.mark.parametrize("operator", list("+-*/%"))
@pytest.mark.parametrize("is_in_small_blocks", [False, True])
def test_integer_programs_are_exact_on_every_pair_of_edges(
    monkeypatch: pytest.MonkeyPatch, operator: str, is_in_small_blocks: bool
) -> None:
    monkeypatch.setattr(programs, "BLOCK", 1 if is_in_small_blocks else 512)
    near = [0, 1, 2, 3, 7, 2**31, 2**32 + 1, 3037000499, 3037000500, 2**50 - 1, 2**50, 2**50 + 1, 2**53 + 1, 2**62]
    edges = [*near, *(-x for x in near), EDGE - 1, -EDGE, 1 - EDGE, 4611686018427387905, 9223372036854774784]
    pairs = [(a, b) for a in edges for b in edges] + [(a * b + d, b) for a in near for b in near for d in (-1, 0, 1)]
    table = [(a, b, *[None] * 6) for a, b in pairs if abs(a) < EDGE]
    dictionary = TextDictionary()
    expr = call(INTEGER, operator, column("i"), column("j"))
    frame = Frame(batch_of(table, dictionary).column, len(table))
    (value,) = Programmed((expr,), dictionary).values(frame)
    assert told(value, INTEGER, len(table), dictionary) == by_definition(expr, table)


NARROW = [0, 1, -1, 2, -7, 59, 60, 61, 2**31 - 1, 2**31 - 2, -(2**31), 1 - 2**31, 46341, -46341, 10**9]
COMPARED = ["=", "<>", "<", "<=", ">", ">="]
CONSTANTS = [0, 1, 2, 3, 7, 60, 1000, 48271, 2**19 - 1, 2**31 - 1, 2**31, 2**31 + 1, 2**49 - 1, 2**50]


def near_arithmetic(random: Random, depth: int) -> Expr:
    """An integer of columns of 32 bits, often small enough for floats."""

    def inner() -> Expr:
        return near_arithmetic(random, depth - 1)

    if not depth or random.random() < 0.1:
        constant = literal(random.choice(CONSTANTS) * random.choice((1, 1, -1)))
        return random.choice([column("i"), column("j"), constant])
    match random.randrange(8):
        case 0:
            condition = call(BOOLEAN, random.choice(COMPARED), inner(), inner())
            return Case(INTEGER, ((condition, inner()),), inner())
        case 1:
            return call(INTEGER, random.choice(["neg", "abs"]), inner())
        case 2 | 3 | 4:
            return call(INTEGER, random.choice("+-*"), inner(), inner())
    return call(INTEGER, random.choice("/%"), inner(), literal(random.choice(CONSTANTS)))


@pytest.mark.parametrize("block", [1, 5, 512])
@pytest.mark.parametrize("far", [0.0, 0.02])
def test_narrow_integers_are_computed_as_floats_to_the_same_values(
    monkeypatch: pytest.MonkeyPatch, block: int, far: float
) -> None:
    monkeypatch.setattr(programs, "BLOCK", block)
    random, as_floats = Random(f"{block} {far}"), 0

    def draw() -> int | None:
        if random.random() < far:
            return random.choice([2**31, -(2**31) - 1, 2**50, EDGE - 1, -EDGE])
        return random.choice([None, *NARROW, random.randint(-(2**31), 2**31 - 1)])

    for _ in range(150):
        exprs = [
            near_arithmetic(random, 4),
            call(BOOLEAN, random.choice(COMPARED), *(near_arithmetic(random, 3) for _ in "ab")),
        ]
        table = [(draw(), draw(), *[None] * 6) for _ in range(30)]
        dictionary = TextDictionary()
        values = Programmed(exprs, dictionary).values(Frame(batch_of(table, dictionary).column, len(table)))
        assert values is not None
        for expr, value in zip(exprs, values):
            assert told(value, expr.type, len(table), dictionary) == by_definition(expr, table), expr
        program, _ = written(exprs, False, dictionary, is_near=True)
        as_floats += program is not None and steps.NEAR in program.steps[:, steps.OPERATION]
    assert as_floats > 50


@pytest.mark.parametrize("divisor", [1, 2, 3, 60, 2**31 - 1, 2**31, 2**40 + 1, 2**49 - 1, 2**49, 2**50 - 1, 2**50])
def test_remainders_and_quotients_of_lines_are_exact_beside_every_multiple(divisor: int) -> None:
    random = Random(divisor)
    for scale in (1, -1, 3, -(2**18) + 1, 2**19 - 1):
        multiples = (random.randint(-(2**50) // divisor, 2**50 // divisor) * divisor for _ in range(200))
        beside = (m + d for m in multiples for d in (-1, 0, 1, divisor // 2, -(divisor // 2) - 1))
        drawn = [0, *(v for v in (m // scale for m in beside) if -(2**31) <= v < 2**31)]
        most = 2**50 - 2**31 * abs(scale)
        for shift, values in product((0, 1, most, -most), (drawn, [abs(v) for v in drawn if v > -(2**31)])):
            line = call(INTEGER, "+", call(INTEGER, "*", literal(scale), column("i")), literal(shift))
            exprs = [line, *(call(INTEGER, name, line, literal(divisor)) for name in ("/", "%", "mod"))]
            program, _ = written(exprs, False, TextDictionary(), is_near=True)
            assert program is not None and steps.NEAR_LINEAR in program.steps[:, steps.OPERATION]
            frame = Frame(lambda _, values=values: Column(np.array(values)), len(values))  # type: ignore[misc]
            found = Programmed(exprs, TextDictionary()).values(frame) or ()
            lines = [scale * v + shift for v in values]
            rests = [abs(x) % divisor * (1 if x > 0 else -1) for x in lines]
            wanted = lines, [(x - r) // divisor for x, r in zip(lines, rests)], rests, rests
            assert [value is not None and value.values.tolist() for value in found] == [*wanted]


@pytest.mark.parametrize("operator", list("/%"))
def test_a_divisor_that_is_the_same_in_every_row_need_not_be_a_constant(operator: str) -> None:
    seven = call(INTEGER, "+", call(INTEGER, "*", column("j"), literal(0)), literal(7))
    expr = call(INTEGER, operator, column("i"), seven)
    table: list[tuple[Any, ...]] = [(v, w, *[None] * 6) for v in range(-30, 30) for w in (3, None)]
    dictionary = TextDictionary()
    (value,) = Programmed((expr,), dictionary).values(Frame(batch_of(table, dictionary).column, len(table))) or ()
    assert told(value, INTEGER, len(table), dictionary) == by_definition(expr, table)


def test_truths_whose_mask_is_the_same_array_are_null_where_they_are_not_true() -> None:
    is_true = np.array([True, False, True])
    program = Programmed((call(BOOLEAN, "is null", column("b")),), TextDictionary())
    (found,) = program.values(Frame(lambda _: Column(is_true, is_true), 3)) or ()
    assert found is not None and found.values.tolist() == [False, True, False]


def test_a_program_for_narrow_integers_is_given_up_where_they_are_not() -> None:
    expr = call(INTEGER, "%", call(INTEGER, "*", column("i"), literal(48271)), literal(1000))
    program = Programmed((expr,), TextDictionary())

    def asks_for_narrow() -> bool:
        assert program._program is not None
        return steps.NEAR in program._program.steps[:, steps.OPERATION]

    for turn in range(programs.MOST_FAR + 3):
        for values in ([7, 2**31 - 1, -5], [7, 2**31, -5]):
            frame = Frame(lambda _, values=values: Column(np.array(values)), 3)  # type: ignore[misc]
            (found,) = program.values(frame) or ()
            assert found is not None
            assert found.values.tolist() == [int(np.fmod(v * 48271, 1000)) for v in values]
        assert asks_for_narrow() == (turn + 1 < programs.MOST_FAR)


def test_no_program_is_written_before_the_kernel_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    code = steps.run_program.form().code()
    asked: list[int] = []
    found: list[Any] = [None, None, code]
    monkeypatch.setattr(Form, "code", lambda _: found.pop(0))
    monkeypatch.setattr(Form, "compile_beside", lambda _: asked.append(1))
    monkeypatch.setattr(Form, "has_failed", False)
    program = Programmed((call(INTEGER, "+", column("i"), literal(1)),), TextDictionary())
    frame = Frame(lambda _: Column(np.arange(3)), 3)
    for times in (1, 2):
        assert program.value(frame) is None and program._program is None and len(asked) == times
    value = program.value(frame)
    assert value is not None and value.values.tolist() == [1, 2, 3] and len(asked) == 2


def test_the_kernel_is_compiled_at_once_or_not_used_where_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    code = steps.run_program.form().code()
    made: list[int] = []
    monkeypatch.setattr(Form, "code", lambda _: None)
    monkeypatch.setattr(Form, "compiled", lambda _: made.append(1) or code)
    monkeypatch.setattr(Form, "compile_beside", lambda _: None)
    now = ["auto"]
    program = Programmed((call(INTEGER, "+", column("i"), literal(1)),), TextDictionary(), compilation=lambda: now[-1])
    frame = Frame(lambda _: Column(np.arange(3)), 3)
    for asked, is_used in (("auto", 0), ("off", 0), ("at once", 1), ("auto", 1), ("off", 0), ("at once", 1)):
        now.append(asked)
        assert (program.value(frame) is not None) == bool(is_used)
        assert len(made) == ("at once" in now)


def test_what_is_set_for_compilation_holds_for_expressions_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    run = Runner.run
    monkeypatch.setattr(Runner, "run", lambda *given: ran.append(1) or run(*given))
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER)")
        query = db.query("SELECT a FROM S WHERE a * 3 % 7 = 4 AND a * 5 % 3 < 2")
        for turn, asked in enumerate(("off", "auto", "off", "at once")):
            ran.clear()
            db.set("compilation", asked)
            db.push("S", [(a,) for a in range(7)], ts=turn)
            db.advance(turn)
            assert [change.row for change in query.fetch()] == [(6,)]
            assert bool(ran) == (asked != "off")


def test_expressions_that_programs_cannot_compute_are_left_to_numpy() -> None:
    power = call(FLOAT, "power", column("f"), literal(2.0))
    total = call(INTEGER, "+", column("i"), column("j"))
    many = Call(BOOLEAN, "in", (column("i"), LiteralList(INTEGER, tuple(range(MOST_LISTED + 1)))))
    program, places = written(
        (power, total, many, call(BOOLEAN, "<", column("t"), column("u"))), False, TextDictionary()
    )
    assert program is not None and places == (1,)
    batch = batch_of([(1, 2, 3.0, None, None, None, None, None)], TextDictionary())
    columns, failed = Projection((power, column("j"), total), Context(TextDictionary()))(batch)
    assert [c.values.tolist() for c in columns] == [[9.0], [2], [3]] and failed is None


def test_equal_parts_are_computed_once_and_registers_used_again() -> None:
    product = call(INTEGER, "*", column("i"), literal(3))
    total = call(INTEGER, "+", product, call(INTEGER, "-", product, column("j")))
    program, _ = written((total, product), False, TextDictionary())
    assert program is not None
    operations = program.steps[:, steps.OPERATION].tolist()
    assert operations.count(steps.MULTIPLY) == 1 and operations.count(steps.COLUMN) == 2
    deep: Expr = column("i")
    for _ in range(100):
        deep = call(INTEGER, "+", deep, column("j"))
    program, _ = written((deep,), False, TextDictionary())
    assert program is not None and program.registers == 3


def test_columns_that_do_not_lie_side_by_side_are_left_to_numpy() -> None:
    values = np.arange(20)[::2]
    over = call(BOOLEAN, ">", call(INTEGER, "+", column("i"), literal(1)), literal(10))
    context = Context(TextDictionary())
    for valid in (None, np.ones(20, np.bool_)[::2]):
        batch = Batch(np.zeros(10, np.int64), None, [Column(values if valid is None else values.copy(), valid)])
        frame = Frame(batch.column, 10)
        assert Programmed((over,), context.dictionary, is_condition=True).keep(frame, None) is None
        assert Filter(over, context).narrow(frame, None, True)[0].tolist() == [5, 6, 7, 8, 9]
        assert Projection((over,), context)(batch)[0][0].values.tolist() == [False] * 5 + [True] * 5


def test_columns_that_are_too_short_or_too_narrow_are_refused() -> None:
    over = call(BOOLEAN, ">", call(INTEGER, "+", column("i"), literal(1)), literal(10))
    for values in (np.arange(9), np.arange(10, dtype=np.int32)):
        frame = Frame(lambda index, values=values: Column(values), 10)  # type: ignore[misc]
        assert Programmed((over,), TextDictionary(), is_condition=True).keep(frame, None) is None


def test_a_text_in_a_program_keeps_its_code() -> None:
    dictionary = TextDictionary()
    condition = call(BOOLEAN, "or", call(BOOLEAN, "=", column("t"), literal("held")), column("b"))
    program, _ = written((condition,), True, dictionary)
    assert program is not None
    dictionary.sweep([])
    assert dictionary.code("held") in program.steps[: program.filters[0, steps.AGAIN], steps.LEFT]


@pytest.mark.parametrize("at_once", [False, True])
def test_a_failure_in_a_program_stops_the_query_where_every_other_filter_passes(at_once: bool) -> None:
    rows = [(1, 20), (2**62, -4), (5, 5), (2**61 + 1, 5), (9, 9)]
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER, b INTEGER)")
        q = db.query("SELECT a * 2 AS x, -a AS y FROM S WHERE a * b > 10 AND b > 0")
        if at_once:
            db.push("S", rows, ts=list(range(len(rows))))
        else:
            for ts, row in enumerate(rows):
                db.push("S", row, ts=ts)
        db.advance(10)
        assert [change.row for change in q.fetch()] == [(2, -1), (10, -5)]
        assert q.failure == (3, "a * b: INTEGER overflow for 2305843009213693953, 5")
