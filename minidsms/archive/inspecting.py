"""What an archive holds, from its metadata and the footers of its files."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from minidsms.archive.format import Archive, ArchiveFile
from minidsms.archive.storage import storage_of
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
    files = archive.files()
    sizes = storage_of(archive.folder).sizes([file.path for file in files])
    return Inspected(archive, [FileFigures(f, rows_of(f.path), nbytes) for f, nbytes in zip(files, sizes)])


def rows_of(path: str) -> int:
    """How many rows a file has, by its footer. Error where it has none."""
    from pyarrow import parquet

    try:
        inside, system = storage_of(path).arrow(path)
        return int(parquet.read_metadata(inside, filesystem=system).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise Error(f"{path}: it cannot be read: {str(error)[:200]}\nhelp: minidsms archive verify says all") from None
