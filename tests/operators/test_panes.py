"""Aggregates over windows with SLIDE by panes: the answers are the definition's, whatever falls together in a pane."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.elements import Batch, Column, Schema, Type
from minidsms.kernels import panes as kernels
from minidsms.synopses.measure import Measure
from minidsms.synopses.pane_groups import PaneGroups
from minidsms.testing.compare import check, check_together, difference_of, run_definition, run_together
from minidsms.testing.feeds import Advance, Push
from minidsms.testing.generators import Case

DECLARED = "CREATE STREAM S (k INTEGER, t TEXT, v INTEGER, x FLOAT, b BOOLEAN)"
ALL = "COUNT(*) AS n, COUNT(v) AS c, SUM(v) AS s, AVG(v) AS a, MIN(v) AS l, MAX(v) AS g, MIN(x) AS lx, MAX(x) AS gx"
BY_PANES = {
    "one key": f"SELECT k, {ALL} FROM S [RANGE 6 SLIDE 2] GROUP BY k",
    "keys of several types": "SELECT t, x, b, COUNT(*) AS n, MAX(b) AS g FROM S [RANGE 4 SLIDE 4] GROUP BY t, x, b",
    "no key": f"SELECT {ALL} FROM S [RANGE 6 SLIDE 3]",
    "HOP": f"SELECT t, {ALL} FROM S [HOP 6 EVERY 3] GROUP BY t",
    "TUMBLE": "SELECT k, COUNT(*) AS n, MAX(v) AS g FROM S [TUMBLE 5] GROUP BY k HAVING COUNT(*) > 1",
    "rows alone": "SELECT COUNT(*) AS n FROM S [TUMBLE 4]",
    "bounds": "SELECT window_start, window_end, k, COUNT(*) AS n, SUM(v) AS s FROM S [HOP 6 EVERY 2] "
    "GROUP BY k, window_start, window_end",
    "computed": "SELECT x * 2 AS y, COUNT(*) FILTER (WHERE v > 1) AS n, SUM(CASE WHEN k > 1 THEN v END) AS s "
    "FROM S [TUMBLE 3] GROUP BY x * 2",
    "no aggregate": "SELECT t, k FROM S [RANGE 6 SLIDE 2] GROUP BY t, k",
    "filters and a stream of it": "SELECT RSTREAM(k, MAX(v) AS g) FROM S [RANGE 4 SLIDE 2] WHERE x < 0.5 GROUP BY k",
    "distinct extremes": "SELECT ISTREAM(k, MAX(DISTINCT v) AS g) FROM S [RANGE 4 SLIDE 2] GROUP BY k",
}
BY_ELEMENTS = {
    "a part of a pane leaves": "SELECT k, COUNT(*) AS n FROM S [RANGE 5 SLIDE 2] GROUP BY k",
    "sums of floats": "SELECT k, SUM(x) AS s FROM S [RANGE 4 SLIDE 2] GROUP BY k",
    "distinct": "SELECT k, COUNT(DISTINCT v) AS n FROM S [RANGE 4 SLIDE 2] GROUP BY k",
    "texts": "SELECT k, MAX(t) AS g FROM S [RANGE 4 SLIDE 2] GROUP BY k",
    "order": "SELECT k, FIRST(v) AS f, COUNT(*) AS n FROM S [RANGE 4 SLIDE 2] GROUP BY k",
    "what can fail": "SELECT k, SUM(v * 2) AS s FROM S [RANGE 4 SLIDE 2] GROUP BY k",
    "aggregates of bounds": "SELECT k, window_end, MAX(window_end) AS m FROM S [TUMBLE 4] GROUP BY k, window_end",
    "every instant": "SELECT k, COUNT(*) AS n FROM S [RANGE 4 SLIDE 1] GROUP BY k",
}


def rows_of(seed: int, n: int) -> list[tuple[int, int, tuple[Any, ...]]]:
    """Elements of S with NULLs, equal rows, gaps without any, and instants on and between the multiples of a slide."""
    rng = random.Random(seed)
    ts, rows = rng.randrange(-3, 3), []
    for _ in range(n):
        ts += rng.choice((0, 0, 0, 1, 1, 2, 9))
        row = (rng.randrange(3), rng.choice("ab"), rng.randrange(-4, 5), rng.randrange(-2, 3) / 2, rng.random() < 0.5)
        rows.append((ts, 1, tuple(None if rng.random() < 0.15 else value for value in row)))
    return rows


def case_of(query: str, seed: int, n: int = 40) -> Case:
    rows = rows_of(seed, n)
    return Case((DECLARED,), query, (Push("S", tuple(rows)), Advance(rows[-1][0] + 9)))


@pytest.mark.parametrize("name", BY_PANES)
def test_panes_answer_as_defined(name: str) -> None:
    with minidsms.connect() as db:
        db.execute(DECLARED)
        assert "Panes" in db.query(BY_PANES[name]).explain()
    for seed in range(2):
        case = case_of(BY_PANES[name], seed)
        expected = run_definition(case)
        assert expected.changes
        for batch_size, rows_per_push in ((1, 1), (2, 3), (7, None), (1024, None)):
            assert check(case, rows_per_push, expected, batch_size=batch_size) == "agreed"


@pytest.mark.parametrize("name", ["one key", "keys of several types"])
def test_compiled_panes_answer_as_defined_and_pause_where_there_are_nulls(name: str) -> None:
    for seed in range(2):
        whole = [row for row in rows_of(seed, 90) if None not in row[2]]
        rows = (*whole[:20], *[row for row in rows_of(seed, 90) if row[0] > whole[20][0]][:10])
        rows += tuple(row for row in whole if row[0] > rows[-1][0])
        case = Case((DECLARED,), BY_PANES[name], (Push("S", rows), Advance(rows[-1][0] + 9)))
        expected = run_definition(case)
        for batch_size, rows_per_push in ((1, 1), (2, 3), (7, None), (1024, None)):
            options = {"batch_size": batch_size, "compilation": "at once"}
            assert check(case, rows_per_push, expected, **options) == "agreed"
        (switched,) = run_together([case], {}, 2, forced_every=3, compilation="at once")
        assert not difference_of(expected, switched)


def test_compiled_panes_put_out_the_rows_of_the_generic_kernel_in_their_order() -> None:
    n = 20_000
    rng = np.random.default_rng(1)
    overflowing = np.resize([2**62, 2**62, -(2**62), -(2**62)], n)
    columns = {"k": np.arange(n) // 4 % 3000, "v": overflowing, "x": rng.random(n) - 0.5}
    answers = []
    for compilation in ("off", "at once"):
        with minidsms.connect(compilation=compilation) as db:
            db.execute(DECLARED)
            query = db.query(BY_PANES["one key"])
            for part in np.array_split(np.arange(n), 3):
                of_part = {name: values[part] for name, values in columns.items()}
                db.push("S", {**of_part, "t": ["a"] * len(part), "b": [True] * len(part)}, ts=part // 900)
            assert ("compiled: take_plain_elements" in query.explain(analyze=True)) == (compilation == "at once")
            answers.append(query.fetch_arrow())
    assert answers[0].equals(answers[1])


@pytest.mark.parametrize("compilation", ["off", "at once"])
def test_elements_that_stand_at_the_end_of_a_ring_and_at_its_beginning_come_in_their_order(compilation: str) -> None:
    n = 9_000
    rng = np.random.default_rng(2)
    columns = {"k": rng.integers(0, 50, n), "v": rng.integers(-9, 9, n), "x": rng.random(n) - 0.5}
    nulls = [None if i % 7 == 0 else "a" for i in range(n)]
    for query in BY_PANES["one key"], BY_PANES["keys of several types"]:
        answers = []
        for size in (1, 700, 1500) if query is BY_PANES["one key"] else (100, 1500):
            with minidsms.connect(compilation=compilation) as db:
                db.execute(DECLARED)
                answer = db.query(query)
                for at in range(0, n if size > 1 else 900, size):
                    part = {name: values[at : at + size] for name, values in columns.items()}
                    m = len(part["k"])
                    db.push("S", {**part, "t": nulls[at : at + m], "b": [True] * m}, ts=np.arange(at, at + m) // 90)
                answers.append(answer.fetch())
        last = min(each[-1].ts for each in answers)
        short = [[change for change in each if change.ts <= last] for each in answers]
        assert all(each == short[0] for each in short)


def test_the_numbers_of_rows_in_slots_begin_anew() -> None:
    groups = PaneGroups(Schema.of(("k", Type.INTEGER)), [0], [Measure("rows", -1)], 10, 0, lambda _: None)

    def counts(keys: list[int], ts: int) -> list[list[int]]:
        taken = groups.take(Batch(np.full(len(keys), ts), None, [Column(np.array(keys))]), ts + 9)
        assert taken is not None
        return [column.values.tolist() for column in taken.columns]

    groups._state.base = kernels.MOST_BASE - 2
    for ts in (1, 11, 21, 31):
        assert counts([5, 6, 5], ts) == [[5, 6], [2, 1]]
    assert groups._state.base < kernels.MOST_BASE - 2


def test_what_fails_and_is_not_counted_fails_the_query() -> None:
    rows = (1, 1, (1, "a", 2**62, 0.0, True)), (2, 1, (2, "a", 2**62, 0.0, True))
    query = "SELECT k, COUNT(*) AS n FROM (SELECT k, v * 2 AS w FROM S [TUMBLE 4]) AS d GROUP BY k"
    assert run_definition(case := Case((DECLARED,), query, (Push("S", rows), Advance(9)))).failed_at == 4
    assert check(case) == "agreed"


@pytest.mark.parametrize("name", BY_ELEMENTS)
def test_what_does_not_follow_from_panes_is_computed_of_elements(name: str) -> None:
    with minidsms.connect() as db:
        db.execute(DECLARED)
        assert "Panes" not in db.query(BY_ELEMENTS[name]).explain()
    assert check(case_of(BY_ELEMENTS[name], 1)) == "agreed"


@pytest.mark.parametrize(
    "values", [(2**62, 2**62, -(2**62), -(2**62)), (2**63 - 1, 1, 5, 5), (-(2**63), -1, 2**63 - 1)]
)
@pytest.mark.parametrize("batch_size", [1, 1024])
def test_a_sum_fails_where_it_overflows_at_the_end_of_a_pane_and_not_within(
    values: tuple[int, ...], batch_size: int
) -> None:
    rows = tuple((1 + i // 2, 1, (1, "a", value, 0.0, True)) for i, value in enumerate(values * 2))
    query = "SELECT k, SUM(v) AS s, AVG(v) AS a, COUNT(*) AS n, MIN(v) AS l FROM S [RANGE 8 SLIDE {}] GROUP BY k"
    for slide in (1, 2, 4):
        case = Case((DECLARED,), query.format(slide), (Push("S", rows), Advance(20)))
        assert check(case, batch_size=batch_size) == "agreed"


def test_queries_that_begin_and_end_amid_a_pane_see_what_is_theirs() -> None:
    rows = rows_of(5, 40)
    feed = (*(Push("S", (row,)) for row in rows), Advance(rows[-1][0] + 9))
    text = f"SELECT k, {ALL} FROM S [RANGE 6 SLIDE 2] GROUP BY k"
    together = [Case((DECLARED,), text, feed, registered) for registered in (0, 0, 7, 8, 20)]
    for sharing in ("on", "off"):
        assert check_together(together, {1: 15, 3: 30}, sharing=sharing) == "agreed"
    assert check_together(together, {1: 15}, switch_seed=1) == "agreed"


def test_a_pane_of_more_groups_than_there_was_room_for_grows_and_shrinks() -> None:
    n = 9_000
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
        query = db.query(
            "SELECT COUNT(*) AS groups FROM (SELECT k, MAX(v) AS g FROM S [RANGE 4 SLIDE 2] GROUP BY k) AS q"
        )
        (panes,) = [each for each in query.network.operators if each.name == "Panes"]
        small = panes.synopses()[0].nbytes
        keys = np.arange(n) % (n // 2)
        db.push("S", {"k": keys, "v": keys}, ts=np.full(n, 2))
        db.advance(3)
        assert query.fetch()[-1].row == (n // 2,)
        large = panes.synopses()[0].nbytes
        for ts in range(4, 40):
            db.push("S", (1, 1), ts=ts)
        db.advance(50)
        assert small < large > 2 * panes.synopses()[0].nbytes


def test_extremes_that_were_kept_before_any_value_had_come_take_the_first_that_comes() -> None:
    """States of earlier versions have 0 there."""
    schema = Schema.of(("k", Type.INTEGER), ("v", Type.INTEGER))
    measures = [Measure("min", 1), Measure("max", 1)]

    def groups() -> PaneGroups:
        return PaneGroups(schema, [0], measures, 10, 0, lambda _: None)

    def batch(value: int | None) -> Batch:
        valid = None if value is not None else np.zeros(1, np.bool_)
        return Batch(np.array([1]), None, [Column(np.array([7])), Column(np.array([value or 0]), valid)])

    for value in (5, -5):
        before, after = groups(), groups()
        assert before.take(batch(None), 1) is None
        state = before.arrays()
        state["rows"][:, 2:4] = 0
        after.restore(state)
        taken = after.take(batch(value), 10)
        assert taken is not None and [column.values.tolist() for column in taken.columns] == [[7], [value], [value]]


@pytest.mark.parametrize("slide", [2**62 - 1, 2**62, 2**63 - 1])
def test_a_pane_may_be_as_long_as_time(slide: int) -> None:
    last = 2**62 - 1
    rows = ((-last, 1, (1, "a", 1, 0.0, True)), (0, 1, (1, "a", 2, 0.0, True)), (last, 1, (1, "a", 3, 0.0, True)))
    query = f"SELECT k, COUNT(*) AS n FROM S [RANGE {slide} SLIDE {slide}] GROUP BY k"
    assert check(Case((DECLARED,), query, (Push("S", rows), Advance(last)))) == "agreed"
