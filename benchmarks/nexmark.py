"""Bids, auctions and persons in the shape of the NEXMark benchmark, from a seed.

Of fifty events one is a new person, three are new auctions and 46 are bids. Every second bid goes to the hot auction
(the newest whose number is a multiple of 100), the others to one of the last hundred auctions or the next ten; three of
four auctions belong to a hot seller, three of four bids come from a hot bidder; prices spread over six decades. Tucker,
Tufte, Papadimos, Maier: NEXMark, a benchmark for queries over data streams.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.feeds import Feed, Feeds, Int64Array

EVENTS_PER_SECOND = 10_000
_PERSONS, _AUCTIONS, _ROUND = 1, 3, 50
_FIRST_ID = 1000
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = ("Phoenix", "Los Angeles", "Boise", "Portland", "Seattle", "Cheyenne", "Bend", "Redmond")


def nexmark(bids: int, seed: int = 1, rate: int = EVENTS_PER_SECOND) -> Feeds:
    """About `bids` bids with the auctions and persons between them; ticks are milliseconds, `rate` events a second."""
    rng = np.random.default_rng(seed)
    rounds = -(-bids // (_ROUND - _PERSONS - _AUCTIONS))
    event = np.arange(rounds * _ROUND, dtype=np.int64)
    kind = event % _ROUND
    ts = event * 1000 // rate
    is_person, is_bid = kind < _PERSONS, kind >= _PERSONS + _AUCTIONS
    is_auction = ~is_person & ~is_bid
    return {
        "person": _persons(ts[is_person], rng),
        "auction": _auctions(ts[is_auction], event[is_auction], rng),
        "bid": _bids(ts[is_bid], event[is_bid], rng),
    }


def _persons(ts: Int64Array, rng: np.random.Generator) -> Feed:
    n = len(ts)
    place = rng.integers(0, len(_CITIES), n)
    return Feed(
        ts,
        {
            "id": np.arange(n, dtype=np.int64) + _FIRST_ID,
            "city": pa.array(_CITIES).take(pa.array(place)),
            "state": pa.array(_STATES).take(pa.array(place % len(_STATES))),
        },
    )


def _last_person(event: Int64Array) -> Int64Array:
    return event // _ROUND


def _last_auction(event: Int64Array) -> Int64Array:
    """How many auctions precede a bid, less one; at least 0."""
    rounds, offset = event // _ROUND, event % _ROUND
    begun = np.clip(offset - _PERSONS, -1, _AUCTIONS - 1)
    return np.maximum(rounds * _AUCTIONS + begun, 0)


def _hot_or_recent(
    last: Int64Array, hot: Int64Array, is_hot: np.ndarray, recent: int, lead: int, rng: np.random.Generator
) -> Int64Array:
    """The hot number, or one of the `recent` last ones or of the `lead` next."""
    first = np.maximum(last - recent, 0)
    other = first + rng.integers(0, 1 << 62, len(last)) % (last - first + 1 + lead)
    return np.where(is_hot, hot, other) + _FIRST_ID


def _auctions(ts: Int64Array, event: Int64Array, rng: np.random.Generator) -> Feed:
    n = len(ts)
    person = _last_person(event)
    return Feed(
        ts,
        {
            "id": np.arange(n, dtype=np.int64) + _FIRST_ID,
            "seller": _hot_or_recent(person, person // 100 * 100, rng.random(n) < 0.75, 1000, 0, rng),
            "category": rng.integers(10, 15, n),
            "reserve": _prices(n, rng),
        },
    )


def _bids(ts: Int64Array, event: Int64Array, rng: np.random.Generator) -> Feed:
    n = len(ts)
    auction, person = _last_auction(event), _last_person(event)
    names = pa.array([*_CHANNELS, *(f"channel-{i}" for i in range(10_000))])
    channel = np.where(rng.random(n) < 0.5, rng.integers(0, 4, n), rng.integers(4, len(names), n))
    return Feed(
        ts,
        {
            "auction": _hot_or_recent(auction, auction // 100 * 100, rng.random(n) < 0.5, 100, 10, rng),
            "bidder": _hot_or_recent(person, person // 100 * 100 + 1, rng.random(n) < 0.75, 1000, 0, rng),
            "price": _prices(n, rng),
            "channel": names.take(pa.array(channel)),
        },
    )


def _prices(n: int, rng: np.random.Generator) -> Int64Array:
    """Cents, evenly spread over the orders of magnitude from 1 to 10^6."""
    return np.round(10 ** (rng.random(n) * 6) * 100).astype(np.int64)


def only(feeds: Feeds, stream: str, *columns: str) -> Feed:
    """Some columns of one stream."""
    feed = feeds[stream]
    return Feed(feed.ts, {c: feed.columns[c] for c in columns}, feed.sign)


def three_streams(events: int, seed: int = 2, keys: int = 2500) -> Feeds:
    """R(a), S(a, b) and T(b) in turn, one element a tick, keys drawn evenly: the input of the three-way join."""
    rng = np.random.default_rng(seed)
    n = events // 3
    ts = np.arange(n, dtype=np.int64) * 3
    a, b, c, d = (rng.integers(0, keys, n) for _ in range(4))
    return {"R": Feed(ts, {"a": a}), "S": Feed(ts + 1, {"a": b, "b": c}), "T": Feed(ts + 2, {"b": d})}


def ten_attributes(events: int, seed: int = 3) -> Feeds:
    """A stream of ten attributes, each equal to the one before it in half of the rows: filters on them correlate."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Int64Array] = {}
    previous = rng.integers(0, 1_000_000, events)
    for j in range(10):
        previous = np.where(rng.random(events) < 0.5, previous, rng.integers(0, 1_000_000, events))
        columns[f"a{j}"] = previous
    return {"tuples": Feed(np.arange(events, dtype=np.int64) // 10, columns)}


def currencies(feeds: Feeds, seed: int = 4, keys: int = 100, every: int = 100) -> Feeds:
    """The bids with a currency each, and a relation of exchange rates of which one changes every `every` ticks."""
    rng = np.random.default_rng(seed)
    bid = only(feeds, "bid", "auction", "price")
    bids = Feed(bid.ts, {**bid.columns, "currency": rng.integers(0, keys, len(bid))})
    rate = rng.integers(1, 1000, keys)
    rows = [(0, 1, key, int(rate[key])) for key in range(keys)]
    for ts in range(every, int(bid.ts[-1]), every):
        key = int(rng.integers(0, keys))
        fresh = int(rng.integers(1, 1000))
        rows += [(ts, -1, key, int(rate[key])), (ts, 1, key, fresh)]
        rate[key] = fresh
    table = np.array(rows, np.int64)
    columns = {"currency": table[:, 2].copy(), "rate": table[:, 3].copy()}
    return {"rates": Feed(table[:, 0].copy(), columns, table[:, 1].copy()), "bid": bids}


def with_nulls(feeds: Feeds, seed: int = 5) -> Feeds:
    """Bids of which one in twenty names no auction and one in ten no price."""
    rng = np.random.default_rng(seed)
    bid = only(feeds, "bid", "auction", "price")
    n = len(bid)
    return {
        "bid": Feed(
            bid.ts,
            {
                "auction": pa.array(bid.array("auction"), mask=rng.random(n) < 0.05),
                "price": pa.array(bid.array("price"), mask=rng.random(n) < 0.1),
            },
        )
    }
