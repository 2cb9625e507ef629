"""What the optimizer that chooses caches asks of the join that runs them. The plans are values of `joins.plan`.

Babu 2005, sections 5.4 and 5.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Protocol

from minidsms.elements import Int64Array
from minidsms.joins.equal_columns import Equality
from minidsms.joins.figures import CacheFigures, Memory, PipelineFigures, ProbeSample
from minidsms.joins.plan import CacheSpec, Index, JoinPlan, Orders


class CachingJoin(Protocol):
    """The n-way join with caches, as what chooses them sees it."""

    @property
    def plan(self) -> JoinPlan:
        """What runs."""

    @property
    def equalities(self) -> tuple[Equality, ...]:
        """Of the join."""

    def switch(self, plan: JoinPlan) -> None:
        """Run this plan from the next slice on; caches that both plans have and that stay valid keep their entries."""

    def is_legal(self, plan: object) -> bool:
        """The join can run it."""

    def patterns_under(self, orders: Orders) -> Index:
        """The indexed patterns that go on under these orders."""

    def random_plan(self, rng: Random) -> JoinPlan:
        """Any legal plan."""

    def cache_figures(self) -> Mapping[CacheSpec, CacheFigures]:
        """Of every used cache."""

    def allot(self, memory: Memory) -> None:
        """Keep to this budget from now on."""

    def work(self) -> tuple[int, int, int, int]:
        """Since the beginning: nanoseconds, slots inspected, elements taken, tuples put out; of whole slices."""


class Samples(Protocol):
    """What a join's pipelines are like without caches, from sampled elements."""

    def entered(self) -> Sequence[int]:
        """Elements of each input so far."""

    def pipeline_figures(self) -> tuple[PipelineFigures, ...]:
        """Of every pipeline."""

    def profile(self, specs: frozenset[CacheSpec]) -> None:
        """Sample the probe streams of these caches, none of them used, from the next part on; forget all others."""

    def probe_samples(self) -> Mapping[CacheSpec, Sequence[ProbeSample]]:
        """The stretches gathered since the last call, of the caches being profiled."""

    def change_samples(self) -> Mapping[CacheSpec, Sequence[Int64Array]]:
        """Keys of rows by which the cached joins have changed since the last call: (m, words) as of `key_parts`."""
