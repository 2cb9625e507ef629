"""Files to read, wherever they are: opened, unpacked by their names, and found by patterns and folders.

Invariant: a file is read alike whether it lies on this machine or elsewhere (`remote_files`), compressed or not.
"""

from __future__ import annotations

import bz2
import contextlib
import glob
import gzip
import io
import lzma
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Protocol, cast

import pyarrow as pa

from minidsms.cql.errors import Error, shown

_PACKED: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": lambda raw: io.BufferedReader(pa.CompressedInputStream(raw, "zstd"), 1 << 18),
}
BY_SUFFIX = {
    ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".ipc": "arrow", ".feather": "arrow",
}  # fmt: skip
"""The format of files that are read and written."""
_OTHER_KINDS = {
    b"PK\x03\x04": "it is a zip archive\nhelp: unpack it; a sheet of a workbook is saved as CSV",
    b"SQLite format 3": "it is a database\nhelp: CREATE RELATION R (..) FROM 'x.db' WITH (table = 'name') reads one",
    b"PAR1": "it is a Parquet file\nhelp: end its name in .parquet, or write FORMAT parquet behind it",
    b"ARROW1": "it is an Arrow file\nhelp: end its name in .arrow, or write FORMAT arrow behind it",
    b"\x1f\x8b": "it is compressed by gzip\nhelp: end its name in .gz",
    b"BZh91AY&SY": "it is compressed by bzip2\nhelp: end its name in .bz2",
    b"\xfd7zXZ": "it is compressed by xz\nhelp: end its name in .xz",
    b"\x28\xb5\x2f\xfd": "it is compressed by Zstandard\nhelp: end its name in .zst",
}
"""How files begin that are no texts, what they are and what to do."""
_BEGINNING = 1024
"""Bytes by which a file is known again."""


class Files(Protocol):
    """What files are read from."""

    def open(self, path: str) -> tuple[IO[bytes], int]:
        """A file that can be read from anywhere, and its size; 0 where nobody knows. OSError or Error where there is
        none.
        """

    def named(self, path: str) -> list[str] | None:
        """The files that a pattern or a folder names, in the order of their names; None where it is neither."""


class LocalFiles:
    """Files of this machine."""

    def open(self, path: str) -> tuple[IO[bytes], int]:
        raw = cast("IO[bytes]", open(path, "rb"))  # noqa: SIM115
        return raw, os.fstat(raw.fileno()).st_size

    def named(self, path: str) -> list[str] | None:
        """See `Files`. In folders, what begins with "." or "_" is hidden."""
        if os.path.isdir(path):
            found = (os.path.join(top, name) for top, _, names in os.walk(path) for name in names)
            return sorted(each for each in found if not is_hidden(os.path.relpath(each, path)))
        if glob.has_magic(path) and not os.path.exists(path):
            return sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
        return None


LOCAL = LocalFiles()


def is_hidden(path: str) -> bool:
    """Part of the path within a folder begins with "." or "_": such files are others' notes."""
    return any(part[:1] in "._" for part in path.replace(os.sep, "/").split("/"))


@dataclass(frozen=True)
class OpenFile:
    """An open file. data: decompressed.  raw: as it stands.  size: bytes of raw."""

    data: IO[bytes]
    raw: IO[bytes]
    size: int
    _begins: bytes | None

    def beginning(self, length: int = _BEGINNING) -> bytes:
        """Its first bytes, at most _BEGINNING of them: by these a file is known again."""
        if self._begins is not None:
            return self._begins[:length]
        return os.pread(self.raw.fileno(), min(length, _BEGINNING), 0)

    def size_now(self) -> int:
        """The bytes it has by now."""
        return self.size if self._begins is not None else os.fstat(self.raw.fileno()).st_size

    def consumed(self) -> int:
        """The bytes that have been read; all of them once it is closed, as another thread may do at this moment."""
        try:
            return min(self.raw.tell(), self.size)
        except (OSError, ValueError):
            return self.size

    def close(self) -> None:
        """Give it up."""
        give_up(self.data, self.raw)


def open_file(path: str, files: Files = LOCAL) -> OpenFile:
    """A file, unpacked as its name says. Error with a way out where it cannot be opened."""
    try:
        raw, size = files.open(path)
        begins = None
        if files is not LOCAL:
            begins = raw.read(_BEGINNING)
            raw.seek(0)
    except (OSError, ValueError) as error:
        raise cannot_read(path, error) from None
    for ending, unpacked in _PACKED.items():
        if path.lower().endswith(ending):
            return OpenFile(cast("IO[bytes]", unpacked(raw)), raw, size, begins)
    return OpenFile(raw, raw, size, begins)


@contextlib.contextmanager
def reading(path: str, close: Callable[[], None] = lambda: None) -> Iterator[None]:
    """What fails is an Error that names the file, and closes it."""
    try:
        yield
    except Exception as error:  # zlib's error has no base of its own
        close()
        raise (error if isinstance(error, Error) else cannot_read(path, error)) from None


def content(path: str, files: Files = LOCAL, most: int = -1) -> bytes:
    """What a file holds, or so many bytes of it. Error with a way out where it cannot be read."""
    file = open_file(path, files)
    try:
        with reading(path):
            return file.data.read(most)
    finally:
        file.close()


def unpacked_name(path: str) -> str:
    """The name in lower case, without what says how the file is compressed."""
    return next((path[: -len(e)] for e in _PACKED if path.lower().endswith(e)), path).lower()


def other_kind(start: bytes) -> str:
    """What a file that begins so is, and the way out, where it is no text; "" where it may be one."""
    return next((told for first, told in _OTHER_KINDS.items() if start.startswith(first)), "")


def is_packed(path: str) -> bool:
    """The name says that the file is compressed."""
    return unpacked_name(path) != path.lower()


def give_up(*files: IO[bytes]) -> None:
    """Close files that have been read, or cannot be: nothing is lost where that fails."""
    for file in files:
        with contextlib.suppress(OSError):
            file.close()


def cannot_read(path: str, error: Exception) -> Error:
    """The error for a file that cannot be opened or read."""
    if isinstance(error, FileNotFoundError):
        hint = "" if "://" in path else f"\nhelp: relative paths start at {os.getcwd()}"
        return Error(f"no file {shown(path)}{hint}")
    if isinstance(error, IsADirectoryError):
        return Error(f"{shown(path)} is a folder\nhelp: name a file in it")
    if isinstance(error, PermissionError):
        return Error(f"{shown(path)} may not be read\nhelp: check its permissions")
    return Error(f"cannot read {shown(path)}: {str(error)[:200]}")
