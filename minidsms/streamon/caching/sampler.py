"""Samples the pipelines of a join beside its execution: tuples that reach each position, keys that caches would see.

Rows are taken from the last part of the stream that was joined and walked through their pipelines in the windows as
they are now, by compiled code that changes nothing there. So nothing is counted in the join itself, and an element
that is sampled needs no way around the caches in use. Deletions take the way their insertions took: they are counted
as elements, and sampled as insertions.

While candidates are profiled their probe streams are followed without a gap as far as a part allows; else a few rows
are walked now and then, as much as takes SHARE of the join's time.  Babu 2005, section 5.5.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from minidsms.elements import Batch, Int64Array
from minidsms.joins.equal_columns import Attribute
from minidsms.joins.figures import PipelineFigures, ProbeSample
from minidsms.joins.join import Join
from minidsms.joins.plan import CacheSpec, Configurations, Index, Orders, key_parts, members_of, position
from minidsms.kernels.join_layout import Path
from minidsms.kernels.join_sampling import Sample, sample_pipeline
from minidsms.machine_code.compile_time import thread_ns
from minidsms.streamon.join_watch import JoinWatch

ROWS = 64
"""Walked through each pipeline at a time."""
MOST_INSPECTED = 20_000
"""Slots that a sample of one pipeline may inspect."""
CHANGED = 512
"""Rows by which a cached join changes, of those that one input brings, at a time."""
PROBES = 4_096
"""Of a cache's probe stream followed at a time."""
SHARE = 0.005
"""Of the time spent joining, what sampling takes while nothing is profiled."""
PROFILING_SHARE = 0.1
"""And while candidates are."""


class PipelineSampler:
    """measures_time: sampling keeps to its share of the time; else it is done with every part.

    spent_ns: by sampling, so far.
    """

    def __init__(self, join: Join, watch: JoinWatch, measures_time: bool) -> None:
        """watch: counts and times what is joined."""
        n = join.graph.n
        self.spent_ns = 0
        self._join = join
        self._watch = watch
        self._measures_time = measures_time
        self._reached: Int64Array = np.zeros((n, n), np.int64)
        self._paths: list[Path] = []
        self._sampled: tuple[Orders, Index, Configurations] = ((), (), ())
        self._profiled: dict[CacheSpec, tuple[int, Int64Array]] = {}
        self._stored: dict[CacheSpec, tuple[int, Int64Array]] = {}
        self._changes: dict[CacheSpec, list[Int64Array]] = {}
        self._samples: dict[CacheSpec, list[ProbeSample]] = {}

    # ------------------------------------------------------------------------------------------------------- figures

    def entered(self) -> Sequence[int]:
        """Elements of each input so far."""
        return self._watch.arrived

    def pipeline_figures(self) -> tuple[PipelineFigures, ...]:
        """Of every pipeline, since the beginning; times are not taken step by step."""
        untimed = (float("nan"),) * (len(self._reached) - 1)
        return tuple(
            PipelineFigures(elements, reached[0], tuple(reached), untimed)
            for elements, reached in zip(self._watch.arrived, self._reached.tolist())
        )

    def profile(self, specs: frozenset[CacheSpec]) -> None:
        """Follow the probe streams of these caches from the next part on; forget all others."""
        orders, equalities = self._join.plan.orders, self._join.equalities
        self._profiled, self._stored = {}, {}
        self._samples, self._changes = {}, {}
        for spec in specs:
            key = key_parts(spec, orders, equalities)
            self._profiled[spec] = position(spec, orders), self._words(part.probe for part in key)
            self._stored[spec] = len(members_of(spec)) - 1, self._words(part.stored for part in key)

    def probe_samples(self) -> Mapping[CacheSpec, Sequence[ProbeSample]]:
        """The stretches gathered since the last call."""
        samples, self._samples = self._samples, {}
        return samples

    def change_samples(self) -> Mapping[CacheSpec, Sequence[Int64Array]]:
        """The keys gathered since the last call."""
        changes, self._changes = self._changes, {}
        return changes

    # ------------------------------------------------------------------------------------------------------ sampling

    def joined(self, part: Sequence[Batch | None]) -> None:
        """Sample a part that has been joined, where that is due."""
        share = PROFILING_SHARE if self._profiled else SHARE
        if self._measures_time and self.spent_ns > share * self._watch.joining_ns:
            return
        began = thread_ns()
        self._find_paths()
        arrived = [self._arrived(i, batch) for i, batch in enumerate(part)]
        for i, slots in enumerate(arrived):
            if len(slots):
                inspected = np.zeros(len(arrived) - 1, np.int64)
                self._sample(i, slots[-ROWS:], Sample(self._reached[i], inspected, by_instant=True))
        for spec, (at, parts) in self._profiled.items():
            if len(arrived[spec.pipeline]):
                self._follow(spec, at, parts, arrived[spec.pipeline])
        for spec, (at, parts) in self._stored.items():
            for i in members_of(spec) - {spec.pipeline}:
                if len(arrived[i]) and at < len(arrived) - 1:
                    keys = self._keys(i, arrived[i][-ROWS:], at, parts, CHANGED)
                    if len(keys):
                        self._changes.setdefault(spec, []).append(keys)
        self.spent_ns += thread_ns() - began

    def _find_paths(self) -> None:
        """The pipelines, over what the windows are indexed by."""
        plan, configurations = self._join.plan, [list(each) for each in self._join.index.configurations]
        if (plan.orders, plan.index, configurations) != self._sampled:
            self._sampled = plan.orders, plan.index, configurations
            path = partial(self._join.graph.path, index=plan.index, configurations=configurations)
            self._paths = [path(i, order) for i, order in enumerate(plan.orders)]

    def _arrived(self, i: int, batch: Batch | None) -> Int64Array:
        return _NO_SLOTS if batch is None else self._join.index.windows[i].arrived(batch)

    def _follow(self, spec: CacheSpec, at: int, parts: Int64Array, slots: Int64Array) -> None:
        keys = self._keys(spec.pipeline, slots, at, parts, PROBES)
        if len(keys):
            self._samples.setdefault(spec, []).append(ProbeSample(keys))

    def _keys(self, i: int, slots: Int64Array, at: int, parts: Int64Array, most: int) -> Int64Array:
        """Of the tuples that reach a position in the pipeline of input i, these words, (m, words)."""
        found = np.empty((most, len(parts)), np.int64)
        n = len(self._reached)
        counts = np.zeros(n, np.int64), np.zeros(n - 1, np.int64)
        return found[: self._sample(i, slots, Sample(*counts, by_instant=True, at=at, parts=parts, found=found))]

    def _sample(self, i: int, slots: Int64Array, sample: Sample) -> int:
        windows = self._join.index.bundle
        return sample_pipeline(slots, i, self._paths[i], windows, sample, MOST_INSPECTED, 3 * MOST_INSPECTED)

    def _words(self, attributes: Iterable[Attribute]) -> Int64Array:
        """As `parts` of `kernels.join_sampling`."""
        return np.array([(i, self._place(i, column)) for i, column in attributes], np.int64).reshape(-1, 2)

    def _place(self, i: int, column: int) -> int:
        """Where a key of one column stands among all."""
        first = self._join.index.records[i].key
        return first + self._join.graph.keys[i].index((column,))


_NO_SLOTS: Int64Array = np.zeros(0, np.int64)
