"""A child of fork() touches nothing of its parent's, ends, and may connect for itself. A test is a process that forks,
since a child must not be one of the tests' own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork()")

PARENT = """
    import os, sys, socket, threading, time, warnings
    from pathlib import Path
    warnings.simplefilter("ignore")
    import minidsms

    folder = Path(sys.argv[1])
    db = minidsms.connect()
    db.execute("CREATE STREAM S (v INTEGER, t TEXT)")
    server = socket.create_server(("127.0.0.1", 0))
    places = {"csv": {}, "arrow": {}, "parquet": {}, "jsonl": {"append": True}}
    queries = [db.query("SELECT RSTREAM(v) FROM S [NOW]") for _ in range(5)]
    for query, (suffix, options) in zip(queries, places.items()):
        query.into(folder / f"out.{suffix}", **options)
    queries[4].into(f"tcp://127.0.0.1:{server.getsockname()[1]}")
    served = db.query("SELECT RSTREAM(v) FROM S [NOW]").into("tcp-listen://127.0.0.1:0")
    kept = db.query("SELECT COUNT(*) FROM S")
    db.archive("S", str(folder / "archive"))
    db.push("S", [(v, "a") for v in range(10_000)], ts=1)
    db.advance(1)

    def child(what):
        pid = os.fork()
        if pid == 0:
            try:
                what()
            except BaseException as error:
                import traceback
                traceback.print_exc()
                os._exit(7)
            sys.exit(0)
        for _ in range(4800):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.kill(pid, 9)
        raise SystemExit("the child hangs")
"""
ENDS = """
    db.push("S", (7, "b"), ts=2)
    db.close()
"""


CHILDREN = """
    def just_ends():
        pass

    def uses_it():
        calls = [
            lambda: db.push("S", (1, "a"), ts=9),
            lambda: db.advance(9),
            lambda: db.execute("SELECT v FROM S"),
            lambda: db.query("SELECT v FROM S"),
            lambda: db.run(),
            lambda: db.flush(),
            lambda: db.archive("S", None),
            lambda: db.process(),
            lambda: kept.fetch(),
            lambda: kept.snapshot(),
            lambda: next(iter(kept)),
            lambda: kept.into(folder / "more.csv"),
        ]
        for call in calls:
            try:
                call()
            except minidsms.ClosedError as error:
                assert f"opened by process {os.getppid()}, of which this is a fork" in str(error), error
                assert "help: connect in the child" in str(error)
            else:
                raise AssertionError("no error")
        for query in queries:
            query.close()
        served.close()
        db.close()

    sinks = [query.sink for query in queries]
    def ends_its_sinks():
        for sink in sinks[:3]:
            sink.discard()
        for sink in sinks[3:]:
            sink.close()

    def connects_for_itself():
        with minidsms.connect() as own:
            own.execute("CREATE STREAM S (v INTEGER)")
            q = own.query("SELECT SUM(v) FROM S GROUP BY v % 3")
            q.into(folder / "child.csv")
            own.archive("S", str(folder / "of_child"))
            own.push("S", [(v,) for v in range(10_000)], ts=1)
            own.advance(1)
        assert len((folder / "child.csv").read_text().splitlines()) == 4

    for what in (just_ends, uses_it, ends_its_sinks, connects_for_itself):
        assert child(what) == 0, what
        assert len(list(folder.glob(".*.part"))) == 3, what
"""
BUSY = """
    stopped = threading.Event()
    other = minidsms.connect()
    other.execute("CREATE STREAM S (v INTEGER)")
    other.query("SELECT COUNT(*) FROM S [ROWS 100]").into(folder / "busy.arrow")
    def keep_busy():
        ts = 0
        while not stopped.is_set():
            ts += 1
            other.push("S", [(v,) for v in range(500)], ts=ts)
            other.execute("SHOW STREAMS")
    thread = threading.Thread(target=keep_busy)
    thread.start()
    def uses_a_busy_one():
        try:
            other.push("S", (1,), ts=2**40)
        except minidsms.ClosedError:
            other.close()
            minidsms.connect().execute("CREATE STREAM T (v INTEGER); SELECT v FROM T")
        else:
            raise AssertionError("no error")
    for _ in range(4):
        assert child(uses_a_busy_one) == 0
    stopped.set()
    thread.join()
    other.close()
"""


def run(folder: Path, *parts: str) -> None:
    """Run the parts as one program."""
    program = "".join(map(textwrap.dedent, (PARENT, *parts)))
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_children_are_refused_and_leave_the_parents_files_alone(tmp_path: Path) -> None:
    """One that just ends, that uses and closes the connection, that closes the sinks, and one that connects itself; and
    those forked while other threads hold the locks.
    """
    run(tmp_path, CHILDREN, BUSY, ENDS)
    rows = 10_001
    assert (tmp_path / "out.csv").read_text().count("\n") == rows + 1
    assert (tmp_path / "out.jsonl").read_text().count("\n") == rows
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == rows
    assert pa.ipc.open_file(tmp_path / "out.arrow").read_all().num_rows == rows
    assert sum(parquet.read_metadata(p).num_rows for p in (tmp_path / "archive").rglob("*.parquet")) == rows
    assert not [p for p in tmp_path.rglob("*.part")]


def test_a_socket_is_the_parents_alone(tmp_path: Path) -> None:
    """While the child lives, whoever the parent leaves sees it go, and its port is free."""
    body = """
        accepted, _ = server.accept()
        client = socket.create_connection(tuple(served.path.removeprefix("tcp-listen://").split(":")))
        while not any("has connected" in note for note in served.notes):
            time.sleep(0.001)
        pid = os.fork()
        if pid == 0:
            for mine in (server, accepted, client):
                mine.close()
            time.sleep(60)
            os._exit(0)
        time.sleep(0.2)
        db.close()
        accepted.settimeout(240)
        client.settimeout(240)
        for peer in (accepted, client):
            while peer.recv(1 << 16):
                pass
        port = int(served.path.rpartition(":")[2])
        again = socket.socket()
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))
        again.listen()
        os.kill(pid, 9)
        raise SystemExit(0)
    """
    run(tmp_path, body)


def test_a_pipe_and_a_page_are_the_parents_alone(tmp_path: Path) -> None:
    """While the child lives, a writer of the pipe learns that nobody reads it, and a page that its server has gone."""
    pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    body = """
        os.mkfifo(folder / "pipe.csv")
        db.execute(f"CREATE STREAM P (v INTEGER) TIMESTAMP BY v FROM '{folder}/pipe.csv'")
        shown = db.ui()
        page = socket.create_connection(("127.0.0.1", shown.port))
        page.settimeout(240)
        page.sendall(f"GET / HTTP/1.1\\r\\nHost: 127.0.0.1:{shown.port}\\r\\n\\r\\n".encode())
        assert page.recv(1 << 16)
        begun, begins = os.pipe()
        pid = os.fork()
        if pid == 0:
            page.close()
            os.write(begins, b"x" if shown.is_over else b"-")
            time.sleep(60)
            os._exit(0)
        assert os.read(begun, 1) == b"x" and not shown.is_over
        db.close()
        while page.recv(1 << 16):
            pass
        again = socket.socket()
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", shown.port))
        again.listen()
        try:
            os.open(folder / "pipe.csv", os.O_WRONLY | os.O_NONBLOCK)
            raise SystemExit("somebody reads the pipe")
        except OSError:
            pass
        finally:
            os.kill(pid, 9)
    """
    run(tmp_path, body)


def test_a_port_of_metrics_is_the_parents_alone(tmp_path: Path) -> None:
    """While the child lives, the parent's port can be opened again once it has stopped; in the child nothing waits."""
    pytest.importorskip("prometheus_client")
    body = """
        from minidsms.metrics import serve

        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        stop = serve(db, port)
        begun, begins = os.pipe()
        pid = os.fork()
        if pid == 0:
            stop()
            os.write(begins, b"x")
            time.sleep(60)
            os._exit(0)
        assert os.read(begun, 1) == b"x"
        with socket.create_connection(("127.0.0.1", port)) as asking:
            asking.sendall(b"GET /metrics HTTP/1.0\\r\\n\\r\\n")
            assert b"200 OK" in asking.recv(1 << 16)
        stop()
        stop()
        serve(db, port)()
        os.kill(pid, 9)
    """
    run(tmp_path, body)
