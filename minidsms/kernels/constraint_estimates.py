"""k of a constraint, from the distances of its arrivals: what `kernels.constraint_monitoring` has in common.

An estimate is `state` (STATE_WORDS,) with `peaks` (BLOCKS,): the greatest distance of each of the last blocks of
arrivals of the watched stream, which make up the window W. Every arrival brings one distance, 0 mostly. k_u falls at
the end of a block, and rises in the middle of one. Babu 2005, section 6.6.3.

`settings` (SETTINGS_WORDS,) int64 does not change while rows are looked at.
"""

from __future__ import annotations

import numpy as np

from minidsms.machine_code import helper, kernel

INFINITE = 1 << 60
"""k of a constraint that is not used."""

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
    if not state[DORMANT] and state[ASLEEP] > n:
        state[ASLEEP] = n
        state[NEXT] = n + settings[BLOCK]
    if state[TROUBLES] >= _MOST_CALM_TROUBLES:
        state[FLOOR] = 0
    _set_k(state, settings, INFINITE)
    state[FROM] = n
    state[SINCE] = n
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
    _set_k(state, settings, INFINITE)
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
    _set_k(state, settings, INFINITE)
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
    if highest > state[K]:
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
