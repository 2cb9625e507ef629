"""What goes on while the user types goes on, whatever fails beside it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from minidsms.shell.session import Session
from minidsms.shell.toolbar import with_work
from minidsms.shell.worker import Turn, Worker
from tests.shell.sessions import ROADS, session_of

_ROADS = "CREATE RELATION Roads (road TEXT, speed_limit FLOAT);"


@pytest.mark.parametrize(
    "error", [RuntimeError("Event loop is closed"), AttributeError("call_soon_threadsafe"), SystemExit("end")]
)
def test_feeds_go_on_after_a_drawing_that_failed(tmp_path: Path, error: BaseException) -> None:
    (tmp_path / "roads.csv").write_text(ROADS)
    failed = threading.Event()

    def changed() -> None:
        if not failed.is_set():
            failed.set()
            raise error

    session, screen = session_of(_ROADS)
    feed(session, tmp_path, changed, failed)
    assert str(error) in screen.take("error")
    assert session.db.stream_input("Roads").counters.accepted == 2
    session.close()


def test_feeds_go_on_after_a_function_that_would_end_the_program(tmp_path: Path) -> None:
    (tmp_path / "roads.csv").write_text(ROADS)
    failed = threading.Event()
    session, screen = session_of(_ROADS)

    def end(session: Session) -> None:
        failed.set()
        raise SystemExit("the program is to end")

    feed(session, tmp_path, lambda: None, failed, end)
    assert "SystemExit: the program is to end" in screen.take("error")
    assert session.db.stream_input("Roads").counters.accepted == 2
    session.close()


@pytest.mark.parametrize("amid", ["acquire", "waits", "body", "release"])
def test_an_interrupt_at_any_moment_leaves_the_turn_to_others(amid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = Turn()
    lock = turn._lock
    asked = []

    class Torn:
        """The lock, in whose calls an interrupt comes when they have been carried out."""

        def __getattr__(self, name: str) -> object:
            def call(*args: object, **options: object) -> object:
                result = getattr(lock, name)(*args, **options)
                asked.append(name)
                if name == amid and asked.count(name) == 1:
                    raise KeyboardInterrupt
                return result

            return call

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(turn, "_lock", Torn())
    if amid == "waits":
        monkeypatch.setattr("minidsms.shell.worker.LONG_S", 0.01)
        other = threading.Thread(target=lambda: (lock.acquire(), failed.wait(), lock.release()))
        failed = threading.Event()
        other.start()
    with pytest.raises(KeyboardInterrupt), turn.foreground(interrupt):
        if amid == "body":
            interrupt()
    turn.let_go()
    if amid == "waits":
        failed.set()
        other.join()
    monkeypatch.setattr(turn, "_lock", lock)
    took = []

    def take() -> None:
        with turn.background():
            took.append(True)

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    thread.join(60)
    assert took


def test_a_watched_query_that_the_page_drops_is_watched_no_more() -> None:
    session, screen = session_of(
        f"{_ROADS} CREATE QUERY roads_now AS SELECT road FROM Roads;\n.mode table\n.watch roads_now"
    )
    worker = Worker(session, Turn(), lambda: None, lambda: 20)
    session.db.push("Roads", ("A1", 120.0))
    worker._step()
    assert len(worker.pictures) == 1
    session.db.queries["roads_now"].close()
    worker.ask(lambda session: None)  # without a rest before the next drawing
    worker._step()
    assert not screen.take("error") and not worker.pictures and not session.watches.names()
    session.close()


def test_what_an_interrupt_does_is_told_at_every_long_step_though_nothing_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, _ = session_of(_ROADS)
    worker = Worker(session, Turn(), lambda: None, lambda: 20)
    monkeypatch.setattr(Worker, "at_work_s", 2.0)
    worker.toolbar = [("watch", "Ctrl-C stops watching q1")]

    def told(is_watched: bool, is_fed: bool) -> list[str]:
        return [text for _, text in with_work(worker, is_watched, is_fed)]

    assert told(True, True) == ["Ctrl-C stops watching q1", "at work for 2 s"]
    assert told(False, True) == ["at work for 2 s; Ctrl-C stops the feed"]
    assert told(False, False) == ["at work for 2 s"]
    worker.ask(lambda session: None)
    assert told(True, True) == ["Ctrl-C stops watching q1", "at work for 2 s"]
    assert told(False, True) == ["at work for 2 s; Ctrl-C stops the feed"]
    assert told(False, False) == ["at work for 2 s; Ctrl-C ends the query"]
    session.close()


def feed(
    session: Session,
    folder: Path,
    changed: Callable[[], None],
    failed: threading.Event,
    asked: Callable[[Session], None] = lambda session: None,
) -> None:
    """Read a file once a worker has done what is asked, and something has failed in it."""
    turn = Turn()
    worker = Worker(session, turn, changed, lambda: 20)
    worker.ask(asked)
    worker.start()
    try:
        assert failed.wait(60.0)
        with turn.foreground():
            session.run_text(f".feed Roads FROM '{folder}/roads.csv'")
        until = time.monotonic() + 60.0
        while session.feeds and worker.is_alive() and time.monotonic() < until:
            worker.wake()
            time.sleep(0.01)
    finally:
        worker.end()
