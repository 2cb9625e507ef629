"""KMonJoin where inputs are relations, whose rows are inserted, deleted and updated: the answer is that of the twin."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from minidsms.joins.directed_graph import Edge
from minidsms.kernels.k_mon_rows import CHANGES, RANGE, ROWS, UNBOUNDED
from minidsms.operators.k_mon import updates
from minidsms.operators.k_mon.contracts import Source
from minidsms.operators.k_mon_join import KMonJoin
from minidsms.streamon.k_mon.monitoring.registry import ConstraintRegistry
from minidsms.streamon.k_mon.watching import watched_by
from minidsms.synopses import k_mon_spill_index
from minidsms.synopses.k_mon_rows import Window
from tests.operators.harness import Element, Row, feed, random_cuts
from tests.operators.test_k_mon_join import FILTERS, GRAPHS, columns_of, contents, entering, inputs_of, operator, twin

R = Window(CHANGES)
WINDOWS = {
    "child": [Window(RANGE, 12), R, Window(RANGE, 15), Window(ROWS, 6)],
    "children": [Window(RANGE, 14), R, R, R],
    "last": [Window(ROWS, 7), Window(RANGE, 9), R, Window(UNBOUNDED)],
    "root": [R, Window(RANGE, 10), Window(RANGE, 14), Window(ROWS, 6)],
    "unbounded": [Window(UNBOUNDED), R, Window(UNBOUNDED), R],
}
"""Of each input; R: it is a relation."""


def keyed(edges: Sequence[Edge]) -> set[int]:
    return {e.left for e in edges if e.left_key} | {e.right for e in edges if e.right_key}


def row_of(rng: random.Random, k: int) -> Row:
    return (
        None if rng.random() < 0.03 else k,
        None if rng.random() < 0.05 else max(0, k + rng.randrange(-1, 2)),
        None if rng.random() < 0.1 else rng.randrange(3) / 2,
        rng.random() < 0.75,
    )


def stream(rng: random.Random, size: int, repeats: bool) -> list[Element]:
    keys = [step // 2 if repeats else step for step in range(size)]
    ts, items = 0, []
    for k in sorted(keys, key=lambda k: k + rng.randrange(6)):
        ts += rng.randrange(3)
        row = row_of(rng, k)
        items.append((ts, 1, row if repeats else (k, *row[1:])))
    return items


def relation(rng: random.Random, size: int, breaks: float, once: bool = False) -> list[Element]:
    """Insertions, deletions and updates. breaks: the share of insertions whose key may stand in another row.  once: no
    key comes again.
    """
    present: list[Row] = []
    used: set[Any] = set()
    items: list[Element] = []
    ts = 0
    while len(items) < size:
        ts += rng.randrange(1, 4)
        out = [row for row in present if rng.random() < rng.choice((0, 0.1, 0.3))]
        left = list((Counter(present) - Counter(out)).elements())
        taken = {row[0] for row in left}
        new: list[Row] = []
        for row in out:
            if rng.random() < 0.6 and row[0] is not None and row[0] not in taken and not once:  # an update
                new.append((row[0], *row_of(rng, row[0])[1:]))
                taken.add(row[0])
        for _ in range(rng.randrange(3)):
            k = rng.randrange(max(1, len(items) // 2), 2 + len(items)) if rng.random() < 0.7 else rng.randrange(size)
            if (k not in taken and k not in used) or rng.random() < breaks:
                new.append(row_of(rng, k))
                taken.add(k)
                used |= {k} if once else set()
        stay = Counter(out) & Counter(new)
        out, new = list((Counter(out) - stay).elements()), list((Counter(new) - stay).elements())
        items += [(ts, -1, row) for row in out] + [(ts, 1, row) for row in new]
        present = left + list(stay.elements()) + new
    return items


def inputs(
    edges: Sequence[Edge], windows: Sequence[Window], seed: int, breaks: float, unique: Sequence[int]
) -> list[list[Element]]:
    """unique: inputs whose first column is a key by which nothing need be joined."""
    rng = random.Random(seed)
    keys = keyed(edges) | set(unique)
    return [
        relation(rng, 40, breaks if i in keys else 1.0)
        if windows[i].clock == CHANGES
        else stream(rng, 24, i not in keys or rng.random() < breaks)
        for i in range(inputs_of(edges))
    ]


def present(items: Sequence[Element], window: Window, filtered: bool, instant: int) -> list[Row]:
    """What a window holds, or a relation, at the instant."""
    if window.clock != CHANGES:
        return contents(items, window, filtered, instant)
    held: Counter[Row] = Counter()
    for ts, sign, row in items:
        if ts <= instant:
            held[row] += sign
    assert min(held.values(), default=0) >= 0
    return [row for row in held.elements() if row[3] or not filtered]


WAYS: dict[str, dict[str, Any]] = {
    "swj": {"reduces": False},
    "keys": {},
    "trusting": {"trusts_keys": True},
    "watched": {},
    "forced": {},
    "trusting, forced": {"trusts_keys": True},
}


def joined(
    edges: Sequence[Edge], windows: Sequence[Window], filters: Sequence[bool], seed: int, way: str, **options: Any
) -> KMonJoin:
    """An operator that lets rows go after every slice."""
    if way not in ("swj", "keys", "trusting"):
        sources = [Source(f"s{i}", ("a", "b", "x", "pass")) for i in range(inputs_of(edges))]
        options["watch"] = watched_by(ConstraintRegistry(), sources)
    join = operator(edges, windows, filters, collects_always=True, **WAYS[way], **options)
    if "forced" in way:
        assert join.reduction is not None
        join.reduction.forced = random.Random(seed)
    return join


def check(graph: str, window: str, seed: int, for_istream: bool, breaks: float = 0.0, by_turns: bool = False) -> None:
    """Against the twin in every way; by_turns: an odd seed takes half of them, an even one the others."""
    edges, windows = GRAPHS[graph], WINDOWS[window]
    filters = FILTERS[seed % 2][: inputs_of(edges)]
    roots: Sequence[int] = ()
    options: dict[str, Any] = {}
    if for_istream:
        roots = [r for r in operator(edges, windows, filters).roots if windows[r].clock != CHANGES]
        is_shown = len(roots) == len(operator(edges, windows, filters).roots)
        options = {"for_istream": True, "unique": {root: (0,) for root in roots} if is_shown else {}}
    items = inputs(edges, windows, seed, breaks, roots)
    expected = twin(items, edges, windows, filters, columns_of(edges), present)
    for n, way in enumerate([*WAYS][seed % 2 :: 2] if by_turns else WAYS):
        if breaks and "trusting" in way:
            continue  # a stream's key may break, and fail
        cuts = range(1, 120) if (seed // (1 + by_turns) + n) % 2 else random_cuts(seed, 90)
        join = joined(edges, windows, filters, seed, way, **options)
        found = feed(join, items, cuts, until=max(expected, default=1))
        if for_istream:
            assert entering(found) == entering(expected), (seed, cuts, way)
        else:
            assert found == expected, (seed, cuts, way)
        join.close()


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("window", WINDOWS)
def test_answers_follow_relations_at_every_instant(graph: str, window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in (1, 2):
        monkeypatch.setattr(k_mon_spill_index, "_YOUNG", 3 if seed % 2 else 2048)
        check(graph, window, seed, for_istream=False, by_turns=True)


@pytest.mark.parametrize("graph", GRAPHS)
def test_answers_are_the_same_while_relations_change_too_often_to_let_rows_go(
    graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updates, "_ENOUGH", 2)
    monkeypatch.setattr(updates, "_FIRST_REST", 2)
    for seed in (11, 12):
        check(graph, "children", seed, for_istream=seed % 2 == 1)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("window", WINDOWS)
def test_what_istream_shows_follows_relations(graph: str, window: str) -> None:
    for seed in (3, 4):
        check(graph, window, seed, for_istream=True, by_turns=True)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("window", WINDOWS)
def test_answers_follow_relations_whose_keys_are_none(graph: str, window: str) -> None:
    check(graph, window, 5, for_istream=False, breaks=0.3)
    check(graph, window, 6, for_istream=True, breaks=0.3)


def stands_for_good(edges: Sequence[Edge], windows: Sequence[Window], seed: int) -> list[list[Element]]:
    """Inputs in which no key comes twice."""
    rng = random.Random(seed)
    return [
        relation(rng, 40, 0.0 if i in keyed(edges) else 1.0, once=i in keyed(edges))
        if windows[i].clock == CHANGES
        else stream(rng, 24, i not in keyed(edges))
        for i in range(inputs_of(edges))
    ]


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("window", WINDOWS)
def test_nothing_is_lost_where_no_key_of_a_relation_comes_again(graph: str, window: str) -> None:
    edges, windows = GRAPHS[graph], WINDOWS[window]
    for seed in (7, 8):
        filters = FILTERS[seed % 2][: inputs_of(edges)]
        items = stands_for_good(edges, windows, seed)
        expected = twin(items, edges, windows, filters, columns_of(edges), present)
        join = operator(edges, windows, filters, collects_always=True, is_lossy=True)
        assert feed(join, items, range(1, 120), until=max(expected, default=1)) == expected
        assert join.reduction is not None
        assert join.reduction.may_be_lost == 0


def test_what_an_update_comes_too_late_for_is_counted_where_loss_was_asked_for() -> None:
    edges, windows = GRAPHS["two"], [Window(RANGE, 100), R]
    join = operator(
        edges, windows, [False] * 2, collects_always=True, is_lossy=True, for_istream=True, unique={0: (1,)}
    )
    facts = [(2, 1, (1, 10, 0.0, True)), (6, 1, (1, 11, 0.0, True))]
    versions = [(1, 1, (1, 0, 0.5, True)), (4, -1, (1, 0, 0.5, True)), (4, 1, (1, 0, 1.0, True))]
    found = feed(join, [facts, versions], range(1, 10))
    assert entering(found) == {2: {(1, 0.0, 1, 0.5): 1}, 6: {(1, 0.0, 1, 1.0): 1}}
    assert join.reduction is not None
    assert (join.reduction.discarded, join.reduction.may_be_lost) == (2, 1)
