"""How much an attribute tells of which tuples a filter drops.

Content-Based Routing, section 3, equations 1 to 5, definition 3.1. The paper's gamma is not given. Chance alone gives
an information gain: 2 |R| ln 2 InfoGain is distributed as chi-square with a degree of freedom less than there are
buckets (the G-test), so that an attribute counts as a classifier if it tells more than chance does nearly ever. (Of 150
tuples in 24 buckets chance gives a gain of 0.11 bits.)

>>> drops, cells = np.arange(300) % 100 >= np.repeat([32, 31, 27], 100), np.repeat(np.arange(3), 100)
>>> (told,) = telling(drops[:, None], cells, 3)
>>> round(told.ratio, 4), told.is_telling(None)
(0.001, False)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minidsms.elements import Int64Array
from minidsms.expressions.attributes import UInt8Array
from minidsms.streamon.contracts import Float64Array

_SURE = 3.0
"""Standard deviations: chance tells as much one time in 740."""


@dataclass(frozen=True)
class Telling:
    """gain: information gain, bits (equation 3).  split: split information (4).  buckets: those with tuples.  tuples:
    |R|.
    """

    gain: float
    split: float
    buckets: int
    tuples: int

    @property
    def ratio(self) -> float:
        """Equation 5; 0 of a constant."""
        return float(self.gain / self.split) if self.split > 0 else 0.0

    @property
    def sure_gain(self) -> float:
        """What is left of the gain without what chance tells: 0 if that may be all."""
        return float(_sure(np.array(self.gain), np.array(self.buckets), self.tuples))

    def is_telling(self, gamma: float | None) -> bool:
        """It is a classifier (definition 3.1). gamma: the least gain ratio, None for one beyond chance."""
        return self.sure_gain > 0 if gamma is None else self.ratio > gamma


def telling(drops: UInt8Array, cells: UInt8Array, buckets: int) -> list[Telling]:
    """Of each filter. drops: (m, n).  cells: (m,), the tuples' buckets."""
    out, into = _counts(drops.astype(np.float32), cells, buckets)
    (gains,), (split,), (filled,) = _gains(out[None], into[None])
    return [Telling(float(g), float(split), int(filled), len(cells)) for g in gains]


def sure_gains(drops: UInt8Array, cells: Sequence[UInt8Array], buckets: int) -> Float64Array:
    """(k, n), the sure gain of each filter from each of k attributes at once: there are many, and few tuples.

    drops: (m, n).  cells: of each attribute (m,), below `buckets`.
    """
    if not cells:
        return np.zeros((0, drops.shape[1]))
    dropped = drops.astype(np.float32)
    counts = [_counts(dropped, each, buckets) for each in cells]
    out, into = (np.stack(each) for each in zip(*counts))
    gains, _, filled = _gains(out, into)
    sure: Float64Array = _sure(gains, filled[:, None], len(drops))
    return sure


def _counts(drops: Any, cells: UInt8Array, buckets: int) -> tuple[Float64Array, Float64Array]:
    """(Out (d, n), In (d,)). drops: float32, exact up to 2^24 tuples."""
    is_in = np.equal.outer(np.arange(buckets, dtype=np.uint8), cells).astype(np.float32)
    into = is_in.sum(axis=1).astype(np.float64)
    return into[:, None] - is_in @ drops, into


def _gains(out: Any, into: Float64Array) -> tuple[Float64Array, Float64Array, Int64Array]:
    """(information gains (k, n), split information (k,), buckets with tuples (k,)). out: (k, d, n).  into: (k, d)."""
    tuples = np.maximum(into.sum(axis=1), 1)
    share = into / tuples[:, None]
    inside = _entropy(out / np.maximum(into, 1)[:, :, None])
    whole = _entropy(out.sum(axis=1) / tuples[:, None])
    gains = whole - (share[:, :, None] * inside).sum(axis=1)
    split = -(share * np.log2(np.where(share > 0, share, 1.0))).sum(axis=1)
    return np.maximum(gains, 0.0), split, np.count_nonzero(into, axis=1)


def _entropy(passed: Any) -> Any:
    """Of a share that passes, elementwise (equation 2)."""
    with np.errstate(all="ignore"):
        bits = -(passed * np.log2(passed) + (1 - passed) * np.log2(1 - passed))
    return np.where((passed > 0) & (passed < 1), bits, 0.0)


def _sure(gains: Any, buckets: Any, tuples: int) -> Any:
    """Gains without what chance tells, elementwise: 0 where that may be all.

    Chance: chi-square exceeds this as seldom as a normal variable does _SURE (Wilson and Hilferty 1931).
    """
    freedom = np.maximum(buckets - 1, 1)
    spread = 2 / (9 * freedom)
    most = freedom * (1 - spread + _SURE * np.sqrt(spread)) ** 3
    scale = 2 * np.log(2) * max(tuples, 1)
    return np.where((buckets > 1) & (scale * gains > most), gains - freedom / scale, 0.0)
