"""Plans of an n-way join with caches: which are legal, which there are, and how the kernel takes them.

Beyond what `joins.plan.problem_of` asks, a legal plan owes this: where the inputs Y that reduce a cache have the
pipeline's own input i among them, no equality may link what stands before the segment with the rest of Y except
through the key. Then a tuple of the segment that joins with one tuple of i for the key joins with all of them, and
those that an entry has are all there are. And where an input's slots are used again, no reference to them may outlive
the row. Babu 2005, sections 5.4 and 5.7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

import numpy as np

from minidsms.joins.equal_columns import Attribute
from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import (
    CacheSpec,
    JoinPlan,
    Orders,
    SharedKey,
    key_parts,
    members_of,
    overlap,
    position,
    problem_of,
    satisfies_prefix,
    shared_key,
)
from minidsms.kernels.join_cache_layout import CacheLookup, CachePlan, CacheUpdate, KeyPart
from minidsms.machine_code import record_in, rows_from, rows_of
from minidsms.synopses.join_caches import StoreShape

# ---------------------------------------------------------------------------------------------------------- legality


def problem_with(plan: JoinPlan, graph: JoinGraph, bags: Collection[int] = ()) -> str | None:
    """Why the join cannot run the plan; None where it can. bags: inputs whose rows leave in any order."""
    if not graph.is_legal(plan.orders):
        return f"{plan.orders} take a Cartesian step where an input is linked, or leave one out"
    problem = problem_of(plan)
    if problem is not None:
        return problem
    for spec in plan.caches:
        if len(members_of(spec)) < 2:
            return f"{spec} is a window, which has an index already"
        problem = _loose_end(spec, plan.orders, graph) or _stale(spec, plan.orders, bags)
        if problem is not None:
            return problem
    return None


def _loose_end(spec: CacheSpec, orders: Orders, graph: JoinGraph) -> str | None:
    """An equality that lets one tuple of the pipeline's input join where another of the same key does not."""
    if spec.pipeline not in spec.reduced_by:
        return None
    before = _before(spec, orders)
    known = {part.probe for part in key_parts(spec, orders, graph.equalities)}
    fresh = set(known)
    while fresh:
        fresh = {
            b
            for ends in graph.equalities
            for a, b in (ends, ends[::-1])
            if a in known and a[0] in before and b[0] in before and b not in known
        }
        known |= fresh
    for ends in graph.equalities:
        for a, b in (ends, ends[::-1]):
            if a[0] in before and b[0] in spec.reduced_by and b[0] not in before and a not in known:
                return f"{spec} is reduced by input {b[0]}, which is linked with the pipeline other than by the key"
    return None


def _stale(spec: CacheSpec, orders: Orders, bags: Collection[int]) -> str | None:
    """A reference that stays in a cache when its row leaves, though another row may take its slot."""
    kept = [*spec.segment, *(_before(spec, orders) if spec.pipeline in spec.reduced_by else ())]
    if spec.reduced_by and not set(kept).isdisjoint(bags):
        return f"{spec} may refer to rows that have left an input whose slots are used again"
    return None


def candidates(orders: Orders, graph: JoinGraph, reduced: bool, bags: Collection[int] = ()) -> Iterator[CacheSpec]:
    """Every legal cache of these orders, taken alone; with `reduced`, also those reduced by other inputs."""
    n = len(orders)
    closed = {frozenset((i, *orders[i][:d])) for i in range(n) for d in range(1, n)}
    for inputs in sorted(closed, key=sorted):
        for i in range(n):
            for j in range(n - 1):
                for k in range(j, n - 1):
                    segment = orders[i][j : k + 1]
                    if not inputs.issuperset(segment) or (not reduced and len(inputs) > len(segment)):
                        continue
                    spec = CacheSpec(i, segment, tuple(sorted(inputs.difference(segment))))
                    if satisfies_prefix(spec, orders) and problem_with(JoinPlan(orders, (spec,)), graph, bags) is None:
                        yield spec


def random_plan(graph: JoinGraph, rng: Random, bags: Collection[int] = ()) -> JoinPlan:
    """Any legal plan; those with caches are more likely than most orders would give, and by turns no cache is reduced:
    most candidates are.
    """
    orders = _random_orders(graph, rng)
    chosen: list[CacheSpec] = []
    specs = list(candidates(orders, graph, rng.random() < 0.5, bags))
    rng.shuffle(specs)
    fewest = 0 if rng.random() < 0.2 else 1
    for spec in specs[: max(fewest, rng.randrange(len(specs) + 1))]:
        if not any(overlap(spec, other) for other in chosen):
            plan = JoinPlan(orders, tuple(sorted([*chosen, spec])))
            if problem_with(plan, graph, bags) is None:
                chosen.append(spec)
    return JoinPlan(orders, tuple(sorted(chosen)))


def _random_orders(graph: JoinGraph, rng: Random) -> Orders:
    """Legal orders; by turns any, and those in which some inputs visit each other first, so that they can be cached."""
    first: set[int] = set()
    if rng.random() < 0.8:
        visited = [rng.randrange(graph.n)]
        while len(visited) < graph.n and (len(visited) < 2 or rng.random() < 0.5):
            visited.append(rng.choice(graph.following(visited)))
        first = set(visited)
    orders = []
    for i in range(graph.n):
        visited = [i]
        while len(visited) < graph.n:
            following = graph.following(visited)
            liked = [j for j in following if i in first and j in first]
            visited.append(rng.choice(liked or following))
        orders.append(tuple(visited[1:]))
    return tuple(orders)


# -------------------------------------------------------------------------------------------------------- compilation


@dataclass(frozen=True)
class CompiledPlan:
    """bundle: as `kernels.mjoin.cached_mjoin` takes it.  witnesses: inputs, to stand behind the stores' members."""

    bundle: CachePlan
    witnesses: tuple[int, ...]


def shapes_of(plan: JoinPlan, graph: JoinGraph, eager: Collection[int]) -> dict[CacheSpec, StoreShape]:
    """The store of each cache; caches that share one have the same. eager: inputs whose deletions are taken out."""
    keys = {spec: shared_key(spec, plan.orders, graph.equalities) for spec in plan.caches}
    lookups: dict[SharedKey, list[tuple[int, ...]]] = {}
    for spec, key in keys.items():
        if spec.pipeline in spec.reduced_by:
            lookups.setdefault(key, []).append(_before(spec, plan.orders))
    # A reduced store may keep tuples whose partners have left: no pipeline computes that they are to go.
    return {
        spec: StoreShape(
            key, tuple(sorted(lookups.get(key, ()))), not key.reduced_by and not set(key.inputs).isdisjoint(eager)
        )
        for spec, key in keys.items()
    }


def compiled(
    plan: JoinPlan,
    graph: JoinGraph,
    shapes: Mapping[CacheSpec, StoreShape],
    numbers: Mapping[StoreShape, int],
    witnesses_at: int,
) -> CompiledPlan:
    """numbers: of the stores.  witnesses_at: where the witnesses' inputs begin among the members."""
    n = graph.n
    place = graph.places()
    lookups = rows_of(CacheLookup, n * (n - 1))
    lookups["cache"] = lookups["witness"] = lookups["collected"] = -1
    steps = [[record_in(CacheLookup, lookups, i * (n - 1) + d) for d in range(n - 1)] for i in range(n)]
    parts: list[tuple[int, ...]] = []
    witnesses: list[int] = []

    def placed(attributes: Iterable[Attribute]) -> int:
        at = len(parts)
        parts.extend((i, place[i, (c,)], 0, 0) for i, c in attributes)
        return at

    for spec in plan.caches:
        i, j = spec.pipeline, position(spec, plan.orders)
        step = steps[i][j]
        step.cache, step.after = numbers[shapes[spec]], j + len(spec.segment)
        step.parts = placed(part.probe for part in key_parts(spec, plan.orders, graph.equalities))
        steps[i][j + len(spec.segment) - 1].collected = step.cache
        if i in spec.reduced_by:
            before = _before(spec, plan.orders)
            step.witness = witnesses_at + len(witnesses)
            # The kernel reads as many inputs as the store has words for.
            witnesses += before + before[:1] * (shapes[spec].witnesses - 1 - len(before))
    updates: list[tuple[int, int]] = []
    for i in range(n):
        own = {shapes[spec] for spec in plan.caches if spec.pipeline == i}
        for d in range(n - 1):
            step = steps[i][d]
            step.updates = len(updates)
            for shape, c in sorted(numbers.items(), key=lambda item: item[1]):
                inputs = {*shape.key.inputs, *shape.key.reduced_by}
                # What a pipeline looks up itself, it finds complete or computes.
                if i in inputs and d == len(inputs) - 2 and shape not in own:
                    updates.append((c, placed(shape.key.stored)))
            step.updates_end = len(updates)
            step.is_simple = step.collected < 0 and step.updates == len(updates)
    bundle = CachePlan(
        lookups,
        rows_from(KeyPart, np.array(parts, np.int64).reshape(-1, 4)),
        rows_from(CacheUpdate, np.array(updates, np.int64).reshape(-1, 2)),
        np.zeros(2 * max(1, len(graph.equalities)), np.int64),
    )
    return CompiledPlan(bundle, tuple(witnesses))


def _before(spec: CacheSpec, orders: Orders) -> tuple[int, ...]:
    """The inputs that a tuple has which looks the cache up."""
    return (spec.pipeline, *orders[spec.pipeline][: position(spec, orders)])
