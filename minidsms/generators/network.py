"""Packets on three links of a provider's network, and connection attempts. Babu 2005, sections 1.3 and 4.

`c`: the link from a customer into the network, `b`: one in its backbone, `o`: one out of it. A packet of c goes on over
b with probability `via_b`, and from there over o with probability `via_o`, each at most `delay` milliseconds later; b
carries as many packets again that did not come over c. `syn`: attempts to open connections; a scanner tries one port
after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minidsms.generators.generator import Generator, Parameters

_SIZES = np.array([40, 576, 1500], np.int64)


def _travels(given: Parameters) -> Iterator[dict[str, Any]]:
    """The packets of c, where each goes and when."""
    for events in given.blocks():
        random = given.random(events, 1)
        n = len(events)
        delay = max(1, int(given.own["delay"]) * 1_000_000 // given.tick_ns)
        at_c = given.instants(events)
        at_b = at_c + random.integers(1, delay + 1, n)
        goes_b = random.random(n) < given.own["via_b"]
        rows = {
            "pid": events,
            "size": random.choice(_SIZES, n, p=[0.5, 0.2, 0.3]),
            "at_c": at_c,
            "at_b": at_b,
            "at_o": at_b + random.integers(1, delay + 1, n),
            "goes_b": goes_b,
            "goes_o": goes_b & (random.random(n) < given.own["via_o"]),
        }
        yield given.cut(events, rows)


def link_c(given: Parameters) -> Iterator[dict[str, Any]]:
    """Packets from the customer."""
    for packets in _travels(given):
        yield {"pid": packets["pid"], "size": packets["size"], "at": packets["at_c"]}


def _in_order(given: Parameters, where: str, at: str) -> Iterator[dict[str, Any]]:
    """Some packets in the order in which they arrive: what a later block may still precede is held back."""
    held = {name: np.zeros(0, np.int64) for name in ("pid", "size", "at")}
    for packets in _travels(given):
        chosen = packets[where]
        new = {"pid": packets["pid"][chosen], "size": packets["size"][chosen], "at": packets[at][chosen]}
        merged = {name: np.concatenate((held[name], new[name])) for name in held}
        order = np.argsort(merged["at"], kind="stable")
        merged = {name: column[order] for name, column in merged.items()}
        # No later packet enters before the last one of this block did.
        ready = int(np.searchsorted(merged["at"], packets["at_c"][-1], side="right"))
        held = {name: column[ready:] for name, column in merged.items()}
        yield {name: column[:ready] for name, column in merged.items()}
    yield held


def link_b(given: Parameters) -> Iterator[dict[str, Any]]:
    """Packets in the backbone: those of the customer, and as many of others (negative pids)."""
    for block, packets in enumerate(_in_order(given, "goes_b", "at_b")):
        n = len(packets["pid"])
        random = np.random.default_rng((given.seed, 2, block))
        others = {"pid": -1 - packets["pid"], "size": random.choice(_SIZES, n), "at": packets["at"]}
        # Each right behind the customer's packet: the order of instants stays.
        yield {name: np.stack((column, others[name]), 1).ravel() for name, column in packets.items()}


def link_o(given: Parameters) -> Iterator[dict[str, Any]]:
    """Packets that leave the network."""
    return _in_order(given, "goes_o", "at_o")


def attempts(given: Parameters) -> Iterator[dict[str, Any]]:
    """Attempts to open connections. One source in `scanners` of a thousand walks through the ports of a host."""
    for events in given.blocks():
        random = given.random(events, 3)
        n = len(events)
        source = random.integers(0, 1000, n)
        is_scan = source < given.own["scanners"]
        rows = {
            "source": [f"10.0.{s // 250}.{s % 250}" for s in source.tolist()],
            "target": [f"192.168.0.{t}" for t in np.where(is_scan, source % 250, random.integers(0, 50, n)).tolist()],
            "port": np.where(is_scan, events % 60_000 + 1, random.choice([22, 53, 80, 443], n)),
            "bytes": np.where(is_scan, 40, random.choice(_SIZES, n)),
            "answered": ~is_scan & (random.random(n) < 0.98),
            "at": given.instants(events),
        }
        yield given.cut(events, rows)


_PACKET = {"pid": "INTEGER", "size": "INTEGER", "at": "TIMESTAMP"}

GENERATOR = Generator(
    "network",
    "packets on links c, b and o of a provider's network; attempts to open connections",
    {
        "c": (_PACKET, link_c),
        "b": (_PACKET, link_b),
        "o": (_PACKET, link_o),
        "syn": (
            {
                "source": "TEXT",
                "target": "TEXT",
                "port": "INTEGER",
                "bytes": "INTEGER",
                "answered": "BOOLEAN",
                "at": "TIMESTAMP",
            },
            attempts,
        ),
    },
    {"delay": 50, "via_b": 0.6, "via_o": 0.5, "scanners": 3},
)
