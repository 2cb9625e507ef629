"""Rows found by cells of their columns: numbers that values close to each other share (`joins.bands`).

Where a difference is bounded from both sides cells are as wide as that. Where it is bounded from one side, cells are
those of an `Order`: of as many rows each, whatever lies beyond a cell is in the cells beyond.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from minidsms.elements import AnyArray, Column, Int64Array
from minidsms.kernels.access_methods.contract import Asked, Indexed, Key, Known, Slots, array_of
from minidsms.kernels.access_methods.hashes import combine
from minidsms.kernels.join_layout import JoinStep, Windows
from minidsms.kernels.links import has_link
from minidsms.kernels.mixing import mixed
from minidsms.machine_code import Float64s, Int64s, Int64Table, helper, int64, kernel

BY_ORDER = -2
"""As a step's `hashed`: its tags are cells in order, from that of `source_key` on up to the last one, or down to 0, as
`reach` says, which is 1 or -1."""

BY_CELLS = -3
"""As a step's `hashed`: its tags are hashes of words and cells. Behind its checks, where `checks_end` points to, stands
a row (how many tags, how many parts, 0, 0), and for each part a row (input, key, reach, 0): a word where reach is 0,
else a cell, in place of which the one so far away is asked for too. So the tags are those of all choices among the
cells."""

ROWS_OF_A_CELL = 16
LEAST_DIVIDED = 2 * ROWS_OF_A_CELL
"""Fewer rows are one cell of an order."""
MOST_CELLS = 128
"""Of an order: a step visits all on one side."""
SAMPLED = 4_096
"""Values that say where the cells of an order end."""
LEAST_BETWEEN_FITS = 64
"""Elements after which cells of an order follow the rows held, at least; else as many as rows are held."""

FARTHEST = 2.0**41
"""Cells of FLOATs farther from zero are one."""
NEAR_THE_END = 3 * 2**60
"""From here on a difference of integers and constants of less than 2^61 together may leave 64 bits."""
ROUNDED = 2.0**-46
"""Of FLOATs added up, how much of the greatest rounding may have taken: more than some hundred times the most."""
_NONE: Int64Array = np.zeros(0, np.int64)
_NO_FLOATS = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Cells:
    """column: of the window.  whole: shift, width and whether the column is of FLOATs.  real: shift and width where
    cells are counted in FLOATs, else empty.
    """

    column: int
    whole: Int64Array
    real: Float64s

    @classmethod
    def of(cls, column: int, shift: float, width: float, is_whole: bool, is_float: bool) -> Cells:
        """The cell of v is (v + shift) / width, rounded down; is_whole: in integers."""
        shift_and_width = [shift, width]
        if is_whole:
            return cls(column, np.array([*map(int, shift_and_width), is_float], np.int64), np.zeros(0))
        return cls(column, np.array([0, 1, is_float], np.int64), np.array(shift_and_width, np.float64))

    def take(self, nodes: Int64Array, base: int, mask: int, slots: Int64Array) -> bool:
        """Make cells of the column's words in the nodes of these slots; whether there was an integer near the ends of
        64 bits, where arithmetic may fail: its row must meet all others, those with NULLs too.
        """
        return bool(
            take_cells(nodes, nodes.view(np.float64), base, mask, slots, self.whole, self.real, _NONE, _NO_FLOATS)
        )


class Order:
    """Where the cells of two columns end, which are compared after one of them was moved: as many rows in each.

    least: the least values of the cells but the first, ascending.
    """

    def __init__(self, is_whole: bool) -> None:
        self.is_whole = is_whole
        self.least: AnyArray = np.zeros(0, np.int64 if is_whole else np.float64)

    @property
    def last(self) -> int:
        """The number of the last cell."""
        return len(self.least)

    def fit(self, values: Iterable[AnyArray], rows: int) -> None:
        """Cells for so many rows at a time, of values like these."""
        known = np.sort(np.concatenate([np.zeros(0, self.least.dtype), *values]))
        cells = min(MOST_CELLS, min(len(known), rows) // ROWS_OF_A_CELL)
        self.least = np.unique(known[np.arange(1, cells) * len(known) // max(cells, 1)])


@dataclass(frozen=True, eq=False)
class CellsInOrder:
    """column: of the window.  order: what the cells are of.  shift: added to the values.  greatest: of the constants
    that it was computed from, by which FLOATs are rounded; 0 where there are none.  is_float: the column is of FLOATs.
    """

    column: int
    order: Order
    shift: float
    greatest: float
    is_float: bool

    def values(self, column: Column) -> AnyArray:
        """What the rows of a column are ordered by; some of them, where there are many."""
        every = slice(None, None, max(1, len(column) // SAMPLED))
        present = column.values[every] if column.valid is None else column.values[every][column.valid[every]]
        if self.order.is_whole:
            return present.astype(np.int64) + int(self.shift)
        return present.astype(np.float64) + self.shift

    def take(self, nodes: Int64Array, base: int, mask: int, slots: Int64Array) -> bool:
        """As of `Cells`."""
        order = self.order
        least = (order.least, _NO_FLOATS) if order.is_whole else (_NONE, order.least)
        return bool(take_cells(nodes, nodes.view(np.float64), base, mask, slots, *self._moved, *least))

    @cached_property
    def _moved(self) -> tuple[Int64Array, Float64s]:
        """How values are moved, as `take_cells` takes it."""
        is_whole = self.order.is_whole
        whole = np.array([int(self.shift) if is_whole else 0, 0, self.is_float], np.int64)
        return whole, _NO_FLOATS if is_whole else np.array([self.shift, self.greatest], np.float64)


def elements_until_fit(rows: int) -> int:
    """After so many elements cells in order follow windows of so many rows again."""
    return max(LEAST_BETWEEN_FITS, rows)


def with_cells(patterns: Sequence[Key]) -> tuple[Key, ...]:
    """The patterns behind the keys of the cells that they are made of."""
    return (*((c,) for c in sorted({c for key in patterns for c in key if c < 0})), *patterns)


class ByCells:
    """See `AccessMethod`. A cell is asked for with one beside it, or with all on one side; several by their hash."""

    def is_of(self, key: Key) -> bool:
        """See `AccessMethod`: with cells among its columns."""
        return min(key, default=0) < 0

    def fill(self, index: Indexed, i: int, x: int, key: Key, slots: Slots) -> None:
        """See `AccessMethod`."""
        if len(key) == 1:
            index.write_words(i, x, key[0], slots)
            index.take_cells(i, x, key[0], array_of(slots))
        else:
            combine(index, i, x, key, slots)

    def ask(self, known: Known) -> Asked:
        """See `AccessMethod`."""
        parts, reach = known.parts, known.parts[0].reach
        if len(parts) == 1:
            return Asked(BY_ORDER if known.is_order else 0, reach)
        choices = 2 ** sum(part.reach != 0 for part in parts)
        return Asked(BY_CELLS, reach, [(choices, len(parts), 0, 0), *((*part, 0) for part in parts)])


@helper
def cells_tag(windows: Windows, checks: Int64Table, chosen: Int64s, at: int, choice: int) -> Any:
    """The tag that the slots chosen give for a choice among the cells of the parts at checks[at] (see BY_CELLS).

    choice: a bit for each part that is a cell, whether it is the one away.
    """
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    tag, left = int64(1), int64(choice)
    for p in range(at + 1, at + 1 + checks[at, 1]):
        f, reach = checks[p, 0], checks[p, 2]
        word = nodes[keys[checks[p, 1]].nodes + 2 * (chosen[f] & inputs[f].mask)]
        if reach != 0:
            word += (left & 1) * reach
            left >>= 1
        tag = mixed(tag, word)
    return tag


@helper
def next_cells(windows: Windows, checks: Int64Table, chosen: Int64s, at: int, tag: int) -> Any:
    """The tag of the choice behind the one that has this tag; the same where there is none."""
    choice = int64(0)
    while cells_tag(windows, checks, chosen, at, choice) != tag:
        choice += 1
    following, is_new = tag, False
    while not is_new and choice + 1 < checks[at, 0]:
        choice += 1
        following = cells_tag(windows, checks, chosen, at, choice)
        # A hash that two choices have in common is asked for once.
        is_new = True
        for before in range(choice):
            is_new &= cells_tag(windows, checks, chosen, at, before) != following
    return following if is_new else tag


@helper
def next_in_order(windows: Windows, step: JoinStep, tag: int) -> Any:
    """The cell of an order behind this one, on the side that the step asks for; the same where there is none."""
    end = windows.keys[step.probed].last_cell if step.reach > 0 else int64(0)
    return tag if tag == end else tag + step.reach


@helper
def next_beside(windows: Windows, step: JoinStep, chosen: Int64s, tag: int) -> Any:
    """The cell beside that of the slot chosen, behind that; the same where there is none."""
    origin = windows.nodes[
        windows.keys[step.source_key].nodes + 2 * (chosen[step.source] & windows.inputs[step.source].mask)
    ]
    return tag + step.reach if tag == origin else tag


@kernel
def take_cells(
    nodes: Int64s, reals: Float64s, base: int, mask: int, slots: Int64s, whole: Int64s, real: Float64s,
    least: Int64s, least_real: Float64s,
) -> int:  # fmt: skip
    """Make cells of the words in the nodes of these slots; returns how many integers are near the ends of 64 bits.

    reals: the nodes as FLOATs.  whole, real: see `Cells`. With a width of 0 in whole cells have as many rows each: that
    of a value is how many of the least values are not above it; real is then shift, and the greatest constant it was
    computed from, by which rounding is bounded.  least, least_real: of every cell but the first, ascending; one of them
    is empty.
    """
    wild, in_order = 0, whole[1] == 0
    for slot in slots:
        k = base + 2 * (slot & mask)
        if not has_link(nodes, k):
            continue
        word = nodes[k]
        if whole[2] == 0 and (word >= NEAR_THE_END or word <= -NEAR_THE_END):
            wild += 1
        elif len(real) == 0:
            moved = word + whole[0]
            nodes[k] = np.searchsorted(least, moved, side="right") if in_order else moved // whole[1]
        else:
            value = reals[k] if whole[2] != 0 else float(word)
            if not in_order:
                nodes[k] = int64(np.floor(min(max((value + real[0]) / real[1], -FARTHEST), FARTHEST)))
                continue
            if real[1] != 0.0 and abs(value) < np.inf:
                value += real[0] + ROUNDED * (abs(value) + real[1])
            nodes[k] = np.searchsorted(least_real, value, side="right")
    return int64(wild)
