"""`python -m experiments.caching.cache_steps`: what caches save and cost, measured, beside the model's figures.

Joins run without caches and with one that is forced, by turns, over streams of different rates, selectivities and
locality, as relations and with ISTREAM. Of each is printed what the cache changes, in ns per element of the join, and
what `minidsms.streamon.caching.step_costs` says that it should, from the tuples that reach each step and the hits and
updates counted. Its figures are chosen so that the signs agree where something is at stake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiments.caching.figures import RS_FOR_T, TS_FOR_R
from experiments.caching.runs import Plan, Run
from experiments.caching.streams import Feed, bursty_lossy, four_way, many_keys, three_way
from minidsms.elements import Batch
from minidsms.joins.figures import CacheFigures
from minidsms.joins.join import Join
from minidsms.joins.plan import CacheSpec, JoinPlan, key_parts, members_of, position
from minidsms.streamon.caching.sampler import PipelineSampler
from minidsms.streamon.caching.step_costs import StepCosts

WARM_UP = 1 / 3
"""Of the blocks, those that are not measured."""
THREE = (RS_FOR_T, TS_FOR_R)
FOUR = (CacheSpec(3, (0, 1)), CacheSpec(3, (0, 1, 2)))


@dataclass
class Running:
    """A join that runs, with a cache or none; since: (ns, elements, figures of the cache) when warm."""

    run: Run
    join: Any
    spec: CacheSpec | None
    since: tuple[int, int, CacheFigures] = (0, 0, CacheFigures())

    @property
    def figures(self) -> CacheFigures:
        """Of the cache."""
        return CacheFigures() if self.spec is None else self.join.cache_figures()[self.spec]

    def mark(self) -> None:
        """Measure from here."""
        self.since = self.join.watch.joining_ns, self.join.watch.elements, self.figures

    @property
    def ns(self) -> float:
        """Per element, since then."""
        return float((self.join.watch.joining_ns - self.since[0]) / (self.join.watch.elements - self.since[1]))


def main() -> None:
    """Run, and print."""
    for name, feed, specs in feeds():
        plain, *cached = under(feed, specs, size=max(100, feed.rounds // 24))
        for each in cached:
            expected = modelled(each, plain.run_d)
            measured = each.ns - plain.ns
            told = f"{each.spec.segment} for {each.spec.pipeline}"
            print(f"{name:26} {told:16} without {plain.ns:6.1f} ns, with {measured:+7.1f}, model {expected:+7.1f}")


def feeds() -> Iterator[tuple[str, Feed, Sequence[CacheSpec]]]:
    """Names, streams, caches."""
    some: list[tuple[str, Feed, Sequence[CacheSpec]]] = [
        ("many met in vain", bursty_lossy(6_000, 10**9), THREE),
        ("many met, R fast", bursty_lossy(4_000, 0), THREE),
        ("many keys", many_keys(16_000), THREE),
        ("updates", three_way(8_000, 5, probed_every=20), THREE),
        *((f"multiplicity {m}", three_way(6_000, m), THREE) for m in (1, 5, 10)),
        *((f"{k} met", three_way(4_000, 5, k), THREE) for k in (0.1, 5.0)),
        *((f"{d} met in vain", three_way(4_000, 5, dropped=d), THREE) for d in (5, 20)),
        *((point, four_way(point, 15_000), FOUR) for point in ("D4", "D6", "D8")),
    ]
    for name, feed, specs in some:
        yield name, feed, specs
        if name != "many keys":  # windows of ranges would hold ten times as many rows
            yield f"{name}, ISTREAM", replace(feed, query=f"ISTREAM ({feed.query.replace('ROWS', 'RANGE')})"), specs


class Plain(Running):
    """Without caches; run_d: tuples that reach each position of each pipeline, per element."""

    sampler: PipelineSampler

    @property
    def run_d(self) -> list[list[float]]:
        """(n, n)."""
        figures = self.sampler.pipeline_figures()
        total = sum(f.elements for f in figures)
        return [[f.elements / total * d / max(1, f.sampled) for d in f.processed] for f in figures]


def under(feed: Feed, specs: Sequence[CacheSpec], size: int) -> tuple[Any, ...]:
    """The feed without caches and with each of these, by turns."""
    running: list[Running] = []
    for spec in (None, *specs):
        run = Run(feed, Plan("", {"join_plan": "mjoin", "caching": "global", "filter_ordering": "static"}))
        join: Any = next(op for op in run.query.network.operators if isinstance(op, Join))
        run.query.pin_plan()
        if spec is None:
            plain = Plain(run, join, spec)
            plain.sampler = _sampled(join)
            running.append(plain)
        elif join.is_legal(JoinPlan(join.orders, (spec,))):
            next(a for a in join.adaptations() if a.technique == "caching").pin(JoinPlan(join.orders, (spec,)))
            running.append(Running(run, join, spec))
    blocks = list(feed.blocks(size))
    for place, block in enumerate(blocks):
        if place == round(WARM_UP * len(blocks)):
            for each in running:
                each.mark()
        for k in range(len(running)):
            running[(place + k) % len(running)].run.feed(block, False)
    return tuple(running)


def _sampled(join: Any) -> PipelineSampler:
    """Samples every part that the join has joined, when its clock stands still."""
    sampler = PipelineSampler(join, join.watch, measures_time=False)
    joined = join.watch.joined

    def and_sampled(part: Sequence[Batch | None]) -> None:
        joined(part)
        sampler.joined(part)

    join.watch.joined = and_sampled
    return sampler


def modelled(running: Running, d: Sequence[Sequence[float]]) -> float:
    """What the cache changes by the model, ns per element."""
    spec, join, now = running.spec, running.join, running.figures
    assert spec is not None
    costs = StepCosts(True, join.ranges is not None)

    def work(i: int, first: int, last: int) -> float:
        steps = ((d[i][p], d[i][p + 1]) for p in range(first, last))
        return sum(into * costs.window(out / into) for into, out in steps if into)

    n, i, j = len(d), spec.pipeline, position(spec, join.orders)
    after = j + len(spec.segment)
    total = sum(work(k, 0, n - 1) for k in range(n))
    words = len(key_parts(spec, join.orders, join.equalities))
    misses = 1 - (now.hits - running.since[2].hits) / max(1, now.probes - running.since[2].probes)
    changed = now.inserts + now.deletes + now.ignored
    update = costs.update(words, len(spec.segment), now.ignored / changed if changed else 0.0)
    members = members_of(spec)
    changes = sum(d[m][len(members) - 1] for m in members if m != i)
    saved = (1 - misses) * work(i, j, after) - misses * d[i][after] * update
    spent = d[i][j] * costs.lookup(words, d[i][after] / d[i][j]) + changes * update
    return costs.whole(total - saved + spent, (spec,)) - total


if __name__ == "__main__":
    main()
