"""Archives without a log, as earlier versions wrote them: what stands in the folders of their partitions is theirs.

A compaction there was a replacement, written beside the files it stood for, then a rename, then the removal of those;
one that was cut short counts as if it had been finished, and the first writer finishes it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minidsms.archive.atomic import sync_folder
from minidsms.archive.storage import storage_of
from minidsms.cql.errors import Error

if TYPE_CHECKING:
    from minidsms.archive.format import Archive, ArchiveFile


@dataclass(frozen=True)
class Replacement:
    """A compaction that is under way: `temporary`, once renamed to `new`, stands for all of `old`."""

    path: str
    temporary: str
    new: str
    old: tuple[str, ...]


def files(archive: Archive) -> list[ArchiveFile]:
    """The files of all partitions, in no order."""
    from minidsms.archive.format import file_of, partition_folders, readable

    found = []
    for folder in partition_folders(archive.folder):
        with readable(folder):
            names = {entry.name for entry in storage_of(folder).entries(folder)}
            whole = {name for name in names if name.endswith(".parquet") and not name.startswith(".")}
            for replacement in replacements(folder):
                whole.difference_update(replacement.old)
                # Under its temporary name it is as whole; it has been synced before the replacement was written.
                whole.add(replacement.new if replacement.new in names else replacement.temporary)
            found += [file_of(os.path.join(folder, name)) for name in whole]
    return found


def replacements(folder: str) -> Iterator[Replacement]:
    """The compactions of a partition that have been decided and not finished."""
    for name in [entry.name for entry in storage_of(folder).entries(folder)]:
        if name.startswith(".replace-") and name.endswith(".json"):
            path = os.path.join(folder, name)
            data = json.loads(storage_of(path).read(path))
            yield Replacement(path, data["temporary"], data["new"], tuple(data["old"]))


def finish(archive: Archive) -> None:
    """Carry out the compactions that have been decided. Raises OSError; Error where one has been copied to an
    address.
    """
    from minidsms.archive.format import partition_folders

    for folder in partition_folders(archive.folder):
        for replacement in list(replacements(folder)):
            if not storage_of(folder).locks:
                raise Error(
                    f"a compaction of {archive.folder!r} was cut short before it was copied\n"
                    "help: minidsms archive compact the original, and copy it again"
                )
            with contextlib.suppress(FileNotFoundError):
                os.rename(os.path.join(folder, replacement.temporary), os.path.join(folder, replacement.new))
            for name in replacement.old:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(folder, name))
            sync_folder(folder)
            os.unlink(replacement.path)
