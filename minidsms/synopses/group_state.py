"""What an aggregate keeps per group: arrays with a row per group id.

Invariant: a row of a group without values is all zeros, so an id can be given to another group as it is; the arrays
are as long as the key table's capacity. Everything here is exact under removal: what came and left leaves no trace.
Babu 2005, section 2.2.1 (aggregation synopses); docs/design, point 11.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from minidsms.elements import AnyArray, Batch, Column, Int8Array, Int64Array, Type
from minidsms.kernels import aggregation as kernels
from minidsms.synopses.key_table import NO_ARRIVALS, ArrivalRing, KeyTable


class Argument(NamedTuple):
    """An argument of aggregates: of each element the word, whether it is not NULL, and its weight, as
    `kernels.aggregation` says.
    """

    words: Int64Array
    valid: Int8Array
    weight: Int8Array


@dataclass(slots=True)
class Run:
    """A batch on its way through the aggregates of an operator.

    ids: the group of each element.  results, status: (n, k), what aggregate j answers after element i (see
    `kernels.aggregation`); floats is results seen as float64.
    """

    batch: Batch
    ts: Int64Array
    sign: Int8Array
    ids: Int64Array
    results: Int64Array
    floats: npt.NDArray[np.float64]
    status: Int8Array


ROOM_BYTES = 18
"""Of a result per element: the answer itself, or the old and the new one put out, each with its status."""


def take_freely(nbytes: int) -> None:
    """A claim that nobody refuses."""


class GroupArrays:
    """Base of all per-group state: named arrays that grow, are renumbered, and go out and come back together."""

    def __init__(self, **widths: tuple[int, Any]) -> None:
        """widths: name=(columns, dtype)."""
        self.tables: dict[str, AnyArray] = {name: np.zeros((0, w), dtype) for name, (w, dtype) in widths.items()}

    @property
    def nbytes(self) -> int:
        return sum(table.nbytes for table in self.tables.values())

    def resize(self, capacity: int) -> None:
        """Rows for all ids below capacity."""
        for name, table in self.tables.items():
            if len(table) < capacity:
                self.tables[name] = np.concatenate(
                    [table, np.zeros((capacity - len(table), table.shape[1]), table.dtype)]
                )

    def renumber(self, kept: Int64Array, capacity: int) -> None:
        """Row i becomes what row kept[i] was."""
        for name, table in self.tables.items():
            new = np.zeros((capacity, table.shape[1]), table.dtype)
            new[: len(kept)] = table[kept]
            self.tables[name] = new

    def arrays(self, live: Int64Array) -> dict[str, AnyArray]:
        """The state of these groups, in this order."""
        return {name: table[live] for name, table in self.tables.items()}

    def restore(self, arrays: dict[str, AnyArray], capacity: int) -> None:
        """Take a state back: groups are numbered 0, 1, .. in its order."""
        for name, table in self.tables.items():
            self.tables[name] = np.array(arrays[name], table.dtype, order="C", ndmin=2)
        self.resize(capacity)

    def settle(self, n: int) -> None:
        """Give memory back where most of it is free. Called after each batch, of n elements."""

    def live_codes(self) -> Iterable[Int64Array]:
        return ()


class DistinctValues:
    """How often each group has each value: what lets an aggregate weigh equal values once.

    is_fifo: deletions come in the order of insertions, so that a value that leaves need not be looked up.
    """

    def __init__(self, arg_type: Type, is_fifo: bool = False) -> None:
        self.pairs = KeyTable(2, (1,) if arg_type.is_coded else ())
        self.counts: Int64Array = np.zeros((self.pairs.capacity), np.int64)
        self.arrivals = ArrivalRing() if is_fifo else None

    @property
    def nbytes(self) -> int:
        return self.pairs.nbytes + self.counts.nbytes + (0 if self.arrivals is None else self.arrivals.nbytes)

    def weigh(self, ids: Int64Array, argument: Argument) -> None:
        """The weights under DISTINCT: +1 where a value comes first to its group, -1 where the last of it leaves."""
        words, _, weight = argument
        present = NO_ARRIVALS if self.arrivals is None else self.arrivals.parts(weight)
        done = 0
        while True:
            done = kernels.weigh_distinct(done, ids, words, weight, self.pairs.parts, *present, self.counts)
            if done == len(ids):
                break
            self.grow()
        self.settle()

    def grow(self) -> None:
        """Twice the room for pairs."""
        self.pairs.grow()
        self.counts = np.concatenate([self.counts, np.zeros_like(self.counts)])

    def settle(self) -> None:
        """Give memory back if most pairs are free."""
        self._take(self.pairs.compact())

    def _take(self, kept: Int64Array | None) -> None:
        if kept is not None:
            counts = np.zeros(self.pairs.capacity, np.int64)
            counts[: len(kept)] = self.counts[kept]
            self.counts = counts
            if self.arrivals is not None:
                self.arrivals.renumber(kept)

    def resize(self, capacity: int) -> None:
        """Groups are words of the pairs here: nothing to make room for."""

    def renumber(self, kept: Int64Array, capacity: int) -> None:
        """Group kept[i] is group i from now on."""
        self._take(self.pairs.compact(remap=(0, _places(kept))))

    def arrays(self, live: Int64Array) -> dict[str, AnyArray]:
        """The state, with groups numbered as in live."""
        keys = self.pairs.arrays()["keys"]
        keys[:, 0] = _places(live)[keys[:, 0]]
        held = self.pairs.live()
        arrivals = {} if self.arrivals is None else self.arrivals.arrays(held)
        return {"keys": keys, "counts": self.counts[held], **arrivals}

    def restore(self, arrays: dict[str, AnyArray], capacity: int) -> None:
        self.pairs.restore({"keys": arrays["keys"]})  # type: ignore[dict-item]
        self.counts = np.zeros(self.pairs.capacity, np.int64)
        self.counts[: len(arrays["counts"])] = arrays["counts"]
        if self.arrivals is not None:
            self.arrivals.restore(arrays)

    def live_codes(self) -> Iterable[Int64Array]:
        return self.pairs.live_codes()


def contiguous_words(column: Column) -> Int64Array:
    """A column's words as kernels take them."""
    words = column.words() if column.values.flags.c_contiguous else Column(column.values.copy()).words()
    return words if words.flags.writeable else words.copy()


def _places(kept: Int64Array) -> Int64Array:
    """The new number of each old one."""
    places = np.zeros(int(kept.max()) + 1 if len(kept) else 1, np.int64)
    places[kept] = np.arange(len(kept))
    return places
