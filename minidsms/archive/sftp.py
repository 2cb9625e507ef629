"""Archives in folders of an SSH server, by SFTP.

`posix-rename@openssh.com` replaces a file; the protocol's own rename fails where there is one.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import fsspec.config
import paramiko
from fsspec.implementations.sftp import SFTPFileSystem

from minidsms.archive.objects import OneAtATime
from minidsms.archive.remote_folders import RemoteFolders, inside

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

    _strip_protocol = staticmethod(inside)

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

    def ls(self, path: str, detail: bool = False, **kwargs: Any) -> list[Any]:
        """What a folder holds. Asked for one part after the other: what paramiko reads ahead it takes for the next
        folder's, where a server does not answer in order.
        """
        there = [self._decode_stat(each, path) for each in self.ftp.listdir_attr(path) if each.st_mode is not None]
        return there if detail else sorted(each["name"] for each in there)

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


def folders(scheme: str, told: Mapping[str, Any]) -> RemoteFolders:
    """Folders of an SSH server. told: what the address says of it."""
    system = OneAtATime(Sftp(skip_instance_cache=True, **told))
    writers = threading.BoundedSemaphore(_WRITERS)

    def upload(path: str, data: bytes) -> None:
        # Blocks are sent without waiting for the server's answers, which need a channel of their own: paramiko drops
        # answers to other requests than the one that is waited for.
        with writers, system.channel() as channel, channel.open(path, "wb") as file:
            file.set_pipelined(True)
            for start in range(0, len(data), _BLOCK):
                file.write(data[start : start + _BLOCK])

    return RemoteFolders(scheme, system, upload)
