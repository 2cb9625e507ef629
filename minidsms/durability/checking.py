"""Whether a folder is sound, without opening it: every entry of its log is read and compared with its checksum."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field

from minidsms.cql.errors import Error
from minidsms.durability.backup import sizes_of
from minidsms.durability.blocks import blocks
from minidsms.durability.entry import read
from minidsms.durability.folder import metadata_of, no_folder
from minidsms.durability.lock import FolderLock
from minidsms.durability.repair import damage_of
from minidsms.durability.segments import HEADER, entries, segments


@dataclass
class Checked:
    """What a log holds. cut_off: bytes at its end that are no whole entries: not synced, or damaged since."""

    log: str
    segments: int
    blocks: int
    nbytes: int
    kinds: Counter[str] = field(default_factory=Counter)
    cut_off: int = 0


def check(folder: str) -> Checked:
    """Read a folder. Error where it is none, is open, or is damaged, naming the file."""
    metadata = metadata_of(folder) if os.path.isdir(folder) else None
    if metadata is None:
        raise no_folder(folder)
    lock = FolderLock(folder)
    try:
        place = os.path.join(folder, metadata.log)
        damage = damage_of(place, metadata.before["begin"]) if metadata.before else ""
        if damage:
            raise Error(f"{damage}\nhelp: opening the folder takes {metadata.before['log']}, of which that was made")
        there = segments(place)
        if not there:
            raise Error(f"{place!r} has no segment\nhelp: open a copy that db.backup(..) has made")
        apart = blocks(place)
        nbytes = sum(os.path.getsize(path) for path, _ in sizes_of(place))
        found = Checked(metadata.log, len(there), len(apart), nbytes)
        end = HEADER.size
        for entry in entries(place):
            fields, content = read(entry)
            content.check()
            found.kinds[fields["kind"]] += 1
            end = entry.end if entry.segment == there[-1] else HEADER.size
        found.cut_off = max(0, os.path.getsize(there[-1].path) - end)
        return found
    finally:
        lock.release()
