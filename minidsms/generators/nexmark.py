"""Persons, auctions and bids in the shape of the NEXMark benchmark.

Of fifty events one is a new person, three are new auctions and 46 are bids. Half of the bids go to the hot auction (the
newest whose number is a multiple of 100), the others to one of the last hundred; three of four auctions belong to a hot
seller, three of four bids come from a hot bidder; prices, in cents, spread evenly over six decades. Tucker, Tufte,
Papadimos, Maier: NEXMark, a benchmark for queries over data streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from minidsms.elements import BoolArray, Int64Array
from minidsms.generators.generator import Generator, Parameters

_PERSONS, _AUCTIONS, _ROUND = 1, 3, 50
_FIRST_ID = 1000
_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_CITIES = ("Phoenix", "Los Angeles", "Boise", "Portland", "Seattle", "Cheyenne", "Bend", "Redmond")
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY", "OR", "WA")


def persons(given: Parameters) -> Iterator[dict[str, Any]]:
    """Who has registered."""
    for events in given.blocks():
        random = given.random(events, 1)
        mine = events[events % _ROUND < _PERSONS]
        n = len(mine)
        place = random.integers(0, len(_CITIES), n)
        first = random.integers(0, len(_FIRST_NAMES), n)
        last = random.integers(0, len(_LAST_NAMES), n)
        rows = {
            "id": mine // _ROUND + _FIRST_ID,
            "name": [f"{_FIRST_NAMES[f]} {_LAST_NAMES[l]}" for f, l in zip(first.tolist(), last.tolist())],
            "city": pa.array(_CITIES).take(pa.array(place)),
            "state": pa.array(_STATES).take(pa.array(place)),
            "at": given.instants(mine),
        }
        yield given.cut(mine, rows)


def auctions(given: Parameters) -> Iterator[dict[str, Any]]:
    """What is up for auction, and until when."""
    for events in given.blocks():
        random = given.random(events, 2)
        offset = events % _ROUND
        mine = events[(offset >= _PERSONS) & (offset < _PERSONS + _AUCTIONS)]
        n = len(mine)
        person = mine // _ROUND
        at = given.instants(mine)
        lasts_s = random.integers(1, 60, n)
        rows = {
            "id": person * _AUCTIONS + mine % _ROUND - _PERSONS + _FIRST_ID,
            "seller": _hot_or_recent(person, person // 100 * 100, random.random(n) < 0.75, 1000, random),
            "category": random.integers(10, 15, n),
            "reserve": _prices(n, random),
            "expires": at + lasts_s * 1_000_000_000 // given.tick_ns,
            "at": at,
        }
        yield given.cut(mine, rows)


def bids(given: Parameters) -> Iterator[dict[str, Any]]:
    """Who bids how much for what."""
    for events in given.blocks():
        random = given.random(events, 3)
        mine = events[events % _ROUND >= _PERSONS + _AUCTIONS]
        n = len(mine)
        person = mine // _ROUND
        # All three auctions of the round have begun when its bids come.
        auction = person * _AUCTIONS + _AUCTIONS - 1
        rows = {
            "auction": _hot_or_recent(auction, auction // 100 * 100, random.random(n) < 0.5, 100, random),
            "bidder": _hot_or_recent(person, person // 100 * 100, random.random(n) < 0.75, 1000, random),
            "price": _prices(n, random),
            "at": given.instants(mine),
        }
        yield given.cut(mine, rows)


def _hot_or_recent(
    last: Int64Array, hot: Int64Array, is_hot: BoolArray, recent: int, random: np.random.Generator
) -> Int64Array:
    """The hot number, or one of the `recent` last ones."""
    first = np.maximum(last - recent + 1, 0)
    other = first + random.integers(0, 1 << 62, len(last)) % (last - first + 1)
    return np.where(is_hot, hot, other) + _FIRST_ID


def _prices(n: int, random: np.random.Generator) -> Int64Array:
    """Cents, evenly spread over the orders of magnitude from 1 to 10^6."""
    return np.round(10 ** (random.random(n) * 6) * 100).astype(np.int64)


GENERATOR = Generator(
    "nexmark",
    "an auction house: persons, auctions, bids",
    {
        "person": ({"id": "INTEGER", "name": "TEXT", "city": "TEXT", "state": "TEXT", "at": "TIMESTAMP"}, persons),
        "auction": (
            {
                "id": "INTEGER",
                "seller": "INTEGER",
                "category": "INTEGER",
                "reserve": "INTEGER",
                "expires": "TIMESTAMP",
                "at": "TIMESTAMP",
            },
            auctions,
        ),
        "bid": ({"auction": "INTEGER", "bidder": "INTEGER", "price": "INTEGER", "at": "TIMESTAMP"}, bids),
    },
    {"rate": 10_000.0},
)
