"""Joins of streams by compiled forms: answers are those of the definition and, in their order, of other plans."""

from __future__ import annotations

from collections import Counter, deque
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import minidsms
from minidsms.joins import answer, by_form, form_rows
from minidsms.joins.by_pipelines import ByPipelines
from minidsms.joins.join import Join
from minidsms.process import large_pages
from minidsms.query import Change
from minidsms.testing.compare import check, difference_of, run_definition, run_together
from minidsms.testing.feeds import Advance, Push, Step
from minidsms.testing.generators import Case
from minidsms.testing.switching import forced_switching
from tests.seeds import seeds

STREAMS = tuple(f"CREATE STREAM {name} (k INTEGER, b BOOLEAN, t TEXT, x FLOAT)" for name in "RSTU")
RANGES = ("[RANGE 3]", "[NOW]", "[RANGE 2]", "[RANGE UNBOUNDED]")
SHOWN = ("R.t, S.x, S.k", "R.k, R.b, S.k + 1 AS l")
"""The columns of the first are those of the join, so that it nets them itself."""
OF_CHAIN = "R.b, S.k, S.x, S.t"
"""Each form takes seconds to be compiled: joins of the same streams show the same columns."""
TWO, CHAIN = "R.k = S.k", "R.k = S.k AND S.x = T.x"
CYCLE = "R.k = S.k AND R.t = S.t AND S.x = T.x AND T.k = R.k AND S.t = U.t"
"""By several columns, with steps that check one, and a stream whose rows are asked for by two steps."""


def random_rows(rng: Random, ts: int, count: int, nulls: float) -> tuple[tuple[int, int, tuple[object, ...]], ...]:
    def value(of: object) -> object:
        return None if rng.random() < nulls else of

    instants = sorted(ts + rng.randrange(4) for _ in range(count))
    return tuple(
        (
            at,
            1,
            (
                value(rng.randrange(3)),
                value(rng.random() < 0.5),
                value(rng.choice("xy")),
                value(rng.choice((0.5, 1.0))),
            ),
        )
        for at in instants
    )


def random_case(seed: int, where: str = TWO) -> Case:
    """Streams with many equal rows, that enter as equal ones leave; NULLs come in the middle of some."""
    rng = Random(seed)
    shown = SHOWN[seed % len(SHOWN)] if where == TWO else OF_CHAIN
    names = [name for name in "RSTU" if f"{name}." in where]
    ranges = [f"R {rng.choice(RANGES)}", *(f"{name} {rng.choice(RANGES[:3])}" for name in names[1:])]
    if where == TWO:
        ranges = [each.replace("[NOW]", "[RANGE 1]") for each in ranges]  # of two, rows of an instant are looked up
    query = f"SELECT ISTREAM({shown}) FROM {', '.join(ranges)} WHERE {where}"
    feed: list[Step] = []
    for turn in range(5):
        # All streams begin to have NULLs between the same two slices: each form takes seconds to be compiled.
        nulls = 0.2 if seed % 4 == 0 and turn > 2 else 0.0
        for name in names:
            rows = random_rows(rng, 4 * turn, rng.randrange(7), nulls)
            feed.append(Push(name, ((4 * turn, 1, (None,) * 4), *rows) if nulls else rows))
        feed.append(Advance(4 * turn + 3))
    feed.append(Advance(30))
    return Case(STREAMS[: len(names)], query, tuple(feed))


@pytest.mark.parametrize("batch_size", [1, 2, 7, 65_536])
@pytest.mark.parametrize("where", [TWO, CHAIN])
def test_the_answer_is_that_of_the_definition(batch_size: int, where: str, divided: list[int]) -> None:
    for seed in range(0, 16, 4):
        case = random_case(seed, where)
        expected = run_definition(case)
        options = {"batch_size": batch_size, "compilation": "at once", "threads": 1 + seed % 3}
        assert check(case, None, expected, **options) == "agreed"
        (forced,) = run_together([case], {}, forced_every=3, **options)
        assert not difference_of(expected, forced), case


def answers(
    seed: int, every: int | None = None, where: str = TWO, **options: object
) -> tuple[list[Change], set[str]]:  # fmt: skip
    """All changes, in their order, and the plans that ran."""
    case = random_case(seed, where)
    with minidsms.connect(**options) as db:
        for declaration in case.declarations:
            db.execute(declaration)
        query = db.query(case.query)
        forcing = None if every is None else forced_switching(db, every, seed)
        if forcing is not None:
            forcing.__enter__()
        for step in case.feed:
            if isinstance(step, Advance):
                db.advance(step.ts)
            else:
                db.push(step.name, [row for _, _, row in step.rows], ts=[ts for ts, _, _ in step.rows])
        plans = {d.new_plan.partition(" ")[0] for d in db.streamon.plan_log if d.technique == "compilation"}
        return query.fetch(), plans


@cache
def generic_answers(seed: int, where: str = TWO) -> tuple[list[Change], set[str]]:
    """Those that no form gives."""
    return answers(seed, where=where, compilation="off")


@pytest.mark.parametrize("where", [TWO, CHAIN])
def test_rows_come_in_the_same_order_whatever_form_runs(where: str, divided: list[int]) -> None:
    seen: set[str] = set()
    for seed in range(12):
        expected, none = generic_answers(seed, where)
        assert not none
        # Other orders with NULLs have forms of their own, which `test_the_answer_is_that_of_the_definition` forces.
        forced = [(every, 1 + seed % 3) for every in (1, 2, 5) if where == TWO or seed % 4]
        for every, threads in ((None, 1), (None, 2), (None, 3), (None, 16), *forced):
            changes, plans = answers(seed, every, where, compilation="at once", threads=threads)
            # Where orders change, too, rows of an instant may come in another order.
            same = changes == expected if every is None or where == TWO else Counter(changes) == Counter(expected)
            assert same, random_case(seed, where)
            seen |= plans
    assert seen == {"join_streams", "generic"} and {1, 2, 3, 4} == set(divided)


def test_forms_of_cyclic_graphs_give_the_same_rows(divided: list[int]) -> None:
    found = 0
    for seed in seeds(47, 0, -2):
        expected, _ = generic_answers(seed, CYCLE)
        for threads in (1, 2, 3):
            changes, plans = answers(seed, where=CYCLE, compilation="at once", adaptive=False, threads=threads)
            assert changes == expected, random_case(seed, CYCLE)
            assert plans <= {"join_streams"}
        found += len(expected)
    assert found > 10


def test_a_form_is_given_up_where_hardly_an_element_finds_something_and_taken_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(by_form, "_STRETCH", 8)
    with minidsms.connect(compilation="at once", adaptive=False) as db:
        for declaration in STREAMS[:3]:
            db.execute(declaration)
        query = db.query(f"SELECT ISTREAM({OF_CHAIN}) FROM R [RANGE 3], S [RANGE 3], T [RANGE 3] WHERE {CHAIN}")
        join = next(op for op in query.network.operators if isinstance(op, Join))
        ran = []
        for ts in range(40):
            for number, name in enumerate("RST"):
                db.push(name, [(1 if ts // 10 % 2 == 0 else number, True, str(ts), 0.5)], ts=ts)
            db.advance(ts)
            ran.append(join.form is not None)
        assert len(query.fetch()) > 0
    assert ran[8] and not ran[18] and ran[28] and not ran[38]


@pytest.mark.parametrize("rows", [20, 5_000])
def test_whether_elements_find_something_is_asked_of_all_that_have_come(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where rows pass by hand, and count as put out once all of the slice has been joined."""
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(by_form.ByForm, "joined", lambda form, taken, put_out: seen.append((taken, put_out)))
    with minidsms.connect() as db:
        db.execute("CREATE STREAM R (k INTEGER); CREATE STREAM S (k INTEGER)")
        q = db.query("SELECT ISTREAM(R.k) FROM R [RANGE 5], S [RANGE 5] WHERE R.k = S.k")
        answered = 0
        for first in range(0, 4 * rows, rows):
            instants = np.arange(first, first + rows)
            for name in "RS":
                db.push(name, {"k": instants}, ts=instants)
            db.advance(first + rows - 1)
            answered += len(q.fetch())
            taken, put_out = seen[-1]
            assert taken == 2 * answered and put_out >= answered  # with deletions that an ISTREAM nets


def test_a_plan_that_comes_back_finds_its_form_again() -> None:
    with minidsms.connect(compilation="at once", adaptive=False) as db:
        for declaration in STREAMS[:3]:
            db.execute(declaration)
        query = db.query(f"SELECT ISTREAM({OF_CHAIN}) FROM R [RANGE 3], S [RANGE 3], T [RANGE 3] WHERE {CHAIN}")
        join = next(op for op in query.network.operators if isinstance(op, Join))
        forms = []
        for ts, orders in enumerate((((1, 2), (0, 2), (1, 0)), ((1, 2), (2, 0), (1, 0))) * 2):
            join.reorder(orders)
            for instant in (3 * ts, 3 * ts + 1):
                for name in "RST":
                    db.push(name, [(1, True, "x", 0.5)] * 2, ts=instant)
                db.advance(instant)
            forms.append(join.form)
        assert len(query.fetch()) > 0
        assert None not in forms and forms[:2] == forms[2:] and forms[0] is not forms[1]


def test_instants_that_do_not_fit_are_taken_whole_with_more_room(
    monkeypatch: pytest.MonkeyPatch, divided: list[int]
) -> None:
    wheres = [(where, seed) for where in (TWO, CHAIN) for seed in range(12)]
    expected = [generic_answers(seed, where)[0] for where, seed in wheres]
    monkeypatch.setattr(form_rows, "_LEAST_ROWS", 1)
    monkeypatch.setattr(form_rows, "_FEW_ROWS", 0)
    monkeypatch.setattr(form_rows, "_ROOM", 0.01)
    for threads in (1, 3):
        options = {"compilation": "at once", "threads": threads}
        assert [answers(seed, where=where, **options)[0] for where, seed in wheres] == expected


def test_what_did_not_fit_leaves_no_signs_behind(monkeypatch: pytest.MonkeyPatch, divided: list[int]) -> None:
    def answer(compilation: str, seed: int, threads: int = 1) -> list[Change]:
        rng = Random(seed)
        with minidsms.connect(compilation=compilation, threads=threads) as db:
            for declaration in STREAMS[:2]:
                db.execute(declaration)
            query = db.query("SELECT ISTREAM(R.k, R.b, S.k + 1 AS l) FROM R [RANGE 2], S [RANGE 3] WHERE R.k = S.k")
            for instants in (range(1), range(2, 40)):
                for name in "RS":
                    ts = [instant for instant in instants for _ in range(rng.randrange(1, 4) - (instant > 0))]
                    db.push(name, [(1 + rng.randrange(2), True, "x", 0.5) for _ in ts], ts=ts)
                db.advance(instants[-1])
            return query.fetch()

    expected = [answer("off", seed) for seed in range(12)]
    monkeypatch.setattr(form_rows, "_LEAST_ROWS", 1)
    monkeypatch.setattr(form_rows, "_ROOM", 0.01)
    for few in (4, 12, 30):
        monkeypatch.setattr(form_rows, "_FEW_ROWS", few)
        for threads in (1, 3):
            assert [answer("at once", seed, threads) for seed in range(12)] == expected


def test_a_form_that_inspects_much_gives_way_between_instants(
    monkeypatch: pytest.MonkeyPatch, divided: list[int]
) -> None:
    expected = [generic_answers(seed, CHAIN)[0] for seed in range(8)]
    monkeypatch.setattr(answer, "MOST_INSPECTED", 3)
    for threads in (1, 3):
        options = {"compilation": "at once", "threads": threads}
        assert [answers(seed, where=CHAIN, **options)[0] for seed in range(8)] == expected


def test_rows_of_several_slices_fill_a_block(monkeypatch: pytest.MonkeyPatch, divided: list[int]) -> None:
    expected = [generic_answers(seed)[0] for seed in range(12)]
    monkeypatch.setattr(form_rows, "_FEW_ROWS", 0)
    monkeypatch.setattr(form_rows, "_WORTH_A_BLOCK", 1)
    for words in (16, 64, 1024):
        monkeypatch.setattr(form_rows, "BLOCK_WORDS", words)
        for threads in (1, 3):
            assert [answers(seed, compilation="at once", threads=threads)[0] for seed in range(12)] == expected


def test_a_block_is_used_again_once_nobody_holds_what_stands_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_pages, "_blocks", deque[Any](maxlen=2))
    first = large_pages.words_on_large_pages(64)
    address, part = first.ctypes.data, first.reshape(2, 32)[1, 3:9]
    del first
    held = large_pages.words_on_large_pages(64)
    assert held.ctypes.data != address
    del part
    assert large_pages.words_on_large_pages(64).ctypes.data == address


def test_many_deletions_of_an_instant_are_left_to_the_istream(divided: list[int]) -> None:
    def answer(compilation: str, threads: int = 1) -> list[Change]:
        with minidsms.connect(compilation=compilation, threads=threads) as db:
            for declaration in STREAMS:
                db.execute(declaration)
            query = db.query(f"SELECT ISTREAM({SHOWN[0]}) FROM R [RANGE 1], S [RANGE 3] WHERE R.k = S.k")
            db.push("R", (2, True, "x", 0.5), ts=1)
            db.push("S", [(1, True, "x", 0.5)] * 3, ts=1)
            db.advance(1)
            for ts in (2, 3):
                db.push("R", [(1, True, "xyy"[i % 3], 0.5) for i in range(40)], ts=ts)
                db.advance(ts)
            join = next(op for op in query.network.operators if isinstance(op, Join))
            assert (join.form is not None) == (compilation == "at once")
            db.advance(9)
            return query.fetch()

    assert answer("at once") == answer("at once", 3) == answer("off") and len(answer("off")) == 120


@pytest.mark.parametrize("threads", [1, 2])
def test_large_windows_have_the_same_rows_in_rings_that_hold_no_more(threads: int) -> None:
    """Rings of 32,768 slots, in which pushes of 30,000 elements do not stand beside 9,000 rows, begin anew twice."""

    def answer(compilation: str) -> tuple[Any, list[int]]:
        rng = np.random.default_rng(3)
        with minidsms.connect(compilation=compilation, threads=threads) as db:
            for declaration in STREAMS[:2]:
                db.execute(declaration)
            query = db.query(f"SELECT ISTREAM({SHOWN[1]}) FROM R [RANGE 9000], S [RANGE 9000] WHERE R.k = S.k")
            for begin in range(0, 90_000, 30_000):
                nulls = 0.1 if begin == 60_000 else 0.0
                for name in "RS":
                    keys, flags = rng.integers(0, 20_000, 30_000), rng.random(30_000) < 0.5
                    columns = {
                        "k": pa.array(keys, mask=rng.random(30_000) < nulls),
                        "b": pa.array(flags, mask=rng.random(30_000) < nulls),
                        "t": pa.array(["x"] * 30_000),
                        "x": rng.random(30_000),
                    }
                    db.push(name, columns, ts=np.arange(begin, begin + 30_000))
            db.advance(90_000)
            join = next(op for op in query.network.operators if isinstance(op, Join))
            assert (join.form is not None) == (compilation == "at once")
            return query.fetch_arrow(), join.index.inputs["mask"].tolist()

    (expected, masks), (rows, masks_of_form) = answer("off"), answer("at once")
    assert len(rows) > 30_000 and rows.equals(expected)
    assert masks == [32_767, 32_767] and (masks_of_form == masks or threads == 2)


def test_the_first_slice_is_joined_by_a_form_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(compilation: str) -> list[Change]:
        with minidsms.connect(compilation=compilation) as db:
            for declaration in STREAMS[:2]:
                db.execute(declaration)
            query = db.query(f"SELECT ISTREAM({SHOWN[1]}) FROM R [RANGE 3], S [RANGE 9000] WHERE R.k = S.k")
            rows = [(i % 30_011, i % 2 == 0, "x", 0.5) for i in range(40_000)]
            for name in "RS":
                db.push(name, rows, ts=range(40_000))
            return query.fetch()

    expected = answer("off")
    monkeypatch.setattr(ByPipelines, "run", lambda pipelines: pytest.fail("the generic kernel has run"))
    assert answer("at once") == expected != []


def test_the_signs_of_rows_for_which_there_was_much_room_once_are_not_kept() -> None:
    with minidsms.connect() as db:
        for declaration in STREAMS[:2]:
            db.execute(declaration)
        query = db.query(f"SELECT ISTREAM({SHOWN[1]}) FROM R [RANGE 3], S [RANGE 3] WHERE R.k = S.k")
        (join,) = [each for each in query.network.operators if isinstance(each, Join)]
        assert join._by_form is not None
        (rows,) = join._by_form._rows
        for n in (large_pages.BLOCK_WORDS, 4 * large_pages.BLOCK_WORDS, 1000):
            assert len(rows._made(n, 1).sign) >= n and len(rows._sign) == large_pages.BLOCK_WORDS


def test_a_join_whose_answer_does_not_tell_keys_has_no_form() -> None:
    with minidsms.connect(compilation="at once") as db:
        for declaration in STREAMS:
            db.execute(declaration)
        query = db.query("SELECT ISTREAM(R.b, S.t) FROM R [RANGE 3], S [RANGE 3] WHERE R.k = S.k")
        db.push("R", [(1, True, "x", 0.5)], ts=1)
        db.push("S", [(1, True, "x", 0.5)], ts=1)
        db.advance(2)
        assert len(query.fetch()) == 1 and "compiled" not in query.explain(analyze=True)


def test_a_shared_join_that_is_divided_while_a_form_runs_goes_on_in_both(divided: list[int]) -> None:
    def answered(compilation: str, threads: int = 1) -> list[list[Change]]:
        rng = Random(3)
        with minidsms.connect(compilation=compilation, threads=threads) as db:
            for declaration in STREAMS:
                db.execute(declaration)
            text = f"SELECT ISTREAM({SHOWN[0]}) FROM R [RANGE 5], S [RANGE 7] WHERE R.k = S.k"
            queries = [db.query(text), db.query(text)]
            for ts in range(60):
                if ts == 30:
                    db.execute("SET sharing = 'off'")
                for name in "RS":
                    rows = random_rows(rng, ts, 1 + rng.randrange(3), 0.0)
                    db.push(name, [row for _, _, row in rows], ts=ts)
                db.advance(ts)
            return [query.fetch() for query in queries]

    assert answered("at once") == answered("at once", 2) == answered("off") and divided
