"""Sources whose rows come when they come: sockets, growing files, pipes; what waits is bounded, and they stop."""

from __future__ import annotations

import errno
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import minidsms
from minidsms.cql.errors import CqlError, Error
from minidsms.sources.blocks import Block
from minidsms.sources.inbox import Inbox
from minidsms.sources.tcp_source import TcpReader, accepted
from tests.waiting import PATIENCE_S, soon


@pytest.fixture(autouse=True)
def everything_is_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No thread of a test's connections outlives the test."""
    made: list[minidsms.Connection] = []
    connect = minidsms.connect

    def connecting(**options: Any) -> minidsms.Connection:
        made.append(connect(**options))
        return made[-1]

    monkeypatch.setattr(minidsms, "connect", connecting)
    yield
    for db in made:
        db.close()


def port_of(path: str) -> tuple[str, int]:
    host, _, port = path.split("://")[1].rpartition(":")
    return host, int(port)


def send(path: str, *parts: bytes) -> None:
    with socket.create_connection(port_of(path)) as client:
        for part in parts:
            client.sendall(part)


def rows(query: Any) -> list[Any]:
    return [c.row for c in query.fetch()]


class Running:
    """A connection that runs in a thread until it is stopped."""

    def __init__(self, db: minidsms.Connection) -> None:
        self.db = db
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.db.run()
        except BaseException as error:
            self.failure = error

    def __enter__(self) -> Running:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.db.stop()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


def listening(format: str = "csv", extra: str = "", options: str = "clients = 1") -> tuple[minidsms.Connection, str]:
    db = minidsms.connect()
    db.execute(
        f"CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts {extra} "
        f"FROM 'tcp-listen://127.0.0.1:0' FORMAT {format} WITH ({options})"
    )
    return db, db.reading.sources[0][0].path


# --------------------------------------------------------------------------------------------------------------- TCP


@pytest.mark.parametrize("format", ["csv", "json"])
def test_lines_of_a_client_are_rows_however_they_are_cut(format: str) -> None:
    db, path = listening(format)
    q = db.query("SELECT ts, v FROM S")
    lines = {
        "csv": b"1,10\n2,20\r\n\n3,\n",
        "json": b'{"ts":1,"v":10}\n{"v":20,"ts":2}\n\n{"ts":3}\n',
    }[format]
    thread = threading.Thread(target=send, args=(path, *[bytes([b]) for b in lines]))
    thread.start()
    db.run()
    thread.join()
    assert rows(q) == [(1, 10), (2, 20), (3, None)]


def test_a_last_line_without_its_end_counts_and_a_heartbeat_closes_instants() -> None:
    db, path = listening(options="clients = 2")
    q = db.query("SELECT COUNT(*) FROM S [RANGE 5]")
    with Running(db):
        with socket.create_connection(port_of(path)) as client:
            client.sendall(b"1,1\n_heartbeat,100\n")
            soon(lambda: q.closed_until == 100)
            assert [(c.ts, c.sign, c.row) for c in q.fetch()] == [
                (1, 1, (1,)),
                (6, -1, (1,)),
                (6, 1, (0,)),
            ]
            client.sendall(b"200,2")
        soon(lambda: db.stream_input("S").counters.accepted == 2)


def broken_off(connected: socket.socket) -> None:
    """The connection ends without a word."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connected.close()


@pytest.mark.parametrize("is_server", [False, True])
def test_a_line_in_which_the_connection_breaks_is_none(is_server: bool) -> None:
    if is_server:
        server = socket.create_server(("127.0.0.1", 0))
        db = minidsms.connect()
        db.execute("CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts")
        db.feed("S", f"tcp://127.0.0.1:{server.getsockname()[1]}", format="csv", retry=60)
        accepted: list[socket.socket] = []
        threading.Thread(target=lambda: accepted.append(server.accept()[0])).start()
    else:
        db, path = listening()
        accepted = [socket.create_connection(port_of(path))]

    q = db.query("SELECT ts, v FROM S")

    def sending() -> None:
        soon(lambda: bool(accepted))
        accepted[0].sendall(b"1,7\n2,70")
        soon(lambda: db.execute("SHOW SOURCES").rows[0][3] == 4)  # it has read the first line
        broken_off(accepted[0])
        soon(lambda: len(db.stream_input("S").rejected) == 1)
        db.stop()

    thread = threading.Thread(target=sending)
    thread.start()
    db.run()
    thread.join()
    assert rows(q) == [(1, 7)]
    ((text, reason),) = db.stream_input("S").rejected
    assert text == "2,70" and "was cut off" in reason


def test_a_heartbeat_stands_between_the_rows_around_it() -> None:
    db, path = listening("json", "LATE DROP")
    q = db.query("SELECT v FROM S")
    send(path, b'{"ts":1,"v":1}\n{"_heartbeat": 5}\n{"ts":4,"v":4}\n{"ts":6,"v":6}\n')
    db.run()
    assert rows(q) == [(1,), (6,)]
    assert db.stream_input("S").counters.late_dropped == 1


def test_malformed_lines_are_kept_with_their_client_and_line() -> None:
    db, path = listening()
    q = db.query("SELECT v FROM S")
    send(path, b'1,1\nx,2\n3\n"4,4\n5,5\n')
    db.run()
    assert rows(q) == [(1,), (5,)]
    reasons = [reason for _, reason in db.stream_input("S").rejected]
    assert [reason.split(", ")[2].split(":")[0] for reason in reasons] == ["line 2", "line 3", "line 4"]
    assert "a quote is not closed" in reasons[2] and all("client 127.0.0.1:" in reason for reason in reasons)


def test_a_source_whose_lines_cannot_be_parsed_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> NoReturn:
        raise OSError(24, "Too many open files")

    db, path = listening()
    monkeypatch.setattr("minidsms.sources.line_rows.LineRows.read", refuse)
    send(path, b"1,1\n2,2\n")
    with pytest.raises(Error, match="cannot be read: Too many open files"):
        db.run()
    assert "failed" in str(db.execute("SHOW SOURCES"))


def test_a_line_beyond_all_bounds_is_one_malformed_row() -> None:
    db, path = listening()
    q = db.query("SELECT v FROM S")
    send(path, b"1,1\n" + b"9" * (3 << 20) + b"\n2,2\n")
    db.run()
    assert rows(q) == [(1,), (2,)]
    (text, reason) = next(iter(db.stream_input("S").rejected))
    assert "longer than" in reason and len(text) <= 1001


def test_values_no_input_takes_are_kept_and_stop_nothing() -> None:
    db, path = listening()
    q = db.query("SELECT v FROM S")
    send(path, b"1,1\n9223372036854775807,2\n3,3\n")
    db.run()
    assert rows(q) == [(1,), (3,)]
    assert "9223372036854775807" in str(next(iter(db.stream_input("S").rejected)))


def test_run_until_returns_when_a_live_stream_has_passed_the_instant() -> None:
    db, path = listening(options="clients = 5")
    q = db.query("SELECT v FROM S")
    with socket.create_connection(port_of(path)) as client:
        client.sendall(b"1,1\n5,5\n7,7\n")
        db.run(until=5)
        assert rows(q) == [(1,), (5,)]
        client.sendall(b"_heartbeat,20\n")
        db.run(until=20)
        assert rows(q) == [(7,)] and q.closed_until == 20


def test_each_client_has_its_own_header_and_one_that_does_not_fit_is_ignored() -> None:
    db, path = listening(options="clients = 2, header = true")
    q = db.query("SELECT ts, v FROM S")
    with Running(db):
        send(path, b"v,ts\n10,1\n")
        soon(lambda: db.stream_input("S").counters.accepted == 1)
        send(path, b"a,b\n1,2\n3,4\n")
        soon(lambda: db.stream_input("S").ended)
    assert rows(q) == [(1, 10)]
    assert 'no column "ts"' in next(iter(db.stream_input("S").rejected))[1]


def test_a_server_is_read_to_its_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        db = minidsms.connect()
        db.execute(
            "CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts "
            f"FROM 'tcp://127.0.0.1:{server.getsockname()[1]}' FORMAT json"
        )
        connected, _ = server.accept()
        connected.sendall(b'{"ts":1,"v":7}\n')
        connected.close()
    q = db.query("SELECT v FROM S")
    db.run()
    assert rows(q) == [(7,)] and db.stream_input("S").ended


def test_a_server_that_comes_late_and_goes_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    db = minidsms.connect()
    db.execute(
        "CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts "
        f"FROM 'tcp://127.0.0.1:{port}' FORMAT csv WITH (retry = 20 MILLISECONDS)"
    )
    q = db.query("SELECT v FROM S")
    with Running(db):
        soon(lambda: "cannot connect" in str(db.execute("SHOW SOURCES")))
        for value in (1, 2):
            with socket.create_server(("127.0.0.1", port)) as server:
                server.settimeout(PATIENCE_S)
                connected, _ = server.accept()
                connected.sendall(b"%d,%d\n" % (value, value))
                connected.close()
            soon(lambda value=value: db.stream_input("S").counters.accepted == value)  # type: ignore[misc]
    assert rows(q) == [(1,), (2,)]


def test_a_source_that_is_closed_while_it_connects_hangs_up(monkeypatch: pytest.MonkeyPatch) -> None:
    connects, closed = threading.Event(), threading.Event()
    connect = TcpReader._connect

    def connecting(reader: TcpReader) -> socket.socket:
        connects.set()
        assert closed.wait(PATIENCE_S)
        return connect(reader)

    monkeypatch.setattr(TcpReader, "_connect", connecting)
    with socket.create_server(("127.0.0.1", 0)) as server:
        path = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        db = minidsms.connect()
        db.execute(f"CREATE STREAM S (v INTEGER) FROM '{path}' WITH (retry = 1 SECOND)")
        source: Any = db.reading.sources[0][0]
        source.start(lambda: None)
        assert connects.wait(PATIENCE_S)
        source.inbox.close()
        source.feeder.stop()  # as closing does, which waits two seconds for the thread
        closed.set()
        client, _ = server.accept()
        with client:
            client.settimeout(PATIENCE_S)
            assert client.recv(1) == b""


def test_nobody_listening_is_an_error_with_a_place_and_a_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with pytest.raises(CqlError, match=r"cannot connect to 127\.0\.0\.1.*\n.*\n.*\^\^\^(.|\n)*retry = 1 SECOND"):
        minidsms.connect().execute(f"CREATE STREAM S (v INTEGER) FROM 'tcp://127.0.0.1:{port}'")


@pytest.mark.parametrize(
    "path", ["tcp://192.168.0.1:9", "tcp-listen://0.0.0.0:0", "tcp://example.org:80", "tcp://[::]:1"]
)
def test_an_address_off_this_machine_needs_leave(path: str) -> None:
    with pytest.raises(CqlError, match="allow_remote = true"):
        minidsms.connect().execute(f"CREATE STREAM S (v INTEGER) FROM '{path}'")


def test_leave_to_listen_everywhere_can_be_given() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER) FROM 'tcp-listen://0.0.0.0:0' WITH (allow_remote = true)")
        assert db.reading.sources[0][0].path.startswith("tcp-listen://0.0.0.0:")


def test_rows_without_a_timestamp_column_come_at_the_clocks_instant_and_time_goes_on() -> None:
    now = [1000]
    db = minidsms.connect(clock=lambda: now[0])
    db.execute("CREATE STREAM S (v INTEGER) FROM 'tcp-listen://127.0.0.1:0' FORMAT csv")
    q = db.query("SELECT v FROM S [RANGE 10]")
    with Running(db), socket.create_connection(port_of(db.reading.sources[0][0].path)) as client:
        client.sendall(b"7\n")
        soon(lambda: db.stream_input("S").counters.accepted == 1)
        now[0] = 2000
        soon(lambda: q.closed_until >= 1999)
    assert [(c.ts, c.sign) for c in q.fetch()] == [(1000, 1), (1010, -1)]


def test_a_relation_takes_changes_from_lines_and_keeps_those_it_cannot_make() -> None:
    db = minidsms.connect()
    db.execute("CREATE RELATION R (k INTEGER) FROM 'tcp-listen://127.0.0.1:0' FORMAT csv WITH (clients = 1)")
    send(db.reading.sources[0][0].path, b"1,+,5\n2,+,6\n3,-,9\n4,-,5\n")
    db.run()
    relation = db.stream_input("R")
    assert relation.counters.accepted == 3 and relation.counters.rejected == 1
    assert "nothing to delete" in next(iter(relation.rejected))[1]


# ------------------------------------------------------------------------------------------------ bounds and stopping


def test_what_waits_is_bounded_and_the_sender_has_to_wait() -> None:
    inbox: Inbox[str] = Inbox(100)
    put: list[int] = []

    def feed() -> None:
        for i in range(50):
            if not inbox.put("one", Block(b"x" * 30 + b"\n", i)):
                return
            put.append(i)

    thread = threading.Thread(target=feed)
    thread.start()
    soon(lambda: len(put) == 4)
    time.sleep(0.05)  # were there room, another would come
    assert len(put) == 4 and inbox.waiting_bytes == 124
    taken = inbox.take()
    assert taken is not None and len(taken[1].data) == 124
    soon(lambda: len(put) == 8)
    inbox.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive() and inbox.waiting_bytes == 0


def test_a_sender_faster_than_the_engine_is_held_up_by_the_socket() -> None:
    db, path = listening()
    source: Any = db.reading.sources[0][0]
    source.start(lambda: None)  # the thread reads, and nobody takes
    client = socket.create_connection(port_of(path))
    client.settimeout(0.5)
    sent = 0
    with pytest.raises(TimeoutError):
        while sent < 1 << 30:
            sent += client.send(b"1,1\n" * 50_000)
    assert source.inbox.waiting_bytes <= (4 << 20) + (1 << 18)
    db.close()
    client.close()


@pytest.mark.long
def test_many_clients_at_once_lose_and_double_nothing() -> None:
    clients, each = 30, 20_000
    db, path = listening("csv", "SLACK 1000000", f"clients = {clients}")
    q = db.query("SELECT COUNT(*), SUM(v), COUNT(DISTINCT v) FROM S")

    def send_all(first: int) -> None:
        data = b"".join(b"%d,%d\n" % (i, first + i) for i in range(each))
        with socket.create_connection(port_of(path)) as client:
            for start in range(0, len(data), 777):
                client.sendall(data[start : start + 777])

    senders = [threading.Thread(target=send_all, args=(n * each,)) for n in range(clients)]
    for sender in senders:
        sender.start()
    db.run()
    n = clients * each
    assert q.snapshot() == [(n, n * (n - 1) // 2, n)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("kind", ["a socket", "a pipe"])
def test_the_thread_of_a_source_ends_where_the_system_has_no_memory_to_wake_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object) -> int:
        raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))

    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    place = "tcp-listen://127.0.0.1:0" if kind == "a socket" else str(pipe)
    db = minidsms.connect()
    db.execute(f"CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts FROM '{place}' FORMAT csv")
    source: Any = db.reading.sources[0][0]
    before = set(threading.enumerate())
    source.start(lambda: None)
    (thread,) = set(threading.enumerate()) - before
    with socket.create_connection(port_of(source.path)) if kind == "a socket" else open(pipe, "wb") as writer:
        os.write(writer.fileno(), b"ts,v\n1,1\n")
        soon(lambda: source.inbox.waiting_bytes > 0)
        time.sleep(0.05)  # it waits for more
        monkeypatch.setattr(socket.socket, "send", no_memory)
        db.close()
        thread.join(30)  # of a busy machine
        assert not thread.is_alive()


def test_stop_ends_run_and_closing_ends_the_threads() -> None:
    before = set(threading.enumerate())
    db, path = listening(options="header = false")
    db.query("SELECT v FROM S")
    with Running(db) as running, socket.create_connection(port_of(path)) as client:
        client.sendall(b"1,1\n")
        soon(lambda: db.stream_input("S").counters.accepted == 1)
    assert running.failure is None
    db.close()
    soon(lambda: set(threading.enumerate()) <= before)


@pytest.mark.parametrize("reason", [errno.EMFILE, errno.ECONNABORTED])
def test_a_listener_rests_where_no_more_files_can_be_opened(reason: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Listening(socket.socket):
        def accept(self) -> Any:
            raise OSError(reason, "no client")

    rests: list[float] = []
    monkeypatch.setattr("minidsms.sources.tcp_source.time.sleep", rests.append)
    with Listening() as listening:
        assert accepted(listening) is None
    assert len(rests) == (reason == errno.EMFILE)


def test_dropping_the_stream_frees_its_port() -> None:
    db, path = listening()
    db.execute("DROP STREAM S")
    with socket.create_server(port_of(path)):
        pass


def test_the_memory_limit_holds_a_file_back_until_a_live_stream_has_caught_up(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("ts,v\n" + "".join(f"{i},{i}\n" for i in range(200_000)))
    db, path = listening(options="clients = 1")
    db.execute(f"CREATE STREAM A (ts INTEGER, v INTEGER) TIMESTAMP BY ts FROM '{file}'")
    db.execute("SET memory_limit = '2 MB'")
    q = db.query("SELECT COUNT(*) FROM A [RANGE 10], S [RANGE 10] WHERE A.v = S.v")
    with Running(db) as running, socket.create_connection(port_of(path)) as client:
        time.sleep(0.1)
        for ts in range(0, 250_000, 5_000):
            client.sendall(b"_heartbeat,%d\n" % ts)
        soon(lambda: running.failure is not None or db.stream_input("A").ended or q.closed_until > 190_000)
    assert running.failure is None, running.failure
    assert db.nbytes < 4 << 20


# --------------------------------------------------------------------------------------------------------- idle streams


def test_an_idle_source_no_longer_holds_the_others_back() -> None:
    db, path = listening(options="idle_after = 30 MILLISECONDS")
    db.execute("CREATE STREAM B (ts INTEGER) TIMESTAMP BY ts")
    q = db.query("SELECT COUNT(*) FROM S [RANGE 100], B [RANGE 100]")
    with Running(db), socket.create_connection(port_of(path)) as client:
        client.sendall(b"10,1\n")
        soon(lambda: db.stream_input("S").counters.accepted == 1)
        db.push("B", [(20,), (50,)])
        soon(lambda: q.closed_until >= 49)
    assert (20, 1, (1,)) in [tuple(c) for c in q.fetch()]


def test_a_source_that_never_said_anything_follows_the_others_when_idle() -> None:
    db, _ = listening(options="idle_after = 30 MILLISECONDS")
    db.execute("CREATE STREAM B (ts INTEGER, v INTEGER) TIMESTAMP BY ts FROM 'tcp-listen://127.0.0.1:0' FORMAT csv")
    q = db.query("SELECT B.v FROM B [RANGE 100] LEFT JOIN S [RANGE 100] ON B.v = S.v")
    with Running(db), socket.create_connection(port_of(db.reading.sources[1][0].path)) as client:
        client.sendall(b"5,1\n9,2\n")
        soon(lambda: q.closed_until >= 8)
    assert q.fetch()[0].row == (1,)


def test_without_idle_after_a_silent_stream_holds_its_queries_back() -> None:
    db, path = listening(options="clients = 9")
    db.execute("CREATE STREAM B (ts INTEGER) TIMESTAMP BY ts")
    q = db.query("SELECT COUNT(*) FROM S [RANGE 100], B [RANGE 100]")
    with Running(db), socket.create_connection(port_of(path)) as client:
        client.sendall(b"10,1\n")
        db.push("B", [(500,)])
        soon(lambda: db.stream_input("S").counters.accepted == 1)
        time.sleep(0.3)
        assert q.closed_until < 10


# ---------------------------------------------------------------------------------------------------- files that grow


def following(path: Path, *options: str) -> minidsms.Connection:
    db = minidsms.connect()
    given = ", ".join(("follow = true", "poll = 2 MILLISECONDS", *options))
    db.execute(f"CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts FROM '{path}' WITH ({given})")
    return db


@pytest.mark.parametrize(("format", "lines"), [("json", '{"ts": 1, "v": 7}\n'), ("csv", "ts,v\n1,7\n")])
def test_a_log_may_be_empty_when_it_is_declared(tmp_path: Path, format: str, lines: str) -> None:
    path = tmp_path / "app.log"
    path.touch()
    with minidsms.connect() as db:
        options = "follow = true, poll = 2 MILLISECONDS, stop_after = 0.5 SECONDS"
        db.execute(
            f"CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts FROM '{path}' FORMAT {format} WITH ({options})"
        )
        q = db.query("SELECT v FROM S")
        with Running(db):
            path.write_text(lines)
            soon(lambda: db.stream_input("S").counters.accepted == 1)
        assert [tuple(change.row) for change in q.fetch()] == [(7,)]


def test_a_growing_file_is_read_line_by_line_when_lines_end(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("ts,v\n1,1\n2,")
    db = following(path)
    q = db.query("SELECT v FROM S")
    taken = db.stream_input("S").counters
    with Running(db):
        soon(lambda: taken.accepted == 1)
        time.sleep(0.02)
        assert taken.accepted == 1
        with path.open("a") as file:
            file.write("2\n3,3\n")
        soon(lambda: taken.accepted == 3)
    assert rows(q) == [(1,), (2,), (3,)]


def test_a_rotation_is_told_and_no_line_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("ts,v\n1,1\n")
    db = following(path)
    q = db.query("SELECT v FROM S")
    taken = db.stream_input("S").counters
    with Running(db):
        soon(lambda: taken.accepted == 1)
        with path.open("a") as file:
            file.write("2,2")
        path.rename(tmp_path / "s.csv.1")
        path.write_text("v,ts\n3,3\n")
        soon(lambda: taken.accepted == 3)
        assert "was replaced" in str(db.execute("SHOW SOURCES"))
    assert rows(q) == [(1,), (2,), (3,)]


def test_what_is_written_just_before_a_rotation_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.csv"
    path.write_text("ts,v\n1,1\n")
    looked: list[str] = []
    db = following(path, "stop_after = 50 MILLISECONDS")
    source: Any = db.reading.sources[0][0]
    change = source.feeder._change

    def rotate_and_look(position: int) -> str:
        if not looked:
            with path.open("a") as file:
                file.write("2,2\n")
            path.rename(tmp_path / "s.csv.1")
            path.write_text("ts,v\n3,3\n")
        looked.append(change(position))
        return looked[-1]

    monkeypatch.setattr(source.feeder, "_change", rotate_and_look)
    q = db.query("SELECT v FROM S")
    db.run()
    assert rows(q) == [(1,), (2,), (3,)] and looked[0] == "replaced"


def test_a_file_that_may_not_be_read_after_a_rotation_is_waited_for_at_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.csv"
    path.write_text("ts,v\n1,1\n")
    db = following(path)
    q = db.query("SELECT v FROM S")
    source: Any = db.reading.sources[0][0]
    opens, waits = source.feeder._open, source.feeder._stopped.wait
    tried: list[str] = []

    def refused(path: str) -> Any:
        tried.append("open")
        if tried.count("open") <= 3:
            raise Error(f"{path} may not be read")
        return opens(path)

    def wait(seconds: float) -> bool:
        tried.append("wait")
        return bool(waits(seconds))

    monkeypatch.setattr(source.feeder, "_open", refused)
    monkeypatch.setattr(source.feeder._stopped, "wait", wait)
    path.rename(tmp_path / "s.csv.1")
    path.write_text("ts,v\n2,2\n")
    with Running(db):
        soon(lambda: db.stream_input("S").counters.accepted == 2)
        assert next(iter(source.notes)).startswith("waits: ")
    assert rows(q) == [(1,), (2,)]
    assert "".join(word[0] for word in tried).startswith("owowowo")


def test_a_truncation_is_told_and_reading_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("ts,v\n1,1\n2,2\n3,3\n")
    db = following(path)
    q = db.query("SELECT v FROM S")
    taken = db.stream_input("S").counters
    with Running(db):
        soon(lambda: taken.accepted == 3)
        path.write_text("ts,v\n4,4\n")
        soon(lambda: taken.accepted == 4)
        assert "was truncated" in str(db.execute("SHOW SOURCES"))
    assert rows(q) == [(1,), (2,), (3,), (4,)]


@pytest.mark.parametrize("more", [0, 1, 20])
def test_a_truncation_is_noticed_whatever_has_been_written_since(more: int, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("ts,v\n1,1\n2,2\n3,3\n")
    db = following(path)
    q = db.query("SELECT v FROM S")
    taken = db.stream_input("S").counters
    with Running(db):
        soon(lambda: taken.accepted == 3)
        with path.open("r+") as file:  # in one go, as a copy that is truncated and written again between two looks
            file.write("ts,v\n4,4\n5,5\n6,6\n" + "".join(f"{k},{k}\n" for k in range(7, 7 + more)))
        soon(lambda: taken.accepted == 6 + more)
        assert "was truncated" in str(db.execute("SHOW SOURCES"))
    assert rows(q) == [(k,) for k in range(1, 7 + more)]


def test_a_writer_that_goes_on_behind_what_was_truncated_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("ts,v\n1,1\n")
    db = following(path)
    q = db.query("SELECT v FROM S")
    taken = db.stream_input("S").counters
    with Running(db):
        soon(lambda: taken.accepted == 1)
        with path.open("r+b") as file:  # in one go, as a truncation and a write between two looks
            file.write(bytes(path.stat().st_size) + b"2,2\n")
        soon(lambda: taken.accepted == 2)
    assert rows(q) == [(1,), (2,)]


def test_from_end_leaves_out_what_stands_there_and_stop_after_ends(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("v,ts\n1,1\n2,2\n")
    db = following(path, "from_end = true")
    q = db.query("SELECT v FROM S")
    taken = db.stream_input("S").counters
    source: Any = db.reading.sources[0][0]
    with Running(db):
        soon(lambda: source.feeder._file.tell() == path.stat().st_size)
        with path.open("a") as file:
            file.write("3,3\nx,y\n")
        soon(lambda: taken.accepted + taken.rejected == 2)
    assert rows(q) == [(3,)]
    assert "counted from where reading began), line 2" in next(iter(db.stream_input("S").rejected))[1]
    again = following(path, "stop_after = 10 MILLISECONDS")
    q = again.query("SELECT v FROM S")
    again.run()
    assert rows(q) == [(1,), (2,), (3,)]


@pytest.mark.parametrize("before", ["", "ts,", "ts,v\n", "ts,v\n1,1\n2"])
def test_from_end_reads_the_line_whose_end_is_written_later(before: str, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(before)
    db = following(path, "from_end = true", "stop_after = 50 MILLISECONDS")
    source: Any = db.reading.sources[0][0]
    stops = source.feeder._stopped
    wait = stops.wait

    def write_and_wait(seconds: float) -> bool:
        if path.read_text() == before:
            with path.open("a") as file:
                file.write("ts,v\n1,1\n22,2\n33,3\n"[len(before) :])
        return bool(wait(seconds))

    stops.wait = write_and_wait
    q = db.query("SELECT ts, v FROM S")
    db.run()
    assert rows(q) == [(1, 1), (22, 2), (33, 3)][before.count("1,1") :]
    assert not db.stream_input("S").counters.rejected


def test_a_byte_order_mark_is_no_part_of_the_first_value(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes(b"\xef\xbb\xbfa,1\nb,2\n")
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k TEXT, ts INTEGER) TIMESTAMP BY ts")
    db.feed("S", path, header=False, follow=True, stop_after=0.01)
    q = db.query("SELECT k FROM S")
    db.run()
    assert rows(q) == [("a",), ("b",)]


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b'\xef\xbb\xbf\xef\xbb\xbfa",2', ('\ufeff\ufeffa"', 2)),  # Arrow drops a mark wherever a block begins
        (b'"a\rb",2', ("a\rb", 2)),
    ],
)
def test_a_line_is_the_same_row_alone_and_behind_another(line: bytes, row: tuple[str, int], tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    for before in (b"", b'"not closed,1\n'):
        path.write_bytes(b"k,ts\n" + before + line + b"\n")
        db = minidsms.connect()
        db.execute("CREATE STREAM S (k TEXT, ts INTEGER) TIMESTAMP BY ts")
        db.feed("S", path, follow=True, stop_after=0.01)
        q = db.query("SELECT k, ts FROM S")
        db.run()
        assert rows(q) == [row]
        assert db.stream_input("S").counters.rejected == bool(before)


def test_what_cannot_grow_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(CqlError, match="csv or json"):
        following(tmp_path / "x.parquet")
    with pytest.raises(CqlError, match="no file"):
        following(tmp_path / "missing.csv")


# --------------------------------------------------------------------------------------------------------------- pipes


def test_the_standard_input_is_read_as_it_comes() -> None:
    program = (
        "import minidsms\n"
        "db = minidsms.connect()\n"
        "db.execute(\"CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts FROM '-'\")\n"
        "db.execute(\"CREATE QUERY q AS SELECT v FROM S INTO '-' FORMAT csv\")\n"
        "db.run()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"ts,v\n1,10\n2,20\n")
        process.stdin.flush()
        assert [process.stdout.readline() for _ in range(3)] == [b"_ts,_sign,v\n", b"1,1,10\n", b"2,1,20\n"]
        process.stdin.write(b"3,30")
        process.stdin.close()
        assert process.stdout.read() == b"3,1,30\n"
    assert process.returncode == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_is_read_until_its_writers_have_gone(tmp_path: Path) -> None:
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    db = minidsms.connect()
    db.execute(f"CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts FROM '{path}'")
    q = db.query("SELECT v FROM S")
    thread = threading.Thread(target=path.write_text, args=("ts,v\n1,1\n2,2\n",))
    thread.start()
    db.run()
    thread.join()
    assert rows(q) == [(1,), (2,)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_read_where_a_thousand_files_are_open(tmp_path: Path) -> None:
    import resource

    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limits[1] != resource.RLIM_INFINITY and limits[1] < 2000:
        pytest.skip("this process may not open so many")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 2000), limits[1]))
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        db = minidsms.connect()
        db.execute(f"CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts FROM '{path}'")
        q = db.query("SELECT v FROM S")
        thread = threading.Thread(target=path.write_text, args=("ts,v\n1,1\n",))
        thread.start()
        db.run()
        thread.join()
        assert rows(q) == [(1,)]
        db.close()
    finally:
        for other in others:
            os.close(other)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_that_was_never_read_has_no_reader_once_its_connection_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    db = minidsms.connect()
    db.execute(f"CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts FROM '{path}'")
    db.close()
    with pytest.raises(OSError, match="No such device or address"):
        os.open(path, os.O_WRONLY | os.O_NONBLOCK)


# ------------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("'tcp-listen://127.0.0.1:0' WITH (cleints = 1)", 'did you mean "clients"'),
        ("'tcp-listen://127.0.0.1:0' WITH (clients = 0)", "at least 1"),
        ("'tcp-listen://127.0.0.1:0' WITH (idle_after = 'soon')", "idle_after = 5 SECONDS"),
        ("'tcp-listen://127.0.0.1:0' WITH (speed = 2)", "its own speed"),
        ("'tcp-listen://127.0.0.1:0' FORMAT parquet", "csv or json"),
        ("'udp://127.0.0.1:1'", "there is no source"),
        ("'tcp://127.0.0.1'", "is no address"),
        ("'s.csv' WITH (clients = 1)", 'no option "clients"'),
        ("'s.csv' WITH (speed = 0)", "above 0"),
    ],
)
def test_a_wrong_option_is_shown_where_it_stands(given: str, said: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.csv").write_text("ts,v\n")
    with pytest.raises(CqlError) as caught:
        minidsms.connect().execute(f"CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts FROM {given}")
    assert said in str(caught.value) and "^^^" in str(caught.value)


def test_a_source_that_fails_says_so_once_and_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("a,b\n1,2\n")
    db = following(path)
    with pytest.raises(Error, match='no column "ts"'):
        db.run()
    db.run()
    assert db.stream_input("S").ended


@pytest.mark.skipif(os.name != "posix", reason="no signals here")
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_run_with_a_live_source_ends_at_a_signal_and_writes_its_files(which: int, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("ts,v\n1,10\n2,20\n")
    (tmp_path / "live.cql").write_text(
        "CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts FROM 's.csv' WITH (follow = true);\n"
        "CREATE QUERY told AS SELECT v FROM S INTO 'told.csv' WITH (append = true);\n"
        "CREATE QUERY whole AS SELECT v FROM S INTO 'whole.csv';\n"
    )
    command = [sys.executable, "-m", "minidsms", "run", "live.cql"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        soon(lambda: (tmp_path / "told.csv").exists() and (tmp_path / "told.csv").read_text().count("\n") == 3)
        assert not (tmp_path / "whole.csv").exists()
        process.send_signal(which)
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr is not None and "whole: 2 rows written to whole.csv" in process.stderr.read()
    assert (tmp_path / "whole.csv").read_text() == "_ts,_sign,v\n1,1,10\n2,1,20\n"
