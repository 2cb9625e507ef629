"""Compaction: the small files of a partition, as frequent flushes leave them, become few.

Invariant: at every moment the files of the last snapshot hold every element once. A new file is written first, one
commit puts it in the place of the old ones, and they are removed, which the next writer does if a crash prevented it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from minidsms.archive.files import FILE_ROWS, overlapping, read_files, write_piece
from minidsms.archive.format import Archive, ArchiveFile
from minidsms.archive.inspecting import rows_of
from minidsms.archive.writer import Writer
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
    with Writer(archive) as writer:
        before = after = 0
        by_partition = [
            (partition, list(found)) for partition, found in itertools.groupby(archive.files(), archive.partition_of)
        ]
        try:
            for i, (_, found) in enumerate(by_partition):
                before += len(found)
                after += len(found)
                for files in _merges(found, file_rows):
                    _merge(writer, files)
                    after -= len(files) - 1
                if progress is not None:
                    progress((i + 1) / len(by_partition))
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise Error(
                f"the archive {archive.folder!r} cannot be compacted: {reason}; nothing of it is lost"
            ) from None
        return Compacted(before, after)


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


def _merge(writer: Writer, files: list[ArchiveFile]) -> None:
    archive = writer.archive
    schema = archive.metadata.arrow_schema
    table = pa.concat_tables([t.cast(schema) for t in read_files(archive, files)])
    old = [f.path for f in files]
    writer.commit("compact", [write_piece(archive, table)], old)
    writer.discard(old)
