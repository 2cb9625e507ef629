"""Copies of a folder that is open, and whether a folder is sound."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import minidsms
from minidsms.cql.errors import Error
from minidsms.durability import backup, blocks, kept_state
from minidsms.durability.checking import check
from minidsms.durability.connection import DurableConnection
from minidsms.durability.entry import decoded
from minidsms.durability.segments import entries, segments
from minidsms.shell.main import main
from tests.refusing import refusing


@pytest.fixture
def db(tmp_path: Path) -> minidsms.Connection:
    db = minidsms.connect(tmp_path / "db")
    db.execute("CREATE STREAM S (k INTEGER)")
    db.query("SELECT k, COUNT(*) FROM S [RANGE 10] GROUP BY k", name="counts")
    db.push("S", [(1,), (2,)], ts=[0, 1])
    return db


def test_a_folder_that_cannot_be_listed_is_an_error(
    db: minidsms.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "listdir", refusing(errno.EMFILE))
    with pytest.raises(Error, match="cannot be read: Too many open files"):
        db.backup(tmp_path / "copy")
    with pytest.raises(Error, match="cannot be read: Too many open files"):
        db.checkpoint()
    monkeypatch.undo()
    db.backup(tmp_path / "copy")


def test_a_copy_opens_elsewhere_with_what_there_was(db: minidsms.Connection, tmp_path: Path) -> None:
    db.checkpoint()
    db.backup(tmp_path / "copy")
    db.push("S", (3,), ts=2)
    with minidsms.connect(tmp_path / "copy") as copy:
        assert copy.position("S") == 2
        assert copy.queries["counts"].results == 1
        copy.push("S", (9,), ts=5)
    assert db.position("S") == 3
    with pytest.raises(Error, match="there already"):
        db.backup(tmp_path / "copy")


def test_copies_made_beside_pushes_are_whole(db: minidsms.Connection, tmp_path: Path) -> None:
    def push() -> None:
        for i in range(2, 60):
            db.push("S", (i,), ts=i)
            if i % 20 == 0:
                db.checkpoint()

    thread = threading.Thread(target=push)
    thread.start()
    copies = 0
    while thread.is_alive() and copies < 5:
        db.backup(tmp_path / f"copy{copies}")
        copies += 1
    thread.join()
    last = 0
    for i in range(copies):
        with minidsms.connect(tmp_path / f"copy{i}") as copy:
            assert last <= copy.position("S") <= 60
            last = copy.position("S")
    assert db.position("S") == 60


def test_a_copy_that_cannot_be_written_leaves_nothing(db: minidsms.Connection, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Error, match="cannot be made"):
        db.backup(tmp_path / "file" / "copy")
    assert db.position("S") == 2


def test_a_copy_that_fails_touches_nothing_that_was_there(
    db: minidsms.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine" / "letter"
    mine.parent.mkdir()
    mine.write_text("dear")
    with pytest.raises(Error, match="there already"):
        db.backup(mine.parent)
    with pytest.raises(Error, match="there already"):
        db.backup(mine)
    (tmp_path / "empty").mkdir()
    db.backup(tmp_path / "empty")

    def fails(folder: str, metadata: object) -> None:
        mine.rename(Path(folder) / "letter")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backup, "save", fails)
    with pytest.raises(Error, match="cannot be written: No space left"):
        db.backup(tmp_path / "copy")
    assert os.listdir(tmp_path / "copy") == ["letter"]


def test_a_copy_that_was_not_completed_does_not_open(db: minidsms.Connection, tmp_path: Path) -> None:
    db.backup(tmp_path / "copy")
    (tmp_path / "copy" / "minidsms.json").unlink()
    for opens in (minidsms.connect, check):
        with pytest.raises(Error, match=r"minidsms.json' is missing"):
            opens(str(tmp_path / "copy"))
    (tmp_path / "new" / "log-1").mkdir(parents=True)  # a process was ended here as it made the folder
    minidsms.connect(tmp_path / "new").close()


@pytest.mark.parametrize("name", ["log", "entries", "begin"])
@pytest.mark.parametrize("damage", [lambda name, value: (name + "x", value), lambda name, value: (name, [value])])
def test_what_a_checkpoint_was_made_of_is_read_whole_or_not(
    db: minidsms.Connection, tmp_path: Path, name: str, damage: Callable[[str, object], tuple[str, object]]
) -> None:
    db.checkpoint()
    db.close()
    path = tmp_path / "db" / "minidsms.json"
    said = json.loads(path.read_text())
    said["before"] = dict(damage(*item) if item[0] == name else item for item in said["before"].items())
    path.write_text(json.dumps(said))
    with pytest.raises(Error, match=r"minidsms.json': not what a minidsms folder holds"):
        minidsms.connect(tmp_path / "db")


def test_check_tells_what_a_folder_holds(
    db: minidsms.Connection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "db")
    assert main(["check", folder]) == 1
    assert "open already" in capsys.readouterr().err
    db.close()
    path = os.path.join(folder, "log-1", "0" * 20 + ".log")
    with open(path, "ab") as file:
        file.write(b"half")
    assert main(["check", folder]) == 0
    shown = capsys.readouterr().out
    assert "push" in shown
    assert "sound\n4 bytes at the end" in shown
    assert check(folder).kinds["push"] == 1


def test_check_names_what_is_damaged(
    db: minidsms.Connection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db.close()
    folder = tmp_path / "db"
    (folder / "log-1" / ("0" * 20 + ".log")).write_bytes(b"something else, and long enough for a header")
    assert main(["check", str(folder)]) == 1
    assert "log' is damaged at byte 0" in capsys.readouterr().err
    (folder / "minidsms.json").write_text("{}")
    assert main(["check", str(folder)]) == 1
    assert "minidsms.json" in capsys.readouterr().err
    assert main(["check", str(tmp_path / "nowhere")]) == 1
    assert "no such folder" in capsys.readouterr().err


def test_a_folder_of_an_older_version_is_read(tmp_path: Path) -> None:
    """It was made before checkpoints kept state, and the log they are made of; from then on older ones refuse it."""
    folder = shutil.copytree(Path(__file__).parent / "folder_1", tmp_path / "db")
    assert sum(check(str(folder)).kinds.values()) == 11
    assert '"version": 1,' in (folder / "minidsms.json").read_text()
    with minidsms.connect(str(folder)) as db:
        assert '"version": 5' in (folder / "minidsms.json").read_text()
        assert not db.warnings and db.position("S") == 22
        assert [change.row for change in db.queries["large"].fetch(ack=6)] == [(4, "x"), (5, None)]
        assert Counter(db.queries["counts"].snapshot()) == Counter([("t0", 1), ("t1", 2), ("x", 1), (None, 1)])
        db.execute("CHECKPOINT")
        assert [row[0] for row in db.execute("SHOW CHECKPOINTS")] == ["log-2", "log-3"]


def test_a_folder_with_other_checksums_is_read_and_gone_on_with(tmp_path: Path) -> None:
    """Its entries carry CRC-32; what is written from now on stands in a segment of its own. The state of totals is kept
    in version 1.
    """
    folder = shutil.copytree(Path(__file__).parent / "folder_2", tmp_path / "db")
    assert sum(check(str(folder)).kinds.values()) == 18
    for k, position in ((5, 22), (6, 23)):
        with minidsms.connect(str(folder)) as db:
            assert not db.warnings and db.position("S") == position and db.position("R") == 3
            totals = sorted(db.queries["totals"].snapshot())
            assert totals == [(0, 7, "t0"), (1, 7 + (k == 6), "t1"), (2, 6, "t2"), (4, 1, "x"), (5, 1, "y")][: k - 1]
            assert [change.row for change in db.queries["joined"].fetch(ack=11)] == [(2, 2.5), (1, 1.5)]
            db.push("S", (k, "y"), ts=17 + k)
            db.advance(17 + k)
    versions = {segment.first: Path(segment.path).read_bytes()[13] for segment in segments(str(folder / "log-2"))}
    assert versions == {0: 1, 15: 1, 18: 3}
    path = folder / "log-2" / f"{15:020d}.log"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(Error, match=f"{15:020d}.log' is damaged"):
        check(str(folder))


def test_kept_state_of_version_1_goes_on_through_a_checkpoint_of_today(tmp_path: Path) -> None:
    folder = shutil.copytree(Path(__file__).parent / "folder_2", tmp_path / "db")

    def kept() -> list[tuple[str, int]]:
        told = [decoded(found.payload, "")[0] for found in entries(db.log_folder)]
        return [(fields["query"], fields["version"]) for fields in told if fields["kind"] == "synopsis"]

    for version, until, n in ((1, 20, 7), (kept_state.VERSION, 22, 8), (kept_state.VERSION, 22, 8)):
        with minidsms.connect(str(folder)) as db:
            assert isinstance(db, DurableConnection)
            assert kept() == [("totals", version)]
            db.advance(until)
            assert sorted(db.queries["totals"].snapshot()) == [(0, 7, "t0"), (1, n, "t1"), (2, 6, "t2"), (4, 1, "x")]
            db.checkpoint()
            assert kept() == [("totals", kept_state.VERSION)]


def test_a_folder_without_blocks_is_read_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is of version 3, and holds kept state and the history of a query. Its next checkpoint has blocks."""
    monkeypatch.setattr(blocks, "LEAST_BYTES", 16)
    folder = shutil.copytree(Path(__file__).parent / "folder_3", tmp_path / "db")
    assert sum(check(str(folder)).kinds.values()) == 23
    totals = [(0, 7, "t0"), (1, 8, "x"), (2, 6, "t2"), (4, 1, None), (5, 1, "y"), (6, 1, "y")]
    newest = [("t0", 0), ("t2", 2), ("x", 1), ("t1", 1), (None, 4)]
    for k, n in ((5, 3), (6, 5), (7, 6)):
        with minidsms.connect(str(folder)) as db:
            assert isinstance(db, DurableConnection)
            assert '"version": 5' in (folder / "minidsms.json").read_text()
            assert not db.warnings and db.position("S") == k + 17 and db.position("R") == 3
            assert sorted(db.queries["totals"].snapshot()) == totals[:n]
            there = newest[:4] if k == 5 else [*newest, ("y", k - 1)]
            assert Counter(db.queries["last"].snapshot()) == Counter(there)
            db.push("S", (k, "y"), ts=17 + k)
            db.advance(17 + k)
            db.checkpoint()
            assert blocks.blocks(db.log_folder)
