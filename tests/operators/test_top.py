"""ORDER BY .. LIMIT against its definition (docs/semantics R6)."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from minidsms.aggregates.aggregate import SortKey
from minidsms.elements import Schema, Type
from minidsms.operators.top import Top
from minidsms.values.dictionary import TextDictionary
from tests.operators.harness import feed, queue

SCHEMA = Schema.of(("a", Type.INTEGER), ("b", Type.INTEGER))
Rows = list[tuple[Any, ...]]


def first(rows: Rows, column: int, key: SortKey, limit: int, offset: int) -> Counter[tuple[Any, ...]]:
    by_value = sorted(rows, key=lambda row: [(value is not None, value) for value in row])
    nulls = [row for row in by_value if row[column] is None]
    others = sorted(
        (row for row in by_value if row[column] is not None), key=lambda row: row[column], reverse=key.descending
    )
    return Counter((nulls + others if key.nulls_first else others + nulls)[offset : offset + limit])


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
        now = first(present, column, key, limit, offset)
        net = Counter(now)
        net.subtract(shown)
        if any(net.values()):
            expected[ts] = Counter({row: n for row, n in net.items() if n})
        shown = now
    operator = Top(queue(SCHEMA), [(column, key)], limit, offset, TextDictionary())
    assert feed(operator, [changes], cuts=[3, 4, 11]) == expected
