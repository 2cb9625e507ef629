"""Pre-aggregation by panes: what comes between two multiples of a slide, as one row per group.

A pane's rows stand in `rows` (cap, w) int64, and are found by their keys:
  [words of the keys (k), bits: which keys are NULL, and from bit k on which measures are not, measures (m)]
  slots   (2^x,) int32   open addressing with double hashing: `base` + a row; less than that is nobody
The extremes are kept as keys of which the least is the extreme, as in `kernels.grouping`, NO_EXTREME at first. When an
element comes that is past the pane's end its rows are written out, as columns, and the next pane begins with an empty
table: with a base that no slot has reached.

A sum of a pane never overflows: an element with which it would begins another row of its group.
Li et al. 2005, No pane, no gain; docs/semantics W6, W9.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from minidsms.kernels.addresses import VALID, VALUES, WIDTH
from minidsms.machine_code import (
    Int32s,
    Int64s,
    Int64Table,
    Record,
    Rows,
    byte_at,
    helper,
    int64,
    kernel,
    uint64,
    word_at,
)

SUM, ROWS, COUNT, LEAST, GREATEST = range(5)
HASHES, NULLS, FOUND, WORDS = range(4)
"""Rows of `keys`, (WORDS + k, b), of a block of b elements: a hash of each, bits of its NULLs, its row; from
WORDS on, the words of the keys.
"""
_LARGEST = NO_EXTREME = 0x7FFFFFFFFFFFFFFF
"""No key of an extreme is greater."""
MOST_BASE = 1 << 30


class Measured(Record):
    """A measure. kind: what it is.  column: of which row of `places`."""

    kind: int
    column: int
    is_float: int


class PaneState(Record):
    """at: the element to go on with.  end: the pane's end.  used: its rows.  out: rows put out.  base: see above."""

    at: int
    end: int
    used: int
    out: int
    base: int


class Asked(NamedTuple):
    """k: key columns, the first of `places`.  measures: sums first, `sums` of them.  slide, lag: panes end `lag` ticks
    before the multiples of slide.
    """

    k: int
    measures: Rows[Measured]
    sums: int
    slide: int
    lag: int


class Pane(NamedTuple):
    """The table of the pane that is open.  shift: 64 - x."""

    slots: Int32s
    rows: Int64Table
    shift: int


class Finished(NamedTuple):
    """ts (room,): the panes' ends.  words (w, room): the rows."""

    ts: Int64s
    words: Int64Table


@helper("int64(int64, int64)")
def mixed(h: int, word: int) -> int:
    """A word of a key mixed into what its NULLs, and the words before, gave."""
    x = uint64(h)
    return int64((x ^ (x >> uint64(32)) ^ uint64(word)) * uint64(0xD6E8FEB86659FD93))


@helper("int64(int64, int64)")
def slot_of(h: int, shift: int) -> int:
    """Where to look first for keys that gave h: a multiplication has put those that follow one another far apart."""
    return int64(uint64(h) >> uint64(shift))


@helper("int64(int64, int64)")
def step_of(h: int, shift: int) -> int:
    """From slot to slot where others stand: odd, and not the same for all keys of one slot, as multiples of some number
    may be.
    """
    return int64((uint64(h) >> uint64(shift - 16)) | uint64(1))


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
def stop_of_pane(ts: Int64s, start: int, stop: int, end: int) -> int:
    """The first of the elements from start to stop that is past a pane's end, which the first one is not."""
    if ts[stop - 1] <= end:
        return stop
    low = start + 1
    stop -= 1
    while low < stop:
        middle = (low + stop) // 2
        if ts[middle] <= end:
            low = middle + 1
        else:
            stop = middle
    return stop


@helper(typed=True)
def end_pane(asked: Asked, pane: Pane, state: PaneState, finished: Finished) -> None:
    """Write the pane's rows out, and empty it."""
    k, measures = asked.k, asked.measures
    rows, used, out = pane.rows, state.used, state.out
    finished.ts[out : out + used] = state.end
    for c in range(rows.shape[1]):
        column = finished.words[c, out : out + used]
        for r in range(used):
            column[r] = rows[r, c]
    for j in range(asked.sums, measures.shape[0]):
        if measures[j].kind >= LEAST:
            turn, of_floats = -int64(measures[j].kind == GREATEST), _LARGEST * measures[j].is_float
            column = finished.words[k + 1 + j, out : out + used]
            for r in range(used):
                key = column[r] ^ turn
                key ^= (key >> 63) & of_floats
                column[r] = key if rows[r, k] >> (k + j) & 1 else 0
    state.out = out + used
    state.base += used
    state.used = 0
    if state.base > MOST_BASE:
        pane.slots[:] = -1
        state.base = 0


@helper(typed=True)
def _read_keys(places: Int64Table, k: int, first: int, n: int, keys: Int64Table) -> None:
    """Words and NULLs of the keys of elements [first, first + n), and a hash of both."""
    hashes, nulls = keys[HASHES], keys[NULLS]
    for e in range(n):
        nulls[e] = 0
    for c in range(k):
        present = places[c, VALID]
        if present != 0:
            for e in range(n):
                nulls[e] |= int64(byte_at(present, first + e) == 0) << c
    for e in range(n):
        hashes[e] = nulls[e]
    for c in range(k):
        values, words = places[c, VALUES], keys[WORDS + c]
        if places[c, WIDTH] == 8:
            for e in range(n):
                words[e] = word_at(values, first + e)
        else:
            for e in range(n):
                words[e] = byte_at(values, first + e)
        for e in range(n):
            hashes[e] = mixed(hashes[e], words[e])


@helper(typed=True)
def _find_rows(
    places: Int64Table, asked: Asked, pane: Pane, first: int, n: int, keys: Int64Table, state: PaneState
) -> int:
    """The rows of elements [first, first + n) into keys[FOUND], and their sums into the rows; returns how many are
    done: n, or those before one for which there is no room.
    """
    k, measures, sums = asked.k, asked.measures, asked.sums
    slots, rows, base = pane.slots, pane.rows, state.base
    hashes, nulls, found, words = keys[HASHES], keys[NULLS], keys[FOUND], keys[WORDS:]
    mask, of_keys = len(slots) - 1, (int64(1) << k) - 1
    for e in range(n):
        at = slot_of(hashes[e], pane.shift)
        r = slots[uint64(at)] - base
        while r >= 0:
            equal = rows[uint64(r), k] & of_keys == nulls[e]
            for c in range(k):
                equal = equal and rows[uint64(r), c] == words[c, e]
            if equal:
                break
            at = (at + step_of(hashes[e], pane.shift)) & mask
            r = slots[uint64(at)] - base
        fits = r >= 0
        if fits and sums > 0:
            for j in range(sums):
                if _is_present(places, measures[j].column, first + e):
                    value = word_at(places[measures[j].column, VALUES], first + e)
                    before = rows[uint64(r), k + 1 + j]
                    total = before + value
                    fits = fits and ((before ^ total) & (value ^ total)) >= 0
        if not fits:
            r = state.used
            if r == rows.shape[0]:
                return e
            state.used = r + 1
            for c in range(k):
                rows[uint64(r), c] = words[c, e]
            rows[uint64(r), k] = nulls[e]
            for j in range(len(measures)):
                rows[uint64(r), k + 1 + j] = NO_EXTREME if measures[j].kind >= LEAST else 0
            slots[uint64(at)] = base + r
        for j in range(sums):
            if _is_present(places, measures[j].column, first + e):
                rows[uint64(r), k + 1 + j] += word_at(places[measures[j].column, VALUES], first + e)
                rows[uint64(r), k] |= int64(1) << (k + j)
        found[e] = r
    return n


@helper(typed=True)
def _measure(
    places: Int64Table, k: int, measures: Rows[Measured], j: int, first: int, found: Int64s, rows: Int64Table
) -> None:
    """Take a measure other than a sum of elements from `first` on, whose rows were found."""
    kind, column = measures[j].kind, measures[j].column
    values, present = places[column, VALUES], places[column, VALID]
    at = k + 1 + j
    is_word = places[column, WIDTH] == 8
    if kind == ROWS or (kind == COUNT and present == 0):
        for e in range(len(found)):
            rows[uint64(found[e]), at] += 1
    elif kind == COUNT:
        for e in range(len(found)):
            rows[uint64(found[e]), at] += byte_at(present, first + e)
    else:
        turn = -int64(kind == GREATEST)
        some = int64(1) << (k + j)
        of_floats = _LARGEST * measures[j].is_float
        for e in range(len(found)):
            if present != 0 and byte_at(present, first + e) == 0:
                continue
            word = word_at(values, first + e) if is_word else int64(byte_at(values, first + e))
            key = word ^ ((word >> 63) & of_floats) ^ turn
            r = uint64(found[e])
            rows[r, at] = min(rows[r, at], key)
            rows[r, k] |= some


@kernel
def take_elements(
    ts: Int64s,
    places: Int64Table,
    asked: Asked,
    pane: Pane,
    until: int,
    keys: Int64Table,
    state: PaneState,
    finished: Finished,
) -> bool:
    """Take elements in, and end the panes that are over at `until`; False where the pane has no room for a row.

    places: of the columns read (`kernels.addresses`), values in the order of the elements.  keys: room for a block, see
    HASHES.  state.at and state.out are 0 at first.  finished: has room for a row per element, and those of the pane.
    """
    k, measures, sums = asked.k, asked.measures, asked.sums
    rows = pane.rows
    i = state.at
    while i < len(ts):
        if ts[i] > state.end:
            end_pane(asked, pane, state, finished)
            state.end = end_of_pane(asked, ts[i])
        stop = stop_of_pane(ts, i, min(len(ts), i + keys.shape[1]), state.end)
        _read_keys(places, k, i, stop - i, keys)
        done = _find_rows(places, asked, pane, i, stop - i, keys, state)
        for j in range(sums, measures.shape[0]):
            _measure(places, k, measures, j, i, keys[FOUND, :done], rows)
        i += done
        if i < stop:
            state.at = i
            return False
    if state.end <= until:
        end_pane(asked, pane, state, finished)
    state.at = i
    return True


@kernel
def enter_rows(k: int, pane: Pane, used: int) -> None:
    """Enter the rows below `used` into slots that are all -1; the base is 0 then."""
    slots, rows = pane.slots, pane.rows
    mask, of_keys = len(slots) - 1, (int64(1) << k) - 1
    for r in range(used):
        h = rows[r, k] & of_keys
        for c in range(k):
            h = mixed(h, rows[r, c])
        at = slot_of(h, pane.shift)
        while slots[at] >= 0:
            at = (at + step_of(h, pane.shift)) & mask
        slots[at] = r
