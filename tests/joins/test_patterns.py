"""Patterns of several columns in the index of a join: what steps probe with, and that no answer shows it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import minidsms
from minidsms.elements import Batch, Schema
from minidsms.joins import answer as answers
from minidsms.joins.equal_columns import Equality
from minidsms.joins.graph import JoinGraph
from minidsms.joins.join import Join
from minidsms.joins.plan import JoinPlan
from minidsms.joins.spec import JoinSpec
from minidsms.kernels.join_layout import JoinStep
from minidsms.machine_code import record_in
from minidsms.queues import Queue
from tests.joins.test_by_pipelines import S, arriving, entering, every_column, inputs_of, mixed, staying, twin
from tests.operators.harness import feed, queue

TRIANGLE: list[Equality] = [((0, 0), (1, 0)), ((1, 1), (2, 1)), ((2, 2), (0, 2))]
COMPLETE: list[Equality] = [
    *[((0, 0), (1, 0)), ((0, 1), (2, 1)), ((0, 2), (3, 2))],
    *[((1, 1), (2, 0)), ((1, 2), (3, 0)), ((2, 2), (3, 1))],
]
IMPLIED: list[Equality] = [((0, 0), (1, 0)), ((1, 0), (2, 0)), ((0, 1), (1, 1)), ((1, 1), (2, 1))]
WRITTEN: list[Equality] = [((0, 0), (1, 0)), ((0, 1), (1, 1)), ((1, 2), (2, 2)), ((0, 3), (2, 3))]
GRAPHS = {"triangle": TRIANGLE, "complete": COMPLETE, "implied": IMPLIED, "written": WRITTEN}


def test_patterns_are_what_a_step_compares_with_several_inputs() -> None:
    graph = JoinGraph(3, TRIANGLE)
    orders = ((1, 2), (0, 2), (0, 1))
    assert graph.patterns(orders) == ((), ((0, 1),), ((1, 2),))
    steps, checks = graph.pipelines(orders, graph.patterns(orders))
    assert steps["hashed"].tolist() == [0, 2] * 3
    step = record_in(JoinStep, steps, 1)
    place = graph.places(graph.patterns(orders))
    assert step.probed == place[2, (1, 2)]
    assert checks[step.check : step.checks_end].tolist() == [
        [1, place[1, (1,)], 2, place[2, (1,)]],
        [0, place[0, (2,)], 2, place[2, (2,)]],
    ]


@pytest.mark.parametrize("edges", [[(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]])
def test_joins_without_a_cycle_have_none(edges: Sequence[tuple[int, int]]) -> None:
    graph = JoinGraph(4, [((i, c), (j, 3 - c)) for c, (i, j) in enumerate(edges)])
    assert not graph.has_patterns
    assert graph.patterns(graph.default_orders()) == ()


def test_a_written_composite_key_takes_parts_from_several_inputs_and_is_no_pattern() -> None:
    graph = JoinGraph(3, [((0, 0), (1, 0)), ((0, 1), (1, 1)), ((1, 0), (2, 0)), ((0, 2), (2, 2))])
    orders = graph.default_orders()
    for j, keys in enumerate(graph.patterns(orders)):
        assert not {frozenset(key) for key in keys} & {frozenset(key) for key in graph.keys[j]}


class Indexing(Join):
    """A join that indexes other patterns, and visits in other orders, before every slice."""

    def begin(self, seed: int) -> Indexing:
        self.rng, self.taken = random.Random(seed), 0
        return self

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        plan = self.random_plan(self.rng)
        able = self.graph.patterns(plan.orders)
        index = tuple(tuple(key for key in keys if self.rng.random() < 0.6) for keys in able)
        self.switch(replace(plan, index=index if any(index) else ()))
        self.taken += any(index)
        return super().process(batches, until)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("fifo", [(True,) * 4, (False,) * 4, (True, False, True, False)])
def test_patterns_linked_and_dropped_at_every_slice_do_not_show(name: str, fifo: tuple[bool, ...]) -> None:
    equalities = GRAPHS[name]
    n = inputs_of(equalities)
    columns = every_column(n)
    taken = 0
    for seed, keys in ((1, 2), (2, 3)):
        items = mixed(fifo[:n], 700 + seed, 26, keys)
        expected = twin(items, equalities, columns)
        for cuts in (range(1, 60), range(1, 60, 7)):
            spec = JoinSpec(equalities, columns, Schema(S.fields * n), fifo=fifo[:n])
            op = Indexing([queue(S) for _ in range(n)], spec).begin(seed)
            assert feed(op, items, cuts) == expected
            taken += op.taken
    assert taken or name in ("implied", "written")


def check_where_istream_reads(
    begun: Callable[[Sequence[Queue], JoinSpec, int], Join], equalities: Sequence[Equality], is_entering: bool
) -> None:
    """begun: a join that is indexed in many ways, by a seed."""
    n = inputs_of(equalities)
    columns = [(0, 1), (n - 1, 2)]
    schema = Schema(tuple(S[c] for _, c in columns))
    for seed, gap in ((1, 1), (2, 3)):
        streams, ranges = arriving(n, seed + 800, gap), [3, None, 2, 5][:n]
        relations = [staying(items, range_) for items, range_ in zip(streams, ranges)]
        expected = entering(twin(relations, equalities, columns))
        for cuts in (range(1, 60), range(1, 60, 7)):
            spec = JoinSpec(equalities, columns, schema, [0, 1], ranges if is_entering else None)
            op = begun([queue(S) for _ in range(n)], spec, seed)
            answer = feed(op, streams if is_entering else relations, cuts, append_only=is_entering)
            assert entering(answer) == expected


@pytest.mark.parametrize("name", ["triangle", "complete", "implied"])
@pytest.mark.parametrize("is_entering", [False, True])
def test_patterns_do_not_show_where_istream_reads_the_join(name: str, is_entering: bool) -> None:
    check_where_istream_reads(lambda inputs, spec, seed: Indexing(inputs, spec).begin(seed), GRAPHS[name], is_entering)


def test_a_step_with_a_pattern_inspects_hardly_more_than_what_joins() -> None:
    def work(index: bool) -> tuple[int, int]:
        rng = random.Random(3)
        schema = Schema((S[0], S[0], S[0]))
        op = Join([queue(schema) for _ in range(4)], JoinSpec(COMPLETE, [(0, 0)], Schema((S[0],)), [0], [None] * 4))
        if index:
            op.take_index(op.graph.patterns(op.orders))
        items = [[(t, 1, tuple(rng.randrange(12) for _ in range(3)), t) for t in range(400)] for _ in range(4)]
        answer = feed(op, items)
        return op.work()[1], sum(sum(delta.values()) for delta in answer.values())

    (without, found), (within, same) = work(False), work(True)
    assert found == same > 0 and within < without / 3


def test_patterns_that_no_order_probes_are_dropped_and_new_ones_linked() -> None:
    op = Join([queue(S) for _ in range(4)], JoinSpec(COMPLETE, [(0, 0)], Schema(S.fields[:1])))
    first = op.orders
    bytes_without = op.index.nbytes
    op.take_index(op.graph.patterns(first))
    assert op.index.nbytes > bytes_without
    other = tuple(tuple(reversed(order)) for order in first)
    op.reorder(other)
    assert op.plan.index == op.graph.patterns(other) != op.graph.patterns(first)
    op.take_tree(((0, 1), 2, 3))
    assert op.plan.index == () and op.index.nbytes == bytes_without
    assert not op.is_legal(JoinPlan(first, tree=((0, 1), 2, 3), index=op.graph.patterns(first)))
    assert not op.is_legal(JoinPlan(first, index=op.graph.patterns(other)))


@pytest.mark.parametrize("shown", ["ISTREAM(A.t)", "A.t"])
@pytest.mark.parametrize("inspected", [90, answers.MOST_INSPECTED])
def test_an_element_that_meets_hundreds_of_rows_joins_with_all_that_meet_each_other(
    shown: str, inspected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MOST_INSPECTED", inspected)
    rng = np.random.default_rng(3)
    compared = {s: [f"c{n}" for n, pair in enumerate(combinations("ABCD", 2)) if s in pair] for s in "ABCD"}
    rows = {s: {c: rng.integers(0, 3, 200) for c in compared[s]} for s in "BCD"}
    element = dict.fromkeys(compared["A"], 1)
    near = {s: (rows[s][c] == 1).astype(int) for s, c in zip("BCD", compared["A"])}
    others = (("B", "C", "c3"), ("B", "D", "c4"), ("C", "D", "c5"))
    b_c, b_d, c_d = (rows[x][c][:, None] == rows[y][c] for x, y, c in others)
    expected = int(np.einsum("b,c,d,bc,bd,cd", near["B"], near["C"], near["D"], b_c, b_d, c_d))
    with minidsms.connect(join_index="patterns", join_plan="mjoin", filter_ordering="static") as db:
        for s in "ABCD":
            db.execute(f"CREATE STREAM {s} ({', '.join(f'{c} INTEGER' for c in compared[s])}, t INTEGER)")
        where = " AND ".join(f"{a}.c{n} = {b}.c{n}" for n, (a, b) in enumerate(combinations("ABCD", 2)))
        q = db.query(f"SELECT {shown} FROM {', '.join(f'{s} [RANGE 500]' for s in 'ABCD')} WHERE {where}")
        for s in "BCD":
            db.push(s, {**rows[s], "t": np.zeros(200, np.int64)}, ts=np.arange(200))
        db.push("A", {**{c: [v] for c, v in element.items()}, "t": [7]}, ts=[300])
        db.advance(301)
        assert q.fetch_arrow().num_rows == expected > 8_000
