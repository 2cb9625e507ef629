"""What a reduced join puts out: words of rows, since the rows may have gone before the answer is read.

Results that are kept stand in a heap for each clock by which they end: heap 0 goes by instants, the others by the
numbers of their streams. A heap is two arrays, keys and slots, of which the first places are taken; the least key
stands first. Babu 2005, section 6.3.2.
"""

from __future__ import annotations

from typing import Any

from minidsms.elements import MAX_INSTANT
from minidsms.kernels.join_layout import INSERT, JoinRun, Output
from minidsms.kernels.k_mon_keys import Reduced
from minidsms.kernels.k_mon_rows import RANGE, ROWS, row_at
from minidsms.kernels.merging import exchange
from minidsms.machine_code import Int8s, Int64s, Int64Table, helper, int64, uint64

NO_DELETIONS, KEPT, PROBED = 0, 1, 2
"""How deletions come: none; as the ends of results, which are kept; by probing what leaves."""

REFERENCES, IS_ALIVE, RESULT = 0, 1, 2
"""Of a kept result: heaps it stands in, whether it holds, and its words."""


@helper(inline=True)
def _sift_up(keys: Int64s, slots: Int64s, size: int, key: int, slot: int) -> None:
    """Put a slot into a heap of `size`, by its key."""
    at = size
    while at > 0 and keys[(at - 1) >> 1] > key:
        keys[at], slots[at] = keys[(at - 1) >> 1], slots[(at - 1) >> 1]
        at = (at - 1) >> 1
    keys[at], slots[at] = key, slot


@helper(inline=True)
def _take_least(keys: Int64s, slots: Int64s, size: int) -> Any:
    """Take the least out of a heap of `size`; returns its slot."""
    least = slots[0]
    key, slot = keys[size - 1], slots[size - 1]
    at = 0
    child = 1
    while child < size - 1:
        if child + 1 < size - 1 and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[at], slots[at] = keys[child], slots[child]
        at = child
        child = 2 * at + 1
    keys[at], slots[at] = key, slot
    return least


@helper
def put_first(out: Int64Table, out_sign: Int8s, first: int, middle: int, end: int) -> None:
    """Exchange the rows [first, middle) and [middle, end), which are of one instant and each of one sign."""
    for c in range(out.shape[1]):
        exchange(out[:, c], first, middle, end)
    for x in range(first, end):
        out_sign[x] = -1 if x < first + end - middle else 1


@helper(inline=True)
def has_no_place(reduced: Reduced) -> Any:
    """Results are kept, and there is no place for one more."""
    return reduced.deletions == KEPT and reduced.progress.top == 0


@helper(inline=True)
def put_words(reduced: Reduced, run: JoinRun, output: Output, found: int) -> Any:
    """Write the rows chosen side by side into row `found` of the output, and keep that where results are kept."""
    outs, cells, chosen = reduced.outs, reduced.rows.windows.nodes, run.chosen
    out, width = output.out, len(outs)
    mask, at = int64(0), uint64(found)
    for c in range(width):
        row = row_at(reduced.rows, outs[c, 0], chosen[uint64(outs[c, 0])])
        out[at, uint64(c)] = cells[uint64(row + outs[c, 1])]
        if outs[c, 2] >= 0:
            mask |= ((cells[row + outs[c, 2]] >> outs[c, 3]) & 1) << c
    out[at, uint64(width)] = mask
    output.out_ts[at] = run.state.instant
    output.out_sign[at] = 1 if run.state.phase == INSERT else -1
    reduced.progress.produced = 1
    if reduced.deletions == KEPT:
        _keep_result(reduced, chosen, out[found])


@helper(inline=True)
def _keep_result(reduced: Reduced, chosen: Int64s, words: Int64s) -> Any:
    """Keep the result of these words until the first of the rows chosen leaves; a place is free."""
    rows, progress = reduced.rows, reduced.progress
    inputs, streams, cells = rows.windows.inputs, rows.streams, rows.windows.nodes
    results, free, heap_keys, heap_slots, sizes = reduced.kept
    progress.top -= 1
    r = free[progress.top]
    results[r, REFERENCES] = 0
    results[r, IS_ALIVE] = 1
    for c in range(len(words)):
        results[r, RESULT + c] = words[c]
    end = int64(MAX_INSTANT)
    for m in range(len(inputs)):
        row = row_at(rows, m, chosen[m])
        if streams[m].clock == RANGE and cells[row] <= MAX_INSTANT - streams[m].length:
            end = min(end, cells[row] + streams[m].length)
        elif streams[m].clock == ROWS:
            h = streams[m].heap
            _sift_up(heap_keys[h], heap_slots[h], sizes[h], cells[row + streams[m].number], r)
            sizes[h] += 1
            results[r, REFERENCES] += 1
    if end < MAX_INSTANT:
        _sift_up(heap_keys[0], heap_slots[0], sizes[0], end, r)
        sizes[0] += 1
        results[r, REFERENCES] += 1
    if results[r, REFERENCES] == 0:
        progress.top += 1  # it never ends


@helper(inline=True)
def next_end(reduced: Reduced) -> Any:
    """The next instant at which a result kept may end by an instant."""
    return reduced.kept.heap_keys[0, 0] if reduced.kept.sizes[0] > 0 else int64(MAX_INSTANT)


@helper(inline=True)
def put_ended(reduced: Reduced, instant: int, output: Output, found: int) -> Any:
    """Put out, as deletions, the results kept that end at the instant, until `out` is full; returns its rows."""
    streams, progress = reduced.rows.streams, reduced.progress
    results, free, heap_keys, heap_slots, sizes = reduced.kept
    out, out_ts, out_sign = output.out, output.out_ts, output.out_sign
    for h in range(len(sizes)):
        past = instant
        for m in range(len(streams)):
            if streams[m].clock == ROWS and streams[m].heap == h:
                past = streams[m].bound - 1
        while sizes[h] > 0 and heap_keys[h, 0] <= past and found < len(out_ts):
            is_now = h > 0 or heap_keys[0, 0] == instant
            r = _take_least(heap_keys[h], heap_slots[h], sizes[h])
            sizes[h] -= 1
            results[r, REFERENCES] -= 1
            if results[r, IS_ALIVE] != 0:
                results[r, IS_ALIVE] = 0
                if is_now:
                    for c in range(out.shape[1]):
                        out[found, c] = results[r, RESULT + c]
                    out_ts[found] = instant
                    out_sign[found] = -1
                    found += 1
            if results[r, REFERENCES] == 0:
                free[progress.top] = r
                progress.top += 1
    return found
