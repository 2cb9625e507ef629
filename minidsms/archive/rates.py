"""What an archive remembers of queries over it: how many seconds of a processor a row took, by shape and way; and how
many rows of a join came of a row that was read, by text and join.

The last few runs of a shape are kept, in `_rates.json`; who cannot write there measures for nothing.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import IO

from minidsms.archive.atomic import write_temporary
from minidsms.archive.storage import is_address, storage_of, write_bytes

_NAME = "_rates.json"
_RUNS = 5
_SHAPES = 200
LEAST_ROWS = 20_000
"""Fewer tell how long a start takes, and not what a row costs."""

Rates = Mapping[str, Sequence[float]]
"""By way, seconds a row of the last runs; or, by join, its rows."""


def read_rates(folder: str, shape: str) -> Rates:
    """Of the queries of a shape over the archive in a folder."""
    return _read(folder).get(shape, {})


def keep_rate(folder: str, shape: str, way: str, rows: int, amount: float) -> None:
    """Remember a run. amount: of seconds, or of a join's rows; of so many rows that were read."""
    if rows < LEAST_ROWS:
        return
    known = _read(folder)
    ways = known.pop(shape, {})
    ways[way] = [*ways.get(way, [])[1 - _RUNS :], amount / rows]
    known[shape] = ways  # the last used last
    with contextlib.suppress(OSError):
        data = json.dumps(dict(list(known.items())[-_SHAPES:])).encode()
        if is_address(folder):
            write_bytes(os.path.join(folder, _NAME), data)
            return
        # Tasks that end together each write a file of their own: the last one stays.
        mine = write_temporary(os.path.join(folder, f"{_NAME}.{secrets.token_hex(4)}"), partial(_put, data))
        os.replace(mine, os.path.join(folder, _NAME))


def _put(data: bytes, file: IO[bytes]) -> None:
    file.write(data)


def _read(folder: str) -> dict[str, dict[str, list[float]]]:
    """Nothing where there is nothing, or nothing that can be read."""
    try:
        path = os.path.join(folder, _NAME)
        found = json.loads(storage_of(path).read(path))
        rates = {str(s): {str(w): [float(r) for r in rs] for w, rs in ways.items()} for s, ways in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return {}
    every = (r for ways in rates.values() for rs in ways.values() for r in rs)
    return rates if all(0 <= r < math.inf for r in every) else {}
