"""What is left to know of rows that no later row can change, by partition: how many there were, and their aggregate.

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


class Passed:
    """Of one partition. rows: how many have passed.  keys: how many different sort keys they had."""

    def __init__(self, aggregate: Accumulator | None) -> None:
        self.rows = 0
        self.keys = 0
        self.aggregate = aggregate

    def further(self) -> Any:
        """The aggregate, to be carried on beside this one."""
        if self.aggregate is None:
            return None
        held = vars(self.aggregate)
        further = object.__new__(type(self.aggregate))
        vars(further).update({name: held[name][:] if isinstance(held[name], list) else held[name] for name in held})
        return further


class PassedRows:
    """The partitions of which rows have passed, by their values of PARTITION BY."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[Any, ...], Passed] = {}

    @property
    def nbytes(self) -> int:
        """Bytes held, about."""
        return len(self.partitions) * _PARTITION_BYTES

    def arrays(self) -> dict[str, AnyArray]:
        """The state as JSON: of each partition its keys, its counts, and what its aggregate holds."""
        states = [
            (
                [(2,) if value is None else (1, value) for value in keys],
                passed.rows,
                passed.keys,
                None if kept is None else (type(kept).__name__, vars(kept)),
            )
            for keys, passed in self.partitions.items()
            for kept in [passed.aggregate]
        ]
        return {"partitions": np.frombuffer(json.dumps(states).encode(), np.uint8)}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Take back what `arrays` gave."""
        self.partitions = {}
        for keys, rows, different, kept in json.loads(state["partitions"].tobytes()):
            passed = Passed(None if kept is None else _aggregate(*kept))
            passed.rows, passed.keys = rows, different
            self.partitions[tuple(value[0] if value else None for _, *value in keys)] = passed

    def live_codes(self) -> Iterable[Int64Array]:
        """None: texts stand here as texts."""
        return ()


def _aggregate(kind: str, held: Mapping[str, Any]) -> Accumulator:
    new: tuple[Accumulator, ...] = (Count(), Extreme(True, True), Place(1, True), Total(False))
    made = next(each for each in new if type(each).__name__ == kind)
    vars(made).update(held)
    return made
