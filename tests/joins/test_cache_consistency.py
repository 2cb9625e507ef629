"""After every element each cache holds what its segment joins to (Babu 2005, definitions 5.4.1 and 5.7.1).

What it should hold is computed from the rows that this file has fed and not yet taken back, by nested loops over their
values; of the join's own state only the entries are read, and which of the slots they name are still in their windows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from minidsms.elements import MAX_INSTANT, Schema
from minidsms.joins.equal_columns import Equality
from minidsms.joins.join import Join
from minidsms.queues import Queue
from minidsms.scheduler.scheduler import is_ready
from minidsms.synopses.join_caches import PAGE_BYTES, StoreShape
from tests.joins.made import cached_join_of
from tests.joins.test_by_caches import BESIDE, CHAIN_CACHED, CYCLE, ONE_KEY
from tests.joins.test_by_pipelines import (
    CHAIN,
    STAR,
    TRIANGLE,
    S,
    entering,
    every_column,
    inputs_of,
    rows,
    twin,
    windows,
)
from tests.operators.harness import Element, Netted, Row, batch, elements, netted, queue, random_relation

GRAPHS = {"chain": CHAIN, "triangle": TRIANGLE, "star": STAR, "cycle": CYCLE, "one key": ONE_KEY[:3], "beside": BESIDE}
MODES = ["relation", "at once", "bags", "netted", "streams"]
SIZES: list[dict[str, int]] = [{}, {"buckets": 1}, {"budget": PAGE_BYTES}, {"buckets": 2, "budget": PAGE_BYTES}]


class Fed:
    """A join, and the rows that are in its windows, as they were fed. hits: lookups that found an entry."""

    def __init__(self, equalities: Sequence[Equality], ranges: Sequence[int | None] | None, **options: Any) -> None:
        n = inputs_of(equalities)
        self.equalities = equalities
        self.ranges = ranges
        schema = Schema(S.fields * n)
        inputs = [queue(S) for _ in range(n)]
        self.join = cached_join_of(inputs, equalities, every_column(n), schema, kind=Join, ranges=ranges, **options)
        self.out = Queue(schema, 1 << 30)
        self.join.outputs.append(self.out)
        self.present: list[list[tuple[int, Row]]] = [[] for _ in range(n)]
        self.checked = self.hits = 0

    def feed(self, i: int, element: Element) -> None:
        """One element, which has an instant of its own; then everything is checked."""
        ts, sign, row = element[:3]
        if self.ranges is not None:
            for rows_of, length in zip(self.present, self.ranges):
                rows_of[:] = [(at, row) for at, row in rows_of if length is None or ts < at + max(length, 1)]
        if sign > 0:
            self.present[i].append((ts, row))
        else:
            self.present[i].remove(next(held for held in self.present[i] if held[1] == row))
        self.join.inputs[i].put(batch([element], S, self.ranges is not None))
        for q in self.join.inputs:
            q.progress = ts
        while is_ready(self.join):
            self.join.run(1 << 30)
        self.check()

    def check(self) -> None:
        """Every entry of every cache is consistent."""
        for shape in set(self.join.cached.shapes.values()):
            key = shape.key
            whole = list(self.joined(key.inputs))
            needed = whole
            if key.reduced_by:
                partners = {t[: len(key.inputs)] for t in self.joined((*key.inputs, *key.reduced_by))}
                needed = [t for t in whole if t in partners]
            places = [(key.inputs.index(i), c) for i, c in key.stored]
            for values, slots in self.join.cached.caches.entries(shape).items():
                held = Counter(self.rows_of(shape, slots))
                of_key = [
                    Counter(t for t in tuples if tuple(word(t[k][c]) for k, c in places) == values)
                    for tuples in (needed, whole)
                ]
                assert of_key[0] <= held <= of_key[1], f"{key}: the entry of {values} is inconsistent"
                self.checked += 1

    def joined(self, inputs: Sequence[int]) -> Iterator[tuple[Row, ...]]:
        """The join of the present rows of some inputs, once for each combination of rows that may be in an answer."""
        parts = [[row for _, row in self.present[i] if not self.has_null_key(i, row)] for i in inputs]
        groups = [[c for c in each if c[0] in inputs] for each in equal_columns(self.equalities)]
        for chosen in product(*parts):
            values = dict(zip(inputs, chosen))
            if all(len({values[i][c] for i, c in group}) <= 1 for group in groups):
                yield chosen

    def has_null_key(self, i: int, row: Row) -> bool:
        return any(row[c] is None for ends in self.equalities for k, c in ends if k == i)

    def rows_of(self, shape: StoreShape, slots: Sequence[tuple[int, ...]]) -> Iterator[tuple[Row, ...]]:
        """The rows of an entry's tuples, without those of which a row has left its window."""
        figures, inputs = self.join.index.inputs, shape.key.inputs
        for chosen in slots:
            if all(figures["is_bag"][i] or figures["lo"][i] <= s < figures["hi"][i] for i, s in zip(inputs, chosen)):
                yield tuple(self.row(i, s) for i, s in zip(inputs, chosen))

    def row(self, i: int, slot: int) -> Row:
        columns = self.join.index.windows[i].gather(list(range(len(S))), np.array([slot]))
        return tuple(None if c.valid is not None and not c.valid[0] else c.values[0].item() for c in columns)

    def answer(self) -> Netted:
        taken = self.out.take(MAX_INSTANT)
        return netted([] if taken is None else elements([taken]))


def equal_columns(equalities: Sequence[Equality]) -> list[set[tuple[int, int]]]:
    """Columns that are equal, directly or by way of others."""
    groups = [set(ends) for ends in equalities]
    for group in groups:
        for other in groups:
            if group & other:
                group |= other
    return groups


def word(value: Any) -> int:
    """What the index holds of a value."""
    return int(np.float64(value).view(np.int64)) if isinstance(value, float) else int(value)


def apart(inputs: Sequence[Sequence[Element]]) -> list[list[Element]]:
    """The same changes in the same order, each at an instant of its own."""
    order = sorted((e[0], e[1], i, k) for i, items in enumerate(inputs) for k, e in enumerate(items))
    result: list[list[Element]] = [[] for _ in inputs]
    for ts, (_, _, i, k) in enumerate(order, 1):
        result[i].append((ts, *inputs[i][k][1:]))
    return result


def fed_one_by_one(graph: Sequence[Equality], mode: str, seed: int, size: int, **options: Any) -> Fed:
    """A join that was fed, checked after every element, and has given the answer of the twin."""
    rng = random.Random(seed)
    n = inputs_of(graph)
    items = windows(n, seed, size, keys=2, gap=3)
    columns = every_column(n)
    ranges: list[int | None] | None = None
    fifo = None
    if mode == "streams":
        ranges = [rng.choice([None, 4 * n, 7 * n, 9 * n]) for _ in range(n)]
        items = apart([[e for e in side if e[1] > 0] for side in items])
    else:
        if mode == "bags":
            fifo = [rng.random() < 0.3 for _ in range(n)]
            items = [
                side if is_fifo else random_relation(rows(seed * 10 + i, size, 2), seed * 10 + i, 6)
                for i, (side, is_fifo) in enumerate(zip(items, fifo))
            ]
        items = apart(items)
    shown = range(len(columns)) if mode in ("netted", "streams") else None
    options |= {"shown": shown, "fifo": fifo, "deletes_at_once": mode == "at once"}
    fed = Fed(graph, ranges, **options)
    every = rng.choice([1, 3, 10])
    for number, (i, element) in enumerate(in_order(items)):
        if number % every == 0:
            fed.hits += sum(figures.hits for figures in fed.join.cache_figures().values())
            fed.join.switch(fed.join.random_plan(rng))
            fed.check()
        fed.feed(i, element)
    relations = items
    if ranges is not None:
        relations = [
            sorted(
                [*side, *((e[0] + max(r, 1), -1, *e[2:]) for e in side if r is not None)], key=lambda e: (e[0], e[1])
            )
            for side, r in zip(items, ranges)
        ]
    answer, expected = fed.answer(), twin(relations, graph, columns)
    last = fed.join.progress
    expected = {ts: counts for ts, counts in expected.items() if ts <= last}
    assert answer == expected if shown is None else entering(answer) == entering(expected)
    return fed


def in_order(items: Sequence[Sequence[Element]]) -> list[tuple[int, Element]]:
    return sorted(((i, e) for i, side in enumerate(items) for e in side), key=lambda each: each[1][0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", GRAPHS)
def test_every_entry_is_consistent_after_every_element(name: str, mode: str) -> None:
    fed = [
        fed_one_by_one(GRAPHS[name], mode, seed, 8, **SIZES[(2 * seed + len(name) + len(mode)) % 4])
        for seed in (0, 1, 3)
    ]
    assert sum(each.checked for each in fed) > 20 and sum(each.hits for each in fed) > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 900))
def test_every_entry_is_consistent_after_every_element_of_very_many(seed: int) -> None:
    rng = random.Random(seed)
    fed_one_by_one(GRAPHS[rng.choice(list(GRAPHS))], rng.choice(MODES), seed, 20, **rng.choice(SIZES))


@pytest.mark.parametrize("i", [1, 2])
def test_an_entry_that_lacks_a_tuple_or_has_one_too_many_is_found_inconsistent(i: int) -> None:
    fed = Fed(CHAIN, None)
    fed.join.switch(CHAIN_CACHED)
    row = (1, 1, 0.0, True)
    for ts, k in enumerate((1, 2, 0), 1):
        fed.feed(k, (ts, 1, row))
    assert fed.checked == 1
    fed.present[i].append((0, row))
    with pytest.raises(AssertionError, match="inconsistent"):
        fed.check()
    del fed.present[i][:]
    with pytest.raises(AssertionError, match="inconsistent"):
        fed.check()


@pytest.mark.parametrize("name", GRAPHS)
def test_plans_are_drawn_with_whole_caches_and_with_reduced_ones(name: str) -> None:
    join = Fed(GRAPHS[name], None).join
    drawn = [join.random_plan(random.Random(seed)) for seed in range(200)]
    whole = [plan for plan in drawn if plan.caches and not any(spec.reduced_by for spec in plan.caches)]
    reduced = [plan for plan in drawn if any(spec.reduced_by for spec in plan.caches)]
    assert len(whole) > 40 and len(reduced) > 40
