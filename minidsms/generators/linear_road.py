"""Cars on an expressway, in the shape of the Linear Road benchmark. Arasu et al. (VLDB 2004); Babu 2005, section 6.11.

A hundred segments of a mile, two directions. `cars` cars are on the road at any time; each reports its position every
30 seconds (`position`), drives a number of segments and leaves, and another takes its place. `accidents` of a thousand
reports are of cars that stand still from then on for five minutes. Positions are feet. What follows from the reports of
the same cars are streams of their own: `entry` and `exit`, a row for each car at its first report and at its last,
which is from the exit lane; `crossing`, a row for each segment that a car comes into, with the toll that the `crowd`
there costs it; `accident`, a row for a car whose last four reports are of one position, the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.generators.generator import Generator, Parameters

_FEET = 5280
_SEGMENTS = 100
_REPORT_S = 30
_STAND_REPORTS = 10
_STOPPED_REPORTS = 4


@dataclass(frozen=True)
class _Round:
    """One report of each car, (cars,) each, in the order of time. at: ticks.  standing: reports of the same position,
    this one included.  n: the first n reports are events, the others would come if there were more.
    """

    car: Int64Array
    speed: Int64Array
    direction: Int64Array
    feet: Int64Array
    at: Int64Array
    is_first: BoolArray
    is_last: BoolArray
    standing: Int64Array
    n: int

    @property
    def is_event(self) -> BoolArray:
        """The reports that are events."""
        within: BoolArray = np.arange(len(self.car)) < self.n
        return within

    @property
    def segment(self) -> Int64Array:
        """The segment each is in."""
        segment: Int64Array = self.feet // _FEET
        return segment


def _rounds(given: Parameters) -> Iterator[_Round]:
    """The reports, a round at a time; the rate is what the number of cars makes it."""
    cars = max(1, int(given.own["cars"]))
    random = np.random.default_rng((given.seed, 1))
    car = np.arange(cars, dtype=np.int64)
    next_car = cars
    phase = np.sort(random.integers(0, _REPORT_S, cars))
    direction = random.integers(0, 2, cars)
    feet = random.integers(0, _SEGMENTS * _FEET, cars)
    left = random.integers(1, 20, cars)
    standing = np.zeros(cars, np.int64)
    same, is_first = np.zeros(cars, np.int64), np.ones(cars, np.bool_)
    made, round_ = 0, 0
    while given.events is None or made < given.events:
        crashes = (random.random(cars) < given.own["accidents"] / 1000) & (standing == 0)
        standing = np.where(crashes, _STAND_REPORTS, np.maximum(standing - 1, 0))
        speed = np.where(standing > 0, 0, random.integers(40, 100, cars))
        # 44 feet in 30 seconds are a mile an hour.
        feet = feet + np.where(direction == 0, speed, -speed) * 44
        leaves = (left == 0) | (feet < 0) | (feet >= _SEGMENTS * _FEET)
        feet = np.clip(feet, 0, _SEGMENTS * _FEET - 1)
        same = np.where((speed > 0) | is_first, 1, same + 1)
        n = cars if given.events is None else min(cars, given.events - made)
        at = (given.start_s + round_ * _REPORT_S + phase) * 1_000_000_000 // given.tick_ns
        yield _Round(car, speed, direction, feet, at, is_first, leaves, same, n)
        made, round_ = made + n, round_ + 1
        left = left - 1
        gone = int(leaves.sum())
        car, is_first = car.copy(), leaves
        car[leaves] = np.arange(next_car, next_car + gone)
        next_car += gone
        direction = np.where(leaves, random.integers(0, 2, cars), direction)
        feet = np.where(leaves, random.integers(0, _SEGMENTS * _FEET, cars), feet)
        left = np.where(leaves, random.integers(1, 20, cars), left)


def positions(given: Parameters) -> Iterator[dict[str, Any]]:
    """Where the cars are."""
    for each in _rounds(given):
        columns = {
            "car": each.car,
            "speed": each.speed,
            "xway": np.zeros(len(each.car), np.int64),
            "lane": np.where(each.is_last, 4, 1 + each.car % 3),
            "dir": each.direction,
            "xpos": each.feet,
            "at": each.at,
        }
        yield {name: column[: each.n] for name, column in columns.items()}


def _of_cars(
    which: Callable[[_Round], BoolArray],
) -> Callable[[Parameters], Iterator[dict[str, Any]]]:
    """A stream of some of the reports."""

    def rows(given: Parameters) -> Iterator[dict[str, Any]]:
        for each in _rounds(given):
            chosen = which(each) & each.is_event
            yield {
                "car": each.car[chosen],
                "dir": each.direction[chosen],
                "seg": each.segment[chosen],
                "at": each.at[chosen],
            }

    return rows


def accidents(given: Parameters) -> Iterator[dict[str, Any]]:
    """Cars that have stopped, each once."""
    known: Int64Array = np.zeros(0, np.int64)
    for each in _rounds(given):
        stopped = np.flatnonzero((each.standing == _STOPPED_REPORTS) & each.is_event)
        new = stopped[~np.isin(each.car[stopped], known)]
        # Who is off the road again cannot stop a second time.
        known = np.concatenate((known[np.isin(known, each.car)], each.car[new]))
        yield {"car": each.car[new], "dir": each.direction[new], "seg": each.segment[new], "at": each.at[new]}


def crossings(given: Parameters) -> Iterator[dict[str, Any]]:
    """Cars that come into a segment, and what they are to pay for it: twice the square of those beyond the crowd."""
    before: tuple[Int64Array, Int64Array] | None = None
    crowd = int(given.own["crowd"])
    for each in _rounds(given):
        segment = each.segment
        place = each.direction * _SEGMENTS + segment
        beyond = np.maximum(np.bincount(place, minlength=2 * _SEGMENTS) - crowd, 0)
        comes = each.is_event
        if before is not None:
            comes = comes & ((before[0] != each.car) | (before[1] != segment))
        before = (each.car, segment)
        yield {
            "car": each.car[comes],
            "dir": each.direction[comes],
            "seg": segment[comes],
            "toll": 2 * beyond[place[comes]] ** 2,
            "at": each.at[comes],
        }


_PLACE = {"car": "INTEGER", "dir": "INTEGER", "seg": "INTEGER", "at": "TIMESTAMP"}

GENERATOR = Generator(
    "linear_road",
    "cars on an expressway: their positions every 30 seconds, entries, exits, crossings, accidents",
    {
        "position": (
            {
                "car": "INTEGER",
                "speed": "INTEGER",
                "xway": "INTEGER",
                "lane": "INTEGER",
                "dir": "INTEGER",
                "xpos": "INTEGER",
                "at": "TIMESTAMP",
            },
            positions,
        ),
        "entry": (_PLACE, _of_cars(lambda each: each.is_first)),
        "exit": (_PLACE, _of_cars(lambda each: each.is_last)),
        "accident": (_PLACE, accidents),
        "crossing": (
            {"car": "INTEGER", "dir": "INTEGER", "seg": "INTEGER", "toll": "INTEGER", "at": "TIMESTAMP"},
            crossings,
        ),
    },
    {"cars": 500, "accidents": 2.0, "crowd": 50},
    without=("rate",),
    main="position",
)
