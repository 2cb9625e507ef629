"""How operators are tested: elements in as tuples, the netted answer of every instant out.

An element is written (ts, sign, row) or (ts, sign, row, seq); row is a tuple of Python values, None for NULL, TEXT
as its int code. `feed` shows an operator its inputs cut at any instants, and checks what every operator owes (ts
order, deletions before insertions, no transients, nothing at or before its progress), so a test only compares the
answers with a twin.

    from tests.operators.harness import feed
    assert feed(operator, [left, right], cuts=[3, 7]) == expected     # {ts: Counter({row: net multiplicity})}
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from minidsms.elements import MAX_INSTANT, Batch, Column, Schema
from minidsms.operators.operator import Operator
from minidsms.queues import Queue
from minidsms.scheduler.scheduler import is_ready
from minidsms.synopses.group_state import Argument, Run, contiguous_words

Row = tuple[Any, ...]
Element = tuple[Any, ...]
Netted = dict[int, Counter[Row]]

END = 2**40
"""An instant after all those of tests: the last cut, unless a test sets another."""


def queue(schema: Schema, bound: int = 1 << 30) -> Queue:
    """An input queue for the operator under test."""
    return Queue(schema, bound)


def column(values: Sequence[Any], type_: Any) -> Column:
    """A column of Python values."""
    valid = np.array([v is not None for v in values], np.bool_)
    data = np.array([0 if v is None else v for v in values]).astype(type_.dtype) if values else np.zeros(0, type_.dtype)
    return Column(data, None if valid.all() else valid)


def batch(elements: Sequence[Element], schema: Schema, append_only: bool = False) -> Batch:
    """A batch of elements; seq is set when the elements carry one, sign is None when `append_only` and all are +1."""
    ts = np.array([e[0] for e in elements], np.int64)
    sign = np.array([e[1] for e in elements], np.int8)
    columns = [column([e[2][i] for e in elements], t) for i, t in enumerate(schema.types)]
    seq = np.array([e[3] for e in elements], np.int64) if elements and len(elements[0]) > 3 else None
    return Batch(ts, None if append_only and bool((sign == 1).all()) else sign, columns, seq)


def run_over(batch: Batch, ids: Sequence[int]) -> tuple[Run, Argument]:
    """A run of one aggregate over the batch, whose only column is its argument; ids: the elements' groups."""
    n, values = len(batch), batch.column(0)
    valid = np.ones(n, np.int8) if values.valid is None else values.valid.astype(np.int8)
    results = np.empty((n, 1), np.int64)
    groups, status = np.array(ids, np.int64), np.empty((n, 1), np.int8)
    run = Run(batch, batch.ts, batch.signs, groups, results, results.view(np.float64), status)
    return run, Argument(contiguous_words(values), valid, batch.signs * valid)


def elements(batches: Iterable[Batch], with_seq: bool = False) -> list[Element]:
    """The elements of batches, in order."""
    result: list[Element] = []
    for b in batches:
        columns = []
        for c in b.columns:
            values = c.values.tolist()
            columns.append(
                values if c.valid is None else [v if ok else None for v, ok in zip(values, c.valid.tolist())]
            )
        rows = list(zip(*columns)) if columns else [()] * len(b)
        triples = zip(b.ts.tolist(), b.signs.tolist(), rows)
        if with_seq:
            assert b.seq is not None
            result += [(*t, s) for t, s in zip(triples, b.seq.tolist())]
        else:
            result += list(triples)
    return result


def netted(items: Iterable[Element]) -> Netted:
    """Net multiplicities per instant; rows and instants that net to nothing are left out."""
    result: Netted = {}
    for element in items:
        counts = result.setdefault(element[0], Counter())
        counts[element[2]] += element[1]
        if not counts[element[2]]:
            del counts[element[2]]
    return {ts: counts for ts, counts in result.items() if counts}


def entering(answer: Netted) -> Netted:
    """What ISTREAM makes of it."""
    positive = {ts: Counter({row: m for row, m in delta.items() if m > 0}) for ts, delta in answer.items()}
    return {ts: delta for ts, delta in positive.items() if delta}


def run_in_order(
    operator: Operator,
    inputs: Sequence[Sequence[Element]],
    cuts: Iterable[int] = (),
    *,
    until: int = END,
    room: int = 1 << 30,
    budget: int = 1 << 30,
    append_only: bool = False,
    with_seq: bool = False,
) -> list[Element]:
    """The operator's output, in its order, after every input was shown up to each cut in turn and then up to `until`.

    room: the output queue's bound (1 makes the operator resume after every batch).  budget: of each run.
    append_only: batches without deletions come with sign None, as from streams.
    """
    out = Queue(operator.schema, room)
    out.progress = operator.progress
    operator.outputs.append(out)
    result: list[Element] = []
    positions = [0] * len(inputs)
    for cut in [*sorted(c for c in cuts if c < until), until]:
        for i, items in enumerate(inputs):
            start = positions[i]
            while positions[i] < len(items) and items[positions[i]][0] <= cut:
                positions[i] += 1
            if positions[i] > start:
                part = items[start : positions[i]]
                operator.inputs[i].put(batch(part, operator.inputs[i].schema, append_only))
            operator.inputs[i].progress = cut
        while is_ready(operator):
            operator.run(budget)
            result += _drain(out, with_seq)
        if operator.failure is None:
            assert operator.progress == cut, "an operator that rests has processed all its input"
            assert out.progress >= cut, "the output's progress follows the operator's"
    operator.outputs.remove(out)
    check_output(result)
    return result


def feed(operator: Operator, inputs: Sequence[Sequence[Element]], cuts: Iterable[int] = (), **options: Any) -> Netted:
    """The netted output of every instant: {ts: Counter({row: net multiplicity})}. Options as in `run_in_order`."""
    return netted(run_in_order(operator, inputs, cuts, **options))


def feed_in_turn(
    first: Operator, second: Operator, inputs: Sequence[Sequence[Element]], cut: int, **options: Any
) -> Netted:
    """As `feed`; up to an instant the first answers, and behind it the second, which goes on with its state."""
    before = feed(first, [[e for e in side if e[0] <= cut] for side in inputs], [cut // 2], until=cut, **options)
    go_on(second, first, cut)
    assert [len(each) for each in second.synopses()] == [len(each) for each in first.synopses()]
    after = feed(second, [[e for e in side if e[0] > cut] for side in inputs], [30], **options)
    return {**before, **after}


def go_on(second: Operator, first: Operator, cut: int) -> None:
    """Give an operator the state that another has at an instant, as arrays."""
    for old, new in zip(first.synopses(), second.synopses(), strict=True):
        new.restore(old.arrays())
    second.progress = cut


def take_step(operator: Operator, items: Sequence[Element], until: int) -> None:
    """Let every input have the same elements, and forget what comes of them."""
    for q in operator.inputs:
        q.put(batch(items, q.schema))
        q.progress = until
    while is_ready(operator):
        operator.run(1 << 30)
    operator.outputs[0].take(MAX_INSTANT)


def check_output(items: Sequence[Element]) -> None:
    """What every operator owes: ts order, and within an instant deletions first and no transient (where seq tells)."""
    assert all(a[0] <= b[0] for a, b in pairwise(items)), "output is in ts order"
    assert all(a[0] < b[0] or a[1] <= b[1] for a, b in pairwise(items)), "deletions stand before insertions"
    if items and len(items[0]) > 3:
        seen = Counter((e[0], e[3], e[2]) for e in items)
        assert all(n == 1 for n in seen.values()), "no element is inserted and deleted at one instant"


def _drain(out: Queue, with_seq: bool) -> list[Element]:
    taken = out.take(MAX_INSTANT)
    return [] if taken is None else elements([taken], with_seq)


def contents(items: Sequence[Element]) -> dict[int, Counter[Row]]:
    """The relation after each instant that has elements: what a twin recomputes from."""
    result: dict[int, Counter[Row]] = {}
    now: Counter[Row] = Counter()
    for element in items:
        now[element[2]] += element[1]
        if not now[element[2]]:
            del now[element[2]]
        result[element[0]] = Counter(now)
    return result


def joined(
    relations: Sequence[Counter[Row]],
    equalities: Iterable[tuple[tuple[int, int], tuple[int, int]]],
    columns: Sequence[tuple[int, int]],
) -> Counter[Row]:
    """Columns (relation, column) of every combination of rows whose columns are equal as demanded, and not NULL."""
    links = [sorted(each) for each in equalities]
    tuples: list[tuple[tuple[Row, ...], int]] = [((), 1)]
    for i, relation in enumerate(relations):
        here = [(earlier, c) for earlier, (own, c) in links if own == i]
        by_key: dict[Row, list[tuple[Row, int]]] = {}
        for row, k in relation.items():
            key = tuple(row[c] for _, c in here)
            if None not in key:
                by_key.setdefault(key, []).append((row, k))
        tuples = [
            ((*chosen, row), m * k)
            for chosen, m in tuples
            for row, k in by_key.get(tuple(chosen[j][c] for (j, c), _ in here), ())
        ]
    result: Counter[Row] = Counter()
    for chosen, m in tuples:
        result[tuple(chosen[i][c] for i, c in columns)] += m
    return result


def differences(states: dict[int, Counter[Row]]) -> Netted:
    """The netted deltas of a relation given by its contents at the instants it may change, in ts order."""
    before: Counter[Row] = Counter()
    result: Netted = {}
    for ts, state in states.items():
        delta = Counter(
            {row: state[row] - before[row] for row in set(state) | set(before) if state[row] != before[row]}
        )
        if delta:
            result[ts] = delta
        before = state
    return result


def random_window(rows: Sequence[Row], seed: int, size: int = 5, gap: int = 2) -> list[Element]:
    """A FIFO relation's deltas with seq: each row arrives 0..gap-1 ticks after the last, leaves `size` ticks later."""
    rng = random.Random(seed)
    items: list[tuple[int, int, int, Element]] = []
    ts = 1
    for seq, row in enumerate(rows):
        ts += rng.randrange(gap)
        items.append((ts, 1, seq, (ts, 1, row, seq)))
        items.append((ts + size, 0, seq, (ts + size, -1, row, seq)))
    return [item[3] for item in sorted(items, key=lambda item: item[:3])]


def random_relation(rows: Sequence[Row], seed: int, life: int = 12, gap: int = 2) -> list[Element]:
    """A relation's deltas with seq and deletions in any order: each row lives 1..life ticks, some for ever."""
    rng = random.Random(seed)
    items: list[tuple[int, int, int, Element]] = []
    ts = 1
    for seq, row in enumerate(rows):
        ts += rng.randrange(gap)
        items.append((ts, 1, seq, (ts, 1, row, seq)))
        if rng.random() < 0.9:
            end = ts + rng.randrange(1, life + 1)
            items.append((end, 0, rng.randrange(1 << 30), (end, -1, row, seq)))
    return [item[3] for item in sorted(items, key=lambda item: item[:3])]


def random_cuts(seed: int, until: int, n: int = 4) -> list[int]:
    """Some instants to cut at."""
    rng = random.Random(seed)
    return sorted({rng.randrange(until + 1) for _ in range(n)})
