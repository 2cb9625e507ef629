"""Archives in folders of a server that is reached by SFTP.

There a file is written under a temporary name with a leading dot, and renamed when it is whole. Two ways to rename make
what `Storage` asks for: one that replaces (`posix-rename@openssh.com`), for what is written anew, and the protocol's
own, which fails where there is a file, for what is created.
"""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import threading
from collections.abc import Callable
from typing import IO, Any

import fsspec.config
import paramiko
from fsspec.implementations.sftp import SFTPFileSystem

from minidsms.archive.atomic import temporary_name
from minidsms.archive.locking import leftovers
from minidsms.archive.objects import Objects, told_as_os_error
from minidsms.archive.storage import Held

_BLOCK = 1 << 20
_WRITERS = 4
"""Files that are written at once; OpenSSH allows ten channels to a connection."""
_KEEP_ALIVE_S = 30
_TIMEOUT_S = 30
_POLICIES = {
    "auto_add": paramiko.AutoAddPolicy, "reject": paramiko.RejectPolicy, "warning": paramiko.WarningPolicy,
}  # fmt: skip


class Sftp(SFTPFileSystem):  # type: ignore[misc]
    """fsspec's, which talks to hosts that `~/.ssh/known_hosts` knows, unless fsspec is configured otherwise
    (`host_key_policy` of `sftp`), and connects again where the connection was lost.
    """

    def _connect(self) -> None:
        self.ssh_kwargs.pop("host_key_policy", None)
        chosen = fsspec.config.conf.get("sftp", {}).get("host_key_policy", "reject")
        self.client = paramiko.SSHClient()
        self.client.load_system_host_keys()
        self.client.set_missing_host_key_policy(_POLICIES.get(chosen, chosen))
        try:
            self.client.connect(self.host, **{"timeout": _TIMEOUT_S, **self.ssh_kwargs})
        except paramiko.SSHException as error:
            known = "not found in known_hosts" not in str(error)
            help_ = "" if known else f"\nhelp: ssh-keyscan {self.host} >> ~/.ssh/known_hosts, when it is the right one"
            raise ConnectionError(f"{self.host}: {error}{help_}") from error
        self.client.get_transport().set_keepalive(_KEEP_ALIVE_S)
        self.ftp = self.client.open_sftp()

    def move_to_new(self, path: str, to: str) -> None:
        """Rename; OSError where there is something of that name."""
        self.ftp.rename(path, to)

    def channel(self) -> paramiko.SFTPClient:
        """A channel of its own over the same connection."""
        return self.client.open_sftp()

    def reach(self) -> None:
        """Connect where the connection was lost."""
        transport = self.client.get_transport()
        if transport is None or not transport.is_active():
            self._connect()


class SftpFolders(Objects):
    """Folders of a server; see `Storage`."""

    _replaced = "files when others are renamed"
    _needed = "does not"

    def __init__(self, scheme: str, system: Any) -> None:
        super().__init__(scheme, system)
        self._writers = threading.BoundedSemaphore(_WRITERS)

    def write(self, path: str, fill: Callable[[IO[bytes]], None]) -> None:
        """See `Storage`."""
        content = io.BytesIO()
        fill(content)
        with told_as_os_error(path):
            self._put(path, content.getvalue(), self._system.mv)

    def _put_new(self, path: str, data: bytes) -> None:
        self._put(path, data, self._system.move_to_new)

    def _put(self, path: str, data: bytes, rename: Callable[[str, str], None]) -> None:
        """Write a file under a temporary name, and rename it when it is whole. Blocks are sent without waiting for the
        server's answers, which belongs to a channel that nobody else uses: paramiko drops answers of other requests.
        """
        inside = self._inside(path)
        folder, name = os.path.split(inside)
        temporary = f"{folder}/{temporary_name(f'{name}.{secrets.token_hex(4)}')}"
        try:
            with self._writers, self._system.channel() as channel, channel.open(temporary, "wb") as file:
                file.set_pipelined(True)
                for start in range(0, len(data), _BLOCK):
                    file.write(data[start : start + _BLOCK])
            if (size := self._system.info(temporary)["size"]) != len(data):
                raise OSError(f"{path}: {size:,} bytes of {len(data):,} have come")
            rename(temporary, inside)
        except BaseException:
            with contextlib.suppress(Exception):
                self._system.rm_file(temporary)
            raise

    def _tried_as_one(self, inside: str) -> str:
        return os.path.dirname(inside)

    def make_folder(self, folder: str) -> None:
        """See `Storage`."""
        inside = self._inside(folder)
        with told_as_os_error(folder):
            try:
                self._system.makedirs(inside, exist_ok=True)
            except OSError:  # somebody else may have made one of them meanwhile
                self._system.makedirs(inside, exist_ok=True)

    def remove_folder(self, folder: str) -> None:
        """See `Storage`."""
        with told_as_os_error(folder):
            self._system.rmdir(self._inside(folder))

    def remove_tree(self, folder: str) -> None:
        """See `Storage`."""
        with contextlib.suppress(OSError):
            for entry in self.entries(folder):
                path = f"{folder}/{entry.name}"
                with contextlib.suppress(OSError):
                    (self.remove_tree if entry.is_folder else self.remove)(path)
            self.remove_folder(folder)

    def move_tree(self, folder: str, to: str) -> None:
        """See `Storage`."""
        with told_as_os_error(folder):
            self._system.move_to_new(self._inside(folder), self._inside(to))

    def remove(self, path: str) -> None:
        """See `Storage`."""
        with told_as_os_error(path):
            self._system.rm_file(self._inside(path))

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

    def _inside(self, path: str) -> str:
        return path if path.startswith("/") else "/" + path.partition("://")[2].partition("/")[2]
