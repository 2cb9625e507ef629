"""`python -m experiments.caching.calibration`: what probes, matches and kept tuples take on this machine.

Joins are run under trees of every shape, over streams of different rates and selectivities; what they take per element
is set against how often the model of `minidsms.streamon.join_trees.costs` says each kind of step is made, and unit
costs that fit are found by least squares of relative errors. Printed are the constants to stand in that file, and how
far the model with them is off, run by run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.caching.runs import AUTO, Run
from experiments.caching.streams import Feed, fast_input, four_way, three_way
from minidsms.joins.join import Join
from minidsms.joins.plan import Tree
from minidsms.streamon.join_trees.costs import TreeCosts, UnitCosts

Float64Array = npt.NDArray[np.float64]

NAMES = tuple(field.name for field in fields(UnitCosts))
NOTHING = UnitCosts(*(0.0 for _ in NAMES))
FOUR: tuple[Tree, ...] = ((0, 1, 2, 3), ((0, 1), 2, 3), (((0, 1), 2), 3), ((0, 1), (2, 3)), ((0, 1, 2), 3))
THREE: tuple[Tree, ...] = ((0, 1, 2), ((0, 1), 2), (0, (1, 2)))
STEPS = 30_000
"""Of the descent; more change nothing."""
LEAST = 1.0
"""Nanoseconds of a step, at least: where runs cannot tell two of them apart, none is thought to be free."""


@dataclass(frozen=True)
class Seen:
    """One run. ns: per element of the join.  counts: by unit cost, how many of it the model has in an element."""

    name: str
    enters: bool
    ns: float
    counts: tuple[float, ...]


def main() -> None:
    """Run, fit, print."""
    seen = list(runs())
    for enters, name in ((False, "MEASURED"), (True, "ENTERING")):
        some = [each for each in seen if each.enters == enters]
        found = fitted(some)
        told = ", ".join(f"{field}={value:.1f}" for field, value in zip(NAMES, astuple(found)))
        print(f"{name} = UnitCosts({told})")
        for each in some:
            model = float(np.dot(each.counts, astuple(found)))
            print(f"    {each.name:40} {each.ns:7.0f} ns, model {model:7.0f}, {model / each.ns:.2f}")


def runs() -> Iterator[Seen]:
    """Every feed under every tree."""
    for istream in (False, True):
        # Windows of a range hold as many rows as of ROWS where an input brings one in a tick.
        fast = () if istream else (("D1", 6_000), ("D3", 6_000))
        for point, rounds in (*fast, ("D4", 12_000), ("D6", 12_000), ("D8", 12_000)):
            yield from _under(point, _istream(four_way(point, rounds), istream), FOUR, 1_000)
        for keys in ((100_000, 5), (1_000, 50), (200, 900)):
            yield from _under(f"fast input {keys}", _istream(fast_input(40_000, keys), istream), THREE, 2_000)
        for multiplicity, selectivity, dropped in ((5, 1.0, 0), (5, 5.0, 0), (1, 1.0, 0), (5, 1.0, 10)):
            feed = three_way(8_000, multiplicity, selectivity, dropped=dropped)
            yield from _under(f"three {multiplicity} {selectivity} {dropped}", _istream(feed, istream), THREE, 500)


def _istream(feed: Feed, asks: bool) -> Feed:
    """The feed's query, or where asked what enters its answer, over windows of as many ticks as rows."""
    if not asks:
        return feed
    return replace(feed, query=f"ISTREAM ({feed.query.replace('ROWS', 'RANGE')})")


def _under(name: str, feed: Feed, trees: Sequence[Tree], size: int) -> Iterator[Seen]:
    blocks = list(feed.blocks(size))
    for tree in trees:
        run = Run(feed, AUTO)
        join = next(op for op in run.query.network.operators if isinstance(op, Join))
        run.query.pin_plan()
        next(a for a in join.adaptations() if a.technique == "join plan").pin(tree)
        for block in blocks[: len(blocks) // 3]:
            run.feed(block, False)
        watch = join.watch
        began, before = watch.joining_ns, watch.elements
        for block in blocks[len(blocks) // 3 :]:
            run.feed(block, False)
        ns = (watch.joining_ns - began) / (watch.elements - before)
        yield Seen(f"{name}: {tree}", join.ranges is not None, ns, _counts(join))
        run.end()


def _counts(join: Any) -> tuple[float, ...]:
    """What an element of a join meets, by its model, under the tree that runs."""
    profiler = join.planting.profiler
    profiler.note(np.array(join.planting.entered, np.int64))
    profiler.measure()
    units = [replace(NOTHING, **{name: 1.0}) for name in NAMES]
    deletes = not join.leaves_out
    return tuple(
        TreeCosts(join.graph, profiler.sizes.of, profiler.rates, deletes, unit).of(join.tree, join.orders)
        for unit in units
    )


def fitted(seen: Sequence[Seen]) -> UnitCosts:
    """The costs, none below LEAST, under which the squares of relative errors are least: a multiplicative descent."""
    measured = np.array([each.ns for each in seen])
    counts: Float64Array = np.array([each.counts for each in seen]) / measured[:, None]
    costs: Float64Array = np.full(len(NAMES), 5.0)
    for _ in range(STEPS):
        costs *= (counts.T @ np.ones(len(seen))) / np.maximum(counts.T @ (counts @ costs), 1e-12)
        costs = np.maximum(costs, LEAST)
    return UnitCosts(*costs.round(1).tolist())


if __name__ == "__main__":
    main()
