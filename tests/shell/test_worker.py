"""What goes on while the user types goes on, whatever fails beside it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from minidsms.shell.worker import Turn, Worker
from tests.shell.sessions import ROADS, session_of


@pytest.mark.parametrize("error", [RuntimeError("Event loop is closed"), AttributeError("call_soon_threadsafe")])
def test_feeds_go_on_after_a_drawing_that_failed(tmp_path: Path, error: Exception) -> None:
    (tmp_path / "roads.csv").write_text(ROADS)
    failed = threading.Event()

    def changed() -> None:
        if not failed.is_set():
            failed.set()
            raise error

    session, screen = session_of("CREATE RELATION Roads (road TEXT, speed_limit FLOAT);")
    turn = Turn()
    worker = Worker(session, turn, changed, lambda: 20)
    worker.start()
    try:
        assert failed.wait(60.0)
        with turn.foreground():
            session.run_text(f".feed Roads FROM '{tmp_path}/roads.csv'")
        until = time.monotonic() + 60.0
        while session.feeds and time.monotonic() < until:
            worker.wake()
            time.sleep(0.01)
    finally:
        worker.end()
    assert str(error) in screen.take("error")
    assert session.db.stream_input("Roads").counters.accepted == 2
    session.close()
