"""What archives ask of a storage, of every one."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Barrier
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from pyarrow import parquet

import minidsms
from minidsms.archive.compacting import compact
from minidsms.archive.format import find
from minidsms.archive.lease import Lease
from minidsms.archive.objects import Objects, _opened, told_as_os_error
from minidsms.archive.remote_folders import RemoteFolders
from minidsms.archive.sftp import Sftp
from minidsms.archive.storage import Entry, absolute, below, located, storage_of
from minidsms.cql.errors import Error
from tests.archive.places import ELSEWHERE, elsewhere
from tests.archive.reading import elements
from tests.hdfs_server import served
from tests.object_store import bucket
from tests.sftp_server import address, known_host, trusted


@pytest.fixture(params=["local", *ELSEWHERE])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A new place."""
    with elsewhere(request.param, tmp_path) as found:
        yield f"{found}/data"


def _write(path: str, data: bytes) -> None:
    storage_of(path).write(path, lambda file: _put(file, data))


def _put(file: Any, data: bytes) -> None:
    file.write(data)


def test_a_file_is_read_as_it_was_written_last(place: str) -> None:
    storage, path = storage_of(place), f"{place}/part=1970-01-01/a b%20_ü.parquet"
    storage.make_folder(f"{place}/part=1970-01-01")
    for data in (b"first", b"", b"x" * 100_000):
        _write(path, data)
        assert storage.read(path) == data
        assert storage.sizes([path]) == [len(data)]
    assert storage.exists(path) and storage.exists(place)
    assert storage.read_all([path, path]) == [data, data] and storage.read_all([]) == []


def test_what_is_missing_is_told(place: str) -> None:
    storage = storage_of(place)
    assert not storage.exists(place)
    storage.make_folder(f"{place}/in")
    _write(f"{place}/in/there", b"1")
    assert not storage.exists(f"{place}/in/ther")
    for fails in (
        lambda: storage.read(f"{place}/in/not"),
        lambda: storage.read_all([f"{place}/in/there", f"{place}/in/not"]),
        lambda: storage.entries(f"{place}/not"),
    ):
        with pytest.raises(FileNotFoundError):
            fails()


def test_a_folder_tells_what_it_holds_now(place: str) -> None:
    storage = storage_of(place)
    storage.make_folder(f"{place}/in")
    for name in ("a", "b"):
        _write(f"{place}/in/{name}", b"1")
        assert Entry(name, False) in storage.entries(f"{place}/in")
    assert storage.entries(place) == [Entry("in", True)]
    storage.remove(f"{place}/in/a")
    assert storage.entries(f"{place}/in") == [Entry("b", False)]
    assert not storage.exists(f"{place}/in/a")


def test_a_folder_is_moved_and_removed_with_all_that_it_holds(place: str) -> None:
    storage = storage_of(place)
    odd = {"abfs": "a [1]*", "smb": "a [1]"}.get(place.partition(":")[0], "a [1]*?")
    for folder in (odd, "b"):
        storage.make_folder(f"{place}/{folder}")
        for name in ("x", "y"):
            _write(f"{place}/{folder}/{name}", name.encode())
    storage.move_tree(f"{place}/{odd}", f"{place}/c{odd}")
    assert {e.name for e in storage.entries(place)} == {"b", f"c{odd}"}
    assert storage.read_all([f"{place}/c{odd}/{name}" for name in "yx"]) == [b"y", b"x"]
    storage.remove_tree(f"{place}/c{odd}")
    storage.remove_tree(f"{place}/not")
    assert [e.name for e in storage.entries(place)] == ["b"]


def test_an_address_that_its_file_system_reads_as_another_is_refused() -> None:
    class Dropping(MemoryFileSystem):  # type: ignore[misc]
        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return str(super()._strip_protocol(path.partition("?")[0]))

    storage = Objects("memory", Dropping())
    storage.create("memory://here/S", b"1")
    with pytest.raises(Error, match=r"'memory://here/S\?2': the file system of memory: reads it as '/here/S'"):
        storage.create("memory://here/S?2", b"2")


def test_a_file_is_created_once(place: str) -> None:
    storage, path = storage_of(place), f"{place}/1.json"
    storage.make_folder(place)
    storage.create(path, b"mine")
    with pytest.raises(FileExistsError):
        storage.create(path, b"another's")
    assert storage.read(path) == b"mine"


def test_of_writers_that_create_a_file_at_once_one_does(place: str) -> None:
    storage = storage_of(place)
    if storage.locks:
        pytest.skip("where there are locks, only their holder creates")
    storage.make_folder(place)
    gate = Barrier(6)

    def create(n: int) -> int | None:
        gate.wait()
        try:
            storage.create(f"{place}/1.json", b"%d" % n)
        except FileExistsError:
            return None
        return n

    with ThreadPoolExecutor(6) as pool:
        done = [n for n in pool.map(create, range(6)) if n is not None]
    assert [storage.read(f"{place}/1.json")] == [b"%d" % n for n in done]


def test_pyarrow_reads_files_there(place: str) -> None:
    storage, path = storage_of(place), f"{place}/a.parquet"
    storage.make_folder(place)
    table = pa.table({"v": list(range(1000))})
    storage.write(path, lambda file: parquet.write_table(table, file))
    inside, system = storage.arrow(path)
    assert parquet.read_table(inside, filesystem=system) == table
    assert parquet.read_metadata(inside, filesystem=system).num_rows == 1000


def test_a_place_has_one_writer(place: str) -> None:
    storage = storage_of(place)
    storage.make_folder(place)
    held = storage.lock(place)
    with pytest.raises(Error, match="is being written by somebody else"):
        storage.lock(place)
    held.release()
    held.release()
    storage.lock(place).release()


def test_the_lock_of_a_process_that_is_no_more_is_free(place: str) -> None:
    storage = storage_of(place)
    storage.make_folder(place)
    if isinstance(storage, Objects) and place.startswith("memory"):
        pytest.skip("memory is a process's own")
    program = "import os, sys; from minidsms.archive.storage import storage_of as of; place = sys.argv[1];"
    subprocess.run([sys.executable, "-c", f"{program} of(place).lock(place); os._exit(0)", place], check=True)
    storage.lock(place).release()


def test_a_lease_runs_out_unless_it_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minidsms.archive.lease._RENEW_S", 0.02)
    place = f"memory://{secrets.token_hex(6)}"
    storage = storage_of(place)
    held = Lease(storage, place)
    first = storage.read(f"{place}/_lock.json")
    while storage.read(f"{place}/_lock.json") == first:
        pass  # it is renewed
    held.release()
    monkeypatch.setattr("minidsms.archive.lease._RENEW_S", 1000)
    monkeypatch.setattr("minidsms.archive.lease.LEASE_S", 0)
    lost = Lease(storage, place)
    mine = Lease(storage, place)
    lost.release()  # nothing of the other's
    assert storage.exists(f"{place}/_lock.json")
    mine.release()
    assert not storage.exists(f"{place}/_lock.json")


class _Deaf:
    """A file system that loses answers: it does as it is told and raises."""

    def __init__(self, system: Any, acts: bool) -> None:
        self._system, self._acts = system, acts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)

    def pipe_file(self, path: str, data: bytes, mode: str = "overwrite") -> None:
        if self._acts:
            self._system.pipe_file(path, data, mode=mode)
        raise TimeoutError("no answer")


@pytest.mark.parametrize("acts", [True, False])
def test_an_answer_that_is_lost_is_asked_for_again(acts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minidsms.archive.objects._PAUSE_S", 0)
    place = f"memory://{secrets.token_hex(6)}"
    system = storage_of(place)._system  # type: ignore[attr-defined]
    storage = Objects("memory", system)
    storage.create(f"{place}/0", b"0")
    storage._system = _Deaf(system, acts)
    if acts:
        storage.create(f"{place}/1", b"mine")
        assert storage.read(f"{place}/1") == b"mine"
    else:
        with pytest.raises(OSError, match="no answer"):
            storage.create(f"{place}/1", b"mine")
        assert not storage.exists(f"{place}/1")
    with pytest.raises(FileExistsError):
        storage.create(f"{place}/0", b"mine")


def test_a_server_that_replaces_what_is_there_is_not_written_to() -> None:
    class Careless(_Deaf):
        def pipe_file(self, path: str, data: bytes, mode: str = "overwrite") -> None:
            self._system.pipe_file(path, data)

    place = f"memory://{secrets.token_hex(6)}"
    storage = Objects("memory", Careless(storage_of(place)._system, True))  # type: ignore[attr-defined]
    with pytest.raises(Error, match=r"replaces objects that it is told to create(?s:.*)If-None-Match"):
        storage.lock(place)


@pytest.fixture
def by_sftp(tmp_path: Path) -> Iterator[str]:
    """The address of the test's own folder."""
    with trusted(tmp_path) as found:
        yield found


def test_a_server_that_replaces_files_when_others_are_renamed_is_not_written_to(
    by_sftp: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x").mkdir()
    monkeypatch.setattr(Sftp, "move_to_new", lambda self, a, b: self.mv(a, b))
    with pytest.raises(Error, match=r"the server replaces files when others are renamed(?s:.*)help: archives need"):
        storage_of(by_sftp).lock(f"{by_sftp}/x")


def _missing_at(call: int, acts: bool) -> Callable[[Any, str, str], None]:
    """A rename that tells once that there was nothing to rename, after it `acts`, or since it is so."""
    calls, real = count(), Sftp.move_to_new

    def move(self: Any, path: str, to: str) -> None:
        misses = next(calls) == call
        if acts or not misses:
            real(self, path, to)
        if misses:
            raise FileNotFoundError(path)

    return move


def test_a_file_is_created_though_its_rename_was_asked_for_twice(
    by_sftp: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a library that asks again for a lost answer."""
    monkeypatch.setattr(Sftp, "move_to_new", _missing_at(0, acts=True))
    storage_of(by_sftp).create(f"{by_sftp}/1", b"mine")
    assert os.listdir(tmp_path) == ["1"] and (tmp_path / "1").read_bytes() == b"mine"


def test_a_file_is_created_though_another_writer_removed_what_the_server_was_tried_with(
    by_sftp: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sftp, "move_to_new", _missing_at(1, acts=False))
    storage_of(by_sftp).create(f"{by_sftp}/1", b"mine")
    assert storage_of(by_sftp).read(f"{by_sftp}/1") == b"mine"
    monkeypatch.setattr(Sftp, "move_to_new", lambda self, a, b: self.mv(a, b))
    with pytest.raises(Error, match="replaces files"):  # it is tried the next time
        storage_of(by_sftp).create(f"{by_sftp}/2", b"mine")


def test_a_connection_that_was_lost_is_made_again(by_sftp: str, tmp_path: Path) -> None:
    storage = storage_of(by_sftp)
    _write(f"{by_sftp}/a", b"1")
    storage._system.client.close()  # type: ignore[attr-defined]
    assert storage.read(f"{by_sftp}/a") == b"1"
    assert os.listdir(tmp_path) == ["a"]


def test_files_that_are_cut_short_are_not_there_and_are_removed_by_the_next_writer(
    by_sftp: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = storage_of(by_sftp)
    (tmp_path / ".a.0.part").write_text("half")
    (tmp_path / "part=1970-01-01").mkdir()
    (tmp_path / "part=1970-01-01" / ".b.0.part").write_text("half")
    storage.lock(by_sftp).release()
    assert os.listdir(tmp_path) == ["part=1970-01-01"] and os.listdir(tmp_path / "part=1970-01-01") == []
    with monkeypatch.context() as patched, pytest.raises(OSError, match="of 1 have come"):
        patched.setattr(Sftp, "info", lambda self, path: {"size": 0, "type": "file"})
        _write(f"{by_sftp}/c", b"1")
    assert os.listdir(tmp_path) == ["part=1970-01-01"]


def test_several_threads_read_while_another_writes(by_sftp: str) -> None:
    storage = storage_of(by_sftp)
    table = pa.table({"v": list(range(50_000))})
    for n in range(4):
        storage.write(f"{by_sftp}/{n}", lambda file: parquet.write_table(table, file))
    paths = [storage.arrow(f"{by_sftp}/{n}") for n in range(4)]
    with ThreadPoolExecutor(5) as pool:
        writing = pool.submit(_write, f"{by_sftp}/more", b"x" * 3_000_000)
        read = pool.map(lambda path: parquet.read_table(path[0], filesystem=path[1]), paths * 3)
        assert all(found == table for found in read)
        writing.result()
    assert storage.sizes([f"{by_sftp}/more"]) == [3_000_000]


def test_an_hdfs_gateway_that_does_not_replace_files_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from minidsms.archive.webhdfs import WebHdfs

    place, call = served(tmp_path), WebHdfs._call
    _write(f"{place}/a", b"1")
    monkeypatch.setattr(WebHdfs, "_call", lambda *given, renameoptions=None, **more: call(*given, **more))
    with pytest.raises(OSError, match="replaces no file by a rename"):
        _write(f"{place}/a", b"2")
    assert os.listdir(tmp_path) == ["a"] and (tmp_path / "a").read_bytes() == b"1"


def test_hdfs_is_used_by_the_user_and_the_process_that_began(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hdfs_native")
    with pytest.raises(Error, match=r"hdfs: addresses name no user\nhelp: HADOOP_USER_NAME"):
        storage_of("hdfs://me@127.0.0.1:9/a")
    with pytest.raises(Error, match=r"hdfs://nobody: (?s:.*)help: hdfs://namenode:8020/folder"):
        storage_of("hdfs://nobody/a")
    assert isinstance(storage_of("hdfs://127.0.0.1:9/a"), RemoteFolders)
    monkeypatch.setattr("minidsms.archive.remote_folders.os.getpid", lambda: -1)
    with pytest.raises(Error, match=r"forked off one that has used them\nhelp: start it anew"):
        storage_of("hdfs://127.0.0.1:9/a")


def test_names_that_smb_takes_for_others_are_refused() -> None:
    pytest.importorskip("smbclient")
    from minidsms.archive.smb import Smb

    for name in ("a:b", "a\\b", "a?"):
        with pytest.raises(Error, match="names on SMB servers have no "):
            Smb._strip_protocol(f"smb://server/share/{name}")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FileExistsError("/a is there\n\tat org.apache.hadoop\n\tat java.base"), "^hdfs://h/a: /a is there$"),
        (
            RuntimeError(r'RPCError("\x", "no room\n\tat org")'),
            r'^hdfs://h/a: RuntimeError: RPCError\("\\x", "no room$',
        ),
        (OSError(None, "Unable to connect to port 1"), "^hdfs://h/a: Unable to connect to port 1$"),
    ],
)
def test_what_a_server_says_is_told_without_its_stack_trace(error: Exception, told: str) -> None:
    with pytest.raises(OSError, match=told), told_as_os_error("hdfs://h/a"):
        raise error


def test_hosts_that_are_not_known_are_not_talked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    _opened.cache_clear()
    place = address(tmp_path)
    with pytest.raises(Error, match=r"not found in known_hosts(?s:.*)help: ssh-keyscan"):
        storage_of(place)
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "known_hosts").write_text(known_host())
    assert storage_of(place).exists(place)
    with pytest.raises(Error, match="Authentication failed"):
        storage_of(place.replace("something", "wrong"))
    _opened.cache_clear()


@pytest.mark.parametrize("name", ["ab:c", "s3:x", "~", "a%20b", "a#b?c", "é", "a\nb", "_a", ".a", "*[x]"])
def test_a_folder_may_be_called_anything(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for run in range(3):
        with minidsms.connect() as db:
            db.execute("CREATE STREAM S (v INTEGER)")
            db.archive("S", name)
            assert db.replay(name) == run
            db.push("S", (run,), ts=run)
    assert compact(find(name, "S")).after == 1
    assert elements(name, "S") == [(0, 1, 0), (1, 1, 1), (2, 1, 2)]
    with pytest.raises(Error, match="know UTF-8 only"):
        find("a\udcff", "S")


def test_places_have_one_name() -> None:
    assert located("ssh://me@host/a") == "sftp://me@host/a"
    assert located("s3a://bucket/a/") == located("S3://bucket/a") == "s3://bucket/a"
    assert absolute("memory://a/b") == "memory://a/b"
    assert located("file:///a/b%20c") == "/a/b c"
    assert below("s3://b/a", "s3://b/a/part=1/x") == below("/b/a", "/b/a/part=1/x") == "part=1/x"
    for wrong in ("s3://", "s3:/b/a", "s3://b/../c", "s3://[a", "s3://b/./c"):
        with pytest.raises(Error, match=r"names no folder of archives|is no address"):
            located(wrong)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("nobody://a/b", r"nobody(?s:.*)help: such as s3://"),
        ("foreign://a/b", r"archives at foreign: addresses can only be read(?s:.*)help: write to s3:"),
        ("s3://nobody-has-this/a", r"nobody-has-this"),
    ],
)
def test_places_that_cannot_be_written_are_refused(place: str, reason: str) -> None:
    fsspec.register_implementation("foreign", type("Foreign", (MemoryFileSystem,), {"protocol": "foreign"}), True)
    with bucket("another"), minidsms.connect() as db, pytest.raises(Error, match=reason):
        db.execute("CREATE STREAM S (v INTEGER)")
        db.archive("S", place)


def test_a_connection_that_a_folder_keeps_lies_and_archives_on_this_machine(tmp_path: Path) -> None:
    with pytest.raises(Error, match=r"a connection is kept in folders of a file system, not at s3:(?s:.*)help"):
        minidsms.connect("s3://bucket/x")
    with minidsms.connect(tmp_path / "db") as db, pytest.raises(Error, match="in folders of a file system, not at s3"):
        db.execute("CREATE STREAM S (v INTEGER)")
        db.archive("S", "s3://bucket/x")
