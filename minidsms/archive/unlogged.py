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
    from minidsms.archive.format import file_of, is_partition, readable

    found = []
    with readable(archive.folder):
        folders = [e.path for e in os.scandir(archive.folder) if is_partition(e.name) and e.is_dir()]
    for folder in folders:
        with readable(folder):
            names = set(os.listdir(folder))
            whole = {name for name in names if name.endswith(".parquet") and not name.startswith(".")}
            for replacement in replacements(folder):
                whole.difference_update(replacement.old)
                # Under its temporary name it is as whole; it has been synced before the replacement was written.
                whole.add(replacement.new if replacement.new in names else replacement.temporary)
            found += [file_of(os.path.join(folder, name)) for name in whole]
    return found


def replacements(folder: str) -> Iterator[Replacement]:
    """The compactions of a partition that have been decided and not finished."""
    for name in os.listdir(folder):
        if name.startswith(".replace-") and name.endswith(".json"):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
            yield Replacement(path, data["temporary"], data["new"], tuple(data["old"]))


def finish(archive: Archive) -> None:
    """Carry out the compactions that have been decided. Raises OSError."""
    from minidsms.archive.format import is_partition

    for entry in list(os.scandir(archive.folder)):
        if not is_partition(entry.name) or not entry.is_dir():
            continue
        for replacement in list(replacements(entry.path)):
            with contextlib.suppress(FileNotFoundError):
                os.rename(os.path.join(entry.path, replacement.temporary), os.path.join(entry.path, replacement.new))
            for name in replacement.old:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(entry.path, name))
            sync_folder(entry.path)
            os.unlink(replacement.path)
