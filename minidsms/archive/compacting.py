"""Compaction: the small files of a partition, as frequent flushes leave them, become few.

Invariant: at every moment the files that `Archive.files` lists hold every element once. A new file is written and
synced under a temporary name; a replacement, written atomically, says that it stands for the old ones; then it is
renamed and they are removed, which whoever comes next does if a crash prevented it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from minidsms.archive.atomic import sync_folder, write_bytes, write_temporary
from minidsms.archive.files import FILE_ROWS, name_of, overlapping, read_files, write_parquet
from minidsms.archive.format import Archive, ArchiveFile, Replacement, replacements
from minidsms.archive.inspecting import rows_of
from minidsms.archive.locking import Lock
from minidsms.cql.errors import Error


@dataclass(frozen=True)
class Compacted:
    """What a compaction did: how many files there were and are."""

    before: int
    after: int


def compact(archive: Archive, file_rows: int = FILE_ROWS, progress: Callable[[float], None] | None = None) -> Compacted:
    """Merge the files of every partition into files of about file_rows rows. Error where somebody writes the archive.

    Reading the archive meanwhile may fail to find a file. progress: called with the fraction done.
    """
    lock = Lock(archive.folder)
    try:
        before = after = 0
        partitions = archive.partitions()
        for i, partition in enumerate(partitions):
            folder = archive.partition_folder(partition)
            finish(folder)
            found = sorted(archive.files_of(partition), key=lambda f: (f.first_ts, f.first_arrival))
            before += len(found)
            for files in _merges(found, file_rows):
                _merge(archive, folder, files)
            after += len(archive.files_of(partition))
            if progress is not None:
                progress((i + 1) / len(partitions))
        return Compacted(before, after)
    except OSError as error:
        reason = error.strerror or error
        raise Error(f"the archive {archive.folder!r} cannot be compacted: {reason}; nothing of it is lost") from None
    finally:
        lock.release()


def finish(folder: str) -> None:
    """Carry out the replacements of a partition that have been decided."""
    for replacement in list(replacements(folder)):
        _replace(folder, replacement)


def _merges(files: list[ArchiveFile], file_rows: int) -> Iterator[list[ArchiveFile]]:
    """Which files become one each. Overlapping files stay together."""
    together: list[ArchiveFile] = []
    rows = 0
    for group in overlapping(files):
        count = sum(rows_of(f.path) for f in group)
        if together and rows + count > file_rows:
            if len(together) > 1:
                yield together
            together, rows = [], 0
        together += group
        rows += count
    if len(together) > 1:
        yield together


def _merge(archive: Archive, folder: str, files: list[ArchiveFile]) -> None:
    schema = archive.metadata.arrow_schema
    table = pa.concat_tables([t.cast(schema) for t in read_files(archive, files)])
    new = name_of(table)
    temporary = write_temporary(os.path.join(folder, new), lambda file: write_parquet(archive, file, table))
    old = tuple(os.path.basename(f.path) for f in files)
    path = os.path.join(folder, f".replace-{secrets.token_hex(4)}.json")
    replacement = Replacement(path, os.path.basename(temporary), new, old)
    write_bytes(path, json.dumps({"temporary": replacement.temporary, "new": new, "old": old}).encode())
    _replace(folder, replacement)


def _replace(folder: str, replacement: Replacement) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.rename(os.path.join(folder, replacement.temporary), os.path.join(folder, replacement.new))
    for name in replacement.old:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    sync_folder(folder)
    os.unlink(replacement.path)
