"""Files that are whole or not there, and stay after a crash of the machine.

A file is written under a temporary name with a leading dot, synced, renamed, and the rename is synced too; so what a
name without the dot stands for can be read, and what a call here has returned from is kept.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import IO

from minidsms.cql.errors import Error, shown
from minidsms.process.interrupts import held


def check_name(path: str) -> None:
    """Error where no file and no folder can be called so."""
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        encoded = b"\0"
    if b"\0" in encoded:
        raise Error(f"no file can be called {shown(path)}")


def temporary_name(name: str) -> str:
    """Where a file of this name is written before it is whole."""
    return f".{name}.part"


def write_file(path: str, write: Callable[[IO[bytes]], object]) -> None:
    """Let `write` fill a new file, which then appears under the path. Raises OSError, and what `write` raises."""
    temporary = write_temporary(path, write)
    os.replace(temporary, path)
    try:
        sync_folder(os.path.dirname(path))
    except OSError:
        # Who tries again must not find the file there already; where it cannot be removed, it has been written.
        try:
            os.unlink(path)
        except OSError:
            return
        raise


def write_temporary(path: str, write: Callable[[IO[bytes]], object]) -> str:
    """Let `write` fill the temporary file of a path, and sync it; its name."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, temporary_name(name))
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return temporary


def sync_folder(folder: str) -> None:
    """Make the names in a folder last."""
    sync_file(folder or ".")


def sync_file(path: str) -> None:
    """Make what somebody else has written into a file last."""
    with held:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
