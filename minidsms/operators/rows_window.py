"""RowsWindow: the last N arrivals.

Invariant: after the instant tau the window holds the last N of the arrivals with ts <= tau; with SLIDE M the last N of
the first floor(arrivals / M) * M arrivals. Equal instants are told apart by arrival.
docs/semantics W4, W7; Babu 2005, section 2.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from minidsms.elements import Batch
from minidsms.kernels.arrays import normal
from minidsms.operators.operator import Description
from minidsms.operators.stub_window import StubWindow
from minidsms.queues import Queue
from minidsms.synopses.stream_store import StreamStore
from minidsms.synopses.stub import NO_INSTANTS


class RowsWindow(StubWindow):
    """rows: N.  slide: M, or None (the same as 1).  store, copies: see `Stub`.

    With arrivals counted from 0, arrival a enters when the batch of M it belongs to is complete, with arrival
    (a // M + 1) * M - 1, and leaves with arrival ((a + N) // M + 1) * M - 1.
    """

    name = "RowsWindow"
    acts_on_time = False

    def __init__(
        self,
        input_: Queue,
        rows: int,
        slide: int | None = None,
        store: StreamStore | None = None,
        copies: bool = False,
    ) -> None:
        super().__init__(input_, store, copies)
        self.rows = rows
        self.slide = slide

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        batch = self.uncounted(batches[0])
        if batch is None:
            return ()
        stub, step = self.stub, self.slide or 1
        stub.receive(batch)
        mid = stub.hi - stub.arrived % step
        lo = max(stub.lo, mid - self.rows)
        n_ins, n_del = mid - stub.mid, lo - stub.lo
        if n_ins == 0:
            stub.settle()
            return ()
        del_at = del_seq = NO_INSTANTS
        if n_del:
            del_seq = stub.seq(stub.lo, lo)
        ins_at, ins_seq = normal(stub.ts(stub.mid, mid)), stub.seq(stub.mid, mid)
        if step == 1:
            if n_del:
                # What leaves first leaves with the first arrival that finds the window full.
                start = stub.lo + self.rows - stub.mid
                del_at = ins_at[start : start + n_del]
        else:
            # Arrival numbers relative to the old mid, which is a multiple of the step.
            came, ins_at = ins_at, ins_at[(np.arange(n_ins) // step + 1) * step - 1]
            leaving = np.arange(stub.lo - stub.mid, lo - stub.mid) + self.rows
            del_at = came[(leaving // step + 1) * step - 1]
        return stub.move(lo, mid, ins_at, ins_seq, del_at, del_seq)

    def describe(self) -> Description:
        detail = f"ROWS {self.rows}" + ("" if self.slide is None else f" SLIDE {self.slide}")
        return self.described(detail)
