"""How much an attribute tells of which tuples a filter drops.

Content-Based Routing, section 3, equations 1 to 5, definition 3.1. The paper's gamma is not given. Chance alone gives
an information gain: 2 |R| ln 2 InfoGain is distributed as chi-square with a degree of freedom less than there are
buckets (the G-test), so that an attribute counts as a classifier if it tells more than chance does nearly ever. (Of 150
tuples in 24 buckets chance gives a gain of 0.11 bits.)

>>> table = gain_table(np.array([[32, 100], [31, 100], [27, 100]]))
>>> round(table.ratio, 4), table.is_telling(None)
(0.001, False)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from minidsms.elements import Int64Array
from minidsms.streamon.content_routing.attributes import UInt8Array
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
        freedom = max(self.buckets - 1, 0)
        scale = 2 * np.log(2) * max(self.tuples, 1)
        if not freedom or scale * self.gain <= _chi_square(freedom):
            return 0.0
        return float(self.gain - freedom / scale)

    def is_telling(self, gamma: float | None) -> bool:
        """It is a classifier (definition 3.1). gamma: the least gain ratio, None for one beyond chance."""
        return self.sure_gain > 0 if gamma is None else self.ratio > gamma


def gain_table(counts: Any) -> Telling:
    """counts: (d, 2), of each bucket the tuples that the filter passes (Out) and that it got (In)."""
    out, into = np.asarray(counts, np.float64).T
    (told,) = _telling(out[:, None], into)
    return told


def telling(drops: UInt8Array, cells: UInt8Array, buckets: int) -> list[Telling]:
    """Of each filter. drops: (m, n).  cells: (m,), the tuples' buckets."""
    into: Int64Array = np.bincount(cells, minlength=buckets)
    order = np.argsort(cells, kind="stable")
    filled = np.flatnonzero(into)
    starts = (np.cumsum(into) - into)[filled]
    dropped = np.add.reduceat(drops[order].astype(np.int64), starts, axis=0)
    return _telling(into[filled, None] - dropped, into[filled].astype(np.float64))


def _telling(out: Any, into: Float64Array) -> list[Telling]:
    """out: (d, n).  into: (d,)."""
    tuples = into.sum()
    share = into / max(tuples, 1)
    with np.errstate(all="ignore"):
        inside = _entropy(out / into[:, None])
    whole = _entropy(out.sum(axis=0) / max(tuples, 1))
    gains = whole - np.where(into[:, None] > 0, share[:, None] * inside, 0.0).sum(axis=0)
    filled = share[share > 0]
    split = float(-(filled * np.log2(filled)).sum())
    return [Telling(max(float(g), 0.0), split, len(filled), int(tuples)) for g in gains]


def _entropy(passed: Any) -> Any:
    """Of a share that passes, elementwise (equation 2)."""
    with np.errstate(all="ignore"):
        bits = -(passed * np.log2(passed) + (1 - passed) * np.log2(1 - passed))
    return np.where((passed > 0) & (passed < 1), bits, 0.0)


def _chi_square(freedom: int) -> float:
    """What chi-square exceeds by chance as seldom as a normal variable does _SURE (Wilson and Hilferty 1931)."""
    spread = 2 / (9 * freedom)
    return float(freedom * (1 - spread + _SURE * np.sqrt(spread)) ** 3)
