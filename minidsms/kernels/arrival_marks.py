"""When did the last k rows of a stream come? Marks of a few of its arrivals, nearer to each other the later they came.

`marks` (2, m): the number of an arrival that is the first of its instant, and the instant; oldest first. `state`
(MARK_WORDS,) says how many there are. Babu 2005, section 6.6.2.
"""

from __future__ import annotations

from minidsms.machine_code import Int64s, Int64Table, helper, int64, kernel

TOTAL, HELD, MARK_WORDS = range(3)
"""Arrivals so far; marks held."""

FURTHEST = 1 << 17
"""Arrivals after which marks are forgotten: no k in use is greater."""
_COARSENESS = 3
"""The distance of two marks of a slice is at most 1/2^3 of that to its end."""


@helper(typed=True)
def _thin(marks: Int64Table, held: int, room: int, total: int) -> int:
    """Keep at most `room` marks, none too old, with gaps in proportion to the age. Returns how many there are."""
    fineness = int64(16)
    while held > room and fineness > 0:
        place = held - 1
        for x in range(held - 2, -1, -1):
            last = marks[0, place]
            if last > total - FURTHEST and (last - marks[0, x]) * fineness >= total - last:
                place -= 1
                marks[0, place], marks[1, place] = marks[0, x], marks[1, x]
        for x in range(held - place):
            marks[0, x], marks[1, x] = marks[0, place + x], marks[1, place + x]
        held -= place
        fineness //= 2
    return held


@kernel
def note_arrivals(ts: Int64s, marks: Int64Table, state: Int64s) -> None:
    """Rows have come. ts: (n,) nondecreasing.  O(m + log n), and the rows of the instants marked."""
    n, total, held = len(ts), state[TOTAL], state[HELD]
    most = marks.shape[1]
    # From the last row backwards: how many marks are there?
    more = int64(0)
    at = n - 1
    while at >= 0:
        while at > 0 and ts[at - 1] == ts[at]:
            at -= 1
        more += 1
        at -= 1 + ((n - at) >> _COARSENESS)
    if held + more > most:
        held = _thin(marks, held, most - more, total + n)
    at, place = n - 1, held + more
    while at >= 0:
        while at > 0 and ts[at - 1] == ts[at]:
            at -= 1
        place -= 1
        marks[0, place], marks[1, place] = total + at, ts[at]
        at -= 1 + ((n - at) >> _COARSENESS)
    if held > 0 and marks[1, held - 1] == marks[1, held]:
        # The instant had begun before.
        for x in range(held, held + more - 1):
            marks[0, x], marks[1, x] = marks[0, x + 1], marks[1, x + 1]
        more -= 1
    state[TOTAL], state[HELD] = total + n, held + more
