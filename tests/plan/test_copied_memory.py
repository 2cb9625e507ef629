"""Memory of plans and of their copies, over generated queries: none that is written is in both, and arrays that overlap
in one overlap in the other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from types import MethodType
from typing import Any

import numpy as np
import pytest

from minidsms.cql.errors import CqlError
from minidsms.engine.network import close_operator
from minidsms.machine_code import Record
from minidsms.plan.copying import _OTHERS_OWN, _SAME, _attributes, copied
from minidsms.synopses.stream_store import Reader, StreamStore
from minidsms.testing.compare import run_together
from minidsms.testing.generators import random_company

Pair = tuple[str, Any, Any]
"""An array or a record of a plan and its copy, with the way to it."""


class Walk:
    """Both plans at once. stores: of inputs, which are the same in both."""

    def __init__(self, stores: set[int]) -> None:
        self._stores = stores
        self._seen: dict[int, Any] = {}

    def pairs(self, path: str, one: Any, other: Any) -> Iterator[Pair]:
        """What is found behind a value and its copy, each once."""
        is_known = isinstance(one, (*_SAME, Reader)) or id(one) in self._seen or id(one) in self._stores
        if is_known or (isinstance(one, np.ndarray) and not one.size):
            return
        self._seen[id(one)] = one
        assert type(one) is type(other), path
        if isinstance(one, np.ndarray | Record):
            yield path, one, other
            return
        assert one is not other or isinstance(one, tuple | frozenset), path
        if isinstance(one, MethodType):
            yield from self.pairs(f"{path}.__self__", one.__self__, other.__self__)
        elif isinstance(one, dict):
            yield from self._each(path, list(one.items()), list(other.items()))
        elif isinstance(one, list | tuple):
            yield from self._each(path, one, other)
        elif type(one).__module__.startswith("minidsms."):
            left_out = {name for kind, names in _OTHERS_OWN.items() if isinstance(one, kind) for name in names}
            held, its = _attributes(one), _attributes(other)
            for name in held.keys() - left_out - {"inputs"}:
                yield from self.pairs(f"{type(one).__name__}.{name}", held[name], its[name])

    def _each(self, path: str, one: Any, other: Any) -> Iterator[Pair]:
        for a, b in zip(one, other, strict=True):
            yield from self.pairs(f"{path}[]", a, b)


def bounds(value: Any) -> tuple[int, int]:
    """The bytes at which an array or a record stands."""
    if isinstance(value, Record):
        return ctypes.addressof(value), ctypes.addressof(value) + ctypes.sizeof(value)
    return np.lib.array_utils.byte_bounds(value)


def overlapping(pairs: list[Pair], which: int) -> set[tuple[str, str]]:
    """The ways to neighbours in memory that overlap."""
    in_order = sorted(pairs, key=lambda pair: (*bounds(pair[which]), pair[0]))
    return {
        (min(a[0], b[0]), max(a[0], b[0])) for a, b in pairwise(in_order) if bounds(b[which])[0] < bounds(a[which])[1]
    }


def check_copies(network: Any) -> int:
    """Copy a plan and compare; how many arrays there are."""
    operators = network.operators[:-1]
    copies = copied(operators, {}, {})
    readers = [op.reader for op in operators if not op.inputs and isinstance(getattr(op, "reader", None), Reader)]
    walk = Walk({id(reader.store) for reader in readers if isinstance(reader.store, StreamStore)})
    pairs = [pair for op in operators for pair in walk.pairs(op.name, op, copies[id(op)])]
    for path, one, other in pairs:
        (begin, end), (its_begin, its_end) = bounds(one), bounds(other)
        is_read_only = isinstance(one, np.ndarray) and not one.flags.writeable
        assert is_read_only or its_begin >= end or begin >= its_end, path
    assert overlapping(pairs, 1) == overlapping(pairs, 2)
    for copy in copies.values():
        close_operator(copy)
    return len(pairs)


@pytest.mark.parametrize("first", range(0, 8, 4))
def test_no_memory_is_in_a_plan_and_its_copy_and_views_stay_views(first: int) -> None:
    arrays = 0

    def before(db: Any, step: int, queries: list[Any]) -> None:
        nonlocal arrays
        for query in queries:
            if rng.random() < 0.2 and query.network.failure is None:
                arrays += check_copies(query.network)

    for seed in range(first, first + 4):
        rng = Random(seed)
        try:
            run_together(random_company(seed, size=8), {}, before=before)
        except CqlError:
            continue
    assert arrays > 100
