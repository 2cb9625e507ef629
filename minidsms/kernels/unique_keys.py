"""Watching whether the keys of a stream come twice. Babu 2005, sections 6.1.3 and 6.2: many-one joins.

Keys are remembered in a table of buckets of eight places, each with its arrival; in a full bucket the oldest goes. At
first every key is looked at; once the attribute was a key for long enough, or has failed to be one, those of which the
hash begins with some zeros: they are the same whenever they come, so a repeat of one of them is seen however far away,
as long as its place lasts.
"""

from __future__ import annotations

from typing import NamedTuple

from minidsms.kernels.bounds import INFINITE, BoundState, begin, exceeds, learn
from minidsms.machine_code import Bools, Int64s, Record, helper, int64, kernel, uint64

WAYS = 8
_MOST_NEEDED = 1 << 22
_LEAST_NAP, _MOST_NAP = 16, 512
"""In windows W. What comes twice is no key, and is tried again after a nap; each is twice as long as that before."""
_PATIENCE, _LOOK = 64, 8
"""A key of which a repeat is noticed anyway is looked at for so many W, and for so many between two naps."""


class KeyState(Record):
    """need: arrivals without a repeat that make it a key; doubled when it ceases to be one.  window: so many arrivals
    are looked at in full, of later ones those of which the hash begins with `share` zeros.  asleep: until this arrival
    nothing is looked at.  nap: for how long it was not, lately.  awake: since when it is again.  may_rest: who uses the
    key notices a repeat by himself.
    """

    need: int
    window: int
    share: int
    asleep: int
    nap: int
    awake: int
    may_rest: int


class WatchedKeys(NamedTuple):
    """bound: on how many rows of a value have come before another; of a key it is 0.  keys, at: the table, its places
    in buckets.
    """

    bound: BoundState
    state: KeyState
    keys: Int64s
    at: Int64s


@helper(typed=True)
def _nap(state: KeyState, arrived: int) -> None:
    window = state.window
    state.nap = min(max(2 * state.nap, _LEAST_NAP * window), _MOST_NAP * window)
    state.asleep = state.awake = arrived + state.nap


@kernel
def note_repeat(of: WatchedKeys) -> None:
    """A key has come again."""
    bound, state = of.bound, of.state
    if exceeds(bound, 1):
        begin(bound, state.window, bound.arrived)
        state.need = min(2 * state.need, _MOST_NEEDED)
    bound.after = state.asleep = state.awake = bound.arrived
    state.nap = 0


@kernel
def observe_keys(values: Int64s, valid: Bools, of: WatchedKeys) -> None:
    """Look at the next rows. valid: empty where no value is NULL."""
    bound, state, keys, at = of
    buckets = uint64(len(keys) // WAYS)
    barrier = uint64(1) << (uint64(64) - uint64(state.share)) if state.share > 0 else uint64(0)
    arrived = bound.arrived
    i = -1
    while i + 1 < len(values):
        if arrived < state.asleep:
            asleep = min(len(values) - i - 1, state.asleep - arrived)
            arrived += asleep
            i += asleep
            continue
        i += 1
        arrived += 1
        if bound.value == INFINITE:
            if learn(bound, arrived - 1, state.need, 0):
                state.awake, state.nap = arrived, 0
        elif state.may_rest != 0 and arrived - state.awake > (_LOOK if state.nap > 0 else _PATIENCE) * state.window:
            _nap(state, arrived)
        if len(valid) > 0 and not valid[i]:
            continue
        x = uint64(values[i])
        x ^= x >> uint64(32)
        x *= uint64(0x9E3779B97F4A7C15)
        x ^= x >> uint64(29)
        x *= uint64(0xBF58476D1CE4E5B9)
        if arrived > state.window and barrier > uint64(0) and x >= barrier:
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
            if exceeds(bound, 1):
                bound.arrived = arrived
                note_repeat(of)
            elif arrived > state.window:
                _nap(state, arrived)
            bound.after = max(arrived, state.asleep)
    bound.arrived = arrived
