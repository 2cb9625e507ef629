"""The rows of one relation that have (or lack) a partner in another: IN, EXISTS and their negations.

A left row is in the output while some right row has its key; anti: while none has. Keys with a NULL have no partner,
unless the join is null-safe (IS NOT DISTINCT FROM). Each instant the right's changes are netted per key first, so that
a key whose last row is replaced by another disturbs nothing.  docs/semantics R1, R2; Babu 2005, section 2.2.2.

Invariant: between slices the output is { l in left : count(right rows with key of l) > 0 }, or = 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from minidsms.elements import MAX_INSTANT, Batch
from minidsms.kernels.keyed_slots import STATE_WORDS
from minidsms.kernels.semi_join import DONE, GROW, INSPECTED, MISSING, NEXT, STATUS, Counted, Found, semi_join
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue
from minidsms.synopses.key_counts import KeyCounts
from minidsms.synopses.keyed_bag import KeyedBag
from minidsms.synopses.keyed_ring import KeyedRing

_ROWS = 1 << 14
"""Rows found before their columns are gathered."""


class SemiJoin(Operator):
    """Left rows with (anti: without) a right row of equal key.

    left_keys, right_keys: key columns of each input, pairwise of one type; none asks whether right has any row at all.
    null_safe: NULL equals NULL.  left_fifo: left's deletions come in the order of its insertions.
    """

    name = "SemiJoin"

    def __init__(
        self,
        left: Queue,
        right: Queue,
        left_keys: Sequence[int],
        right_keys: Sequence[int],
        anti: bool,
        null_safe: bool = False,
        left_fifo: bool = False,
    ) -> None:
        super().__init__([left, right], left.schema)
        self.left_keys, self.right_keys = tuple(left_keys), tuple(right_keys)
        self.anti = anti
        self.null_safe = null_safe
        self.name = "AntiJoin" if anti else "SemiJoin"
        self._state = np.zeros((3, STATE_WORDS), np.int64)
        self._state[2, NEXT] = -1
        columns = range(len(left.schema))
        self._left: KeyedRing | KeyedBag
        if left_fifo:
            self._left = KeyedRing(left.schema, self.left_keys, columns, self._state[0], null_safe)
        else:
            self._left = KeyedBag(left.schema, self.left_keys, columns, self._state[0], null_safe, keeps_keyless=anti)
        self._buffers: Found | None = None
        self._right = KeyCounts(right.schema, self.right_keys, self._state[1], null_safe)

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        """Count right, toggle keys, pass left; one batch of output per full buffer of rows."""
        if batches[0] is not None or batches[1] is not None:
            left, right = self._left.begin(batches[0]), self._right.begin(batches[1])
            if self._buffers is None:
                room = np.empty(_ROWS, np.int64), np.empty(_ROWS, np.int64), np.empty(_ROWS, np.int8)
                self._buffers = Found(*room)
            output = self._buffers
            keys = self._right
            status = -1
            while status != DONE:
                counted = Counted(*right, keys.heads, keys.nodes, keys.words, keys.touched)
                found = semi_join(left, counted, self._state, keys.layout.key_width, self.anti, output)
                status = int(self._state[2, STATUS])
                if found:
                    columns = self._left.gather(range(len(self.schema)), output.slots[:found])
                    yield Batch(output.ts[:found].copy(), output.sign[:found].copy(), columns)
                assert status != MISSING, "every deletion cancels an earlier insertion (docs/semantics T2)"
                if status == GROW:
                    keys.grow()
            self._right.finish()
        self._left.finish(until)

    def wakes_at(self) -> int:
        """Never: the inputs say when rows leave."""
        return MAX_INSTANT

    def describe(self) -> Description:
        """Key columns, rows, keys and bytes held, slots inspected by all toggles so far."""
        names = self.inputs[0].schema.names, self.inputs[1].schema.names
        equals = " IS NOT DISTINCT FROM " if self.null_safe else " = "
        keys = [f"{names[0][l]}{equals}{names[1][r]}" for l, r in zip(self.left_keys, self.right_keys)]
        return Description(
            self.name,
            " AND ".join(keys) or "any row",
            {
                "left_rows": len(self._left),
                "right_keys": len(self._right),
                "left_fifo": isinstance(self._left, KeyedRing),
                "bytes": self._left.nbytes + self._right.nbytes,
                "inspected": int(self._state[2, INSPECTED]),
            },
        )

    def close(self) -> None:
        """End the claims on the inputs' stores."""
        self._left.release()

    def synopses(self) -> tuple[KeyedRing | KeyedBag | KeyCounts, ...]:
        """Left's rows and right's counts."""
        return (self._left, self._right)
