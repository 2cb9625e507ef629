"""A change is found before the tuples it lies among are filtered: they are all here.

Of a chunk some tuples, evenly spread, are shown to the filter that stands first, and where these raise a suspicion four
times as many: tuples that lie so far apart are in no cache. A cumulative sum of the likelihood ratio runs over its
answers, in both directions, against the drop rate of the time before. Where it tells a change, the chunk is cut where
the change is most likely: what is before it runs in the present order, and a window of what is behind it is profiled
first. So a change that the first filter sees is answered at once, however large chunks are.

Invariant: nothing is counted or kept; one tuple in SPACING, or in COARSE, is shown to one filter.
"""

from __future__ import annotations

import math

import numpy as np

from minidsms.expressions.filters import TupleFilter
from minidsms.expressions.value import Frame
from minidsms.machine_code import Bools, kernel

COARSE, SPACING = 1024, 256
"""Tuples between two that are shown, at first and on suspicion."""
WORTH_A_LOOK = 16_384
"""Tuples of a chunk that is worth the call."""
SHIFT = 0.25
"""The change of a drop rate that is found best; half of it is the least that is found."""
SUSPICION, THRESHOLD = 3.0, 10.0
LEAST = 0.005
"""Drop rates are taken to be this far from 0 and 1."""
MARGIN = 1
"""Answers behind the change at which the chunk is cut: tuples of before would be taken for what is usual after it."""


@kernel
def _first_change(drops: Bools, rate: float, threshold: float) -> int:
    """The first answer behind a change from this rate, where that is most likely; -1 where there is none."""
    p = min(max(rate, LEAST), 1 - LEAST)
    found = -1
    for side in range(2):
        q = min(max(p + SHIFT if side == 0 else p - SHIFT, LEAST), 1 - LEAST)
        dropped, passed = math.log(q / p), math.log((1 - q) / (1 - p))
        total, since = 0.0, 0
        for t in range(drops.shape[0]):
            total += dropped if drops[t] else passed
            if total <= 0:
                total, since = 0.0, t + 1
            elif total > threshold:
                if found < 0 or since < found:
                    found = since
                break
    if found < 0:
        return found
    q = min(max(drops[found:].mean(), LEAST), 1 - LEAST)
    dropped, passed = math.log(q / p), math.log((1 - q) / (1 - p))
    total, least, found = 0.0, 0.0, 0
    for t in range(drops.shape[0]):
        total += dropped if drops[t] else passed
        if total < least:
            least, found = total, t + 1
    return found


def change_ahead(first: TupleFilter, frame: Frame, use_kernels: bool, rate: float) -> tuple[int, float] | None:
    """The tuple of a chunk before which the drop rate of the first filter has changed, and what it is from there on;
    None where it has not.
    """
    at, drops = 0, np.zeros(0, np.bool_)
    for spacing, threshold in ((COARSE, SUSPICION), (SPACING, THRESHOLD)):
        shown = np.arange(0, frame.n, spacing)
        kept, _ = first.narrow(frame.subset(shown), None, use_kernels)
        drops = np.ones(len(shown), np.bool_)
        drops[kept] = False
        at = int(_first_change(drops, rate, threshold))
        if at < 0:
            return None
    cut = min((at + MARGIN) * SPACING, frame.n) if at else 0
    return cut, float(drops[at:].mean())
