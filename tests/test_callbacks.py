"""Callbacks: what they are told, what they may do, and what their mistakes do not touch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import minidsms
from minidsms import Change, Connection, QueryError
from minidsms.cql.errors import ClosedError


@pytest.fixture
def db() -> Connection:
    connection = minidsms.connect()
    connection.execute("CREATE STREAM S (v INTEGER)")
    return connection


def test_an_exception_in_a_callback_loses_no_change(db: Connection) -> None:
    q = db.query("SELECT ISTREAM(v) FROM S [NOW]")
    seen: list[int] = []

    @q.on_change
    def stumble(change: Change) -> None:
        seen.append(change.row[0])
        if change.row == (1,):
            raise ValueError("one")

    with pytest.raises(ValueError, match="one"):
        db.push("S", [(0,), (1,), (2,), (3,)], ts=[0, 1, 2, 3])
    assert seen == [0, 1, 2]
    db.advance(3)
    assert seen == [0, 1, 2, 3]


def test_a_query_closed_by_its_callback_tells_nothing_more(db: Connection) -> None:
    q = db.query("SELECT ISTREAM(v) FROM S [NOW]")
    seen: list[Change] = []

    @q.on_change
    def once(change: Change) -> None:
        seen.append(change)
        q.close()

    db.push("S", [(0,), (1,), (2,)], ts=[0, 1, 2])
    assert seen == [Change(0, 1, (0,))]


def test_callbacks_that_push_on_and_on_do_not_exhaust_the_stack(db: Connection) -> None:
    q = db.query("SELECT ISTREAM(v) FROM S [NOW]")
    seen: list[int] = []

    @q.on_change
    def push_next(change: Change) -> None:
        seen.append(change.row[0])
        if len(seen) < 2_000:
            db.push("S", (len(seen),), ts=change.ts + 1)
            db.advance(change.ts + 1)

    db.push("S", (0,), ts=0)
    db.advance(0)
    assert seen == list(range(2_000))


def test_a_refused_push_of_a_callback_does_not_keep_the_others_from_being_taken(db: Connection) -> None:
    db.execute("CREATE STREAM Out (v INTEGER)")
    q = db.query("SELECT ISTREAM(v) FROM S [NOW]")
    out = db.query("SELECT ISTREAM(v) FROM Out [NOW]")

    @q.on_change
    def two_pushes(change: Change) -> None:
        if change.row == (1,):
            db.push("Out", ("no integer",), ts=100)
        db.push("Out", (change.row[0],), ts=100)

    with pytest.raises(minidsms.DataError):
        db.push("S", [(1,), (2,)], ts=[1, 2])
    db.advance(50, stream="S")
    db.advance(100, stream="Out")
    assert Change(100, 1, (1,)) in out.fetch()


def test_what_another_thread_pushes_while_callbacks_run_is_told_before_they_end(db: Connection) -> None:
    q = db.query("SELECT ISTREAM(v) FROM S [NOW]")
    seen: list[int] = []

    @q.on_change
    def let_another_push(change: Change) -> None:
        seen.append(change.row[0])
        if change.row == (0,):
            other = threading.Thread(target=lambda: db.push("S", [(1,), (2,)], ts=[1, 2]))
            other.start()
            other.join(240)

    db.push("S", (0,), ts=0)
    db.advance(0)
    assert seen == [0, 1]


def test_on_change_takes_functions_only(db: Connection) -> None:
    with pytest.raises(minidsms.Error, match="function"):
        db.query("SELECT v FROM S").on_change(5)  # type: ignore[arg-type]


def test_an_interrupt_fails_the_queries_in_flight_and_leaves_the_connection_usable(db: Connection) -> None:
    def interrupted(v: int) -> int:
        raise KeyboardInterrupt

    db.create_function("interrupted", interrupted, ["INTEGER"], "INTEGER")
    q = db.query("SELECT ISTREAM(interrupted(v)) FROM S [NOW]")
    with pytest.raises(KeyboardInterrupt):
        db.push("S", [(0,), (1,)], ts=[0, 1])
    assert q.failure is not None and "KeyboardInterrupt" in q.failure[1]
    later = db.query("SELECT ISTREAM(v) FROM S [NOW]")
    db.push("S", (5,), ts=7)
    db.advance(7)
    assert later.fetch() == [Change(7, 1, (5,))]


@pytest.mark.parametrize("use", [lambda db: db.push("S", (1,), ts=100), lambda db: db.set("sharing", "off")])
def test_a_user_function_must_not_use_the_connection_that_calls_it(
    db: Connection, use: Callable[[Connection], int]
) -> None:
    db.create_function("pushing", lambda v: use(db), ["INTEGER"], "INTEGER")
    q = db.query("SELECT ISTREAM(pushing(v)) FROM S [NOW]")
    db.push("S", (0,), ts=0)
    db.advance(0)
    with pytest.raises(QueryError, match="must not use the connection"):
        q.fetch()


def test_a_setting_waits_for_the_call_of_another_thread(db: Connection) -> None:
    setting = threading.Thread(target=db.set, args=("sharing", "off"))
    with db.lock:
        setting.start()
        setting.join(0.1)
        assert db.settings["sharing"] == "on"
    setting.join()
    assert db.settings["sharing"] == "off"
    db.close()
    with pytest.raises(ClosedError):
        db.set("sharing", "on")


def test_the_bytes_that_a_query_holds_are_counted_while_no_other_thread_changes_its_plan(db: Connection) -> None:
    q = db.query("SELECT v, COUNT(*) FROM S [RANGE 3] GROUP BY v")
    held: list[int] = []
    counting = threading.Thread(target=lambda: held.append(q.nbytes))
    with db.lock:
        counting.start()
        counting.join(0.1)
        assert not held
        q.close()
    counting.join()
    assert held == [0]


def test_an_exception_that_cannot_say_what_it_is_still_fails_only_its_query(db: Connection) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    def fails(v: int) -> int:
        raise MuteError

    db.create_function("fails", fails, ["INTEGER"], "INTEGER")
    q = db.query("SELECT ISTREAM(fails(v)) FROM S [NOW]")
    db.push("S", (0,), ts=0)
    db.advance(0)
    with pytest.raises(QueryError, match="MuteError"):
        q.fetch()


def test_control_characters_of_an_exception_are_written_out(db: Connection) -> None:
    def fails(v: int) -> int:
        raise ValueError("\x1b[31m")

    db.create_function("fails", fails, ["INTEGER"], "INTEGER")
    q = db.query("SELECT ISTREAM(fails(v)) FROM S [NOW]")
    db.push("S", (0,), ts=0)
    db.advance(0)
    with pytest.raises(QueryError) as caught:
        q.fetch()
    assert "\x1b" not in str(caught.value)


def test_callbacks_are_told_of_a_query_that_writes_a_file(db: Connection, tmp_path: Path) -> None:
    q = db.execute(f"CREATE QUERY q AS SELECT ISTREAM(v) FROM S [NOW] INTO '{tmp_path / 'q.csv'}'")
    seen: list[Change] = []
    q.on_change(seen.append)
    db.push("S", [(1,), (2,)], ts=[1, 2])
    db.advance(2)
    q.close()
    assert seen == [Change(1, 1, (1,)), Change(2, 1, (2,))]
    assert (tmp_path / "q.csv").read_text().splitlines()[1:] == ["1,1,1", "2,1,2"]


def test_what_cannot_be_called_is_refused_at_once() -> None:
    with minidsms.connect() as db, pytest.raises(minidsms.Error, match="wants is a function of a query, not int"):
        db.on_change(print, wants=5)  # type: ignore[arg-type]


def test_a_query_that_was_closed_takes_no_callback_and_none_from_a_query_of_its_name(db: Connection) -> None:
    before = db.query("SELECT v FROM S", name="again")
    before.close()
    told: list[Change] = []
    db.query("SELECT v FROM S", name="again").on_change(told.append)
    with pytest.raises(ClosedError):
        before.on_change(told.append)
    db.push("S", (7,), ts=1)
    db.advance(2)
    assert [change.row for change in told] == [(7,)]
