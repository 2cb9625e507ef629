"""What a cache saves and what it costs, per unit of time (Babu 2005, section 5.5.1).

    segment(C)  = sum of d_l c_l over the operators of its segment
    proc(C)     = d_j probe_cost + miss_probability (segment(C) + d_after update_cost)
    benefit(C)  = segment(C) - proc(C)
    cost(C)     = update_cost * the changes of the cached join

The unit of time is whatever the rates are given in; of cost, whatever the costs are: nanoseconds, or 1 for each step
where costs are fixed. Misses and updates are told apart from lookups: storing a row is not what walking a chain is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minidsms.joins.plan import CacheSpec, Orders, position


@dataclass(frozen=True)
class PipelineStatistics:
    """Of one pipeline without caches. d: (n,) tuples that reach each position per unit of time, the last being the
    results; c: (n - 1,) cost of each position per tuple that reaches it.
    """

    d: tuple[float, ...]
    c: tuple[float, ...]

    def work(self, first: int, last: int) -> float:
        """Cost per unit of time of the positions first to last, both included."""
        return sum(self.d[p] * self.c[p] for p in range(first, last + 1))


@dataclass(frozen=True)
class CacheStatistics:
    """Of one cache. probe_cost: of a lookup.  update_cost: of a row stored, added or removed.  miss_probability: of a
    probe.  entries: keys it would hold, for its size.
    """

    probe_cost: float
    update_cost: float
    miss_probability: float
    entries: float = 0.0


@dataclass(frozen=True)
class CacheValue:
    """What section 5.5.1 makes of the statistics. entry_rows: rows of an entry, on average."""

    benefit: float
    cost: float
    processing: float
    entry_rows: float

    @property
    def net(self) -> float:
        """benefit - cost."""
        return self.benefit - self.cost


def value_of(
    spec: CacheSpec, orders: Orders, pipelines: Sequence[PipelineStatistics], cache: CacheStatistics
) -> CacheValue:
    """Benefit, cost and processing of a cache."""
    own = pipelines[spec.pipeline]
    j = position(spec, orders)
    after = j + len(spec.segment)
    work = own.work(j, after - 1)
    processing = own.d[j] * cache.probe_cost + cache.miss_probability * (work + own.d[after] * cache.update_cost)
    cost = cache.update_cost * changes(spec, pipelines)
    return CacheValue(work - processing, cost, processing, own.d[after] / own.d[j] if own.d[j] else 0.0)


def changes(spec: CacheSpec, pipelines: Sequence[PipelineStatistics]) -> float:
    """Rows per unit of time by which the cached join changes: what the prefixes of its members' pipelines put out.

    Where the cache is reduced by its own pipeline's input, an element of that changes nothing but whether its key is
    wanted at all: one step.
    """
    members = (*spec.segment, *spec.reduced_by)
    own = pipelines[spec.pipeline].d[0] if spec.pipeline in spec.reduced_by else 0.0
    return own + sum(pipelines[m].d[len(members) - 1] for m in members if m != spec.pipeline)


ENTRY_BYTES = 32
"""Of a bucket beside its key: tag, first row, count, lock."""
REFERENCE_BYTES = 8
"""Of a slot number, of which a cached row has one per input, and one more that links it."""


def expected_bytes(spec: CacheSpec, words: int, cache: CacheStatistics, entry_rows: float) -> float:
    """What the cache would hold (section 5.6): its entries times what one takes."""
    row = REFERENCE_BYTES * (len(spec.segment) + 1)
    return cache.entries * (ENTRY_BYTES + 8 * words + entry_rows * row)


def priority(net: float, nbytes: float) -> float:
    """Net benefit per byte (section 5.6)."""
    return net / max(nbytes, 1.0)
