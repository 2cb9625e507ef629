"""Bounds: the start and the end of a window that moves in steps, beside the rows it holds.

At every multiple b of L the window is another one: its rows leave with the bounds they had and those it holds now enter
with (b - T, b), be they the same rows.

Invariant: at the instant tau the rows put out are those of the input, with (b - T, b), b the last multiple of L up to
tau.  docs/semantics W6, W9, W10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from minidsms.cql.window_spec import BOUNDS, WindowSpec
from minidsms.elements import MAX_INSTANT, AnyArray, Batch, Column, Int64Array
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue
from minidsms.synopses.stub import NO_INSTANTS, Stub

_LARGEST_OUTPUT = 1 << 16


class Shown:
    """The boundary whose rows were put out last."""

    nbytes = 0

    def __init__(self) -> None:
        self.boundary = 0

    def live_codes(self) -> Iterator[Int64Array]:
        """No TEXT is kept."""
        return iter(())

    def arrays(self) -> dict[str, AnyArray]:
        return {"boundary": np.array([self.boundary], np.int64)}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        self.boundary = int(state["boundary"][0])


class Bounds(Operator):
    """spec: of the window that the input comes from, whose rows leave in the order in which they came.

    O(rows that the window holds) at each multiple of L.
    """

    name = "Bounds"

    def __init__(self, input_: Queue, spec: WindowSpec) -> None:
        super().__init__([input_], input_.schema + BOUNDS)
        assert spec.range_ is not None and spec.step is not None
        self.spec = spec
        self._length, self._step = spec.range_, spec.step
        self._stub = Stub(input_.schema)
        self._shown = Shown()

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        """A run of boundaries between two changes of the window, or one at which it changes, at a time."""
        stub, batch = self._stub, batches[0]
        entered = left = NO_INSTANTS
        if batch is not None:
            enters = batch.signs > 0
            entered, left = batch.ts[enters], batch.ts[~enters]
            if len(entered):
                stub.receive(batch.take(enters))
        lo, hi, last = stub.lo, stub.hi - len(entered), until // self._step * self._step
        numbers = stub.seq(lo, stub.hi)
        changes = np.unique(np.concatenate([entered, left]))
        for change in [*changes.tolist(), None]:
            # While nothing changes, what the window holds is shown anew at each boundary.
            quiet_until = last if change is None else change - self._step
            if lo < hi:
                first = self._shown.boundary + self._step
                for at in range(first, quiet_until + 1, self._step):
                    yield from self._show(at, (lo, hi), (lo, hi), numbers)
            if change is not None:
                new_lo = stub.lo + int(np.searchsorted(left, change, "right"))
                new_hi = stub.hi - len(entered) + int(np.searchsorted(entered, change, "right"))
                yield from self._show(change, (lo, hi), (new_lo, new_hi), numbers)
                lo, hi = new_lo, new_hi
        stub.lo, stub.mid = lo, hi
        stub.settle()

    def _show(self, at: int, old: tuple[int, int], new: tuple[int, int], numbers: Int64Array) -> Iterator[Batch]:
        """The rows at positions `old` leave and those at `new` enter."""
        self._shown.boundary = at
        for (start, stop), end, sign in ((old, at - self._step, -1), (new, at, 1)):
            for part in range(start, stop, _LARGEST_OUTPUT):
                positions = slice(part - self._stub.lo, min(part + _LARGEST_OUTPUT, stop) - self._stub.lo)
                yield self._rows(at, sign, end, numbers[positions])

    def _rows(self, at: int, sign: int, end: int, numbers: Int64Array) -> Batch:
        store, n = self._stub.store, len(numbers)
        assert store is not None
        columns = [store.gather(i, numbers) for i in self._stub.source_columns]
        bounds = [Column(np.full(n, bound, np.int64)) for bound in (end - self._length, end)]
        return Batch(np.full(n, at, np.int64), np.full(n, sign, np.int8), [*columns, *bounds], numbers)

    def wakes_at(self) -> int:
        """The next boundary, while the window holds a row."""
        return self._shown.boundary + self._step if self._stub.lo < self._stub.mid else MAX_INSTANT

    def describe(self) -> Description:
        figures = {"rows": len(self._stub), "bytes": self._stub.nbytes}
        return Description(self.name, self.spec.text(self.inputs[0].schema), figures)

    def close(self) -> None:
        """Give up the claim on the store."""
        self._stub.release()

    def synopses(self) -> tuple[Stub | Shown, ...]:
        return (self._stub, self._shown)
