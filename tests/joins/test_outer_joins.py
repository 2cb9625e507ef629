"""Outer joins by equalities alone, which one operator runs: over windows, relations and queries, bags of equal rows."""

from __future__ import annotations

from random import Random

import pytest

import minidsms
from minidsms.joins import answer, form_rows
from minidsms.query import Change
from minidsms.testing.compare import check, difference_of, run_definition, run_together
from minidsms.testing.feeds import Advance, Push, Step, random_feed
from minidsms.testing.generators import Case
from minidsms.testing.grammar import RELATIONS, STREAMS
from tests.joins import test_by_form as inner

SIDES = (
    ("Sa {}", "Sa", ("k", "v", "t"), "x"),
    ("Sb {}", "Sb", ("k", "v", "t"), "t"),
    ("Rel", "Rel", ("k", "a", "t"), "a"),
    ("(SELECT k, MAX(v) AS v, t FROM Sb {} GROUP BY k, t)", "Sb", ("k", "v", "t"), "v"),
    ("(SELECT S1.k, S1.v, S2.t FROM Sa {} AS S1, Sb [ROWS 4] AS S2 WHERE S1.k = S2.k)", "Sa Sb", ("k", "v", "t"), "v"),
)
"""What stands in FROM, what it reads, its keys, and a column that is none."""
RANGES = ("[RANGE 3]", "[NOW]", "[RANGE 9]", "[RANGE UNBOUNDED]")
WINDOWS = (*RANGES, "[ROWS 3]", "[PARTITION BY k ROWS 2]", "[RANGE 6 SLIDE 2]")


def random_case(seed: int) -> Case:
    """Two sides of any kind, or (every second seed) streams with ranges."""
    rng = Random(seed)
    sides = SIDES[:2] if seed % 2 else SIDES
    left, right = rng.choice(sides), rng.choice(sides)
    windows = RANGES if seed % 2 else WINDOWS
    texts = [side[0].format(rng.choice(windows)) for side in (left, right)]
    kind = rng.choice(("LEFT", "LEFT", "RIGHT", "FULL"))
    keys = [0] if seed % 3 else rng.sample(range(3), 2)
    on = [f"A.{left[2][i]} = B.{right[2][i]}" for i in keys]
    on += [f"B.{right[3]} IS NOT NULL"] if rng.random() < 0.1 else []
    columns = f"A.k, A.{left[3]} AS l, B.{right[3]} AS r"
    select = rng.choice((columns, columns, f"B.{right[3]} AS r", f"A.k, COUNT(B.{right[2][1]}) AS n, COUNT(*) AS m"))
    rest = " GROUP BY A.k" if "COUNT" in select else ""
    where = rng.choice(("", "", "", " WHERE B.k IS NULL", " WHERE A.k > 0"))
    query = f"{select} FROM {texts[0]} AS A {kind} JOIN {texts[1]} AS B ON {' AND '.join(on)}{where}{rest}"
    query = rng.choice((f"SELECT {query}", f"SELECT {query}", f"ISTREAM (SELECT {query})", f"RSTREAM (SELECT {query})"))
    names = sorted({*left[1].split(), *right[1].split()})
    declared = tuple(
        f"CREATE {'RELATION' if name in RELATIONS else 'STREAM'} {name} "
        f"({', '.join(f'{c} {t.name}' for c, t in {**STREAMS, **RELATIONS}[name])})"
        for name in names
    )
    return Case(declared, query, random_feed(rng, names, 40, may_be_extreme=False))


@pytest.mark.parametrize("batch_size", [1, 2, 7, 65_536])
def test_the_answer_is_that_of_the_definition(batch_size: int) -> None:
    for seed in range(40):
        case = random_case(seed)
        expected = run_definition(case)
        scheduler = ("round_robin", "fifo", "greedy", "chain")[seed // 2 % 4]
        options = {"batch_size": batch_size, "scheduler": scheduler, "queue_size": (1, 5, 65_536)[seed % 3]}
        assert check(case, None, expected, **options) == "agreed", case
        (forced,) = run_together([case], {}, forced_every=3, **options)
        assert not difference_of(expected, forced), case


def test_tuples_that_do_not_fit_are_put_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel stops at every row, and after every slot that it inspects."""
    monkeypatch.setattr(answer, "_FIRST_TUPLES", 1)
    monkeypatch.setattr(answer, "_TUPLES", 1)
    monkeypatch.setattr(answer, "MOST_INSPECTED", 1)
    for seed in range(40):
        case = random_case(seed)
        assert check(case, None, run_definition(case)) == "agreed", case


def test_a_key_that_is_lost_and_found_at_one_instant_changes_nothing() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM L (k INTEGER); CREATE STREAM R (k INTEGER, v INTEGER)")
        query = db.query("SELECT L.k, R.v FROM L [RANGE 100] LEFT JOIN R [RANGE 2] ON L.k = R.k")
        db.push("L", [(1,), (1,)], ts=[1, 1])
        db.push("R", [(1, 5), (1, 6), (1, 5)], ts=[2, 4, 6])
        db.advance(7)
        changes = [(c.ts, c.sign, c.row) for c in query.fetch()]
    pads, fives, sixes = ([(1, v)] * 2 for v in (None, 5, 6))
    came = [(1, 1, pads), (2, -1, pads), (2, 1, fives), (4, -1, fives), (4, 1, sixes), (6, -1, sixes), (6, 1, fives)]
    assert changes == [(ts, sign, row) for ts, sign, rows in came for row in rows]


# -------------------------------------------------------------------------------------------------- compiled forms

SHOWN = ("R.t, S.x, R.k", "S.b, R.x")
"""By the columns of the first a form nets its rows itself."""


def case_of_streams(seed: int, rows: int = 7) -> Case:
    """Two streams with many equal rows, which come and leave at the same instants; NULLs come in the middle of some."""
    rng = Random(seed)
    ranges = rng.choice(RANGES), rng.choice(RANGES[:3])
    query = f"SELECT {SHOWN[seed % 2]} FROM R {ranges[0]} LEFT JOIN S {ranges[1]} ON R.k = S.k"
    feed: list[Step] = []
    for turn in range(6):
        nulls = 0.2 if seed % 4 == 0 and turn > 2 else 0.0
        for name in "RS":
            came = inner.random_rows(rng, 4 * turn, rng.randrange(rows), nulls)
            feed.append(Push(name, ((4 * turn, 1, (None,) * 4), *came) if nulls else came))
        if rng.random() < 0.7:
            feed.append(Advance(4 * turn + 3))
    feed.append(Advance(50))
    return Case(inner.STREAMS, query, tuple(feed))


def answers(case: Case) -> tuple[list[Change], set[str]]:
    """All changes, and the plans that ran, with forms at once."""
    with minidsms.connect(compilation="at once") as db:
        for declaration in case.declarations:
            db.execute(declaration)
        query = db.query(case.query)
        for step in case.feed:
            if isinstance(step, Push):
                db.push(step.name, [row for _, _, row in step.rows], ts=[ts for ts, _, _ in step.rows])
            elif isinstance(step, Advance):
                db.advance(step.ts)
        return query.fetch(), {decision.new_plan.partition(" ")[0] for decision in db.streamon.plan_log}


@pytest.mark.parametrize("batch_size", [1, 2, 7, 65_536])
def test_a_form_answers_as_defined(batch_size: int) -> None:
    assert answers(case_of_streams(1))[1] == {"join_streams"}
    for seed in range(24):
        case = case_of_streams(seed)
        expected = run_definition(case)
        options = {"batch_size": batch_size, "compilation": "at once"}
        assert check(case, (None, 1)[seed % 2], expected, **options) == "agreed", case
        (forced,) = run_together([case], {}, forced_every=3, **options)
        assert not difference_of(expected, forced), case


def test_instants_that_do_not_fit_are_taken_whole_with_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form_rows, "_LEAST_ROWS", 1)
    monkeypatch.setattr(form_rows, "_ROOM", 0.01)
    monkeypatch.setattr(answer, "MOST_INSPECTED", 3)
    for seed in range(24):
        case = case_of_streams(seed)
        for few in (0, 12):
            monkeypatch.setattr(form_rows, "_FEW_ROWS", few)
            assert check(case, None, run_definition(case), compilation="at once") == "agreed", case


def test_large_instants_are_netted_behind_the_form() -> None:
    for seed in range(1, 24, 2):
        case = case_of_streams(2 * seed, 120)
        assert check(case, None, run_definition(case), compilation="at once") == "agreed", case


def test_no_row_is_both_deleted_and_inserted_at_an_instant() -> None:
    for seed in range(24):
        signs: dict[object, set[int]] = {}
        for change in answers(case_of_streams(seed, 60))[0]:
            signs.setdefault((change.ts, change.row), set()).add(change.sign)
        assert all(len(each) == 1 for each in signs.values()), case_of_streams(seed, 60)


def test_rows_leave_while_only_the_other_stream_goes_on() -> None:
    for compilation in ("off", "at once"):
        with minidsms.connect(compilation=compilation) as db:
            db.execute("CREATE STREAM L (k INTEGER); CREATE STREAM R (k INTEGER, v INTEGER)")
            query = db.query("SELECT L.k, R.v FROM L [RANGE 3] LEFT JOIN R [RANGE 2] ON L.k = R.k")
            db.push("R", (2, 0), ts=1)
            db.push("L", (1,), ts=1)
            db.push("R", (1, 5), ts=2)
            db.advance(3)
            db.advance(20)
            changes = [(c.ts, c.sign, c.row) for c in query.fetch()]
        pad, five = (1, None), (1, 5)
        assert changes == [(1, 1, pad), (2, -1, pad), (2, 1, five), (4, -1, five)]


@pytest.mark.parametrize("compilation", ["off", "at once"])
def test_a_range_that_no_instant_ends_lets_no_row_leave(compilation: str) -> None:
    def answer(window: str) -> list[Change]:
        with minidsms.connect(compilation=compilation) as db:
            db.execute("CREATE STREAM R (k INTEGER, a INTEGER); CREATE STREAM S (k INTEGER, b INTEGER)")
            query = db.query(f"SELECT R.k, a, b FROM R {window} LEFT JOIN S {window} ON R.k = S.k")
            for t in range(1000, 1010):
                db.push("R", (t % 3, t), ts=t)
                db.push("S", (t % 4, t), ts=t)
            db.advance(2000)
            return sorted(query.fetch(), key=repr)

    assert answer(f"[RANGE {2**63 - 1}]") == answer(f"[RANGE {2**62}]") == answer("[RANGE 5000]")
