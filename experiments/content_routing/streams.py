"""Stream-Star: tuples of N classes, told by one attribute, and N filters whose selectivities depend on the class.

Which tuples a filter drops is drawn here; a tuple carries it in a bit of an attribute per filter that is random
otherwise, as a foreign key is: of the attributes only `attrc` tells anything. There are eight more, three constants and
serials among them. Content-Based Routing, sections 6.1 and 6.3 to 6.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from minidsms.elements import Int64Array
from minidsms.streamon.contracts import Float64Array

UInt8Array = npt.NDArray[np.uint8]

NOISE = 8
BIT = 1 << 20
AGGREGATE = 0.05


@dataclass(frozen=True)
class StarStream:
    """selectivities: (classes, n), what each filter passes of each class.  classes: (m,).  drops: (m, n)."""

    selectivities: Float64Array
    classes: Int64Array
    drops: UInt8Array

    @property
    def n(self) -> int:
        """Filters."""
        return self.drops.shape[1]

    def columns(self, seed: int = 0) -> dict[str, Int64Array]:
        """The tuples as a query reads them: attrc, f0 .., of which those with BIT are dropped, x0 .."""
        rng = np.random.default_rng((seed, 1))  # not the one that drew the classes
        m = len(self.classes)
        columns = {"attrc": self.classes * 7 + 3}
        for j in range(self.n):
            columns[f"f{j}"] = rng.integers(0, 1 << 30, m) & ~BIT | (BIT * self.drops[:, j].astype(np.int64))
        for j in range(NOISE):
            columns[f"x{j}"] = rng.integers(0, 1000, m) if j < NOISE - 2 else np.arange(m) if j % 2 else np.ones(m, int)
        return columns

    def buckets(self, d: int, seed: int = 0) -> UInt8Array:
        """(m, 1 + n + NOISE): every attribute by its remainder, as Content-Learns sees the tuples."""
        columns = self.columns(seed).values()
        return np.ascontiguousarray(np.stack([(c % d).astype(np.uint8) for c in columns], axis=1))


def _drawn(selectivities: Float64Array, tuples: int, rng: np.random.Generator) -> StarStream:
    classes = rng.integers(0, len(selectivities), tuples)
    drops = rng.random((tuples, selectivities.shape[1])) >= selectivities[classes]
    return StarStream(selectivities, classes, drops.astype(np.uint8))


def skewed(n: int, a: float, tuples: int, seed: int = 0) -> StarStream:
    """Table 3: in class i filter i passes A and the others B, with A B^(n - 1) = 5 %."""
    b = (AGGREGATE / a) ** (1 / (n - 1))
    selectivities = np.full((n, n), b)
    np.fill_diagonal(selectivities, a)
    return _drawn(selectivities, tuples, np.random.default_rng(seed))


def drawn(n: int, tuples: int, seed: int, aggregate: float | None = None) -> StarStream:
    """Sections 6.4 and 6.5: selectivities at random; with an aggregate, scaled so that as many tuples pass all filters.

    In each class the exponent t of s^t is chosen so that the product of the filters' selectivities is the aggregate.
    """
    rng = np.random.default_rng(1000 + seed)
    selectivities = rng.uniform(0.02, 0.98, (n, n))
    if aggregate is not None:
        exponents = np.log(aggregate) / np.log(selectivities).sum(axis=1, keepdims=True)
        selectivities = selectivities**exponents
    return _drawn(selectivities, tuples, rng)


def without_classes(n: int, tuples: int, seed: int = 0, passed: float = 0.7) -> StarStream:
    """Every filter passes the same share of every class."""
    return _drawn(np.full((n, n), passed), tuples, np.random.default_rng(seed))
