"""A copy of a folder that is open: what its log held when the copy began.

Invariant: a copy is whole when it has its `minidsms.json`, which is written last.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import IO

from minidsms.archive.atomic import sync_folder
from minidsms.cql.errors import Error, saying
from minidsms.durability.blocks import blocks
from minidsms.durability.folder import FIRST_LOG, METADATA, Metadata, check_outside, save
from minidsms.durability.segments import segments


def sizes_of(log_folder: str) -> list[tuple[str, int]]:
    """The files of a log and how long they are now; a log only grows. Error where they cannot be listed."""
    with saying(f"the log {log_folder!r} cannot be read"):
        paths = [segment.path for segment in segments(log_folder)]
        paths += [os.path.join(log_folder, name) for name in blocks(log_folder)]
        return [(path, os.path.getsize(path)) for path in paths]


def copy(files: list[tuple[str, int]], metadata: Metadata, target: str) -> None:
    """Copy so much of the files into a new folder, or an empty one. Error where something is there, or where it cannot
    be written; then nothing is left, and nothing else is touched.
    """
    check_outside(target)
    try:
        os.makedirs(target, exist_ok=True)
        if os.listdir(target):
            raise FileExistsError
        os.mkdir(os.path.join(target, FIRST_LOG))
    except FileExistsError:
        raise Error(f"{target!r} is there already\nhelp: name a new folder for the copy") from None
    except OSError as error:
        raise Error(f"{target!r} cannot be made: {error.strerror or error}") from None
    try:
        for path, size in files:
            with (
                open(path, "rb") as source,
                open(os.path.join(target, FIRST_LOG, os.path.basename(path)), "xb") as made,
            ):
                _copy(source, made, size)
                made.flush()
                os.fsync(made.fileno())
        sync_folder(os.path.join(target, FIRST_LOG))
        save(target, Metadata(metadata.settings))
        sync_folder(os.path.dirname(os.path.abspath(target)))
    except BaseException as error:
        shutil.rmtree(os.path.join(target, FIRST_LOG), ignore_errors=True)
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(target, METADATA))
        with contextlib.suppress(OSError):  # what else has come into it stays
            os.rmdir(target)
        if isinstance(error, OSError):
            raise Error(f"the copy {target!r} cannot be written: {error.strerror or error}") from None
        raise


def _copy(source: IO[bytes], made: IO[bytes], size: int) -> None:
    while size > 0:
        piece = source.read(min(size, 1 << 20))
        if not piece:
            raise OSError(0, "a segment of the log has become shorter")
        made.write(piece)
        size -= len(piece)
