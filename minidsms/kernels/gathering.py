"""Columns of elements out of a store's ring, all in one call.

A column is known by its row in the table of places that the store keeps (`kernels.addresses`), so that a kernel takes
any number of columns of any type: a value is a word, BOOLEAN 0 or 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidsms.kernels.addresses import VALID, VALUES, WIDTH
from minidsms.kernels.links import upper_half
from minidsms.machine_code import byte_at, helper, kernel, word_at


@kernel("void(int64[:,::1], int64, int64[::1], int64[::1], int64[:,::1], int8[:,::1])")
def gather(
    places: np.ndarray, mask: int, numbers: np.ndarray, seq: np.ndarray, words: np.ndarray, valid: np.ndarray
) -> None:
    """words[c, i] = the word of element seq[i] in column numbers[c], valid[c, i] = whether it is one.

    words, valid: (c, >= n).
    """
    for c in range(len(numbers)):
        values = places[numbers[c], VALUES]
        present = places[numbers[c], VALID]
        if places[numbers[c], WIDTH] == 8:
            for i in range(len(seq)):
                words[c, i] = word_at(values, seq[i] & mask)
        else:
            for i in range(len(seq)):
                words[c, i] = byte_at(values, seq[i] & mask)
        if present == 0:
            for i in range(len(seq)):
                valid[c, i] = 1
        else:
            for i in range(len(seq)):
                valid[c, i] = byte_at(present, seq[i] & mask)


@helper(inline=True)
def _place_of(slot: int, nodes: np.ndarray, rows: int, of_slots: int, mask: int) -> Any:
    return upper_half(nodes, rows + 2 * (slot & of_slots)) & mask


@kernel("boolean(int64[:,::1], int64, int64[::1], int64[::1], int64, int64, int64[::1], int64[:,::1], boolean[:,::1])")
def gather_rows(
    places: np.ndarray,
    mask: int,
    numbers: np.ndarray,
    nodes: np.ndarray,
    rows: int,
    of_slots: int,
    slots: np.ndarray,
    words: np.ndarray,
    present: np.ndarray,
) -> bool:
    """The same of rows by their slots in a window, the nodes of which, from `rows` on, have their numbers, or the lower
    bits of them.  of_slots: the mask of slots.

    words, present: (c, n).  Returns whether a column has a mask; of one that has none, nothing is written to present.
    """
    some_masks = False
    last = len(numbers) - 1
    # Of several columns: where the rows stand in the store is looked up once, and kept where the last column will be.
    for k in range(len(slots) if last > 0 else 0):
        words[last, k] = _place_of(slots[k], nodes, rows, of_slots, mask)
    for c in range(len(numbers)):
        values = places[numbers[c], VALUES]
        valid = places[numbers[c], VALID]
        if valid != 0:
            some_masks = True
            for k in range(len(slots)):
                at = words[last, k] if last > 0 else _place_of(slots[k], nodes, rows, of_slots, mask)
                present[c, k] = byte_at(valid, at) != 0
        if places[numbers[c], WIDTH] == 8:
            for k in range(len(slots)):
                at = words[last, k] if last > 0 else _place_of(slots[k], nodes, rows, of_slots, mask)
                words[c, k] = word_at(values, at)
        else:
            for k in range(len(slots)):
                at = words[last, k] if last > 0 else _place_of(slots[k], nodes, rows, of_slots, mask)
                words[c, k] = byte_at(values, at)
    return some_masks
