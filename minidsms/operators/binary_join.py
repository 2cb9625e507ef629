"""The join of two relations: every pair of rows with equal keys that the residual condition accepts.

Within an instant all deletions of both inputs come first, each probing what is left of the other side, then all
insertions: so each pair that begins or ends at the instant is put out exactly once, and none that would do both.
NULL keys match nothing (docs/semantics R2). Babu 2005, section 2.2.2; docs/design, points 2 to 4.

Invariant: between slices both sides hold the rows of their relations at `progress`, those with a NULL key apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from minidsms.elements import MAX_INSTANT, Batch, BoolArray, Column, Int8Array, Int64Array, Schema
from minidsms.kernels.join import DONE, INSPECTED, MISSING, PENDING_NEXT, STATE_WORDS, STATUS, join, pair_buffers
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue
from minidsms.synopses.keyed_bag import KeyedBag
from minidsms.synopses.keyed_ring import KeyedRing

Predicate = Callable[[Batch], tuple[BoolArray, BoolArray | None]]
"""Rows for which a condition is TRUE, and rows for which it fails (None: none does)."""

_PAIRS = 1 << 14
"""Pairs found before their rows are gathered: their slots stay in the cache until then."""


class BinaryJoin(Operator):
    """left JOIN right ON equal keys AND residual; rows are the left row followed by the right one.

    left_keys, right_keys: key columns of each input, pairwise of one type; none for a Cartesian product.
    residual: over the whole row, whose columns are gathered when it reads them. failure_reason: what to say of a row (a
        batch of one) for which it fails.
    left_fifo, right_fifo: the input's deletions come in the order of its insertions.
    output_columns: the columns of the whole row to put out, in this order (default: all); schema: theirs.
    insert_only: deletions need not be put out.
    """

    name = "BinaryJoin"

    def __init__(
        self,
        left: Queue,
        right: Queue,
        left_keys: Sequence[int],
        right_keys: Sequence[int],
        residual: Predicate | None,
        left_fifo: bool,
        right_fifo: bool,
        schema: Schema,
        output_columns: Sequence[int] | None = None,
        insert_only: bool = False,
        failure_reason: Callable[[Batch], str] | None = None,
    ) -> None:
        super().__init__([left, right], schema)
        self.left_keys, self.right_keys = tuple(left_keys), tuple(right_keys)
        self.residual = residual
        self.insert_only = insert_only
        self.failure_reason = failure_reason
        self._split = len(left.schema)
        width = self._split + len(right.schema)
        self.output_columns = tuple(range(width)) if output_columns is None else tuple(output_columns)
        needed = range(width) if residual is not None else self.output_columns
        self._state = np.zeros((3, STATE_WORDS), np.int64)
        self._state[2, PENDING_NEXT] = -1
        self._left: KeyedRing | KeyedBag = (KeyedRing if left_fifo else KeyedBag)(
            left.schema, self.left_keys, [c for c in needed if c < self._split], self._state[0]
        )
        self._right: KeyedRing | KeyedBag = (KeyedRing if right_fifo else KeyedBag)(
            right.schema, self.right_keys, [c - self._split for c in needed if c >= self._split], self._state[1]
        )
        self._key_width = self._left.layout.key_width
        self._buffers: tuple[Int64Array, Int64Array, Int8Array] | None = None

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        """Probe and index the batches' elements; one batch of output per full buffer of pairs."""
        left, right = self._left.begin(batches[0]), self._right.begin(batches[1])
        if batches[0] is not None or batches[1] is not None:
            if self._buffers is None:
                self._buffers = pair_buffers(_PAIRS)
            status = -1
            while status != DONE and self.failure is None:
                found = join(left, right, self._state, self._key_width, self.insert_only, *self._buffers)
                status = int(self._state[2, STATUS])
                if found:
                    batch = self._output(found)
                    if len(batch):
                        yield batch
                assert status != MISSING, "every deletion cancels an earlier insertion (docs/semantics T2)"
        self._left.finish(until)
        self._right.finish(until)

    def _output(self, found: int) -> Batch:
        """The rows of the pairs found, as far as the residual accepts them."""
        assert self._buffers is not None
        pairs, out_ts, out_sign = self._buffers
        left, right = pairs[0, :found], pairs[1, :found]
        ts, sign = out_ts[:found], None if self.insert_only else out_sign[:found]
        if self.residual is not None:
            rows = _Pairs(self._left, self._right, left, right, self._split)
            whole = Batch.referring(ts, sign, np.arange(found), rows, range(self._split + len(self._right.schema)))
            accepted, failed = self.residual(whole)
            if failed is not None and failed.any():
                first = int(failed.argmax())
                row = whole.slice(first, first + 1)
                self.fail(
                    int(ts[first]), self.failure_reason(row) if self.failure_reason else "a join condition failed"
                )
            if not accepted.all():
                at = np.flatnonzero(accepted)
                left, right, ts, sign = left[at], right[at], ts[at], None if sign is None else sign[at]
        columns = self._gather(left, right)
        return Batch(ts.copy(), None if sign is None else sign.copy(), columns)

    def _gather(self, left: Int64Array, right: Int64Array) -> list[Column]:
        """The output columns of these pairs of slots."""
        split = self._split
        of_left = iter(self._left.gather([c for c in self.output_columns if c < split], left))
        of_right = iter(self._right.gather([c - split for c in self.output_columns if c >= split], right))
        return [next(of_left if c < split else of_right) for c in self.output_columns]

    def wakes_at(self) -> int:
        """Never: the inputs say when rows leave."""
        return MAX_INSTANT

    def describe(self) -> Description:
        """Key columns, rows and bytes held, slots inspected by all probes so far."""
        names = self.inputs[0].schema.names, self.inputs[1].schema.names
        keys = [f"{names[0][l]} = {names[1][r]}" for l, r in zip(self.left_keys, self.right_keys)]
        detail = " AND ".join(keys) or "every pair"
        return Description(
            self.name,
            detail + (" AND residual" if self.residual is not None else ""),
            {
                "left_rows": len(self._left),
                "right_rows": len(self._right),
                "left_fifo": isinstance(self._left, KeyedRing),
                "right_fifo": isinstance(self._right, KeyedRing),
                "bytes": self._left.nbytes + self._right.nbytes,
                "inspected": int(self._state[2, INSPECTED]),
            },
        )

    def close(self) -> None:
        """End the claims on the inputs' stores."""
        self._left.release()
        self._right.release()

    def synopses(self) -> tuple[KeyedRing | KeyedBag, ...]:
        """Both sides' rows."""
        return (self._left, self._right)


class _Pairs:
    """The whole rows of pairs of slots, as a source columns are gathered from; pair numbers take the place of seq."""

    def __init__(
        self, left: KeyedRing | KeyedBag, right: KeyedRing | KeyedBag, l: Int64Array, r: Int64Array, split: int
    ) -> None:
        self._sides = (left, right)
        self._slots = (l, r)
        self._split = split

    def gather(self, column: int, seq: Int64Array, is_run: bool = False) -> Column:
        """The column of these pairs."""
        side = int(column >= self._split)
        slots = self._slots[side]
        if len(seq) != len(slots):
            slots = slots[seq]
        return self._sides[side].gather([column - self._split * side], slots)[0]
