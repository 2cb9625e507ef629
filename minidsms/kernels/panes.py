"""Pre-aggregation by panes: what comes between two multiples of a slide, as one row per group.

A pane's rows stand in `rows` (cap, w) int64, one cache line or two each, and are found by their keys:
  [words of the keys (k), bits of their NULLs, measures (m), bits of those that are not NULL, slot]
  slots   (2^x,) int32   open addressing with linear probing: a row, or -1; `slot` says where a row stands
The extremes are kept as keys of which the least is the extreme, as in `kernels.grouping`, NO_EXTREME at first. When an
element comes that is past the pane's end its rows are written out, as columns, and the next pane begins with an empty
table.

A sum of a pane never overflows: an element with which it would begins another row of its group.
Li et al. 2005, No pane, no gain; docs/semantics W6, W9.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from minidsms.kernels.addresses import VALID, VALUES, WIDTH
from minidsms.machine_code import Int32s, Int64s, Int64Table, byte_at, helper, int64, kernel, uint64, word_at

SUM, ROWS, COUNT, LEAST, GREATEST = range(5)
KIND, COLUMN, IS_FLOAT = range(3)
"""Columns of `measures`, a row per measure, sums first: what it is, of which row of `places`."""
AT, END, USED, OUT, STATE_SIZE = range(5)
"""Words of `state`: the element to go on with; the pane's end; its rows; rows put out."""
HASHES, NULLS, FOUND, WORDS = range(4)
"""Rows of `keys`, (WORDS + k, b), of a block of b elements: a hash of each, bits of its NULLs, its row; from
WORDS on, the words of the keys.
"""
_LARGEST = NO_EXTREME = 0x7FFFFFFFFFFFFFFF
"""No key of an extreme is greater."""
SEED = 0x1E3779B97F4A7C15


class Asked(NamedTuple):
    """k: key columns, the first of `places`.  measures: see KIND, `sums` of them sums.  slide, lag: panes end `lag`
    ticks before the multiples of slide.
    """

    k: int
    measures: Int64Table
    sums: int
    slide: int
    lag: int


class Pane(NamedTuple):
    """The table of the pane that is open."""

    slots: Int32s
    rows: Int64Table


class Finished(NamedTuple):
    """ts (room,): the panes' ends.  words (w - 1, room): the rows, without their slots."""

    ts: Int64s
    words: Int64Table


@helper("int64(int64, int64)")
def mixed(h: int, word: int) -> int:
    """A word of a key mixed into what its former words gave."""
    x = (uint64(h) ^ uint64(word)) * uint64(0xD6E8FEB86659FD93)
    return int64(x ^ (x >> uint64(32)))


@helper("boolean(int64[:,::1], int64, int64)")
def _is_present(places: np.ndarray, column: int, at: int) -> bool:
    """The value is not NULL."""
    return places[column, VALID] == 0 or byte_at(places[column, VALID], at) != 0


@helper(typed=True)
def end_of_pane(asked: Asked, ts: int) -> int:
    """Of the pane that an instant belongs to."""
    over = (ts + asked.lag) % asked.slide
    return ts + (asked.slide - over) if over > 0 else ts


@helper(typed=True)
def end_pane(asked: Asked, pane: Pane, state: Int64s, finished: Finished) -> None:
    """Write the pane's rows out, and empty it."""
    k, measures = asked.k, asked.measures
    slots, rows = pane.slots, pane.rows
    ts, words = finished.ts, finished.words
    slot = rows.shape[1] - 1
    out = state[OUT]
    for r in range(state[USED]):
        ts[out] = state[END]
        for c in range(slot):
            words[c, out] = rows[r, c]
        for j in range(asked.sums, measures.shape[0]):
            if measures[j, KIND] >= LEAST:
                key = rows[r, k + 1 + j]
                if measures[j, KIND] == GREATEST:
                    key = ~key
                key ^= (key >> 63) & (_LARGEST * measures[j, IS_FLOAT])
                words[k + 1 + j, out] = key if rows[r, slot - 1] >> j & 1 else 0
        slots[rows[r, slot]] = -1
        out += 1
    state[OUT] = out
    state[USED] = 0


@helper(typed=True)
def _read_keys(places: Int64Table, k: int, first: int, n: int, keys: Int64Table) -> None:
    """Words and NULLs of the keys of elements [first, first + n), and a hash of both."""
    hashes, nulls = keys[HASHES], keys[NULLS]
    for e in range(n):
        hashes[e] = int64(SEED)
        nulls[e] = 0
    for c in range(k):
        values, present, words = places[c, VALUES], places[c, VALID], keys[WORDS + c]
        if places[c, WIDTH] == 8:
            for e in range(n):
                words[e] = word_at(values, first + e)
        else:
            for e in range(n):
                words[e] = byte_at(values, first + e)
        if present != 0:
            for e in range(n):
                nulls[e] |= int64(byte_at(present, first + e) == 0) << c
        for e in range(n):
            hashes[e] = mixed(hashes[e], words[e])
    for e in range(n):
        hashes[e] = mixed(hashes[e], nulls[e])


@helper(typed=True)
def _find_rows(
    places: Int64Table, asked: Asked, pane: Pane, first: int, n: int, keys: Int64Table, state: Int64s
) -> int:
    """The rows of elements [first, first + n) into keys[FOUND], and their sums into the rows; returns how many are
    done: n, or those before one for which there is no room.
    """
    k, measures, sums = asked.k, asked.measures, asked.sums
    slots, rows = pane.slots, pane.rows
    hashes, nulls, found, words = keys[HASHES], keys[NULLS], keys[FOUND], keys[WORDS:]
    mask = len(slots) - 1
    slot_at = rows.shape[1] - 1
    for e in range(n):
        at = (hashes[e] >> 1) & mask
        r = int64(slots[at])
        while r >= 0:
            equal = rows[r, k] == nulls[e]
            for c in range(k):
                equal = equal and rows[r, c] == words[c, e]
            if equal:
                break
            at = (at + 1) & mask
            r = int64(slots[at])
        fits = r >= 0
        if fits and sums > 0:
            for j in range(sums):
                if _is_present(places, measures[j, COLUMN], first + e):
                    value = word_at(places[measures[j, COLUMN], VALUES], first + e)
                    before = rows[r, k + 1 + j]
                    total = before + value
                    fits = fits and ((before ^ total) & (value ^ total)) >= 0
        if not fits:
            r = state[USED]
            if r == rows.shape[0]:
                return e
            state[USED] = r + 1
            for c in range(k):
                rows[r, c] = words[c, e]
            rows[r, k] = nulls[e]
            for j in range(len(measures)):
                rows[r, k + 1 + j] = NO_EXTREME if measures[j, KIND] >= LEAST else 0
            rows[r, slot_at - 1] = 0
            rows[r, slot_at] = at
            slots[at] = r
        for j in range(sums):
            if _is_present(places, measures[j, COLUMN], first + e):
                rows[r, k + 1 + j] += word_at(places[measures[j, COLUMN], VALUES], first + e)
                rows[r, slot_at - 1] |= int64(1) << j
        found[e] = r
    return n


@helper(typed=True)
def _measure(
    places: Int64Table, measures: Int64Table, j: int, at: int, first: int, found: Int64s, rows: Int64Table
) -> None:
    """Take a measure other than a sum of elements from `first` on, whose rows were found."""
    kind, column = measures[j, KIND], measures[j, COLUMN]
    values, present = places[column, VALUES], places[column, VALID]
    present_at = rows.shape[1] - 2
    is_word = places[column, WIDTH] == 8
    if kind == ROWS or (kind == COUNT and present == 0):
        for e in range(len(found)):
            rows[found[e], at] += 1
    elif kind == COUNT:
        for e in range(len(found)):
            rows[found[e], at] += byte_at(present, first + e)
    else:
        turn = -int64(kind == GREATEST)
        some = int64(1) << j
        of_floats = _LARGEST * measures[j, IS_FLOAT]
        for e in range(len(found)):
            if present != 0 and byte_at(present, first + e) == 0:
                continue
            word = word_at(values, first + e) if is_word else int64(byte_at(values, first + e))
            key = word ^ ((word >> 63) & of_floats) ^ turn
            r = found[e]
            rows[r, at] = min(rows[r, at], key)
            rows[r, present_at] |= some


@kernel
def take_elements(
    ts: Int64s,
    places: Int64Table,
    asked: Asked,
    pane: Pane,
    until: int,
    keys: Int64Table,
    state: Int64s,
    finished: Finished,
) -> bool:
    """Take elements in, and end the panes that are over at `until`; False where the pane has no room for a row.

    places: of the columns read (`kernels.addresses`), values in the order of the elements.  keys: room for a block, see
    HASHES.  state[AT] and state[OUT] are 0 at first.  finished: has room for a row per element, and those of the pane.
    """
    k, measures, sums = asked.k, asked.measures, asked.sums
    rows = pane.rows
    i = state[AT]
    while i < len(ts):
        if ts[i] > state[END]:
            end_pane(asked, pane, state, finished)
            state[END] = end_of_pane(asked, ts[i])
        stop = min(len(ts), i + keys.shape[1])
        if ts[stop - 1] > state[END]:
            low = i + 1
            stop -= 1
            while low < stop:
                middle = (low + stop) // 2
                if ts[middle] <= state[END]:
                    low = middle + 1
                else:
                    stop = middle
        _read_keys(places, k, i, stop - i, keys)
        done = _find_rows(places, asked, pane, i, stop - i, keys, state)
        for j in range(sums, measures.shape[0]):
            _measure(places, measures, j, k + 1 + j, i, keys[FOUND, :done], rows)
        i += done
        if i < stop:
            state[AT] = i
            return False
    if state[END] <= until:
        end_pane(asked, pane, state, finished)
    state[AT] = i
    return True


@kernel
def enter_rows(k: int, pane: Pane, used: int) -> None:
    """Enter the rows below `used` into slots that are all -1."""
    slots, rows = pane.slots, pane.rows
    mask = len(slots) - 1
    slot_at = rows.shape[1] - 1
    for r in range(used):
        h = int64(SEED)
        for c in range(k + 1):
            h = mixed(h, rows[r, c])
        at = (h >> 1) & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        rows[r, slot_at] = at
        slots[at] = r
