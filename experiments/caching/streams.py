"""The synthetic streams of Babu 2005, section 5.8.1, as rounds.

In round v every stream brings the rows that hold value v, so that all draw from the same domain in the same order; a
round is an instant. The windows are counted in rows and span WINDOW rounds each.

Invariant: the same arguments give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from minidsms.elements import Int64Array

WINDOW = 1_000
BLOCK = 500
"""Rounds pushed at a time."""
BITS = 20
"""A row's value is its round's, shifted by so many bits, plus what tells it from others of the round."""

Block = dict[str, tuple[dict[str, Int64Array], Int64Array]]
"""Of each stream, its columns and timestamps."""


@dataclass(frozen=True)
class Feed:
    """A query and its streams. rows: (name, columns, rows of its window).  of_rounds: (first, last) -> a block."""

    query: str
    streams: tuple[tuple[str, tuple[str, ...]], ...]
    of_rounds: Callable[[int, int], Block]
    rounds: int

    def blocks(self, size: int = BLOCK) -> Iterator[Block]:
        """All rounds, so many at a time."""
        for first in range(0, self.rounds, size):
            yield self.of_rounds(first, min(first + size, self.rounds))


def three_way(
    rounds: int,
    multiplicity: int = 5,
    selectivity: float = 1.0,
    probed_every: int = 1,
    dropped: int = 0,
    window: int = WINDOW,
) -> Feed:
    """R(A), S(A, B), T(B), R.A = S.A, S.B = T.B.

    multiplicity: r, rows of T with the same B.  selectivity: rows of R join S that a row of T meets; below 1 the share
    of rows that meet one.  probed_every: rounds between two in which T brings rows.  dropped: rows of S with the B of
    the round that no row of R joins.
    """
    met = max(1, round(selectivity))
    share = min(1.0, selectivity)
    sizes = (window * met, window * (met + dropped), max(1, window * multiplicity // probed_every))

    def block(first: int, last: int) -> Block:
        values = np.arange(first, last, dtype=np.int64)
        own = np.repeat(values << BITS, met) + np.tile(np.arange(met), len(values))
        joins = (np.repeat(values, met) * 7919 % 1000) < 1000 * share
        s_a = np.where(joins, own, -own - 1)
        s_b, s_ts = np.repeat(values, met), np.repeat(values, met)
        if dropped:
            s_a = np.concatenate([s_a, -np.arange(first * dropped, last * dropped, dtype=np.int64) - 2**50])
            s_b = s_ts = np.concatenate([s_b, np.repeat(values, dropped)])
            by_time = np.argsort(s_ts, kind="stable")
            s_a, s_b, s_ts = s_a[by_time], s_b[by_time], s_ts[by_time]
        t_b = np.repeat(values[values % probed_every == 0], multiplicity)
        return {
            "R": ({"A": own}, np.repeat(values, met)),
            "S": ({"A": s_a, "B": s_b}, s_ts),
            "T": ({"B": t_b}, t_b.copy()),
        }

    return Feed(_three_way_query(sizes), (("R", ("A",)), ("S", ("A", "B")), ("T", ("B",))), block, rounds)


def long_segment(rounds: int, multiplicity: int = 5, met: int = 5, window: int = WINDOW) -> Feed:
    """R(A), S(A, C), U(C, B), T(B), R.A = S.A, S.C = U.C, U.B = T.B: as `three_way`, with a stretch of three windows,
    of which a row of T meets so many rows.
    """

    def block(first: int, last: int) -> Block:
        values = np.arange(first, last, dtype=np.int64)
        own = np.repeat(values << BITS, met) + np.tile(np.arange(met), len(values))
        ts, t_b = np.repeat(values, met), np.repeat(values, multiplicity)
        return {
            "R": ({"A": own}, ts),
            "S": ({"A": own, "C": own}, ts),
            "U": ({"C": own, "B": ts}, ts),
            "T": ({"B": t_b}, t_b.copy()),
        }

    rows = window * met
    query = (
        f"SELECT R.A, T.B FROM R [ROWS {rows}], S [ROWS {rows}], U [ROWS {rows}], T [ROWS {window * multiplicity}]"
        " WHERE R.A = S.A AND S.C = U.C AND U.B = T.B"
    )
    streams = (("R", ("A",)), ("S", ("A", "C")), ("U", ("C", "B")), ("T", ("B",)))
    return Feed(query, streams, block, rounds)


def bursty(rounds: int, burst_at: int, factor: int = 20, multiplicity: int = 5, window: int = WINDOW) -> Feed:
    """The three-way join over one domain, an eighth larger than the windows, over and over; from a round on R comes
    `factor` times as fast through it (figure 5.22).
    """
    domain = window + window // 8

    def block(first: int, last: int) -> Block:
        values = np.arange(first, last, dtype=np.int64)
        speed = np.where(values < burst_at, 1, factor)
        r_ts = np.repeat(values, speed)
        before = values.clip(max=burst_at) + (values - burst_at).clip(min=0) * factor
        r_a = (np.repeat(before - np.concatenate([[0], np.cumsum(speed)[:-1]]), speed) + np.arange(len(r_ts))) % domain
        t_b = np.repeat(values, multiplicity)
        return {
            "R": ({"A": r_a}, r_ts),
            "S": ({"A": values % domain, "B": values % domain}, values),
            "T": ({"B": t_b % domain}, t_b),
        }

    sizes = (window, window, window * multiplicity)
    return Feed(_three_way_query(sizes), (("R", ("A",)), ("S", ("A", "B")), ("T", ("B",))), block, rounds)


def bursty_lossy(rounds: int, burst_at: int, factor: int = 20) -> Feed:
    """The three-way join where a row of T meets a hundred of S, and one of R twenty, and hardly any of them goes on: T
    brings five rows in a round, R and S one; from a round on R brings `factor` (figure 5.22).
    """

    def block(first: int, last: int) -> Block:
        rng = np.random.default_rng(first)
        rounds_of = np.arange(first, last, dtype=np.int64)
        r_ts = np.repeat(rounds_of, np.where(rounds_of < burst_at, 1, factor))
        t_ts = np.repeat(rounds_of, 5)
        alone = (rounds_of + 1) << BITS
        is_for_t = rng.random(len(rounds_of)) < 0.5
        by_r, by_t = rng.integers(0, 15, len(rounds_of)), rng.integers(0, 3, len(rounds_of))
        return {
            "R": ({"A": rng.integers(0, 15, len(r_ts))}, r_ts),
            "S": ({"A": np.where(is_for_t, alone, by_r), "B": np.where(is_for_t, by_t, alone)}, rounds_of),
            "T": ({"B": rng.integers(0, 3, len(t_ts))}, t_ts),
        }

    return Feed(_three_way_query((100, 600, 500)), (("R", ("A",)), ("S", ("A", "B")), ("T", ("B",))), block, rounds)


def many_keys(rounds: int, keys: int = 1_000, met: int = 10, seed: int = 0) -> Feed:
    """The three-way join where T brings ten rows in a round, of so many values of B, and each meets about `met` rows of
    S, none of which joins one of R: a cache of R join S saves the more the more of the values it has room for.
    """

    def block(first: int, last: int) -> Block:
        rng = np.random.default_rng((seed, first))
        rounds_of = np.arange(first, last, dtype=np.int64)
        t_ts = np.repeat(rounds_of, 10)
        return {
            "R": ({"A": rounds_of[::10]}, rounds_of[::10]),
            "S": ({"A": -rounds_of - 1, "B": rng.integers(0, keys, len(rounds_of))}, rounds_of),
            "T": ({"B": rng.integers(0, keys, len(t_ts))}, t_ts),
        }

    query = _three_way_query((100, keys * met, 1_000))
    return Feed(query, (("R", ("A",)), ("S", ("A", "B")), ("T", ("B",))), block, rounds)


def fast_input(rounds: int, keys: tuple[int, int] = (100_000, 5), seed: int = 0) -> Feed:
    """R(A, B), S(A, B), T(A, B) over windows of 900 rounds: T ten times as fast as R and S (figure 5.6).

    keys: values of A and of B. With many of A and few of B a row of T meets many of S, none of which meets one of R.
    """

    def block(first: int, last: int) -> Block:
        made: Block = {}
        for i, (name, every) in enumerate((("R", 10), ("S", 10), ("T", 1))):
            rng = np.random.default_rng((seed, i, first))
            ts = np.arange(first, last, dtype=np.int64)
            ts = ts[ts % every == 0]
            made[name] = {"A": rng.integers(0, keys[0], len(ts)), "B": rng.integers(0, keys[1], len(ts))}, ts
        return made

    query = "SELECT T.B FROM R [ROWS 90], S [ROWS 90], T [ROWS 900] WHERE R.A = S.A AND S.B = T.B"
    return Feed(query, tuple((name, ("A", "B")) for name in "RST"), block, rounds)


def n_way(n: int, rounds: int, multiplicity: int = 5, window: int = WINDOW) -> Feed:
    """S1(A) to Sn(A), all equal; n // 2 of the streams bring a value once, the others `multiplicity` times."""
    counts = [1 if i < n // 2 else multiplicity for i in range(n)]

    def block(first: int, last: int) -> Block:
        values = np.arange(first, last, dtype=np.int64)
        rows = [np.repeat(values, count) for count in counts]
        return {f"S{i + 1}": ({"A": a}, a.copy()) for i, a in enumerate(rows)}

    windows = ", ".join(f"S{i + 1} [ROWS {window * count}]" for i, count in enumerate(counts))
    return Feed(_n_way_query(windows, n), tuple((f"S{i + 1}", ("A",)) for i in range(n)), block, rounds)


POINTS: dict[str, tuple[tuple[int, ...], tuple[float, ...]]] = {
    "D1": ((10, 1, 1, 1), (0.004, 0.005, 0.005, 0.007, 0.0045, 0.005)),
    "D2": ((8, 1, 1, 8), (0.004, 0.005, 0.005, 0.007, 0.0045, 0.005)),
    "D3": ((10, 15, 1, 5), (0.003, 0.005, 0.007, 0.0045, 0.006, 0.008)),
    "D4": ((1, 1, 1, 1), (0.003, 0.004, 0.0067, 0.002, 0.0023, 0.0027)),
    "D5": ((4, 1, 1, 4), (0.005, 0.007, 0.005, 0.006, 0.005, 0.002)),
    "D6": ((1, 1, 1, 1), (0.005, 0.0033, 0.0025, 0.0067, 0.005, 0.0075)),
    "D7": ((1, 1, 1, 1), (0, 0, 0, 0, 0, 0)),
    "D8": ((1, 1, 1, 1), (0.001, 0.001, 0.001, 0.001, 0.001, 0.001)),
}
"""Table 5.2: arrival rates of R, S, T, U and the pairwise selectivities RS, RT, RU, ST, SU, TU."""
PAIRS = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
COMMON = 0.3
"""Share of a stream's rows whose values all streams have; a pair's own values take PAIRED of both streams' rows."""
PAIRED = 0.2
TOGETHER = 0.25
"""Share of the least selectivity that comes from the values all streams have: most rows join two by two only."""


def domain(selectivities: Sequence[float]) -> tuple[int, tuple[int, ...]]:
    """(values that all four streams share, values of each pair alone), so that two rows of a pair are equal as often as
    the table says: COMMON^2 / common + PAIRED^2 / own.
    """
    least = min(selectivities)
    if least == 0:
        return 0, (0,) * len(PAIRS)
    common = round(COMMON**2 / (TOGETHER * least))
    rest = [s - COMMON**2 / common for s in selectivities]
    return common, tuple(max(1, round(PAIRED**2 / r)) for r in rest)


def four_way(point: str, rounds: int, window: int = WINDOW, seed: int = 0) -> Feed:
    """R(A), S(A), T(A), U(A), all equal, with the rates and selectivities of a sample point of table 5.2."""
    rates, selectivities = POINTS[point]
    common, own = domain(selectivities)
    names = ("R", "S", "T", "U")

    def rows(stream: int, count: int, rng: np.random.Generator) -> Int64Array:
        chosen = rng.random(count)
        values = -1 - stream - 4 * rng.integers(0, 2**40, count)  # joins with nothing
        if common:
            values = np.where(chosen < COMMON, rng.integers(0, common, count), values)
            mine = [k for k, pair in enumerate(PAIRS) if stream in pair]
            for place, k in enumerate(mine):
                lo = COMMON + place * PAIRED
                inside = (chosen >= lo) & (chosen < lo + PAIRED)
                values = np.where(inside, (k + 1) * 10**6 + rng.integers(0, own[k], count), values)
        return values

    def block(first: int, last: int) -> Block:
        made: Block = {}
        for i, (name, rate) in enumerate(zip(names, rates)):
            ts = np.repeat(np.arange(first, last, dtype=np.int64), rate)
            made[name] = {"A": rows(i, len(ts), np.random.default_rng((seed, i, first)))}, ts
        return made

    windows = ", ".join(f"{name} [ROWS {window}]" for name in names)
    query = f"SELECT R.A FROM {windows} WHERE R.A = S.A AND S.A = T.A AND T.A = U.A"
    return Feed(query, tuple((name, ("A",)) for name in names), block, rounds)


def _three_way_query(sizes: Sequence[int]) -> str:
    r, s, t = sizes
    return f"SELECT R.A, T.B FROM R [ROWS {r}], S [ROWS {s}], T [ROWS {t}] WHERE R.A = S.A AND S.B = T.B"


def _n_way_query(windows: str, n: int) -> str:
    equalities = " AND ".join(f"S{i}.A = S{i + 1}.A" for i in range(1, n))
    return f"SELECT S1.A FROM {windows} WHERE {equalities}"
