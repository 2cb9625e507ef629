"""Streams for the monitors' tests, cut into slices as they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import numpy as np

from minidsms.operators.k_mon.contracts import Arrivals, KConstraint, Kind
from tests.streamon.k_mon.monitoring.twins import Event

RIDS = KConstraint(Kind.RIDS, "t", ("a",), "s", ("a",))
CA = KConstraint(Kind.CA, "s", ("a",))
OAP = KConstraint(Kind.OAP, "s", ("a",))


def arrivals(first: int, values: Sequence[int | None], ts: Sequence[int] | None = None) -> Arrivals:
    """Rows of these values, numbered from `first`."""
    valid = np.array([value is not None for value in values], np.bool_)
    return Arrivals(
        np.arange(first, first + len(values)),
        np.arange(first, first + len(values)) if ts is None else np.array(ts, np.int64),
        np.array([0 if value is None else value for value in values], np.int64),
        None if valid.all() else valid,
    )


def sliced(values: Sequence[int | None], cut: Random | int) -> Iterator[Arrivals]:
    """The rows in slices of a length, or of any lengths."""
    first = 0
    while first < len(values):
        length = cut if isinstance(cut, int) else cut.randint(1, 40)
        yield arrivals(first, values[first : first + length])
        first += length


def sliced_events(events: Sequence[Event], cut: Random | int) -> Iterator[tuple[Arrivals, Arrivals]]:
    """(children, parents) of events at an instant each, in slices of a length, or of any lengths."""
    first, seen = 0, {"parent": 0, "child": 0}
    while first < len(events):
        length = cut if isinstance(cut, int) else cut.randint(1, 40)
        part = [(at, *event) for at, event in enumerate(events[first : first + length], first)]
        sides = {}
        for side in ("child", "parent"):
            rows = [(at, key) for at, own, key in part if own == side]
            sides[side] = arrivals(seen[side], [key for _, key in rows], [at for at, _ in rows])
            seen[side] += len(rows)
        yield sides["child"], sides["parent"]
        first += length


def jumping(rng: Random, length: int, most: int) -> list[int]:
    """A bound for each of `length` arrivals: it stays for a while, then jumps anywhere up to `most`, or drifts
    there."""
    bounds: list[int] = []
    while len(bounds) < length:
        level, stay = rng.randint(0, most), rng.randint(20, 200)
        if bounds and rng.random() < 0.3:
            bounds += [round(bounds[-1] + (level - bounds[-1]) * i / stay) for i in range(stay)]
        else:
            bounds += [level] * stay
    return bounds[:length]


def joined(rng: Random, length: int, most: int) -> list[Event]:
    """Parents and children whose join distances follow bounds that jump; some keys are NULL, some have no partner."""
    bounds = jumping(rng, length, most)
    due: dict[int, list[int]] = {}
    events: list[Event] = []
    for key, bound in enumerate(bounds):
        if rng.random() < 0.05:
            events.append(("parent", None))
        events += [("parent", key)] * rng.randint(0, 2)
        due.setdefault(key + rng.randint(0, bound), []).append(key)
        for child in due.pop(key, [None if rng.random() < 0.1 else -1 - key]):
            events.append(("child", child))
    return events


def clustered(rng: Random, length: int, most: int) -> list[int | None]:
    """Values whose rows lie up to a jumping bound apart."""
    places = [(i + rng.uniform(0, bound), i // 3) for i, bound in enumerate(jumping(rng, length, most))]
    return [None if rng.random() < 0.03 else value for _, value in sorted(places)]


def ordered(rng: Random, length: int, most: int) -> list[int | None]:
    """Rising values, out of order by a bound that jumps."""
    places = [(i + rng.uniform(0, bound), i // 2) for i, bound in enumerate(jumping(rng, length, most))]
    return [None if rng.random() < 0.03 else value - 50 for _, value in sorted(places)]
