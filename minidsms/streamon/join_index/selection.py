"""Which bits an input should have: the configuration of least cost C_D.

C_D is what depends on the configuration: hashing the columns that have bits, of each row and of each request that knows
them; comparing the rows that stand at the addresses a request visits; and, which the paper leaves out, visiting an
address for each value of the bits that a request does not know. EPrune leaves out columns whose bits cannot spare what
hashing them takes; it never loses the best.

Works, Rundensteiner and Agu 2012 (AMRI), sections 5.1 and 6. The paper's formula (1) lacks the frequency in the cost of
hashing requests, and its formula (2) may be read as paying a column's hash of each row once for each pattern; with
that reading EPrune would lose the best.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np

from minidsms.elements import Int64Array
from minidsms.streamon.join_index.assessment import Pattern

INSPECTED_NS, LINKED_NS, HASHED_NS, VISITED_NS = 6.0, 12.0, 3.0, 4.0
"""Of a slot inspected, a row linked by one key, a word hashed for a probe, and an address visited."""
MOST_CONFIGURATIONS = 50_000
"""That are looked at; where there are more there are fewer bits."""


@dataclass(frozen=True)
class UnitCosts:
    """hashed: C_h, of a column.  compared: C_c, of a row.  visited: of an address.  In any unit, nanoseconds here."""

    hashed: float = 1.0
    compared: float = 1.0
    visited: float = 0.0


@dataclass(frozen=True)
class Workload:
    """What an input is asked. arrived: rows that come in a while (lambda_d).  requests: in the same while (lambda_r).
    rows: that the window holds.  frequencies: by pattern, its share of the requests (F).
    """

    arrived: float
    requests: float
    rows: float
    frequencies: Mapping[Pattern, float]


def dependent_costs(
    configurations: Int64Array, workload: Workload, costs: UnitCosts
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """C_D of configurations (m, n), bits by column, for the while of the workload: (m,)."""
    has_bits = configurations > 0
    total = configurations.sum(axis=1)
    cost = workload.arrived * costs.hashed * has_bits.sum(axis=1)
    for pattern, frequency in workload.frequencies.items():
        known = [c for c in range(configurations.shape[1]) if pattern >> c & 1]
        bits = configurations[:, known].sum(axis=1)
        hashing = costs.hashed * has_bits[:, known].sum(axis=1)
        walking = costs.compared * workload.rows * np.exp2(-bits.astype(float))
        visiting = costs.visited * np.exp2((total - bits).astype(float))
        cost = cost + workload.requests * frequency * (hashing + walking + visiting)
    return np.asarray(cost, np.float64)


def benefit(column: int, bits: int, workload: Workload, costs: UnitCosts) -> float:
    """MB: what so many bits of a column can spare at most, less what hashing it takes."""
    share = sum(frequency for pattern, frequency in workload.frequencies.items() if pattern >> column & 1)
    spared = workload.requests * workload.rows * share * (1 - 2.0**-bits) * costs.compared
    return spared - (share * workload.requests + workload.arrived) * costs.hashed


def select(
    columns: int, bits: int, workload: Workload, costs: UnitCosts, prunes: bool = True, telling: Sequence[int] = ()
) -> tuple[int, ...]:
    """The bits of each column, at most so many in all, of least C_D; of equals that of fewest bits.

    prunes: leave out columns without benefit (EPrune).  telling: of each column, how many bits can tell its values
    apart, where that is known: C_D takes every bit for one that halves the rows.
    """
    able = [c for c in range(columns) if not prunes or benefit(c, bits, workload, costs) > 0]
    while comb(bits + len(able), len(able)) > MOST_CONFIGURATIONS:
        bits -= 1
    table = np.zeros((comb(bits + len(able), len(able)), columns), np.int64)
    table[:, able] = _within(len(able), bits)
    if telling:
        table = table[(table <= np.array(telling)).all(axis=1)]
    best = int(np.argmin(dependent_costs(table, workload, costs)))
    return tuple(table[best].tolist())


def of_exactly(columns: int, bits: int) -> Iterator[tuple[int, ...]]:
    """All configurations of exactly so many bits."""
    for bars in combinations(range(bits + columns - 1), columns - 1):
        edges = (-1, *bars, bits + columns - 1)
        yield tuple(edges[k + 1] - edges[k] - 1 for k in range(columns))


@lru_cache(maxsize=64)
def _within(columns: int, bits: int) -> Int64Array:
    """All configurations of at most so many bits, those of fewest first."""
    if not columns:
        return np.zeros((1, 0), np.int64)
    return np.array([each for b in range(bits + 1) for each in of_exactly(columns, b)], np.int64)
