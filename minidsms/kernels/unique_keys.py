"""Watching whether the keys of a stream come twice. Babu 2005, sections 6.1.3 and 6.2: many-one joins.

Keys are remembered in a table of buckets of eight places, each with its arrival; in a full bucket the oldest goes. At
first every key is looked at; once the attribute was a key for long enough, or has failed to be one, those of which the
hash begins with some zeros: they are the same whenever they come, so a repeat of one of them is seen however far away,
as long as its place lasts.
"""

from __future__ import annotations

from minidsms.machine_code import int64, kernel, uint64

ARRIVED, SINCE, NEED, WINDOW, SHARE, IS_KEY, BREAKS, STATE_WORDS = range(8)
"""SINCE: arrivals before the last repeat.  NEED: arrivals without one that make it a key; doubled when it ceases to be
one.  WINDOW: so many arrivals are looked at in full, of later ones those of which the hash begins with SHARE zeros.
"""

WAYS = 8
_MOST_NEEDED = 1 << 22


@kernel("void(int64[::1])")
def note_repeat(state):  # type: ignore[no-untyped-def]
    """A key has come again."""
    if state[IS_KEY] != 0:
        state[IS_KEY] = 0
        state[BREAKS] += 1
        state[NEED] = min(2 * state[NEED], _MOST_NEEDED)
    state[SINCE] = state[ARRIVED]


@kernel("void(int64[::1], boolean[::1], int64[::1], int64[::1], int64[::1])")
def observe_keys(values, valid, state, keys, at):  # type: ignore[no-untyped-def]
    """Look at the next rows. valid: empty where no value is NULL.  keys, at: the table, its places in buckets."""
    buckets = uint64(len(keys) // WAYS)
    barrier = uint64(1) << (uint64(64) - uint64(state[SHARE])) if state[SHARE] > 0 else uint64(0)
    arrived = state[ARRIVED]
    for i in range(len(values)):
        arrived += 1
        state[ARRIVED] = arrived
        if state[IS_KEY] == 0 and arrived - state[SINCE] > state[NEED]:
            state[IS_KEY] = 1
        if len(valid) > 0 and not valid[i]:
            continue
        x = uint64(values[i])
        x ^= x >> uint64(32)
        x *= uint64(0x9E3779B97F4A7C15)
        x ^= x >> uint64(29)
        x *= uint64(0xBF58476D1CE4E5B9)
        if arrived > state[WINDOW] and barrier > uint64(0) and x >= barrier:
            continue
        first = int64((x >> uint64(8)) % buckets) * WAYS
        place, oldest = first, at[first]
        is_repeat = False
        for p in range(first, first + WAYS):
            if at[p] > 0 and keys[p] == values[i]:
                place, is_repeat = p, True
                break
            if at[p] < oldest:
                place, oldest = p, at[p]
        keys[place], at[place] = values[i], arrived
        if is_repeat:
            if state[IS_KEY] != 0:
                state[IS_KEY] = 0
                state[BREAKS] += 1
                state[NEED] = min(2 * state[NEED], _MOST_NEEDED)
            state[SINCE] = arrived
