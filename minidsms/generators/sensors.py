"""Readings of a field of sensors: temperature and humidity over the day, with noise, gaps and faults.

Each of `sensors` sensors reads in turn. A reading is missing (NULL) with probability `gaps`; with probability `faults`
it is wrong by fifty degrees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from minidsms.generators.generator import Generator, Parameters

_DAY_S = 86_400


def readings(given: Parameters) -> Iterator[dict[str, Any]]:
    """What the sensors read."""
    count = max(1, int(given.own["sensors"]))
    bias = np.random.default_rng((given.seed, 1)).normal(0, 0.5, count)
    for events in given.blocks():
        random = given.random(events, 2)
        n = len(events)
        sensor = events % count
        phase = 2 * np.pi * ((events / given.rate) % _DAY_S) / _DAY_S
        temperature = 15 - 7 * np.cos(phase) + bias[sensor] + random.normal(0, 0.3, n)
        temperature += np.where(random.random(n) < given.own["faults"], 50.0, 0.0)
        missing = random.random(n) < given.own["gaps"]
        rows = {
            "sensor": sensor,
            "room": pa.array([f"room {s // 4}" for s in range(count)]).take(pa.array(sensor)),
            "temperature": pa.array(np.round(temperature, 2), mask=missing),
            "humidity": np.round(50 + 15 * np.cos(phase) + random.normal(0, 2, n), 1),
            "at": given.instants(events),
        }
        yield given.cut(events, rows)


GENERATOR = Generator(
    "sensors",
    "readings of a field of sensors, with gaps and faults",
    {
        "reading": (
            {"sensor": "INTEGER", "room": "TEXT", "temperature": "FLOAT", "humidity": "FLOAT", "at": "TIMESTAMP"},
            readings,
        )
    },
    {"sensors": 20, "gaps": 0.01, "faults": 0.001, "rate": 10.0},
)
