"""The folder of a connection while it is open: whose it is, what it says of itself, which log counts.

Invariant: the lock is held from before anything is read until `release`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from minidsms.archive.atomic import check_name
from minidsms.cql.errors import saying
from minidsms.durability.folder import (
    CHECKPOINT,
    FIRST_LOG,
    LOG_NAME,
    METADATA,
    VERSION,
    Metadata,
    check_outside,
    create,
    log_after,
    metadata_of,
    no_folder,
    save,
)
from minidsms.durability.lock import FolderLock
from minidsms.durability.repair import repaired

if TYPE_CHECKING:
    from minidsms.durability.log import Log

MOST_TOLD = 20
"""Checkpoints that SHOW CHECKPOINTS tells of."""


class OwnedFolder:
    """path: absolute.  damage: what of it was damaged and what was done, or ""."""

    def __init__(self, path: str, settings: dict[str, Any]) -> None:
        """Open a folder; one that is not there is made, with these settings. Error where that cannot be, something
        else is there, or another connection has it.
        """
        _prepare(path)
        self.path, self.lock = path, FolderLock(path)
        try:
            found = metadata_of(path)
            if found is None:
                found = Metadata(settings)
                create(path, settings)
            self.metadata, self.damage = repaired(path, found)
            self.tidy()
        except BaseException:
            self.lock.release()
            raise

    @property
    def log_place(self) -> str:
        """Where the log is that counts."""
        return os.path.join(self.path, self.metadata.log)

    def tidy(self) -> None:
        """Remove what a process that ended has left, or a checkpoint, as far as that can be."""
        kept = self.metadata.log, self.metadata.before.get("log")
        with contextlib.suppress(OSError):
            for name in os.listdir(self.path):
                if name == CHECKPOINT or (LOG_NAME.fullmatch(name) and name not in kept):
                    shutil.rmtree(os.path.join(self.path, name), ignore_errors=True)

    def raise_version(self) -> None:
        """Let a folder that an older minidsms made be of this version, before what that cannot read comes into it.
        Error where it cannot be written.
        """
        if self.metadata.version != VERSION:
            now = replace(self.metadata, version=VERSION)
            with saying(f"the folder {self.path!r} cannot be written"):
                save(self.path, now)
            self.metadata = now

    def switch_to(self, log: Log, made: dict[str, Any], before: dict[str, Any]) -> None:
        """Let a checkpoint be the log that counts. made: what is told of it.  before: see `Metadata`.  Raises OSError;
        then `is_as_known` says whether the folder still names the log it did.
        """
        self.lock.check()
        name = log_after(self.metadata.log)
        place, log.folder = log.folder, os.path.join(self.path, name)
        os.replace(place, log.folder)
        told = (*self.metadata.checkpoints, {"log": name, **made})[-MOST_TOLD:]
        metadata = Metadata(self.metadata.settings, name, told, before)
        save(self.path, metadata)
        self.metadata = metadata

    @property
    def is_as_known(self) -> bool:
        """The folder says of itself what is known."""
        return metadata_of(self.path) == self.metadata


def _prepare(folder: str) -> None:
    """Make the folder, where it is not there. Error where that cannot be, or something else is there."""
    check_name(folder)
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise no_folder(folder)
    is_new = not os.path.exists(os.path.join(folder, METADATA))
    if is_new:
        check_outside(folder)
    with saying(f"the folder {folder!r} cannot be made"):
        os.makedirs(folder, exist_ok=True)
        if is_new and any(map(_is_foreign, os.listdir(folder))):
            raise no_folder(folder)


def _is_foreign(name: str) -> bool:
    return name not in ("lock", FIRST_LOG) and not name.startswith(f".{METADATA}")
