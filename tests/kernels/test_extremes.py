"""The deque of a MIN or MAX, and stacks, against all the values they stand for; what a deque does not hold is free."""

from __future__ import annotations

import random
from collections import deque

import numpy as np
import pytest

from minidsms.elements import Int64Array
from minidsms.kernels import grouping
from minidsms.kernels.grouping import LARGEST, Spare, first_of, least_of, pop, push, put_in, take_out, turn

_BEFORE, _AFTER = 2, 3


def nodes_of(first: int, nodes: Int64Array) -> list[int]:
    """A chain of nodes, as it is walked."""
    found: list[int] = []
    while first > 0:
        assert first not in found
        found.append(first)
        first = int(nodes[first, _AFTER])
    return found


@pytest.mark.parametrize("seed", range(12))
def test_deques_of_groups_share_a_pool_of_which_no_node_is_lost(seed: int) -> None:
    rng = random.Random(seed)
    groups, different, trend = rng.choice((1, 3)), rng.choice((1, 3, 100)), rng.choice((-1, 0, 1))
    records, nodes = np.zeros((groups, 3), np.int64), np.zeros((300, 4), np.int64)
    present = [deque[int]() for _ in range(groups)]
    spare = Spare(0, 1, 0)
    for step in range(300):
        group = rng.randrange(groups)
        if present[group] and rng.random() < 0.48:
            present[group].popleft()
            spare = Spare(*map(int, take_out(records[group], 0, nodes, spare)))
        else:
            present[group].append(rng.randrange(different) + trend * step)
            spare = Spare(*map(int, put_in(records[group], 0, present[group][-1], nodes, spare)))
        held: list[int] = []
        for values, record in zip(present, records):
            key, is_there = first_of(record, 0, nodes)
            assert (key if is_there else None) == min(values, default=None)
            chain = nodes_of(int(record[0]) & 0xFFFFFFFF, nodes)
            assert [int(nodes[node, _BEFORE]) for node in chain] == [0, *chain][:-1]
            assert int(record[0]) >> 32 == (chain[-1] if chain else 0)
            held += chain
        assert len(held) == spare.held
        assert sorted([*held, *nodes_of(spare.free, nodes)]) == list(range(1, spare.used))


@pytest.mark.parametrize("seed", range(12))
def test_rows_of_all_groups_leave_by_the_same_stacks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "prefetch", lambda *_: None)
    rng = random.Random(seed)
    groups, different, trend = rng.choice((1, 3)), rng.choice((1, 3, 100)), rng.choice((-1, 0, 1))
    records, ring, stacks = np.zeros((groups, 4), np.int64), np.zeros(64, np.int32), np.zeros((64, 2), np.int64)
    present = deque[tuple[int, int | None]]()
    oldest = following = front = 0
    for step in range(400):
        if present and (len(present) == len(ring) or rng.random() < 0.48):
            if oldest == front:
                turn(records, 1, ring, stacks, 1, oldest, following)
                front = following
            group, value = present.popleft()
            if value is not None:
                pop(records[group], 1, stacks[oldest % 64, 1])
            oldest += 1
        else:
            group, value = rng.randrange(groups), rng.choice((None, rng.randrange(different) + trend * step, LARGEST))
            present.append((group, value))
            ring[following % 64], stacks[following % 64, 1] = group, LARGEST if value is None else value
            if value is not None:
                push(records[group], 1, value)
            following += 1
        for group, record in enumerate(records):
            values = [value for of, value in present if of == group and value is not None]
            key, is_there = least_of(record, 1)
            assert (key if is_there else None) == min(values, default=None)
            assert values or not record.any(), "a group without values is all zeros"
