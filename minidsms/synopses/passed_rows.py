"""What is left to know of rows that no later row can change: their aggregate, by partition.

Invariant: rows are taken in order, and those equal in the sort keys together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from minidsms.aggregates.over import Accumulator, Count, Extreme, Place, Total
from minidsms.elements import AnyArray, Int64Array

_PARTITION_BYTES = 400
"""About what a partition takes."""


def further(passed: Accumulator) -> Accumulator:
    """An aggregate like this one, to be carried on beside it."""
    held = vars(passed)
    made: Accumulator = object.__new__(type(passed))
    vars(made).update({name: held[name][:] if isinstance(held[name], list) else held[name] for name in held})
    return made


class PassedRows:
    """The partitions of which rows have passed, by their values of PARTITION BY."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[Any, ...], Accumulator] = {}

    @property
    def nbytes(self) -> int:
        """Bytes held, about."""
        return len(self.partitions) * _PARTITION_BYTES

    def arrays(self) -> dict[str, AnyArray]:
        """The state as JSON: of each partition its keys, and what its aggregate holds."""
        states = [
            ([(2,) if value is None else (1, value) for value in keys], type(passed).__name__, vars(passed))
            for keys, passed in self.partitions.items()
        ]
        return {"partitions": np.frombuffer(json.dumps(states).encode(), np.uint8)}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Take back what `arrays` gave."""
        self.partitions = {
            tuple(value[0] if value else None for _, *value in keys): _aggregate(kind, held)
            for keys, kind, held in json.loads(state["partitions"].tobytes())
        }

    def live_codes(self) -> Iterable[Int64Array]:
        """None: texts stand here as texts."""
        return ()


def _aggregate(kind: str, held: Mapping[str, Any]) -> Accumulator:
    new: tuple[Accumulator, ...] = (Count(), Extreme(True, True), Place(1, True), Total(False))
    made = next(each for each in new if type(each).__name__ == kind)
    vars(made).update(held)
    return made
