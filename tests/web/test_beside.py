"""What the page has running beside the engine goes on, whatever fails and whoever comes and goes."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.connection import Connection
from minidsms.cql.errors import Error
from minidsms.shell.feed import Feed
from tests.waiting import PATIENCE_S, soon
from tests.web.pages import Page

from minidsms.web import application, clients, feeding  # isort: skip  (needs the extra)
from minidsms.web.server import Visualizer  # isort: skip


@pytest.fixture
def cars(tmp_path: Path) -> str:
    path = tmp_path / "cars.csv"
    path.write_text("at,car\n1,7\n2,8\n")
    return str(path)


@pytest.fixture
def timed(db: Connection) -> Connection:
    db.execute("CREATE STREAM Cars (at TIMESTAMP, car INTEGER) TIMESTAMP BY at")
    return db


@pytest.mark.parametrize("kind", [OSError, SystemExit])
def test_feeds_go_on_after_one_that_raised_what_is_no_error_of_ours(
    timed: Connection, cars: str, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    page = Page(timed)
    step = Feed.step

    def fail(feed: Feed) -> float | None:
        monkeypatch.setattr(Feed, "step", step)
        raise kind("the disk is gone")

    monkeypatch.setattr(Feed, "step", fail)
    page.tell("/api/feed", action="file", name="Cars", path=cars)
    soon(lambda: page.shown.feeding.told()[0]["state"] == "ended")
    assert page.shown.feeding.told()[0]["error"] == f"{kind.__name__}: the disk is gone"
    page.tell("/api/feed", action="file", name="Cars", path=cars)
    soon(lambda: timed.stream_input("Cars").counters.accepted == 2)


@pytest.mark.parametrize("speed", [float("inf"), float("nan"), -1.0, "fast"])
def test_what_is_no_speed_is_refused(timed: Connection, cars: str, speed: Any) -> None:
    page = Page(timed)
    assert page.request("POST", "/api/feed", {"action": "file", "name": "Cars", "path": cars, "speed": speed})[0] == 400
    assert not page.shown.feeding.told()


def test_a_speed_beyond_all_bounds_is_as_fast_as_possible(timed: Connection, cars: str) -> None:
    page = Page(timed)
    page.tell("/api/feed", action="file", name="Cars", path=cars, speed=1e300)
    soon(lambda: timed.stream_input("Cars").counters.accepted == 2)


def test_feeds_that_begin_at_once_are_all_there(timed: Connection, cars: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(timed)
    feeding = page.shown.feeding
    feeding.stop()  # steps are taken by nobody
    feeding._is_over = False
    feeding.feed_file("Cars", cars, None, None)
    other = threading.Thread(target=feeding.feed_file, args=("Cars", cars, None, None))

    def has_ended(feed: Feed) -> bool:
        if other.ident is None:
            other.start()
            other.join(0.2)
        return False

    monkeypatch.setattr(
        Feed, "has_ended", property(has_ended, lambda feed, value: vars(feed).update(has_ended=value)), raising=False
    )
    feeding.feed_file("Cars", cars, None, None)
    other.join()
    assert [each["number"] for each in feeding.told()] == [1, 2, 3]


def test_no_more_pages_listen_than_may_though_they_come_at_once(
    db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "_ALIVE_S", 0.05)
    page = Page(db)
    listeners = page.shown.application.listeners
    opened = []
    with db.lock:
        for _ in range(3 * application._MOST_LISTENERS):
            opened.append(http.client.HTTPConnection("127.0.0.1", page.shown.port, timeout=PATIENCE_S))
            opened[-1].request("GET", "/events", headers={"Cookie": page.cookie})
        statuses = [each.getresponse().status for each in opened]
    assert statuses.count(200) == application._MOST_LISTENERS == len(listeners)
    for each in opened:
        each.close()
    soon(lambda: not len(listeners))
    assert page.events("catalog")


def test_news_for_a_loop_that_was_just_closed_go_nowhere(db: Connection) -> None:
    class Loop:
        def is_closed(self) -> bool:
            return False  # as a moment before

        def call_soon_threadsafe(self, call: Any) -> None:
            raise RuntimeError("Event loop is closed")

    listeners = application.Listeners()
    listeners._waiting[asyncio.Event()] = Loop()  # type: ignore[assignment]
    listeners.tell()


@pytest.mark.parametrize("query", ["SELECT ISTREAM(l) FROM L [NOW]", "SELECT l FROM L [RANGE 10]"])
def test_nested_values_are_exported_as_json(query: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM L (l INTEGER[])")
        db.query(query, name="q")
        page = Page(db)
        page.ask("/api/answer", query="q")  # from now on a stream's changes are kept
        db.push("L", [([1, 2],), (None,)], ts=[1, 1])
        db.advance(2)
        status, _, body = page.request("GET", "/export/q?format=csv")
        assert status == 200 and b'"[1, 2]"' in body


def test_what_is_exported_of_a_stream_has_the_types_of_its_columns() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM M (m MAP(TEXT, INTEGER), at TIMESTAMP, n DECIMAL(4, 1))")
        db.query("SELECT ISTREAM(m, at, n) FROM M [NOW]", name="q")
        page = Page(db)
        page.ask("/api/answer", query="q")
        db.push("M", [({"x": 1}, 5, 1.5), ({"y": 2}, 6, None)], ts=[1, 1])
        db.advance(2)
        _, _, body = page.request("GET", "/export/q?format=csv")
        assert body.decode().splitlines() == [
            '"_ts","m","at","n"',
            '1,"{""x"": 1}",1970-01-01 00:00:00.005Z,1.5',
            '1,"{""y"": 2}",1970-01-01 00:00:00.006Z,',
        ]
        db.execute("CREATE QUERY none AS SELECT ISTREAM(m, at, NULL AS n) FROM M [NOW]")
        assert page.request("GET", "/export/none?format=csv")[2] == b'"_ts","m","at","n"\n'


def test_a_column_called_like_the_instant_is_exported(db: Connection) -> None:
    db.query("SELECT ISTREAM(car AS _ts, road) FROM Pos [NOW]", name="q")
    page = Page(db)
    page.ask("/api/answer", query="q")
    db.push("Pos", (7, "A1", 1.0), ts=5)
    db.advance(6)
    _, _, body = page.request("GET", "/export/q?format=csv")
    assert body.decode().splitlines() == ['"_ts","_ts_2","road"', '5,7,"A1"']


def test_two_threads_that_ask_for_the_page_at_once_get_the_same(
    db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Visualizer] = []
    other = threading.Thread(target=lambda: shown.append(db.ui()))
    start = Visualizer.start

    def starting(visualizer: Visualizer) -> Visualizer:
        if other.ident is None:
            other.start()
            other.join(0.2)
        return start(visualizer)

    monkeypatch.setattr(Visualizer, "start", starting)
    shown.append(db.ui())
    other.join()
    assert shown[0] is shown[1]


def test_a_page_that_is_opened_while_the_connection_is_closed_ends_with_it(
    db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, opened = db.ui(), list[Visualizer]()
    stop = before.stop

    def stopping() -> None:
        stop()
        if not opened:
            opened.append(db.ui())

    monkeypatch.setattr(before, "stop", stopping)
    db.close()
    assert opened[0].is_over and opened[0] is not before


def test_the_page_goes_on_where_the_stream_of_a_feed_was_dropped(timed: Connection, cars: str) -> None:
    page = Page(timed)
    page.tell("/api/feed", action="file", name="Cars", path=cars)
    soon(lambda: page.shown.feeding.told()[0]["state"] == "ended")
    assert page.tell("/api/run", text="DROP STREAM Cars; CREATE STREAM Trams (tram INTEGER)")["error"] is None
    page.shown.observer.look()
    assert page.shown.feeding.told()[0]["rows"] == 2
    assert '"Trams"' in page.shown.observer.parts["catalog"].text


def test_a_feed_ends_with_its_stream_and_feeds_no_other_of_its_name(timed: Connection, cars: str) -> None:
    page = Page(timed)
    feeding = page.shown.feeding
    page.tell("/api/feed", action="file", name="Cars", path=cars, speed=0.001)
    text = "DROP STREAM Cars; CREATE STREAM Cars (at TIMESTAMP, car INTEGER) TIMESTAMP BY at"
    assert page.tell("/api/run", text=text)["error"] is None
    soon(lambda: feeding.told()[0]["state"] == "ended")
    assert feeding.told()[0]["error"].startswith("Cars has been dropped")
    assert timed.stream_input("Cars").counters.accepted == 0


def listening(before: set[threading.Thread]) -> list[threading.Thread]:
    """The threads of servers of lines that have begun since then: other tests may have some."""
    new = set(threading.enumerate()) - before
    return [each for each in new if each.name.startswith("minidsms tcp-listen")]


def test_a_page_that_ends_closes_what_its_feeds_read(timed: Connection) -> None:
    page = Page(timed)
    before = set(threading.enumerate())
    page.tell("/api/feed", action="file", name="Cars", path="tcp-listen://127.0.0.1:0")
    (thread,) = listening(before)
    page.shown.stop()
    thread.join(60)
    assert not thread.is_alive()


def test_a_feed_that_begins_as_the_page_ends_is_closed(timed: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, opened = timed.ui(), feeding.open_feed
    before = set(threading.enumerate())

    def opening(*given: Any) -> Feed:
        feed = opened(*given)
        shown.stop()
        return feed

    monkeypatch.setattr(feeding, "open_feed", opening)
    with pytest.raises(Error, match="the page has ended"):
        shown.feeding.feed_file("Cars", "tcp-listen://127.0.0.1:0", None, None)
    soon(lambda: not listening(before))


def test_a_page_that_is_opened_while_a_connection_is_closed_in_vain_ends_with_it(
    db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = list[Visualizer]()

    def fail() -> None:
        opened.append(db.ui())  # as another thread may have done before the lock was taken
        raise Error("the sink cannot be written")

    monkeypatch.setattr(db.query("SELECT car FROM Pos [NOW]"), "close_sink", fail)
    with pytest.raises(Error, match="the sink"):
        db.close()
    assert db.is_closed and opened[0].is_over


BEGINNINGS = [
    b"",
    b"GET /health HT",
    b"POST /api/run HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAuthorization: Bearer TOKEN\r\n"
    b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
]
BEHIND_ANOTHER = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAuthorization: Bearer TOKEN\r\n\r\n" + BEGINNINGS[-1]
REFUSED = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n"


def test_who_asks_for_half_is_hung_up_on_and_few_are_connected(db: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each held a descriptor for as long as it liked."""
    monkeypatch.setattr(clients, "MOST_CLIENTS", 6)
    shown = db.ui()
    connections = shown._server.server_state.connections
    beginnings = [text.replace(b"PORT", b"%d" % shown.port) for text in BEGINNINGS]
    beginnings = [text.replace(b"TOKEN", shown.guard.token.encode()) for text in beginnings]
    for patience_s in (3600.0, 0.05):
        monkeypatch.setattr(clients, "PATIENCE_S", patience_s)
        made = []
        for i in range(9):
            made.append(socket.create_connection(("127.0.0.1", shown.port), PATIENCE_S))
            with contextlib.suppress(ConnectionError):
                made[-1].sendall(beginnings[i % 3])
        for client in made[6:] if patience_s > 1 else made:
            with contextlib.suppress(ConnectionError):
                assert client.recv(1) == b""
        for client in made:
            client.close()
        soon(lambda: not connections)
    monkeypatch.undo()
    assert Page(db).request("GET", "/health")[0] == 200


def test_who_asks_for_half_behind_a_request_or_is_refused_is_hung_up_on(
    db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first stayed connected for good, and so did who took none of the refusals it had asked for."""
    monkeypatch.setattr(clients, "PATIENCE_S", 0.5)
    shown = db.ui()
    for text in (BEHIND_ANOTHER, REFUSED * 10):
        asked = text.replace(b"PORT", b"%d" % shown.port).replace(b"TOKEN", shown.guard.token.encode())
        with socket.create_connection(("127.0.0.1", shown.port), PATIENCE_S) as client:
            client.sendall(asked)
            answer = bytearray()
            with contextlib.suppress(ConnectionError):
                while data := client.recv(1 << 16):
                    answer += data
            assert answer.count(b"HTTP/1.1 ") <= 1


def test_nobody_is_connected_to_a_page_that_was_stopped(db: Connection) -> None:
    """Whose request was under way was, as long as the page was referred to."""
    shown = db.ui()
    asked = BEGINNINGS[-1].replace(b"PORT", b"%d" % shown.port).replace(b"TOKEN", shown.guard.token.encode())
    with socket.create_connection(("127.0.0.1", shown.port), PATIENCE_S) as client:
        client.sendall(asked)
        soon(lambda: bool(shown._server.server_state.tasks))
        shown.stop()
        shown._thread.join()
        assert not shown._server.server_state.connections
        with contextlib.suppress(ConnectionError):
            client.recv(1000)
            assert client.recv(1000) == b""
