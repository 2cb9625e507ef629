"""What the steps of a pipeline cost: probes of windows, lookups and updates of caches (Babu 2005, section 5.5.3).

A choice between caches needs no more than what these cost in proportion to each other; so where a join does not time
its steps one by one, the constants below stand for them.

Invariant: where time is not measured, every step costs 1: a probe, a lookup, a row found, stored or removed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from minidsms.streamon.caching.contracts import CacheFigures, CacheSpec, key_parts
from minidsms.streamon.caching.executor import CacheExecutor

WINDOW_PROBE_NS = 8.0
"""Probing the index of a window: a bucket's head and the first slot of its chain, mostly far away in memory."""
WINDOW_ROW_NS = 3.0
"""Going on from a row of a window that joins."""
PROBE_NS = 10.0
"""Finding the bucket of a key, mostly not in the processor's cache."""
WORD_NS = 2.0
"""Hashing and comparing a word of the key."""
ROW_NS = 2.0
"""Going from one row of an entry to the next."""
UPDATE_NS = 20.0
"""Finding the entry of a row that changes, and storing it there, or later sweeping it out."""
IGNORED_NS = 3.0
"""Finding that a row that changes has no entry."""
REFERENCE_NS = 1.0
"""Writing the slot number of one input."""
ELEMENT_NS = 12.0
"""What an element costs more in a join that has caches at all: it is put into lists, and taken from them."""
ONE_BY_ONE = 1.8
"""The factor by which pipelines cost more where elements are joined one by one, not block by block: under caches that
are reduced."""
LEAST_TIMED = 1_000
"""Timed steps that are worth a correction."""
MEMORY = 0.8
"""Of a factor known, what stays when a new one is seen."""


class StepCosts:
    """measures_time: costs are ns, else steps. probe_factor, update_factor: by which timed caches have been dearer."""

    def __init__(self, measures_time: bool) -> None:
        self.probe_factor = 1.0
        self.update_factor = 1.0
        self._measures_time = measures_time

    def whole(self, cost: float, caches: Collection[CacheSpec]) -> float:
        """What an element of the join costs with these caches, where its steps cost so much."""
        if not self._measures_time or not caches:
            return cost
        return ELEMENT_NS + cost * (ONE_BY_ONE if any(spec.reduced_by for spec in caches) else 1.0)

    def window(self, rows: float) -> float:
        """Of probing a window of which so many rows join."""
        return WINDOW_PROBE_NS + WINDOW_ROW_NS * rows if self._measures_time else 1 + rows

    def probe(self, words: int, entry_rows: float) -> float:
        """Of a lookup."""
        if not self._measures_time:
            return 1 + entry_rows
        return self.probe_factor * (PROBE_NS + WORD_NS * words + ROW_NS * entry_rows)

    def update(self, words: int, references: int, ignored: float = 0.0) -> float:
        """Of a row stored, added or removed. ignored: the share of the rows that change which have no entry."""
        if not self._measures_time:
            return 1.0
        stored = (1 - ignored) * UPDATE_NS + ignored * IGNORED_NS
        return self.update_factor * (stored + WORD_NS * words + (1 - ignored) * REFERENCE_NS * references)

    def learn(self, executor: CacheExecutor, passed: Mapping[CacheSpec, CacheFigures]) -> None:
        """Compare what was timed since the last look with what was to be expected."""
        if not self._measures_time:
            return
        probes = updates = 0
        probe_ns = update_ns = expected_probe_ns = expected_update_ns = 0.0
        for spec, figures in passed.items():
            words = len(key_parts(spec, executor.plan.orders, executor.join.equalities))
            rows = figures.created_rows / figures.creates if figures.creates else 0.0
            probes += figures.timed_probes
            probe_ns += figures.probe_ns
            expected_probe_ns += figures.timed_probes * (PROBE_NS + WORD_NS * words + ROW_NS * rows)
            updates += figures.timed_updates
            update_ns += figures.update_ns
            expected = UPDATE_NS + WORD_NS * words + REFERENCE_NS * len(spec.segment)
            expected_update_ns += figures.timed_updates * expected
        if probes >= LEAST_TIMED:
            self.probe_factor = MEMORY * self.probe_factor + (1 - MEMORY) * probe_ns / expected_probe_ns
        if updates >= LEAST_TIMED:
            self.update_factor = MEMORY * self.update_factor + (1 - MEMORY) * update_ns / expected_update_ns
