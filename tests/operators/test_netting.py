"""ISTREAM, DSTREAM and the netting of relation outputs against bag differences recomputed at every instant."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from minidsms.elements import Batch, Column, Schema, Type
from minidsms.operators.dstream import DStream
from minidsms.operators.istream import IStream
from minidsms.operators.net import Net
from minidsms.operators.netting import surviving
from tests.operators.harness import (
    Element,
    Netted,
    Row,
    contents,
    differences,
    elements,
    feed,
    queue,
    random_cuts,
    random_relation,
    random_window,
    run_in_order,
)

SCHEMA = Schema.of(("a", Type.INTEGER), ("b", Type.TEXT))


def some_rows(seed: int, n: int, kinds: int) -> list[Row]:
    rng = random.Random(seed)
    return [(rng.randrange(kinds) or None, rng.choice((None, 1, 2))) for _ in range(n)]


def some_relation(seed: int) -> list[Element]:
    """Sparse and crowded instants: up to two and up to some twenty changes each."""
    rows = some_rows(seed, 150, 2 if seed % 3 else 40)
    if seed % 2:
        return random_window(rows, seed, size=3)
    items = random_relation(rows, seed, life=20)
    return items if seed % 4 else [(e[0] // 8, *e[1:]) for e in _regrouped(items)]


def _regrouped(items: list[Element]) -> list[Element]:
    """The elements that live longer than 8 ticks, in the order they have when 8 ticks are one."""
    ends = {e[3]: e[0] for e in items if e[1] < 0}
    starts = {e[3]: e[0] for e in items if e[1] > 0}
    lasting = [e for e in items if e[3] not in ends or ends[e[3]] // 8 > starts[e[3]] // 8]
    return sorted(lasting, key=lambda e: (e[0] // 8, e[1]))


def part(delta: Netted, sign: int) -> Netted:
    result = {ts: Counter({row: sign * n for row, n in d.items() if sign * n > 0}) for ts, d in delta.items()}
    return {ts: d for ts, d in result.items() if d}


@pytest.mark.parametrize("seed", range(12))
def test_streams_carry_the_bag_difference_of_every_instant(seed: int) -> None:
    items = some_relation(seed)
    delta = differences(contents(items))
    for cuts in ([], random_cuts(seed, 100), list(range(200))):
        assert feed(IStream(queue(SCHEMA)), [items], cuts) == part(delta, 1)
        assert feed(DStream(queue(SCHEMA)), [items], cuts) == part(delta, -1)
        out = run_in_order(Net(queue(SCHEMA)), [items], cuts)
        # Netted means that no row has both signs at an instant: as many elements as the difference is large.
        assert len(out) == sum(abs(n) for d in delta.values() for n in d.values())
        assert feed(Net(queue(SCHEMA)), [items], cuts) == delta


def test_an_equal_row_that_replaces_another_is_not_emitted() -> None:
    items: list[Element] = [(1, 1, (5, 1)), (2, -1, (5, 1)), (2, 1, (5, 1)), (2, 1, (5, None))]
    assert run_in_order(IStream(queue(SCHEMA)), [items]) == [(1, 1, (5, 1)), (2, 1, (5, None))]
    assert run_in_order(DStream(queue(SCHEMA)), [items]) == []


def test_append_only_input_passes_through_with_its_arrival_numbers() -> None:
    items: list[Element] = [(1, 1, (i, None), i) for i in range(5)]
    assert run_in_order(IStream(queue(SCHEMA), keep_seq=True), [items], append_only=True, with_seq=True) == items
    assert run_in_order(DStream(queue(SCHEMA)), [items], append_only=True) == []
    assert run_in_order(Net(queue(SCHEMA)), [items], append_only=True) == [e[:3] for e in items]


@pytest.mark.parametrize("seed", range(4))
def test_an_instant_is_ordered_by_value_with_null_first_and_text_by_rank(seed: int) -> None:
    items = some_relation(seed)
    ranks = np.array([0, 9, 4], np.int64)
    operator = IStream(queue(SCHEMA), order_by_value=True, ranks=lambda codes: ranks[codes])
    out = run_in_order(operator, [items], random_cuts(seed, 90))
    rank_of = {None: -1, 1: 9, 2: 4}
    expected = sorted(out, key=lambda e: (e[0], -1 if e[2][0] is None else e[2][0], rank_of[e[2][1]]))
    assert out == expected
    assert "ordered" in operator.describe().detail


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_the_rows_present_are_known_though_netting_changes_their_order(seed: int) -> None:
    items = some_relation(seed)
    states = contents(items)
    for stop in random_cuts(seed, items[-1][0]):
        net = Net(queue(SCHEMA), keeps=True)
        feed(net, [[item for item in items if item[0] <= stop]], random_cuts(seed + 1, stop), until=stop)
        present = Counter(item[2] for item in elements([net.contents()]))
        assert present == states[max(ts for ts in states if ts <= stop)]


@pytest.mark.parametrize("wanted", [0, 1, -1])
@pytest.mark.parametrize("seed", range(6))
def test_what_survives_of_columns_of_every_width_masked_and_strided(seed: int, wanted: int) -> None:
    rng = np.random.default_rng(seed)
    n, kinds = 300, (1, 2, 5)[seed % 3]
    ts = np.sort(rng.integers(0, (4, 60)[seed % 2], n))
    sign = np.where(rng.random(n) < 0.5, -1, 1).astype(np.int8)
    sign = sign[np.lexsort((sign, ts))]
    valid = rng.random(2 * n) < 0.8
    floats = rng.integers(0, kinds, 2 * n) / 4
    integers = np.where(valid, rng.integers(0, kinds, 2 * n), 0)
    columns = [
        Column(floats[::2]),
        Column(rng.random(n) < 0.5, valid[1::2] | True),
        Column(integers[::2], valid[::2]),
    ][: rng.integers(0, 4)]
    rows = surviving(Batch(ts, sign, columns), wanted)
    kept = range(n) if rows is None else rows.tolist()
    assert list(kept) == sorted(set(kept)) and all(wanted in (0, sign[i]) for i in kept)
    texts = [tuple((c.values[i], True if c.valid is None else c.valid[i]) for c in columns) for i in range(n)]
    for now in set(ts.tolist()):
        every: Counter[Row] = Counter()
        left: Counter[Row] = Counter()
        for i in np.flatnonzero(ts == now):
            every[texts[i]] += int(sign[i])
        for i in kept:
            if ts[i] == now:
                left[texts[i]] += 1
        assert left == Counter({row: abs(k) for row, k in every.items() if k and wanted in (0, np.sign(k))})
