"""Grouped aggregates by compiled forms: answers as defined, and in the order of those of the generic kernel."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.synopses import changed_rows
from minidsms.testing.compare import check, difference_of, run_definition, run_together
from minidsms.testing.feeds import Advance, Push
from minidsms.testing.generators import Case

DECLARED = "CREATE STREAM S (k INTEGER, t TEXT, v INTEGER, x FLOAT)"
BY_GROUP = "SELECT t, k, COUNT(*) AS n, COUNT(v) AS c, SUM(v) AS s, MIN(x) AS l, MAX(v) AS g FROM S {} GROUP BY t, k"
QUERIES = {
    "groups that come and go": BY_GROUP.format("[RANGE 3]"),
    "all rows leave at once": BY_GROUP.format("[NOW]"),
    "one row for all": "SELECT COUNT(*) AS n, SUM(v) AS s, AVG(v) AS a, MAX(x) AS g FROM S [RANGE 4 SLIDE 2]",
    "nothing leaves": "SELECT k, MIN(x) AS l, MAX(v) AS g FROM S [RANGE UNBOUNDED] GROUP BY k",
}


def rows_of(seed: int, n: int, extreme: bool = False) -> list[tuple[int, int, tuple[Any, ...]]]:
    rng = random.Random(seed)
    ts, rows = 0, []
    for _ in range(n):
        ts += rng.choice((0, 0, 0, 1, 1, 2, 5))
        value = rng.choice((2**62, -(2**62))) if extreme else rng.randrange(-3, 4)
        row = (rng.randrange(3), rng.choice("ab"), value, rng.randrange(-2, 3) / 2)
        rows.append((ts, 1, tuple(None if rng.random() < 0.15 else each for each in row)))
    return rows


def case_of(query: str, seed: int, extreme: bool = False) -> Case:
    rows = rows_of(seed, 40, extreme)
    return Case((DECLARED,), query, (Push("S", tuple(rows)), Advance(rows[-1][0] + 9)))


@pytest.mark.parametrize("name", QUERIES)
def test_forms_answer_as_defined(name: str) -> None:
    for seed, extreme in ((1, False), (2, False), (3, True)):
        case = case_of(QUERIES[name], seed, extreme)
        expected = run_definition(case)
        for batch_size, rows_per_push in ((1, 1), (2, 3), (7, None), (1024, None)):
            options = {"batch_size": batch_size, "compilation": "at once"}
            assert check(case, rows_per_push, expected, **options) == "agreed"
        (switched,) = run_together([case], {}, 2, forced_every=3, compilation="at once")
        assert not difference_of(expected, switched)


@pytest.mark.parametrize("compilation", ["off", "at once"])
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("words", [8, 100, 2000])
def test_rows_that_fill_one_room_behind_the_other_are_not_written_again(
    name: str, compilation: str, words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_rows, "_WORTH_A_BLOCK", 1)
    monkeypatch.setattr(changed_rows, "_LEAST_KEPT", 40)
    monkeypatch.setattr(changed_rows, "BLOCK_WORDS", words)  # 8: room for no row, or few
    case = case_of(QUERIES[name], 4)
    expected = run_definition(case)
    for batch_size in (1, 2, 7, 1024):
        assert check(case, None, expected, batch_size=batch_size, compilation=compilation) == "agreed"


@pytest.mark.parametrize("compilation", ["off", "at once"])
def test_the_first_null_of_a_room_leaves_the_values_before_it(compilation: str) -> None:
    n = 40_000
    values: list[int | None] = [*range(n - 1), None]
    with minidsms.connect(compilation=compilation) as db:
        db.execute(DECLARED)
        query = db.query("SELECT k, MAX(v) AS g FROM S [NOW] GROUP BY k")
        for begin in (0, n):
            keys = [*range(begin, begin + n - 2), None, begin + n]
            db.push("S", {"k": keys, "t": ["a"] * n, "v": values, "x": [0.5] * n}, ts=np.arange(begin, begin + n))
        db.advance(2 * n)
        shown = [row for row in query.fetch_arrow().to_pylist() if row["_sign"] == 1]
    assert [row["k"] for row in shown] == [*range(n - 2), None, n, *range(n, 2 * n - 2), None, 2 * n]
    assert [row["g"] for row in shown] == values * 2


@pytest.mark.parametrize("many", [31, 32, 33, 62, 63, 64, 65, 125])
def test_nulls_of_many_keys_and_aggregates_are_told_apart(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_rows, "_WORTH_A_BLOCK", 1)
    monkeypatch.setattr(changed_rows, "BLOCK_WORDS", 9 * many)  # room for some rows
    columns = ", ".join(f"c{i}" for i in range(many))
    keys = ", ".join(f"CASE WHEN k <> {i} THEN v END AS c{i}" for i in range(many))
    results = ", ".join(f"MAX(CASE WHEN k = {i} THEN v END) AS c{i}" for i in range(many))
    rng = random.Random(many)
    edges = (0, 30, 31, 32, 61, 62, 63, many - 1)
    rows = tuple((i // 3, 1, (rng.choice(edges), "a", rng.randrange(2), 0.5)) for i in range(30))
    for query in (
        f"SELECT DISTINCT {keys} FROM S [RANGE 3]",
        f"SELECT {results} FROM S [RANGE 3] GROUP BY v",
        f"SELECT {columns}, COUNT(*) AS n FROM (SELECT {keys} FROM S [RANGE 3]) AS R GROUP BY {columns}",
    ):
        case = Case((DECLARED,), query, (Push("S", rows), Advance(20)))
        expected = run_definition(case)
        for batch_size in (1, 7, 1024):
            assert check(case, None, expected, batch_size=batch_size, compilation="off") == "agreed"


def changes_of(query: str, compilation: str, parts: int) -> tuple[Any, str]:
    """The changes as a table, and how they were made: of many groups at once, whose values fall."""
    n = 12_000
    keys, values = np.arange(n) % 4_000, -np.arange(n)
    with minidsms.connect(compilation=compilation) as db:
        db.execute(DECLARED)
        running = db.query(query)
        for part in np.array_split(np.arange(n), parts):
            db.push(
                "S", {"k": keys[part], "t": ["a"] * len(part), "v": values[part], "x": values[part] / 2}, ts=part // 900
            )
        db.advance(30)
        return running.fetch_arrow(), running.explain(analyze=True)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("parts", [1, 7])
def test_forms_put_out_the_same_rows_in_the_same_order_while_their_tables_grow(name: str, parts: int) -> None:
    expected, generic = changes_of(QUERIES[name], "off", parts)
    actual, compiled = changes_of(QUERIES[name], "at once", parts)
    assert actual.equals(expected)
    assert "compiled: aggregate_form" in compiled and "compiled: aggregate_form" not in generic


def test_what_has_states_of_its_own_and_what_has_no_aggregate_has_no_form() -> None:
    for asked in ("k, SUM(x) AS s", "k, COUNT(DISTINCT v) AS n", "k"):
        with minidsms.connect(compilation="at once") as db:
            db.execute(DECLARED)
            query = db.query(f"SELECT {asked} FROM S [RANGE 3] GROUP BY k")
            db.push("S", (1, "a", 2, 0.5), ts=1)
            db.advance(9)
            assert "aggregate_form" not in query.explain(analyze=True)
            assert len(query.fetch()) == 2
