"""ORDER BY .. LIMIT against its definition (docs/semantics R6)."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minidsms.aggregates.aggregate import SortKey
from minidsms.elements import Schema, Type
from minidsms.operators.top import Top
from minidsms.synopses import first_rows
from minidsms.values.dictionary import TextDictionary
from tests.operators.harness import feed, queue
from tests.seeds import seeds

SCHEMA = Schema.of(("a", Type.INTEGER), ("b", Type.INTEGER))
Rows = list[tuple[Any, ...]]


def first(rows: Rows, column: int, key: SortKey, limit: int, offset: int) -> Counter[tuple[Any, ...]]:
    by_value = sorted(rows, key=lambda row: [(value is not None, value) for value in row])
    nulls = [row for row in by_value if row[column] is None]
    others = sorted(
        (row for row in by_value if row[column] is not None), key=lambda row: row[column], reverse=key.descending
    )
    return Counter((nulls + others if key.nulls_first else others + nulls)[offset : offset + limit])


Bag = Counter[tuple[Any, ...]]


def noted(expected: dict[int, Bag], ts: int, before: Bag, now: Bag) -> Bag:
    """Expect what is shown now, in place of what was before; gives what is."""
    net = Counter(now)
    net.subtract(before)
    if any(net.values()):
        expected[ts] = Counter({row: n for row, n in net.items() if n})
    return now


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(0, 1),
    st.builds(SortKey, st.booleans(), st.booleans()),
    st.integers(0, 4),
    st.integers(0, 3),
)
def test_it_shows_the_first_rows_of_every_instant(
    seed: int, column: int, key: SortKey, limit: int, offset: int
) -> None:
    rng = random.Random(seed)
    present: Rows = []
    changes: list[tuple[int, int, tuple[Any, ...]]] = []
    expected: dict[int, Counter[tuple[Any, ...]]] = {}
    shown: Counter[tuple[Any, ...]] = Counter()
    for ts in range(1, 25):
        leaving = [present.pop(rng.randrange(len(present))) for _ in range(rng.randrange(min(3, len(present) + 1)))]
        coming = [(rng.choice([None, 1, 2]), rng.choice([None, 1, 2])) for _ in range(rng.randrange(4))]
        coming = [row for row in coming if row not in leaving]
        present += coming
        changes += [(ts, -1, row) for row in leaving] + [(ts, 1, row) for row in coming]
        shown = noted(expected, ts, shown, first(present, column, key, limit, offset))
    operator = Top(queue(SCHEMA), [(column, key)], limit, offset, TextDictionary())
    assert feed(operator, [changes], cuts=[3, 4, 11]) == expected


TYPES = (Type.INTEGER, Type.FLOAT, Type.BOOLEAN)
VALUES: tuple[tuple[Any, ...], ...] = (
    (None, -(2**63), 2**63 - 1, *range(-4, 12)),
    (None, 0.0, -1.5, 2.5, 1e300, -1e300, 3.0, 4.0),
    (None, True, False),
)


@pytest.mark.parametrize("is_restored", [False, True])
@pytest.mark.parametrize(("least", "many"), [(1, 1), (3, 2), (6, 1)])
def test_rows_that_are_counted_come_to_be_first(
    monkeypatch: pytest.MonkeyPatch, least: int, many: int, is_restored: bool
) -> None:
    monkeypatch.setattr(first_rows, "_LEAST", least)
    monkeypatch.setattr(first_rows, "_TIMES", 1)
    monkeypatch.setattr(first_rows, "_MANY", many)
    counted = 0
    for seed in seeds(60):
        rng = random.Random(seed)
        which = rng.randrange(3)
        schema, values = Schema.of(("a", TYPES[which]), ("b", Type.INTEGER)), VALUES[which]
        key, column = SortKey(rng.random() < 0.5, rng.random() < 0.5), rng.choice([0, 0, 1])
        limit, offset = rng.randrange(1, 4), rng.choice([0, 0, 2])
        made = partial(Top, queue(schema), [(column, key)], limit, offset, TextDictionary())
        present: Rows = []
        shown: Counter[tuple[Any, ...]] = Counter()
        operator, changes = made(), []
        expected: dict[int, Counter[tuple[Any, ...]]] = {}
        for ts in range(1, 40):
            leaves, comes = (1, 5) if ts < 20 else (5, 2)
            leaving = [
                present.pop(rng.randrange(len(present))) for _ in range(min(len(present), rng.randrange(leaves + 1)))
            ]
            coming = [(rng.choice(values), rng.choice(VALUES[0])) for _ in range(rng.randrange(comes + 1))]
            coming = [row for row in coming if row not in leaving]
            present += coming
            changes += [(ts, -1, row) for row in leaving] + [(ts, 1, row) for row in coming]
            shown = noted(expected, ts, shown, first(present, column, key, limit, offset))
        cuts = sorted(rng.sample(range(2, 40), 3))
        if is_restored:
            found, at = {}, 0
            for cut in [*cuts, 40]:
                part = [change for change in changes if at <= change[0] < cut]
                found |= feed(operator, [part], cuts=[]) if part else {}
                fresh = made()
                (before,), (after,) = operator.synopses(), fresh.synopses()
                after.restore(before.arrays())
                assert sorted(map(tuple, before.arrays()["words"].tolist())) == sorted(
                    map(tuple, after.arrays()["words"].tolist())
                )
                operator, at = fresh, cut
            assert found == expected, seed
        else:
            assert feed(operator, [changes], cuts=cuts) == expected, seed
        counted += len(operator.synopses()[0]) - operator.synopses()[0].held
    assert counted > 20


@pytest.mark.parametrize("cut", [1, 2, 7, 1000])
def test_rows_are_fetched_though_no_change_is_far(cut: int) -> None:
    n, limit = 600, 10
    coming = [(1, 1, (i, 0)) for i in range(n)]
    leaving = [(2 + i, -1, (i, 0)) for i in range(n)]
    operator = Top(queue(SCHEMA), [(0, SortKey())], limit, 0, TextDictionary())
    expected = {1: Counter({(i, 0): 1 for i in range(limit)})}
    for i in range(n):
        expected[2 + i] = Counter({(i, 0): -1, (i + limit, 0): 1} if i + limit < n else {(i, 0): -1})
    assert feed(operator, [coming + leaving], cuts=[2, *range(3, n, cut)]) == expected
