"""Top: the first rows of a relation, ORDER BY .. LIMIT.

All rows are kept, for a row may become one of the first when others leave, but only those near the first in order;
where none ever leaves, the first alone.

Invariant: after an instant the rows put out are those at places [offset, offset + limit) of the input in its order.
docs/semantics R6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minidsms.aggregates.aggregate import EVERY_ROW, SortKey
from minidsms.elements import Batch, columns_of_words
from minidsms.kernels.sorted_partitions import RankedRows
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.queues import Queue
from minidsms.synopses.first_rows import FirstRows
from minidsms.synopses.object_states import Texts


class Top(Resuming):
    """order: by which columns, and how.  input_append_only: no row leaves. Of n rows in order a change takes O(log n)
    comparisons, and moving the slots behind it.
    """

    name = "Top"
    acts_on_time = False

    def __init__(
        self,
        input_: Queue,
        order: Sequence[tuple[int, SortKey]],
        limit: int,
        offset: int,
        texts: Texts,
        input_append_only: bool = False,
    ) -> None:
        super().__init__([input_], input_.schema)
        self._limit, self._offset = limit, offset
        self._row_nbytes = 8 * (len(input_.schema) + 8)
        self._sorted = FirstRows(input_.schema, order, texts, limit, offset, not input_append_only)
        self.is_self_contained = not input_.schema.coded

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        batch = self.uncounted(batches[0])
        if batch is None:
            return
        self.claim(self._row_nbytes * len(batch.ts))
        for told in self._sorted.take(batch):
            yield self._batch(told)

    def _batch(self, told: RankedRows) -> Batch:
        batch = Batch(told.ts.copy(), told.sign.copy(), columns_of_words(told.words, self.schema), is_own=True)
        batch.is_netted = True
        return batch

    def contents(self) -> Batch:
        """The rows that are shown, as insertions (ts of no meaning)."""
        return self._batch(self._sorted.present())

    def describe(self) -> Description:
        offset = f" behind {self._offset}" if self._offset else ""
        detail = "" if self._limit == EVERY_ROW else f"{self._limit}{offset}"
        return Description(self.name, detail, {"rows": len(self._sorted), "bytes": self._sorted.nbytes})

    def synopses(self) -> tuple[FirstRows, ...]:
        return (self._sorted,)
