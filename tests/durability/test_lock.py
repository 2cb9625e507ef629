"""The lock on a folder, and children that hold it on behind a parent that has ended."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from minidsms.cql.errors import Error
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
