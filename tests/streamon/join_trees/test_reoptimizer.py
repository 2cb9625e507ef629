"""What a kind of plan costs beside its model is learned while it runs; what turned out dearer is given up."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from minidsms.joins.graph import JoinGraph
from minidsms.joins.plan import Tree
from minidsms.joins.tree import flat
from minidsms.streamon.join_trees.costs import ALIKE, MEASURED, UnitCosts
from minidsms.streamon.join_trees.reoptimizer import ENOUGH, Kind, TreeReoptimizer

CHAIN = JoinGraph(3, [((0, 0), (1, 0)), ((1, 1), (2, 0))])
CYCLE = JoinGraph(3, [((0, 0), (1, 0)), ((1, 1), (2, 0)), ((2, 1), (0, 1))])
KEPT = ((0, 1), 2)
SIZES = {1: 1000.0, 2: 1000.0, 4: 1000.0, 5: 1e6, 0b011: 5_000.0, 0b110: 5_000.0, 0b111: 100.0}
"""Figure 5.6: T is fast, and meets five rows of S, of which few meet R."""


@dataclass
class Running:
    """A join whose costs the test says."""

    measures_time: bool = True
    binary: bool = False
    plan: Tree = (0, 1, 2)
    all_plans: tuple[Tree, ...] = ((0, 1, 2), ((0, 1), 2), (0, (1, 2)))
    saved_by_caches: float = 0.0
    has_caches: bool = False
    is_indexed: bool = False
    may_be_indexed: bool = False
    are_modelled: bool = False
    unit: UnitCosts = MEASURED
    units: float = 0.0
    elements: int = 0
    join: Any = field(default_factory=lambda: SimpleNamespace(graph=CHAIN, orders=CHAIN.default_orders()))
    sizes: dict[int, float] = field(default_factory=lambda: SIZES)

    def __post_init__(self) -> None:
        profiler: Any = SimpleNamespace(sizes=SimpleNamespace(of=self.sizes.__getitem__), rates=[0.01, 0.01, 0.98])
        executor: Any = self
        self.reoptimizer = TreeReoptimizer(executor, profiler, True, self)

    def spent(self) -> tuple[float, int]:
        return self.units, self.elements

    def run(self, ns: float) -> Any:
        """Join some elements at this cost, and ask for another plan."""
        self.elements += ENOUGH
        self.units += ns * ENOUGH
        proposal = self.reoptimizer.propose()
        if proposal is None:
            self.reoptimizer.start_over()
        else:
            self.plan = proposal.plan
            self.reoptimizer.adopt(proposal.plan)
        return proposal


def test_a_tree_that_should_cost_less_is_taken_and_kept_where_it_does() -> None:
    running = Running()
    proposal = running.run(100.0)
    assert proposal.plan == KEPT
    costs = dict(proposal.considered)
    assert costs.keys() == set(running.all_plans) and min(costs, key=costs.__getitem__) == KEPT
    assert 1 - costs[KEPT] / costs[0, 1, 2] == pytest.approx(proposal.expected_gain)
    assert running.run(60.0) is None and running.plan == KEPT
    assert running.reoptimizer.expected[Kind.TREE] < running.reoptimizer.expected[Kind.PIPELINES]


def test_a_tree_that_turns_out_dearer_is_given_up_and_known_to_be() -> None:
    running = Running()
    thought = running.run(100.0)
    assert thought.plan == KEPT
    back = running.run(150.0)
    assert back.plan == flat(3) and back.reason == "it cost 50 % more than the one before"
    assert running.run(100.0) is None
    assert running.reoptimizer.expected[Kind.TREE] > running.reoptimizer.expected[Kind.PIPELINES]


def test_no_tree_is_taken_where_caches_save_as_much() -> None:
    running = Running(saved_by_caches=0.9, has_caches=True)
    assert running.run(20.0) is None


def test_pipelines_over_an_index_are_weighed_against_trees() -> None:
    """A row of C meets twenty of A, and of A x B, which is kept, five; by both columns of B at once hardly any."""
    joined = SimpleNamespace(graph=CYCLE, orders=((1, 2), (0, 2), (0, 1)))
    few_equal = {1: 1000.0, 2: 1000.0, 4: 1000.0, 0b011: 5_000.0, 0b101: 20_000.0, 0b110: 20_000.0, 0b111: 100.0}
    kept, whole = ((0, 1), 2), flat(3)
    by_keys = Running(join=joined, sizes=few_equal)
    assert by_keys.run(2000.0).plan == kept
    running = Running(join=joined, sizes=few_equal, may_be_indexed=True, plan=kept)
    assert running.run(2000.0).plan == whole
    running.is_indexed = True
    assert running.run(300.0) is None
    expected = running.reoptimizer.expected
    assert expected[Kind.INDEXED] < expected[Kind.TREE] < expected[Kind.PIPELINES]


def test_no_tree_is_taken_that_only_other_orders_than_the_best_make_look_cheap() -> None:
    """Nearly all rows come to C. One meets fifty of B, and one of A, by which it meets hardly any of B."""
    sizes = {1: 1000.0, 2: 1000.0, 4: 1000.0, 0b011: 9_000.0, 0b101: 1_000.0, 0b110: 50_000.0, 0b111: 50.0}
    worst = ((1, 2), (0, 2), (1, 0))
    for are_modelled in (False, True):
        joined = SimpleNamespace(graph=CYCLE, orders=worst)
        running = Running(join=joined, sizes=sizes, is_indexed=True, may_be_indexed=True, are_modelled=are_modelled)
        assert (running.run(2000.0) is None) == are_modelled


def test_what_conditions_were_before_a_change_decides_no_trial() -> None:
    running = Running()
    running.run(100.0)
    running.reoptimizer.forget()
    assert not running.reoptimizer.is_on_trial
    assert running.run(500.0) is None or running.plan == flat(3)


def test_units_are_not_corrected_where_time_is_not_measured() -> None:
    running = Running(measures_time=False, unit=ALIKE)
    running.run(1e6)
    assert running.reoptimizer.measured is None and running.reoptimizer.expected[Kind.TREE] < 100
