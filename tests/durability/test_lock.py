"""The lock on a folder: children that hold it on behind a parent that has ended, and a connection that has lost it."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

import minidsms
from minidsms.cql.errors import Error
from minidsms.durability import lock
from minidsms.durability.connection import DurableConnection
from minidsms.durability.lock import FolderLock


def test_a_child_of_a_process_that_has_ended_is_waited_for(tmp_path: Path) -> None:
    process = os.fork()
    if process == 0:
        lock = FolderLock(str(tmp_path))
        if os.fork() == 0:  # as one that has not come to let go yet
            time.sleep(0.3)
        os._exit(0 if lock else 1)
    os.waitpid(process, 0)
    FolderLock(str(tmp_path)).release()


def test_a_connection_that_is_there_is_not_waited_for(tmp_path: Path) -> None:
    held = FolderLock(str(tmp_path))
    with pytest.raises(Error, match=f"is open already, in process {os.getpid()}"):
        FolderLock(str(tmp_path))
    held.release()
    FolderLock(str(tmp_path)).release()


@pytest.mark.parametrize("loss", ["removed", "copied", "gone", "let go"])
def test_a_connection_that_has_lost_its_folder_says_so_and_writes_nothing_more(
    tmp_path: Path, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "LOOK_S", 0.0)
    folder, moved = tmp_path / "db", tmp_path / "moved"
    loser = minidsms.connect(folder)
    loser.execute("CREATE STREAM S (k INTEGER); CREATE QUERY q AS SELECT COUNT(*) FROM S")
    loser.push("S", [(1,), (2,)], ts=[1, 2])
    if loss == "removed":
        (folder / "lock").unlink()
    elif loss in ("copied", "gone"):
        folder.rename(moved)
    if loss == "copied":
        shutil.copytree(moved, folder)
    if loss == "let go":
        (folder / "lock").write_text("1")  # by the process that has it now
    has_winner = loss in ("removed", "copied")
    winner = minidsms.connect(folder) if has_winner else None
    if winner is not None:
        winner.push("S", [(3,), (4,), (5,)], ts=[3, 4, 5])
        assert isinstance(winner, DurableConnection)
        winner.checkpoint()
    assert isinstance(loser, DurableConnection)
    for call in (
        lambda: loser.push("S", (6,), ts=6),
        lambda: loser.advance(7),
        lambda: loser.position("S"),
        lambda: loser.execute("CREATE STREAM T (k INTEGER)"),
        lambda: loser.set("batch_size", 100),
        loser.checkpoint,
        loser.queries["q"].fetch,
        lambda: loser.backup(tmp_path / "copy"),
    ):
        with pytest.raises(Error, match="no longer this connection's"):
            call()
    loser.close()
    if winner is not None:
        winner.push("S", (8,), ts=8)
        winner.close()
    with minidsms.connect(moved if loss == "gone" else folder) as again:
        assert again.position("S") == (6 if has_winner else 2)
        assert not again.warnings
