"""One join on several threads: what it finds, counts and leaves in its windows is what one thread does."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.joins import form_rows, join
from minidsms.joins.join import Join
from minidsms.query import Change

INNER = "SELECT ISTREAM(R.a, S.b, S.k) FROM R [RANGE 5], S [RANGE 9] WHERE R.k = S.k"
OUTER = "SELECT R.a, S.b, R.k FROM R [RANGE 5] LEFT JOIN S [RANGE 9] ON R.k = S.k"
THREE = "SELECT ISTREAM(R.c, S.k, S.a, S.b) FROM R [RANGE 5], S [RANGE 9], T [RANGE 7] WHERE R.k = S.k AND S.a = T.a"
"""Their forms are those of `test_by_form` and `test_outer_joins`: each takes seconds to be compiled."""


def pushes(n: int) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Three slices of each stream, the last of which has NULLs in all columns."""
    rng = np.random.default_rng(7)
    for turn in range(3):
        ts = n // 2 * turn + np.sort(rng.integers(0, n // 2, n))
        for name in "RST":
            columns: dict[str, list[Any]] = {
                column: rng.integers(0, n_values, n).tolist() for column, n_values in (("k", 20), ("a", 9), ("b", 99))
            }
            columns["c"] = [b > 50 for b in columns["b"]]
            for first, values in enumerate(columns.values() if turn == 2 else ()):
                values[first::7] = [None] * len(values[first::7])
            yield name, columns, ts


@pytest.fixture(autouse=True)
def ample_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """An instant whose rows find no room is joined, and counted, once more."""
    monkeypatch.setattr(form_rows, "_LEAST_ROWS", 1 << 15)


def run(query: str, n: int, **options: Any) -> tuple[list[Change], list[tuple[int, int]], Any, list[Any]]:
    """The changes, what EXPLAIN ANALYZE counts, slots inspected, and the windows at the end."""
    with minidsms.connect(compilation="at once", **options) as db:
        for name in "RST":
            db.execute(f"CREATE STREAM {name} (k INTEGER, a INTEGER, b INTEGER, c BOOLEAN)")
        running = db.query(query)
        for name, columns, ts in pushes(n):
            db.push(name, columns, ts=ts)
        db.advance(2 * n)
        counted = [(op["elements_in"], op["elements_out"]) for op in running.stats()["operators"]]
        (at_work,) = [op for op in running.network.operators if isinstance(op, Join)]
        index = at_work.index
        held = [index.inputs.tolist(), index.heads.tolist(), index.nodes.tolist()]
        return running.fetch(), counted, at_work.describe().figures["inspected"], held


@pytest.mark.parametrize("query", [INNER, THREE])
def test_any_number_of_threads_finds_counts_and_leaves_the_same(query: str, divided: list[int]) -> None:
    expected = run(query, 300, adaptive=False)
    assert not divided and expected[0]
    for threads in (2, 3, 16):
        found = run(query, 300, adaptive=False, threads=threads)
        assert found[:3] == expected[:3]
        # Where the instants stand differs from run to run.
        assert found[3][1:] == expected[3][1:]
        assert max(divided) > threads // 2


def test_large_slices_are_divided_and_small_ones_are_not(divided: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "LEAST_ELEMENTS", 1000)
    expected = run(INNER, 1900)
    assert run(INNER, 1900, threads=3)[:3] == expected[:3] and set(divided) == {3}
    divided.clear()
    run(INNER, 900, threads=3)
    assert not divided
    assert run(INNER, 1900, threads="auto")[:3] == expected[:3]


@pytest.mark.parametrize("query", [INNER, THREE])
def test_slices_that_are_cut_and_rows_that_find_no_room_are_the_same_on_several_threads(
    query: str, divided: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(query, 300)[0]
    assert run(query, 300, threads=3)[0] == expected
    whole = len(divided)
    for name, value in (("_LEAST_ROWS", 1), ("_FEW_ROWS", 0), ("_ROOM", 0.1)):
        monkeypatch.setattr(form_rows, name, value)
    for name in ("_PART", "_DIVIDED"):
        monkeypatch.setattr(join, name, 20)
    for threads in (2, 3):
        divided.clear()
        assert run(query, 300, threads=threads)[0] == expected
        assert len(divided) > 1.5 * whole


def test_connections_divide_their_joins_at_once(divided: list[int]) -> None:
    expected = run(INNER, 300)[0]
    with ThreadPoolExecutor(4) as connections:
        found = list(connections.map(lambda threads: run(INNER, 300, threads=threads)[0], [2, 3, 2, 3, 2, 3]))
    assert all(each == expected for each in found) and {2, 3} <= set(divided)


def test_outer_joins_are_not_divided(divided: list[int]) -> None:
    """Where NULLs end their form, the order of an instant's rows depends on where the slice was cut."""
    assert run(OUTER, 300, threads=3)[:3] == run(OUTER, 300)[:3] and not divided


@pytest.mark.parametrize("options", [{"memory_limit": "1 GB"}, {"statement_timeout": "1 hour"}, {}])
def test_where_the_order_decides_one_thread_joins_all(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "LEAST_ELEMENTS", 1)
    told: list[int] = []
    monkeypatch.setattr("minidsms.joins.stretches.side_by_side", lambda work, count: told.append(count))
    run(INNER, 100, threads=3, **(options or {"cost_model": "fixed"}))
    assert not told


@pytest.mark.parametrize("first", [1 - 2**62, 2**62 - 39])
def test_stretches_begin_anywhere_in_time(first: int, divided: list[int]) -> None:
    def answer(threads: int, compilation: str) -> list[Change]:
        with minidsms.connect(compilation=compilation, threads=threads) as db:
            for name in "RS":
                db.execute(f"CREATE STREAM {name} (k INTEGER, a INTEGER, b INTEGER)")
            running = db.query(INNER)
            for turn in (first, first + 12):
                for name in "RS":
                    at = turn + np.arange(24) // 2
                    db.push(name, {"k": np.arange(24) % 3, "a": np.arange(24), "b": np.arange(24) % 5}, ts=at)
            db.advance(first + 38)
            return running.fetch()

    expected = answer(1, "at once")
    assert sorted(expected, key=repr) == sorted(answer(1, "off"), key=repr) and not divided
    assert all(answer(threads, "at once") == expected for threads in (2, 5)) and {2, 5} <= set(divided)
