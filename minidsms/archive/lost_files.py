"""Files that a reader of an archive has listed and does not find: what has become of them.

Readers list the files first and read them later, Spark's tasks in other processes. Compaction and retention remove
files meanwhile. Invariant: what a reader misses is an error, never left out of what it gives.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from minidsms.archive.format import Archive, ArchiveFile, file_of, has_ranges, in_time_order
from minidsms.archive.log import read_snapshot
from minidsms.cql.errors import Error


@contextmanager
def telling_lost(archive: Archive, paths: Sequence[str]) -> Iterator[None]:
    """Files of the archive are opened; the Error of `lost` where one is not there."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError) as error:
        raise lost(archive, paths, str(error)) from None


def found_again(archive: Archive) -> Archive:
    """A pinned archive with, in the place of files that compaction has merged since, those that they are in now.

    What retention has removed stays pinned, for reading it is to be an error.
    """
    lacking = gone(archive)
    if not lacking:
        return archive
    now = replace(archive, pinned=None, end_arrival=None).files()
    files = {file.path: file for file in archive.pinned or ()}
    end = max(file.last_arrival for file in files.values())
    for merged in [file for file in now if file.path not in files and file.last_arrival <= end]:
        within = [file for file in lacking if _holds(merged, file)]
        # All its rows are of files that were pinned, so if it has as many as these, it has them all.
        if within and _rows([merged]) == _rows(within):
            files = {path: file for path, file in files.items() if file not in within} | {merged.path: merged}
    return replace(archive, pinned=in_time_order(files.values()))


def lost(archive: Archive, paths: Sequence[str], told: str) -> Error:
    """The error of a reader that does not find one of these files. told: what the system says."""
    lacking = gone(archive, paths)
    now = replace(archive, pinned=None, end_arrival=None).files() if lacking else []
    taken = [file for file in lacking if not any(_holds(merged, file) for merged in now)]
    if taken:
        last = max(file.last_ts for file in taken)
        return Error(
            f"retention has removed elements that are to be read from the archive {archive.folder!r}, "
            f"up to instant {last}\n"
            "help: run it again over what is kept now; to read all, set a longer archive_retention before, or none"
        )
    if lacking:
        return Error(
            f"compaction has merged files that are to be read from the archive {archive.folder!r}\nhelp: run it again"
        )
    return Error(
        f"the archive {archive.folder!r} lacks a file that its log names: {told[:500]}\n"
        "help: if compaction or retention has just removed it, read the archive again"
    )


def gone(archive: Archive, paths: Sequence[str] = ()) -> list[ArchiveFile]:
    """Of the files that were pinned, and of these, what the log names no more."""
    snapshot = read_snapshot(archive.folder)
    if snapshot is None:
        return []
    known = {file.path: file for file in archive.pinned or ()}
    known |= {path: file_of(path) for path in paths if path not in known and has_ranges(os.path.basename(path))}
    there = {os.path.join(archive.folder, name) for name in snapshot.files}
    return [file for path, file in known.items() if path not in there]


def _rows(files: Sequence[ArchiveFile]) -> int | None:
    """How many rows files have; None where the log does not tell."""
    known = [file.statistics.rows for file in files if file.statistics is not None]
    return sum(known) if len(known) == len(files) else None


def _holds(merged: ArchiveFile, file: ArchiveFile) -> bool:
    """Whether a file may be one that others, this among them, have been merged into."""
    return (
        merged.first_ts <= file.first_ts
        and file.last_ts <= merged.last_ts
        and merged.first_arrival <= file.first_arrival
        and file.last_arrival <= merged.last_arrival
    )
