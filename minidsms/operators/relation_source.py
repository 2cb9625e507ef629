"""Where a base relation enters a query's plan: its present rows, then a cursor on its changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from minidsms.elements import MIN_INSTANT, Batch, Int64Array, Schema, has_true
from minidsms.kernels.arrays import normal
from minidsms.operators.netting import load, surviving
from minidsms.operators.operator import Description, Operator
from minidsms.synopses.relation_store import RelationStore


class ReadsRelation(Operator):
    """Has a cursor on the changes of a relation, and goes as far as it is allowed to."""

    def __init__(self, relation: str, store: RelationStore, start: int, schema: Schema) -> None:
        super().__init__((), schema)
        self.relation = relation
        self.store = store
        self.start = start
        self.reader = store.reader()
        self._allowed = MIN_INSTANT

    def allow(self, until: int) -> None:
        """Changes with ts <= until may go."""
        self._allowed = max(self._allowed, until)

    def available(self) -> int:
        return self._allowed

    def has_work(self) -> bool:
        return self._emission is not None or (self._allowed > self.progress and self.failure is None)

    def close(self) -> None:
        """Give up the claim on the store."""
        self.store.release(self.reader)


class RelationSource(ReadsRelation):
    """Reads a relation from its present content on (docs/semantics T7).

    start: the first instant of the query; rows inserted before it enter there, others at their own instant.
    """

    name = "Relation"
    is_entrance = True

    def __init__(self, relation: str, store: RelationStore, start: int) -> None:
        present = store.present()  # before there is a claim, which nobody would give up where memory is short
        ts = np.maximum(present.ts, start)
        super().__init__(relation, store, start, store.schema)
        self._present: Batch | None = Batch(ts, None, present.columns) if len(present) else None

    def is_as_new(self, start: int) -> bool:
        """A source made now, with this argument, would hand on the same."""
        is_at_start = self._present is None or self.start == start
        return self.is_fresh and is_at_start and self.reader.lo == self.store.head

    def waiting(self) -> int:
        """Changes that have not been handed on."""
        return self.store.head - self.reader.lo + (0 if self._present is None else len(self._present))

    def ts_of_waiting(self, index: int) -> int:
        """The instant of the index-th waiting change."""
        if self._present is not None:
            if index < len(self._present):
                return int(self._present.ts[index])
            index -= len(self._present)
        return self.store.ts_at(self.reader.lo + index)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        given: Batch | None = None
        if self._present is not None:
            cut = int(np.searchsorted(self._present.ts, until, side="right"))
            if cut:
                given = self._present.slice(0, cut)
                self._present = self._present.slice(cut, len(self._present)) if cut < len(self._present) else None
                self.counters.elements_in += cut
        lo, hi = self.reader.lo, self.store.head
        if hi > lo and self.store.ts_at(hi - 1) > until:
            hi = lo + int(np.searchsorted(self.store.ts(lo, hi), until, side="right"))
        if hi > lo:
            self.counters.elements_in += hi - lo
            self.reader.lo = hi
            changes = self.store.batch(lo, hi)
            given = in_order(changes if given is None else Batch.concat([given, changes]))
        return () if given is None else (given,)

    def live_codes(self) -> Iterator[Int64Array]:
        """TEXT codes of present rows that have not been handed on: the relation may have lost them since."""
        if self._present is not None:
            for i in self.schema.coded:
                yield self._present.column(i).values  # type: ignore[misc]

    def describe(self) -> Description:
        return Description(self.name, self.relation, {"waiting": self.waiting()})


def in_order(changes: Batch) -> Batch:
    """Changes as `elements.Batch` wants them, deletions first and netted, whatever the order of an instant was."""
    ts, sign = changes.ts, changes.sign
    if sign is None:
        is_late = has_true(ts[1:] < ts[:-1])
    else:
        is_late = not load().is_in_order(normal(ts), normal(sign))
    if is_late:
        changes = changes.take(np.lexsort((changes.signs, ts)))
    kept = surviving(changes)
    return changes if kept is None else changes.take(kept)
