"""KMonJoin against a twin that joins what the windows hold afresh at every instant."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from itertools import product
from typing import Any

import pytest

from minidsms.elements import Schema, Type
from minidsms.joins import answer
from minidsms.joins.directed_graph import Edge
from minidsms.kernels.k_mon_rows import RANGE, ROWS, UNBOUNDED
from minidsms.operators import k_mon_join
from minidsms.operators.k_mon.contracts import Source
from minidsms.operators.k_mon_join import KMonJoin, KMonSpec, Surroundings
from minidsms.streamon.k_mon.monitoring.registry import ConstraintRegistry
from minidsms.streamon.k_mon.watching import watched_by
from minidsms.synopses import k_mon_spill_index
from minidsms.synopses.k_mon_rows import Window
from tests.operators.harness import Element, Netted, Row, differences, entering, feed, joined, queue, random_cuts

S = Schema.of(("a", Type.INTEGER), ("b", Type.INTEGER), ("x", Type.FLOAT), ("pass", Type.BOOLEAN))

TWO = (Edge(0, 1, ((0, 0),), right_key=True),)
CHAIN = (Edge(0, 1, ((1, 0),), right_key=True), Edge(1, 2, ((1, 0),), right_key=True))
STAR = (Edge(0, 1, ((0, 0),), right_key=True), Edge(0, 2, ((1, 0),), right_key=True))
ROOTS = (Edge(0, 2, ((0, 0),), right_key=True), Edge(1, 2, ((0, 0),), right_key=True))
ONE_ONE = (
    Edge(0, 1, ((0, 0),), left_key=True, right_key=True),
    Edge(1, 2, ((0, 0),), left_key=True, right_key=True),
)
BUSH = (
    Edge(0, 1, ((0, 0),), right_key=True),
    Edge(1, 2, ((1, 0),), right_key=True),
    Edge(0, 3, ((1, 0),), right_key=True),
)
HALF = (Edge(0, 1, ((1, 1),)), Edge(1, 2, ((0, 0),), right_key=True))
GRAPHS = {"half": HALF, "two": TWO, "chain": CHAIN, "star": STAR, "roots": ROOTS, "one-one": ONE_ONE, "bush": BUSH}

WINDOWS = {
    "unbounded": [Window(UNBOUNDED)] * 4,
    "ranges": [Window(RANGE, 9), Window(RANGE, 14), Window(RANGE, 5), Window(RANGE, 20)],
    "rows": [Window(ROWS, 5), Window(ROWS, 8), Window(ROWS, 6), Window(ROWS, 7)],
    "mixed": [Window(RANGE, 12), Window(ROWS, 7), Window(UNBOUNDED), Window(ROWS, 3)],
    "now": [Window(RANGE, 1), Window(RANGE, 10), Window(RANGE, 12), Window(RANGE, 8)],
}


def inputs_of(edges: Sequence[Edge]) -> int:
    return len(edges) + 1


def streams(edges: Sequence[Edge], seed: int, size: int = 28, gap: int = 2, nulls: float = 0.1) -> list[list[Element]]:
    """Streams of rows of S in which keys are keys: column 0 of a stream with a key never comes twice."""
    rng = random.Random(seed)
    keyed = {e.left for e in edges if e.left_key} | {e.right for e in edges if e.right_key}
    result = []
    for i in range(inputs_of(edges)):
        keys = rng.sample(range(size + size // 4), size) if i in keyed else [rng.randrange(size) for _ in range(size)]
        if rng.random() < 0.5:
            keys.sort(key=lambda k: k + rng.randrange(1 + size // 4))
        ts, items = 0, []
        for k in keys:
            ts += rng.randrange(gap + 1)
            row: Row = (
                None if rng.random() < nulls / 2 else k,
                None if rng.random() < nulls else max(0, k + rng.randrange(-1, 2)),
                None if rng.random() < nulls else rng.randrange(3) / 2,
                rng.random() < 0.7,
            )
            items.append((ts, 1, row))
        result.append(items)
    return result


def contents(items: Sequence[Element], window: Window, filtered: bool, instant: int) -> list[Row]:
    """What the window holds at the instant."""
    arrived = [e for e in items if e[0] <= instant]
    if window.clock == RANGE:
        arrived = [e for e in arrived if e[0] > instant - window.length]
    elif window.clock == ROWS:
        arrived = arrived[-window.length :]
    return [e[2] for e in arrived if e[2][3] or not filtered]


def twin(
    inputs: Sequence[Sequence[Element]], edges: Sequence[Edge], windows: Sequence[Window], filters: Sequence[bool],
    columns: Sequence[tuple[int, int]], held: Callable[..., Iterable[Row]] = contents,
) -> Netted:  # fmt: skip
    """Every tuple of the relations at every instant, and the differences from instant to instant. held: the rows that
    a window holds.
    """
    last = max(e[0] for items in inputs for e in items)
    links = [((e.left, c), (e.right, d)) for e in edges for c, d in e.columns]
    result = {}
    before: list[Counter[Row]] = []
    for instant in range(last + 40):
        now = [Counter(held(*each, instant)) for each in zip(inputs, windows, filters)]
        if now != before:
            result[instant] = joined(now, links, columns)
        before = now
    return differences(result)


def columns_of(edges: Sequence[Edge]) -> list[tuple[int, int]]:
    return [(i, c) for i in range(inputs_of(edges)) for c in (0, 2)]


def operator(edges: Sequence[Edge], windows: Sequence[Window], filters: Sequence[bool], **options: Any) -> KMonJoin:
    n = inputs_of(edges)
    columns = columns_of(edges)
    schema = Schema(tuple(S[c] for _, c in columns))
    passes = [3 if f else None for f in filters]
    of_spec = {f.name: options.pop(f.name) for f in fields(KMonSpec) if f.name in options}
    spec = KMonSpec(edges, windows[:n], columns, schema, passes, **of_spec)
    return KMonJoin([queue(S) for _ in range(n)], spec, Surroundings(**options))


FILTERS = [False, False, True, False], [True, True, True, True]


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("window", WINDOWS)
def test_join_is_the_join_of_the_windows_at_every_instant(graph: str, window: str) -> None:
    edges, windows = GRAPHS[graph], WINDOWS[window]
    for seed in range(2):
        filters = FILTERS[seed % 2][: inputs_of(edges)]
        items = streams(edges, seed)
        expected = twin(items, edges, windows, filters, columns_of(edges))
        last = max(expected, default=1)
        ways = [*product((False, True), (False, True), ((), range(1, 80), random_cuts(seed, 60)))]
        for reduces, always, cuts in ways[seed::2]:
            join = operator(edges, windows, filters, reduces=reduces, collects_always=always)
            assert feed(join, items, cuts, until=max(last, 1)) == expected, (seed, reduces, always, cuts)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("window", WINDOWS)
def test_netted_join_gives_what_istream_needs(graph: str, window: str) -> None:
    edges, windows = GRAPHS[graph], WINDOWS[window]
    for seed in range(4, 6):
        filters = FILTERS[seed % 2][: inputs_of(edges)]
        items = streams(edges, seed, gap=1)
        expected = entering(twin(items, edges, windows, filters, columns_of(edges)))
        for reduces, cuts in product((False, True), ((), range(1, 60))):
            join = operator(edges, windows, filters, reduces=reduces, for_istream=True, collects_always=bool(cuts))
            assert entering(feed(join, items, cuts)) == expected, (seed, reduces, cuts)


def test_small_buffers_and_parts_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k_mon_join, "_PART", 3)
    monkeypatch.setattr(k_mon_join, "_TUPLES", 2)
    monkeypatch.setattr(answer, "MOST_INSPECTED", 3)
    for graph in GRAPHS.values():
        for window in WINDOWS.values():
            items = streams(graph, 3)
            filters = FILTERS[0][: inputs_of(graph)]
            expected = twin(items, graph, window, filters, columns_of(graph))
            for reduces in (False, True):
                join = operator(graph, window, filters, reduces=reduces, collects_always=True)
                join._buffers = k_mon_join._buffers(1, len(join.outputs_of))
                assert feed(join, items, (10, 20), room=1, until=max(expected, default=1)) == expected


SINGLE = {name: graph for name, graph in GRAPHS.items() if name not in ("roots", "half")}


def watched(edges: Sequence[Edge], windows: Sequence[Window], filters: Sequence[bool], **options: Any) -> KMonJoin:
    """An operator that uses constraints."""
    sources = [Source(f"s{i}", ("a", "b", "x", "pass")) for i in range(inputs_of(edges))]
    return operator(
        edges, windows, filters, watch=watched_by(ConstraintRegistry(), sources), collects_always=True, **options
    )


@pytest.mark.parametrize("graph", SINGLE)
@pytest.mark.parametrize("window", WINDOWS)
def test_rows_that_wrong_constraints_let_go_are_found_again(
    graph: str, window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges, windows = GRAPHS[graph], WINDOWS[window]
    monkeypatch.setattr(k_mon_spill_index, "_MOST_GENERATIONS", 2)
    for seed in range(10, 12):
        monkeypatch.setattr(k_mon_spill_index, "_YOUNG", 3 if seed % 2 else 2048)
        filters = FILTERS[seed % 2][: inputs_of(edges)]
        items = streams(edges, seed)
        expected = twin(items, edges, windows, filters, columns_of(edges))
        for cuts in (range(1, 80), random_cuts(seed, 60)):
            join = watched(edges, windows, filters)
            assert join.reduction is not None
            join.reduction.forced = random.Random(seed)
            assert feed(join, items, cuts, until=max(expected, default=1)) == expected, (seed, cuts)
            join.close()


def test_nulls_are_shown_in_as_many_columns_as_an_answer_may_have() -> None:
    wide = Schema.of(*((f"c{i}", Type.INTEGER) for i in range(65)))
    columns = [(0, c) for c in range(3, 65)]
    spec = KMonSpec(
        (Edge(0, 1, ((0, 0), (1, 1), (2, 2)), right_key=True),), [Window(UNBOUNDED)] * 2, columns,
        Schema(tuple(wide[c] for _, c in columns)),
    )  # fmt: skip
    row = (*range(61), None, None, None, None)
    answer_ = feed(KMonJoin([queue(wide), queue(wide)], spec), [[(2, 1, row)], [(1, 1, row)]])
    assert answer_ == {2: Counter({row[3:]: 1})}
