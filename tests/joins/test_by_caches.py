"""Joins with caches against the twin of joins, whatever their plan, their caches and the way they are fed."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from minidsms.elements import Schema, Type
from minidsms.joins import answer as answers
from minidsms.joins.equal_columns import Equality
from minidsms.joins.join import Join
from minidsms.joins.plan import CacheSpec, JoinPlan
from minidsms.synopses.join_caches import PAGE_BYTES
from tests.joins.cached_joins import CheckedMJoin, operator, total
from tests.joins.made import cached_join_of, join_of, shrink_buffers
from tests.joins.test_by_pipelines import (
    APART,
    CHAIN,
    GRAPHS,
    S,
    entering,
    every_column,
    inputs_of,
    rows,
    staying,
    twin,
    windows,
)
from tests.operators.harness import Element, Netted, feed, go_on, queue, random_relation, run_in_order
from tests.seeds import seeds

ONE_KEY: list[Equality] = [((i, 0), (i + 1, 0)) for i in range(4)]
CYCLE: list[Equality] = [((0, 0), (1, 0)), ((1, 1), (2, 1)), ((2, 2), (3, 2)), ((3, 0), (0, 0))]
BESIDE: list[Equality] = [((0, 0), (1, 0)), ((1, 0), (2, 0)), ((0, 1), (2, 1))]
"""Two inputs are linked by the key of all three and by another column."""
MODES = ["relation", "at once", "bags", "netted", "streams"]
ALL = {**GRAPHS, "one key": ONE_KEY, "cycle": CYCLE, "apart": APART, "beside": BESIDE}
SIZES = {"one key": 9, "cycle": 12, "star": 12, "apart": 8}

CHAIN_CACHED = JoinPlan(((1, 2), (2, 0), (1, 0)), (CacheSpec(0, (1, 2)),))
"""R1 and its cache of R2 and R3: the plan of figure 5.7."""


# ------------------------------------------------------------------------------------------ the answer is the same


def answer_and_twin(
    graph: Sequence[Equality], mode: str, seed: int, size: int, **options: object
) -> tuple[CheckedMJoin, Netted, Netted]:
    """The join fed by a seed, its plan drawn anew at every slice or less often, and the definition's answer."""
    rng = random.Random(seed)
    n = inputs_of(graph)
    columns = rng.choice([every_column(n), [(0, 1)], [(n - 1, 0), (0, 2)]])
    items = windows(n, seed, size, keys=rng.choice([2, 3, 6]), gap=rng.choice([1, 2, 3]))
    cuts: Sequence[int] = rng.choice([range(1, 60), range(1, 60, 3), (5, 9, 30)])
    every = rng.choice([1, 1, 2, 5])
    if mode == "streams":
        streams = [[e for e in side if e[1] > 0] for side in items]
        ranges = [rng.choice([None, 0, 1, 2, 3, 5]) for _ in range(n)]
        items = [staying(side, range_) for side, range_ in zip(streams, ranges)]
        op = operator(graph, columns, range(len(columns)), ranges, **options)
        op.rng, op.every = rng, every
        return op, entering(feed(op, streams, cuts, append_only=True)), entering(twin(items, graph, columns))
    fifo = None
    if mode == "bags":
        fifo = [rng.random() < 0.3 for _ in range(n)]
        items = [
            side if is_fifo else random_relation(rows(seed * 10 + i, size, 3), seed * 10 + i, 4)
            for i, (side, is_fifo) in enumerate(zip(items, fifo))
        ]
    shown = range(len(columns)) if mode == "netted" else None
    op = operator(graph, columns, shown, None, fifo, deletes_at_once=mode == "at once", **options)
    op.rng, op.every = rng, every
    answer, expected = feed(op, items, cuts), twin(items, graph, columns)
    return (op, entering(answer), entering(expected)) if mode == "netted" else (op, answer, expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ALL)
def test_the_answer_is_the_same_under_every_plan(name: str, mode: str) -> None:
    for seed in seeds(2):
        _, answer, expected = answer_and_twin(ALL[name], mode, seed, SIZES.get(name, 20))
        assert answer == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", [{"buckets": 1}, {"buckets": 2}, {"budget": PAGE_BYTES}, {"budget": 0}], ids=str)
@pytest.mark.parametrize("name", ["chain", "one key", "triangle"])
def test_the_answer_is_the_same_in_caches_of_any_size(
    name: str, options: dict[str, int], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = (len(name) + len(mode) + sum(options.values())) % 2
    # Where a kernel may inspect few slots it stops amidst a pipeline, and goes on there.
    monkeypatch.setattr(answers, "MOST_INSPECTED", 2 + 5 * seed)
    _, answer, expected = answer_and_twin(ALL[name], mode, 10 + seed, SIZES.get(name, 20), **options)
    assert answer == expected


def test_a_relation_that_shrinks_gives_its_rows_other_slots_and_caches_begin_anew() -> None:
    def side() -> list[Element]:
        def row(k: int) -> tuple[int, int, float, bool]:
            return (k, k, 0.0, True)

        burst = [(ts, sign, row(k)) for ts, sign in ((5, 1), (6, -1)) for k in range(100, 1200)]
        few = [(7, 1, row(k)) for k in range(20)]
        changes = [
            change
            for ts in range(8, 28)
            for change in ((ts, -1, row(ts - 8)), (ts, 1, (7 * ts % 20, 3 * ts % 20, 0.5, True)))
        ]
        return [*burst, *few, *changes, *((ts, 1, row(3 * ts % 20)) for ts in range(28, 50))]

    items, columns = [side() for _ in range(3)], [(0, 0), (2, 0)]
    op = operator(CHAIN, columns, fifo=(False, False, False))
    op.switch(CHAIN_CACHED)
    plain = join_of([queue(S) for _ in range(3)], CHAIN, columns, op.schema, fifo=(False, False, False))
    assert feed(op, items, range(1, 60)) == feed(plain, items, range(1, 60))
    assert op.index.renumberings > 0 and total(op.cache_figures().values(), "hits") > 0


@pytest.mark.parametrize(("mode", "seed"), [("netted", 9), ("netted", 27), ("at once", 54), ("streams", 56)])
def test_what_the_key_does_not_tell_keeps_caches_from_being_reduced_by_it(mode: str, seed: int) -> None:
    _, answer, expected = answer_and_twin(BESIDE, mode, seed, 30)
    assert answer == expected


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 2100))
def test_the_answer_is_the_same_under_very_many_plans(seed: int) -> None:
    rng = random.Random(seed)
    name = rng.choice(list(ALL))
    options = {"budget": rng.choice([None, PAGE_BYTES, 3 * PAGE_BYTES]), "buckets": rng.choice([None, 1, 2])}
    mode = rng.choice(MODES)
    _, answer, expected = answer_and_twin(ALL[name], mode, seed, SIZES.get(name, 30), **options)
    assert answer == expected


@pytest.mark.parametrize("shown", [None, [0, 1]])
def test_small_buffers_and_full_queues_do_not_change_the_answer(
    shown: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    items, columns = windows(3, 7, 36, 2, gap=2), [(0, 1), (2, 2)]
    expected = twin(items, CHAIN, columns)
    for tuples in (1, 2, 3, 7):
        shrink_buffers(monkeypatch, tuples)
        for room in (1, 1000):
            op = operator(CHAIN, columns, shown)
            op.switch(CHAIN_CACHED)
            answer = feed(op, items, room=room, budget=5)
            assert answer == expected if shown is None else entering(answer) == entering(expected)
            run_in_order(operator(CHAIN, columns, shown), items, room=room, budget=5)


def test_rows_of_one_key_compute_its_segment_once() -> None:
    op = operator(CHAIN)
    op.switch(CHAIN_CACHED)
    row = (1, 1, 1, 1)
    sides: list[list[Element]] = [[(2, 1, row)] * 20, [(1, 1, row)] * 3, [(1, 1, row)]]
    assert sum(feed(op, sides, [5]).get(2, {}).values()) == 60
    (figures,) = op.cache_figures().values()
    assert (figures.probes, figures.hits, figures.creates, figures.created_rows) == (20, 19, 1, 3)


def test_the_entry_of_a_key_that_is_not_asked_for_any_more_gives_way() -> None:
    op = operator(CHAIN, buckets=1)
    op.switch(CHAIN_CACHED)
    one, other = (1, 1, 1, 1), (2, 2, 2, 2)
    both: list[Element] = [(1, 1, one), (1, 1, other)]
    feed(op, [[(2, 1, one), (3, 1, other), (3, 1, other), (3, 1, other)], both, both], [5])
    (figures,) = op.cache_figures().values()
    assert (figures.probes, figures.hits, figures.creates, figures.evictions) == (4, 2, 2, 1)


def test_state_given_as_arrays_and_taken_back_continues_alike() -> None:
    items, cut = windows(3, 41), 14
    first, second = operator(CHAIN), operator(CHAIN)
    for op in (first, second):
        op.switch(CHAIN_CACHED)
    before = feed(first, [[e for e in side if e[0] <= cut] for side in items], [10], until=cut)
    assert len(first.cached.caches)
    # The other has entries of its own, which must not outlive its windows.
    feed(second, [[e for e in side if e[0] <= 8] for side in windows(3, 42)], [4], until=8)
    go_on(second, first, cut)
    assert not len(second.cached.caches)
    after = feed(second, [[e for e in side if e[0] > cut] for side in items], [30])
    assert {**before, **after} == twin(items, CHAIN, every_column(3))


# ------------------------------------------------------------------------------------------------ worked examples

R1, R2, R3 = (
    Schema.of(("a", Type.INTEGER)),
    Schema.of(("a", Type.INTEGER), ("b", Type.INTEGER)),
    Schema.of(("b", Type.INTEGER)),
)


class Example:
    """R1(A), R2(A, B), R3(B) with the contents of figure 5.2 and the plan of figure 5.7."""

    def __init__(self) -> None:
        columns = [(0, 0), (1, 0), (1, 1), (2, 0)]
        schema = Schema(tuple(s[c] for s, c in zip((R1, R2, R2, R3), (0, 0, 1, 0))))
        self.op = cached_join_of([queue(R1), queue(R2), queue(R3)], CHAIN_OF_R, columns, schema, kind=Join)
        self.ts = 0
        for row in ((1, 2), (1, 3), (2, 3), (3, 4)):
            self.insert(1, row)
        for row in ((2,), (5,)):
            self.insert(2, row)
        self.op.switch(CHAIN_CACHED)

    def insert(self, i: int, row: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The rows that this insertion puts out."""
        self.ts += 1
        sides: list[list[Element]] = [[], [], []]
        sides[i] = [(self.ts, 1, row)]
        return sorted(feed(self.op, sides, until=self.ts).get(self.ts, {}))

    def entries(self) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
        """The cache: keys and rows of R2 and R3 side by side."""
        (shape,) = set(self.op.cached.shapes.values())
        windows = self.op.index.windows
        rows = {}
        for key, tuples in self.op.cached.caches.entries(shape).items():
            columns = [
                windows[i].gather([c], np.array([t[k] for t in tuples], np.int64))[0].values.tolist()
                for k, i, c in ((0, 1, 0), (0, 1, 1), (1, 2, 0))
            ]
            rows[key] = sorted(zip(*columns))
        return rows


CHAIN_OF_R: list[Equality] = [((0, 0), (1, 0)), ((1, 1), (2, 0))]


def figures(example: Example) -> tuple[int, int]:
    (f,) = example.op.cache_figures().values()
    return f.hits, f.misses


def test_example_5_1_1_an_insertion_joins_along_its_pipeline() -> None:
    example = Example()
    example.op.switch(JoinPlan(CHAIN_CACHED.orders))
    assert example.insert(0, (1,)) == [(1, 1, 2, 2)]


def test_example_5_4_1_a_miss_creates_the_entry_and_the_next_probe_hits() -> None:
    example = Example()
    assert example.entries() == {}
    assert example.insert(0, (1,)) == [(1, 1, 2, 2)]
    assert example.entries() == {(1,): [(1, 2, 2)]}
    assert figures(example) == (0, 1)
    assert example.insert(0, (1,)) == [(1, 1, 2, 2)]
    assert figures(example) == (1, 1)


def test_example_5_4_2_an_insertion_into_the_segment_is_added_to_the_entry() -> None:
    example = Example()
    example.insert(0, (1,))
    example.insert(2, (3,))
    assert example.entries() == {(1,): [(1, 2, 2), (1, 3, 3)]}
    assert example.insert(0, (1,)) == [(1, 1, 2, 2), (1, 1, 3, 3)]
    assert figures(example) == (1, 1)


def test_example_5_4_3_a_cache_must_be_kept_by_what_the_pipelines_compute() -> None:
    op = Example().op
    assert op.is_legal(CHAIN_CACHED)
    assert not op.is_legal(JoinPlan(CHAIN_CACHED.orders, (CacheSpec(2, (1, 0)),)))
    assert op.is_legal(JoinPlan(((1, 2), (0, 2), (1, 0)), (CacheSpec(2, (1, 0)),)))


def test_example_5_4_4_a_change_of_a_key_without_an_entry_is_ignored() -> None:
    example = Example()
    example.insert(0, (1,))
    example.insert(2, (3,))
    (f,) = example.op.cache_figures().values()
    assert (f.inserts, f.ignored) == (1, 1)
    assert (2,) not in example.entries()


def test_a_key_that_joins_with_nothing_has_an_empty_entry() -> None:
    example = Example()
    assert example.insert(0, (9,)) == [] and example.insert(0, (9,)) == []
    assert example.entries() == {(9,): []} and figures(example) == (1, 1)


# -------------------------------------------------------------------------------------------------------- legality


def test_a_window_alone_is_no_cache_but_one_reduced_by_others_is() -> None:
    op = operator(CHAIN)
    assert not op.is_legal(JoinPlan(((1, 2), (2, 0), (1, 0)), (CacheSpec(0, (1,)),)))
    assert op.is_legal(JoinPlan(((1, 2), (2, 0), (1, 0)), (CacheSpec(0, (1,), (2,)),)))
    assert not op.is_legal(JoinPlan(((1, 2), (2, 0), (1, 0)), (CacheSpec(0, (1, 2)), CacheSpec(0, (1,), (2,)))))


def test_a_cache_is_not_updated_from_entries_that_need_not_have_all() -> None:
    # Behind the first step of input 0's pipeline the change of 0 and 1 is complete, but not within an entry of 1 and 2
    # that holds only what joins with 0.
    orders = ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2))
    four: list[Equality] = [((i, 0), (i + 1, 0)) for i in range(3)]
    four += [((0, 0), (2, 0)), ((0, 0), (3, 0)), ((1, 0), (3, 0))]
    op = operator(four)
    pair, inside = CacheSpec(3, (0, 1)), CacheSpec(0, (1, 2), (0,))
    assert op.is_legal(JoinPlan(orders, (pair,))) and op.is_legal(JoinPlan(orders, (inside,)))
    assert not op.is_legal(JoinPlan(orders, (inside, pair)))


def test_a_cache_reduced_by_its_own_input_needs_the_key_to_tell_all() -> None:
    orders = ((1, 2), (2, 0), (1, 0))
    by_key: list[Equality] = [((0, 0), (1, 0)), ((1, 0), (2, 0))]
    spec = CacheSpec(0, (1,), (0, 2))
    assert operator(by_key).is_legal(JoinPlan(orders, (spec,)))
    # Input 2 is linked with input 0 by a column that the key does not have.
    assert not operator([*by_key, ((0, 1), (2, 1))]).is_legal(JoinPlan(orders, (spec,)))


# ---------------------------------------------------------------------------------------------- sharing and switching


def test_pipelines_share_a_store_where_segment_and_key_are_the_same() -> None:
    orders = ((1, 2, 3), (0, 2, 3), (0, 1, 3), (1, 0, 2))
    four: list[Equality] = [((0, 0), (1, 0)), ((1, 0), (2, 0)), ((0, 0), (2, 0)), ((1, 0), (3, 0)), ((0, 0), (3, 0))]
    op = operator(four)
    items = windows(4, 5, 12, 2)
    op.switch(JoinPlan(orders, (CacheSpec(2, (0, 1)), CacheSpec(3, (1, 0)))))
    assert len(op.cached.caches.bundle.caches) == 1
    assert feed(op, items, range(1, 40)) == twin(items, four, every_column(4))
    assert total(op.cache_figures().values(), "hits") > 0


def test_a_cache_that_both_plans_have_keeps_its_entries() -> None:
    items = windows(3, 3)
    op = operator(CHAIN)
    op.switch(CHAIN_CACHED)
    feed(op, [[e for e in side if e[0] <= 12] for side in items], [5], until=12)
    before = len(op.cached.caches)
    op.switch(JoinPlan(((1, 2), (2, 0), (1, 0)), (CacheSpec(0, (1, 2)), CacheSpec(2, (1, 0), ()))[:1]))
    assert before and len(op.cached.caches) == before
    op.switch(JoinPlan(((1, 2), (0, 2), (1, 0))))
    assert len(op.cached.caches) == 0
    op.switch(CHAIN_CACHED)
    assert len(op.cached.caches) == 0


def test_other_orders_take_along_the_caches_that_they_allow() -> None:
    op = operator(CHAIN)
    op.switch(CHAIN_CACHED)
    op.reorder(((1, 2), (2, 0), (1, 0)))
    assert op.plan == CHAIN_CACHED
    op.reorder(((1, 2), (0, 2), (1, 0)))
    assert op.plan == JoinPlan(((1, 2), (0, 2), (1, 0)))
