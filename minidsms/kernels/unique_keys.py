"""Watching whether the keys of a stream come twice. Babu 2005, sections 6.1.3 and 6.2: many-one joins.

Keys are remembered in a table of buckets of eight places, each with its arrival; in a full bucket the oldest goes. At
first every key is looked at; once the attribute was a key for long enough, or has failed to be one, those of which the
hash begins with some zeros: they are the same whenever they come, so a repeat of one of them is seen however far away,
as long as its place lasts.
"""

from __future__ import annotations

from minidsms.kernels import bounds
from minidsms.kernels.bounds import ARRIVED, BOUND, FROM, INFINITE, begin, exceeds, learn
from minidsms.machine_code import helper, int64, kernel, uint64

NEED, WINDOW, SHARE, ASLEEP, NAP, AWAKE, MAY_REST, STATE_WORDS = range(bounds.STATE_WORDS, bounds.STATE_WORDS + 8)
"""Behind the words of `kernels.bounds`: the bound of a key, on how many rows of a value have come before another, is 0.
NEED: arrivals without a repeat that make it a key; doubled when it ceases to be one.  WINDOW: so many arrivals are
looked at in full, of later ones those of which the hash begins with SHARE zeros.  ASLEEP: until this arrival nothing is
looked at.  NAP: for how long it was not, lately.  AWAKE: since when it is again.  MAY_REST: who uses the key notices a
repeat by himself.
"""

WAYS = 8
_MOST_NEEDED = 1 << 22
_LEAST_NAP, _MOST_NAP = 16, 512
"""In windows W. What comes twice is no key, and is tried again after a nap; each is twice as long as that before."""
_PATIENCE, _LOOK = 64, 8
"""A key of which a repeat is noticed anyway is looked at for so many W, and for so many between two naps."""


@helper("void(int64[::1], int64)")
def _nap(state, arrived):  # type: ignore[no-untyped-def]
    window = state[WINDOW]
    state[NAP] = min(max(2 * state[NAP], _LEAST_NAP * window), _MOST_NAP * window)
    state[ASLEEP] = state[AWAKE] = arrived + state[NAP]


@kernel("void(int64[::1])")
def note_repeat(state):  # type: ignore[no-untyped-def]
    """A key has come again."""
    if exceeds(state, 1):
        begin(state, state[WINDOW], state[ARRIVED])
        state[NEED] = min(2 * state[NEED], _MOST_NEEDED)
    state[FROM] = state[ASLEEP] = state[AWAKE] = state[ARRIVED]
    state[NAP] = 0


@kernel("void(int64[::1], boolean[::1], int64[::1], int64[::1], int64[::1])")
def observe_keys(values, valid, state, keys, at):  # type: ignore[no-untyped-def]
    """Look at the next rows. valid: empty where no value is NULL.  keys, at: the table, its places in buckets."""
    buckets = uint64(len(keys) // WAYS)
    barrier = uint64(1) << (uint64(64) - uint64(state[SHARE])) if state[SHARE] > 0 else uint64(0)
    arrived = state[ARRIVED]
    i = -1
    while i + 1 < len(values):
        if arrived < state[ASLEEP]:
            asleep = min(len(values) - i - 1, state[ASLEEP] - arrived)
            arrived += asleep
            i += asleep
            continue
        i += 1
        arrived += 1
        if state[BOUND] == INFINITE:
            if learn(state, arrived - 1, state[NEED], 0):
                state[AWAKE], state[NAP] = arrived, 0
        elif state[MAY_REST] != 0 and arrived - state[AWAKE] > (_LOOK if state[NAP] > 0 else _PATIENCE) * state[WINDOW]:
            _nap(state, arrived)
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
            if exceeds(state, 1):
                state[ARRIVED] = arrived
                note_repeat(state)
            elif arrived > state[WINDOW]:
                _nap(state, arrived)
            state[FROM] = max(arrived, state[ASLEEP])
    state[ARRIVED] = arrived
