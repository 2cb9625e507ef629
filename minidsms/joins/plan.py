"""Plans of an n-way join as values: the order of each pipeline, the caches in them, or a tree instead.

Inputs have numbers 0 to n - 1, in the order of FROM. The pipeline of input i says in which order an element of i visits
the others; positions in it count from 0. A cache C_ijk stands for positions j to k of the pipeline of i: it maps the
values of the key K_ijk to the joined rows of the inputs there (Babu 2005, section 5.4). Trees are in `joins.tree`.

Invariant: plans are hashable and equal when alike; whatever legal plan runs, the answer is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from minidsms.expressions.routes import Routes
from minidsms.joins.equal_columns import Attribute, Equality, classes_of
from minidsms.kernels.access_methods.bit_addresses import Bits

Orders = tuple[tuple[int, ...], ...]
"""Of each input, the others in the order in which its elements probe them."""

Key = tuple[int, ...]
"""A key of an input: its column, or several, whose hash it is; none: every row has the same."""

Patterns = tuple[Key, ...]
"""The columns that steps compare with several inputs, ascending, each hashed as one: indexed beside the keys."""

Index = tuple[Patterns | Bits, ...]
"""Of each input, its patterns or its bits. (): there are neither."""

Configurations = Sequence[Sequence[tuple[int, Bits]]]
"""Of each input, the number and the bits of every configuration under which rows of it are stored."""

JoinRoutes = tuple[tuple[int, Routes], ...]
"""Inputs, ascending, whose elements take different orders by what their rows say."""

REMEMBERED = 4_096
"""Answers about plans that are not worked out again."""


@dataclass(frozen=True, order=True)
class CacheSpec:
    """The cache of a segment of a pipeline.

    pipeline: i.  segment: the inputs joined at positions j to k, in the pipeline's order.  reduced_by: the inputs Y
    where the cache holds X semijoin Y, X being the segment (globally consistent, section 5.7); sorted, and () where it
    holds all of X (consistent). Y may contain i.
    """

    pipeline: int
    segment: tuple[int, ...]
    reduced_by: tuple[int, ...] = ()


Tree = int | tuple["Tree", ...]
"""Which inputs are joined with which first (`joins.tree`)."""


@dataclass(frozen=True)
class JoinPlan:
    """What an n-way join runs: its pipelines, or a tree of joins; or over which rows.

    orders: of the pipelines.  caches: in them; sorted, none overlapping another of its pipeline.  tree: in normal form,
    where results of inner joins are kept; then there are no caches, and the orders are those it goes back to.
    index: the patterns that the steps of the orders probe, or bits of inputs; none where there is a tree.  routes: of
    pipelines, where neither caches nor a tree are used; then the orders are those of rows that are not told apart.
    is_reduced: only rows that can still matter are kept, and nothing else of the plan counts; there is no way back.
    """

    orders: Orders
    caches: tuple[CacheSpec, ...] = ()
    tree: Tree | None = None
    index: Index = ()
    routes: JoinRoutes = ()
    is_reduced: bool = False


# ------------------------------------------------------------------------------------------------------------- keys


@dataclass(frozen=True, order=True)
class KeyPart:
    """One word of a cache's key. stored: the attribute of the segment's rows; probe: the attribute of the inputs
    before the segment that is compared with it.
    """

    stored: Attribute
    probe: Attribute


@lru_cache(maxsize=REMEMBERED)
def position(spec: CacheSpec, orders: Orders) -> int:
    """j, where the segment begins in its pipeline. ValueError if it is not contiguous there."""
    order = orders[spec.pipeline]
    if spec.segment and spec.segment[0] in order:
        j = order.index(spec.segment[0])
        if order[j : j + len(spec.segment)] == spec.segment:
            return j
    raise ValueError(f"{spec} is no segment of the pipeline {order} of input {spec.pipeline}")


@lru_cache(maxsize=REMEMBERED)
def key_parts(spec: CacheSpec, orders: Orders, equalities: tuple[Equality, ...]) -> tuple[KeyPart, ...]:
    """K_ijk: the attributes that equalities compare between the inputs before the segment and those in it.

    Sorted by stored attribute. Attributes that are equal within the segment, or within what stands before it, count
    once: the one of the least input stands for all of the segment, the one met first for all before.
    """
    before = (spec.pipeline, *orders[spec.pipeline][: position(spec, orders)])
    segment = _representatives(sorted(spec.segment), equalities)
    earlier = _representatives(before, equalities)
    parts = set()
    for a, b in equalities:
        for probe, stored in ((a, b), (b, a)):
            if probe[0] in before and stored[0] in spec.segment:
                parts.add(KeyPart(segment.get(stored, stored), earlier.get(probe, probe)))
    return tuple(sorted(parts))


def _representatives(inputs: Sequence[int], equalities: Sequence[Equality]) -> dict[Attribute, Attribute]:
    """Of each attribute that equalities within these inputs compare, the one that stands for its class: of the inputs
    in the order given the first, of its columns the least.
    """
    rank = {number: place for place, number in enumerate(inputs)}
    within = [((rank[i], c), (rank[j], d)) for (i, c), (j, d) in equalities if i in rank and j in rank]
    return {
        (inputs[place], column): (inputs[each[0][0]], each[0][1])
        for each in classes_of(within)
        for place, column in each
    }


# -------------------------------------------------------------------------------------------------- shared caches


@dataclass(frozen=True, order=True)
class SharedKey:
    """What caches of different pipelines must have in common to be one store (definition 5.5.1)."""

    inputs: tuple[int, ...]
    stored: tuple[Attribute, ...]
    reduced_by: tuple[int, ...]


@lru_cache(maxsize=REMEMBERED)
def shared_key(spec: CacheSpec, orders: Orders, equalities: tuple[Equality, ...]) -> SharedKey:
    """The store that the cache needs."""
    stored = tuple(part.stored for part in key_parts(spec, orders, equalities))
    return SharedKey(tuple(sorted(spec.segment)), stored, spec.reduced_by)


def group(
    specs: Iterable[CacheSpec], orders: Orders, equalities: tuple[Equality, ...]
) -> dict[SharedKey, tuple[CacheSpec, ...]]:
    """The caches by the store they share, stores and their caches sorted."""
    groups: dict[SharedKey, list[CacheSpec]] = {}
    for spec in sorted(specs):
        groups.setdefault(shared_key(spec, orders, equalities), []).append(spec)
    return {key: tuple(groups[key]) for key in sorted(groups)}


# -------------------------------------------------------------------------------------------------------- legality


def satisfies_prefix(spec: CacheSpec, orders: Orders) -> bool:
    """Each input of the segment (and of what reduces it) visits all the others of it first, in its own pipeline: then
    every change of the cached join is computed anyway (definition 5.4.2).
    """
    members = members_of(spec)
    return all({*orders[member][: len(members) - 1], member} == members for member in members)


def overlap(one: CacheSpec, other: CacheSpec) -> bool:
    """They have an operator in common."""
    return one.pipeline == other.pipeline and not set(one.segment).isdisjoint(other.segment)


def members_of(spec: CacheSpec) -> frozenset[int]:
    """The inputs whose changes change the cache."""
    return frozenset((*spec.segment, *spec.reduced_by))


def hides(one: CacheSpec, other: CacheSpec, orders: Orders) -> bool:
    """Changes of the second would be taken from what a hit of the first gives, which need not have all of them. Of the
    second only its store matters. Prefix-consistent caches never hide each other; globally consistent ones can.
    """
    changed = members_of(other)
    begins_before = one.pipeline in changed and position(one, orders) < len(changed) - 1
    return begins_before and not members_of(one) <= changed


def problem_of(plan: JoinPlan) -> str | None:
    """Why the caches do not fit the orders; None where they do."""
    n = len(plan.orders)
    for i, order in enumerate(plan.orders):
        if sorted((i, *order)) != list(range(n)):
            return f"the pipeline {order} of input {i} does not visit each other input once"
    if list(plan.caches) != sorted(set(plan.caches)):
        return "the caches are not sorted, or one stands twice"
    for spec in plan.caches:
        try:
            position(spec, plan.orders)
        except (ValueError, IndexError):
            return f"{spec} is no segment of its pipeline"
        if not set(spec.segment).isdisjoint(spec.reduced_by) or list(spec.reduced_by) != sorted(set(spec.reduced_by)):
            return f"{spec} is not reduced by a sorted set of other inputs"
        if not satisfies_prefix(spec, plan.orders):
            return f"{spec} does not satisfy the prefix invariant"
    for place, one in enumerate(plan.caches):
        for other in plan.caches[place + 1 :]:
            if overlap(one, other):
                return f"{one} and {other} overlap"
            if hides(one, other, plan.orders) or hides(other, one, plan.orders):
                return f"a hit of one of {one} and {other} would hide changes of the other"
    return None
