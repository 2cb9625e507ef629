"""What is left to know of rows that no later row can change, by partition: how many there were, and their aggregate.

Invariant: rows are taken in order, and those equal in the sort keys together.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from minidsms.aggregates.over import Accumulator
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
        return copy.copy(self.aggregate)


class PassedRows:
    """The partitions of which rows have passed, by the keys of the partition."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[Any, ...], Passed] = {}

    @property
    def nbytes(self) -> int:
        """Bytes held, about."""
        return len(self.partitions) * _PARTITION_BYTES

    def arrays(self) -> dict[str, AnyArray]:
        """The state, pickled."""
        return {"partitions": np.frombuffer(pickle.dumps(self.partitions), np.uint8)}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Take back what `arrays` gave."""
        self.partitions = pickle.loads(state["partitions"].tobytes())

    def live_codes(self) -> Iterable[Int64Array]:
        """None: texts stand here as texts."""
        return ()
