"""Joins of two streams with ranges, of which every deletion is put out: compiled forms of them, inner and outer."""

from __future__ import annotations

from random import Random

import pytest

import minidsms
from minidsms.joins import answer, form_rows
from minidsms.query import Change
from minidsms.testing.compare import check, difference_of, run_definition, run_together
from minidsms.testing.feeds import Advance, Push, Step
from minidsms.testing.generators import Case
from tests.joins.test_by_form import STREAMS, random_rows
from tests.joins.test_outer_joins import RANGES
from tests.seeds import seeds

SHOWN = ("R.t, S.x, R.k", "S.b, R.x")
"""By the columns of the first a form nets its rows itself. All tests show these: forms take seconds to be compiled."""


@pytest.fixture(params=["LEFT JOIN", "JOIN"])
def join(request: pytest.FixtureRequest) -> str:
    """What stands between the streams."""
    return str(request.param)


def case_of_streams(join: str, seed: int, rows: int = 7) -> Case:
    """Two streams with many equal rows, which come and leave at the same instants; NULLs come in the middle of some."""
    rng = Random(seed)
    by_two = join == "JOIN" and seed % 3 == 2
    condition = "R.k = S.k AND R.t = S.t" if by_two else "R.k = S.k"
    ranges = rng.choice(RANGES), rng.choice(RANGES[:3])
    query = f"SELECT {SHOWN[0 if by_two else seed % 2]} FROM R {ranges[0]} {join} S {ranges[1]} ON {condition}"
    feed: list[Step] = []
    for turn in range(6):
        nulls = 0.2 if seed % 4 == 0 and turn > 2 else 0.0
        if nulls and turn == 3 and not isinstance(feed[-1], Advance):
            # NULLs of both streams come between the same two slices: each form takes seconds to be compiled.
            feed.append(Advance(4 * turn - 1))
        for name in "RS":
            came = random_rows(rng, 4 * turn, rng.randrange(rows), nulls)
            feed.append(Push(name, ((4 * turn, 1, (None,) * 4), *came) if nulls else came))
        if rng.random() < 0.7:
            feed.append(Advance(4 * turn + 3))
    feed.append(Advance(50))
    return Case(STREAMS, query, tuple(feed))


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
def test_a_form_answers_as_defined(batch_size: int, join: str) -> None:
    assert answers(case_of_streams(join, 1))[1] == {"join_streams"}
    for seed in seeds(24):
        case = case_of_streams(join, seed)
        expected = run_definition(case)
        options = {"batch_size": batch_size, "compilation": "at once"}
        assert check(case, (None, 1)[seed % 2], expected, **options) == "agreed", case
        (forced,) = run_together([case], {}, forced_every=3, **options)
        assert not difference_of(expected, forced), case


def test_instants_that_do_not_fit_are_taken_whole_with_more_room(monkeypatch: pytest.MonkeyPatch, join: str) -> None:
    monkeypatch.setattr(form_rows, "_LEAST_ROWS", 1)
    monkeypatch.setattr(form_rows, "_ROOM", 0.01)
    monkeypatch.setattr(answer, "MOST_INSPECTED", 3)
    for seed in seeds(24):
        case = case_of_streams(join, seed)
        for few in (0, 12):
            monkeypatch.setattr(form_rows, "_FEW_ROWS", few)
            assert check(case, None, run_definition(case), compilation="at once") == "agreed", case


def test_large_instants_are_netted_behind_the_form(join: str) -> None:
    for seed in seeds(2, 48, 8):
        case = case_of_streams(join, seed, 120)
        assert check(case, None, run_definition(case), compilation="at once") == "agreed", case


def test_no_row_is_both_deleted_and_inserted_at_an_instant(join: str) -> None:
    for seed in seeds(24):
        signs: dict[object, set[int]] = {}
        for change in answers(case_of_streams(join, seed, 60))[0]:
            signs.setdefault((change.ts, change.row), set()).add(change.sign)
        assert all(len(each) == 1 for each in signs.values()), case_of_streams(join, seed, 60)


def test_rows_leave_while_only_the_other_stream_goes_on() -> None:
    for compilation in ("off", "at once"):
        with minidsms.connect(compilation=compilation) as db:
            db.execute("CREATE STREAM L (k INTEGER, w INTEGER); CREATE STREAM R (k INTEGER, v INTEGER)")
            query = db.query("SELECT L.w, R.v, L.k FROM L [RANGE 3] LEFT JOIN R [RANGE 2] ON L.k = R.k")
            inner = db.query("SELECT L.w, R.v, L.k FROM L [RANGE 3] JOIN R [RANGE 2] ON L.k = R.k")
            db.push("R", (2, 0), ts=1)
            db.push("L", (1, 8), ts=1)
            db.push("R", (1, 5), ts=2)
            db.advance(3)
            db.advance(20)
            changes, of_inner = ([(c.ts, c.sign, c.row) for c in q.fetch()] for q in (query, inner))
        pad, five = (8, None, 1), (8, 5, 1)
        assert of_inner == [(2, 1, five), (4, -1, five)]
        assert changes == [(1, 1, pad), (2, -1, pad), (2, 1, five), (4, -1, five)]


@pytest.mark.parametrize("compilation", ["off", "at once"])
def test_a_range_that_no_instant_ends_lets_no_row_leave(compilation: str, join: str) -> None:
    def answer(window: str) -> list[Change]:
        with minidsms.connect(compilation=compilation) as db:
            db.execute("CREATE STREAM R (k INTEGER, a INTEGER); CREATE STREAM S (k INTEGER, b INTEGER)")
            query = db.query(f"SELECT a, b, R.k FROM R {window} {join} S {window} ON R.k = S.k")
            for t in range(1000, 1010):
                db.push("R", (t % 3, t), ts=t)
                db.push("S", (t % 4, t), ts=t)
            db.advance(2000)
            return sorted(query.fetch(), key=repr)

    assert answer(f"[RANGE {2**63 - 1}]") == answer(f"[RANGE {2**62}]") == answer("[RANGE 5000]")
