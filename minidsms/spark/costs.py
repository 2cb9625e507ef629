"""What each way to carry out a query is expected to cost, as bounding boxes; and which of them is chosen.

A box holds what a way may take, from the least to the most: wide where nothing has been measured, as narrow as the last
runs of such queries lay together where something has. The way is chosen that loses least at the corners of the boxes
(Babu 2005, section 7.2); of those that lose about equally little the one that takes least of the processors.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minidsms.archive.rates import Rates

WAYS = ("replay", "engines", "frames")
"""One engine in one task; engines in many; DataFrame operations."""

_START_S = {"replay": (2.0, 4.0), "engines": (2.0, 4.0), "frames": (5.0, 12.0)}
_ROW_S = {"replay": (1e-7, 6e-7), "engines": (2e-7, 8e-7), "frames": (3e-6, 1e-5)}
"""Measured over the queries of benchmarks/offload.py (docs/spark.md): of processors, to begin and for a row."""

_ABOUT = 1.2
_UNSURE = 1.25
"""What lies between two runs of one query, either way."""
_GROWN = 1.02
"""Sizes that were counted hold of archives that have grown a little."""


@dataclass(frozen=True)
class Box:
    """At least low, at most high."""

    low: float
    high: float

    @property
    def is_open(self) -> bool:
        """Whether so much is unknown that it may matter."""
        return self.high > _ABOUT * self.low

    def __str__(self) -> str:
        return f"{self.low:,.1f} to {self.high:,.1f}"


@dataclass(frozen=True)
class Estimate:
    """Of a way. seconds: until it is done.  cpu_s: of processors.  runs: how many of such queries it rests on."""

    way: str
    seconds: Box
    cpu_s: Box
    runs: int

    def __str__(self) -> str:
        runs = "run" if self.runs == 1 else "runs"
        rests = f"{self.runs} such {runs}" if self.runs else "none such has been run"
        return f"{self.way:7}  {self.seconds} s, {self.cpu_s} s of processors ({rests})"


def estimate(way: str, rows: float, tasks: int, rates: Rates) -> Estimate:
    """What a way costs. rows: those that it reads, as often as it reads them.  tasks: how many share them."""
    low, high = _ROW_S[way]
    measured = rates.get(way, ())
    if measured:
        low, high = min(measured) / _UNSURE, max(measured) * _UNSURE
    begin = _START_S[way]
    seconds = Box(begin[0] + rows * low / tasks, begin[1] + rows * high / tasks)
    begins = tasks if way == "engines" else 1
    return Estimate(way, seconds, Box(begins * begin[0] + rows * low, begins * begin[1] + rows * high), len(measured))


def least_regret(estimates: Mapping[str, Estimate]) -> str:
    """The way to take."""

    def regret(way: str) -> float:
        others = [other.seconds.low for name, other in estimates.items() if name != way]
        return max(1.0, estimates[way].seconds.high / min(others)) if others else 1.0

    least = min(regret(way) for way in estimates)
    about = [way for way in estimates if regret(way) <= _ABOUT * least]
    return min(about, key=lambda way: estimates[way].cpu_s.high)


def about(rates: Sequence[float], times: float) -> Box:
    """What was measured of one of something, of so many."""
    return Box(min(rates) * times / _GROWN, max(rates) * times * _GROWN)


def shape_of(query: str, masked: bool = True) -> str:
    """Equal for queries that differ in constants alone. masked: False for queries of the same text alone.

    >>> shape_of("SELECT v FROM S WHERE v > 3 AND t = 'a'") == shape_of("SELECT v FROM S WHERE v > 4.5 AND t = ''")
    True
    """
    text = re.sub(r"'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b", "?", query) if masked else query
    return hashlib.sha256(text.encode()).hexdigest()[:16]
