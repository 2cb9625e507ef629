"""Distances between rows and the k they tell of: the loops of `streamon.k_mon.monitoring`.

An estimate is `state` (STATE_WORDS,) with `peaks` (BLOCKS,): the greatest distance of each of the last blocks of
arrivals of the watched stream, which make up the window W. Every arrival brings one distance, 0 mostly. k_u falls at
the end of a block, and rises in the middle of one. Babu 2005, section 6.6.3.

A tracker gives the distances. Of joins (6.6.3) and of clusters (6.7.2) it is a table with linear probing of three words
a slot: `keys`, `marks` (EMPTY, or the count of arrivals that the distance is reckoned from) and `born`, the number of
the row itself, by which an entry leaves with its window; of joins, twice its clock (BY_TIME: its ts), and 1 more if
another row of its key has come since. Nothing is deleted one by one for being old: when half of the
slots are taken, a sweep drops what can matter no more. Of orders (6.8.3) the tracker is `steps` (2, 2^m), a ring of
(value, arrival) at which the running maximum rose.

`settings` (SETTINGS_WORDS,) int64 does not change. Kernels return DONE, or RESIZE when the table or the ring has not
the size for what it holds: then the caller makes another and calls again; where to go on stands in the state.
"""

from __future__ import annotations

import numpy as np

from minidsms.machine_code import helper, kernel

INFINITE = 1 << 60
"""k of a constraint that is not used."""
EMPTY = -1
DONE, RESIZE = 0, 1
SMALLEST = 256
"""Slots of a table at least."""

(
    ARRIVED,  # rows of the watched stream
    K,  # k_u
    K_KEPT,  # k_e: up to here an increase is seen for certain
    HIGHEST,  # distance of the present block
    NEXT,  # the arrival that ends it
    FROM,  # the window W holds arrivals after this one only
    SINCE,  # when k_u became what it is: infinite, or finite
    TROUBLES,  # increases, each soon after k_u had become finite; one less for each that came late
    RECENT,  # 1024 times the greatest distance of late, while there are troubles: the more, the slower it is forgotten
    INCREASES,
    DORMANT,  # 1: until the constraint is kept again, it is tried now and then, on one key in SHARE
    SHIFT,  # one key in 2^SHIFT is watched
    FLOOR,  # SHIFT is no less
    SEEN,  # distances above 0 since k_u became what it is
    FARTHEST,  # distance in a trial
    RETURN,  # the least distance beyond LIMIT that has shown since the constraint was last kept for long; 0: none
    NAP,  # arrivals between the last trial and the next
    ASLEEP,  # until this arrival nothing is looked at
    REST,  # arrivals for which a constraint that is kept was last not looked at; 0: it has been all the time
    LIVE,  # slots taken, or steps kept
    SWEEP,  # 1: k_u has become finite, so that most entries are of no use any more
    OLDEST,  # of the steps
    PARENTS,  # rows of the other stream
    AT_PARENT,  # where to go on, in the arrays of this call
    AT_CHILD,
    STATE_WORDS,
) = range(26)

(
    WINDOW,  # W, in arrivals: whole blocks
    BLOCK,
    LIMIT,  # a greater k is infinite
    MARGIN,  # of k_u above the greatest distance, in 1/1024
    GROWTH,  # c, in 1/1024
    CHANCE,  # p, in 1/2^32
    HORIZON,  # rows after which an entry leaves with its window; of joins, twice as many, or twice the ticks
    SEED,
    SPAN,  # of joins: how long a parent stands in its window, by its clock; INFINITE: for good
    BY_TIME,  # 1: the clock of parents is ts; 0: their number
    MAY_SAMPLE,  # 1: who uses k notices a greater distance by itself
    CAN_REST,  # 1: what it has not seen it need not know to be used
    SETTINGS_WORDS,
) = range(13)

PATIENCE = 8
"""Windows W for which k_u may be infinite, or must be finite, before that tells something."""
MOST_TROUBLES = 32
SHARE = 32
"""In a trial one in so many keys is watched, over so many windows W."""
_SHARE_SHIFT = 5
MOST_NAPS = 16
"""Naps between trials that fail get twice as long, up to so many times a trial."""
FEWEST_TROUBLES, _SLOWEST = 2, 8
"""Troubles from which on distances are remembered for more than W; half of RECENT is forgotten in 1.4 W with 2 of them,
in 88 W with 8 or more."""
_CALM_SHIFT = 3
_CALM_DISTANCES = 40
"""One key in 2^3 is watched of a constraint that is kept, where so many distances still show in a window W, or where
k_u is 0."""
_MOST_CALM_TROUBLES = 4
_REST_PATIENCE, _MOST_RESTS = 4, 16
"""A constraint that has been kept for so many windows W may be left alone: at first for as long as it takes to know k
again, then for twice as long, up to so many times.
"""
NOTHING_STAYS = 1 << 62
"""A clock by which every entry has left its window."""
REACH, LEAST_REACH = 8, 4096
"""The sample p stays whole for so many times k_e, and arrivals; of what is older by a factor it is so much smaller."""
MOST_ENTRIES = 1 << 12
"""Where more would be remembered, every other key is watched no more: a greater table would not stay in the cache."""


@helper("void(int64[::1], int64[::1], int64)")
def _set_k(state: np.ndarray, settings: np.ndarray, k: int | np.int64) -> None:
    state[K] = k
    state[K_KEPT] = INFINITE if k == INFINITE else max(k, k * settings[GROWTH] // 1024)


@kernel("void(int64[::1], int64[::1], int64)")
def give_up(state: np.ndarray, settings: np.ndarray, n: int) -> None:
    """k_u is infinite from arrival n on, until the next window W tells a better one."""
    state[INCREASES] += 1
    was_short = n - state[SINCE] < PATIENCE * settings[WINDOW]
    state[TROUBLES] = state[TROUBLES] + 1 if was_short else max(0, state[TROUBLES] - 1)
    if not was_short:
        state[NAP] = state[RETURN] = 0
    state[REST] = 0
    if not state[DORMANT]:
        state[ASLEEP] = min(state[ASLEEP], n)
    if state[TROUBLES] >= _MOST_CALM_TROUBLES:
        state[FLOOR] = 0
    _set_k(state, settings, INFINITE)
    state[FROM] = n
    state[SINCE] = n
    state[SEEN] = 0


@kernel("void(int64[::1], int64[::1])")
def forget(state: np.ndarray, settings: np.ndarray) -> None:
    """What has been found while nobody looked all the time is not to be relied on: k_u is found anew."""
    _set_k(state, settings, INFINITE)
    n = min(state[ARRIVED], state[ASLEEP])
    state[ASLEEP] = state[FROM] = state[SINCE] = n
    state[REST] = state[FLOOR] = 0
    state[SEEN] = 0


@helper("void(int64[::1], int64[::1], int64)")
def _nap(state: np.ndarray, settings: np.ndarray, n: int) -> None:
    trial = settings[WINDOW] * SHARE
    state[NAP] = min(max(2 * state[NAP], trial), MOST_NAPS * trial)
    state[ASLEEP] = state[FROM] = n + state[NAP]
    state[FARTHEST] = 0


@helper("void(int64[::1], int64[::1], int64)")
def _doze(state: np.ndarray, settings: np.ndarray, n: int) -> None:
    """This stream does not keep the constraint: from now on try it seldom, on a share of the keys."""
    _set_k(state, settings, INFINITE)
    state[DORMANT] = 1
    state[FLOOR] = 0
    state[SHIFT] = max(state[SHIFT], _SHARE_SHIFT)
    state[SWEEP] = 1
    state[TROUBLES] = 0
    _nap(state, settings, n)


@helper("boolean(int64[::1], int64[::1], int64)")
def _is_settled(state: np.ndarray, settings: np.ndarray, n: int | np.int64) -> bool:
    """k_u has been finite for long; for longer where it has had to be given up again and again."""
    patience = _REST_PATIENCE if state[TROUBLES] < _MOST_CALM_TROUBLES else 4 * _REST_PATIENCE
    return bool(n - state[SINCE] >= patience * settings[WINDOW])


@helper("void(int64[::1], int64[::1], int64)")
def _rest(state: np.ndarray, settings: np.ndarray, n: int | np.int64) -> None:
    """This stream keeps the constraint: if k_u has been known for long enough, look away for a while.

    Nothing is remembered then, so that distances are whole k_u arrivals after the end.
    """
    window = settings[WINDOW]
    if n - state[FROM] < 2 * window:
        return
    trial = state[K] + 2 * window
    state[REST] = min(max(2 * state[REST], trial), _MOST_RESTS * trial)
    state[ASLEEP] = n + state[REST]
    state[FROM] = state[ASLEEP] + state[K]


@helper("void(int64[::1], int64[::1], int64)")
def _try(state: np.ndarray, settings: np.ndarray, n: int) -> None:
    """At the end of a block of a trial: has it failed, or is the constraint kept again?

    A trial fails as soon as a distance is too great. What was remembered before a nap stays, so that great distances
    show at once, unless it has left its window meanwhile: so a trial is longer than what it has to see.
    """
    state[FARTHEST] = max(state[FARTHEST], state[HIGHEST])
    if state[FARTHEST] > settings[LIMIT]:
        state[RETURN] = min(state[FARTHEST], state[RETURN] or state[FARTHEST])
        _nap(state, settings, n)
    elif n - state[FROM] >= max(settings[WINDOW] * SHARE, 2 * state[RETURN]):
        # Of the other keys nothing is known yet: distances are whole once those have passed.
        state[DORMANT] = 0
        state[SHIFT] = 0
        state[FROM] = state[SINCE] = n + state[FARTHEST]
        state[FARTHEST] = 0


@helper("void(int64[::1], int64[::1], int64[::1], int64, int64)")
def _judge(state: np.ndarray, peaks: np.ndarray, settings: np.ndarray, n: int, highest: int) -> None:
    """Adjust k_u at arrival n (the first is 1): the block ends, or has a greater distance. Section 6.6.3."""
    window = settings[WINDOW]
    state[HIGHEST] = highest
    if highest > state[K]:
        unseen = highest - state[K_KEPT]
        give_up(state, settings, n)
        if highest > settings[LIMIT]:
            state[RETURN] = min(highest, state[RETURN] or highest)
        # What lies further back than k_e was forgotten: such a distance is seen again only when so many rows have come.
        state[FROM] = n + max(np.int64(0), unseen)
        state[SINCE] = n if highest > settings[LIMIT] else state[FROM]
    if n < state[NEXT]:
        return
    peaks[n // settings[BLOCK] % peaks.shape[0]] = highest
    recent = state[RECENT]
    if state[TROUBLES] < FEWEST_TROUBLES:
        state[RECENT] = 0
    else:
        state[RECENT] = max(highest << 10, recent - max(1, recent >> (min(state[TROUBLES], _SLOWEST) + 2)))
    if state[DORMANT]:
        _try(state, settings, n)
    elif n - state[FROM] >= window:
        greatest = (state[RECENT] + 1023) >> 10
        for block in range(peaks.shape[0]):
            greatest = max(greatest, peaks[block])
        enough = min(greatest + greatest * settings[MARGIN] // 1024, settings[LIMIT])
        if enough < state[K] and greatest <= settings[LIMIT]:
            if state[K] == INFINITE:
                state[SINCE] = n
                state[SEEN] = 0
                state[SWEEP] = 1
            _set_k(state, settings, enough)
    if state[K] != INFINITE and state[K] > settings[LIMIT]:
        # The limit has fallen.
        _set_k(state, settings, INFINITE)
        state[SINCE] = n
    is_long = n - state[SINCE] >= PATIENCE * window
    if state[K] != INFINITE:
        is_calm = state[K] == 0 or state[SEEN] * window >= (_CALM_DISTANCES << _CALM_SHIFT) * (n - state[SINCE])
        is_calm &= is_long and _is_settled(state, settings, n)
        if settings[MAY_SAMPLE] and is_calm and state[FLOOR] == 0:
            state[FLOOR] = _CALM_SHIFT
            state[SHIFT] = max(state[SHIFT], _CALM_SHIFT)
            state[SWEEP] = 1
        if settings[MAY_SAMPLE] and settings[CAN_REST] and _is_settled(state, settings, n):
            _rest(state, settings, n)
    elif not state[DORMANT] and (is_long or state[TROUBLES] >= MOST_TROUBLES):
        _doze(state, settings, n)
    state[HIGHEST] = 0
    state[NEXT] = max(n, state[ASLEEP]) + settings[BLOCK]


@helper(inline=True)
def _mixed(word: int) -> int:
    """Bits that tell nothing of the word; as in Murmur3's finaliser."""
    h = np.uint64(word)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    return h  # type: ignore[return-value]


@helper(inline=True)
def _is_watched(key: int, seed: int, shift: int | np.int64) -> bool:
    """One of the keys that are watched: of those watched at a greater shift all are at a lesser one."""
    return bool((np.int64(_mixed(key ^ (seed << 17)) >> np.uint64(40)) & ((1 << shift) - 1)) == 0)


@helper(inline=True)
def _find(keys: np.ndarray, marks: np.ndarray, key: int) -> int:
    """The key's slot, or the empty one where it would stand."""
    mask = keys.shape[0] - 1
    at = np.int64(_mixed(key) >> np.uint64(20)) & mask
    while marks[at] != EMPTY and keys[at] != key:
        at = (at + 1) & mask
    return int(at)


@helper("void(int64[::1], int64[::1], int64[::1], int64)")
def _remove(keys: np.ndarray, marks: np.ndarray, born: np.ndarray, hole: int) -> None:
    """Empty a slot; its followers move back, so that no search ends too soon."""
    mask = keys.shape[0] - 1
    at = (hole + 1) & mask
    while marks[at] != EMPTY:
        home = np.int64(_mixed(keys[at]) >> np.uint64(20)) & mask
        # The follower may fill the hole unless its home lies cyclically in (hole, at].
        if ((at - home) & mask) >= ((at - hole) & mask):
            keys[hole], marks[hole], born[hole] = keys[at], marks[at], born[at]
            hole = at
        at = (at + 1) & mask
    marks[hole] = EMPTY


@helper("boolean(int64[::1], int64[::1], int64[::1], int64[:, ::1], int64[::1], int64[::1], int64, int64)")
def sweep(
    keys: np.ndarray,
    marks: np.ndarray,
    born: np.ndarray,
    kept: np.ndarray,
    state: np.ndarray,
    settings: np.ndarray,
    least_mark: int | np.int64,
    now: int | np.int64,
) -> bool:
    """Drop entries that left with their window, and those before `least_mark` but for a sample, which thins out with
    age; whether the table still has a good size then. Dormant, all the keys that are watched stay as long as their
    window.  kept: (3, more than are live), for the time being.
    """
    slots = keys.shape[0]
    oldest = now - settings[HORIZON]
    live = 0
    for at in range(slots):
        mark = marks[at]
        if mark == EMPTY:
            continue
        marks[at] = EMPTY
        if born[at] <= oldest:
            continue
        if mark < least_mark and not state[DORMANT]:
            lot = _mixed(keys[at] ^ (born[at] * 0x9E3779B9) ^ settings[SEED]) >> np.uint64(32)
            age, reach = least_mark - mark + state[K_KEPT], REACH * state[K_KEPT] + LEAST_REACH
            if lot * np.uint64(max(age, reach)) >= np.uint64(settings[CHANCE]) * np.uint64(reach):
                continue
        kept[0, live], kept[1, live], kept[2, live] = keys[at], mark, born[at]
        live += 1
    if live < MOST_ENTRIES // 4 and state[SHIFT] > state[FLOOR] and not state[DORMANT]:
        state[SHIFT] -= 1
    found = live
    while True:
        live = 0
        for i in range(found):
            if _is_watched(kept[0, i], settings[SEED], state[SHIFT]):
                kept[0, live], kept[1, live], kept[2, live] = kept[0, i], kept[1, i], kept[2, i]
                live += 1
        if live <= MOST_ENTRIES:
            break
        found = live
        state[SHIFT] += 1
    for i in range(live):
        at = _find(keys, marks, kept[0, i])
        keys[at], marks[at], born[at] = kept[0, i], kept[1, i], kept[2, i]
    state[LIVE] = live
    state[SWEEP] = 0
    return bool(2 * state[LIVE] <= slots and (8 * state[LIVE] >= slots or slots == SMALLEST))


@kernel(
    "int64(int64[::1], int64[::1], boolean[::1], int64[::1], int64[::1], boolean[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], int64[::1], int64[::1], int64[:, ::1])"
)
def observe_joins(
    parents: np.ndarray,
    parent_ts: np.ndarray,
    settled: np.ndarray,
    children: np.ndarray,
    child_ts: np.ndarray,
    valid: np.ndarray,
    state: np.ndarray,
    peaks: np.ndarray,
    settings: np.ndarray,
    keys: np.ndarray,
    marks: np.ndarray,
    born: np.ndarray,
    spare: np.ndarray,
) -> int:
    """RIDS: join distances of both streams' next tuples, of which ARRIVED counts the children.

    settled: where a parent need not wait; empty: nowhere.  valid: where a child is no NULL; empty: everywhere. Of an
    instant the parents come first. A parent whose window is over waits no more. Only the first of a key is known: where
    others may have come before it left and be there still, its distance is taken for theirs, which it exceeds.
    """
    p, c = state[AT_PARENT], state[AT_CHILD]
    n, parent = state[ARRIVED], state[PARENTS]
    following, k, highest = state[NEXT], state[K], state[HIGHEST]
    seed, shift = settings[SEED], state[SHIFT]
    span, by_time = settings[SPAN], settings[BY_TIME] != 0
    has_settled, has_nulls = settled.shape[0] > 0, valid.shape[0] > 0
    room = keys.shape[0] * 5 // 8
    seen = np.int64(0)
    status = DONE
    while p < parents.shape[0] or c < children.shape[0]:
        if n < state[ASLEEP]:
            asleep = min(children.shape[0] - c, state[ASLEEP] - n)
            n += asleep
            c += asleep
            # The parents before the next child that is looked at have been slept through, too.
            while p < parents.shape[0] and (n < state[ASLEEP] or parent_ts[p] <= child_ts[c - 1]):
                p += 1
                parent += 1
            continue
        if c < children.shape[0] and (p == parents.shape[0] or child_ts[c] < parent_ts[p]):
            n += 1
            distance = np.int64(0)
            if state[LIVE] > 0 and (not has_nulls or valid[c]) and (not shift or _is_watched(children[c], seed, shift)):
                at = _find(keys, marks, children[c])
                if marks[at] != EMPTY:
                    age = (child_ts[c] if by_time else parent - 1) - (born[at] >> 1)
                    if age < span or (born[at] & 1 and age - span < span):
                        distance = n - marks[at]
                    _remove(keys, marks, born, at)
                    state[LIVE] -= 1
            c += 1
            highest = max(highest, distance)
            seen += distance > 0
            if n >= following or highest > k:
                state[SEEN] += seen
                seen = np.int64(0)
                _judge(state, peaks, settings, n, highest)
                following, k, highest, shift = state[NEXT], state[K], state[HIGHEST], state[SHIFT]
                now = 2 * (child_ts[c - 1] if by_time else parent) if state[DORMANT] else NOTHING_STAYS
                if n < state[ASLEEP] and not sweep(keys, marks, born, spare, state, settings, 0, now):
                    status = RESIZE
                    break
            continue
        if (has_settled and settled[p]) or (shift and not _is_watched(parents[p], seed, shift)):
            p += 1
            parent += 1
            continue
        at = _find(keys, marks, parents[p])
        clock = parent_ts[p] if by_time else parent
        if marks[at] == EMPTY:
            if state[LIVE] >= room or state[SWEEP]:
                least = n - state[K_KEPT] + 1 if state[K_KEPT] < INFINITE else np.int64(0)
                if not sweep(keys, marks, born, spare, state, settings, least, 2 * clock):
                    status = RESIZE
                    break
                shift = state[SHIFT]
                continue
            keys[at], marks[at], born[at] = parents[p], n, 2 * clock
            state[LIVE] += 1
        elif clock - (born[at] >> 1) >= span:
            marks[at], born[at] = n, 2 * clock
        else:
            born[at] |= 1
        p += 1
        parent += 1
    state[AT_PARENT], state[AT_CHILD], state[ARRIVED], state[PARENTS], state[HIGHEST] = p, c, n, parent, highest
    state[SEEN] += seen
    return status


@kernel(
    "int64(int64[::1], boolean[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64[:, ::1])"
)
def observe_clusters(
    values: np.ndarray,
    valid: np.ndarray,
    state: np.ndarray,
    peaks: np.ndarray,
    settings: np.ndarray,
    keys: np.ndarray,
    marks: np.ndarray,
    born: np.ndarray,
    spare: np.ndarray,
) -> int:
    """CA: clustering distances of a stream's next tuples. A mark is the thesis' C_v (section 6.7.2)."""
    i = state[AT_PARENT]
    n, following, k, highest = state[ARRIVED], state[NEXT], state[K], state[HIGHEST]
    seed, shift = settings[SEED], state[SHIFT]
    has_nulls = valid.shape[0] > 0
    room = keys.shape[0] * 5 // 8
    seen = np.int64(0)
    status = DONE
    while i < values.shape[0]:
        if n < state[ASLEEP]:
            asleep = min(values.shape[0] - i, state[ASLEEP] - n)
            n += asleep
            i += asleep
            continue
        distance = np.int64(0)
        if (not has_nulls or valid[i]) and (not shift or _is_watched(values[i], seed, shift)):
            at = _find(keys, marks, values[i])
            if marks[at] != EMPTY:
                marks[at] += 1
                born[at] = n
                distance = n + 1 - marks[at]
            else:
                if state[LIVE] >= room or state[SWEEP]:
                    least = n - state[K_KEPT] if state[K_KEPT] < INFINITE else np.int64(0)
                    if not sweep(keys, marks, born, spare, state, settings, least, n):
                        status = RESIZE
                        break
                    shift = state[SHIFT]
                    continue
                keys[at], marks[at], born[at] = values[i], n + 1, n
                state[LIVE] += 1
        n += 1
        i += 1
        highest = max(highest, distance)
        seen += distance > 0
        if n >= following or highest > k:
            state[SEEN] += seen
            seen = np.int64(0)
            _judge(state, peaks, settings, n, highest)
            following, k, highest, shift = state[NEXT], state[K], state[HIGHEST], state[SHIFT]
            now = n if state[DORMANT] else NOTHING_STAYS
            if n < state[ASLEEP] and not sweep(keys, marks, born, spare, state, settings, 0, now):
                status = RESIZE
                break
    state[AT_PARENT], state[ARRIVED], state[HIGHEST] = i, n, highest
    state[SEEN] += seen
    return status


@helper(inline=True)
def _first_above(steps: np.ndarray, oldest: int, end: int, value: int, row: int) -> int:
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


@kernel("int64(int64[:, ::1], int64, int64, int64)")
def last_step(steps: np.ndarray, oldest: int, live: int, arrival: int) -> int:
    """Where the last step up to an arrival stands; -1 if there is none."""
    found = _first_above(steps, oldest, oldest + live, arrival, 1) - 1
    return found & (steps.shape[1] - 1) if found >= oldest else -1


@kernel("int64(int64[::1], boolean[::1], int64[::1], int64[::1], int64[::1], int64[:,::1])")
def observe_order(
    values: np.ndarray,
    valid: np.ndarray,
    state: np.ndarray,
    peaks: np.ndarray,
    settings: np.ndarray,
    steps: np.ndarray,
) -> int:
    """OA: scrambling distances of a stream's next tuples: how long ago the maximum rose above them.

    Steps are kept back to more than k_e arrivals before the present one (LIMIT where k_e is infinite). A value below
    all of them counts as far out of order as they reach, which is too far.
    """
    i = state[AT_PARENT]
    n, following, k, highest = state[ARRIVED], state[NEXT], state[K], state[HIGHEST]
    oldest, live = state[OLDEST], state[LIVE]
    has_nulls = valid.shape[0] > 0
    mask = steps.shape[1] - 1
    seen = np.int64(0)
    status = DONE
    # The last step that lies more than `highest` back: only what is less than its value can be further out of order.
    guard = _first_above(steps, oldest, oldest + live, n - highest, 1) - 1
    while i < values.shape[0]:
        if n < state[ASLEEP]:
            asleep = min(values.shape[0] - i, state[ASLEEP] - n)
            n += asleep
            i += asleep
            continue
        if not has_nulls or valid[i]:
            value = values[i]
            top = steps[0, (oldest + live - 1) & mask]
            kept = n - min(state[K_KEPT], settings[LIMIT])
            while live > 1 and steps[1, (oldest + 1) & mask] <= kept:
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
            state[SEEN] += seen
            seen = np.int64(0)
            _judge(state, peaks, settings, n, highest)
            following, k, highest = state[NEXT], state[K], state[HIGHEST]
            guard = _first_above(steps, oldest, oldest + live, n - highest, 1) - 1
    state[AT_PARENT], state[ARRIVED], state[OLDEST], state[LIVE], state[HIGHEST] = i, n, oldest, live, highest
    state[SEEN] += seen
    return status


@kernel("void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def move_entries(
    keys: np.ndarray,
    marks: np.ndarray,
    born: np.ndarray,
    new_keys: np.ndarray,
    new_marks: np.ndarray,
    new_born: np.ndarray,
) -> None:
    """Put the entries of a table into a larger one, all EMPTY."""
    for at in range(keys.shape[0]):
        if marks[at] != EMPTY:
            to = _find(new_keys, new_marks, keys[at])
            new_keys[to], new_marks[to], new_born[to] = keys[at], marks[at], born[at]
