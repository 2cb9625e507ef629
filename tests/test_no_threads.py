"""What runs beside the caller, where the system gives no more threads: that is told, or the caller does it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import minidsms
from minidsms.cql.errors import Error
from minidsms.machine_code import ahead
from minidsms.process.background import FEWEST_ROWS, Background
from minidsms.shell.feed import open_feed
from minidsms.sources.read_ahead import ReadAhead
from tests.waiting import PATIENCE_S

_NONE = "no thread can be started: can't start new thread"


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Called, the threads are spent for whom minidsms starts them; undone by the fixture of pytest."""
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith(("minidsms", "live view")):
            raise RuntimeError("can't start new thread")
        start(thread)

    return lambda: monkeypatch.setattr(threading.Thread, "start", refuse)


def answered(call: Callable[[], object]) -> object:
    """What a call gives, or the Error it raises; it fails where the call waits for ever."""
    given: list[object] = []

    def go() -> None:
        try:
            given.append(call())
        except Error as error:
            given.append(str(error).splitlines()[0].removeprefix("error: "))

    caller = threading.Thread(target=go, daemon=True)
    caller.start()
    caller.join(30.0)
    assert given, "it waits"
    return given[0]


def test_an_archive_that_cannot_be_written_is_told_and_written_when_it_can(
    tmp_path: Path, spent: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (v INTEGER)")
    db.archive("S", tmp_path)
    spent()
    assert answered(lambda: db.push("S", (1,), ts=1)) == 1
    assert answered(db.flush) == _NONE
    monkeypatch.undo()
    assert answered(lambda: db.push("S", (2,), ts=2)) == 1
    assert answered(db.flush) is None
    db.close()
    with minidsms.connect() as again:
        again.execute("CREATE STREAM S (v INTEGER)")
        q = again.query("SELECT v FROM S")
        again.replay(tmp_path)
        assert [change.row for change in q.fetch()] == [(1,), (2,)]


def test_an_archive_that_was_never_written_is_closed_with_an_error(tmp_path: Path, spent: Callable[[], None]) -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (v INTEGER)")
    db.archive("S", tmp_path)
    spent()
    answered(lambda: db.push("S", (1,), ts=1))
    assert answered(db.close) == _NONE
    assert db.is_closed


def test_a_push_beyond_the_room_of_the_archiver_does_not_wait_for_nobody(
    tmp_path: Path, spent: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minidsms.archive.archiver.LIMIT_BYTES", 1)
    db = minidsms.connect()
    db.execute("CREATE STREAM S (v INTEGER)")
    db.archive("S", tmp_path)
    spent()
    answered(lambda: db.push("S", (1,), ts=1))
    assert answered(lambda: db.push("S", (2,), ts=2)) == _NONE
    assert db.stream_input("S").counters.accepted == 1
    monkeypatch.undo()
    db.close()


def test_work_behind_the_engine_is_done_by_the_caller(spent: Callable[[], None]) -> None:
    background, done = Background(), list[int]()
    spent()
    for i in range(5):
        answered(lambda i=i: background.do(lambda: done.append(i), 2 * FEWEST_ROWS))  # type: ignore[misc]
    answered(background.settle)
    answered(background.finish)
    assert done == [*range(5)]


def test_blocks_are_read_by_the_caller(spent: Callable[[], None]) -> None:
    spent()
    ahead = ReadAhead(iter(range(10)), str)
    assert list(ahead) == [*map(str, range(10))]
    ahead.close()


@pytest.mark.parametrize("durability", ["sync", "batch"])
def test_what_is_pushed_into_a_folder_is_on_disk(tmp_path: Path, spent: Callable[[], None], durability: str) -> None:
    spent()
    db = minidsms.connect(tmp_path / "db", durability=durability)
    db.execute("CREATE STREAM S (v INTEGER)")
    assert answered(lambda: db.push("S", {"v": [*range(100_000)]}, ts=[*range(100_000)])) == 100_000
    assert db.log.is_synced  # type: ignore[attr-defined]
    answered(db.close)
    with minidsms.connect(tmp_path / "db") as again:
        assert again.position("S") == 100_000


def test_an_interval_of_checkpoints_that_cannot_be_kept_is_refused(tmp_path: Path, spent: Callable[[], None]) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        spent()
        assert answered(lambda: db.execute("SET checkpoint_interval = '1 SECOND'")) == _NONE
        assert db.settings["checkpoint_interval"] is None
        db.execute("CREATE STREAM S (v INTEGER)")


def test_live_sources_and_servers_are_refused_and_can_be_tried_again(
    tmp_path: Path, spent: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.csv"
    path.write_text("v,ts\n1,1\n")
    with minidsms.connect() as db:
        options = "follow = true, stop_after = 10 MILLISECONDS"
        db.execute(f"CREATE STREAM S (v INTEGER, ts INTEGER) TIMESTAMP BY ts FROM '{path}' WITH ({options})")
        q = db.query("SELECT v FROM S")
        spent()
        assert answered(db.run) == _NONE
        assert "waiting to run" in str(db.execute("SHOW SOURCES"))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        into = f"CREATE QUERY out AS SELECT v FROM S INTO 'tcp-listen://127.0.0.1:{port}'"
        assert answered(lambda: db.execute(into)) == _NONE
        monkeypatch.undo()
        db.execute(into)
        db.run()
        assert [change.row for change in q.fetch()] == [(1,)]


def test_a_live_source_that_is_declared_while_others_are_read_starts_when_it_can(
    tmp_path: Path, spent: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.csv"
    path.write_text("v,ts\n1,1\n")
    source = f"(v INTEGER, ts INTEGER) TIMESTAMP BY ts FROM '{path}' WITH (follow = true, stop_after = 10 MILLISECONDS)"
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S {source}")
        db.run()
        spent()
        db.execute(f"CREATE STREAM T {source}")
        q = db.query("SELECT v FROM T")
        assert answered(db.run) == _NONE
        monkeypatch.undo()
        answered(db.run)
        assert [change.row for change in q.fetch()] == [(1,)]


def test_a_feed_of_which_not_all_can_start_closes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = threading.Thread.start, list[threading.Thread]()

    def start_one(thread: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        start(thread)
        started.append(thread)

    with minidsms.connect() as db:
        for name in "ST":
            db.execute(f"CREATE STREAM {name} (v INTEGER, ts INTEGER) TIMESTAMP BY ts")
        monkeypatch.setattr(threading.Thread, "start", start_one)
        files = [(name, "tcp-listen://127.0.0.1:0", None) for name in "ST"]
        with pytest.raises(Error, match="no thread can be started"):
            open_feed(db, files, None, time.monotonic).step()
    started[0].join(PATIENCE_S)
    assert not started[0].is_alive()


def test_the_page_is_refused_and_leaves_its_port(spent: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with minidsms.connect() as db:
        spent()
        assert answered(lambda: db.ui(port)) == _NONE
        monkeypatch.undo()
        assert db.ui(port).port == port


def test_progress_of_spark_that_cannot_be_told_is_refused(
    spent: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = pytest.importorskip("minidsms.spark.progress")
    monkeypatch.setattr(progress, "is_remote", lambda spark: False)
    spent()
    with pytest.raises(Error, match=_NONE), progress.watched(None, print):
        pass


def test_a_process_that_nobody_could_wait_for_is_ended(
    spent: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    process = ahead._process(["minidsms.kernels.none:none"])
    assert process is not None
    monkeypatch.setattr(ahead, "_process", lambda arguments: process)
    monkeypatch.setattr(ahead, "_is_possible", lambda: True)
    spent()
    assert not ahead.ask("minidsms.kernels.none:none")
    assert process.returncode is not None and not ahead.is_under_way("minidsms.kernels.none:none")
