"""MJoin against a twin that joins all its windows afresh at every instant."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.elements import Batch, Schema, Type
from minidsms.joins import by_pipelines
from minidsms.joins.equal_columns import Equality
from minidsms.joins.graph import JoinGraph
from minidsms.joins.join import Join
from minidsms.joins.plan import Orders
from minidsms.joins.spec import JoinSpec
from minidsms.queues import Queue
from minidsms.scheduler.scheduler import is_ready
from tests.joins.made import Referring, join_of, shrink_buffers
from tests.operators.harness import (
    END,
    Element,
    Netted,
    Row,
    batch,
    contents,
    differences,
    entering,
    feed,
    feed_in_turn,
    go_on,
    joined,
    queue,
    random_cuts,
    random_relation,
    random_window,
    run_in_order,
    take_step,
)
from tests.seeds import seeds

S = Schema.of(("a", Type.INTEGER), ("b", Type.TEXT), ("x", Type.FLOAT), ("f", Type.BOOLEAN))

TWO: list[Equality] = [((0, 0), (1, 0))]
CHAIN: list[Equality] = [((0, 0), (1, 0)), ((1, 1), (2, 1))]
STAR: list[Equality] = [((1, 0), (0, 0)), ((0, 1), (2, 1)), ((0, 2), (3, 2))]
TRIANGLE: list[Equality] = [((0, 0), (1, 0)), ((1, 1), (2, 1)), ((2, 2), (0, 2))]
SEVERAL: list[Equality] = [((0, 0), (1, 0)), ((0, 1), (1, 1)), ((1, 2), (2, 2)), ((0, 3), (2, 3))]
FLAGS: list[Equality] = [((0, 3), (1, 3)), ((1, 0), (2, 0))]
APART: list[Equality] = [((0, 0), (2, 0))]
GRAPHS = {
    "two": TWO,
    "chain": CHAIN,
    "star": STAR,
    "triangle": TRIANGLE,
    "several": SEVERAL,
    "flags": FLAGS,
    "apart": APART,
}


ROWS_OF = {2: 30, 3: 30, 4: 18}
"""Of each input, by how many there are: few keys multiply."""


def inputs_of(equalities: Sequence[Equality]) -> int:
    return 1 + max(max(i, j) for (i, _), (j, _) in equalities)


def rows(seed: int, n: int, keys: int, nulls: float = 0.1) -> list[Row]:
    """Rows of S with NULLs in every column and few distinct keys."""
    rng = random.Random(seed)

    def some(value: Any) -> Any:
        return None if rng.random() < nulls else value

    return [
        (some(rng.randrange(keys)), some(rng.randrange(2)), some(rng.randrange(2) / 2), some(rng.random() < 0.5))
        for _ in range(n)
    ]


def windows(n: int, seed: int, size: int = 30, keys: int = 3, gap: int = 2) -> list[list[Element]]:
    return [random_window(rows(seed * 10 + i, size, keys), seed * 10 + i, size=3 + i, gap=gap) for i in range(n)]


def twin(
    inputs: Sequence[Sequence[Element]], equalities: Sequence[Equality], columns: Sequence[tuple[int, int]]
) -> Netted:
    """Every tuple of the relations at every instant, and the differences from instant to instant."""
    states = [contents(items) for items in inputs]
    now: list[Counter[Row]] = [Counter() for _ in inputs]
    result = {}
    for ts in sorted({ts for state in states for ts in state}):
        now = [state.get(ts, old) for state, old in zip(states, now)]
        result[ts] = joined(now, equalities, columns)
    return differences(result)


def every_column(n: int) -> list[tuple[int, int]]:
    return [(i, c) for i in range(n) for c in range(len(S))]


def operator(
    equalities: Sequence[Equality],
    columns: Sequence[tuple[int, int]] | None = None,
    shown: Sequence[int] | None = None,
    fifo: Sequence[bool] | None = None,
) -> Join:
    n = inputs_of(equalities)
    columns = every_column(n) if columns is None else columns
    schema = Schema(tuple(S[c] for _, c in columns))
    return join_of([queue(S) for _ in range(n)], equalities, columns, schema, shown, fifo=fifo)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("seed", range(2))
def test_join_is_the_join_of_the_windows_at_every_instant(name: str, seed: int) -> None:
    graph = GRAPHS[name]
    items = windows(inputs_of(graph), seed)
    columns = every_column(len(items))
    expected = twin(items, graph, columns)
    for cuts in ((), range(1, 60), random_cuts(seed, 40)):
        assert feed(operator(graph), items, cuts) == expected


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("gap", [1, 2, 3])
def test_netted_join_gives_what_istream_needs(name: str, gap: int) -> None:
    graph = GRAPHS[name]
    n = inputs_of(graph)
    items = windows(n, gap + 50, ROWS_OF[n], keys=2, gap=gap)
    for columns in ([(0, 1)], [(n - 1, 0)], [(0, 0), (1, 2)], every_column(n), []):
        expected = entering(twin(items, graph, columns))
        for cuts in ((), range(1, 60)):
            answer = feed(operator(graph, columns, range(len(columns))), items, cuts)
            assert entering(answer) == expected


def test_netted_join_leaves_deletions_out_that_cancel_nothing() -> None:
    left = [(1, 1, (1, 0, 0.0, True), 0), (4, -1, (1, 0, 0.0, True), 0), (4, 1, (1, 1, 0.0, True), 1)]
    right = [(1, 1, (1, 0, 0.0, True), 0)]
    shown = feed(operator(TWO, [(0, 1)], [0]), [left, right])
    assert shown == {1: Counter({(0,): 1}), 4: Counter({(1,): 1})}
    unknown = feed(operator(TWO, [(0, 1)], []), [left, right])
    assert unknown == {1: Counter({(0,): 1}), 4: Counter({(1,): 1, (0,): -1})}


@pytest.mark.parametrize("shown", [None, [0, 1]])
def test_small_buffers_and_full_queues_do_not_change_the_answer(
    shown: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = windows(3, 7, 36, 2, gap=2)
    columns = [(0, 1), (2, 2)]
    expected = feed(operator(CHAIN, columns, shown), items)
    for tuples in (1, 2, 3, 7):
        shrink_buffers(monkeypatch, tuples)
        for room in (1, 1000):
            assert feed(operator(CHAIN, columns, shown), items, room=room, budget=5) == expected
            run_in_order(operator(CHAIN, columns, shown), items, room=room, budget=5)


def test_self_join_takes_each_element_into_both_inputs() -> None:
    (items,) = windows(1, 11)
    answer = feed(operator(TWO), [items, items], [9, 30])
    assert answer == twin([items, items], TWO, every_column(2))


def test_two_columns_are_one_key_so_that_a_common_one_costs_nothing() -> None:
    n = 2000
    left = [(1, 1, (1, t, 0.0, True), t) for t in range(n)]
    right = [(1, 1, (1, t + n, 0.0, True), t) for t in range(n)]
    op = operator([((0, 0), (1, 0)), ((0, 1), (1, 1))])
    assert feed(op, [left, right]) == {}
    assert op.describe().figures["inspected"] < 10 * n


def test_state_does_not_grow_with_the_stream_and_shrinks_after_a_burst() -> None:
    op = operator(CHAIN)
    op.outputs.append(Queue(op.schema, 1 << 30))
    sizes = []
    for step in range(40):
        items = [(step, -1, (t, t, 0.0, True)) for t in range(5000 if step == 21 else 100 if step else 0)]
        items += [(step, 1, (t, t, 0.0, True)) for t in range(5000 if step == 20 else 100)]
        take_step(op, items, step)
        sizes.append(op.describe().figures["bytes"])
    assert sizes[19] == sizes[5] and sizes[-1] < sizes[20] / 4


def mixed(fifo: Sequence[bool], seed: int, size: int = 30, keys: int = 3, life: int = 6) -> list[list[Element]]:
    """Windows where fifo says so, else relations whose rows leave in any order."""
    return [
        items if is_fifo else random_relation(rows(seed * 10 + i, size, keys), seed * 10 + i, life)
        for i, (is_fifo, items) in enumerate(zip(fifo, windows(len(fifo), seed, size, keys)))
    ]


BAGS = [(False, False, False, False), (True, False, True, False), (False, True, True, True)]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("fifo", BAGS)
@pytest.mark.parametrize("seed", seeds(2))
def test_rows_of_relations_leave_in_any_order(name: str, fifo: tuple[bool, ...], seed: int) -> None:
    graph = GRAPHS[name]
    n = inputs_of(graph)
    fifo = fifo[:n]
    items, columns = mixed(fifo, seed + 110), every_column(n)
    expected = twin(items, graph, columns)
    for cuts in ((), range(1, 60), random_cuts(seed, 40)):
        spec = JoinSpec(graph, columns, Schema(S.fields * n), fifo=fifo)
        op = Reordered([queue(S) for _ in range(n)], spec)
        op.others = reorderings(graph, seed)
        assert feed(op, items, cuts) == expected


def test_relations_join_alike_in_small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    fifo = (False, True, False)
    items, columns = mixed(fifo, 131, 36, 2), [(0, 1), (2, 2)]
    expected = feed(operator(CHAIN, columns, fifo=fifo), items)
    for tuples in (1, 2, 3, 7):
        shrink_buffers(monkeypatch, tuples)
        assert feed(operator(CHAIN, columns, fifo=fifo), items, room=1, budget=5) == expected
        run_in_order(operator(CHAIN, columns, fifo=fifo), items, room=1, budget=5)


def test_a_relation_may_hold_a_row_many_times_and_lose_it_one_by_one() -> None:
    row = (1, 1, 0.0, True)
    left = [(1, 1, row), (1, 1, row), (2, 1, row), (3, -1, row), (5, -1, row), (5, -1, row)]
    answer = feed(operator(TWO, [(0, 0)], fifo=(False, False)), [left, [(1, 1, row), (4, -1, row)]], range(1, 7))
    assert answer == {1: Counter({(1,): 2}), 2: Counter({(1,): 1}), 3: Counter({(1,): -1}), 4: Counter({(1,): -2})}


def test_inputs_without_any_equality_give_every_combination() -> None:
    fifo = (True, False, True)
    items = mixed(fifo, 141, 12)
    columns = [(0, 0), (2, 1), (1, 2)]
    for cuts in ((), range(1, 60)):
        op = join_of([queue(S) for _ in range(3)], [], columns, Schema(tuple(S[c] for _, c in columns)), fifo=fifo)
        assert feed(op, items, cuts) == twin(items, [], columns)


def test_a_relation_that_shrinks_beside_another_that_changes_gives_its_own_rows() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER, b INTEGER)")
        db.execute("CREATE RELATION A (a INTEGER)")
        db.execute("CREATE RELATION B (b INTEGER)")
        query = db.query("SELECT ISTREAM(S.a, S.b) FROM S [NOW], A, B WHERE S.a = A.a AND S.b = B.b")
        many = [(1000 + i,) for i in range(2000)]
        db.push("B", many, ts=0)
        db.push("B", many, ts=1, sign=[-1] * len(many))
        for i in range(20):  # B gets smaller arrays meanwhile
            db.push("A", [(i,), (100 + i,)], ts=2 + i)
            db.push("B", (i,), ts=2 + i)
            db.push("S", (i, i), ts=2 + i)
            db.advance(2 + i)
        assert [change.row for change in query.fetch()] == [(i, i) for i in range(20)]


def test_relations_grow_and_shrink_and_keep_their_rows() -> None:
    op = operator(CHAIN, [(0, 0), (2, 0)], fifo=(False, False, False))
    out = Queue(op.schema, 1 << 30)
    op.outputs.append(out)
    sizes = []
    for step in range(40):
        count = 5000 if step == 20 else 10
        for q in op.inputs:
            last = 5000 if step == 21 else 10
            gone = [(step, -1, (t, t, 0.0, True)) for t in reversed(range(last))] if step else []
            q.put(batch([*gone, *((step, 1, (t, t, 0.0, True)) for t in range(count))], S))
            q.progress = step
        while is_ready(op):
            op.run(1 << 30)
        taken = out.take(END)
        assert taken is not None
        assert int(taken.signs.sum(dtype=np.int64)) == count - (0 if not step else 5000 if step == 21 else 10)
        assert [len(window) for window in op.synopses()] == [count] * 3
        sizes.append(op.describe().figures["bytes"])
    assert sizes[19] == sizes[10] and sizes[-1] < sizes[20] / 4


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("cuts", [(), (5, 20, 21, 40), tuple(range(1, 60))])
def test_rows_in_a_store_are_referred_to_and_not_copied(name: str, cuts: tuple[int, ...]) -> None:
    graph = GRAPHS[name]
    items = windows(inputs_of(graph), 21)
    join = Referring(items, operator(graph))
    assert join.feed(cuts) == twin(items, graph, every_column(len(items)))
    assert all(window.refers for window in join.operator.synopses())
    assert [[r.lo for r in store._readers[1:]] for store in join.stores] == [[store.head] for store in join.stores]
    join.operator.close()
    assert all(len(store._readers) == 1 for store in join.stores)


@pytest.mark.parametrize("gathers", [(0,), (1, 2), (3,)])
def test_rows_may_come_with_and_without_references(gathers: tuple[int, ...]) -> None:
    items = windows(3, 31)
    join = Referring(items, operator(SEVERAL))
    assert join.feed((6, 12, 20), gathers) == twin(items, SEVERAL, every_column(3))


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("fifo", [(True,) * 4, (False, True, False, False)])
def test_state_given_as_arrays_and_taken_back_continues_alike(name: str, fifo: tuple[bool, ...]) -> None:
    graph = GRAPHS[name]
    fifo = fifo[: inputs_of(graph)]
    items = mixed(fifo, 41)
    answer = feed_in_turn(operator(graph, fifo=fifo), operator(graph, fifo=fifo), items, 14)
    assert answer == twin(items, graph, every_column(len(items)))


def test_restored_rows_with_a_null_in_one_key_are_not_found_by_another() -> None:
    first, second = operator(CHAIN), operator(CHAIN)
    before = [[(1, 1, (0, 5, 0.0, True))], [(1, 1, (None, 5, 0.0, True))], []]
    feed(first, before, [2], until=2)
    go_on(second, first, 2)
    assert feed(second, [[], [], [(3, 1, (1, 5, 0.0, True))]], [5]) == {}


def reorderings(graph: Sequence[Equality], seed: int) -> list[Orders]:
    """Legal orders of all pipelines, drawn at random."""
    rng = random.Random(seed)
    n = inputs_of(graph)
    of_each = [list(JoinGraph(n, graph).legal_orders(i)) for i in range(n)]
    return [tuple(rng.choice(legal) for legal in of_each) for _ in range(6)]


class Reordered(Join):
    """Takes other orders after every slice."""

    others: Sequence[Orders] = ()
    slices = 0

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterator[Batch]:
        yield from super().process(batches, until)
        self.slices += 1
        self.reorder(self.others[self.slices % len(self.others)])


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("seed", range(2))
def test_answer_does_not_depend_on_the_orders(name: str, seed: int) -> None:
    graph = GRAPHS[name]
    n = inputs_of(graph)
    items, columns = windows(n, seed + 60), every_column(n)
    expected = twin(items, graph, columns)
    for shown in (None, range(len(columns))):
        for cuts in (range(1, 60), random_cuts(seed, 40)):
            op = Reordered([queue(S) for _ in range(n)], JoinSpec(graph, columns, Schema(S.fields * n), shown))
            op.others = reorderings(graph, seed)
            answer = feed(op, items, cuts)
            assert op.slices > 3
            assert entering(answer) == entering(expected) if shown is not None else answer == expected


def test_orders_take_cartesian_steps_only_where_no_input_is_linked() -> None:
    chain = JoinGraph(3, CHAIN)
    assert list(chain.legal_orders(0)) == [(1, 2)]
    assert list(chain.legal_orders(1)) == [(0, 2), (2, 0)]
    assert chain.is_legal(((1, 2), (2, 0), (1, 0)))
    assert not chain.is_legal(((2, 1), (2, 0), (1, 0)))
    assert not chain.is_legal(((1, 2), (2, 0)))
    assert not chain.is_legal(((1, 1), (2, 0), (1, 0)))
    apart = JoinGraph(4, [((0, 0), (3, 0)), ((1, 1), (2, 1))])
    assert list(apart.legal_orders(0)) == [(3, 1, 2), (3, 2, 1)]
    assert not apart.is_connected and chain.is_connected


def test_live_codes_are_those_of_the_rows_held() -> None:
    op = operator(TWO)
    left = [(1, 1, (1, 7, 0.0, True)), (2, 1, (1, 8, 0.0, True)), (3, -1, (1, 7, 0.0, True))]
    feed(op, [left, []], [1, 2])
    assert [a.tolist() for a in op.synopses()[0].live_codes()] == [[8]]


def arriving(n: int, seed: int, gap: int) -> list[list[Element]]:
    """What comes into n streams: the insertions of `windows`."""
    return [[e for e in items if e[1] > 0] for items in windows(n, seed, ROWS_OF[n], keys=2, gap=gap)]


def staying(items: Sequence[Element], range_: int | None) -> list[Element]:
    """The relation of a window of so many ticks over the stream."""
    leaving = [] if range_ is None else [(ts + max(range_, 1), -1, row, seq) for ts, _, row, seq in items]
    return sorted([*items, *leaving], key=lambda e: (e[0], e[1], e[3]))


def over_streams(graph: Sequence[Equality], columns: Sequence[tuple[int, int]], ranges: Sequence[int | None]) -> Join:
    schema = Schema(tuple(S[c] for _, c in columns))
    queues = [queue(S) for _ in range(inputs_of(graph))]
    return join_of(queues, graph, columns, schema, range(len(columns)), ranges)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("gap", [1, 2, 4])
def test_streams_with_ranges_join_as_their_windows_do(name: str, seed: int, gap: int) -> None:
    graph = GRAPHS[name]
    n = inputs_of(graph)
    streams = arriving(n, seed + 70, gap)
    ranges = [(3, 2, 5, 4), (0, 3, 1, 2), (None, 2, 2, None), (2, 2, 2, 2)][seed][:n]
    relations = [staying(items, range_) for items, range_ in zip(streams, ranges)]
    for columns in ([(0, 1)], [(0, 0), (n - 1, 2)], every_column(n)):
        expected = entering(twin(relations, graph, columns))
        for cuts in ((), range(1, 60), random_cuts(seed, 40)):
            assert entering(feed(over_streams(graph, columns, ranges), streams, cuts, append_only=True)) == expected


def test_streams_with_ranges_join_alike_in_small_buffers_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    streams, columns, ranges = arriving(3, 91, 2), [(0, 1), (2, 2)], [2, 3, 2]
    relations = [staying(items, range_) for items, range_ in zip(streams, ranges)]
    expected = entering(twin(relations, CHAIN, columns))
    for tuples in (1, 2, 3, 7):
        shrink_buffers(monkeypatch, tuples)
        monkeypatch.setattr(by_pipelines, "_BLOCK", tuples)
        for room in (1, 1000):
            op = over_streams(CHAIN, columns, ranges)
            assert entering(feed(op, streams, room=room, budget=5, append_only=True)) == expected


def test_a_key_that_all_elements_share_does_not_make_blocks_quadratic() -> None:
    n = 4000
    streams = [[(3 * t + i, 1, (1, t % 50, 0.0, True), t) for t in range(n)] for i in range(3)]
    op = over_streams([((0, 0), (1, 0)), ((1, 1), (2, 1))], [(0, 1), (1, 1)], [10, 10, 10])
    out = feed(op, streams, append_only=True)
    assert op.describe().figures["inspected"] < 60 * n
    assert (
        sum(sum(delta.values()) for delta in out.values()) == 6 * n - 9
    )  # each S and T of one number meet six R, but for the first and last


@pytest.mark.parametrize("over_ranges", [False, True])
@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_an_element_that_one_input_drops_is_not_joined_with_the_rows_of_another(
    order: tuple[int, int], over_ranges: bool
) -> None:
    graph: list[Equality] = [((0, 0), (1, 0)), ((0, 1), (2, 1))]
    n = 300
    streams = [
        [(2, 1, (1, 7, 0.0, True), t) for t in range(n)],
        [(1, 1, (1, 0, 0.0, True), t) for t in range(n)],
        [(1, 1, (0, 8, 0.0, True), 0)],
    ]
    op = over_streams(graph, [(0, 0)], [9, 9, 9]) if over_ranges else operator(graph, [(0, 0)])
    op.reorder((order, (0, 2), (0, 1)))
    assert feed(op, streams, append_only=True) == {}
    assert op.describe().figures["inspected"] <= 2 * n


@pytest.mark.parametrize("name", GRAPHS)
def test_state_of_streams_with_ranges_continues_alike(name: str) -> None:
    graph = GRAPHS[name]
    n = inputs_of(graph)
    streams, columns, ranges = arriving(n, 95, 2), every_column(n), [3, 2, 4, None][:n]
    relations = [staying(items, range_) for items, range_ in zip(streams, ranges)]
    first, second = over_streams(graph, columns, ranges), over_streams(graph, columns, ranges)
    answer = feed_in_turn(first, second, streams, 14, append_only=True)
    assert entering(answer) == entering(twin(relations, graph, columns))


def test_rows_leave_when_only_time_passes() -> None:
    op = over_streams(TWO, [(0, 0)], [5, 5])
    feed(op, [[(1, 1, (1, 0, 0.0, True), 0)], []], [3], until=5, append_only=True)
    assert len(op.synopses()[0]) == 1
    feed(op, [[], []], until=6, append_only=True)
    assert len(op.synopses()[0]) == 0
