"""`python -m tests.long.fault_cases --case NAME`: every operation on files, sockets and clocks fails, in turn.

A case is run without a fault, then with its first operation failing, its second, and so on until nothing is left to
fail (`tests.long.faults`). Whatever fails, only an Error leaves a call; another query over the same elements
gives all its answers; the connection closes; no thread and no open file is left. What then stands in files is judged
by the case: a whole file is the old or the new one, an appended file ends with a whole line, an archive lost nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import importlib.util
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import minidsms
from tests.long.faults import Faults, injected

PUSHES = [[(i, f"t{i}") for i in range(start, start + 4)] for start in range(0, 12, 4)]
"""What is pushed, call by call."""
ROWS = [row for rows in PUSHES for row in rows]
_BEFORE = "what stood there before"
_PATIENCE_S = 60.0
"""For what comes by itself, on a busy machine."""


@dataclass
class Run:
    """One run of a case. errors: what left public calls.  taken: the rows a connection has accepted."""

    folder: str
    faults: Faults
    errors: list[str] = field(default_factory=list)
    taken: list[Any] = field(default_factory=list)

    def path(self, name: str) -> str:
        """A file of the case."""
        return os.path.join(self.folder, name)

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """A call that may raise an Error."""
        try:
            yield
        except minidsms.Error as error:
            self.errors.append(str(error))

    @contextlib.contextmanager
    def connection(self, declaration: str = "CREATE STREAM S (k INTEGER, t TEXT)") -> Iterator[minidsms.Connection]:
        """A connection, in which another query goes by; closed at the end, at the second attempt without faults."""
        db = minidsms.connect(archive_rows=5)
        was_on = self.faults.is_on
        begun = len(self.taken)
        try:
            self.faults.is_on = False
            if "FROM" not in declaration:
                db.execute(declaration)
                bystander = db.query("SELECT k, t FROM S")
            self.faults.is_on = was_on
            yield db
            if "FROM" not in declaration:
                stream = db.stream_input("S")
                got = [change.row for change in bystander.fetch()]
                assert len(got) == stream.counters.accepted, "the other query has not got all"
                assert got == self.taken[begun:], "the other query has got something else"
        finally:
            with self.refusing():
                db.close()
            self.faults.is_on = False
            db.close()

    def push_all(self, db: minidsms.Connection) -> None:
        """Push everything, and tell time on; what raises may have taken the rows, as a sink is written behind them."""
        for at, rows in enumerate(PUSHES):
            before = db.stream_input("S").counters.accepted
            with self.refusing():
                db.push("S", rows, ts=at)
            n = db.stream_input("S").counters.accepted - before
            assert n in (0, len(rows)), "a push was taken in part"
            self.taken += rows if n else []
        with self.refusing():
            db.advance(len(PUSHES))


# ----------------------------------------------------------------------------------------------------- sinks


def _whole(name: str) -> Callable[[Run], None]:
    def case(run: Run) -> None:
        """The old file or the new one, and nothing beside it once somebody has written there again."""
        path = run.path(name)
        with open(path, "w") as file:
            file.write(_BEFORE)
        with run.connection() as db:
            query = db.query("SELECT k FROM S")
            with run.refusing():
                query.into(path)
            run.push_all(db)
            with run.refusing():
                query.close()
        read = _read_sink(path)
        assert read is None or read == [k for k, _ in run.taken], f"the file holds {read}"
        assert read is not None or run.errors, "no file, and nobody was told"
        with run.connection() as db:
            db.query("SELECT k FROM S").into(run.path("another.csv"))
        left = [n for n in os.listdir(run.folder) if n.endswith(".part")]
        assert not left, f"left behind: {left}"

    return case


def _read_sink(path: str) -> list[int] | None:
    """The values of k in a file of a sink, None where the old file stands there."""
    with open(path, "rb") as file:
        if file.read(len(_BEFORE)) == _BEFORE.encode():
            return None
    if path.endswith(".csv"):
        with open(path, encoding="utf-8") as text:
            return [int(line.split(",")[2]) for line in text.read().splitlines()[1:]]
    if path.endswith(".arrow"):
        return list(pa.ipc.open_file(path).read_all().column("k").to_pylist())
    from pyarrow import parquet

    return list(parquet.read_table(path).column("k").to_pylist())


def _appended(run: Run) -> None:
    """Whole lines, in order; and after a sound run behind it nothing else."""
    path = run.path("out.jsonl")
    with run.connection() as db:
        query = db.query("SELECT k, t FROM S")
        with run.refusing():
            query.into(path, append=True)
        run.push_all(db)
    with run.connection() as db:
        db.query("SELECT k, t FROM S").into(path, append=True)
        db.push("S", (99, "after"), ts=1)
        run.taken.append((99, "after"))
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    whole = [f'{{"_ts":{k // 4},"_sign":1,"k":{k},"t":"t{k}"}}' for k, _ in ROWS]
    assert lines.pop() == "", "the last line has no end"
    assert lines.pop() == '{"_ts":1,"_sign":1,"k":99,"t":"after"}'
    assert lines == whole[: len(lines)], "a line is torn"
    assert len(lines) == len(whole) or run.errors, "lines are missing, and nobody was told"


def _rolling(run: Run) -> None:
    """Parts are whole, and follow one another."""
    with run.connection() as db:
        query = db.query("SELECT k FROM S")
        with run.refusing():
            query.into(run.path("p-{n}.csv"), roll_rows=3)
        run.push_all(db)
        with run.refusing():
            query.close()
    parts = sorted(n for n in os.listdir(run.folder) if n.startswith("p-"))
    read = [k for name in parts for k in _read_sink(run.path(name)) or ()]
    if not run.errors:
        assert read == [k for k, _ in ROWS]
    assert read == sorted(set(read)), "an element stands in two parts"


# --------------------------------------------------------------------------------------------------- sources

_GROWING = "WITH (follow = true, poll = 1 MILLISECONDS, stop_after = 10 MILLISECONDS)"


def _source(name: str, options: str = "") -> Callable[[Run], None]:
    """A file is read. options: behind WITH."""

    def case(run: Run) -> None:
        """All rows, or the first of them and an Error."""
        path = run.path(name)
        _write_source(path)
        with run.connection("FROM a file") as db, run.refusing():
            db.execute(f"CREATE STREAM T (ts INTEGER, k INTEGER) TIMESTAMP BY ts FROM '{path}' {options}")
            query = db.query("SELECT k FROM T")
            with run.refusing():
                db.run()
            got = [change.row[0] for change in query.fetch()]
            assert got == list(range(len(got))), f"rows came wrong: {got}"
            assert len(got) == len(ROWS) or run.errors, "rows are missing, and nobody was told"

    return case


def _write_source(path: str) -> None:
    import gzip

    table = pa.table({"ts": list(range(len(ROWS))), "k": [k for k, _ in ROWS]})
    if path.endswith(".parquet"):
        from pyarrow import parquet

        parquet.write_table(table, path)
    elif path.endswith(".arrow"):
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=5)
    elif path.endswith(".jsonl"):
        with open(path, "w") as file:
            file.writelines(f'{{"ts": {k}, "k": {k}}}\n' for k, _ in ROWS)
    else:
        with gzip.open(path, "wt") if path.endswith(".gz") else open(path, "w") as text:
            text.write("ts,k\n" + "".join(f"{k},{k}\n" for k, _ in ROWS))


# --------------------------------------------------------------------------------------------------- folders


class _Client:
    """Of a connection with a folder: makes every call again, and opens the folder again, until it has been made."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.db: Any = None
        self.kept = self.doubtful = 0
        """Elements that have been taken, and those of a call that has failed."""

    def call(self, make: Callable[[Any], object]) -> None:
        """Make a call, asked for at most twice in each of three connections."""
        for _ in range(3):
            if self.db is None:
                with self._run.refusing():
                    self.db = minidsms.connect(self._run.path("db"), archive_rows=3)
            for _ in range(2 if self.db is not None else 0):
                with self._run.refusing():
                    make(self.db)
                    return
            self.close()

    def push(self, rows: Sequence[Any]) -> None:
        """Push what is not there yet. AssertionError where the folder has another number than was taken."""

        def make(db: Any) -> None:
            position = db.position("S")
            assert position in (self.kept, self.kept + self.doubtful), "what was taken is lost, or comes twice"
            self.kept, self.doubtful = position, 0
            left = rows[self.kept - rows[0][0] :] if self.kept >= rows[0][0] else []
            if left:
                self.doubtful = len(left)
                db.push("S", left, ts=[row[0] for row in left])
                self.kept, self.doubtful = self.kept + len(left), 0

        self.call(make)

    def close(self) -> None:
        """Close the connection, at the second attempt if need be."""
        for _ in range(2 if self.db is not None else 0):
            with self._run.refusing():
                self.db.close()
                break
        self.db = None


def _kept_in_a_folder(run: Run) -> None:
    """Whatever fails, the folder opens again with all that was taken, and its file and archive have it once."""
    client = _Client(run)
    client.call(lambda db: db.execute("CREATE STREAM IF NOT EXISTS S (k INTEGER, t TEXT)"))
    client.call(lambda db: db.execute(f"CREATE QUERY IF NOT EXISTS q AS SELECT k FROM S INTO '{run.path('q.csv')}'"))
    client.call(functools.partial(_archive_once, run.path("archives")))
    for rows in PUSHES:
        client.push(rows)
        client.call(lambda db: db.checkpoint())
    client.close()
    run.faults.is_on = False
    with minidsms.connect(run.path("db")) as db:
        assert "s" in db.catalog.streams or not client.kept
        n = db.position("S") if "s" in db.catalog.streams else 0
        assert n in (client.kept, client.kept + client.doubtful), "what was taken is lost"
        if "q" in db.queries:
            db.execute("DROP QUERY q")
            with open(run.path("q.csv")) as file:
                assert [line.split(",")[-1] for line in file.read().split()[1:]] == [str(k) for k in range(n)]
        db.flush()
        is_archived = n > 0 and db.stream_input("S").recorder is not None
    if is_archived:
        run.taken = ROWS[:n]
        _check_archive(run, run.path("archives"))


def _archive_once(folder: str, db: Any) -> None:
    if db.stream_input("S").recorder is None:
        db.archive("S", folder)


# -------------------------------------------------------------------------------------------------- archives


def _archived(run: Run) -> None:
    """What was taken is in the archive once it can be written again, each element once."""
    with run.connection() as db:
        with run.refusing():
            db.archive("S", run.folder)
        is_archived = db.stream_input("S").recorder is not None
        run.push_all(db)
        with run.refusing():
            db.flush()
        run.faults.is_on = False
        db.flush()
    assert is_archived or run.errors
    if is_archived:
        _check_archive(run)


def _check_archive(run: Run, folder: str = "") -> None:
    """The archive is sound, and holds what was taken. folder: the case's own where none is given."""
    from minidsms.archive.format import archives_in
    from minidsms.archive.verifying import verify

    (archive,) = archives_in(folder or run.folder)
    assert not list(verify(archive))
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, t TEXT)")
        query = db.query("SELECT k, t FROM S")
        db.replay(folder or run.folder)
        db.advance(100)
        got = [change.row for change in query.fetch()]
    assert got == run.taken, f"the archive holds {got}, taken were {run.taken}"


def _compacted(run: Run) -> None:
    """Whatever fails while files are merged, each element stands there once."""
    from minidsms.archive.compacting import compact
    from minidsms.archive.format import archives_in

    _archive_soundly(run)
    with run.refusing():
        compact(archives_in(run.folder)[0])
    run.faults.is_on = False
    _check_archive(run)
    assert compact(archives_in(run.folder)[0]).after == 1
    _check_archive(run)


def _archive_soundly(run: Run) -> None:
    """Everything, in several files."""
    run.faults.is_on = False
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, t TEXT)")
        db.archive("S", run.folder)
        for at, rows in enumerate(PUSHES):
            db.push("S", rows, ts=at)
            db.flush()
    run.taken = list(ROWS)
    run.faults.is_on = True


def _replayed(run: Run) -> None:
    """All elements, or the first of them and an Error; the archive stays as it was."""
    _archive_soundly(run)
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, t TEXT)")
        query = db.query("SELECT k, t FROM S")
        with run.refusing():
            db.replay(run.folder)
        got = [change.row for change in query.fetch()]
    assert got == ROWS[: len(got)] and (len(got) >= len(ROWS) - 4 or run.errors)
    run.faults.is_on = False
    _check_archive(run)


# --------------------------------------------------------------------------------------------------- sockets


def _sent(run: Run) -> None:
    """Lines to a server: those that come are whole but for the last, and in order."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        with run.connection() as db:
            query = db.query("SELECT k FROM S")
            with run.refusing():
                query.into(f"tcp://127.0.0.1:{server.getsockname()[1]}", format="csv")
            is_connected = query.sink is not None
            run.push_all(db)
            with run.refusing():
                query.close()
        data = b""
        if is_connected:
            accepted, _ = server.accept()
            with accepted:
                while more := accepted.recv(1 << 16):
                    data += more
    got = [int(line.split(b",")[2]) for line in data.split(b"\n")[:-1]]
    assert got == [k for k, _ in ROWS][: len(got)]
    assert len(got) == len(ROWS) or run.errors


def _received(run: Run) -> None:
    """Lines of a server: all of them, or an Error, or a note."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)

        def serve() -> None:
            with contextlib.suppress(OSError):
                accepted, _ = server.accept()
                with accepted:
                    accepted.sendall(b"ts,k\n" + b"".join(b"%d,%d\n" % (k, k) for k, _ in ROWS))

        serving = threading.Thread(target=serve)
        serving.start()
        with run.connection("FROM a socket") as db, run.refusing():
            place = f"tcp://127.0.0.1:{server.getsockname()[1]}"
            db.execute(f"CREATE STREAM T (ts INTEGER, k INTEGER) TIMESTAMP BY ts FROM '{place}' FORMAT csv")
            query = db.query("SELECT k FROM T")
            with run.refusing():
                db.run()
            got = [change.row[0] for change in query.fetch()]
            assert got == list(range(len(got)))
            assert len(got) >= len(ROWS) or run.errors, f"{len(got)} rows, and nobody was told"
        server.close()
        serving.join()


def _served(run: Run) -> None:
    """Lines to a client: those that come are in order; who cannot be served is cut off."""
    with run.connection() as db:
        query = db.query("SELECT k FROM S")
        with run.refusing():
            query.into("tcp-listen://127.0.0.1:0", format="csv")
        data = b""
        if query.sink is not None:
            place = ("127.0.0.1", int(query.sink.path.rpartition(":")[2]))
            with socket.create_connection(place, 20) as client, contextlib.suppress(ConnectionResetError):
                begun = time.monotonic()
                while not any("has connected" in note for note in query.sink.notes):  # type: ignore[attr-defined]
                    if time.monotonic() - begun > (0.2 if run.faults.failed else _PATIENCE_S):
                        break
                    time.sleep(0.001)
                run.push_all(db)
                with run.refusing():
                    query.close()
                while more := client.recv(1 << 16):
                    data += more
    got = [int(line.split(b",")[2]) for line in data.split(b"\n")[:-1]]
    assert got == [k for k, _ in ROWS][: len(got)]
    assert len(got) == len(ROWS) or run.errors or run.faults.failed


# ----------------------------------------------------------------------------------------------------- Kafka


@functools.cache
def _broker() -> tuple[str, Any]:
    """Where the client's own broker for tests listens, and what keeps it."""
    import confluent_kafka

    keeper = confluent_kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 2})
    broker = next(iter(keeper.list_topics(timeout=_PATIENCE_S).brokers.values()))
    return f"{broker.host}:{broker.port}", keeper


def _topic_read(run: Run) -> None:
    """All messages of a topic, or the first of them and an Error."""
    import confluent_kafka

    broker, topic = _broker()[0], os.path.basename(run.folder)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker})
    for k, _ in ROWS:
        producer.produce(topic, value=b"%d,%d" % (k, k), partition=0)
    assert producer.flush(_PATIENCE_S) == 0
    del producer  # which closes its sockets
    with run.connection("FROM a topic") as db, run.refusing():
        place = f"FROM 'kafka://{broker}/{topic}' FORMAT csv WITH (until_end = true)"
        db.execute(f"CREATE STREAM T (ts INTEGER, k INTEGER) TIMESTAMP BY ts {place}")
        query = db.query("SELECT k FROM T")
        with run.refusing():
            db.run()
        got = [change.row[0] for change in query.fetch()]
        assert got == list(range(len(got))), f"rows came wrong: {got}"
        assert len(got) == len(ROWS) or run.errors, "rows are missing, and nobody was told"


def _topic_written(run: Run) -> None:
    """Messages that come are in order, and all come or somebody is told."""
    import confluent_kafka

    broker, topic = _broker()[0], os.path.basename(run.folder)
    with run.connection() as db:
        query = db.query("SELECT k FROM S")
        with run.refusing():
            query.into(f"kafka://{broker}/{topic}", format="csv")
        was_open = query.sink is not None
        run.push_all(db)
        with run.refusing():
            query.close()
    if not was_open:
        assert run.errors, "nothing was written, and nobody was told"
        return  # there is no such topic, for which a consumer would wait
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker, "group.id": topic, "enable.partition.eof": True})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
    got = []
    while (message := consumer.poll(_PATIENCE_S)) is not None and message.error() is None:
        got.append(int((message.value() or b"").split(b",")[2]))
    consumer.close()
    assert got == [k for k, _ in ROWS][: len(got)], f"messages came wrong: {got}"
    assert len(got) == len(ROWS) or run.errors, "messages are missing, and nobody was told"


# ------------------------------------------------------------------------------------------- out of memory


def _spilled(run: Run) -> None:
    """Rows that a join keeps in a file, or where it gets no room in memory: the answers are the same. Where words
    cannot be written into the room that a file has, the query says that it has failed.
    """
    answers = []
    for reduction in ("off", "k-mon"):
        run.faults.is_on = True
        with run.connection("no stream FROM anywhere") as db:
            db.execute(f"SET state_reduction = '{reduction}'")
            db.execute("CREATE STREAM A (k INTEGER); CREATE STREAM B (k INTEGER) KEY (k)")
            query = db.query("SELECT ISTREAM(A.k) FROM A [RANGE 100], B [RANGE 100] WHERE A.k = B.k")
            for k in range(600):
                db.push("B", (k,), ts=k // 10)
                db.push("A", (k,), ts=k // 10)
            db.advance(1000)
            if query.state == "failed":
                assert any("pwrite" in what for what in run.faults.failed)
                return
            answers.append(sorted(change.row for change in query.fetch()))
    assert answers[0] == answers[1] and len(answers[0]) == 600


# ---------------------------------------------------------------------------------------------------- clocks


def _timed(run: Run) -> None:
    """Rows that take their instants from a clock that jumps are taken, in order; intervals of archives hold."""
    with run.connection() as db:
        db.archive("S", run.folder)
        for rows in PUSHES:
            db.push("S", rows)
            run.taken += rows
        db.process()
        db.flush()
        seen = db.stream_input("S").greatest_ts
        assert seen is not None and db.stream_input("S").progress <= seen
    run.faults.is_on = False
    _check_archive_rows(run)


def _check_archive_rows(run: Run) -> None:
    from minidsms.archive.files import read
    from minidsms.archive.format import archives_in

    (archive,) = archives_in(run.folder)
    assert sum(len(table) for table in read(archive)) == len(run.taken)


CASES: dict[str, Callable[[Run], None]] = {
    "a csv file": _whole("out.csv"),
    "an arrow file": _whole("out.arrow"),
    "a parquet file": _whole("out.parquet"),
    "an appended file": _appended,
    "rolling files": _rolling,
    "a csv source": _source("in.csv"),
    "a gzipped source": _source("in.csv.gz"),
    "a json source": _source("in.jsonl"),
    "an arrow source": _source("in.arrow"),
    "a parquet source": _source("in.parquet"),
    "a growing file": _source("growing.csv", _GROWING),
    "a folder": _kept_in_a_folder,
    "an archive": _archived,
    "a compaction": _compacted,
    "a replay": _replayed,
    "lines sent": _sent,
    "lines received": _received,
    "lines served": _served,
    "rows out of memory": _spilled,
    "a clock": _timed,
}
if importlib.util.find_spec("confluent_kafka") is not None:
    CASES |= {"a topic read": _topic_read, "a topic written": _topic_written}
_JUMPS = (-1e6, 1e6)
_MOST = 2000


class _SocketsLeft(AssertionError):
    """Nothing else is open behind a run."""


def run_case(name: str, at: int, lasting: bool, jump_s: float | None = None) -> Faults:
    """One run of a case with its n-th operation failing. AssertionError where anything is not as it must be."""
    try:
        return _run_case(name, at, lasting, jump_s)
    except _SocketsLeft:  # a client of Kafka that another test keeps may have connected again meanwhile: not twice
        return _run_case(name, at, lasting, jump_s)


def _run_case(name: str, at: int, lasting: bool, jump_s: float | None) -> Faults:
    case = CASES[name]
    folder = tempfile.mkdtemp(prefix="minidsms-faults-")
    before, threads = open_files(), set(threading.enumerate())
    try:
        with injected(Faults(at, lasting, jump_s)) as faults:
            case(Run(folder, faults))
        _wait(lambda: not _threads(threads), lambda: f"threads are left: {_threads(threads)}")
        if open_files() - before:
            gc.collect()  # an error may hold a client by its traceback
        _wait(lambda: not open_files() - before, lambda: f"files are left open: {open_files() - before}")
        return faults
    except Exception as error:
        how = "from then on" if lasting else "once"
        failed = ", ".join(faults.failed[:5]) or "nothing"
        is_of_sockets = str(error).startswith("files are left") and all(" socket:" in f for f in open_files() - before)
        kind = _SocketsLeft if is_of_sockets else AssertionError
        raise kind(f"{name}: operation {at} ({failed}) failing {how}: {type(error).__name__}: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_all(name: str, lasting: bool = False, stride: int = 1, first: int = 1) -> int:
    """Let one operation after the other fail, until the case has none left; how many runs it took."""
    _warm_up(name)
    runs = 0
    for jump_s in _JUMPS if name == "a clock" else (None,):
        for at in range(first, _MOST, stride):
            runs += 1
            if not run_case(name, at, lasting, jump_s).failed:
                break
        else:
            raise AssertionError(f"{name}: more than {_MOST} operations")
    return runs


@functools.cache
def _warm_up(name: str) -> None:
    """A run without a fault, in which libraries open what they keep open."""
    injecting = Faults(0)
    folder = tempfile.mkdtemp(prefix="minidsms-faults-")
    try:
        with injected(injecting):
            run = Run(folder, injecting)
            CASES[name](run)
            assert not run.errors, f"{name}: an error without a fault: {run.errors[0]}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _threads(before: set[threading.Thread]) -> list[str]:
    """The engine's threads that were not there before."""
    return [t.name for t in threading.enumerate() if t.name.startswith("minidsms") and t not in before]


def open_files() -> set[str]:
    """What is open, as far as the system tells: numbers with the names of files."""
    found = set()
    with contextlib.suppress(OSError):
        for number in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # that of the listing itself
                found.add(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
    return found


def _wait(holds: Callable[[], bool], what: Callable[[], str]) -> None:
    """What other threads do at their ends takes a moment."""
    end = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < end, what()
        time.sleep(0.005)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases; returns the exit status."""
    return run_chosen("tests.long.fault_cases", __doc__ or "", CASES, run_all, arguments)


def run_chosen(
    program: str,
    text: str,
    cases: Mapping[str, object],
    run_all: Callable[[str, bool], int],
    arguments: Sequence[str] | None,
) -> int:
    """Let all operations of the cases that were asked for fail, once and from then on; returns the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=text)
    parser.add_argument("--case", choices=cases, action="append", help="only this one")
    options = parser.parse_args(arguments)
    total = 0
    for name in options.case or cases:
        for lasting in (False, True):
            runs = run_all(name, lasting)
            print(f"{name}, failing {'from then on' if lasting else 'once'}: {runs} runs", flush=True)
            total += runs
    print(f"{total} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
