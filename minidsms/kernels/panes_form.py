"""Pre-aggregation by panes whose keys and measures are constants, of elements without NULLs: a template.

As `kernels.panes`, over the same rows, but an element is taken into all measures before the next one.

Invariant: the rows, and what is written out of them, are those of `panes.take_elements`.
"""

from __future__ import annotations

from minidsms.kernels.addresses import VALUES
from minidsms.kernels.panes import (
    GREATEST,
    LEAST,
    NO_EXTREME,
    SUM,
    Asked,
    Finished,
    Pane,
    PaneState,
    end_of_pane,
    end_pane,
    mixed,
    slot_of,
    step_of,
    stop_of_pane,
)
from minidsms.machine_code import Int64s, Int64Table, byte_at, helper, int64, uint64, word_at
from minidsms.machine_code.templates import template

KEYS: tuple[int, ...] = (8,)
"""Bytes of a value, of each key."""
MEASURES: tuple[tuple[int, int, bool, int], ...] = ((SUM, 0, False, 8),)
"""Of each measure, sums first: what it is, of which row of places, whether of floats, bytes of a value."""

_KIND, _COLUMN, _FLOAT, _WIDTH = range(4)
_LARGEST = 0x7FFFFFFFFFFFFFFF


@helper("int64(int64, int64, int64)")
def _value_at(address: int, at: int, width: int) -> int:
    return word_at(address, at) if width == 8 else int64(byte_at(address, at))


@helper(typed=True)
def _is_of(places: Int64Table, pane: Pane, i: int, r: int) -> bool:
    """An element is of the group of a row."""
    equal = True
    for c in range(len(KEYS)):
        equal = equal and pane.rows[uint64(r), c] == _value_at(places[c, VALUES], i, KEYS[c])
    return equal


@helper(typed=True)
def _sums_fit(places: Int64Table, pane: Pane, i: int, r: int) -> bool:
    """No sum of the row overflows with the element."""
    fits = True
    for j in range(len(MEASURES)):
        if MEASURES[j][_KIND] == SUM:
            value, before = word_at(places[MEASURES[j][_COLUMN], VALUES], i), pane.rows[r, len(KEYS) + 1 + j]
            total = before + value
            fits = fits and ((before ^ total) & (value ^ total)) >= 0
    return fits


@template("KEYS", "MEASURES", gain=0.5, compile_s=2.0)
def take_plain_elements(
    ts: Int64s, places: Int64Table, asked: Asked, pane: Pane, until: int, keys: Int64Table, state: PaneState,
    finished: Finished,
) -> bool:  # fmt: skip
    """As `panes.take_elements`; `keys` are not written. In the rows of the pane, if there are any, nothing is NULL."""
    slots, rows = pane.slots, pane.rows
    k, mask, shift = len(KEYS), len(slots) - 1, pane.shift
    bits = 0
    for j in range(len(MEASURES)):
        if MEASURES[j][_KIND] == SUM or MEASURES[j][_KIND] >= LEAST:
            bits |= int64(1) << (k + j)
    i = state.at
    while i < len(ts):
        if ts[i] > state.end:
            end_pane(asked, pane, state, finished)
            state.end = end_of_pane(asked, ts[i])
        stop, base, used = stop_of_pane(ts, i, len(ts), state.end), state.base, state.used
        while i < stop:
            h = int64(0)
            for c in range(k):
                h = mixed(h, _value_at(places[c, VALUES], i, KEYS[c]))
            at = slot_of(h, shift)
            r = slots[uint64(at)] - base
            while r >= 0 and not _is_of(places, pane, i, r):
                at = (at + step_of(h, shift)) & mask
                r = slots[uint64(at)] - base
            if r < 0 or not _sums_fit(places, pane, i, r):
                if used == rows.shape[0]:
                    state.at, state.used = i, used
                    return False
                r = used
                used += 1
                for c in range(k):
                    rows[uint64(r), c] = _value_at(places[c, VALUES], i, KEYS[c])
                rows[uint64(r), k] = bits
                for j in range(len(MEASURES)):
                    rows[uint64(r), k + 1 + j] = NO_EXTREME if MEASURES[j][_KIND] >= LEAST else 0
                slots[uint64(at)] = base + r
            row = rows[uint64(r)]
            for j in range(len(MEASURES)):
                kind = MEASURES[j][_KIND]
                if kind == SUM:
                    row[k + 1 + j] += word_at(places[MEASURES[j][_COLUMN], VALUES], i)
                elif kind < LEAST:
                    row[k + 1 + j] += 1
                else:
                    key = _value_at(places[MEASURES[j][_COLUMN], VALUES], i, MEASURES[j][_WIDTH])
                    if MEASURES[j][_FLOAT]:
                        key ^= (key >> 63) & _LARGEST
                    if kind == GREATEST:
                        key = ~key
                    row[k + 1 + j] = min(row[k + 1 + j], key)
            i += 1
        state.used = used
    if state.end <= until:
        end_pane(asked, pane, state, finished)
    state.at = i
    return True
