"""Archives in object stores, on SSH servers and in HDFS hold what a folder would, and no two writers spoil them."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest

import minidsms
from minidsms.archive.compacting import compact
from minidsms.archive.files import write_piece
from minidsms.archive.format import Archive, Metadata, create, find
from minidsms.archive.inspecting import inspect
from minidsms.archive.log import read_snapshot
from minidsms.archive.storage import storage_of
from minidsms.archive.verifying import verify
from minidsms.archive.writer import Writer
from minidsms.cql.errors import Error
from minidsms.elements import Schema, Type
from minidsms.shell.main import main
from tests.archive.places import ELSEWHERE, elsewhere
from tests.archive.reading import elements
from tests.archive.test_archiving import let_go

DECLARED = "CREATE STREAM S (k TEXT, v FLOAT); CREATE RELATION R (k TEXT, w INTEGER)"
QUERY = "SELECT ISTREAM(S.k, SUM(v), COUNT(*)) FROM S [RANGE 5 SECONDS], R WHERE S.k = R.k GROUP BY S.k"


@pytest.fixture(params=ELSEWHERE)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A new place that is no folder of this process's."""
    with elsewhere(request.param, tmp_path_factory.mktemp("served")) as found:
        yield f"{found}/data"


# Objects and folders, for tests whose requests are those of the tests that run in every place.
of_each_kind = pytest.mark.parametrize("place", ["memory", "sftp"], indirect=True)


def _fill(place: str, seed: int = 1, n: int = 50, **settings: Any) -> None:
    """Archive a stream, a relation and a query, with a flush now and then."""
    draw = Random(seed)
    with minidsms.connect(**settings) as db:
        db.execute(DECLARED)
        db.execute(f"CREATE QUERY q AS {QUERY} ARCHIVE '{place}'")
        db.archive("S", place, partition=15_000)
        db.archive("R", place)
        for i in range(n):
            db.push("S" if i % 5 else "R", (draw.choice("abc"), draw.randrange(9)), ts=i * 900)
            if draw.random() < 0.08:
                db.flush()


def _archive(place: str, partition: int = 10) -> Archive:
    return create(place, Metadata("S", "stream", "ms", Schema.of(("v", Type.INTEGER)), partition))


def _table(archive: Archive, ts: list[int], first: int) -> pa.Table:
    columns = [ts, list(range(first, first + len(ts))), [1] * len(ts), ts]
    schema = archive.metadata.arrow_schema
    return pa.Table.from_arrays([pa.array(c, t) for c, t in zip(columns, schema.types)], schema=schema)


def _replayed(place: str, **options: Any) -> list[Any]:
    with minidsms.connect() as db:
        db.execute(DECLARED)
        q = db.query(QUERY)
        db.replay(place, **options)
        return q.fetch()


def test_an_archive_elsewhere_holds_and_replays_what_a_folder_does(place: str, tmp_path: Path) -> None:
    for folder in (place, str(tmp_path)):
        _fill(folder)
    for name in ("S", "R", "q"):
        assert elements(place, name) == elements(tmp_path, name)
        assert list(verify(find(place, name))) == []
    assert _replayed(place) == _replayed(str(tmp_path)) != []
    bounds = {"from_": 7_000, "to": 21_000}
    assert _replayed(place, **bounds) == _replayed(str(tmp_path), **bounds) != []
    assert _replayed(f"{place}/") == _replayed(place, push_down=False)


def test_an_archive_elsewhere_is_compacted_and_remembers_what_it_was(place: str) -> None:
    _fill(place)
    archive = find(place, "S")
    snapshot = read_snapshot(archive.folder)
    assert snapshot is not None
    middle = snapshot.marks[len(snapshot.marks) // 2]
    before, then = elements(place, "S"), _replayed(f"{place}/S", as_of=middle.number, push_down=False)
    done = compact(archive)
    assert done.after < done.before and len(archive.files()) == done.after
    assert sum(f.rows for f in inspect(archive).files) == len(before) and inspect(archive).nbytes > 1000
    assert elements(place, "S") == before
    assert _replayed(f"{place}/S", as_of=middle.number, push_down=False) == then
    there = {name for folder in storage_of(place).entries(archive.folder) for name in [folder.name]}
    assert "_lock.json" not in there
    with pytest.raises(Error, match="the log knows no commit 999"):
        _replayed(f"{place}/S", as_of=999)


@of_each_kind
def test_retention_and_the_command_line_work_elsewhere(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    _fill(place, archive_retention="10 SECONDS")
    first = elements(place, "S")[0][0]
    assert 0 < first <= 40_000
    for command in ("inspect", "compact", "verify"):
        assert main(["archive", command, place]) == 0
    assert main(["archive", "expire", place, "--keep", "1 SECONDS"]) == 0
    assert elements(place, "S")[0][0] >= first
    assert main(["replay", place, "-q", "SELECT ISTREAM(k) FROM S [NOW]"]) == 0
    assert "sound" in capsys.readouterr().out


@of_each_kind
def test_a_query_is_backfilled_and_a_stream_goes_on_from_elsewhere(place: str) -> None:
    _fill(place)
    with minidsms.connect() as db:
        db.execute(DECLARED)
        db.replay(place, names=["R"])
        q = db.execute(f"CREATE QUERY n AS {QUERY} BACKFILL FROM '{place}'")
        assert q.fetch() == _replayed(place)
    with minidsms.connect() as db:
        db.execute(DECLARED)
        for name in ("S", "R"):
            db.archive(name, place)
        before = len(elements(place, "S"))
        db.replay(place)
        db.push("S", ("a", 1.0), ts=100_000)
        db.flush()
        assert len(elements(place, "S")) == before + 1
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (k TEXT, v FLOAT) FROM '{place}' FORMAT archive")
        q = db.query("SELECT ISTREAM(COUNT(*)) FROM S [RANGE UNBOUNDED]")
        db.run()
        assert q.fetch()[-1].row == (before + 1,)


@of_each_kind
def test_columns_are_added_elsewhere(place: str) -> None:
    for columns in ("v INTEGER", "v FLOAT, w TEXT"):
        with minidsms.connect() as db:
            db.execute(f"CREATE STREAM S ({columns}) ARCHIVE '{place}'")
            db.push("S", (1,) if columns == "v INTEGER" else (1.5, "x"), ts=1)
    assert elements(place, "S") == [(1, 1, 1.0, None), (1, 1, 1.5, "x")]


def test_an_archive_elsewhere_has_one_writer(place: str) -> None:
    with minidsms.connect() as db, minidsms.connect() as other:
        for each in (db, other):
            each.execute("CREATE STREAM S (v INTEGER)")
        db.archive("S", place)
        with pytest.raises(Error, match=r"is being written by somebody else: process \d+ of"):
            other.archive("S", place)
        db.archive("S", None)
        other.archive("S", place)


@of_each_kind
def test_a_connection_that_is_dropped_lets_its_archives_elsewhere_go(place: str) -> None:
    let_go(place)


def test_a_writer_whose_lease_has_run_out_can_no_longer_commit(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = _archive(place)
    with monkeypatch.context() as patched:
        patched.setattr("minidsms.archive.lease.LEASE_S", 0)
        first = Writer(archive)
    path = write_piece(archive, _table(archive, [1, 2], 0))
    with Writer(archive) as second:  # which finds what the first has not committed
        assert not storage_of(path).exists(path)
        with pytest.raises(Error, match=r"no longer this connection's: somebody else(?s:.*)help: begin again"):
            first.commit("archive", [write_piece(archive, _table(archive, [1, 2], 0))])
        with pytest.raises(Error, match="no longer this connection's"):
            first.check()
        second.commit("archive", [write_piece(archive, _table(archive, [3], 0))])
    first.release()
    assert [ts for ts, _, _ in elements(place, "S")] == [3]
    assert list(verify(archive)) == []


def test_of_two_writers_of_one_commit_one_makes_it(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = _archive(place)
    monkeypatch.setattr("minidsms.archive.lease.LEASE_S", 0)
    writers = [Writer(archive), Writer(archive)]
    paths = [write_piece(archive, _table(archive, [i], 0)) for i in range(2)]
    writers[1].commit("archive", paths[1:])
    with pytest.raises(Error, match="somebody else"):
        writers[0].commit("archive", paths[:1])
    writers[0].discard(paths[:1])
    assert [ts for ts, _, _ in elements(place, "S")] == [1]
    assert not storage_of(place).exists(paths[0])


def test_a_connection_that_has_lost_its_archive_says_so_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"memory://{secrets.token_hex(6)}"
    monkeypatch.setattr("minidsms.archive.lease.LEASE_S", 0)
    db, other = minidsms.connect(), minidsms.connect()
    for each in (db, other):
        each.execute("CREATE STREAM S (v INTEGER)")
        each.archive("S", place)
    other.push("S", (1,), ts=1)
    other.flush()
    db.push("S", (2,), ts=2)
    with pytest.raises(Error, match="no longer this connection's"):
        db.flush()
    with pytest.raises(Error, match="no longer this connection's"):
        db.push("S", (3,), ts=3)
    with pytest.raises(Error):
        db.close()
    other.close()
    assert elements(place, "S") == [(1, 1, 1)]


def test_a_commit_nobody_can_tell_of_keeps_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minidsms.archive.objects._PAUSE_S", 0)
    archive = _archive(f"memory://{secrets.token_hex(6)}")
    writer = Writer(archive)
    path = write_piece(archive, _table(archive, [1], 0))
    storage: Any = storage_of(archive.folder)
    with monkeypatch.context() as patched:
        real = storage._system.pipe_file

        def unanswered(path: str, data: bytes, **options: Any) -> None:
            real(path, data, **options)
            raise TimeoutError("no answer")

        patched.setattr(storage._system, "pipe_file", unanswered)
        patched.setattr(storage, "read", lambda path: unanswered("/aside", b""))
        with pytest.raises(Error, match=r"whether its last commit was made is not known"):
            writer.commit("archive", [path])
        writer.discard([path])
    writer.release()
    assert elements(os.path.dirname(archive.folder), "S") == [(1, 1, 1)]


@pytest.mark.parametrize("place", ["s3", "sftp"], indirect=True)  # memory goes with its process
def test_a_writer_that_is_killed_anywhere_leaves_whole_commits(place: str) -> None:
    program = (
        "import sys, minidsms; db = minidsms.connect(archive_interval='10 MILLISECONDS');"
        "db.execute('CREATE STREAM S (v INTEGER)'); n = db.archive('S', sys.argv[1]) or db.replay(sys.argv[1]);"
        "print(n, flush=True)\n"
        "for i in range(n, 10**6): db.push('S', (i,), ts=i); db.flush(); print(i, flush=True)"
    )
    there = 0
    for wait in (1, 7):
        with subprocess.Popen([sys.executable, "-c", program, place], stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            assert int(running.stdout.readline()) >= there
            told = [int(running.stdout.readline()) for _ in range(wait)][-1]
            running.send_signal(signal.SIGKILL)
        values = [v for _, _, v in elements(place, "S")]
        assert values == list(range(len(values)))
        there = len(values)
        assert there > told  # what flush has returned from is there
    assert list(verify(find(place, "S"))) == []


def test_safe_mode_reads_archives_below_addresses_allowed_and_writes_none(place: str) -> None:
    _fill(place, n=20)
    with minidsms.connect(safe=True, allowed_paths=[".", place]) as db:
        db.execute(DECLARED)
        assert db.replay(place) == 20
        for action in (lambda: db.archive("S", place), lambda: db.replay(f"{place}2")):
            with pytest.raises(Error, match="safe mode"):
                action()
    with minidsms.connect(safe=True, allowed_paths=["."]) as db, pytest.raises(Error, match="safe mode"):
        db.execute(DECLARED)
        db.replay(place)


@of_each_kind
def test_a_replay_follows_what_is_added_elsewhere(place: str) -> None:
    got: list[int] = []
    instants = count()
    with minidsms.connect() as writer, minidsms.connect() as reader:
        writer.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{place}'")
        reader.execute("CREATE STREAM S (v INTEGER)")
        q = reader.query("SELECT ISTREAM(v) FROM S [NOW]")

        def stop() -> bool:
            got.extend(change.row[0] for change in q.fetch())
            if len(got) < 3:
                at = next(instants)
                writer.push("S", (at,), ts=at)
                writer.flush()
            return len(got) >= 3

        reader.replay(place, follow=True, stop=stop)
    assert got[:3] == [0, 1, 2]


def test_writers_that_take_the_archive_from_each_other_spoil_nothing(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minidsms.archive.lease.LEASE_S", 0)
    archive = _archive(place)
    gate = Barrier(4)

    def write(number: int) -> int:
        gate.wait()
        committed = 0
        for i in range(4):
            with suppress(Error, FileNotFoundError), Writer(archive) as writer:
                table = _table(archive, [number * 100 + i] * 3, writer.snapshot.arrivals)
                writer.commit("archive", [write_piece(archive, table)])
                committed += 1
        return committed

    with ThreadPoolExecutor(4) as pool:
        committed = sum(pool.map(write, range(4)))
    assert committed >= 1 and len(elements(place, "S")) == committed * 3
    assert list(verify(archive)) == []
    with Writer(archive):
        assert len(elements(place, "S")) == committed * 3


@of_each_kind
def test_a_connection_that_a_folder_keeps_replays_from_elsewhere(place: str, tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{place}'")
        db.push("S", [(i,) for i in range(10)], ts=list(range(10)))
    with minidsms.connect(tmp_path / "db") as db:
        db.execute("CREATE STREAM S (v INTEGER); CREATE QUERY q AS SELECT COUNT(*) FROM S")
        assert db.replay(place) == 10
    with minidsms.connect(tmp_path / "db") as db:
        db.push("S", (1,), ts=30)
        db.advance(40)
        assert db.queries["q"].snapshot() == [(11,)]
