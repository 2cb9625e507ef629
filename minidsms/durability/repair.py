"""A folder whose last checkpoint is damaged: the log it was made of takes its place, with what has come since.

Invariant: the log that is made holds every entry since the folder was made, or since the checkpoint before; else there
is an error, and nothing has changed.
"""

from __future__ import annotations

import os
import shutil

from minidsms.cql.errors import Error, saying
from minidsms.durability.blocks import BlockWriter
from minidsms.durability.entry import placed, read
from minidsms.durability.folder import CHECKPOINT, FIRST_LOG, Metadata, create, log_after, save
from minidsms.durability.log import Log
from minidsms.durability.segments import entries


def repaired(folder: str, metadata: Metadata) -> tuple[Metadata, str]:
    """(what the folder says of itself now, what was damaged and what was done, or ""). Error where the folder cannot
    be opened with all that it had.
    """
    before = metadata.before
    if not before:
        return metadata, ""
    place = os.path.join(folder, metadata.log)
    damage = damage_of(place, before["begin"])
    if not damage:
        return metadata, ""
    made = os.path.join(folder, CHECKPOINT)
    shutil.rmtree(made, ignore_errors=True)
    create(made, metadata.settings)
    log = Log(os.path.join(made, FIRST_LOG), "os")
    try:
        old = os.path.join(folder, before["log"])
        writer = BlockWriter(log.folder, old)
        try:
            for found in entries(old, before["entries"]):
                fields, content = read(found)
                content.check()
                log.append(*placed(writer, fields, content.pieces))
            writer.sync()
        except (Error, OSError) as error:
            raise Error(f"{damage}\n{error}") from None
        if log.next != before["entries"]:
            raise Error(f"{damage}\n{old!r}, of which it was made, ends in entry {log.next} of {before['entries']}")
        for found in entries(place, begin=before["begin"]):
            log.append(found.payload)
    finally:
        log.close()
    now = Metadata(metadata.settings, log_after(metadata.log), metadata.checkpoints)
    target = os.path.join(folder, now.log)
    shutil.rmtree(target, ignore_errors=True)  # of a process that ended before it could say that it counts
    with saying(f"the folder {folder!r} cannot be written"):
        os.replace(log.folder, target)
        save(folder, now)
    return now, f"{damage}\nthe log that this checkpoint was made of has taken its place, and nothing is lost"


def damage_of(log_folder: str, until: int) -> str:
    """What is wrong with the entries before a number, all of which have been on disk; "" where nothing is."""
    try:
        n = 0
        for found in entries(log_folder, until):
            read(found)[1].check()
            n += 1
    except Error as error:
        return str(error).partition("\n")[0]
    return "" if n == until else f"{log_folder!r} ends in entry {n}; the checkpoint there has {until}"
