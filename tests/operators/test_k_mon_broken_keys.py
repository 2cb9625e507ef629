"""KMonJoin where keys are none: those declared are violated, those found break; the answer is that of the twin."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from minidsms.joins.directed_graph import Edge
from minidsms.operators.k_mon.contracts import Source
from minidsms.operators.k_mon_join import KMonJoin
from minidsms.streamon.k_mon.monitoring.registry import ConstraintRegistry
from minidsms.streamon.k_mon.watching import watched_by
from minidsms.synopses import k_mon_spill_index
from minidsms.synopses.k_mon_rows import Window
from tests.operators.harness import Element, Row, feed, random_cuts
from tests.operators.test_k_mon_join import (
    FILTERS,
    GRAPHS,
    WINDOWS,
    columns_of,
    entering,
    inputs_of,
    operator,
    twin,
)
from tests.seeds import seeds

LONG_CHAIN = (
    Edge(0, 1, ((1, 0),), right_key=True),
    Edge(1, 2, ((1, 0),), right_key=True),
    Edge(2, 3, ((1, 0),), right_key=True),
)
NO_KEYS = (Edge(0, 1, ((1, 0),)), Edge(1, 2, ((1, 0),)))
BROKEN = {**GRAPHS, "long chain": LONG_CHAIN, "no keys": NO_KEYS}


def repeating(edges: Sequence[Edge], seed: int, size: int = 24) -> list[list[Element]]:
    """Streams of rows of `S` in which no column is a key: values come again, sooner or later, seldom or often."""
    rng = random.Random(seed)
    result = []
    for _ in range(inputs_of(edges)):
        spread, repeats = rng.choice((2, 6, 30)), rng.choice((0.0, 0.1, 0.4))
        ts, items = 0, []
        for step in range(size):
            ts += rng.randrange(3)
            k = rng.randrange(size) if rng.random() < repeats else max(0, step + rng.randrange(-spread, spread + 1))
            row: Row = (
                None if rng.random() < 0.03 else k,
                None if rng.random() < 0.05 else max(0, k + rng.randrange(-1, 2)),
                None if rng.random() < 0.1 else rng.randrange(3) / 2,
                rng.random() < 0.8,
            )
            items.append((ts, 1, row))
        result.append(items)
    return result


WAYS = ("keys", "watched", "forced")
"""What lets rows go: declared keys alone, constraints that are watched, too, or random ones."""


def joined(
    edges: Sequence[Edge], windows: Sequence[Window], filters: Sequence[bool], seed: int, way: str, **options: Any
) -> KMonJoin:
    """An operator that lets rows go after every slice."""
    if way != "keys":
        sources = [Source(f"s{i}", ("a", "b", "x", "pass")) for i in range(inputs_of(edges))]
        options["watch"] = watched_by(ConstraintRegistry(), sources)
    join = operator(edges, windows, filters, collects_always=True, **options)
    if way == "forced":
        assert join.reduction is not None
        join.reduction.forced = random.Random(seed)
    return join


def check(graph: str, window: str, seed: int, for_istream: bool) -> None:
    edges, windows = BROKEN[graph], WINDOWS[window]
    items = repeating(edges, seed)
    filters = FILTERS[seed % 2][: inputs_of(edges)]
    expected = twin(items, edges, windows, filters, columns_of(edges))
    options: dict[str, Any] = {}
    if for_istream:
        roots = operator(edges, windows, filters).roots
        options = {"for_istream": True, "unique": {root: (0,) for root in roots}}
    for n, way in enumerate(WAYS):
        cuts = range(1, 80) if (seed + n) % 2 else random_cuts(seed, 60)
        join = joined(edges, windows, filters, seed, way, **options)
        found = feed(join, items, cuts, until=max(expected, default=1))
        if for_istream:
            assert entering(found) == entering(expected), (seed, cuts, way)
        else:
            assert found == expected, (seed, cuts, way)
        join.close()


@pytest.mark.parametrize("graph", BROKEN)
@pytest.mark.parametrize("window", WINDOWS)
def test_answers_are_those_of_the_windows_whatever_keys_were_declared(
    graph: str, window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in seeds(20, 22):
        monkeypatch.setattr(k_mon_spill_index, "_YOUNG", 3 if seed % 2 else 2048)
        check(graph, window, seed, for_istream=False)


@pytest.mark.parametrize("graph", BROKEN)
@pytest.mark.parametrize("window", WINDOWS)
def test_what_istream_shows_is_right_though_the_key_that_it_shows_is_none(
    graph: str, window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in seeds(31, 33):
        monkeypatch.setattr(k_mon_spill_index, "_YOUNG", 3 if seed % 2 else 2048)
        check(graph, window, seed, for_istream=True)


@pytest.mark.long
@pytest.mark.parametrize("start", range(1000, 1400, 20))
def test_a_thousand_streams_in_which_keys_are_none(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(start, start + 20):
        monkeypatch.setattr(k_mon_spill_index, "_YOUNG", 3 if seed % 2 else 2048)
        rng = random.Random(seed)
        check(rng.choice(list(BROKEN)), rng.choice(list(WINDOWS)), seed, for_istream=rng.random() < 0.5)
