"""Distances between rows and the k they tell of: the loops of `streamon.k_mon.monitoring`.

A tracker gives the distances of which `kernels.constraint_estimates` makes k. Of joins (6.6.3) and of clusters (6.7.2)
it is a table with linear probing of three words a slot: `keys`, `marks` (EMPTY, or the count of arrivals that the
distance is reckoned from) and `born`, the number of the row itself, by which an entry leaves with its window; of joins,
twice its clock (by_time: its ts), and 1 more if another row of its key has come since. Nothing is deleted one by one
for being old: when half of the slots are taken, a sweep drops what can matter no more. Of orders (6.8.3) the tracker is
`steps` (2, 2^m), a ring of (value, arrival) at which the running maximum rose.

Kernels return DONE, or RESIZE when the table or the ring has not the size for what it holds: then the caller makes
another and calls again; where to go on stands in the state.
"""

from __future__ import annotations

from typing import NamedTuple

from minidsms.kernels.bounds import INFINITE
from minidsms.kernels.constraint_estimates import EstimateState, Tracked, judge
from minidsms.machine_code import Bools, Int64s, Int64Table, helper, int64, kernel, uint64

EMPTY = -1
DONE, RESIZE = 0, 1
SMALLEST = 256
"""Slots of a table at least."""
REACH, LEAST_REACH = 8, 4096
"""The sample p stays whole for so many times k_e, and arrivals; of what is older by a factor it is so much smaller."""
MOST_ENTRIES = 1 << 12
"""Where more would be remembered, every other key is watched no more: a greater table would not stay in the cache. A
constraint that is not kept is worth a quarter of that."""
NOTHING_STAYS = 1 << 62
"""A clock by which every entry has left its window."""


class Table(NamedTuple):
    """Slots, and room (3, slots) for the entries while they are sorted out."""

    keys: Int64s
    marks: Int64s
    born: Int64s
    spare: Int64Table


@helper(inline=True)
def _mixed(word: int) -> int:
    """Bits that tell nothing of the word; as in Murmur3's finaliser."""
    h = uint64(word)
    h ^= h >> uint64(33)
    h *= uint64(0xFF51AFD7ED558CCD)
    h ^= h >> uint64(33)
    return h


@helper(inline=True)
def _is_watched(key: int, seed: int, shift: int) -> bool:
    """One of the keys that are watched: of those watched at a greater shift all are at a lesser one."""
    return bool((int64(_mixed(key ^ (seed << 17)) >> uint64(40)) & ((1 << shift) - 1)) == 0)


@helper(inline=True)
def _find(keys: Int64s, marks: Int64s, key: int) -> int:
    """The key's slot, or the empty one where it would stand."""
    mask = keys.shape[0] - 1
    at = int64(_mixed(key) >> uint64(20)) & mask
    while marks[at] != EMPTY and keys[at] != key:
        at = (at + 1) & mask
    return int(at)


@helper(typed=True)
def _remove(keys: Int64s, marks: Int64s, born: Int64s, hole: int) -> None:
    """Empty a slot; its followers move back, so that no search ends too soon."""
    mask = keys.shape[0] - 1
    at = (hole + 1) & mask
    while marks[at] != EMPTY:
        home = int64(_mixed(keys[at]) >> uint64(20)) & mask
        # The follower may fill the hole unless its home lies cyclically in (hole, at].
        if ((at - home) & mask) >= ((at - hole) & mask):
            keys[hole], marks[hole], born[hole] = keys[at], marks[at], born[at]
            hole = at
        at = (at + 1) & mask
    marks[hole] = EMPTY


@helper(typed=True)
def _sweep(of: Tracked, table: Table, arrival: int, now: int) -> bool:
    """Drop entries that left with their window, and those more than k_e before an arrival but for a sample, which
    thins out with age; whether the table still has a good size then. Dormant, all the keys that are watched stay as
    long as their window.
    """
    state, settings = of.state, of.settings
    keys, marks, born, kept = table.keys, table.marks, table.born, table.spare
    least_mark = arrival - state.k_kept if state.k_kept < INFINITE else int64(0)
    slots = keys.shape[0]
    oldest = now - settings.horizon
    live = 0
    for at in range(slots):
        mark = marks[at]
        if mark == EMPTY:
            continue
        marks[at] = EMPTY
        if born[at] <= oldest:
            continue
        if mark < least_mark and not state.is_dormant:
            lot = _mixed(keys[at] ^ (born[at] * 0x9E3779B9) ^ settings.seed) >> uint64(32)
            age, reach = least_mark - mark + state.k_kept, REACH * state.k_kept + LEAST_REACH
            if lot * uint64(max(age, reach)) >= uint64(settings.chance) * uint64(reach):
                continue
        kept[0, live], kept[1, live], kept[2, live] = keys[at], mark, born[at]
        live += 1
    if live < MOST_ENTRIES // 4 and state.shift > state.floor and not state.is_dormant:
        state.shift -= 1
    found = live
    while True:
        live = 0
        for i in range(found):
            if _is_watched(kept[0, i], settings.seed, state.shift):
                kept[0, live], kept[1, live], kept[2, live] = kept[0, i], kept[1, i], kept[2, i]
                live += 1
        if live <= (MOST_ENTRIES // 4 if state.is_dormant else MOST_ENTRIES):
            break
        found = live
        state.shift += 1
    for i in range(live):
        at = _find(keys, marks, kept[0, i])
        keys[at], marks[at], born[at] = kept[0, i], kept[1, i], kept[2, i]
    state.live = live
    state.sweeps = 0
    return bool(2 * state.live <= slots and (8 * state.live >= slots or slots == SMALLEST))


@helper(inline=True)
def _is_due(state: EstimateState, table: Table) -> bool:
    """The table is to be swept before another entry comes into it."""
    return bool(state.live >= table.keys.shape[0] * 5 // 8 or state.sweeps)


@helper(inline=True)
def _judge(of: Tracked, table: Table, n: int, highest: int, seen: int, now: int) -> bool:
    """Judge so many distances seen, up to an arrival; whether the table still has a good size. Asleep, nothing stays,
    or dormant what has not left its window by now.
    """
    state = of.state
    state.seen += seen
    judge(of, n, highest)
    is_awake = n >= state.asleep
    return bool(is_awake or _sweep(of, table, int64(0), now if state.is_dormant else NOTHING_STAYS))


class References(NamedTuple):
    """The next tuples of two streams, parents and children that refer to them, each in the order of ts.

    settled: where a parent need not wait; empty: nowhere.  valid: where a child is no NULL; empty: everywhere.
    """

    parents: Int64s
    parent_ts: Int64s
    settled: Bools
    children: Int64s
    child_ts: Int64s
    valid: Bools


@helper(inline=True)
def _await_child(of: Tracked, table: Table, at: int, parent: int, clock: int, n: int) -> None:
    """Let a parent that came at n arrivals wait for its child in its slot, unless one of its key does already."""
    if table.marks[at] == EMPTY:
        table.keys[at], table.marks[at], table.born[at] = parent, n, 2 * clock
        of.state.live += 1
    elif clock - (table.born[at] >> 1) >= of.settings.span:
        table.marks[at], table.born[at] = n, 2 * clock
    else:
        table.born[at] |= 1


@helper(inline=True)
def _meet_parent(of: Tracked, table: Table, child: int, clock: int, n: int) -> int:
    """The distance of a child, the n-th arrival, from the parent that waits for it, and then waits no more; 0 where
    none does, or its window is over.
    """
    keys, marks, born, span = table.keys, table.marks, table.born, of.settings.span
    distance = int64(0)
    at = _find(keys, marks, child)
    if marks[at] != EMPTY:
        age = clock - (born[at] >> 1)
        if age < span or (born[at] & 1 and age - span < span):
            distance = n - marks[at]
        _remove(keys, marks, born, at)
        of.state.live -= 1
    return distance


@kernel
def observe_references(given: References, of: Tracked, table: Table) -> int:
    """RIDS: join distances of both streams' next tuples, of which `arrived` counts the children.

    Of an instant the parents come first. A parent whose window is over waits no more. Only the first of a key is known:
    where others may have come before it left and be there still, its distance is taken for theirs, which it exceeds.
    """
    parents, parent_ts, settled, children, child_ts, valid = given
    bound, state, settings = of.bound, of.state, of.settings
    p, c, n, parent = state.at_parent, state.at_child, bound.arrived, state.parents
    following, k, highest = bound.next, bound.value, bound.highest
    seed, shift, by_time = settings.seed, state.shift, settings.by_time != 0
    has_settled, has_nulls = settled.shape[0] > 0, valid.shape[0] > 0
    seen = int64(0)
    status = DONE
    while p < parents.shape[0] or c < children.shape[0]:
        if n < state.asleep:
            asleep = min(children.shape[0] - c, state.asleep - n)
            n += asleep
            c += asleep
            # The parents before the next child that is looked at have been slept through, too.
            while p < parents.shape[0] and (n < state.asleep or parent_ts[p] <= child_ts[c - 1]):
                p += 1
                parent += 1
            continue
        if c < children.shape[0] and (p == parents.shape[0] or child_ts[c] < parent_ts[p]):
            n += 1
            if state.live > 0 and (not has_nulls or valid[c]) and (not shift or _is_watched(children[c], seed, shift)):
                distance = _meet_parent(of, table, children[c], child_ts[c] if by_time else parent - 1, n)
                highest = max(highest, distance)
                seen += distance > 0
            c += 1
            if n >= following or highest > k:
                fits = _judge(of, table, n, highest, seen, 2 * (child_ts[c - 1] if by_time else parent))
                following, k, highest, shift = bound.next, bound.value, bound.highest, state.shift
                seen = int64(0)
                if not fits:
                    status = RESIZE
                    break
            continue
        if not (has_settled and settled[p]) and (not shift or _is_watched(parents[p], seed, shift)):
            at = _find(table.keys, table.marks, parents[p])
            clock = parent_ts[p] if by_time else parent
            if table.marks[at] == EMPTY and _is_due(state, table):
                if not _sweep(of, table, n + 1, 2 * clock):
                    status = RESIZE
                    break
                shift = state.shift
                continue
            _await_child(of, table, at, parents[p], clock, n)
        p += 1
        parent += 1
    state.at_parent, state.at_child, bound.arrived, state.parents, bound.highest = p, c, n, parent, highest
    state.seen += seen
    return status


@kernel
def observe_clusters(values: Int64s, valid: Bools, of: Tracked, table: Table) -> int:
    """CA: clustering distances of a stream's next tuples. A mark is the thesis' C_v (section 6.7.2)."""
    bound, state, settings = of.bound, of.state, of.settings
    keys, marks, born = table.keys, table.marks, table.born
    i = state.at_parent
    n, following, k, highest = bound.arrived, bound.next, bound.value, bound.highest
    seed, shift = settings.seed, state.shift
    has_nulls = valid.shape[0] > 0
    seen = int64(0)
    status = DONE
    while i < values.shape[0]:
        if n < state.asleep:
            asleep = min(values.shape[0] - i, state.asleep - n)
            n += asleep
            i += asleep
            continue
        distance = int64(0)
        if (not has_nulls or valid[i]) and (not shift or _is_watched(values[i], seed, shift)):
            at = _find(keys, marks, values[i])
            if marks[at] != EMPTY:
                marks[at] += 1
                born[at] = n
                distance = n + 1 - marks[at]
            else:
                if _is_due(state, table):
                    if not _sweep(of, table, n, n):
                        status = RESIZE
                        break
                    shift = state.shift
                    continue
                keys[at], marks[at], born[at] = values[i], n + 1, n
                state.live += 1
        n += 1
        i += 1
        highest = max(highest, distance)
        seen += distance > 0
        if n >= following or highest > k:
            fits = _judge(of, table, n, highest, seen, n)
            following, k, highest, shift = bound.next, bound.value, bound.highest, state.shift
            seen = int64(0)
            if not fits:
                status = RESIZE
                break
    state.at_parent, bound.arrived, bound.highest = i, n, highest
    state.seen += seen
    return status


@helper(inline=True)
def _first_above(steps: Int64Table, oldest: int, end: int, value: int, row: int) -> int:
    """The first step of [oldest, end) whose value (row 0) or arrival (row 1) is greater; `end` if there is none."""
    mask = steps.shape[1] - 1
    low, high = oldest, end
    while low < high:
        middle = (low + high) // 2
        if steps[row, middle & mask] > value:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def last_step(steps: Int64Table, oldest: int, live: int, arrival: int) -> int:
    """Where the last step up to an arrival stands; -1 if there is none."""
    found = _first_above(steps, oldest, oldest + live, arrival, 1) - 1
    return found & (steps.shape[1] - 1) if found >= oldest else -1


@kernel
def observe_order(values: Int64s, valid: Bools, of: Tracked, steps: Int64Table) -> int:
    """OA: scrambling distances of a stream's next tuples: how long ago the maximum rose above them.

    Steps are kept back to more than k_e arrivals before the present one (the limit where k_e is infinite). A value
    below all of them counts as far out of order as they reach, which is too far.
    """
    bound, state, limits = of.bound, of.state, of.limits
    i = state.at_parent
    n, following, k, highest = bound.arrived, bound.next, bound.value, bound.highest
    oldest, live = state.oldest, state.live
    asleep, reach = state.asleep, min(state.k_kept, limits.limit)
    has_nulls = valid.shape[0] > 0
    mask = steps.shape[1] - 1
    seen = int64(0)
    status = DONE
    # The last step that lies more than `highest` back: only what is less than its value can be further out of order.
    guard = _first_above(steps, oldest, oldest + live, n - highest, 1) - 1
    while i < values.shape[0]:
        if n < asleep:
            left_out = min(values.shape[0] - i, asleep - n)
            n += left_out
            i += left_out
            continue
        if not has_nulls or valid[i]:
            value = values[i]
            top = steps[0, (oldest + live - 1) & mask]
            while live > 1 and steps[1, (oldest + 1) & mask] <= n - reach:
                oldest += 1
                live -= 1
            if live == 0 or value > top:
                if live == steps.shape[1]:
                    status = RESIZE
                    break
                steps[0, (oldest + live) & mask] = value
                steps[1, (oldest + live) & mask] = n + 1
                live += 1
            elif value < top:
                seen += 1
                while guard + 1 < oldest + live and steps[1, (guard + 1) & mask] <= n - highest:
                    guard += 1
                if guard >= oldest and steps[0, guard & mask] > value:
                    guard = _first_above(steps, oldest, guard, value, 0)
                    highest = n + 1 - steps[1, guard & mask]
                    guard -= 1
        n += 1
        i += 1
        if n >= following or highest > k:
            state.seen += seen
            seen = int64(0)
            judge(of, n, highest)
            following, k, highest = bound.next, bound.value, bound.highest
            asleep, reach = state.asleep, min(state.k_kept, limits.limit)
            guard = _first_above(steps, oldest, oldest + live, n - highest, 1) - 1
    state.at_parent, bound.arrived, state.oldest, state.live, bound.highest = i, n, oldest, live, highest
    state.seen += seen
    return status


@kernel
def move_entries(table: Table, larger: Table) -> None:
    """Put the entries of a table into a larger one, all EMPTY."""
    keys, marks, born = table.keys, table.marks, table.born
    for at in range(keys.shape[0]):
        if marks[at] != EMPTY:
            to = _find(larger.keys, larger.marks, keys[at])
            larger.keys[to], larger.marks[to], larger.born[to] = keys[at], marks[at], born[at]
