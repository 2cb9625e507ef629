"""What the steps of a pipeline cost: probes of windows, lookups and updates of caches (Babu 2005, section 5.5.3).

A choice between caches needs no more than what these cost in proportion to each other; a join does not time its steps
one by one, so the figures below stand for them. They were fitted to what joins took with and without caches that were
forced on them (`python -m experiments.caching.cache_steps`): how far away memory is they do not know, so that single
joins differ from them by up to half; a choice that was wrong shows in the time (`trial.py`).

Invariant: where time is not measured, every step costs 1: a probe, a lookup, a row found, stored or removed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from minidsms.joins.plan import CacheSpec


@dataclass(frozen=True)
class StepUnits:
    """Nanoseconds. window: of probing the index of a window, and window_row: of going on from a row that joins.

    lookup: of finding a key's entry, word: more for each word of the key, row: of a row that the entry has.
    update: of storing a row that changes in its entry, reference: more for each input of it, ignored: of finding that
    there is no entry. element: what an element costs more where there are caches at all: it goes through lists.
    one_by_one: the factor by which all costs more where elements are not joined block by block: with reduced caches.
    always, result: of an element and of a tuple of the answer under every plan, as `join_trees.costs` has them.
    """

    window: float
    window_row: float
    lookup: float
    word: float
    row: float
    update: float
    reference: float
    ignored: float
    element: float
    one_by_one: float
    always: float
    result: float


JOINING = StepUnits(8.0, 3.0, 10.0, 2.0, 2.0, 20.0, 1.0, 3.0, 12.0, 1.3, 37.1, 3.2)
"""Where rows that leave are elements too: of an update each, half cost next to nothing, for entries are swept later."""
ENTERING = StepUnits(3.5, 2.5, 10.0, 2.0, 2.0, 40.0, 1.0, 6.0, 60.0, 2.2, 33.4, 15.5)
"""Where only what enters streams with ranges is joined: the MJoin probes block by block there, too."""


class StepCosts:
    """measures_time: costs are ns, else steps.  enters: only what enters is joined."""

    def __init__(self, measures_time: bool, enters: bool = False) -> None:
        self._unit = (ENTERING if enters else JOINING) if measures_time else None

    def whole(self, cost: float, caches: Collection[CacheSpec]) -> float:
        """What an element of the join costs with these caches, where its steps cost so much."""
        unit = self._unit
        if unit is None or not caches:
            return cost
        return unit.element + cost * (unit.one_by_one if any(spec.reduced_by for spec in caches) else 1.0)

    def least(self, elements: int, results: int) -> float:
        """What a join takes for so many elements and tuples of its answer whatever caches it has."""
        unit = self._unit
        return 0.0 if unit is None else unit.always * elements + unit.result * results

    def window(self, rows: float) -> float:
        """Of probing a window of which so many rows join."""
        unit = self._unit
        return 1 + rows if unit is None else unit.window + unit.window_row * rows

    def lookup(self, words: int, entry_rows: float) -> float:
        """Of a lookup."""
        unit = self._unit
        return 1 + entry_rows if unit is None else unit.lookup + unit.word * words + unit.row * entry_rows

    def update(self, words: int, references: int, ignored: float = 0.0) -> float:
        """Of a row stored, added or removed. ignored: the share of the rows that change which have no entry."""
        unit = self._unit
        if unit is None:
            return 1.0
        stored = (1 - ignored) * (unit.update + unit.reference * references)
        return stored + ignored * unit.ignored + unit.word * words
