"""Callbacks and sinks that are no files take answers for good, each at least once, and are attached anew."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import minidsms
from minidsms import Change
from minidsms.durability.connection import DurableConnection
from minidsms.sinks.tcp_output import TcpWriter
from tests.long.crash_cases import marking
from tests.long.crashes import Crash, Disk, crashing, end_process


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "db")


def opened(folder: str) -> DurableConnection:
    db = minidsms.connect(folder)
    assert isinstance(db, DurableConnection)
    db.execute("CREATE STREAM IF NOT EXISTS S (k INTEGER); CREATE QUERY IF NOT EXISTS q AS SELECT k FROM S WHERE k > 1")
    return db


def by_callback(db: minidsms.Connection, take: Callable[[int], Any]) -> None:
    @db.queries["q"].on_change
    def told(change: Change) -> None:
        take(change.row[0])


def by_callback_of_all(db: minidsms.Connection, take: Callable[[int], Any]) -> None:
    @db.on_change
    def told(news: list[Any]) -> None:
        for _, changes in news:
            for change in changes:
                take(change.row[0])


def by_function(db: minidsms.Connection, take: Callable[[int], Any]) -> None:
    def told(table: pa.Table) -> None:
        for k in table["k"].to_pylist():
            take(k)

    db.queries["q"].into(told)


@pytest.mark.parametrize("attach", [by_callback, by_callback_of_all, by_function])
def test_what_has_been_told_is_not_told_again(folder: str, attach: Callable[..., None]) -> None:
    told: list[int] = []
    for first in (1, 4, 7):
        with opened(folder) as db:
            attach(db, told.append)
            for k in range(first, first + 3):
                db.push("S", (k,), ts=k)
    with opened(folder) as db:
        assert db.queries["q"].fetch() == []
        assert db.queries["q"].position == 8
    assert told == [2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("attach", [by_callback, by_callback_of_all])
def test_the_connection_goes_on_after_a_callback_that_raises(folder: str, attach: Callable[..., None]) -> None:
    told: list[int] = []

    def take(k: int) -> None:
        told.append(k)
        if k == 3:
            db.push("S", (9,), ts=6)
            raise ZeroDivisionError

    with opened(folder) as db:
        attach(db, take)
        with pytest.raises(ZeroDivisionError):
            db.push("S", (3,), ts=1)
        db.push("S", (4,), ts=7)
        db.checkpoint()
    with opened(folder) as db:
        assert told == [3, 9, 4]
        assert db.position("S") == 3
        assert db.queries["q"].fetch() == []


def test_what_a_callback_that_raises_was_told_is_on_disk_as_promised(folder: str) -> None:
    with minidsms.connect(folder, durability="sync") as db:
        assert isinstance(db, DurableConnection) and db.log is not None
        db.execute("CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT k FROM S")

        @db.queries["q"].on_change
        def told(change: Change) -> None:
            raise minidsms.Error("no")

        with pytest.raises(minidsms.Error, match="no"):
            db.push("S", (3,), ts=1)
        assert db.log.is_synced


@pytest.mark.parametrize("attach", [by_callback, by_callback_of_all, by_function])
def test_what_was_being_told_is_told_again(folder: str, attach: Callable[..., None]) -> None:
    db = opened(folder)
    told: list[int] = []

    class Killed(BaseException):
        pass

    def take(k: int) -> None:
        told.append(k)
        if k == 5:
            raise Killed

    attach(db, take)
    db.push("S", [(2,), (3,)], ts=[1, 2])
    with pytest.raises(Killed):
        db.push("S", [(4,), (5,), (6,)], ts=[3, 4, 5])
    assert db.log is not None
    db.log.stop()
    db.abandon()
    with opened(folder) as db:
        attach(db, told.append)
        db.push("S", (7,), ts=6)
    assert set(told) == {2, 3, 4, 5, 6, 7}
    assert told.count(2) == told.count(3) == 1
    assert told[-4:] == [4, 5, 6, 7]


def test_what_was_pushed_is_on_disk_before_it_is_told(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(folder) as db:
        log = db.log
        assert log is not None
        synced: list[bool] = []
        by_callback(db, lambda k: synced.append(log.is_synced))
        db.queries["q"].on_change(lambda change: None)
        db.push("S", (2,), ts=1)
        db.query("SELECT k FROM S", name="r").into(lambda table: synced.append(log.is_synced))
        db.push("S", (3,), ts=2)
        assert synced == [True, True, True]


def test_a_callback_may_push(folder: str) -> None:
    with opened(folder) as db:
        by_callback(db, lambda k: db.push("S", (k + 1,), ts=k) if k < 5 else None)
        db.push("S", (2,), ts=1)
        assert db.position("S") == 4
    with opened(folder) as db:
        assert db.position("S") == 4
        assert db.queries["q"].results == 4


def test_a_callback_may_close_its_query(folder: str) -> None:
    with opened(folder) as db:
        by_callback(db, lambda k: db.queries["q"].close())
        db.push("S", (2,), ts=1)
    with minidsms.connect(folder) as db:
        assert not db.queries


def test_a_checkpoint_waits_until_what_was_taken_has_been_told(folder: str) -> None:
    """Another thread makes one while a callback is at work; the callback never ends, and is told again."""
    import threading

    db = opened(folder)
    is_telling, may_end = threading.Event(), threading.Event()

    def slow(k: int) -> None:
        is_telling.set()
        may_end.wait(240)

    by_callback(db, slow)
    pushing = threading.Thread(target=db.push, args=("S", (2,)), kwargs={"ts": 1})
    pushing.start()
    assert is_telling.wait(240)
    making = threading.Thread(target=db.checkpoint)
    making.start()
    db.push("S", (3,), ts=2)
    assert making.is_alive()
    may_end.set()
    pushing.join()
    making.join()
    assert db.queries["q"].position == 2
    db.close()
    with opened(folder) as db:
        assert db.queries["q"].fetch() == []


def test_a_callback_cannot_make_a_checkpoint(folder: str) -> None:
    with opened(folder) as db:
        by_callback(db, lambda k: db.checkpoint())
        with pytest.raises(minidsms.Error, match="a callback cannot"):
            db.push("S", (2,), ts=1)


def test_no_checkpoint_forgets_what_a_callback_was_not_told(folder: str) -> None:
    class Killed(BaseException):
        pass

    def fail(k: int) -> None:
        raise Killed

    db = opened(folder)
    by_callback(db, fail)
    with pytest.raises(Killed):
        db.push("S", [(2,), (3,)], ts=[1, 2])
    with pytest.raises(minidsms.Error, match="open the folder again"):
        db.checkpoint()
    assert db.log is not None
    db.log.stop()
    db.abandon()
    with opened(folder) as db:
        assert [c.row for c in db.queries["q"].fetch()] == [(2,), (3,)]


def test_a_receiver_that_is_gone_is_told_with_the_way_out_last(folder: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with opened(folder) as db:
            db.execute(f"CREATE QUERY away AS SELECT k FROM S INTO '{place}' FORMAT json")
    with opened(folder) as db:
        assert db.warnings[0].endswith("; its answers wait to be fetched\nhelp: start the other side first")


class Receiver:
    """Takes lines over TCP: what comes again replaces what it has from there on."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int]] = []
        self.again = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self._has_settled = threading.Event()
        self.place = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        """Take what one connection after the other brings."""
        while True:
            connected, _ = self._server.accept()
            with connected, connected.makefile("rb") as lines:
                for line in lines:
                    if line == b"settle":
                        self._has_settled.set()
                    elif line == b"end":
                        return
                    else:
                        self._take(json.loads(line))

    def _take(self, told: dict[str, int]) -> None:
        number = told["_position"]
        assert number <= len(self.rows), "something is missing"
        self.again += len(self.rows) - number
        self.rows[number:] = [(told["_ts"], told["n"])]

    def say(self, word: bytes) -> None:
        with socket.create_connection(self._server.getsockname()) as own:
            own.sendall(word)

    def settle(self) -> None:
        """Return when all connections so far have been read to their ends."""
        self._has_settled.clear()
        self.say(b"settle")
        assert self._has_settled.wait(30)

    def end(self) -> None:
        self.say(b"end")
        self._thread.join()
        self._server.close()


def test_a_receiver_of_lines_that_drops_repetitions_has_every_answer_once(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver()
    connected: list[TcpWriter] = []
    monkeypatch.setattr("minidsms.sinks.tcp_output.register", connected.append)
    with minidsms.connect(folder) as first:
        asked = f"INTO '{receiver.place}' WITH (position = true)"
        first.execute(f"CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT SUM(k) AS n FROM S [RANGE 3] {asked}")
    for at in range(6, 24):
        receiver.settle()
        disk = Disk(os.path.dirname(folder), at, Random(at))
        with crashing(disk):
            db = minidsms.connect(folder)
            assert isinstance(db, DurableConnection)
            try:
                for k in range(db.position("S"), db.position("S") + 3):
                    db.push("S", (k,), ts=k)
                db.close()
            except Crash:
                end_process(db)
                raise
        disk.lose()
        while connected:
            connected.pop().discard()  # as the system does
    receiver.settle()
    with minidsms.connect(folder) as last:
        n = last.position("S")
    receiver.settle()
    receiver.end()
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        q = db.query("SELECT SUM(k) AS n FROM S [RANGE 3]")
        db.push("S", [(k,) for k in range(n)], ts=range(n))
        assert Counter(receiver.rows) == Counter((change.ts, change.row[0]) for change in q.fetch())
    assert receiver.again


def test_a_function_is_told_the_numbers_of_answers_and_a_callback_how_many_it_was_told(folder: str) -> None:
    numbers: list[int] = []
    counts: list[int] = []
    for k in range(2, 4):
        with opened(folder) as db:
            db.queries["q"].into(lambda table: numbers.extend(table["_position"].to_pylist()), position=True)
            db.push("S", [(k,), (k,)], ts=k)
    with opened(folder) as db:
        q = db.queries["q"]
        q.on_change(lambda change: counts.append(q.told))
        db.push("S", [(4,), (4,)], ts=4)
    assert numbers == [0, 1, 2, 3] and counts == [5, 6]


def test_a_callback_of_one_query_takes_nothing_from_the_file_of_another(folder: str, tmp_path: Path) -> None:
    """Whose answers the log does not say are there, until it has been synced."""
    db = opened(folder)
    db.execute(f"CREATE QUERY r AS SELECT k FROM S INTO '{tmp_path / 'r.csv'}'")
    by_callback(db, lambda k: None)
    with marking(1e9):
        for k in range(5):
            db.push("S", (k,), ts=k)
        end_process(db)
    os.truncate(tmp_path / ".r.csv.kept", len("_ts,_sign,k\n"))
    with opened(folder) as db:
        assert not db.warnings
        db.execute("DROP QUERY r")
    assert (tmp_path / "r.csv").read_text().split() == ["_ts,_sign,k", *(f"{k},1,{k}" for k in range(5))]


@pytest.mark.parametrize("call", ["process", "finish_unfed"])
def test_other_threads_may_call_while_a_callback_is_told(folder: str, call: str) -> None:
    others: list[int] = []

    def take(k: int) -> None:
        other = threading.Thread(target=lambda: others.append(db.position("S")), daemon=True)
        other.start()
        other.join(timeout=10)

    with opened(folder) as db:
        by_callback(db, take)
        db.push("S", (2,), ts=1, block=False)
        getattr(db, call)()
        assert others == [1]
