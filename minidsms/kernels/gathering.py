"""Columns of elements out of a store's ring, all in one call.

A column is known by its row in the table of places that the store keeps (`kernels.addresses`), so that a kernel takes
any number of columns of any type: a value is a word, BOOLEAN 0 or 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidsms.kernels.addresses import PLACE_WORDS, VALID, VALUES, WIDTH
from minidsms.kernels.join_layout import JoinInput
from minidsms.kernels.links import upper_half
from minidsms.machine_code import BoolTable, Int8Table, Int64s, Int64Table, Rows, byte_at, helper, kernel, word_at

OF_INPUT, OF_MASK, NULL_BIT, SOURCE_WORDS = range(PLACE_WORDS, PLACE_WORDS + 4)
"""Behind the place of a column that tuples show: the input, and the mask of its store. Of a bag, whose rows stand as
words one behind the other: how many words a row has, and, where VALID is a word of each, which bit says NULL.
"""


@kernel
def gather(places: Int64Table, mask: int, numbers: Int64s, seq: Int64s, words: Int64Table, valid: Int8Table) -> None:
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


@kernel
def gather_rows(
    places: Int64Table, mask: int, numbers: Int64s, nodes: Int64s, rows: int, of_slots: int, slots: Int64s,
    words: Int64Table, present: BoolTable,
) -> bool:  # fmt: skip
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


@helper(inline=True)
def _is_there(source: np.ndarray, is_bag: bool, at: int) -> Any:
    """The value of a column at a place is one."""
    valid = source[VALID]
    if valid == 0:
        return True
    if is_bag:
        return (word_at(valid, at) >> source[NULL_BIT]) & 1 == 0
    return byte_at(valid, at) != 0


@kernel
def gather_tuples(
    columns: Int64Table,
    nodes: Int64s,
    inputs: Rows[JoinInput],
    slots: Int64Table,
    ts: Int64s,
    found: int,
    words: Int64Table,
    present: BoolTable,
) -> bool:
    """The same of the first tuples found, a slot of each input, with their instants; of slot -1 all is NULL.

    columns: (c, SOURCE_WORDS).  words: (1 + c, found), the first row for the instants.  present: (c, found), or empty
    where no column has a mask and no slot is -1.  Returns whether one is.
    """
    some_missing = False
    for k in range(found):
        words[0, k] = ts[k]
    for i in range(len(inputs)):
        last = -1
        for c in range(len(columns)):
            if columns[c, OF_INPUT] == i:
                last = c
        if last < 0:
            continue
        is_bag, is_missing = inputs[i].is_bag != 0, False
        rows, of_slots, mask = inputs[i].nodes, inputs[i].mask, columns[last, OF_MASK]
        # Where the rows stand is looked up once, and kept where the last column will be.
        for k in range(found):
            slot = slots[i, k]
            if slot < 0:
                words[1 + last, k] = -1
                is_missing = True
            elif is_bag:
                words[1 + last, k] = slot * mask
            else:
                words[1 + last, k] = _place_of(slot, nodes, rows, of_slots, mask)
        for c in range(last + 1):
            if columns[c, OF_INPUT] == i:
                values, is_word = columns[c, VALUES], columns[c, WIDTH] == 8
                for k in range(found if len(present) > 0 else 0):
                    at = words[1 + last, k]
                    present[c, k] = at >= 0 and _is_there(columns[c], is_bag, at)
                if is_missing:
                    for k in range(found):
                        at = words[1 + last, k]
                        words[1 + c, k] = 0 if at < 0 else word_at(values, at) if is_word else byte_at(values, at)
                elif is_word:
                    for k in range(found):
                        words[1 + c, k] = word_at(values, words[1 + last, k])
                else:
                    for k in range(found):
                        words[1 + c, k] = byte_at(values, words[1 + last, k])
        some_missing |= is_missing
    return some_missing
