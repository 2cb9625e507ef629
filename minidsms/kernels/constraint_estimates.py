"""k of a constraint, from the distances of its arrivals: what `kernels.constraint_monitoring` has in common.

k_u is the bound that distances keep, found and given up as `kernels.bounds` says, whose words come first in `state`
(STATE_WORDS,) and `settings` (SETTINGS_WORDS,); behind them stands how closely the monitor looks. Every arrival of the
watched stream brings one distance, 0 mostly. k_u falls at the end of a block, and rises in the middle of one. Babu
2005, section 6.6.3.

`settings` does not change while rows are looked at.
"""

from __future__ import annotations

import numpy as np

from minidsms.kernels import bounds
from minidsms.kernels.bounds import (
    ARRIVED,
    BLOCK,
    FROM,
    HIGHEST,
    INFINITE,
    LIMIT,
    NEXT,
    PATIENCE,
    SINCE,
    TROUBLES,
    WINDOW,
    begin,
    bound_of,
    collect,
    exceeds,
    learn,
)
from minidsms.kernels.bounds import BOUND as K
from minidsms.machine_code import helper, kernel

(
    K_KEPT,  # k_e: up to here an increase is seen for certain
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
) = range(bounds.STATE_WORDS, bounds.STATE_WORDS + 17)

(
    GROWTH,  # c, in 1/1024
    CHANCE,  # p, in 1/2^32
    HORIZON,  # rows after which an entry leaves with its window; of joins, twice as many, or twice the ticks
    SEED,
    SPAN,  # of joins: how long a parent stands in its window, by its clock; INFINITE: for good
    BY_TIME,  # 1: the clock of parents is ts; 0: their number
    MAY_SAMPLE,  # 1: who uses k notices a greater distance by itself
    CAN_REST,  # 1: what it has not seen it need not know to be used
    SETTINGS_WORDS,
) = range(bounds.SETTINGS_WORDS, bounds.SETTINGS_WORDS + 9)

MOST_TROUBLES = 32
SHARE = 32
"""In a trial one in so many keys is watched, over so many windows W."""
_SHARE_SHIFT = 5
MOST_NAPS = 16
"""Naps between trials that fail get twice as long, up to so many times a trial."""
_CALM_SHIFT = 3
_CALM_DISTANCES = 40
"""One key in 2^3 is watched of a constraint that is kept, where so many distances still show in a window W, or where
k_u is 0."""
_MOST_CALM_TROUBLES = 4
_REST_PATIENCE, _MOST_RESTS = 4, 16
"""A constraint that has been kept for so many windows W may be left alone: at first for as long as it takes to know k
again, then for twice as long, up to so many times.
"""


@helper("void(int64[::1], int64[::1])")
def _keep(state: np.ndarray, settings: np.ndarray) -> None:
    """k_e follows k_u."""
    k = state[K]
    state[K_KEPT] = INFINITE if k == INFINITE else max(k, k * settings[GROWTH] // 1024)


@kernel("void(int64[::1], int64[::1], int64)")
def give_up(state: np.ndarray, settings: np.ndarray, n: int) -> None:
    """k_u is infinite from arrival n on, until the next window W tells a better one."""
    was_soon = begin(state, settings[WINDOW], n)
    _keep(state, settings)
    if not was_soon:
        state[NAP] = state[RETURN] = 0
    state[REST] = 0
    if not state[DORMANT] and state[ASLEEP] > n:
        state[ASLEEP] = n
        state[NEXT] = n + settings[BLOCK]
    if state[TROUBLES] >= _MOST_CALM_TROUBLES:
        state[FLOOR] = 0
    state[SEEN] = 0


@kernel("void(int64[::1], int64[::1], int64[::1], int64)")
def refute(state: np.ndarray, peaks: np.ndarray, settings: np.ndarray, n: int) -> None:
    """A row has come at arrival n that k_u excluded, by how much is not known: it is taken for twice as late."""
    taken = 2 * state[K] + 1
    give_up(state, settings, n)
    if settings[MAY_SAMPLE] and taken <= settings[LIMIT]:
        # A window that has shown nothing else ends with the present block.
        before = (n // settings[BLOCK] - 1) % peaks.shape[0]
        peaks[before] = max(peaks[before], taken)
        state[FROM] = n - settings[WINDOW]


@kernel("void(int64[::1], int64[::1])")
def forget(state: np.ndarray, settings: np.ndarray) -> None:
    """What has been found while nobody looked all the time is not to be relied on: k_u is found anew."""
    state[K] = state[K_KEPT] = INFINITE
    n = min(state[ARRIVED], state[ASLEEP])
    state[ASLEEP] = state[FROM] = state[SINCE] = n
    state[NEXT] = n + settings[BLOCK]
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
    state[K] = state[K_KEPT] = INFINITE
    state[DORMANT] = 1
    state[FLOOR] = 0
    state[SHIFT] = max(state[SHIFT], _SHARE_SHIFT)
    state[SWEEP] = 1
    state[TROUBLES] = 0
    _nap(state, settings, n)


@helper("boolean(int64[::1], int64[::1], int64)")
def _is_settled(state: np.ndarray, settings: np.ndarray, n: int | np.int64) -> bool:
    """k_u has been finite for long, for longer where it has had to be given up again and again, and for so long that
    the greatest distance of use would have been seen.
    """
    patience = _REST_PATIENCE if state[TROUBLES] < _MOST_CALM_TROUBLES else 4 * _REST_PATIENCE
    return bool(n - state[SINCE] >= max(patience * settings[WINDOW], _REST_PATIENCE * settings[LIMIT]))


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
def judge(state: np.ndarray, peaks: np.ndarray, settings: np.ndarray, n: int, highest: int) -> None:
    """Adjust k_u at arrival n (the first is 1): the block ends, or has a greater distance. Section 6.6.3."""
    window = settings[WINDOW]
    state[HIGHEST] = highest
    if exceeds(state, highest):
        unseen = highest - state[K_KEPT]
        give_up(state, settings, n)
        if highest > settings[LIMIT]:
            state[RETURN] = min(highest, state[RETURN] or highest)
        # What lies further back than k_e was forgotten: such a distance is seen again only when so many rows have come.
        state[FROM] = n + max(np.int64(0), unseen)
        state[SINCE] = n if highest > settings[LIMIT] else state[FROM]
        if settings[MAY_SAMPLE] and highest <= settings[LIMIT] and state[TROUBLES] < _MOST_CALM_TROUBLES:
            # A window ends with the present block: whoever uses k would notice it if more was amiss.
            state[FROM], state[SINCE] = n - window, n
    if n < state[NEXT]:
        return
    collect(state, peaks, settings, n)
    if state[DORMANT]:
        _try(state, settings, n)
    else:
        if learn(state, n, window, bound_of(state, peaks, settings)):
            state[SEEN] = 0
            state[SWEEP] = 1
        _keep(state, settings)
    if state[K] != INFINITE and state[K] > settings[LIMIT]:
        # The limit has fallen.
        state[K] = state[K_KEPT] = INFINITE
        state[SINCE] = n
    is_long = n - state[SINCE] >= PATIENCE * window
    if state[K] != INFINITE:
        is_calm = state[K] == 0 or state[SEEN] * window >= (_CALM_DISTANCES << _CALM_SHIFT) * (n - state[SINCE])
        is_calm &= is_long and (state[TROUBLES] < _MOST_CALM_TROUBLES or n - state[SINCE] >= 2 * PATIENCE * window)
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
