"""k of a constraint, from the distances of its arrivals: what `kernels.constraint_monitoring` has in common.

k_u is the bound that distances keep, found and given up as `kernels.bounds` says; beside it stands how closely the
monitor looks. Every arrival of the watched stream brings one distance, 0 mostly. k_u falls at the end of a block, and
rises in the middle of one. Babu 2005, section 6.6.3.
"""

from __future__ import annotations

from typing import NamedTuple

from minidsms.kernels.bounds import (
    INFINITE,
    PATIENCE,
    BoundSettings,
    BoundState,
    begin,
    bound_of,
    collect,
    exceeds,
    learn,
)
from minidsms.machine_code import Int64s, Record, helper, int64, kernel

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


class EstimateState(Record):
    """k_kept: k_e, up to here an increase is seen for certain.  is_dormant: until the constraint is kept again, it is
    tried now and then, on one key in SHARE.  shift: one key in 2^shift is watched; it is no less than `floor`.  seen:
    distances above 0 since k_u became what it is.  farthest: distance in a trial.  returned: the least distance beyond
    the limit that has shown since the constraint was last kept for long; 0: none.  nap: arrivals between the last trial
    and the next.  asleep: until this arrival nothing is looked at.  rest: arrivals for which a constraint that is kept
    was last not looked at; 0: it has been all the time.  live: slots taken, or steps kept; oldest: of the steps.
    sweeps: k_u has become finite, so that most entries are of no use any more.  parents: rows of the other stream.
    at_parent, at_child: where to go on, in the arrays of this call.
    """

    k_kept: int
    is_dormant: int
    shift: int
    floor: int
    seen: int
    farthest: int
    returned: int
    nap: int
    asleep: int
    rest: int
    live: int
    sweeps: int
    oldest: int
    parents: int
    at_parent: int
    at_child: int


class EstimateSettings(Record):
    """growth: c, in 1/1024.  chance: p, in 1/2^32.  horizon: rows after which an entry leaves with its window; of
    joins, twice as many, or twice the ticks.  span: of joins, how long a parent stands in its window, by its clock;
    INFINITE: for good.  by_time: the clock of parents is ts, else their number.  may_sample: who uses k notices a
    greater distance by itself.  can_rest: what it has not seen it need not know to be used.
    """

    growth: int
    chance: int
    horizon: int
    seed: int
    span: int
    by_time: int
    may_sample: int
    can_rest: int


class Tracked(NamedTuple):
    """What the estimate of a monitor is made of. bound: k_u.  peaks: as of `bounds`.  limits: of the bound; they, and
    settings, do not change while rows are looked at.
    """

    bound: BoundState
    state: EstimateState
    peaks: Int64s
    limits: BoundSettings
    settings: EstimateSettings


@helper(typed=True)
def _keep(of: Tracked) -> None:
    """k_e follows k_u."""
    bound, state, settings = of.bound, of.state, of.settings
    k = bound.value
    state.k_kept = INFINITE if k == INFINITE else max(k, k * settings.growth // 1024)


@kernel
def give_up(of: Tracked, n: int) -> None:
    """k_u is infinite from arrival n on, until the next window W tells a better one."""
    bound, state, limits = of.bound, of.state, of.limits
    was_soon = begin(bound, limits.window, n)
    _keep(of)
    if not was_soon:
        state.nap = state.returned = 0
    state.rest = 0
    if not state.is_dormant and state.asleep > n:
        state.asleep = n
        bound.next = n + limits.block
    if bound.troubles >= _MOST_CALM_TROUBLES:
        state.floor = 0
    state.seen = 0


@kernel
def refute(of: Tracked, n: int) -> None:
    """A row has come at arrival n that k_u excluded, by how much is not known: it is taken for twice as late."""
    bound, peaks, limits, settings = of.bound, of.peaks, of.limits, of.settings
    taken = 2 * bound.value + 1
    give_up(of, n)
    if settings.may_sample and taken <= limits.limit:
        # A window that has shown nothing else ends with the present block.
        before = (n // limits.block - 1) % peaks.shape[0]
        peaks[before] = max(peaks[before], taken)
        bound.after = n - limits.window


@kernel
def forget(of: Tracked) -> None:
    """What has been found while nobody looked all the time is not to be relied on: k_u is found anew."""
    bound, state, limits = of.bound, of.state, of.limits
    bound.value = state.k_kept = INFINITE
    n = min(bound.arrived, state.asleep)
    state.asleep = bound.after = bound.since = n
    bound.next = n + limits.block
    state.rest = state.floor = 0
    state.seen = 0


@helper(typed=True)
def _nap(of: Tracked, n: int) -> None:
    bound, state, limits = of.bound, of.state, of.limits
    trial = limits.window * SHARE
    state.nap = min(max(2 * state.nap, trial), MOST_NAPS * trial)
    state.asleep = bound.after = n + state.nap
    state.farthest = 0


@helper(typed=True)
def _doze(of: Tracked, n: int) -> None:
    """This stream does not keep the constraint: from now on try it seldom, on a share of the keys."""
    bound, state = of.bound, of.state
    bound.value = state.k_kept = INFINITE
    state.is_dormant = 1
    state.floor = 0
    state.shift = max(state.shift, _SHARE_SHIFT)
    state.sweeps = 1
    bound.troubles = 0
    _nap(of, n)


@helper(typed=True)
def _is_settled(of: Tracked, n: int) -> bool:
    """k_u has been finite for long, for longer where it has had to be given up again and again, and for so long that
    the greatest distance of use would have been seen.
    """
    bound, limits = of.bound, of.limits
    patience = _REST_PATIENCE if bound.troubles < _MOST_CALM_TROUBLES else 4 * _REST_PATIENCE
    return bool(n - bound.since >= max(patience * limits.window, _REST_PATIENCE * limits.limit))


@helper(typed=True)
def _rest(of: Tracked, n: int) -> None:
    """This stream keeps the constraint: if k_u has been known for long enough, look away for a while.

    Nothing is remembered then, so that distances are whole k_u arrivals after the end.
    """
    bound, state, limits = of.bound, of.state, of.limits
    window = limits.window
    if n - bound.after < 2 * window:
        return
    trial = bound.value + 2 * window
    state.rest = min(max(2 * state.rest, trial), _MOST_RESTS * trial)
    state.asleep = n + state.rest
    bound.after = state.asleep + bound.value


@helper(typed=True)
def _try(of: Tracked, n: int) -> None:
    """At the end of a block of a trial: has it failed, or is the constraint kept again?

    A trial fails as soon as a distance is too great. What was remembered before a nap stays, so that great distances
    show at once, unless it has left its window meanwhile: so a trial is longer than what it has to see.
    """
    bound, state, limits = of.bound, of.state, of.limits
    state.farthest = max(state.farthest, bound.highest)
    if state.farthest > limits.limit:
        state.returned = min(state.farthest, state.returned or state.farthest)
        _nap(of, n)
    elif n - bound.after >= max(limits.window * SHARE, 2 * state.returned):
        # Of the other keys nothing is known yet: distances are whole once those have passed.
        state.is_dormant = 0
        state.shift = 0
        bound.after = bound.since = n + state.farthest
        state.farthest = 0


@helper(typed=True)
def judge(of: Tracked, n: int, highest: int) -> None:
    """Adjust k_u at arrival n (the first is 1): the block ends, or has a greater distance. Section 6.6.3."""
    bound, state, limits, settings = of.bound, of.state, of.limits, of.settings
    window = limits.window
    bound.highest = highest
    if exceeds(bound, highest):
        unseen = highest - state.k_kept
        give_up(of, n)
        if highest > limits.limit:
            state.returned = min(highest, state.returned or highest)
        # What lies further back than k_e was forgotten: such a distance is seen again only when so many rows have come.
        bound.after = n + max(int64(0), unseen)
        bound.since = n if highest > limits.limit else bound.after
        if settings.may_sample and highest <= limits.limit and bound.troubles < _MOST_CALM_TROUBLES:
            # A window ends with the present block: whoever uses k would notice it if more was amiss.
            bound.after, bound.since = n - window, n
    if n < bound.next:
        return
    collect(bound, of.peaks, limits, n)
    if state.is_dormant:
        _try(of, n)
    else:
        if learn(bound, n, window, bound_of(bound, of.peaks, limits)):
            state.seen = 0
            state.sweeps = 1
        _keep(of)
    if bound.value != INFINITE and bound.value > limits.limit:
        # The limit has fallen.
        bound.value = state.k_kept = INFINITE
        bound.since = n
    is_long = n - bound.since >= PATIENCE * window
    if bound.value != INFINITE:
        is_calm = bound.value == 0 or state.seen * window >= (_CALM_DISTANCES << _CALM_SHIFT) * (n - bound.since)
        is_calm &= is_long and (bound.troubles < _MOST_CALM_TROUBLES or n - bound.since >= 2 * PATIENCE * window)
        if settings.may_sample and is_calm and state.floor == 0:
            state.floor = _CALM_SHIFT
            state.shift = max(state.shift, _CALM_SHIFT)
            state.sweeps = 1
        if settings.may_sample and settings.can_rest and _is_settled(of, n):
            _rest(of, n)
    elif not state.is_dormant and (is_long or bound.troubles >= MOST_TROUBLES):
        _doze(of, n)
    bound.highest = 0
    bound.next = max(n, state.asleep) + limits.block
