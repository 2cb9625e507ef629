"""What an archive holds, from its metadata and the footers of its files."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pyarrow as pa

from minidsms.archive.format import Archive, ArchiveFile
from minidsms.cql.errors import Error


@dataclass(frozen=True)
class FileFigures:
    """A file with its rows and bytes."""

    file: ArchiveFile
    rows: int
    nbytes: int


@dataclass(frozen=True)
class Inspected:
    """An archive's figures. first_ts, last_ts: of all elements, None where there is none."""

    archive: Archive
    files: list[FileFigures]

    @property
    def rows(self) -> int:
        """Elements in all."""
        return sum(f.rows for f in self.files)

    @property
    def nbytes(self) -> int:
        """Bytes on disk."""
        return sum(f.nbytes for f in self.files)

    @property
    def first_ts(self) -> int | None:
        """The least instant."""
        return min((f.file.first_ts for f in self.files), default=None)

    @property
    def last_ts(self) -> int | None:
        """The greatest instant."""
        return max((f.file.last_ts for f in self.files), default=None)


def inspect(archive: Archive) -> Inspected:
    """The figures of an archive. Error where a file cannot be read."""
    return Inspected(archive, [FileFigures(f, rows_of(f.path), os.path.getsize(f.path)) for f in archive.files()])


def rows_of(path: str) -> int:
    """How many rows a file has, by its footer. Error where it has none."""
    from pyarrow import parquet

    try:
        return int(parquet.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise Error(f"{path}: it cannot be read: {str(error)[:200]}\nhelp: minidsms archive verify says all") from None
