"""Pre-aggregation by panes whose keys and measures are constants, of elements without NULLs: a template.

As `kernels.panes`, over the same rows, but an element is taken into all measures before the next one.

Invariant: the rows, and what is written out of them, are those of `panes.take_elements`.
"""

from __future__ import annotations

from minidsms.kernels.addresses import VALUES
from minidsms.kernels.panes import (
    AT,
    END,
    GREATEST,
    LEAST,
    NO_EXTREME,
    SEED,
    SUM,
    USED,
    Asked,
    Finished,
    Pane,
    end_of_pane,
    end_pane,
    mixed,
)
from minidsms.machine_code import Int64s, Int64Table, byte_at, helper, int64, word_at
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
def _find(places: Int64Table, pane: Pane, i: int) -> int:
    """The row of an element's group; the complement of the slot where it would stand if there is none."""
    slots, rows = pane.slots, pane.rows
    mask = len(slots) - 1
    h = int64(SEED)
    for c in range(len(KEYS)):
        h = mixed(h, _value_at(places[c, VALUES], i, KEYS[c]))
    at = (mixed(h, 0) >> 1) & mask
    r = int64(slots[at])
    while r >= 0:
        equal = rows[r, len(KEYS)] == 0
        for c in range(len(KEYS)):
            equal = equal and rows[r, c] == _value_at(places[c, VALUES], i, KEYS[c])
        if equal:
            return r
        at = (at + 1) & mask
        r = int64(slots[at])
    return ~at


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
    ts: Int64s, places: Int64Table, asked: Asked, pane: Pane, until: int, state: Int64s, finished: Finished
) -> bool:
    """As `panes.take_elements`."""
    slots, rows = pane.slots, pane.rows
    first = len(KEYS) + 1
    slot_at = first + len(MEASURES) + 1
    present = 0
    for j in range(len(MEASURES)):
        if MEASURES[j][_KIND] == SUM or MEASURES[j][_KIND] >= LEAST:
            present |= int64(1) << j
    i = state[AT]
    while i < len(ts):
        if ts[i] > state[END]:
            end_pane(asked, pane, state, finished)
            state[END] = end_of_pane(asked, ts[i])
        end, used = state[END], state[USED]
        while i < len(ts) and ts[i] <= end:
            r = _find(places, pane, i)
            at = ~r
            if r >= 0 and not _sums_fit(places, pane, i, r):
                at = rows[r, slot_at]
                r = -1
            if r < 0:
                if used == rows.shape[0]:
                    state[AT], state[USED] = i, used
                    return False
                r = used
                used += 1
                for c in range(len(KEYS)):
                    rows[r, c] = _value_at(places[c, VALUES], i, KEYS[c])
                for j in range(len(KEYS), slot_at):
                    rows[r, j] = 0
                for j in range(len(MEASURES)):
                    if MEASURES[j][_KIND] >= LEAST:
                        rows[r, first + j] = NO_EXTREME
                rows[r, slot_at] = at
                slots[at] = r
            rows[r, slot_at - 1] |= present
            for j in range(len(MEASURES)):
                kind = MEASURES[j][_KIND]
                if kind == SUM:
                    rows[r, first + j] += word_at(places[MEASURES[j][_COLUMN], VALUES], i)
                elif kind < LEAST:
                    rows[r, first + j] += 1
                else:
                    key = _value_at(places[MEASURES[j][_COLUMN], VALUES], i, MEASURES[j][_WIDTH])
                    if MEASURES[j][_FLOAT]:
                        key ^= (key >> 63) & _LARGEST
                    if kind == GREATEST:
                        key = ~key
                    rows[r, first + j] = min(rows[r, first + j], key)
            i += 1
        state[USED] = used
    if state[END] <= until:
        end_pane(asked, pane, state, finished)
    state[AT] = i
    return True
