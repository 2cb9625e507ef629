"""Files of sinks when the disk is full or a process ends: whole lines, whole files, and nothing left for ever."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import minidsms


@pytest.fixture
def db() -> Iterator[Any]:
    with minidsms.connect() as connection:
        connection.execute("CREATE STREAM S (v INTEGER)")
        yield connection


@contextlib.contextmanager
def most_bytes(n: int) -> Iterator[None]:
    """Files may become so long: what is beyond is written in part, then refused, as on a full disk.

    The limit holds for the whole process: within it nothing may be reported.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def appending(db: Any, path: Path) -> Any:
    query = db.query("SELECT RSTREAM(v) FROM S [NOW]")
    query.into(path, append=True)
    return query


def test_a_full_disk_leaves_only_whole_lines_in_an_appended_file(db: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    appending(db, path)
    db.push("S", (1,), ts=1)
    db.advance(1)
    with pytest.raises(minidsms.Error, match="cannot write"), most_bytes(30):
        db.push("S", [(v,) for v in range(10)], ts=2)
        db.advance(2)
    assert path.read_text() == "_ts,_sign,v\n1,1,1\n"
    appending(db, path)
    db.push("S", (3,), ts=3)
    db.advance(3)
    assert path.read_text() == "_ts,_sign,v\n1,1,1\n3,1,3\n"


@pytest.mark.parametrize("left", ["2,1,", "2" * 200_000])
def test_half_a_line_that_was_left_is_cut_off_and_told(db: Any, tmp_path: Path, left: str) -> None:
    path = tmp_path / "out.csv"
    path.write_text("_ts,_sign,v\n1,1,1\n" + left)
    query = appending(db, path)
    assert f"its last {len(left):,} bytes were cut off" in query.written["note"]
    db.push("S", (3,), ts=3)
    db.advance(3)
    assert path.read_text() == "_ts,_sign,v\n1,1,1\n3,1,3\n"


def test_a_single_line_without_its_end_is_ended(db: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("_ts,_sign,v")
    appending(db, path)
    db.push("S", (3,), ts=3)
    db.advance(3)
    assert path.read_text() == "_ts,_sign,v\n3,1,3\n"


@pytest.mark.parametrize("suffix", ["csv", "arrow", "parquet"])
def test_a_full_disk_leaves_no_file_that_should_appear_whole(db: Any, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out.{suffix}"
    path.write_text("what stood there")
    query = db.query("SELECT v FROM S")
    with pytest.raises(minidsms.Error, match="cannot write"), most_bytes(10):
        query.into(path)
        db.push("S", [(v,) for v in range(10)], ts=2)
        query.close()
    assert path.read_text() == "what stood there"
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_whole_file_is_on_the_disk_before_it_gets_its_name(db: Any, tmp_path: Path, monkeypatch: Any) -> None:
    done: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, name=name, real=real: (done.append(name), real(*a))[1])
    db.query("SELECT v FROM S").into(tmp_path / "out.csv")
    db.close()
    assert done[:2] == ["fsync", "replace"]


def test_what_an_ended_process_left_is_removed_and_told(db: Any, tmp_path: Path) -> None:
    program = f"""
        import minidsms
        db = minidsms.connect()
        db.execute("CREATE STREAM S (v INTEGER)")
        db.query("SELECT v FROM S").into({str(tmp_path / "out.csv")!r})
        print("open", flush=True)
        input()
    """
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"open\n"
    (left,) = tmp_path.iterdir()
    assert left.suffix == ".part"

    first = db.query("SELECT v FROM S")
    assert first.into(tmp_path / "one.csv").notes == first.into(tmp_path / "two.csv").notes
    assert left.exists(), "its process is still writing it"

    writer.send_signal(signal.SIGKILL)
    writer.wait()
    second = db.query("SELECT v FROM S")
    second.into(tmp_path / "three.csv")
    assert f"removed {left}" in second.written["note"]
    assert not left.exists()


def test_other_hidden_files_are_left_alone(db: Any, tmp_path: Path) -> None:
    others = [tmp_path / name for name in (".out.csv.part", "out.csv.0123456789ab.part", ".0123456789ab.part")]
    for other in others:
        other.write_text("somebody's")
        os.utime(other, (time.time() - 10**6,) * 2)
    db.query("SELECT v FROM S").into(tmp_path / "out.csv")
    assert all(other.exists() for other in others)


def test_without_a_home_directory_kernels_are_compiled_and_queries_run(tmp_path: Path) -> None:
    """The folder beside the kernels cannot be written, and there is no other."""
    program = """
        import pathlib, sys
        def home():
            raise RuntimeError("Could not determine home directory.")
        pathlib.Path.home = home
        from minidsms.machine_code import store
        store._usable = lambda folder: None
        assert store.kept_in() is None
        import minidsms
        db = minidsms.connect()
        db.execute("CREATE STREAM S (v INTEGER)")
        q = db.query("SELECT v FROM S [RANGE 2]")
        db.push("S", (1,), ts=1)
        db.advance(4)
        assert [(c.ts, c.sign) for c in q.fetch()] == [(1, 1), (3, -1)] and "numba" in sys.modules
    """
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
