"""Merged joins answer as their text says, whatever the batch size."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import minidsms

DECLARED = "CREATE STREAM R (a INTEGER); CREATE STREAM S (a INTEGER, b INTEGER); CREATE STREAM T (b INTEGER);"

CASES = {
    "SELECT ISTREAM(R.a, S.b) FROM R [RANGE 4], S [RANGE 3], T [RANGE 5] WHERE R.a = S.a AND S.b = T.b": (
        lambda r, s, t: r[0] == s[0] and s[1] == t[0],
        lambda r, s, t: (r[0], s[1]),
    ),
    "SELECT ISTREAM(S.b) FROM R [RANGE 4], S [RANGE 3], T [RANGE 5] "
    "WHERE COALESCE(R.a, 7) = S.a AND S.b = T.b AND R.a <= T.b": (
        lambda r, s, t: r[0] == s[0] and s[1] == t[0] and r[0] <= t[0],
        lambda r, s, t: (s[1],),
    ),
    "SELECT ISTREAM(R.a % 2) FROM R [RANGE 4], S [RANGE 3], T [RANGE 5] WHERE R.a = S.a AND S.b = T.b AND R.a = T.b": (
        lambda r, s, t: r[0] == s[0] and s[1] == t[0] and r[0] == t[0],
        lambda r, s, t: (r[0] % 2,),
    ),
}


@pytest.mark.parametrize("batch_size", [1, 2, 65_536])
@pytest.mark.parametrize("cql", CASES)
def test_istream_over_a_merged_join_is_the_difference_of_its_relations(cql: str, batch_size: int) -> None:
    accepts, shows = CASES[cql]
    rng = random.Random(5)
    feeds: dict[str, list[tuple[int, tuple[Any, ...]]]] = {"R": [], "S": [], "T": []}
    db = minidsms.connect(batch_size=batch_size)
    db.execute(DECLARED)
    query = db.query(cql)
    assert "3-way Join" in query.explain()
    for ts in range(1, 40):
        for stream, items in feeds.items():
            for _ in range(rng.randrange(3)):
                row = tuple(rng.randrange(3) for _ in range(2 if stream == "S" else 1))
                items.append((ts, row))
                db.push(stream, row, ts=ts)
        db.advance(ts)
    found: dict[int, Counter[tuple[Any, ...]]] = {}
    for change in query.fetch():
        found.setdefault(change.ts, Counter())[change.row] += 1
    before: Counter[tuple[Any, ...]] = Counter()
    for ts in range(1, 40):
        r, s, t = ([row for at, row in feeds[name] if ts - length < at <= ts] for name, length in zip("RST", (4, 3, 5)))
        now = Counter(shows(x, y, z) for x in r for y in s for z in t if accepts(x, y, z))
        assert found.get(ts, Counter()) == now - before
        before = now


@pytest.mark.parametrize(
    ("windows", "is_over_streams"),
    [
        ("R [RANGE 4], S [NOW]", True),
        ("R [RANGE UNBOUNDED], S [RANGE 3]", True),
        ("R [RANGE 4 SLIDE 2], S [RANGE 3]", False),
        ("R [ROWS 4], S [RANGE 3]", False),
    ],
)
def test_two_streams_are_joined_themselves_where_all_windows_are_ranges(windows: str, is_over_streams: bool) -> None:
    db = minidsms.connect()
    db.execute(DECLARED)
    # Below ISTREAM the rows of a NOW window are looked up.
    for select in ("R.a, b", "R.a, COUNT(*)", *(() if "NOW" in windows else ("ISTREAM(R.a, b)",))):
        of_groups = " GROUP BY R.a" if "COUNT" in select else ""
        plan = db.query(f"SELECT {select} FROM {windows} WHERE R.a = S.a{of_groups}").explain()
        assert ("Window [" not in plan) == is_over_streams
    if is_over_streams:
        third = db.query(f"SELECT R.a, S.b FROM {windows}, T [RANGE 5] WHERE R.a = S.a AND T.b = S.b").explain()
        assert third.count("Window [") == 3


@pytest.mark.parametrize("n", [12, 13, 14])
def test_up_to_twelve_inputs_are_one_join_and_further_ones_are_joined_with_it(n: int) -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
    items = ", ".join(f"S [ROWS 2] AS s{i}" for i in range(n))
    linked = " AND ".join(f"s{i - 1}.{'kv'[i % 2]} = s{i}.{'kv'[i % 2]}" for i in range(1, n))
    query = db.query(f"SELECT ISTREAM(s0.k, s{n - 1}.v) FROM {items} WHERE {linked}")
    plan = query.explain()
    assert ("12-way Join" in plan, f"{n}-way" in plan) == (True, n == 12)
    for ts, row in enumerate([(1, 1), (2, 1), (2, 3), (2, 3)], 1):
        db.push("S", row, ts=ts)
    db.advance(9)
    found = Counter((c.ts, c.row) for c in query.fetch())
    held: list[tuple[int, int]] = []
    before: Counter[tuple[int, int]] = Counter()
    for ts, row in enumerate([(1, 1), (2, 1), (2, 3), (2, 3)], 1):
        held = [*held, row][-2:]
        tuples = Counter((row, row) for row in held)  # the first and the last row of the chain so far
        for i in range(1, n):
            longer: Counter[tuple[tuple[int, int], tuple[int, int]]] = Counter()
            for (first, last), m in tuples.items():
                for row in held:
                    if last[i % 2] == row[i % 2]:
                        longer[first, row] += m
            tuples = longer
        now: Counter[tuple[int, int]] = Counter()
        for (first, last), m in tuples.items():
            now[first[0], last[1]] += m
        assert Counter({row: m for (at, row), m in found.items() if at == ts}) == now - before
        before = now


def test_products_of_three_and_more_are_one_operator_and_of_two_a_binary_join() -> None:
    db = minidsms.connect()
    db.execute(DECLARED)
    assert "3-way Product" in db.query("SELECT R.a, S.b FROM R [ROWS 2], S [ROWS 2], T [ROWS 2]").explain()
    assert "Cartesian Product" in db.query("SELECT R.a, S.b FROM R [ROWS 2], S [ROWS 2]").explain()


@pytest.mark.parametrize(
    ("source", "is_merged"),
    [
        ("S [PARTITION BY a ROWS 1]", False),
        ("(SELECT a, COUNT(*) AS b FROM S [RANGE 3] GROUP BY a)", False),
        ("S [ROWS 3]", True),
    ],
)
def test_two_inputs_are_merged_only_where_the_rows_of_both_leave_in_order(source: str, is_merged: bool) -> None:
    db = minidsms.connect()
    db.execute(DECLARED)
    plan = db.query(f"SELECT R.a, i.b FROM R [RANGE 4], {source} AS i WHERE R.a = i.a AND R.a < i.b + 1").explain()
    assert ("2-way Join" in plan) == is_merged
    third = db.query(
        f"SELECT R.a, i.b FROM R [RANGE 4], {source} AS i, T [NOW] WHERE R.a = i.a AND i.b = T.b"
    ).explain()
    assert "3-way Join" in third
