"""The operations of a join with caches on a block of elements, for `kernels.block_mjoin`.

Levels of a pipeline are how far its list has come: level d has d inputs beside the pipeline's own. All lists go from
one level to the next together, so that before a cache is looked up all changes of its segment have reached it: those
are complete at a level below the one that the lookup leads to (prefix invariant). A list goes no further than caches
need it; the rest of its pipeline is walked as the answer is put out. Babu 2005, sections 5.2.2 and 5.4.

Invariant: within a block every update of a store stands before its first lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from minidsms.elements import Int64Array
from minidsms.joins.equal_columns import Attribute, Equality
from minidsms.joins.plan import CacheSpec, JoinPlan, key_parts, position
from minidsms.kernels.join_program import COMPLETE, COMPUTE, EXPAND, LOOKUP, OP_WORDS, PROBE, SPREAD, UPDATE
from minidsms.synopses.join_caches import StoreShape


@dataclass(frozen=True)
class Program:
    """operations: OP_WORDS each, flat.  finals: FINAL_WORDS for each pipeline, flat."""

    operations: Int64Array
    finals: Int64Array


def program_of(
    plan: JoinPlan,
    equalities: tuple[Equality, ...],
    shapes: Mapping[CacheSpec, StoreShape],
    numbers: Mapping[StoreShape, int],
    placed: Callable[[Iterable[Attribute]], int],
) -> Program | None:
    """The program of a plan; None where caches are reduced, or take deletions at once: they need the elements one by
    one.

    numbers: of the stores.  placed: where the parts of a key that has these attributes begin.
    """
    if any(shape.key.reduced_by or shape.is_eager for shape in numbers):
        return None
    n = len(plan.orders)
    operations: list[tuple[int, ...]] = []
    behind = {(spec.pipeline, position(spec, plan.orders) + len(spec.segment)): spec for spec in plan.caches}
    inside = {
        (spec.pipeline, position(spec, plan.orders) + d) for spec in plan.caches for d in range(1, len(spec.segment))
    }
    levels = [_level(i, plan, shapes) for i in range(n)]

    def look_up(spec: CacheSpec) -> None:
        i, first, store = spec.pipeline, position(spec, plan.orders), numbers[shapes[spec]]
        parts = placed(part.probe for part in key_parts(spec, plan.orders, equalities))
        operations.append((LOOKUP, i, first, store, parts, 0))
        operations.extend((COMPUTE, i, d, 0, 0, 0) for d in range(first, first + len(spec.segment)))
        operations.append((COMPLETE, i, first, store, 0, 0))

    for level in range(1, n):
        for i in range(n):
            spec = behind.get((i, level))
            if spec is not None:
                look_up(spec)
                if level < n - 1:
                    operations.append((SPREAD, i, position(spec, plan.orders), numbers[shapes[spec]], 0, level))
            elif level <= levels[i] and (i, level) not in inside:
                operations.append((EXPAND, i, level - 1, 0, 0, 0))
        for shape, store in numbers.items():
            if len(shape.key.inputs) == level + 1:
                parts = placed(shape.key.stored)
                operations.extend((UPDATE, i, 0, store, parts, 0) for i in shape.key.inputs)
    finals = []
    for i in range(n):
        spec = behind.get((i, n - 1))
        finals += [levels[i], -1 if spec is None else numbers[shapes[spec]]]
        if spec is None:
            operations.append((PROBE, i, levels[i], 0, 0, 0))
    assert all(len(operation) == OP_WORDS for operation in operations)
    return Program(np.array(operations, np.int64).ravel(), np.array(finals, np.int64))


def _level(i: int, plan: JoinPlan, shapes: Mapping[CacheSpec, StoreShape]) -> int:
    """The level that the list of pipeline i must reach: of its changes of stores, and of its own lookups."""
    level = max((len(s.key.inputs) - 1 for s in shapes.values() if i in s.key.inputs), default=0)
    for spec in plan.caches:
        if spec.pipeline == i:
            first = position(spec, plan.orders)
            after = first + len(spec.segment)
            level = max(level, after if after < len(plan.orders) - 1 else first)
    return level
