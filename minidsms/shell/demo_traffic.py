"""The demo's data: cars on four roads, with a jam now and then. Seeded, so it is the same every time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minidsms.elements import Schema, Type
from minidsms.sources.source import BaseSource

DECLARATIONS = (
    "CREATE STREAM Pos (at TIMESTAMP, car INTEGER, road TEXT, speed FLOAT) TIMESTAMP BY at",
    "CREATE RELATION Roads (road TEXT, speed_limit FLOAT)",
)
ROADS = (("A1", 120.0), ("A2", 100.0), ("B7", 70.0), ("Main Street", 50.0))
QUERIES = (
    "CREATE QUERY roads AS\n"
    "SELECT road, COUNT(DISTINCT car) AS cars, AVG(speed) AS mean\n"
    "FROM Pos [RANGE 30 SECONDS]\n"
    "GROUP BY road",
    "CREATE QUERY fast AS\n"
    "SELECT RSTREAM(car, road, speed - speed_limit AS excess)\n"
    "FROM Pos [NOW] JOIN Roads USING (road)\n"
    "WHERE speed > speed_limit + 25",
)

_SCHEMA = Schema.of(("at", Type.TIMESTAMP), ("car", Type.INTEGER), ("road", Type.TEXT), ("speed", Type.FLOAT))
_ROWS_PER_S = 50
_BLOCK = 1000
_ROW_BYTES = 32
START_S = 1_767_254_400
"""2026-01-01 08:00:00 UTC."""


class TrafficSource(BaseSource):
    """A source (see `minidsms.sources.source`). seconds: of event time.  tick_ns: length of a tick."""

    def __init__(self, seconds: int, tick_ns: int) -> None:
        super().__init__("demo", _SCHEMA)
        self._rows = seconds * _ROWS_PER_S
        self.bytes_total = self._rows * _ROW_BYTES
        self._read = 0
        self._tick_ns = tick_ns
        self._random = np.random.default_rng(1)

    @property
    def bytes_read(self) -> int:
        """Of a file that would hold as many rows."""
        return self._read * _ROW_BYTES

    def read(self) -> Iterator[Any]:
        """Blocks of positions, in the order of time."""
        import pyarrow as pa

        names = np.array([name for name, _ in ROADS])
        limits = np.array([limit for _, limit in ROADS])
        for start in range(0, self._rows, _BLOCK):
            n = min(_BLOCK, self._rows - start)
            second = (start + np.arange(n)) / _ROWS_PER_S
            instants = ((START_S + second) * (1e9 / self._tick_ns)).astype(np.int64)
            car = self._random.integers(0, 200, n)
            road = car % len(ROADS)
            # On each road in turn traffic slows down for two minutes of ten.
            jammed = (second // 120).astype(np.int64) % 5 == road
            speed = limits[road] * np.where(jammed, 0.25, 0.95) + self._random.normal(0, 12, n)
            columns = [pa.array(instants), pa.array(car), pa.array(names[road]), pa.array(np.round(np.abs(speed), 1))]
            self._read += n
            yield pa.RecordBatch.from_arrays(columns, names=list(_SCHEMA.names))

    def close(self) -> None:
        """Nothing is open."""
