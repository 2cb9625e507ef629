"""The streams of the papers' experiments, without end.

`filters`: six columns of 0 to 999; the filter of a column is that it is below 500. Two pass 90, two 60, two 30 per cent
of the tuples, each two agreeing on most, and after every `period` events they stand in other columns (Babu 2005,
section 4.7.2). `classes`: five such columns, whose filters pass almost all tuples but those of one class each (Bizarro
et al. 2005, section 6.3). `r`, `s`, `t`: every event is `met` rows a, as many rows (a, b) and `multiplicity` rows b, so
that a row of t meets `met` rows of s and r (Babu 2005, section 5.8.1). `parent`, `child`: every event is a child, and
`multiplicity` parents that name a child of one of the next `k` events (Babu 2005, section 6.5).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.generators.generator import Generator, Parameters

_PASSED = np.array([0.9, 0.9, 0.6, 0.6, 0.3, 0.3])
_COPYING = 0.7
"""Share of the tuples on which a filter answers as its pair does."""
_CLASSES = 5
_PASSED_BY_OWN, _PASSED_BY_OTHERS = 0.06, 0.955
_BITS = 20
"""A row's own key is its event's, shifted by so many bits, and its number."""
_ODD = 0x9E3779B1


def _columns(passes: BoolArray, random: np.random.Generator) -> dict[str, Int64Array]:
    """Of which filter passes which tuple, (n, filters), values below 500 or not, by the columns' names."""
    values = random.integers(0, 500, passes.shape) + np.where(passes, 0, 500)
    return {chr(ord("a") + i): values[:, i] for i in range(passes.shape[1])}


def _names(events: Int64Array, seed: int) -> Int64Array:
    """Keys of events, in no order; different ones stay different below 2^31."""
    return (events * _ODD + seed) & 0x7FFFFFFF


def filters(given: Parameters) -> Iterator[dict[str, Any]]:
    """Tuples for six filters."""
    period = max(1, int(given.own["period"]))
    for events in given.blocks():
        random = given.random(events, 1)
        n = len(events)
        passes = random.random((n, 6)) < _PASSED
        of_pair = random.random((n, 3)) < _PASSED[::2]
        copies = random.random((n, 6)) < _COPYING
        passes = np.where(copies, np.repeat(of_pair, 2, axis=1), passes)
        for phase in np.unique(events // period).tolist():
            now = events // period == phase
            places = np.random.default_rng((given.seed, phase)).permutation(6)
            passes[now] = passes[now][:, places]
        yield given.cut(events, {**_columns(passes, random), "at": given.instants(events)})


def classes(given: Parameters) -> Iterator[dict[str, Any]]:
    """Tuples of five classes, for five filters."""
    for events in given.blocks():
        random = given.random(events, 2)
        own = random.integers(0, _CLASSES, len(events))
        passed = np.where(own[:, None] == np.arange(_CLASSES), _PASSED_BY_OWN, _PASSED_BY_OTHERS)
        passes = random.random(passed.shape) < passed
        yield given.cut(events, {"class": own, **_columns(passes, random), "at": given.instants(events)})


def three_way(stream: str) -> Any:
    """Rows of one stream of a join of three."""

    def rows(given: Parameters) -> Iterator[dict[str, Any]]:
        times = max(1, int(given.own["multiplicity" if stream == "t" else "met"]))
        for events in given.blocks():
            each = np.repeat(events, times)
            of_event = _names(each, given.seed)
            own = (of_event << _BITS) + np.tile(np.arange(times), len(events))
            columns = {"r": {"a": own}, "s": {"a": own, "b": of_event}, "t": {"b": of_event}}[stream]
            yield given.cut(each, {**columns, "at": given.instants(each)})

    return rows


def parents(given: Parameters) -> Iterator[dict[str, Any]]:
    """Rows that name the child of an event to come."""
    k, times = max(0, int(given.own["k"])), max(1, int(given.own["multiplicity"]))
    for events in given.blocks():
        random = given.random(events, 3)
        each = np.repeat(events, times)
        child = _names(each + random.integers(0, k + 1, len(each)), given.seed)
        rows = {"child": child, "size": random.integers(40, 1500, len(each)), "at": given.instants(each)}
        yield given.cut(each, rows)


def children(given: Parameters) -> Iterator[dict[str, Any]]:
    """Rows that are named."""
    for events in given.blocks():
        kind = given.random(events, 4).integers(0, 10, len(events))
        rows = {"id": _names(events, given.seed), "kind": kind, "at": given.instants(events)}
        yield given.cut(events, rows)


def _integers(names: str) -> dict[str, str]:
    return {**{name: "INTEGER" for name in names.split()}, "at": "TIMESTAMP"}


GENERATOR = Generator(
    "experiments",
    "streams of the papers' experiments: filters that change places, classes, a join of three, references",
    {
        "filters": (_integers("a b c d e f"), filters),
        "classes": (_integers("class a b c d e"), classes),
        "r": (_integers("a"), three_way("r")),
        "s": (_integers("a b"), three_way("s")),
        "t": (_integers("b"), three_way("t")),
        "parent": (_integers("child size"), parents),
        "child": (_integers("id kind"), children),
    },
    {"period": 1_000_000, "multiplicity": 5, "met": 5, "k": 1000},
)
