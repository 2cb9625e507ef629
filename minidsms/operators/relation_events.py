"""RelationEvents: the instants at which a base relation gets a change, for RSTREAM and for the first arrival (S2, R3).

It reads the relation's log beside `RelationSource`, which nets each instant: a change that another of the same
instant takes back is a change all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from minidsms.elements import Batch, Int64Array
from minidsms.operators.operator import Description
from minidsms.operators.relation_source import ReadsRelation
from minidsms.operators.window_events import NO_COLUMNS, in_parts
from minidsms.synopses.instants import distinct
from minidsms.synopses.relation_store import RelationStore


class RelationEvents(ReadsRelation):
    """A source of elements without columns, one per instant.

    start: the query's first instant; the rows present then count as inserted there, or later if they were.
    """

    name = "RelationEvents"

    def __init__(self, relation: str, store: RelationStore, start: int) -> None:
        present = np.maximum(store.present().ts, start)  # before there is a claim, as in RelationSource
        super().__init__(relation, store, start, NO_COLUMNS)
        self._present: Int64Array = present

    def arrive(self, instant: int) -> None:
        """Something comes at an instant, behind what is present, that changes nothing."""
        self._present = np.append(self._present, instant)

    def is_as_new(self, start: int) -> bool:
        """A source made now, with this argument, would tell the same."""
        is_at_start = not len(self._present) or self.start == start
        return self.is_fresh and is_at_start and self.reader.lo == self.store.head

    def waiting(self) -> int:
        """Changes that have not been told."""
        return self.store.head - self.reader.lo + len(self._present)

    def ts_of_waiting(self, index: int) -> int:
        """The instant of the index-th of them."""
        if index < len(self._present):
            return int(self._present[index])
        return self.store.ts_at(self.reader.lo + index - len(self._present))

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        lo, hi, present = self.reader.lo, self.store.head, self._present
        if lo == hi and not len(present):
            return ()
        cut = int(present.searchsorted(until, "right"))
        present, self._present = present[:cut], present[cut:]
        changed = self.store.ts(lo, hi)
        changed = changed[: int(changed.searchsorted(until, "right"))]
        self.reader.lo = lo + len(changed)
        instants = np.sort(np.concatenate([present, changed])) if len(present) else changed
        self.counters.elements_in += len(instants)
        return in_parts(distinct(instants.copy())) if len(instants) else ()

    def describe(self) -> Description:
        return Description(self.name, self.relation)
