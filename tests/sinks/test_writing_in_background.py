"""Files written by a thread behind the engine hold the same bytes, and their errors come back to the caller."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.process.background import FEWEST_ROWS, Background
from minidsms.sinks.destination import Destination
from minidsms.sinks.lines import LineSink
from minidsms.sinks.opening import line_format

MANY = 2 * FEWEST_ROWS


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name == "minidsms-background"]


def test_work_is_done_in_order_be_it_little_or_much() -> None:
    background, done = Background(), list[int]()

    def work(i: int) -> None:
        time.sleep(0.001 if i % 5 == 0 else 0)
        done.append(i)

    for i in range(60):
        background.do(lambda i=i: work(i), MANY if i % 3 else 1)  # type: ignore[misc]
    background.finish()
    assert done == list(range(60))


def test_who_gives_more_than_can_be_done_waits() -> None:
    background, gate, begun = Background(), threading.Event(), list[int]()
    giver = threading.Thread(
        target=lambda: [background.do(lambda: (gate.wait(), None)[1], MANY) or begun.append(i) for i in range(20)]
    )
    giver.start()
    time.sleep(0.05)
    assert len(begun) <= 5
    gate.set()
    giver.join()
    background.finish()
    assert len(begun) == 20


def test_an_error_comes_back_once_and_nothing_is_done_after_it() -> None:
    background, done = Background(), list[int]()

    def fail() -> None:
        raise OSError("disk full")

    background.do(fail, MANY)
    background.settle()
    with pytest.raises(OSError, match="disk full"):
        background.do(lambda: done.append(1), MANY)
    background.finish()
    assert done == []


class _FullDisk(Destination):
    def write(self, data: Any) -> None:
        if len(data) > 1000:
            raise OSError("disk full")
        super().write(data)


@pytest.mark.parametrize("more", [False, True])
def test_a_full_disk_is_told_at_the_next_push_or_at_the_close_and_leaves_no_file(tmp_path: Path, more: bool) -> None:
    path = tmp_path / "out.csv"
    db = minidsms.connect()
    db.execute("CREATE STREAM A (k INTEGER)")
    q = db.query("SELECT k FROM A")
    sink = LineSink(str(path), line_format("csv"), _FullDisk)
    db.add_sink(q, sink)
    db.push("A", {"k": list(range(MANY))}, ts=list(range(MANY)))
    with pytest.raises(OSError, match="disk full"):
        if more:
            assert sink._background is not None
            sink._background.settle()
            db.push("A", {"k": list(range(MANY))}, ts=[MANY] * MANY)
        else:
            q.close_sink()
    db.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet", "arrow"])
def test_bytes_do_not_depend_on_how_much_comes_at_once(tmp_path: Path, suffix: str) -> None:
    n = 3 * FEWEST_ROWS
    files = []
    for size in (7, 500, n):
        path = tmp_path / f"{size}.{suffix}"
        with minidsms.connect() as db:
            db.execute("CREATE STREAM A (k INTEGER, t TEXT)")
            q = db.query("SELECT k, t FROM A")
            sink = q.into(str(path))
            for start in range(0, n, size):
                ks = list(range(start, min(start + size, n)))
                db.push("A", {"k": ks, "t": [f"a,{k % 11}" for k in ks]}, ts=ks)
            assert suffix not in ("csv", "json") or sink.bytes > n
        files.append(path.read_bytes())
    assert files[0] == files[1] == files[2]


def test_a_sink_given_up_ends_its_thread(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM A (k INTEGER)")
        q = db.query("SELECT k FROM A")
        sink: Any = q.into(str(tmp_path / "out.csv"))
        db.push("A", {"k": list(range(MANY))}, ts=list(range(MANY)))
        q.discard_sink()
        assert sink._background._thread is None
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_ends_without_closing_ends(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("ts,k\n" + "".join(f"{i},{i % 9}\n" for i in range(1_200_000)))
    program = f"""if True:
        import minidsms
        db = minidsms.connect()
        db.execute("CREATE STREAM A (ts INTEGER, k INTEGER) TIMESTAMP BY ts FROM '{tmp_path}/in.csv'")
        db.query("SELECT k FROM A").into('{tmp_path}/out.csv')
        db.run_some()
        db.run_some()
        raise SystemExit(3)
    """
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=240)
    assert (ended.returncode, ended.stderr) == (3, b"")
    assert not (tmp_path / "out.csv").exists()
