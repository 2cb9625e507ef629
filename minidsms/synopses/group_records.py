"""What an aggregate knows of its groups: one record per group, with the states of the common aggregates and the row
put out last.

Invariant: a group without rows has a record of zeros (but for its stamp), so that its id can be given to another group
as it is; everything is exact under removal. `kernels.grouping` draws the record.  docs/semantics R3, R4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from minidsms.elements import AnyArray, BoolArray, Int8Array, Int64Array
from minidsms.kernels import grouping as kernels
from minidsms.synopses.group_state import Run, Workspace

_WORDS = {kernels.COUNT: 1, kernels.SUM: 3, kernels.AVG: 3, kernels.EXTREME: 3, kernels.TOP: 2}
_FIRST_NODES = 64
_WORTH_SHRINKING = 2048


@dataclass(frozen=True)
class Call:
    """An aggregate as the kernel sees it.

    kind: of `kernels.grouping`.  weight, slot: the rows of `weights` and `values` it reads.  is_text: the result is a
    TEXT code.  times: the row of `values` that says for how many each stands, or -1.
    """

    kind: int
    weight: int = 0
    slot: int = 0
    is_largest: bool = False
    is_float: bool = False
    is_text: bool = False
    times: int = -1


@dataclass(slots=True)
class Changes:
    """What a run put out. size: rows written.  dead: groups that lost their last row (and may have got another since).

    failure: (aggregate, element) of a sum that fits no INTEGER; nothing of that instant is put out.
    """

    size: int
    dead: Int64Array
    failure: tuple[int, int] | None


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
            (j, c.kind, c.weight, c.slot, offset, c.is_largest, c.is_float, c.times)
            for j, (c, offset) in enumerate(zip(calls, offsets))
        ]
        table: Int64Array = np.array(rows, np.int64).reshape(k, 8)
        kinds = table[:, kernels.KIND]
        self._sums = table[np.isin(kinds, (kernels.COUNT, kernels.SUM, kernels.AVG))]
        self._extremes = table[np.isin(kinds, (kernels.EXTREME, kernels.TOP))]
        self._deques = self._extremes[self._extremes[:, kernels.KIND] == kernels.EXTREME, kernels.OFFSET].copy()
        self._stars = np.flatnonzero(kinds == kernels.STAR)
        self._fallible = np.flatnonzero(kinds == kernels.SUM)
        # The same, as the kernels of whole slices take them.
        self.count = k
        self.constants = tuple(
            (c.kind, c.weight, offset, c.is_largest, c.is_float, c.times) for c, offset in zip(calls, offsets)
        )
        self.calls, self.sums = np.concatenate([self._sums, self._extremes]), len(self._sums)
        self.marks, self.stars = np.concatenate([self._stars, self._fallible]), len(self._stars)
        self._text = [self.words_at + j for j, c in enumerate(calls) if c.is_text]
        self.records: Int64Array = np.zeros((0, width), np.int64)
        self.nodes: Int64Array = np.zeros((_FIRST_NODES, 4), np.int64)
        self.pool: Int64Array = np.array([0, 1, 0], np.int64)
        self.instants = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held."""
        return self.records.nbytes + self.nodes.nbytes

    @property
    def rows(self) -> Int64Array:
        """Each group's number of rows; a view."""
        return self.records[:, kernels.ROWS]

    def advance(self, run: Run, values: Int64Array, weights: Int8Array) -> None:
        """Take the elements of a run in; answers go to the run."""
        if len(self._sums):
            kernels.move_sums(run.ids, self._sums, values, weights, self.records, run.results, run.floats, run.status)
        if not len(self._extremes):
            return
        done = 0
        while True:
            done = kernels.move_extremes(
                done, run.ids, self._extremes, values, weights, self.records, self.nodes, self.pool, run.results,
                run.status,
            )  # fmt: skip
            if done == len(run.ids):
                return
            self.grow_nodes()

    def grow_nodes(self) -> None:
        """Twice the room for the values of extremes."""
        self.nodes = np.concatenate([self.nodes, np.zeros_like(self.nodes)])

    def put_out(self, run: Run, keys: Int64Array, is_global: bool, start: int, until: int, out: Workspace) -> Changes:
        """Write the rows that the run's instants before `until` change; see `kernels.put_out`."""
        cursor = np.zeros(kernels.CURSOR_SIZE, np.int64)
        cursor[kernels.INSTANT] = self.instants
        answered = kernels.Answered(run.ts, run.sign, run.ids, run.results, run.status, self._stars, self._fallible)
        changed = kernels.Changed(out.out_ts, out.out_sign, out.out_words, out.out_status)
        kernels.put_out(answered, keys, self.records, is_global, start, until, cursor, out.touched, out.dead, changed)
        self.instants, size, dead, culprit, at = cursor.tolist()
        return Changes(size, out.dead[:dead], (culprit - 1, at) if culprit else None)

    def shown(self) -> Int64Array:
        """The groups that are put out at present."""
        return np.flatnonzero(self.records[:, kernels.FLAGS] >> kernels.SHOWN & 1)

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
        if len(self.nodes) > _WORTH_SHRINKING and int(self.pool[kernels.HELD]) * 8 < len(self.nodes):
            self.nodes = self._packed(self.records, np.arange(len(self.records)))
            used = int(self.pool[kernels.HELD]) + 1
            self.pool[:] = (0, used, used - 1)

    def _packed(self, records: Int64Array, groups: Int64Array) -> Int64Array:
        """The nodes in use, one after the other; the records are changed to name them."""
        held = int(self.pool[kernels.HELD])
        packed = np.zeros((max(_FIRST_NODES, 1 << (2 * held + 1).bit_length()), 4), np.int64)
        used = kernels.pack_nodes(records, groups, self._deques, self.nodes, packed)
        assert used == held + 1, "every node in use belongs to a group"
        return packed

    def arrays(self, live: Int64Array) -> dict[str, AnyArray]:
        """The state of these groups, in this order."""
        records = self.records[live]
        records[:, [kernels.STAMP, kernels.LAST]] = 0
        nodes = self._packed(records, np.arange(len(records)))
        return {"records": records, "nodes": nodes[: int(self.pool[kernels.HELD]) + 1].copy()}

    def restore(self, arrays: Mapping[str, AnyArray], capacity: int) -> None:
        """Take a state back: groups are numbered 0, 1, .. in its order."""
        records, nodes = arrays["records"], arrays["nodes"]
        self.records = np.zeros((max(capacity, len(records)), self.records.shape[1]), np.int64)
        self.records[: len(records)] = records
        self.nodes = np.zeros((max(_FIRST_NODES, 1 << len(nodes).bit_length()), 4), np.int64)
        self.nodes[: len(nodes)] = nodes
        self.pool[:] = (0, len(nodes), len(nodes) - 1)
        self.instants = 0

    def live_codes(self) -> Iterable[Int64Array]:
        """The TEXT codes held."""
        for word in self._text:
            yield self.records[:, word].copy()
