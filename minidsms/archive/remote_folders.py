"""Archives in folders of a server, which are reached by SFTP (`sftp.py`), in HDFS (`hdfs.py`), by WebHDFS
(`webhdfs.py`) or SMB (`smb.py`).

There a file is written under a temporary name with a leading dot, and renamed when it is whole. Two ways to rename make
what `Storage` asks for: one that replaces, for what is written anew, and one that fails where there is a file, for what
is created.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import secrets
from collections.abc import Callable
from typing import IO, Any

from minidsms.archive.atomic import temporary_name
from minidsms.archive.locking import leftovers
from minidsms.archive.objects import Objects, told_as_os_error
from minidsms.archive.storage import Held
from minidsms.cql.errors import Error


class RemoteFolders(Objects):
    """Folders of a server; see `Storage`. The file system renames by `mv`, which replaces, and by `move_to_new`.
    upload: writes a file.
    """

    _replaced = "files when others are renamed"
    _needed = "does not"

    def __init__(self, scheme: str, system: Any, upload: Callable[[str, bytes], None]) -> None:
        super().__init__(scheme, system)
        self._upload = upload

    def write(self, path: str, fill: Callable[[IO[bytes]], object]) -> None:
        content = io.BytesIO()
        fill(content)
        self._put(path, content.getvalue(), self._system.mv)

    def _put_new(self, path: str, data: bytes) -> None:
        self._put(path, data, self._system.move_to_new)

    def _put(self, path: str, data: bytes, rename: Callable[[str, str], None]) -> None:
        """Write a file under a temporary name, and rename it when it is whole."""
        inside = self._inside(path)
        folder, name = os.path.split(inside)
        temporary = os.path.join(folder, temporary_name(f"{name}.{secrets.token_hex(4)}"))
        try:
            with told_as_os_error(path):
                self._upload(temporary, data)
                if (size := self._system.info(temporary)["size"]) != len(data):
                    raise OSError(f"{path}: {size:,} bytes of {len(data):,} have come")
                rename(temporary, inside)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{path}: its folder, or its half-written file, was removed meanwhile") from error
        except BaseException:
            with contextlib.suppress(Exception):
                self._system.rm_file(temporary)
            raise

    def _tried_as_one(self, inside: str) -> str:
        return os.path.dirname(inside)

    def make_folder(self, folder: str) -> None:
        inside = self._inside(folder)
        with told_as_os_error(folder):
            try:
                self._system.makedirs(inside, exist_ok=True)
            except OSError:  # somebody else may have made one of them meanwhile
                self._system.makedirs(inside, exist_ok=True)

    def remove_folder(self, folder: str) -> None:
        with told_as_os_error(folder):
            self._system.rmdir(self._inside(folder))

    def remove_tree(self, folder: str) -> None:
        with contextlib.suppress(OSError):
            for entry in self.entries(folder):
                path = f"{folder}/{entry.name}"
                with contextlib.suppress(OSError):
                    (self.remove_tree if entry.is_folder else self.remove)(path)
            self.remove_folder(folder)

    def move_tree(self, folder: str, to: str) -> None:
        with told_as_os_error(folder):
            self._system.move_to_new(self._inside(folder), self._inside(to))

    def lock(self, folder: str) -> Held:
        """See `Storage`: a lease; what a writer that is no more has left half-written is removed."""
        held = super().lock(folder)
        try:
            for path in leftovers(self, folder):
                with contextlib.suppress(OSError):
                    self.remove(path)
        except BaseException:
            held.release()
            raise
        return held

    def _check_writable(self, path: str) -> None:
        """What can be read can be written, as far as its server allows."""


def inside(path: str) -> str:
    """A path as its server calls it; a name may hold any character."""
    return path if path.startswith("/") else "/" + path.partition("://")[2].partition("/")[2]


@functools.cache
def _first_process(scheme: str) -> int:
    return os.getpid()


def check_not_forked(scheme: str) -> None:
    """Error in a process that was forked off one that has used a scheme whose library has threads, which are not
    there.
    """
    if _first_process(scheme) != os.getpid():
        raise Error(
            f"{scheme}: addresses cannot be used in a process that was forked off one that has used them\n"
            "help: start it anew (multiprocessing's 'spawn')"
        )
