"""Position reports of cars on an expressway, in the shape of the Linear Road benchmark.

A hundred segments of a mile, two directions. `cars` cars are on the road at any time; each reports every 30 seconds,
drives a number of segments and leaves, and another takes its place. `accidents` of a thousand trips end with the car
standing still for five minutes. Positions are feet. Arasu et al., Linear Road: a stream data management benchmark
(VLDB 2004).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minidsms.generators.generator import Generator, Parameters

_FEET = 5280
_SEGMENTS = 100
_REPORT_S = 30
_STAND_REPORTS = 10


def positions(given: Parameters) -> Iterator[dict[str, Any]]:
    """Where the cars are. A round is one report of each; the rate is what the number of cars makes it."""
    cars = max(1, int(given.own["cars"]))
    random = np.random.default_rng((given.seed, 1))
    car = np.arange(cars, dtype=np.int64)
    next_car = cars
    phase = np.sort(random.integers(0, _REPORT_S, cars))
    direction = random.integers(0, 2, cars)
    feet = random.integers(0, _SEGMENTS * _FEET, cars)
    left = random.integers(1, 20, cars)
    standing = np.zeros(cars, np.int64)
    made, round_ = 0, 0
    while given.events is None or made < given.events:
        crashes = (random.random(cars) < given.own["accidents"] / 1000) & (standing == 0)
        standing = np.where(crashes, _STAND_REPORTS, np.maximum(standing - 1, 0))
        speed = np.where(standing > 0, 0, random.integers(40, 100, cars))
        # 44 feet in 30 seconds are a mile an hour.
        feet = feet + np.where(direction == 0, speed, -speed) * 44
        leaves = (left == 0) | (feet < 0) | (feet >= _SEGMENTS * _FEET)
        feet = np.clip(feet, 0, _SEGMENTS * _FEET - 1)
        n = cars if given.events is None else min(cars, given.events - made)
        yield {
            "car": car[:n].copy(),
            "speed": speed[:n],
            "xway": np.zeros(n, np.int64),
            "lane": np.where(leaves, 4, 1 + car % 3)[:n],
            "dir": direction[:n].copy(),
            "xpos": feet[:n].copy(),
            "at": (given.start_s + round_ * _REPORT_S + phase[:n]) * 1_000_000_000 // given.tick_ns,
        }
        made, round_ = made + n, round_ + 1
        left = left - 1
        gone = int(leaves.sum())
        car = car.copy()
        car[leaves] = np.arange(next_car, next_car + gone)
        next_car += gone
        direction = np.where(leaves, random.integers(0, 2, cars), direction)
        feet = np.where(leaves, random.integers(0, _SEGMENTS * _FEET, cars), feet)
        left = np.where(leaves, random.integers(1, 20, cars), left)


GENERATOR = Generator(
    "linear_road",
    "position reports of cars on an expressway, every 30 seconds",
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
        )
    },
    {"cars": 500, "accidents": 2.0},
    without=("rate",),
)
