"""Streams that keep a constraint up to a k that is given, fixed or changing. Babu 2005, section 6.5.

Every row has an instant of its own. Time runs in arrivals of the child stream, so that with a multiplicity of 5 there
are five parents between two children. Keys are scrambled, lest they be in order too, but where order is the matter.
Each row is 24 bytes: three columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Bound = Callable[[Float64Array], Float64Array]
"""k at each moment, 0 to 1 being the run."""

MULTIPLICITY = 5
_ODD = 0x9E3779B1


@dataclass(frozen=True)
class Stream:
    """Rows in the order of arrival. ts: (n,) growing; columns: (n,) each."""

    ts: Int64Array
    columns: Mapping[str, Int64Array]

    def __len__(self) -> int:
        return len(self.ts)

    def __getitem__(self, column: str) -> Int64Array:
        return self.columns[column]


Streams = Mapping[str, Stream]


def steady(k: float) -> Bound:
    """The same k all the time."""
    return lambda moments: np.full(len(moments), float(k))


def changing(most: float) -> Bound:
    """Five kinds of change (figures 6.11, 6.13, 6.15): none, a gradual rise, a gradual fall, a jump up, one down."""
    moments = [0, 0.2, 0.4, 0.6, 0.7, 0.7001, 0.85, 0.8501, 1]
    levels = [0.25, 0.25, 0.7, 0.3, 0.3, 1.0, 1.0, 0.15, 0.15]
    return lambda at: np.interp(at, moments, np.array(levels) * most)


def scrambled(keys: Int64Array) -> Int64Array:
    """The same keys by other names, in no order; different ones stay different (below 2^31)."""
    mixed: Int64Array = (keys * _ODD) & 0x7FFFFFFF
    return mixed


def referring(
    children: int, bound: Bound, seed: int, dangling: float = 0.0, multiplicity: float = MULTIPLICITY
) -> Streams:
    """RIDS(k) on S1 -> S2 by A and on S1 -> S3 by B: figure 6.9(a).

    Join distances are uniform in [0, k]. dangling: the share of S1 that has no child in S3.
    """
    random = np.random.default_rng((seed, 1))
    n = round(children * multiplicity)
    times = np.sort(random.uniform(0, children, n))
    k = bound(times / children)
    a = np.floor(times) + np.floor(random.uniform(0, 1, n) * (k + 1))
    b = np.floor(times) + np.floor(random.uniform(0, 1, n) * (k + 1))
    b[random.uniform(0, 1, n) < dangling] = -1
    ids = np.arange(children, dtype=np.int64)
    keys = scrambled(ids)
    return _in_order(
        {
            "s1": (times, {"a": scrambled(a.astype(np.int64)), "b": scrambled(b.astype(np.int64)), "e": np.arange(n)}),
            # A child stands a little before its moment: what came at the same number waits for none.
            "s2": (ids - 1e-9, {"a": keys, "c": random.integers(0, 100, children), "f": ids}),
            "s3": (ids - 2e-9, {"b": keys, "d": random.integers(0, 100, children), "g": ids}),
        }
    )


def clustered(children: int, bound: Bound, seed: int) -> Streams:
    """CA(k) on S1.A and S2.A, both joined with S3 by A: figure 6.9(b). The child has always come before (RIDS(0))."""
    random = np.random.default_rng((seed, 2))
    ids = np.arange(children, dtype=np.int64)
    keys = scrambled(ids)
    streams = {"s3": (ids - 1e-9, {"a": keys, "d": random.integers(0, 100, children), "g": ids})}
    for name in ("s1", "s2"):
        # The rows of a value lie within a stretch of up to k rows, which is k / 5 children.
        stretch = random.uniform(0, 1, children) * bound(ids / children) / MULTIPLICITY
        times = ids[:, None] + random.uniform(0, 1, (children, MULTIPLICITY)) * stretch[:, None]
        streams[name] = (
            times.ravel(),
            {"a": np.repeat(keys, MULTIPLICITY), "e": np.arange(times.size), "f": np.arange(times.size)},
        )
    return _in_order(streams)


def ordered(children: int, bound: Bound, seed: int) -> Streams:
    """OAP(k) on S1.A and S2.A, both joined with S3 by A, whose values rise: figure 6.9(b)."""
    random = np.random.default_rng((seed, 3))
    ids = np.arange(children, dtype=np.int64)
    streams = {"s3": (ids - 1e-9, {"a": ids, "d": random.integers(0, 100, children), "g": ids})}
    for name in ("s1", "s2"):
        n = children * MULTIPLICITY
        a = np.arange(n, dtype=np.int64) // MULTIPLICITY
        late = random.uniform(0, 1, n) * bound(a / children) / MULTIPLICITY
        times = np.arange(n) / MULTIPLICITY + late
        streams[name] = (times, {"a": a, "e": np.arange(n), "f": np.arange(n)})
    return _in_order(streams)


def ordered_children(children: int, bound: Bound, seed: int, multiplicity: float = MULTIPLICITY) -> Streams:
    """OAC(k) on S2.A, joined from S1 by A: figure 6.9(c). A parent comes up to as much before or after its child."""
    random = np.random.default_rng((seed, 4))
    ids = np.arange(children, dtype=np.int64)
    late = random.uniform(0, 1, children) * bound(ids / children)
    n = round(children * multiplicity)
    times = np.sort(random.uniform(0, children, n))
    k = bound(times / children)
    a = np.clip(np.floor(times + (random.uniform(0, 1, n) - 0.5) * k), 0, None).astype(np.int64)
    return _in_order(
        {
            "s1": (times, {"a": a, "e": np.arange(n), "f": np.arange(n)}),
            "s2": (ids + late, {"a": ids, "d": random.integers(0, 100, children), "g": ids}),
        }
    )


def clustered_and_ordered(children: int, k: int, seed: int, dangling: float = 0.25) -> Streams:
    """CA(0) on S1.A and OAC(k) on S3.B, in figure 6.9(a); a share of S1 has no child in S3 (figure 6.17)."""
    random = np.random.default_rng((seed, 5))
    ids = np.arange(children, dtype=np.int64)
    n = children * MULTIPLICITY
    times = np.sort(random.uniform(0, children, n))
    a = scrambled(np.arange(n, dtype=np.int64) // MULTIPLICITY)
    late = random.uniform(0, k, children)
    # Of the values of B three in four, if a quarter dangles, have a row in S3.
    exists = random.uniform(0, 1, children) >= dangling
    b = np.clip(np.floor(times + (random.uniform(0, 1, n) - 0.5) * k), 0, children - 1).astype(np.int64)
    return _in_order(
        {
            "s1": (times, {"a": a, "b": b, "e": np.arange(n)}),
            "s2": (ids - 1e-9, {"a": scrambled(ids), "c": random.integers(0, 100, children), "f": ids}),
            "s3": (
                (ids + late)[exists],
                {"b": ids[exists], "d": random.integers(0, 100, children)[exists], "g": ids[exists]},
            ),
        }
    )


def clustered_and_referring(children: int, clustering: int, k: int, seed: int) -> Streams:
    """CA on S1.A and RIDS(k) on S1 -> S2 by A, in figure 6.9(c), two parents to a child (figure 6.18).

    The first parent of a child comes up to k children before it; the second up to `clustering` rows later.
    """
    random = np.random.default_rng((seed, 6))
    ids = np.arange(children, dtype=np.int64)
    first = ids - random.uniform(0, 1, children) * k + 0.5
    second = first + random.uniform(0, 1, children) * clustering / 2
    times = np.stack((first, second), 1).ravel()
    keys = scrambled(ids)
    return _in_order(
        {
            "s1": (times, {"a": np.repeat(keys, 2), "e": np.arange(2 * children), "f": np.arange(2 * children)}),
            "s2": (ids - 1e-9, {"a": keys, "d": random.integers(0, 100, children), "g": ids}),
        }
    )


def links(seconds: int, rate: int, delay_s: float, seed: int) -> Streams:
    """Packets on links C, B and O (sections 1.3 and 6.1.1): `rate` a second on C and O, ten times as many on B.

    A tenth of the packets of C goes on to B, and a tenth of those of B to O, each up to `delay_s` later. Instants are
    in milliseconds, of which each holds many rows.
    """
    random = np.random.default_rng((seed, 7))
    n = seconds * rate
    at_c = np.sort(random.integers(0, seconds * 1000, n))
    pid = np.arange(n, dtype=np.int64)
    via = random.uniform(0, 1, n) < 0.1
    delay = max(1, round(delay_s * 1000))
    others = 10 * n - int(via.sum())
    at_b = np.concatenate(
        (at_c[via] + random.integers(1, delay + 1, int(via.sum())), random.integers(0, seconds * 1000, others))
    )
    pid_b = np.concatenate((pid[via], n + np.arange(others)))
    onward = random.uniform(0, 1, len(at_b)) < 0.1
    at_o, pid_o = at_b[onward] + random.integers(1, delay + 1, int(onward.sum())), pid_b[onward]
    found = {}
    for name, at, pids in (("c", at_c, pid), ("b", at_b, pid_b), ("o", at_o, pid_o)):
        order = np.argsort(at, kind="stable")
        sizes = random.choice(np.array([40, 576, 1500]), len(at))
        found[name] = Stream(at[order], {"pid": scrambled(pids[order]), "size": sizes})
    return found


def _in_order(streams: Mapping[str, tuple[Float64Array, Mapping[str, Int64Array]]]) -> Streams:
    """Number the instants of all rows by their times."""
    times = np.concatenate([times for times, _ in streams.values()])
    ranks = np.empty(len(times), np.int64)
    ranks[np.argsort(times, kind="stable")] = np.arange(len(times))
    found, first = {}, 0
    for name, (own, columns) in streams.items():
        ts = ranks[first : first + len(own)]
        order = np.argsort(ts)
        found[name] = Stream(ts[order], {c: np.ascontiguousarray(v[order], np.int64) for c, v in columns.items()})
        first += len(own)
    return found
