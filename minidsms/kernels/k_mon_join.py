"""Joining windows that hold only some of their rows, along a tree of equalities, instant by instant.

All rows stand in one flat array, `cells`: stream i has rows of `stride` words from `begins_at` on, numbered by slots
in the order of arrival, [lo, hi) in the window. A row is its instant, the next older slot of its bucket for each side,
where the window counts rows its arrival number, counters, and the words kept. An edge of the tree has two *sides*, s
and s ^ 1: each is the index of one stream by the edge's columns. A walk goes from the newest slot of a bucket and ends
below `lo`, so that expiry is lo += 1; rows that are not needed go in bulk, when the whole is packed
(`kernels.k_mon_reduction`). Rows of relations leave from the middle: their buckets are linked both ways, and one more
index finds a row that is equal to the one deleted.

Deletions come in one of three ways. Where results are kept, which end with windows only, they stand with the instant
(of a window that counts rows: the number) at which they end, in a heap for each such clock. Else what leaves is probed,
as in `kernels.mjoin`. Where no two results can look alike and ISTREAM reads them, none is wanted.

Babu 2005, sections 6.3 and 6.3.2; docs/design, point 3.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.join_layout import Output
from minidsms.kernels.k_mon_instants import put_first, sift_up, take_least
from minidsms.kernels.k_mon_keys import KMonPlan, KMonRun, Progress, ResultArrays, RowArrays, StreamFigures, key_of
from minidsms.kernels.mixing import bucket, mixed
from minidsms.machine_code import Int64s, Int64Table, Rows, helper, int64, kernel

UNBOUNDED, RANGE, ROWS, CHANGES = 0, 1, 2, 3
"""Clocks. By CHANGES rows leave when deletions say so, equal ones in any order."""

DONE, FULL, GROW, VIOLATED, PAUSED = range(5)
"""The runs are joined; `out` is full; there is no place for a result; two rows have one key; as many slots as a call
may inspect are: call again to go on."""

NO_DELETIONS, KEPT, PROBED = 0, 1, 2
"""How deletions come (an argument of the kernel)."""

_START, _DELETE, _INSERT = 0, 1, 2

UNLINKED, DELETION = -2, -3
"""As a row's first `next`: it stands in no bucket, and is not needed; it is no row, but says that one equal to it
leaves."""

REFERENCES, IS_ALIVE, RESULT = 0, 1, 2
"""Of a kept result: heaps it stands in, whether it holds, and its words."""

_NEVER = 2**63 - 1


@helper(inline=True)
def _bucket(rows: RowArrays, at: int, s: int, target: int) -> Any:
    """The bucket, in `heads`, of side `target` that the columns of side s of the row at `at` lead to."""
    sides = rows.sides
    key = key_of(rows.cells, at, rows.parts, sides[s].part, sides[s].parts_end)
    return sides[target].heads + bucket(key, sides[target].shift)


@helper(inline=True)
def agree(rows: RowArrays, a: int, s: int, b: int, t: int) -> Any:
    """Whether the columns of side s of the row at a are those of side t of the row at b."""
    cells, parts, sides = rows.cells, rows.parts, rows.sides
    equal = True
    first, other = sides[s].part, sides[t].part
    for p in range(sides[s].parts_end - first):
        equal &= cells[a + parts[first + p]] == cells[b + parts[other + p]]
    return equal


@helper(inline=True)
def _first_equal(rows: RowArrays, at: int, s: int, t: int) -> Any:
    """The newest slot in its window whose side t has the columns of side s of the row at `at`; -1: none."""
    cells, heads, figures, sides = rows.cells, rows.heads, rows.figures, rows.sides
    stream = sides[t].stream
    base, stride, low = figures[stream].begins_at, figures[stream].stride, figures[stream].lo
    slot = int64(heads[_bucket(rows, at, s, t)])
    while slot >= low and not agree(rows, at, s, base + slot * stride, t):
        slot = cells[base + slot * stride + sides[t].next]
    return slot if slot >= low else int64(-1)


@helper(inline=True)
def _bucket_of_equals(cells: Int64s, at: int, figures: Rows[StreamFigures], i: int) -> Any:
    """The bucket, in `heads`, of the rows of stream i that may be equal to the one at `at`."""
    end = figures[i].mask_at if figures[i].mask_at >= 0 else figures[i].stride
    h = int64(0)
    for w in range(figures[i].words_at, end):
        h = mixed(h, cells[at + w])
    return figures[i].equal_heads + bucket(h, figures[i].equal_shift)


@helper(inline=True)
def _link(rows: RowArrays, i: int, slot: int) -> None:
    """Put a row of stream i into its buckets."""
    figures, of_stream, sides, cells, heads = rows.figures, rows.of_stream, rows.sides, rows.cells, rows.heads
    base, stride = figures[i].begins_at, figures[i].stride
    at = base + slot * stride
    for x in range(figures[i].side, figures[i].sides_end):
        s = of_stream[x]
        b = _bucket(rows, at, s, s)
        head = int64(heads[b])
        cells[at + sides[s].next] = head
        if sides[s].previous >= 0:
            cells[at + sides[s].previous] = -1
            if head >= 0:
                cells[base + head * stride + sides[s].previous] = slot
        heads[b] = slot
    if figures[i].equal >= 0:
        b = _bucket_of_equals(cells, at, figures, i)
        cells[at + figures[i].equal] = heads[b]
        heads[b] = slot


@helper
def _take_out(rows: RowArrays, i: int) -> Any:
    """Take the deletion that comes next in stream i: the row it means leaves all buckets; returns its slot, or -1."""
    cells, heads, figures = rows.cells, rows.heads, rows.figures
    of_stream, sides = rows.of_stream, rows.sides
    base, stride, following = figures[i].begins_at, figures[i].stride, figures[i].equal
    deletion = base + figures[i].hi * stride
    figures[i].hi += 1
    cells[deletion + 1] = UNLINKED
    b = _bucket_of_equals(cells, deletion, figures, i)
    before, slot = int64(-1), int64(heads[b])
    while slot >= 0:
        differ = False
        for w in range(figures[i].words_at, stride):
            differ |= cells[base + slot * stride + w] != cells[deletion + w]
        if not differ:
            break
        before, slot = slot, cells[base + slot * stride + following]
    if slot >= 0:
        at = base + slot * stride
        if before >= 0:
            cells[base + before * stride + following] = cells[at + following]
        else:
            heads[b] = cells[at + following]
        for x in range(figures[i].side, figures[i].sides_end):
            s = of_stream[x]
            older, younger = cells[at + sides[s].next], cells[at + sides[s].previous]
            if younger >= 0:
                cells[base + younger * stride + sides[s].next] = older
            else:
                heads[_bucket(rows, at, s, s)] = older
            if older >= 0:
                cells[base + older * stride + sides[s].previous] = younger
        cells[at + 1] = UNLINKED
    return slot


@helper(inline=True)
def _next_instant(runs: Int64Table, rows: RowArrays, kept: ResultArrays, run: KMonRun) -> Any:
    """The next instant at which something happens; _NEVER: none up to `until`."""
    figures, cells = rows.figures, rows.cells
    heap_keys, sizes = kept.heap_keys, kept.sizes
    state, deletions, is_netted = run.state, run.deletions, run.is_netted
    n = len(figures)
    instant = int64(_NEVER)
    for j in range(n):
        if figures[j].run < figures[j].runs_end:
            instant = min(instant, runs[figures[j].run, 0])
        if deletions == PROBED and not is_netted and figures[j].clock == RANGE and figures[j].lo < figures[j].hi:
            ts = cells[figures[j].begins_at + figures[j].lo * figures[j].stride]
            if ts <= _NEVER - figures[j].length:
                instant = min(instant, ts + figures[j].length)
    if deletions == KEPT and not is_netted and sizes[0] > 0:
        instant = min(instant, heap_keys[0, 0])
    return instant if instant <= state.until else int64(_NEVER)


@helper(inline=True)
def _begin(runs: Int64Table, rows: RowArrays, instant: int, deletions: int, may_leave_later: bool) -> Any:
    """Take every stream's run of the instant; what has left before it, or leaves unseen, goes. Returns whether rows
    leave that are to be probed later.

    Rows that windows of ROWS never show, because the instant has more, are passed over.
    """
    figures, cells = rows.figures, rows.cells
    leave_later = False
    for j in range(len(figures)):
        figures[j].stop = figures[j].hi
        if figures[j].run < figures[j].runs_end and runs[figures[j].run, 0] == instant:
            figures[j].total, figures[j].stop = runs[figures[j].run, 1], runs[figures[j].run, 2]
            figures[j].run += 1
        base, stride = figures[j].begins_at, figures[j].stride
        low, high = figures[j].lo, figures[j].hi
        if figures[j].clock == RANGE:
            # Probed are those that leave at the instant itself.
            past = instant - figures[j].length - int64(deletions == PROBED)
            while low < high and cells[base + low * stride] <= past:
                low += 1
            figures[j].leaving = low
            if may_leave_later:
                while low < high and cells[base + low * stride] <= past + 1:
                    low += 1
        elif figures[j].clock == ROWS:
            figures[j].bound = figures[j].total - figures[j].length
            number = figures[j].number
            figures[j].leaving = low
            if deletions != PROBED or may_leave_later:
                while low < high and cells[base + low * stride + number] < figures[j].bound:
                    low += 1
            while high < figures[j].stop and cells[base + high * stride + number] < figures[j].bound:
                cells[base + high * stride + 1] = UNLINKED
                high += 1
            if low == figures[j].hi:
                low = high
        else:
            figures[j].leaving = low
        leave_later |= may_leave_later and figures[j].leaving < low
        figures[j].before = figures[j].hi
        figures[j].lo, figures[j].hi = low, high
    return leave_later


@helper(inline=True)
def _look_back(figures: Rows[StreamFigures]) -> None:
    """See the streams as they were before the instant: what leaves stands there, and what has come does not."""
    for j in range(len(figures)):
        figures[j].lo, figures[j].cap = figures[j].leaving, figures[j].before


@helper(inline=True)
def _put_out(rows: RowArrays, outs: Int64Table, run: KMonRun, sign: int, output: Output, found: int) -> Any:
    """Write the rows chosen side by side into row `found` of the output."""
    figures, cells = rows.figures, rows.cells
    out, out_ts, out_sign = output.out, output.out_ts, output.out_sign
    walks, state = run.walks, run.state
    width = len(outs)
    mask = int64(0)
    for c in range(width):
        row = figures[outs[c, 0]].begins_at + walks[1, outs[c, 0]] * figures[outs[c, 0]].stride
        out[found, c] = cells[row + outs[c, 1]]
        if outs[c, 2] >= 0:
            mask |= ((cells[row + outs[c, 2]] >> outs[c, 3]) & 1) << c
    out[found, width] = mask
    out_ts[found] = state.instant
    out_sign[found] = sign


@helper(inline=True)
def _keep_result(rows: RowArrays, run: KMonRun, kept: ResultArrays, words: Int64s) -> Any:
    """Keep the result of these words until the first of the rows chosen leaves; a place is free."""
    figures, cells = rows.figures, rows.cells
    results, free, heap_keys, heap_slots, sizes = kept.results, kept.free, kept.heap_keys, kept.heap_slots, kept.sizes
    walks, state = run.walks, run.state
    state.top -= 1
    r = free[state.top]
    results[r, REFERENCES] = 0
    results[r, IS_ALIVE] = 1
    for c in range(len(words)):
        results[r, RESULT + c] = words[c]
    end = int64(_NEVER)
    for m in range(len(figures)):
        row = figures[m].begins_at + walks[1, m] * figures[m].stride
        if figures[m].clock == RANGE and cells[row] <= _NEVER - figures[m].length:
            end = min(end, cells[row] + figures[m].length)
        elif figures[m].clock == ROWS:
            h = figures[m].heap
            number = cells[row + figures[m].number]
            sift_up(heap_keys[h], heap_slots[h], sizes[h], number, r)
            sizes[h] += 1
            results[r, REFERENCES] += 1
    if end < _NEVER:
        sift_up(heap_keys[0], heap_slots[0], sizes[0], end, r)
        sizes[0] += 1
        results[r, REFERENCES] += 1
    if results[r, REFERENCES] == 0:
        state.top += 1  # it never ends


@helper(inline=True)
def _take_ended(figures: Rows[StreamFigures], state: Progress, kept: ResultArrays, output: Output, found: int) -> Any:
    """Put out, as deletions, the results kept that end at the instant, until `out` is full; returns what stands there.

    Heap 0 goes by instants, the others by the numbers of their streams.
    """
    results, free, heap_keys, heap_slots, sizes = kept.results, kept.free, kept.heap_keys, kept.heap_slots, kept.sizes
    out, out_ts, out_sign = output.out, output.out_ts, output.out_sign
    for h in range(len(sizes)):
        past = state.instant
        for m in range(len(figures)):
            if figures[m].clock == ROWS and figures[m].heap == h:
                past = figures[m].bound - 1
        while sizes[h] > 0 and heap_keys[h, 0] <= past and found < len(out_ts):
            is_now = h > 0 or heap_keys[0, 0] == state.instant
            r = take_least(heap_keys[h], heap_slots[h], sizes[h])
            sizes[h] -= 1
            results[r, REFERENCES] -= 1
            if results[r, IS_ALIVE] != 0:
                results[r, IS_ALIVE] = 0
                if is_now:
                    for c in range(out.shape[1]):
                        out[found, c] = results[r, RESULT + c]
                    out_ts[found] = state.instant
                    out_sign[found] = -1
                    found += 1
            if results[r, REFERENCES] == 0:
                free[state.top] = r
                state.top += 1
    return found


@helper(inline=True)
def _first_leaving(figures: Rows[StreamFigures], cells: Int64s, state: Progress, i: int) -> Any:
    """The first stream from i on of which a row leaves at the instant, the oldest or one that is deleted; how many
    streams there are, if none does."""
    while i < len(figures):
        low = figures[i].lo
        at = figures[i].begins_at + low * figures[i].stride
        if figures[i].clock == CHANGES:
            high = figures[i].hi
            if high < figures[i].stop and cells[figures[i].begins_at + high * figures[i].stride + 1] == DELETION:
                break
        elif low < figures[i].hi:
            if figures[i].clock == RANGE and cells[at] <= state.instant - figures[i].length:
                break
            if figures[i].clock == ROWS and cells[at + figures[i].number] < figures[i].bound:
                break
        i += 1
    return i


@helper(inline=True)
def _enter(rows: RowArrays, state: Progress, i: int, slot: int) -> Any:
    """The row in this slot comes in: it counts for clusters, and is linked or waits for its pipeline.

    Returns a row that agrees with it in a key, or -1.
    """
    figures, of_stream, sides, cells = rows.figures, rows.of_stream, rows.sides, rows.cells
    at = figures[i].begins_at + slot * figures[i].stride
    twin = int64(-1)
    for x in range(figures[i].side, figures[i].sides_end):
        s = of_stream[x]
        if sides[s].unique != 0 and twin < 0:
            twin = _first_equal(rows, at, s, s)
    figures[i].hi += 1
    figures[i].count += 1
    for x in range(figures[i].side, figures[i].sides_end):
        s = of_stream[x]
        other = sides[s ^ 1].stream
        c = sides[s ^ 1].cluster
        if c >= 0:
            # This row is one of the cluster that its child counts.
            child = _first_equal(rows, at, s, s ^ 1)
            if child >= 0:
                child = figures[other].begins_at + child * figures[other].stride + c
                cells[child] = figures[i].count if cells[child] < 0 else cells[child] + 1
        c = sides[s].cluster
        if c >= 0 and _first_equal(rows, at, s, s ^ 1) >= 0:
            cells[at + c] = figures[other].count
    if figures[i].leaves_at_once != 0:
        state.waiting = slot
        state.produced = 0
    else:
        _link(rows, i, slot)
    return twin


@helper(inline=True)
def _begin_step(rows: RowArrays, plan: KMonPlan, walks: Int64Table, i: int, depth: int) -> None:
    """Where the walk of a step begins, by the slots chosen."""
    figures = rows.figures
    s = plan.steps[i, depth]
    own = rows.sides[s].stream
    source = figures[own].begins_at + walks[1, own] * figures[own].stride
    walks[0, depth] = rows.heads[_bucket(rows, source, s, s ^ 1)]


@helper(inline=True)
def _put_out_results(
    rows: RowArrays,
    plan: KMonPlan,
    run: KMonRun,
    kept: ResultArrays,
    output: Output,
    phase: int,
    i: int,
    found: int,
) -> Any:
    """Put out what is left of the results of a row of stream i, depth first; in `walks` stand the slots to look at next
    and those chosen. Returns how it ended, DONE where no result is left, and what stands in `out`.
    """
    figures, sides, cells = rows.figures, rows.sides, rows.cells
    out, out_ts = output.out, output.out_ts
    steps, outs = plan.steps, plan.outs
    walks, state, deletions = run.walks, run.state, run.deletions
    last = len(figures) - 2
    status = DONE
    sign = 1 if phase == _INSERT else -1
    depth, inspected, most = state.depth, int64(0), state.until_inspected - state.inspected
    while depth >= 0 and status == DONE:
        s = steps[i, depth]
        t = s ^ 1
        own, j = sides[s].stream, sides[t].stream
        source = figures[own].begins_at + walks[1, own] * figures[own].stride
        base, stride, low, cap = figures[j].begins_at, figures[j].stride, figures[j].lo, figures[j].cap
        following = sides[t].next
        x = walks[0, depth]
        descends = False
        while x >= low and not descends:
            if inspected >= most:
                status = PAUSED
                break
            # Asked before a row is looked at, so that none is passed over.
            if depth == last and (found == len(out_ts) or (deletions == KEPT and state.top == 0)):
                status = FULL if found == len(out_ts) else GROW
                break
            at = base + x * stride
            inspected += 1
            if x < cap and agree(rows, source, s, at, t):
                walks[1, j] = x
                if depth == last:
                    _put_out(rows, outs, run, sign, output, found)
                    state.produced = 1
                    if deletions == KEPT:
                        _keep_result(rows, run, kept, out[found])
                    found += 1
                else:
                    descends = True
            x = cells[at + following]
        walks[0, depth] = x
        if descends:
            depth += 1
            _begin_step(rows, plan, walks, i, depth)
        elif status == DONE:
            depth -= 1
    state.depth = depth
    state.inspected += inspected
    return status, found


@helper(inline=True)
def _settle(rows: RowArrays, state: Progress, i: int) -> Any:
    """The pipeline of the row of stream i that waits is done: it stays if it has yielded nothing."""
    figures = rows.figures
    if state.produced != 0:
        rows.cells[figures[i].begins_at + state.waiting * figures[i].stride + 1] = UNLINKED
    else:
        _link(rows, i, state.waiting)
    state.waiting = -1


@kernel
def k_mon_join(
    runs: Int64Table, rows: RowArrays, plan: KMonPlan, run: KMonRun, kept: ResultArrays, output: Output, found: int
) -> int:
    """Join what is left of the runs, up to state.until; returns how many rows stand in `out`.

    steps: (n, n - 1): the side by which each step of a stream's pipeline leaves for the other side's stream.
    outs: (w, 4): stream, word, place of its mask and bit in it of each column put out; out: (m, w + 1), the mask last.
    walks: (2, n): slot to look at next per depth, and the slot chosen of each stream.
    is_netted: the consumer is ISTREAM: deletions count only where something is inserted; they are looked for then, and
    the whole instant stands in `out`: of what stands there when it is full, that from state.first on is to be kept.
    results, free, heap_keys, heap_slots, sizes: results kept, their free places, their heaps.
    `out` is in ts order, deletions first; state.status says how the call ended.
    O(elements + results + slots inspected), and the logarithm of the results kept for each of them.
    """
    figures, cells = rows.figures, rows.cells
    out, out_ts, out_sign = output.out, output.out_ts, output.out_sign
    walks, state, deletions, is_netted = run.walks, run.state, run.deletions, run.is_netted
    n, limit = len(figures), len(out_ts)
    phase, i, slot = state.phase, state.input, state.slot
    status = DONE
    state.until_inspected = state.inspected + state.most
    may_leave_later = is_netted and deletions == PROBED
    for j in range(n):
        may_leave_later = may_leave_later and figures[j].clock != CHANGES
    while status == DONE:
        status, found = _put_out_results(rows, plan, run, kept, output, phase, i, found)
        if status != DONE:
            break
        begins = False
        if state.waiting >= 0:
            _settle(rows, state, i)
        if phase == _START:
            instant = _next_instant(runs, rows, kept, run)
            if instant == _NEVER:
                break
            state.instant = instant
            state.first = found
            leave_later = _begin(runs, rows, instant, deletions, may_leave_later)
            state.leaves_later = int64(leave_later)
            phase, i = int64(_INSERT if leave_later else _DELETE), int64(0)
        elif phase == _DELETE:
            if deletions == KEPT:
                found = _take_ended(figures, state, kept, output, found)
                if found == limit:
                    status = FULL
                    break
            # The next row that leaves, against what is left.
            i = _first_leaving(figures, cells, state, i) if deletions == PROBED else int64(n)
            if i < n and figures[i].clock == CHANGES:
                slot = _take_out(rows, i)
                begins = slot >= 0
            elif i < n:
                slot = figures[i].lo
                figures[i].lo += 1
                begins = cells[figures[i].begins_at + slot * figures[i].stride + 1] != UNLINKED
            elif state.leaves_later != 0:
                put_first(out, out_sign, state.first, state.middle, found)
                for j in range(len(figures)):
                    figures[j].cap = _NEVER
                phase = int64(_START)
            else:
                state.middle = found
                phase, i = int64(_INSERT), int64(0)
        else:
            while i < n and figures[i].hi == figures[i].stop:
                i += 1
            if i < n:
                slot = figures[i].hi
                twin = _enter(rows, state, i, slot)
                begins = True
                if twin >= 0:
                    state.other = twin
                    status = VIOLATED
            elif state.leaves_later != 0 and found > state.first:
                _look_back(figures)
                state.middle = found
                phase, i = int64(_DELETE), int64(0)
            else:
                if is_netted and state.leaves_later == 0 and found == state.middle and state.first >= 0:
                    found = state.first  # nothing for them to cancel
                phase = int64(_START)
        if begins:
            state.depth, walks[1, i] = 0, slot
            _begin_step(rows, plan, walks, i, 0)
    state.phase, state.input, state.slot, state.status = phase, i, slot, status
    return found


@kernel
def keep_results(rows: RowArrays, plan: KMonPlan, run: KMonRun, i: int, kept: ResultArrays, output: Output) -> None:
    """Keep all results that hold now; each has a row of stream i. out: room for some, in which nothing is left.

    state.status says how the call ended: GROW, PAUSED or DONE. Between two instants only.
    """
    figures, walks, state = rows.figures, run.walks, run.state
    slot = state.slot
    state.until_inspected = state.inspected + state.most
    status = DONE
    while status in (DONE, FULL) and (state.depth >= 0 or slot < figures[i].hi):
        if state.depth < 0 and rows.cells[figures[i].begins_at + slot * figures[i].stride + 1] != UNLINKED:
            state.depth, walks[1, i] = 0, slot
            _begin_step(rows, plan, walks, i, 0)
        if state.depth >= 0:
            status, _ = _put_out_results(rows, plan, run, kept, output, _INSERT, i, int64(0))
        if state.depth < 0:
            slot += 1
    state.slot, state.status = slot, DONE if status == FULL else status


@kernel
def link_all(rows: RowArrays) -> None:
    """Fill empty buckets with the rows of all windows."""
    figures, cells = rows.figures, rows.cells
    for i in range(len(figures)):
        for slot in range(figures[i].lo, figures[i].hi):
            if cells[figures[i].begins_at + slot * figures[i].stride + 1] != UNLINKED:
                _link(rows, i, slot)


@kernel
def find_held(rows: RowArrays, s: int, keys: Int64s, places: Int64s, wanted: Int64s, slots: Int64s) -> int:
    """Write the slots of the rows held of side s's stream that have keys[x] by the side, and wanted[x] by the columns
    at `places`, into `slots`; returns how many there are, which may be more than fit."""
    figures, parts, sides, cells, heads = rows.figures, rows.parts, rows.sides, rows.cells, rows.heads
    i = sides[s].stream
    base, stride, low, following = figures[i].begins_at, figures[i].stride, figures[i].lo, sides[s].next
    count = int64(0)
    for x in range(len(keys)):
        slot = int64(heads[sides[s].heads + bucket(keys[x], sides[s].shift)])
        while slot >= low:
            at = base + slot * stride
            if key_of(cells, at, places, 0, len(places)) == wanted[x] and (
                key_of(cells, at, parts, sides[s].part, sides[s].parts_end) == keys[x]
            ):
                if count < len(slots):
                    slots[count] = slot
                count += 1
            slot = cells[at + following]
    return count
