"""Where archives lie: folders of this machine, and addresses such as `s3://bucket/data`, by fsspec.

A place is a text, a path or an address; what is below it is joined by `/`. All that archives do there goes through the
few operations of `Storage`. Invariants: a name stands for a whole file or for none; `create` never replaces; what a
call has returned from stays.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any, Protocol
from urllib.parse import unquote, urlsplit

from minidsms.archive.atomic import check_name, sync_folder, write_file
from minidsms.cql.errors import Error, shown

_ALSO = {"s3a": "s3", "s3n": "s3", "ssh": "sftp"}
"""Other names of schemes."""
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


@dataclass(frozen=True)
class Entry:
    """What a folder holds. name: without the folder's."""

    name: str
    is_folder: bool


class Held(Protocol):
    """The right to write an archive."""

    def is_held(self) -> bool:
        """Whether it is not known to have been lost to somebody else."""

    def release(self) -> None:
        """Let another writer have it. Releasing twice is no error."""


class InDoubtError(OSError):
    """A file may have been created, now or later: nobody answers."""


class Storage(Protocol):
    """What archives ask of a file system. Everything raises OSError, FileNotFoundError where something is missing.

    locks: whether who holds an archive's lock is its only writer for certain. Elsewhere a lock can be lost, and only
    the log, which is written by `create`, decides who commits.
    """

    locks: bool

    def read(self, path: str) -> bytes:
        """A file's content."""

    def read_all(self, paths: Sequence[str]) -> list[bytes]:
        """The content of small files."""

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""

    def entries(self, folder: str) -> list[Entry]:
        """What a folder holds, in no order."""

    def sizes(self, paths: Sequence[str]) -> list[int]:
        """Bytes of files."""

    def write(self, path: str, fill: Callable[[IO[bytes]], object]) -> None:
        """Let `fill` give a file's content, which then is there as a whole, also in the place of another file."""

    def create(self, path: str, data: bytes) -> None:
        """A small new file. FileExistsError where one is there, also where two create it at once; where the storage has
        locks, only their holder may call it.
        """

    def remove(self, path: str) -> None:
        """Remove a file."""

    def make_folder(self, folder: str) -> None:
        """Let files be written into a folder, which may be there."""

    def remove_folder(self, folder: str) -> None:
        """Remove a folder that is empty; OSError where it is not."""

    def remove_tree(self, folder: str) -> None:
        """Remove a folder, if it is there, with all that it holds, as far as can be."""

    def move_tree(self, folder: str, to: str) -> None:
        """Let a folder of files have another name; where that was cut short, the rest."""

    def arrow(self, path: str) -> tuple[str, Any]:
        """The path, and the file system it is of, as pyarrow takes them; None is its own."""

    def lock(self, folder: str) -> Held:
        """Become the writer of an archive. Error where somebody else is."""


class _Local:
    """Folders of this machine."""

    locks = True

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def read_all(self, paths: Sequence[str]) -> list[bytes]:
        return list(map(self.read, paths))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def entries(self, folder: str) -> list[Entry]:
        with os.scandir(folder) as found:
            return [Entry(entry.name, entry.is_dir()) for entry in found]

    def sizes(self, paths: Sequence[str]) -> list[int]:
        return list(map(os.path.getsize, paths))

    def write(self, path: str, fill: Callable[[IO[bytes]], object]) -> None:
        write_file(path, fill)

    def create(self, path: str, data: bytes) -> None:
        if os.path.exists(path):
            raise FileExistsError(path)
        write_file(path, lambda file: file.write(data))

    def remove(self, path: str) -> None:
        os.unlink(path)

    def make_folder(self, folder: str) -> None:
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
            sync_folder(os.path.dirname(folder))

    def remove_folder(self, folder: str) -> None:
        os.rmdir(folder)

    def remove_tree(self, folder: str) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    def move_tree(self, folder: str, to: str) -> None:
        os.rename(folder, to)

    def arrow(self, path: str) -> tuple[str, Any]:
        return os.path.abspath(path), None  # "ab:c/S" would be an address to it, and "~" the user's home

    def lock(self, folder: str) -> Held:
        from minidsms.archive.locking import Lock

        return Lock(folder)


LOCAL: Storage = _Local()


def storage_of(place: str) -> Storage:
    """What reads and writes at a place. Error where there is none."""
    if not is_address(place):
        return LOCAL
    from minidsms.archive.objects import objects_of

    return objects_of(place)


def is_address(place: str) -> bool:
    """A place is an address, and no path."""
    return _ADDRESS.match(place) is not None


def located(folder: str) -> str:
    """A folder of archives as a path or an address; `file:` URLs become paths, `s3a:` is `s3:` and `ssh:` is `sftp:`.
    Error for what names no folder.
    """
    check_name(folder)
    try:
        folder.encode()
    except UnicodeEncodeError:
        raise Error(f"{shown(folder)} cannot be the folder of an archive: readers of Parquet know UTF-8 only") from None
    match = _ADDRESS.match(folder)
    if match is None:
        return folder
    try:
        parts = urlsplit(folder)
    except ValueError as error:
        raise Error(f"{folder!r} is no address: {error}") from None
    scheme = match[1].lower()
    if scheme == "file" and parts.netloc in ("", "localhost"):
        return unquote(parts.path)
    rest = folder[len(match[1]) + 1 :]
    if not rest.startswith("//") or {".", ".."} & set(rest.split("/")) or not rest.strip("/"):
        raise Error(f"{folder!r} names no folder of archives\nhelp: such as {scheme}://bucket/folder")
    return f"{_ALSO.get(scheme, scheme)}:{rest.rstrip('/')}"


def absolute(folder: str) -> str:
    """The same wherever a program goes on."""
    place = located(folder)
    return place if is_address(place) else os.path.abspath(place)


def is_same(place: str, other: str) -> bool:
    """Whether two places are one, by whatever path, link or URL each is called."""
    if is_address(place) or is_address(other):
        return located(place) == located(other)
    return os.path.realpath(place) == os.path.realpath(other)


def local(folder: str, what: str) -> str:
    """A path. what: who does what there. Error for an address."""
    place = located(folder)
    if is_address(place):
        scheme = place.partition(":")[0]
        raise Error(
            f"{folder!r}: {what} in folders of a file system, not at {scheme}: addresses\n"
            "help: name a path or a file: URL; what lies elsewhere must be mounted"
        )
    return place


def write_bytes(path: str, data: bytes) -> None:
    """A small file, whole or not at all."""
    storage_of(path).write(path, lambda file: file.write(data))


def below(folder: str, path: str) -> str:
    """A path below a folder as it is called from there."""
    return path.removeprefix(folder).lstrip("/") if is_address(folder) else os.path.relpath(path, folder)
