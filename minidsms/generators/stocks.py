"""Trades and quotes of a stock exchange: prices walk at random, each in its own stride; some trades are large.

Prices are in cents. `symbols` says how many there are; the first ones are traded most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from minidsms.elements import Int64Array
from minidsms.generators.generator import Generator, Parameters


def _names(count: int) -> Any:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return pa.array([letters[i // 676 % 26] + letters[i // 26 % 26] + letters[i % 26] for i in range(max(1, count))])


def _walk(given: Parameters, what: int) -> Iterator[tuple[Int64Array, Int64Array, Int64Array, np.random.Generator]]:
    """(events, symbol, price, random) of each block: prices go on from where the block before left them."""
    count = max(1, int(given.own["symbols"]))
    log_price = np.log(1000.0 + 9000.0 * np.random.default_rng((given.seed, what)).random(count))
    stride = 0.0005 * (1 + np.arange(count) % 5)
    for events in given.blocks():
        random = given.random(events, what)
        n = len(events)
        symbol = np.minimum((random.random(n) ** 2 * count).astype(np.int64), count - 1)
        steps = random.standard_normal(n) * stride[symbol]
        order = np.argsort(symbol, kind="stable")
        sums = np.cumsum(steps[order])
        grouped = symbol[order]
        first = np.searchsorted(grouped, np.arange(count))
        before = np.concatenate(([0.0], sums))[first]
        price = np.empty(n)
        price[order] = np.exp(log_price[grouped] + sums - before[grouped])
        last = np.searchsorted(grouped, np.arange(count), side="right")
        log_price = log_price + np.concatenate(([0.0], sums))[last] - before
        yield events, symbol, np.maximum(1, np.round(price)).astype(np.int64), random


def trades(given: Parameters) -> Iterator[dict[str, Any]]:
    """What was sold at which price."""
    names = _names(int(given.own["symbols"]))
    for events, symbol, price, random in _walk(given, 1):
        n = len(events)
        rows = {
            "symbol": names.take(pa.array(symbol)),
            "price": price,
            "shares": np.where(random.random(n) < 0.01, 10_000, 100) * random.integers(1, 10, n),
            "at": given.instants(events),
        }
        yield given.cut(events, rows)


def quotes(given: Parameters) -> Iterator[dict[str, Any]]:
    """What is bid and asked."""
    names = _names(int(given.own["symbols"]))
    for events, symbol, price, random in _walk(given, 2):
        spread = random.integers(1, 6, len(events))
        rows = {
            "symbol": names.take(pa.array(symbol)),
            "bid": price,
            "ask": price + spread,
            "at": given.instants(events),
        }
        yield given.cut(events, rows)


GENERATOR = Generator(
    "stocks",
    "trades and quotes of a stock exchange",
    {
        "trade": ({"symbol": "TEXT", "price": "INTEGER", "shares": "INTEGER", "at": "TIMESTAMP"}, trades),
        "quote": ({"symbol": "TEXT", "bid": "INTEGER", "ask": "INTEGER", "at": "TIMESTAMP"}, quotes),
    },
    {"symbols": 20},
)
