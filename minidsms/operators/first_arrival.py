"""FirstArrival: the instant from which an aggregate without GROUP BY has its one row.

Invariant: at most one element is ever put out, at the least ts over all inputs.
docs/semantics R3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from minidsms.elements import AnyArray, Batch, Int64Array
from minidsms.operators.operator import Description, Operator
from minidsms.operators.window_events import NO_COLUMNS, instants_only
from minidsms.queues import Queue


class Started:
    """Whether the first arrival has been."""

    def __init__(self) -> None:
        self.ts: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return 0

    def live_codes(self) -> Iterator[Int64Array]:
        """No TEXT is kept."""
        return iter(())

    def arrays(self) -> dict[str, AnyArray]:
        """The state."""
        return {"started": np.array([] if self.ts is None else [self.ts], np.int64)}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Take back what `arrays` gave."""
        self.ts = int(state["started"][0]) if len(state["started"]) else None


class FirstArrival(Operator):
    """One element without columns at the first arrival in any of the streams (or first change of any base relation)."""

    name = "FirstArrival"
    acts_on_time = False

    def __init__(self, inputs: Sequence[Queue]) -> None:
        super().__init__(inputs, NO_COLUMNS)
        self._started = Started()

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        if self._started.ts is not None:
            return ()
        first = min((int(batch.ts[0]) for batch in batches if batch is not None), default=None)
        if first is None:
            return ()
        self._started.ts = first
        return (instants_only(np.array([first], np.int64)),)

    def describe(self) -> Description:
        return Description(self.name, f"of {len(self.inputs)} inputs", {"at": self._started.ts})

    def synopses(self) -> tuple[Started, ...]:
        return (self._started,)
