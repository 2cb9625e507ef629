"""What an aggregate knows of its groups: one record per group, with the states of the common aggregates and the row
put out last.

Invariant: a group without rows has a record of zeros (but for its stamp), so that its id can be given to another group
as it is; everything is exact under removal. `kernels.grouping` draws the record.  docs/semantics R3, R4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from minidsms.elements import AnyArray, BoolArray, Int64Array
from minidsms.kernels import grouping as kernels
from minidsms.machine_code import rows_of

_WORDS = {kernels.COUNT: 1, kernels.SUM: 3, kernels.AVG: 3, kernels.EXTREME: 3, kernels.TOP: 2, kernels.STACKED: 3}
_FIRST_NODES = 64
_WORTH_SHRINKING = 2048


@dataclass(frozen=True)
class Call:
    """An aggregate as the kernel sees it.

    kind: of `kernels.grouping`.  argument: the row of `weights` and `values` it reads.  is_text: the result is a TEXT
    code.  times: the row of `values` that says for how many each stands, or -1.  is_fallible: there may be no result.
    """

    kind: int
    argument: int = 0
    is_largest: bool = False
    is_float: bool = False
    is_text: bool = False
    times: int = -1
    is_fallible: bool = False


class GroupRecords:
    """The records of an aggregation's groups, by group id."""

    def __init__(self, calls: Sequence[Call]) -> None:
        k = len(calls)
        self.words_at = kernels.FLAGS + 1 + (k >> 5)
        """Where the words put out last begin."""
        offsets, width = [], self.words_at + k
        for call in calls:
            offsets.append(width)
            width += _WORDS.get(call.kind, 0)
        rows = [
            (j, c.kind, c.argument, offset, c.is_largest, c.is_float, c.times)
            for j, (c, offset) in enumerate(zip(calls, offsets))
        ]
        table = rows_of(kernels.Called, k)
        for j, row in enumerate(rows):
            table[j] = row
        kinds = table["kind"]
        sums = np.flatnonzero(np.isin(kinds, (kernels.COUNT, kernels.SUM, kernels.AVG)))
        extremes = np.flatnonzero(np.isin(kinds, (kernels.EXTREME, kernels.TOP)))
        stars, fallible = np.flatnonzero(kinds == kernels.STAR), np.flatnonzero([c.is_fallible for c in calls])
        self._deques = table["offset"][kinds == kernels.EXTREME]
        self.count = k
        self.constants = tuple(
            (c.kind, c.argument, offset, c.is_largest, c.is_float, c.times) for c, offset in zip(calls, offsets)
        )
        stacked = np.flatnonzero(kinds == kernels.STACKED)
        self.stacks = len(stacked)
        self.calls, self.sums = table[np.concatenate([sums, extremes, stacked])], len(sums)
        self.marks, self.stars = np.concatenate([stars, fallible]), len(stars)
        self._text = [self.words_at + j for j, c in enumerate(calls) if c.is_text]
        self.records: Int64Array = np.zeros((0, width), np.int64)
        self.nodes: Int64Array = np.zeros((_FIRST_NODES, kernels.NODE_WORDS), np.int64)
        self.pool = kernels.NodePool(used=1)
        self.instants = 0

    @property
    def nbytes(self) -> int:
        return self.records.nbytes + self.nodes.nbytes

    @property
    def rows(self) -> Int64Array:
        """Each group's number of rows; a view."""
        return self.records[:, kernels.ROWS]

    def grow_nodes(self) -> None:
        """Twice the room for the values of extremes."""
        self.nodes = np.concatenate([self.nodes, np.zeros_like(self.nodes)])

    def shown(self) -> Int64Array:
        """The groups that are put out at present."""
        return np.flatnonzero(self.records[:, kernels.FLAGS] >> kernels.SHOWN & 1)

    def keep_deques(self) -> None:
        """Let what is STACKED be an EXTREME from now on, before any element has come."""
        now = {kernels.STACKED: kernels.EXTREME}
        self.constants = tuple((now.get(call[0], call[0]), *call[1:]) for call in self.constants)
        stacked = self.calls["kind"] == kernels.STACKED
        self._deques = np.concatenate([self._deques, self.calls["offset"][stacked]])
        self.calls["kind"][stacked] = kernels.EXTREME
        self.stacks = 0

    def result(self, j: int, groups: Int64Array) -> tuple[Int64Array, BoolArray]:
        """What aggregate j put out last for these groups: words, and which are not NULL."""
        flags = self.records[groups, kernels.FLAGS + (j >> 5)]
        return self.records[groups, self.words_at + j], (flags >> (j & 31) & 1) == 1

    # ---------------------------------------------------------------------------------------------------- memory

    def resize(self, capacity: int) -> None:
        """Records for all ids below capacity."""
        missing = capacity - len(self.records)
        if missing > 0:
            self.records = np.concatenate([self.records, np.zeros((missing, self.records.shape[1]), np.int64)])

    def renumber(self, kept: Int64Array, capacity: int) -> None:
        """Group kept[i] is group i from now on."""
        records = np.zeros((capacity, self.records.shape[1]), np.int64)
        records[: len(kept)] = self.records[kept]
        self.records = records

    def settle(self) -> None:
        """Give memory back if most nodes are free."""
        if len(self.nodes) > _WORTH_SHRINKING and self.pool.held * 8 < len(self.nodes):
            self.nodes = self._packed(self.records, np.arange(len(self.records)))
            used = self.pool.held + 1
            self.pool = kernels.NodePool(0, used, used - 1)

    def _packed(self, records: Int64Array, groups: Int64Array) -> Int64Array:
        """The nodes in use, one after the other; the records are changed to name them."""
        held = self.pool.held
        packed = np.zeros((max(_FIRST_NODES, 1 << (2 * held + 1).bit_length()), kernels.NODE_WORDS), np.int64)
        used = kernels.pack_nodes(records, groups, self._deques, self.nodes, packed)
        assert used == held + 1, "every node in use belongs to a group"
        return packed

    def arrays(self, live: Int64Array) -> dict[str, AnyArray]:
        """The state of these groups, in this order."""
        records = self.records[live]
        records[:, [kernels.STAMP, kernels.LAST]] = 0
        nodes = self._packed(records, np.arange(len(records)))
        return {"records": records, "nodes": nodes[: self.pool.held + 1].copy()}

    def restore(self, arrays: Mapping[str, AnyArray], capacity: int) -> None:
        """Take a state back: groups are numbered 0, 1, .. in its order."""
        records, nodes = arrays["records"], arrays["nodes"]
        self.records = np.zeros((max(capacity, len(records)), self.records.shape[1]), np.int64)
        self.records[: len(records)] = records
        self.nodes = np.zeros((max(_FIRST_NODES, 1 << len(nodes).bit_length()), kernels.NODE_WORDS), np.int64)
        self.nodes[: len(nodes)] = nodes
        self.pool = kernels.NodePool(0, len(nodes), len(nodes) - 1)
        self.instants = 0

    def live_codes(self) -> Iterable[Int64Array]:
        for word in self._text:
            yield self.records[:, word].copy()
