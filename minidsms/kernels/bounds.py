"""The bound that the values of a stream keep: what a detector of it does with one more of them.

It is the detector `streamon.change_detection.bound`, and the monitors of k-Mon run it row by row. Its state machine:
`exceeds` is Check, `begin` Initialize, `collect` Collect feedback and `learn` Use feedback.

`peaks` (BLOCKS,) are the greatest values of the last blocks, which make up a window.
"""

from __future__ import annotations

from minidsms.machine_code import Int64s, Record, helper

INFINITE = 1 << 60
"""The bound while none is known."""

PATIENCE = 8
"""Windows for which the bound may be infinite, or must be finite, before that tells something."""
FEWEST_TROUBLES, _SLOWEST = 2, 8
"""Troubles from which on values are remembered for more than a window; half of `recent` is forgotten in 1.4 windows
with 2 of them, in 88 with 8 or more."""


class BoundState(Record):
    """Of a detector. arrived: values.  highest: value of the present block.  next: the arrival that ends it.  after:
    the window holds arrivals after this one only.  since: when the bound became what it is, infinite or finite.
    troubles: how often it was exceeded, each soon after it had become finite; one less for each that came late.
    recent: 1024 times the greatest value of late, while there are troubles: the more, the slower it is forgotten.
    increases: how often it was exceeded.
    """

    arrived: int
    value: int
    highest: int
    next: int
    after: int
    since: int
    troubles: int
    recent: int
    increases: int


class BoundSettings(Record):
    """window: in arrivals, whole blocks of `block`.  limit: a greater bound is infinite.  margin: of the bound above
    the greatest value, in 1/1024.
    """

    window: int
    block: int
    limit: int
    margin: int


@helper(typed=True)
def exceeds(state: BoundState, value: int) -> bool:
    """The value tells that the bound holds no more."""
    return bool(value > state.value)


@helper(typed=True)
def begin(state: BoundState, window: int, n: int) -> bool:
    """The bound was exceeded at arrival n: it is infinite until the window behind it tells one. Whether that was soon
    after it had become finite.
    """
    was_soon = n - state.since < PATIENCE * window
    state.increases += 1
    state.troubles = state.troubles + 1 if was_soon else max(0, state.troubles - 1)
    state.value = INFINITE
    state.after = state.since = n
    return bool(was_soon)


@helper(typed=True)
def collect(state: BoundState, peaks: Int64s, settings: BoundSettings, n: int) -> None:
    """A block ends at arrival n."""
    highest, recent = state.highest, state.recent
    peaks[n // settings.block % peaks.shape[0]] = highest
    if state.troubles < FEWEST_TROUBLES:
        state.recent = 0
    else:
        state.recent = max(highest << 10, recent - max(1, recent >> (min(state.troubles, _SLOWEST) + 2)))


@helper(typed=True)
def bound_of(state: BoundState, peaks: Int64s, settings: BoundSettings) -> int:
    """What the window says, or what is remembered for longer; INFINITE beyond the limit."""
    greatest = (state.recent + 1023) >> 10
    for block in range(peaks.shape[0]):
        greatest = max(greatest, peaks[block])
    if greatest > settings.limit:
        return INFINITE
    return int(min(greatest + greatest * settings.margin // 1024, settings.limit))


@helper(typed=True)
def learn(state: BoundState, n: int, window: int, bound: int) -> bool:
    """If the window is over at arrival n, this bound holds, where it is the tighter one. Whether there was none."""
    if n - state.after < window or bound >= state.value:
        return False
    is_first = bool(state.value == INFINITE)
    if is_first:
        state.since = n
    state.value = bound
    return is_first
