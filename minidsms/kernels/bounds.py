"""The bound that the values of a stream keep: what a detector of it does with one more of them.

It is the detector `streamon.change_detection.bound`, and the monitors of k-Mon run it row by row. Its state machine:
`exceeds` is Check, `begin` Initialize, `collect` Collect feedback and `learn` Use feedback.

`state` (STATE_WORDS,) and `peaks` (BLOCKS,), the greatest value of each of the last blocks, which make up a window;
`settings` (SETTINGS_WORDS,). All are int64, and whoever tracks the values may keep more behind these words.
"""

from __future__ import annotations

import numpy as np

from minidsms.machine_code import helper

INFINITE = 1 << 60
"""The bound while none is known."""

(
    ARRIVED,  # values
    BOUND,
    HIGHEST,  # value of the present block
    NEXT,  # the arrival that ends it
    FROM,  # the window holds arrivals after this one only
    SINCE,  # when the bound became what it is: infinite, or finite
    TROUBLES,  # how often it was exceeded, each soon after it had become finite; one less for each that came late
    RECENT,  # 1024 times the greatest value of late, while there are troubles: the more, the slower it is forgotten
    INCREASES,  # how often it was exceeded
    STATE_WORDS,
) = range(10)

(
    WINDOW,  # in arrivals: whole blocks
    BLOCK,
    LIMIT,  # a greater bound is infinite
    MARGIN,  # of the bound above the greatest value, in 1/1024
    SETTINGS_WORDS,
) = range(5)

PATIENCE = 8
"""Windows for which the bound may be infinite, or must be finite, before that tells something."""
FEWEST_TROUBLES, _SLOWEST = 2, 8
"""Troubles from which on values are remembered for more than a window; half of RECENT is forgotten in 1.4 windows with
2 of them, in 88 with 8 or more."""


@helper("boolean(int64[::1], int64)")
def exceeds(state: np.ndarray, value: int) -> bool:
    """The value tells that the bound holds no more."""
    return bool(value > state[BOUND])


@helper("boolean(int64[::1], int64, int64)")
def begin(state: np.ndarray, window: int, n: int) -> bool:
    """The bound was exceeded at arrival n: it is infinite until the window behind it tells one. Whether that was soon
    after it had become finite.
    """
    was_soon = n - state[SINCE] < PATIENCE * window
    state[INCREASES] += 1
    state[TROUBLES] = state[TROUBLES] + 1 if was_soon else max(0, state[TROUBLES] - 1)
    state[BOUND] = INFINITE
    state[FROM] = state[SINCE] = n
    return bool(was_soon)


@helper("void(int64[::1], int64[::1], int64[::1], int64)")
def collect(state: np.ndarray, peaks: np.ndarray, settings: np.ndarray, n: int) -> None:
    """A block ends at arrival n."""
    highest, recent = state[HIGHEST], state[RECENT]
    peaks[n // settings[BLOCK] % peaks.shape[0]] = highest
    if state[TROUBLES] < FEWEST_TROUBLES:
        state[RECENT] = 0
    else:
        state[RECENT] = max(highest << 10, recent - max(1, recent >> (min(state[TROUBLES], _SLOWEST) + 2)))


@helper("int64(int64[::1], int64[::1], int64[::1])")
def bound_of(state: np.ndarray, peaks: np.ndarray, settings: np.ndarray) -> int:
    """What the window says, or what is remembered for longer; INFINITE beyond the limit."""
    greatest = (state[RECENT] + 1023) >> 10
    for block in range(peaks.shape[0]):
        greatest = max(greatest, peaks[block])
    if greatest > settings[LIMIT]:
        return INFINITE
    return int(min(greatest + greatest * settings[MARGIN] // 1024, settings[LIMIT]))


@helper("boolean(int64[::1], int64, int64, int64)")
def learn(state: np.ndarray, n: int, window: int, bound: int) -> bool:
    """If the window is over at arrival n, this bound holds, where it is the tighter one. Whether there was none."""
    if n - state[FROM] < window or bound >= state[BOUND]:
        return False
    is_first = bool(state[BOUND] == INFINITE)
    if is_first:
        state[SINCE] = n
    state[BOUND] = bound
    return is_first
