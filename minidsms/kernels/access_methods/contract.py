"""What an access method is: it gives every row of a window a *tag*, and says which tags a step of a pipeline asks for.

Rows stand in buckets by their tags, and a walk goes along a bucket (`kernels.chains`). Nothing else is asked of a
method, in numpy by `AccessMethod` and in kernels by `methods.first_tag` and `methods.next_tag`.

Invariant: two rows that the condition may join have a tag in common among those one of them has and the other asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from minidsms.elements import Int64Array

if TYPE_CHECKING:
    from minidsms.kernels.access_methods.bit_addresses import Bits

Key = tuple[int, ...]
"""A key of an input: its column, or several, whose hash it is; none: every row has the same. Negative: cells."""
Slots = Int64Array | range


class Part(NamedTuple):
    """Of a tag: a key of an input visited.  reach: how far from its cell the other one lies; 0 of a word."""

    input: int
    key: int
    reach: int = 0


@dataclass(frozen=True)
class Known:
    """What a step knows of the rows it visits.  parts: what its tag is made of.  columns: the part that gives each
    column compared.  configurations: under which the rows have bit addresses (`bit_addresses`), of these columns of the
    input.  is_order: the cells are those of an order.
    """

    parts: Sequence[Part]
    columns: Mapping[int, Part] = field(default_factory=dict)
    configurations: Sequence[tuple[int, Bits]] = ()
    of: Sequence[int] = ()
    is_order: bool = False


class Asked(NamedTuple):
    """How a step asks: `hashed` and `reach` of the step, and rows behind its checks (`kernels.join_layout`)."""

    hashed: int
    reach: int
    rows: Sequence[tuple[int, int, int, int]] = ()


class Indexed(Protocol):
    """The windows of a join, as access methods see them (`synopses.window_index`)."""

    nodes: Int64Array

    def write_words(self, i: int, x: int, column: int, slots: Slots) -> None:
        """Write a column's words, and whether they are NULL, into key x of these slots of input i."""

    def place_of(self, i: int, x: int) -> tuple[int, int]:
        """Where the nodes of key x of input i begin, and the mask of its slots."""

    def parts_of(self, i: int, key: Key) -> Int64Array:
        """Where the nodes of these columns of input i begin."""

    def take_cells(self, i: int, x: int, column: int, slots: Int64Array) -> None:
        """Make cells of the words of key x."""

    def newest_configuration(self, i: int) -> tuple[int, Int64Array]:
        """The number of the configuration of rows to come, and of each column with bits where its nodes begin, shift
        and place, (p, 3).
        """


class AccessMethod(Protocol):
    """One way to find rows."""

    def is_of(self, key: Key) -> bool:
        """Rows are found by such a key in this way."""

    def fill(self, index: Indexed, i: int, x: int, key: Key, slots: Slots) -> None:
        """Write the tags of these slots of input i into key x. The keys before it are written."""

    def ask(self, known: Known) -> Asked:
        """How a step asks for the rows that it knows so much of."""


def array_of(slots: Slots) -> Int64Array:
    """The slots one by one."""
    return np.arange(slots.start, slots.stop) if isinstance(slots, range) else slots
