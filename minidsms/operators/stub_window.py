"""What windows over a stub have in common: its rows are theirs.

docs/semantics W1 to W7; Babu 2005, section 2.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from minidsms.elements import Batch, Int64Array
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.queues import Queue
from minidsms.synopses.stream_store import StreamStore
from minidsms.synopses.stub import Stub


class StubWindow(Resuming):
    """store, copies: see `Stub`."""

    def __init__(self, input_: Queue, store: StreamStore | None, copies: bool) -> None:
        super().__init__([input_], input_.schema)
        self.stub = Stub(input_.schema, store, copies)

    def described(self, detail: str) -> Description:
        """The window in words, rows and bytes held."""
        stub = self.stub
        figures = {"rows": len(stub), "waiting": stub.hi - stub.mid, "bytes": stub.nbytes}
        return Description(self.name, detail, figures)

    def present(self) -> Batch:
        return self.stub.contents()

    def codes(self) -> Iterable[Int64Array]:
        return self.stub.codes()

    def close(self) -> None:
        """Give up the claim on the store."""
        self.stub.release()

    def synopses(self) -> tuple[Stub, ...]:
        return (self.stub,)
