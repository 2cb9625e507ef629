"""Joins whose inputs only a band links, against the definition and against the join of every pair."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.joins.bands import LARGEST, band_of
from minidsms.joins.join import Join
from minidsms.kernels.access_methods import cells
from minidsms.testing.compare import check, run_definition
from minidsms.testing.feeds import Advance, Push, Step
from minidsms.testing.generators import Case

INF = float("inf")
STREAMS = tuple(f"CREATE STREAM {name} (k INTEGER, x INTEGER, f FLOAT, t TIMESTAMP)" for name in "ABC")
RELATION = "CREATE RELATION R (k INTEGER, x INTEGER, f FLOAT, t TIMESTAMP)"
WINDOWS = ("[RANGE 5]", "[ROWS 4]", "[PARTITION BY k ROWS 2]", "[RANGE 6 SLIDE 3]", "[RANGE UNBOUNDED]", "[NOW]")
CONDITIONS = (
    "ABS(A.x - B.x) < 3",
    "A.x BETWEEN B.x - 2 AND B.x + 2",
    "B.x > A.x AND B.x - 3 <= A.x",
    "A.x = B.x + 1",
    "A.x - 1 BETWEEN B.x AND B.x + 2 AND A.k < B.k",
    "ABS(A.f - B.f) < 0.75",
    "A.f BETWEEN B.f - 0.5 AND B.f + 1",
    "ABS(A.x - B.f) <= 1.5",
    "A.t BETWEEN B.t - 2 AND B.t",
    "ABS(A.x - B.x) < 3 AND 10 / (A.k - B.k) > 0",
    "ABS(A.x - B.x) < 4 AND A.t BETWEEN B.t - 3 AND B.t + 3",
    "ABS(A.f - B.f) < 1.5 AND ABS(B.x - A.x) <= 5",
    "2 = ABS(A.x - B.x)",
)
ORDERS = (
    "A.x < B.x",
    "A.x + 4 <= B.x",
    "B.x - 3 >= A.x AND 10 / (A.k - B.k) > 0",
    "A.f > B.f",
    "A.f - 0.5 < B.f + 0.25",
    "A.x < B.f - 1.5",
    "A.t <= B.t",
    "ABS(A.x - 2) = B.x",
    "B.f = ABS(A.f + 1)",
)
BESIDE = (
    "A.k = B.k AND ABS(A.x - B.x) < 3",
    "A.k = B.k AND A.t BETWEEN B.t - 2 AND B.t",
    "A.k = B.k AND ABS(A.f - B.f) < 0.75 AND ABS(A.x - B.x) < 6",
    "A.k = B.k AND A.t = B.t AND ABS(A.x - B.x) < 7",
)
BATCHES = (1, 2, 7, 65_536)


def value(rng: Random, usual: Any, rare: Sequence[Any]) -> Any:
    chance = rng.random()
    return None if chance < 0.08 else rng.choice(rare) if chance < 0.11 and rare else usual


def feed(seed: int, names: Sequence[str], size: int, has_extremes: bool) -> tuple[Step, ...]:
    """Rows close to each other, with NULLs, infinities and negative zeros, and integers near the ends of 64 bits."""
    rng = Random(seed)
    whole = (2**62, -(2**62), 2**63 - 1, -(2**63), 2**61) if has_extremes else ()
    steps: list[Step] = []
    held: list[tuple[Any, ...]] = []
    ts = 0
    for _ in range(size):
        ts += rng.choice((0, 0, 1, 2))
        name = rng.choice(names)
        row = (
            value(rng, rng.randrange(3), ()),
            value(rng, rng.randrange(-9, 10), whole),
            value(rng, rng.randrange(-12, 13) / 4, (INF, -INF, -0.0, 1e300, 2.0**53)),
            value(rng, max(0, ts + rng.randrange(-4, 5)), ()),
        )
        if name == "R" and held and rng.random() < 0.4:
            steps.append(Push(name, ((ts, -1, held.pop(rng.randrange(len(held)))),)))
            continue
        if name == "R":
            held.append(row)
        steps.append(Push(name, ((ts, 1, row),)))
    return (*steps, Advance(ts + 9))


def agree(case: Case, seed: int, **settings: Any) -> int:
    """Compare under two batch sizes, which others of the many cases draw otherwise; how many changes there were."""
    expected = run_definition(case)
    drawn = Random(f"{seed} {case.query} {settings}").sample(list(zip(BATCHES, (None, 2, 1, None))), 2)
    for batch_size, rows in drawn:
        told = check(case, rows, expected, batch_size=batch_size, **settings)
        assert told == "agreed", told
    return len(expected.changes)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_bands_of_windows_of_every_kind_give_the_answers_by_definition(condition: str) -> None:
    changes, place = 0, CONDITIONS.index(condition)
    for seed, (one, other) in enumerate(zip(WINDOWS, (*WINDOWS[1:], WINDOWS[0]))):
        which = (seed + place) % 2  # every condition, and every pair of windows, under both
        shown = f"{('ISTREAM', 'RSTREAM')[which]}(A.x, B.x, A.f, B.f, A.t)"
        query = f"SELECT {shown} FROM A {one}, B {other} WHERE {condition}"
        case = Case(STREAMS, query, feed(10 * seed + which, "AB", 24, False))
        changes += agree(case, seed, join_index=("auto", "hash")[(seed + place // 2) % 3 == 2])
    assert changes > 10


@pytest.mark.parametrize("condition", CONDITIONS[:5] + ORDERS[:3])
def test_values_near_the_ends_of_64_bits_fail_where_the_definition_does(condition: str) -> None:
    for seed in range(2):
        query = f"SELECT A.x, B.x FROM A [RANGE 6], B [ROWS 5] WHERE {condition}"
        agree(Case(STREAMS, query, feed(500 + seed, "AB", 24, True)), seed)


AT_THE_END = (
    ("A.x + 1 = B.x", 2**63 - 1),
    ("ABS(A.x) = B.x", -(2**63)),
    ("A.k = B.k AND A.x + 1 >= B.x AND A.x + 1 <= B.x + 2", 2**63 - 1),
    ("A.x - 4000000000000000000 + 4000000000000000000 = B.x", -(2**63) + 4 * 10**18 - 1),
)


@pytest.mark.parametrize("condition, end", AT_THE_END)
@pytest.mark.parametrize("window", [*WINDOWS[:5], "R"])
@pytest.mark.parametrize("index", ["auto", "patterns"])
def test_a_sum_that_overflows_is_judged_beside_every_value_and_null(
    condition: str, end: int, window: str, index: str
) -> None:
    """The row with a NULL came before, comes with it or behind it; another may have left."""
    declared, other, name = (*STREAMS[:2], RELATION), "R AS B" if window == "R" else f"B {window}", "BR"[window == "R"]
    query = f"SELECT A.x, B.x FROM A [RANGE 9], {other} WHERE {condition}"
    for is_first, ts in itertools.product((True, False), (1, 2)):
        gone = Push(name, ((0, 1, (1, None, 0.5, 0)), (1, -1, (1, None, 0.5, 0)))[: 2 if window == "R" else 1])
        fails = Push("A", ((1 if is_first else ts, 1, (1, end, None, None)),))
        meets = Push(name, ((ts if is_first else 1, 1, (1, None, None, None)),))
        case = Case(declared, query, (gone, *((fails, meets) if is_first else (meets, fails)), Advance(9)))
        assert run_definition(case).failed_at in (1, ts)
        told = check(case, join_index=index, forced_every=1, batch_size=ts)
        assert told == "agreed", told


@pytest.mark.parametrize("condition", CONDITIONS[:6])
def test_bands_with_relations_follow_their_changes(condition: str) -> None:
    changes = 0
    for seed in range(2):
        query = f"SELECT A.x, R.x, R.f FROM A [RANGE 4], R WHERE {condition.replace('B.', 'R.')}"
        changes += agree(Case((*STREAMS, RELATION), query, feed(700 + seed, "AR", 30, False)), seed)
    assert changes


@pytest.mark.parametrize("condition", BESIDE)
@pytest.mark.parametrize("index, forced_every", [("patterns", None), ("auto", 1), ("auto", 3)])
def test_a_band_beside_an_equality_is_a_part_of_the_pattern(
    condition: str, index: str, forced_every: int | None
) -> None:
    changes = 0
    pairs = (("A [RANGE 5]", "B [RANGE 7]"), ("A [ROWS 4]", "B [PARTITION BY k ROWS 2]"), ("A [RANGE 4]", "R"))
    for seed, (one, other) in enumerate(pairs):
        for which, operator in enumerate(("ISTREAM", "RSTREAM")):
            on = condition.replace("B.", "R.") if other == "R" else condition
            query = f"SELECT {operator}(A.x, A.f, A.t) FROM {one}, {other} WHERE {on}"
            case = Case((*STREAMS, RELATION), query, feed(300 + seed, f"A{other[0]}", 30, which == 1 and seed == 0))
            changes += agree(case, seed, join_index=index, forced_every=forced_every)
    assert changes


def test_a_band_beside_an_equality_is_used_where_many_rows_share_the_column_alone() -> None:
    rng = np.random.default_rng(3)
    told = {}
    for values in (4, 100_000):
        with minidsms.connect(cost_model="fixed") as db:
            for name in "AB":
                db.execute(f"CREATE STREAM {name} (k INTEGER, x INTEGER)")
            query = db.query(
                "SELECT ISTREAM(A.x, B.x) FROM A [ROWS 500], B [ROWS 500] WHERE A.k = B.k AND ABS(A.x - B.x) < 5"
            )
            for ts in range(20):
                for name in "AB":
                    columns = {"k": rng.integers(0, values, 200), "x": rng.integers(0, 10**6, 200)}
                    db.push(name, columns, ts=np.full(200, ts))
            told[values] = query.explain(analyze=True)
    assert "also by (k, cells of x)" in told[4]
    assert "also by" not in told[100_000]


@pytest.fixture
def small_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders of two rows a cell, which follow the rows after every third."""
    monkeypatch.setattr(cells, "ROWS_OF_A_CELL", 2)
    monkeypatch.setattr(cells, "LEAST_BETWEEN_FITS", 3)


@pytest.mark.parametrize("condition", ORDERS)
@pytest.mark.usefixtures("small_cells")
def test_cells_in_order_leave_out_no_pair_while_they_follow_the_rows(condition: str) -> None:
    changes = 0
    for seed, (one, other) in enumerate((("[RANGE 5]", "[RANGE 9]"), ("[ROWS 9]", "[PARTITION BY k ROWS 2]"))):
        for which, operator in enumerate(("ISTREAM", "RSTREAM")):
            query = f"SELECT {operator}(A.x, B.x, A.f, B.f, A.t) FROM A {one}, B {other} WHERE {condition}"
            changes += agree(Case(STREAMS, query, feed(200 + seed, "AB", 40, seed + which == 2)), seed)
    on = condition.replace("B.", "R.")
    query = f"SELECT A.x, R.x, R.f FROM A [RANGE 4], R WHERE {on}"
    changes += agree(Case((*STREAMS, RELATION), query, feed(210, "AR", 40, False)), 0)
    assert changes > 20


def test_a_band_beside_an_equality_is_weighed_while_an_input_is_empty_or_NULL() -> None:
    with minidsms.connect(cost_model="fixed") as db:
        for name in "AB":
            db.execute(f"CREATE STREAM {name} (k INTEGER, x FLOAT)")
        query = db.query("SELECT ISTREAM(A.k) FROM A [ROWS 99], B [ROWS 99] WHERE A.k = B.k AND ABS(A.x - B.x) < 5")
        for ts in range(8):
            db.push("A", [(1, INF if ts % 2 else None)] * 400, ts=ts)
            if ts > 3:
                db.push("B", [(1, INF if ts % 2 else 7.0)] * 400, ts=ts)
        db.advance(9)
        assert query.fetch() == []


def test_an_order_meets_the_cells_on_one_side_alone() -> None:
    n = 2_000
    rng = np.random.default_rng(4)
    with minidsms.connect() as db:
        for name in "AB":
            db.execute(f"CREATE STREAM {name} (x INTEGER)")
        query = db.query("SELECT A.x, B.x FROM A [ROWS 2000], B [ROWS 2000] WHERE A.x + 990000 < B.x")
        for name in "AB":
            db.push(name, {"x": rng.integers(0, 10**6, n)}, ts=0)
        db.advance(1)
        (line,) = (line for line in query.explain(analyze=True).splitlines() if "MJoin" in line)
        assert "A.x - B.x up to -990000" in line
        (inspected,) = re.findall(r"inspected ([\d,]+)", line)
        assert int(inspected.replace(",", "").rstrip(",")) < n * n / 100


THREE = (
    "ABS(A.x - B.x) < 3 AND ABS(B.x - C.x) < 3",
    "ABS(A.f - B.f) < 0.75 AND C.f BETWEEN A.f - 1 AND A.f + 1",
    "A.k = B.k AND ABS(A.x - C.x) < 2",
    "A.k = B.k AND ABS(B.f - C.f) < 0.5",
    "A.x = B.x + 1 AND C.k = A.k",  # A and C are joined first
)


@pytest.mark.parametrize("condition", THREE)
@pytest.mark.parametrize("caching", ["off", "prefix"])
def test_steps_of_three_inputs_go_by_bands_whatever_is_switched(condition: str, caching: str) -> None:
    changes = 0
    for seed, windows in enumerate((("[RANGE 6]",) * 3, ("[ROWS 4]", "[RANGE 5]", "[PARTITION BY k ROWS 2]"))):
        sources = ", ".join(f"{name} {window}" for name, window in zip("ABC", windows))
        for operator in ("ISTREAM", "RSTREAM"):
            query = f"SELECT {operator}(A.x, B.x, C.x, C.f) FROM {sources} WHERE {condition}"
            case = Case(STREAMS, query, feed(900 + seed, "ABC", 30, False))
            changes += agree(case, seed, join_plan="mjoin", caching=caching, forced_every=1 + seed)
    assert changes


def test_bands_are_found_where_joins_do_not_come_in_the_order_of_from() -> None:
    for text in (f"A [ROWS 9], B [ROWS 9], C [ROWS 9] WHERE {THREE[-1]}",
                 "A [ROWS 9] JOIN B [ROWS 9] ON A.x = B.x + 1 JOIN C [ROWS 9] ON C.k = A.k"):  # fmt: skip
        with minidsms.connect() as db:
            for declaration in STREAMS:
                db.execute(declaration)
            plan = db.query(f"SELECT A.f, B.f FROM {text}").explain()
        assert "B.x from 1 to 1" in plan and "Cartesian" not in plan


def test_a_band_meets_its_neighbours_alone_and_explain_tells_it() -> None:
    n = 2_000
    rng = Random(1)
    columns = [rng.sample(range(10**6), n) for _ in range(2)]
    inspected = {}
    for index in ("auto", "hash"):
        with minidsms.connect() as db:
            db.execute(f"SET join_index = '{index}'")
            db.execute("CREATE STREAM A (x INTEGER)")
            db.execute("CREATE STREAM B (y INTEGER)")
            query = db.query("SELECT A.x, B.y FROM A [ROWS 2000], B [ROWS 2000] WHERE ABS(A.x - B.y) < 5")
            db.push("A", {"x": columns[0]}, ts=0)
            db.push("B", {"y": columns[1]}, ts=0)
            db.advance(1)
            text = query.explain(analyze=True)
            (line,) = (line for line in text.splitlines() if "Join" in line and "inspected" in line)
            (told,) = re.findall(r"inspected ([\d,]+)", line)
            inspected[index] = int(told.replace(",", "").rstrip(","))
            assert ("x - B.y from -5 to 5" in line) == (index == "auto"), line
    assert inspected["auto"] < n < inspected["hash"] / 100


def test_bands_of_floats_that_rounding_makes_too_coarse_are_none() -> None:
    a, b = (0, 0), (1, 0)
    assert band_of(a, b, -1.0, 1.0, False) is not None
    assert band_of(a, b, 1.0, 1.0, False) is None
    assert band_of(a, b, -1.0, 1.0, False, 3 * LARGEST) is None
    assert band_of(a, b, -(2**62), 0, True) is None


def test_rows_that_have_left_within_a_block_lead_no_band_to_cells_that_nobody_asked_for() -> None:
    n, length = 400, 20
    rng = np.random.default_rng(0)
    rows = {name: {"n": np.arange(n), "x": rng.integers(0, 60, n), "y": rng.integers(0, 60, n)} for name in "ABC"}
    ts = np.arange(n) // 2

    def near(one: str, other: str) -> Any:
        pairs = ((rows[one][column][:, None], rows[other][column]) for column in "xy")
        return np.logical_and.reduce([abs(a - b) < 3 for a, b in pairs]) & are_together

    are_together = abs(ts[:, None] - ts) < length
    expected = np.argwhere(near("A", "B")[:, :, None] & near("B", "C") & are_together[:, None, :])
    with minidsms.connect(join_plan="mjoin") as db:
        for name in "ABC":
            db.execute(f"CREATE STREAM {name} (n INTEGER, x INTEGER, y INTEGER)")
        windows = ", ".join(f"{name} [RANGE {length}]" for name in "ABC")
        query = db.query(
            f"SELECT ISTREAM(A.n AS a, B.n AS b, C.n AS c) FROM {windows} WHERE ABS(A.x - B.x) < 3"
            " AND ABS(A.y - B.y) < 3 AND ABS(B.x - C.x) < 3 AND ABS(B.y - C.y) < 3"
        )
        for name, columns in rows.items():
            db.push(name, columns, ts=ts)
        db.advance(n)
        answer = query.fetch_arrow()
    got = sorted(zip(*(answer[name].to_pylist() for name in "abc")))
    assert got == [tuple(found) for found in expected.tolist()]
    assert len(got) > 50


@pytest.mark.parametrize(
    ("select", "window", "last"),
    [
        ("a.k, b.v", "[NOW]", 0),
        ("ISTREAM(a.k, b.v)", "[NOW]", 0),
        ("a.k, b.v", "[RANGE 100]", 25),
        ("ISTREAM(a.k, b.v)", "[RANGE 100]", 25),
        ("a.k, b.v", "[RANGE UNBOUNDED]", 128),
    ],
)
def test_cells_in_order_are_as_many_as_the_rows_at_a_time_ask_for(select: str, window: str, last: int) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM A (k INTEGER, v INTEGER); CREATE STREAM B (k INTEGER, v INTEGER)")
        query = db.query(f"SELECT {select} FROM A {window} AS a, B {window} AS b WHERE a.v < b.v - 3000")
        ts = np.repeat(np.arange(1500), 2)
        for name in "AB":
            db.push(name, {"k": ts, "v": (ts * 7919) % 3001}, ts=ts)
        db.advance(1500)
        (join,) = (op for op in query.network.operators if isinstance(op, Join))
        assert join.index.keys["last_cell"].max() == pytest.approx(last, abs=2)
