"""Rows of streams with ranges in the slots of a join's windows: they come, and leave when their time has passed.

The slots are those of `kernels.join_layout`; when a row came says its store.
"""

from __future__ import annotations

from typing import Any

from minidsms.elements import MAX_INSTANT
from minidsms.kernels.join_layout import NO_RANGE, JoinInput
from minidsms.kernels.links import Arrivals, came_at, set_upper_half
from minidsms.kernels.window_index import KeysOfInput, Stored, are_words, take_run, words_taken
from minidsms.machine_code import Int64s, Rows, helper, int64, kernel, uint64

_BLOCK = 256
"""Elements whose slots stay in the cache until their words have been taken."""


@helper(inline=True)
def _came(ts: Int64s, nodes: Int64s, arrivals: Arrivals, hi: int, slot: int) -> Any:
    """When the row of a slot came, those from hi on at `ts`."""
    return ts[uint64(slot - hi)] if slot >= hi else came_at(nodes, arrivals, slot)


@helper
def _first_held(ts: Int64s, nodes: Int64s, arrivals: Arrivals, length: int, lo: int, hi: int, at: int) -> Any:
    """From `lo` on the first slot whose row is still there when the element at a position comes."""
    end, step = hi + at, int64(1)
    # ts[lo] <= t, so that the difference is seen right even where it wraps; NO_RANGE is the greatest.
    now, length = uint64(ts[uint64(at)]), uint64(length)
    while lo + step <= end and now - uint64(_came(ts, nodes, arrivals, hi, lo + step - 1)) >= length:
        lo += step
        step += step
    end = min(end, lo + step - 1)
    while lo < end:
        middle = (lo + end) >> 1
        if now - uint64(_came(ts, nodes, arrivals, hi, middle)) >= length:
            lo = middle + 1
        else:
            end = middle
    return lo


@helper
def _most_held(ts: Int64s, nodes: Int64s, figures: JoinInput, first: int, stop: int) -> Any:
    """The most rows held at once while the elements [first, stop) come, or a 64th less: it is asked so often that no
    more can come in between.
    """
    arrivals = Arrivals(figures.nodes, figures.mask, figures.instants, figures.store_mask)
    lo, most, at = figures.lo, int64(1), first
    while at < stop:
        lo = _first_held(ts, nodes, arrivals, figures.length, lo, figures.hi, at)
        most = max(most, figures.hi + at + 1 - lo)
        at += max(int64(1), most >> 6)
    return most


@kernel
def take_arrivals(seq: Int64s, ts: Int64s, first: int, stop: int, store: Stored, of: KeysOfInput) -> int:
    """Write the elements [first, stop) of a stream's into the slots from hi + first on: numbers, and words of keys.

    seq: of all elements, or of the first alone where they follow one another. `stop` is set behind all elements,
    `has_nulls` where a key is NULL. Returns the most rows held at once meanwhile, or a 64th less, and at least one.
    """
    figures, nodes = of.figures, of.nodes
    rows, mask, hi = figures.nodes, figures.mask, figures.hi
    is_of_all = len(seq) == len(ts)
    if not is_of_all and are_words(store, of):
        take_run(store, of, hi + first, seq[0] + first, stop - first)
    else:
        for at in range(first, stop, _BLOCK):
            end = min(at + _BLOCK, stop)
            for i in range(at, end):
                set_upper_half(nodes, rows + 2 * ((hi + i) & mask), seq[uint64(i)] if is_of_all else seq[0] + i)
            if words_taken(store, of, hi + at, hi + end):
                figures.has_nulls = 1
    figures.linked, figures.stop = hi, hi + len(ts)
    return int64(_most_held(ts, nodes, figures, first, stop))


@kernel
def expire(nodes: Int64s, inputs: Rows[JoinInput], until: int) -> None:
    """Let go the rows that have left at `until`, and say when the next one leaves; no element waits."""
    for j in range(len(inputs)):
        arrivals = Arrivals(inputs[j].nodes, inputs[j].mask, inputs[j].instants, inputs[j].store_mask)
        lo = inputs[j].lo
        while lo < inputs[j].hi:
            came = came_at(nodes, arrivals, lo)
            if came > until or uint64(until) - uint64(came) < uint64(inputs[j].length):
                break
            lo += 1
        inputs[j].lo = lo
        inputs[j].leaves = MAX_INSTANT
        if lo < inputs[j].hi and inputs[j].length != NO_RANGE:
            came = came_at(nodes, arrivals, lo)
            if came <= MAX_INSTANT - inputs[j].length:
                inputs[j].leaves = came + inputs[j].length
