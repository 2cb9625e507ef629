"""Join: every tree joins as the windows do, subresults hold what they should, and trees change while it runs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from minidsms.cql.errors import MemoryLimitError
from minidsms.elements import MAX_INSTANT, Schema
from minidsms.joins.equal_columns import Equality
from minidsms.joins.join import Join
from minidsms.joins.plan import Tree
from minidsms.joins.tree import all_trees, flat
from minidsms.queues import Queue
from minidsms.scheduler.scheduler import is_ready
from tests.joins.made import join_of, shrink_buffers
from tests.joins.test_by_pipelines import (
    CHAIN,
    SEVERAL,
    STAR,
    TRIANGLE,
    S,
    arriving,
    entering,
    every_column,
    inputs_of,
    mixed,
    staying,
    twin,
    windows,
)
from tests.operators.harness import END, Element, Netted, batch, elements, feed, feed_in_turn, netted, queue, take_step

GRAPHS = {"chain": CHAIN, "star": STAR, "triangle": TRIANGLE, "several": SEVERAL}


def operator(
    equalities: Sequence[Equality],
    columns: Sequence[tuple[int, int]] | None = None,
    shown: Sequence[int] | None = None,
    ranges: Sequence[int | None] | None = None,
    fifo: Sequence[bool] | None = None,
) -> Join:
    n = inputs_of(equalities)
    columns = every_column(n) if columns is None else columns
    schema = Schema(tuple(S[c] for _, c in columns))
    join = join_of([queue(S) for _ in range(n)], equalities, columns, schema, shown, ranges, fifo)
    join.names = "RSTU"
    return join


def trees_of(equalities: Sequence[Equality]) -> list[Tree]:
    return list(all_trees(operator(equalities).graph))


def sizes_of(join: Join) -> list[int]:
    return [len(part) for part in join.synopses()[join.graph.n :]]


def feed_switching(join: Join, inputs: Sequence[Sequence[Element]], trees: Sequence[Tree], every: int = 1) -> Netted:
    """The answer, instant by instant, with another of the trees taken after each `every` instants that have elements;
    what the subresults hold is compared with a join of the rows present.
    """
    out = Queue(join.schema, 1 << 30)
    join.outputs.append(out)
    instants = sorted({e[0] for items in inputs for e in items})
    rng = random.Random(len(instants))
    for at, ts in enumerate(instants):
        for i, items in enumerate(inputs):
            now = [e for e in items if e[0] == ts]
            if now:
                join.inputs[i].put(batch(now, S, join.ranges is not None))
            join.inputs[i].progress = ts
        while is_ready(join):
            join.run(1 << 30)
        check_subresults(join)
        if at % every == 0:
            join.take_tree(rng.choice(trees))
            check_subresults(join)
    for q in join.inputs:
        q.progress = END
    while is_ready(join):
        join.run(1 << 30)
    taken = out.take(MAX_INSTANT)
    return netted([] if taken is None else elements([taken]))


def check_subresults(join: Join) -> None:
    """Each subresult has each tuple of present rows that its equalities join, once (by nested loops over the keys)."""
    if join.kept is None:
        return
    index = join.index
    for members, part in zip(join.kept.pipelines.members, join.kept.subresults.parts):
        held = sorted(map(tuple, part.tuples().tolist()))
        present = [index.windows[i].present().tolist() for i in members]
        assert held == sorted(slots for slots in product(*present) if is_joined(join, members, slots))


def is_joined(join: Join, members: Sequence[int], slots: Sequence[int]) -> bool:
    """All equalities among these inputs hold for the rows in these slots."""
    rows = {}
    for i, slot in zip(members, slots):
        columns = join.index.windows[i].gather(list(range(len(S))), np.array([slot]))
        rows[i] = [None if c.valid is not None and not c.valid[0] else c.values[0] for c in columns]
        # A NULL in any key joins with nothing, whatever the subresult leaves out.
        if any(rows[i][c] is None for key in join.graph.keys[i] for c in key):
            return False
    return all(
        rows[i][c] == rows[j][d] for (i, c), (j, d) in join.graph.equalities if i in rows and j in rows
    )  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_every_tree_joins_as_the_windows_do_at_every_instant(name: str) -> None:
    graph = GRAPHS[name]
    items = windows(inputs_of(graph), 3)
    expected = twin(items, graph, every_column(len(items)))
    for i, tree in enumerate(trees_of(graph)):
        join = operator(graph)
        join.take_tree(tree)
        assert feed(join, items, range(1, 60) if i % 2 else ()) == expected


@pytest.mark.parametrize("name", GRAPHS)
def test_every_tree_gives_what_istream_needs(name: str) -> None:
    graph = GRAPHS[name]
    items = windows(inputs_of(graph), 53, gap=2, keys=2)
    n = len(items)
    for columns in ([(0, 1)], [(n - 1, 0)], every_column(n)):
        expected = entering(twin(items, graph, columns))
        for i, tree in enumerate(trees_of(graph)):
            join = operator(graph, columns, range(len(columns)))
            join.take_tree(tree)
            assert entering(feed(join, items, range(1, 60) if i % 2 else ())) == expected


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("ranges", [(3, 2, 5, 4), (None, 2, 0, None), (2, 2, 2, 2)])
def test_every_tree_joins_streams_with_ranges_as_their_windows(name: str, ranges: tuple[int | None, ...]) -> None:
    graph = GRAPHS[name]
    n = inputs_of(graph)
    streams = arriving(n, 73, 2)
    relations = [staying(items, range_) for items, range_ in zip(streams, ranges)]
    for columns in ([(0, 1)], every_column(n)):
        expected = entering(twin(relations, graph, columns))
        for i, tree in enumerate(trees_of(graph)):
            join = operator(graph, columns, range(len(columns)), ranges[:n])
            join.take_tree(tree)
            answer = feed(join, streams, (5, 9, 20) if i % 2 else range(1, 60), append_only=True)
            assert entering(answer) == expected


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("every", [1, 3])
def test_trees_change_while_it_runs_and_subresults_hold_the_joins_of_their_inputs(name: str, every: int) -> None:
    graph = GRAPHS[name]
    n = inputs_of(graph)
    trees = trees_of(graph)
    items = windows(n, 7 + every, size=16)
    assert feed_switching(operator(graph), items, trees, every) == twin(items, graph, every_column(n))
    streams, ranges = arriving(n, 77, 2), (3, 2, 4, None)
    relations = [staying(each, range_) for each, range_ in zip(streams, ranges)]
    join = operator(graph, every_column(n), range(n * len(S)), ranges[:n])
    answer = feed_switching(join, streams, trees, every)
    assert entering(answer) == entering(twin(relations, graph, every_column(n)))


BAGS = [(False, False, False, False), (True, False, True, False), (False, True, True, True)]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("fifo", BAGS)
def test_every_tree_joins_relations_whose_rows_leave_in_any_order(name: str, fifo: tuple[bool, ...]) -> None:
    graph = GRAPHS[name]
    n = inputs_of(graph)
    items, columns = mixed(fifo[:n], 113), every_column(n)
    expected = twin(items, graph, columns)
    for i, tree in enumerate(trees_of(graph)):
        join = operator(graph, fifo=fifo[:n])
        join.take_tree(tree)
        assert feed(join, items, [(), range(1, 60), (5, 9, 20)][i % 3]) == expected


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("fifo", BAGS)
@pytest.mark.parametrize("every", [1, 4])
def test_trees_change_over_relations_and_subresults_hold_the_joins_of_their_inputs(
    name: str, fifo: tuple[bool, ...], every: int
) -> None:
    graph = GRAPHS[name]
    n = inputs_of(graph)
    items = mixed(fifo[:n], 117, 16)
    join = operator(graph, fifo=fifo[:n])
    assert feed_switching(join, items, trees_of(graph), every) == twin(items, graph, every_column(n))


@pytest.mark.parametrize("tree", [((0, 1), 2), (0, (1, 2))])
def test_rows_of_relations_that_are_given_other_slots_are_joined_on(tree: Tree) -> None:
    def row(k: int) -> tuple[int, int, float, bool]:
        return (k % 1000, k % 7, 0.0, True)

    burst = [(ts, sign, row(k)) for ts, sign in ((5, 1), (6, -1)) for k in range(100, 3100)]
    few = [(4, 1, row(k)) for k in range(20)]
    changes = [(ts, sign, row(ts - 8 if sign < 0 else ts)) for ts in range(8, 28) for sign in (-1, 1)]
    items = [sorted([*few, *burst, *changes], key=lambda e: (e[0], e[1])) for _ in range(3)]
    items[2] = [e for e in items[2] if e[0] < 5 or e[0] > 6]
    join, plain = (operator(CHAIN, [(0, 0), (2, 0)], fifo=(False, False, False)) for _ in range(2))
    join.take_tree(tree)
    assert feed(join, items, range(1, 60)) == feed(plain, items, range(1, 60))
    assert join.index.renumberings > 0


@pytest.mark.parametrize("shown", [None, [0, 1]])
def test_small_buffers_full_queues_and_small_rings_do_not_change_the_answer(
    shown: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = windows(3, 7, 60, 2, gap=2)
    columns = [(0, 1), (2, 2)]
    expected = feed(operator(CHAIN, columns, shown), items)
    monkeypatch.setattr("minidsms.synopses.subresults._LEAST_CAPACITY", 2)
    for tuples, tree in product((1, 3), trees_of(CHAIN)):
        shrink_buffers(monkeypatch, tuples)
        for room in (1, 1000):
            join = operator(CHAIN, columns, shown)
            join.take_tree(tree)
            assert entering(feed(join, items, room=room, budget=5)) == entering(expected)


def test_small_buffers_and_small_rings_do_not_change_the_answer_over_relations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fifo = (False, True, False)
    items, columns = mixed(fifo, 131, 60, 2), [(0, 1), (2, 2)]
    expected = twin(items, CHAIN, columns)
    monkeypatch.setattr("minidsms.synopses.subresults._LEAST_CAPACITY", 2)
    for tuples, tree in product((1, 3), trees_of(CHAIN)):
        shrink_buffers(monkeypatch, tuples)
        for room in (1, 1000):
            join = operator(CHAIN, columns, fifo=fifo)
            join.take_tree(tree)
            assert feed(join, items, room=room, budget=5) == expected


@pytest.mark.parametrize("fifo", [(True,) * 4, (False, True, False, False)])
def test_state_given_as_arrays_and_taken_back_continues_alike(fifo: tuple[bool, ...]) -> None:
    items = mixed(fifo, 41)
    for tree in trees_of(STAR):
        first, second = operator(STAR, fifo=fifo), operator(STAR, fifo=fifo)
        first.take_tree(tree)
        second.take_tree(tree)
        answer = feed_in_turn(first, second, items, 14)
        assert answer == twin(items, STAR, every_column(4))


def test_a_tree_for_whose_subresults_there_is_no_memory_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    cut, items, refused = 14, windows(4, 41, 400), []

    def claim(nbytes: int) -> None:
        if nbytes:
            refused.append(nbytes)
            raise MemoryLimitError("full")

    def part(is_late: bool) -> list[list[Element]]:
        return [[e for e in side if (e[0] > cut) == is_late] for side in items]

    join = operator(STAR)
    before = feed(join, part(False), [10], until=cut)
    monkeypatch.setattr("minidsms.synopses.subresults._LEAST_CAPACITY", 2)
    for tree in trees_of(STAR)[1:]:
        plan = join.plan
        monkeypatch.setattr(join.answer, "claim", claim)
        with pytest.raises(MemoryLimitError):
            join.take_tree(tree)
        assert join.plan == plan
    monkeypatch.undo()
    assert refused and {**before, **feed(join, part(True), [30])} == twin(items, STAR, every_column(4))


def test_subresults_shrink_after_a_burst_and_do_not_grow_with_the_stream() -> None:
    join = operator(CHAIN)
    join.take_tree(((0, 1), 2))
    join.outputs.append(Queue(join.schema, 1 << 30))
    sizes = []
    for step in range(40):
        items = [(step, -1, (t, t, 0.0, True)) for t in range(3000 if step == 21 else 100 if step else 0)]
        items += [(step, 1, (t, t, 0.0, True)) for t in range(3000 if step == 20 else 100)]
        take_step(join, items, step)
        sizes.append(sum(part.nbytes for part in join.synopses()[3:]))
        assert sizes_of(join) == [3000 if step == 20 else 100]
    assert sizes[19] == sizes[5] and sizes[-1] < sizes[20] / 4


def test_dead_tuples_behind_one_that_lives_are_squeezed_out() -> None:
    def row(k: int) -> tuple[int, int, float, bool]:
        return (k, k, 0.0, True)

    burst = range(10, 910)
    relation = [(1, 1, row(0)), *((2, 1, row(k)) for k in burst), *((3, -1, row(k)) for k in burst)]
    relation += [(ts, sign, row(5000)) for ts in range(4, 1200) for sign in (-1, 1)][1:]
    window = [(1, 1, row(0)), *((2, 1, row(k)) for k in burst for _ in range(2))]
    join = operator(CHAIN, fifo=(False, True, True))
    join.take_tree(((0, 1), 2))
    feed(join, [relation, window, []], [1, 2], until=2)
    assert sizes_of(join) == [1801]
    feed(join, [[e for e in relation if e[0] > 2], [], []], range(3, 1200, 100), until=1200)
    assert sizes_of(join) == [1]
    assert join.synopses()[3].nbytes < 20_000


def test_explain_tells_the_tree_and_what_its_subresults_hold() -> None:
    join = operator(STAR)
    join.take_tree(((0, 1), 2, 3))
    feed(join, windows(4, 5), until=20)
    told = join.describe()
    assert told.name == "XJoin"
    assert told.detail.startswith("((R, S), T, U) on ")
    assert told.parts[0].startswith(f"(R, S): {sizes_of(join)[0]:,} tuples, ")
    join.take_tree(flat(4))
    assert join.describe().name == "MJoin"


def test_illegal_trees_are_refused() -> None:
    join = operator(CHAIN)
    for tree in ((0, 1), ((0, 2), 1), ((0, 1), (2, 2)), (2, (0, 1)), 0, "((0, 1), 2)", (0, 1, 2, 3), ((0,), 1, 2)):
        assert not join.is_legal_tree(tree)
    assert join.is_legal_tree(((0, 1), 2))
