"""Rows found by their bit addresses: no answer shows it, whatever the configuration, and however often it changes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from minidsms.elements import Batch, Schema
from minidsms.joins.join import Join
from minidsms.joins.plan import Index, JoinPlan, Patterns
from minidsms.joins.spec import JoinSpec
from minidsms.joins.tree import normal, random_tree
from minidsms.kernels.access_methods.bit_addresses import MOST_BITS, MOST_CONFIGURATIONS, Bits
from tests.joins.test_by_pipelines import S, every_column, inputs_of, mixed, twin
from tests.joins.test_patterns import COMPLETE, GRAPHS, check_where_istream_reads
from tests.operators.harness import feed, queue

CHAIN = [((0, 0), (1, 0)), ((1, 1), (2, 1))]


def random_bits(op: Join, j: int, rng: random.Random) -> Bits:
    """None at all, all of one column, some of each, or more than the window has rows."""
    columns = len(op.graph.columns(j))
    kind = rng.randrange(4)
    if kind == 0:
        return Bits((0,) * columns)
    if kind == 1:
        return Bits(tuple(np.eye(columns, dtype=int)[rng.randrange(columns)] * rng.randrange(1, 8)))
    return Bits(tuple(rng.randrange((0, 0, 3, 5)[kind]) for _ in range(columns)))


class Readdressed(Join):
    """A join that takes other bits, orders and patterns before every slice, or a tree, and stores some rows anew."""

    def begin(self, seed: int) -> Readdressed:
        self.rng, self.most_partitions = random.Random(seed), 0
        return self

    def random_index(self, orders: tuple[tuple[int, ...], ...]) -> Index:
        able: Sequence[Patterns] = self.graph.patterns(orders) or [()] * self.graph.n
        return tuple(
            random_bits(self, j, self.rng)
            if self.rng.random() < 0.7
            else tuple(key for key in keys if self.rng.random() < 0.6)
            for j, keys in enumerate(able)
        )

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        plan = replace(self.random_plan(self.rng), caches=())
        self.switch(replace(plan, index=self.random_index(plan.orders)))
        for i, configurations in enumerate(self.index.configurations):
            if configurations:
                stored = self.index.partitions(i)
                assert sum(stored.values()) == len(self.index.windows[i].present())
                assert stored.keys() <= {number for number, _ in configurations}
                self.most_partitions = max(self.most_partitions, len(stored))
                if self.rng.random() < 0.4:
                    self.migrate(i, [number for number in stored if self.rng.random() < 0.6])
        if self.rng.random() < 0.1:
            self.take_tree(normal(random_tree(self.graph, self.rng, binary=False)))
        return super().process(batches, until)


@pytest.mark.parametrize("name", [*GRAPHS, "chain"])
@pytest.mark.parametrize("fifo", [(True,) * 4, (False,) * 4, (True, False, True, False)])
def test_configurations_that_change_at_every_slice_do_not_show(name: str, fifo: tuple[bool, ...]) -> None:
    equalities = GRAPHS.get(name, CHAIN)
    n = inputs_of(equalities)
    columns = every_column(n)
    partitions = 0
    items = mixed(fifo[:n], 902, 26, 3)
    expected = twin(items, equalities, columns)
    for seed, cuts in ((1, range(1, 60)), (2, range(1, 60, 7))):
        spec = JoinSpec(equalities, columns, Schema(S.fields * n), fifo=fifo[:n])
        op = Readdressed([queue(S) for _ in range(n)], spec).begin(seed)
        assert feed(op, items, cuts) == expected
        partitions = max(partitions, op.most_partitions)
    assert partitions > 1


@pytest.mark.parametrize("name", ["triangle", "complete", "implied", "chain"])
@pytest.mark.parametrize("is_entering", [False, True])
def test_addresses_do_not_show_where_istream_reads_the_join(name: str, is_entering: bool) -> None:
    check_where_istream_reads(
        lambda inputs, spec, seed: Readdressed(inputs, spec).begin(seed), GRAPHS.get(name, CHAIN), is_entering
    )


def complete() -> Join:
    return Join([queue(S) for _ in range(4)], JoinSpec(COMPLETE, [(0, 0)], Schema(S.fields[:1])))


def with_bits(op: Join, *of: int) -> Index:
    return tuple(Bits(of) for _ in range(op.graph.n))


def test_the_columns_have_no_buckets_where_rows_have_addresses() -> None:
    op = complete()
    by_columns = len(op.index.heads)
    op.take_index(with_bits(op, 2, 2, 2))
    assert 3 * len(op.index.heads) == by_columns
    op.take_index(())
    assert len(op.index.heads) == by_columns and not any(op.index.configurations)


def test_equal_neighbours_share_a_configuration_and_too_many_become_one() -> None:
    op = complete()
    op.take_index(with_bits(op, 1, 1, 1))
    op.take_index((*with_bits(op, 1, 1, 1)[:3], ()))
    assert [len(each) for each in op.index.configurations] == [1, 1, 1, 0]
    for bits in range(MOST_CONFIGURATIONS + 1):
        op.take_index(with_bits(op, bits % 2, 1, 3))
        assert len(op.index.configurations[0]) <= MOST_CONFIGURATIONS


def test_what_cannot_be_configured_is_no_plan() -> None:
    op = complete()
    assert op.is_legal(JoinPlan(op.orders, index=with_bits(op, 0, 0, MOST_BITS)))
    assert not op.is_legal(JoinPlan(op.orders, index=with_bits(op, 1, 0, MOST_BITS)))
    assert not op.is_legal(JoinPlan(op.orders, index=with_bits(op, 1, 1)))
    assert not op.is_legal(JoinPlan(op.orders, index=with_bits(op, 1, -1, 1)))
    assert not op.is_legal(JoinPlan(op.orders, tree=((0, 1), 2, 3), index=with_bits(op, 1, 1, 1)))
    apart = Join([queue(S) for _ in range(3)], JoinSpec([((0, 0), (1, 0))], [(0, 0)], Schema(S.fields[:1])))
    assert not apart.is_legal(JoinPlan(apart.orders, index=(Bits((1,)), Bits((1,)), Bits(()))))
