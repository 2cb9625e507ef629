"""The Executor of caches: an n-way join that runs the plan it is given. Babu 2005, section 5.5.6, figure 5.10.

Invariant: the plan is legal; what the join puts out does not depend on it (docs/semantics T5).
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from minidsms.joins.plan import CacheSpec, JoinPlan
from minidsms.kernels.access_methods.bit_addresses import Bits
from minidsms.streamon.meter import JoinExecutor


class CacheExecutor(JoinExecutor):
    """Its plans are the orders of all inputs and the caches in them."""

    @property
    def elements(self) -> int:
        """Joined since the beginning."""
        return self._meter.elements

    @property
    def plan(self) -> JoinPlan:
        """The orders and the caches."""
        return replace(self.join.plan, tree=None, index=())

    def switch(self, plan: JoinPlan) -> None:
        """Run another plan; a tree, and bits, go where caches come."""
        tree = None if plan.caches else self.join.plan.tree
        index = () if tree is not None else self.join.patterns_under(plan.orders)
        if plan.caches and any(isinstance(each, Bits) for each in index):
            index = ()
        self.join.switch(replace(plan, tree=tree, index=index))

    def is_legal(self, plan: object) -> bool:
        """The join can run it."""
        return isinstance(plan, JoinPlan) and self.join.is_legal(plan)

    def random_plan(self, rng: Random) -> JoinPlan:
        """Any legal plan."""
        return self.join.random_plan(rng)

    def plan_text(self, plan: JoinPlan) -> str:
        """R: S, T | S: R, T | T: [S, R], the cached segments in brackets; of a reduced one [S, R / T]."""
        pipelines = []
        for i, order in enumerate(plan.orders):
            caches = {spec.segment[0]: spec for spec in plan.caches if spec.pipeline == i}
            steps, place = [], 0
            while place < len(order):
                spec = caches.get(order[place])
                steps.append(self.names[order[place]] if spec is None else self.cache_text(spec))
                place += 1 if spec is None else len(spec.segment)
            pipelines.append(f"{self.names[i]}: {', '.join(steps)}")
        return " | ".join(pipelines)

    def cache_text(self, spec: CacheSpec) -> str:
        """A cache in words, without its pipeline: [S, R]."""
        segment = ", ".join(self.names[m] for m in spec.segment)
        reduced = " / " + ", ".join(self.names[m] for m in spec.reduced_by) if spec.reduced_by else ""
        return f"[{segment}{reduced}]"

    def cache_name(self, spec: CacheSpec) -> str:
        """A cache in words, with its pipeline: cache [S, R] for T."""
        return f"cache {self.cache_text(spec)} for {self.names[spec.pipeline]}"
