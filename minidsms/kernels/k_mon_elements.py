"""Reduced joins, instant by instant: which rows come next in a join of windows that hold only some of their rows.

A window that ends by time or count moves its `lo`; rows that are not needed go in bulk, when the whole is packed
(`kernels.k_mon_reduction`). Deletions come in one of three ways. Where results are kept, which end with windows only,
they stand with the instant (of a window that counts rows: the number) at which they end, in a heap for each such clock
(`kernels.k_mon_results`). Else what leaves is probed, as in other joins, but row by row against what is left. Where no
two results can look alike and ISTREAM reads them, none is wanted.

Where netted and no row leaves by changes, what leaves is probed after what comes, and only where something has come.

Babu 2005, sections 6.3 and 6.3.2.
"""

from __future__ import annotations

from typing import Any

from minidsms.elements import MAX_INSTANT
from minidsms.kernels.chains import Chain, first_of_key, link_slot, next_held, next_slot, older, unlink_slot
from minidsms.kernels.join_layout import DELETE, FILL, FULL, INSERT, NO_LIMIT, START, JoinInput, JoinRun, Output
from minidsms.kernels.k_mon_keys import Reduced, RowArrays
from minidsms.kernels.k_mon_results import KEPT, PROBED, next_end, put_ended, put_first
from minidsms.kernels.k_mon_rows import (
    CHANGES,
    DELETION,
    FIRST_LINK,
    RANGE,
    ROWS,
    chain_of_side,
    first_equal,
    row_at,
    stands,
)
from minidsms.kernels.links import UNLINKED, set_link
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import Bools, Int64s, Int64Table, Rows, helper, int64, kernel, uint64
from minidsms.machine_code.prefetching import prefetch

_AHEAD = 4
"""How many rows of a stream behind the one that comes is that whose buckets are sent for."""

VIOLATED = 5
"""How a call ended, beside what `kernels.join_layout` names: two rows have one key. There CROWDED says that there is no
place for a result."""


@kernel
def take_runs(ts: Int64s, kept: Bools, every: bool, total: int, slot: int, runs: Int64Table, at: int) -> int:
    """Write (instant, arrivals up to it, slot after its rows) into runs[at:]; returns where they end.

    kept: which arrivals have slots, from `slot` on.  every: instants without such rows count, too.  total: arrivals
    before these.
    """
    n = len(ts)
    i = 0
    while i < n:
        instant = ts[i]
        before = slot
        while i < n and ts[i] == instant:
            slot += int64(kept[i])
            i += 1
        if every or slot > before:
            runs[at, 0], runs[at, 1], runs[at, 2] = instant, total + i, slot
            at += 1
    return at


@helper(inline=True)
def _next_instant(reduced: Reduced, run: JoinRun) -> Any:
    """The next instant at which something happens; MAX_INSTANT: none up to state.closed."""
    inputs, streams, cells = reduced.rows.windows.inputs, reduced.rows.streams, reduced.rows.windows.nodes
    runs, ends = reduced.runs, run.netted == 0
    instant = int64(MAX_INSTANT)
    for j in range(len(inputs)):
        if inputs[j].run < inputs[j].runs_end:
            instant = min(instant, runs[inputs[j].run, 0])
        if ends and reduced.deletions == PROBED and streams[j].clock == RANGE and inputs[j].lo < inputs[j].hi:
            ts = cells[row_at(reduced.rows, j, inputs[j].lo)]
            if ts <= MAX_INSTANT - streams[j].length:
                instant = min(instant, ts + streams[j].length)
    if ends and reduced.deletions == KEPT:
        instant = min(instant, next_end(reduced))
    return instant if instant <= run.state.closed else int64(MAX_INSTANT)


@helper(inline=True)
def _begin(reduced: Reduced, instant: int) -> Any:
    """Take every stream's run of the instant; what has left before it, or leaves unseen, goes. Returns whether rows
    leave that are to be probed later, which stand from old_lo on.

    Rows that windows of ROWS never show, because the instant has more, are passed over.
    """
    inputs, streams, cells = reduced.rows.windows.inputs, reduced.rows.streams, reduced.rows.windows.nodes
    runs, deletions, later = reduced.runs, reduced.deletions, reduced.later
    leaving = False
    for j in range(len(inputs)):
        inputs[j].stop = inputs[j].hi
        if inputs[j].run < inputs[j].runs_end and runs[inputs[j].run, 0] == instant:
            streams[j].total, inputs[j].stop = runs[inputs[j].run, 1], runs[inputs[j].run, 2]
            inputs[j].run += 1
        base, stride = streams[j].begins_at, reduced.rows.strides[j]
        low, high = inputs[j].lo, inputs[j].hi
        inputs[j].old_lo, inputs[j].old_hi = low, high
        if streams[j].clock == RANGE:
            # Probed are those that leave at the instant itself.
            past = instant - streams[j].length - int64(deletions == PROBED)
            while low < high and cells[base + low * stride] <= past:
                low += 1
            inputs[j].old_lo = low
            if later:
                while low < high and cells[base + low * stride] <= past + 1:
                    low += 1
        elif streams[j].clock == ROWS:
            bound, number = streams[j].total - streams[j].length, base + streams[j].number
            streams[j].bound = bound
            if deletions != PROBED or later:
                while low < high and cells[number + low * stride] < bound:
                    low += 1
            while high < inputs[j].stop and cells[number + high * stride] < bound:
                cells[base + high * stride + FIRST_LINK] = UNLINKED
                high += 1
            if low == inputs[j].hi:
                low = high
        leaving |= later and inputs[j].old_lo < low
        inputs[j].lo = inputs[j].probe_lo = low
        inputs[j].hi = high
    return leaving


@helper(inline=True)
def _first_leaving(reduced: Reduced, instant: int, i: int) -> Any:
    """The first stream from i on of which a row leaves at the instant, the oldest or one that is deleted; how many
    streams there are, if none does."""
    inputs, streams, cells = reduced.rows.windows.inputs, reduced.rows.streams, reduced.rows.windows.nodes
    while i < len(inputs):
        at = row_at(reduced.rows, i, inputs[i].hi if streams[i].clock == CHANGES else inputs[i].lo)
        if streams[i].clock == CHANGES:
            if inputs[i].hi < inputs[i].stop and cells[at + FIRST_LINK] == DELETION:
                break
        elif inputs[i].lo < inputs[i].hi:
            if streams[i].clock == RANGE and cells[at] <= instant - streams[i].length:
                break
            if streams[i].clock == ROWS and cells[at + streams[i].number] < streams[i].bound:
                break
        i += 1
    return i


@helper
def _take_out(rows: RowArrays, i: int) -> Any:
    """Take the deletion that comes next in stream i: the row it means leaves all buckets; returns its slot, or -1."""
    inputs, streams, keys, cells = rows.windows.inputs, rows.streams, rows.windows.keys, rows.windows.nodes
    deletion, key = row_at(rows, i, inputs[i].hi), inputs[i].keys_end - 1
    inputs[i].hi += 1
    cells[deletion + FIRST_LINK] = UNLINKED
    chain = Chain(keys[key].nodes, rows.strides[i], int64(-1), int64(0), int64(NO_LIMIT))
    tag = cells[deletion + chain.base - streams[i].begins_at]
    slot, _ = next_slot(cells, chain, tag, first_of_key(rows.windows, i, key, tag))
    while slot >= 0 and not _is_equal(rows, i, row_at(rows, i, slot), deletion):
        slot, _ = next_slot(cells, chain, tag, older(cells, chain, slot))
    if slot >= 0:
        unlink_slot(rows.windows, i, slot, rows.strides)
        set_link(cells, row_at(rows, i, slot) + FIRST_LINK - 1, UNLINKED)
    return slot


@helper(inline=True)
def _is_equal(rows: RowArrays, i: int, a: int, b: int) -> Any:
    """The rows of stream i that begin at a and b have the same words, and the same NULLs."""
    inputs, cells = rows.windows.inputs, rows.windows.nodes
    equal = True
    for x in range(inputs[i].keys_end - inputs[i].key):
        equal &= cells[a + 1 + 2 * x] == cells[b + 1 + 2 * x]
    for w in range(rows.streams[i].words_at, rows.strides[i]):
        equal &= cells[a + w] == cells[b + w]
    return equal


@helper(inline=True)
def _enter(reduced: Reduced, i: int, slot: int) -> Any:
    """The row in this slot comes in: it counts for clusters, and is linked or waits for its pipeline.

    Returns a row that agrees with it in a key, or -1.
    """
    rows, progress = reduced.rows, reduced.progress
    inputs, streams, sides, cells = rows.windows.inputs, rows.streams, rows.sides, rows.windows.nodes
    at = row_at(rows, i, slot)
    _prefetch(rows, i, slot + _AHEAD)
    twin = int64(-1)
    for x in range(inputs[i].key, streams[i].sides_end):
        s = rows.of_key[x]
        if sides[s].unique != 0 and twin < 0:
            twin = _held_equal(rows, at, s, s)
    inputs[i].hi += 1
    streams[i].count += 1
    for x in range(inputs[i].key, streams[i].sides_end):
        s = rows.of_key[x]
        other = sides[s ^ 1].stream
        c = sides[s ^ 1].cluster
        if c >= 0:
            # This row is one of the cluster that its child counts.
            child = _held_equal(rows, at, s, s ^ 1)
            if child >= 0:
                child = row_at(rows, other, child) + c
                cells[child] = streams[i].count if cells[child] < 0 else cells[child] + 1
        c = sides[s].cluster
        if c >= 0 and _held_equal(rows, at, s, s ^ 1) >= 0:
            cells[at + c] = streams[other].count
    if streams[i].leaves_at_once != 0:
        progress.waiting, progress.produced = slot, 0
    else:
        link_slot(rows.windows, i, slot, rows.strides)
    return twin


@helper(inline=True)
def _prefetch(rows: RowArrays, i: int, slot: int) -> None:
    """Send for the buckets that the row in this slot, if one waits there, will be linked in and ask for."""
    windows, streams, sides = rows.windows, rows.streams, rows.sides
    keys, heads = windows.keys, windows.heads
    if slot < streams[i].end:
        at = row_at(rows, i, slot)
        for x in range(windows.inputs[i].key, streams[i].sides_end):
            s = rows.of_key[x]
            y, tag = sides[s ^ 1].key, windows.nodes[uint64(at + sides[s].tag_at)]
            prefetch(heads, uint64(keys[x].heads + bucket(tag, keys[x].shift)))
            prefetch(heads, uint64(keys[y].heads + bucket(tag, keys[y].shift)))


@helper(inline=True)
def _held_equal(rows: RowArrays, at: int, s: int, t: int) -> Any:
    """The newest slot in its window whose side t has the columns of side s of the row at `at`; -1: none."""
    low = rows.windows.inputs[rows.sides[t].stream].lo
    slot = first_equal(rows, at, s, t, chain_of_side(rows, t, low))
    return slot if slot >= low else int64(-1)


@helper(inline=True)
def _settle(reduced: Reduced, i: int) -> None:
    """The pipeline of the row of stream i that waits is done: it stays if it has yielded nothing."""
    rows, progress = reduced.rows, reduced.progress
    if progress.produced != 0:
        set_link(rows.windows.nodes, row_at(rows, i, progress.waiting) + FIRST_LINK - 1, UNLINKED)
    else:
        link_slot(rows.windows, i, progress.waiting, rows.strides)
    progress.waiting = -1


@helper(inline=True)
def _look(inputs: Rows[JoinInput], back: bool) -> None:
    """See the streams as they were before the instant: what leaves stands there, and what has come does not; or again
    as they are."""
    for j in range(len(inputs)):
        if back:
            inputs[j].lo = inputs[j].probe_lo = inputs[j].old_lo
        inputs[j].probe_hi = inputs[j].old_hi if back else int64(NO_LIMIT)


@helper(inline=True)
def next_row(reduced: Reduced, run: JoinRun, output: Output, found: int) -> Any:
    """The slot of the row of input state.input that comes or leaves next, -1 where none waits; what stands in `out`,
    with results that end; and with state.phase = FILL the next row that is held.

    Where netted, deletions count only where something is inserted, and the whole instant stands in `out`: of what
    stands there when it is full, that from state.first on is to be kept.
    """
    rows, state, deletions = reduced.rows, run.state, reduced.deletions
    inputs, streams = rows.windows.inputs, rows.streams
    n, phase, i = len(inputs), state.phase, state.input
    own, waits = int64(-1), True
    if reduced.progress.waiting >= 0:
        _settle(reduced, i)
    while own < 0 and waits:
        if phase == FILL:
            own = next_held(rows.windows, i, state.slot, rows.strides)
            phase, state.slot, waits = FILL if own >= 0 else START, own, False
        elif phase == START:
            state.instant = _next_instant(reduced, run)
            waits = state.instant < MAX_INSTANT
            if waits:
                state.first = found
                state.leaving = int64(_begin(reduced, state.instant))
                phase, i = int64(INSERT if state.leaving != 0 else DELETE), int64(0)
        elif phase == DELETE:
            if deletions == KEPT:
                found = put_ended(reduced, state.instant, output, found)
                if found == len(output.out_ts):
                    state.status, waits = FULL, False
                    continue
            # The next row that leaves, against what is left.
            i = _first_leaving(reduced, state.instant, i) if deletions == PROBED else int64(n)
            if i < n and streams[i].clock == CHANGES:
                own = _take_out(rows, i)
            elif i < n:
                slot = inputs[i].lo
                inputs[i].lo = inputs[i].probe_lo = slot + 1
                own = slot if stands(rows, i, slot) else int64(-1)
            elif state.leaving != 0:
                put_first(output.out, output.out_sign, state.first, state.middle, found)
                _look(inputs, False)
                phase = int64(START)
            else:
                state.middle = found
                phase, i = int64(INSERT), int64(0)
        else:
            while i < n and inputs[i].hi == inputs[i].stop:
                i += 1
            if i < n:
                own = state.slot = inputs[i].hi
                reduced.progress.other = _enter(reduced, i, own)
                if reduced.progress.other >= 0:
                    state.status = VIOLATED
            elif state.leaving != 0 and found > state.first:
                _look(inputs, True)
                state.middle = found
                phase, i = int64(DELETE), int64(0)
            else:
                if run.netted != 0 and state.leaving == 0 and found == state.middle and state.first >= 0:
                    found = state.first  # nothing for them to cancel
                phase = int64(START)
    state.phase, state.input = phase, i
    return own, found
