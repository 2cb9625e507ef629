"""Archives on SMB servers, such as Windows and Samba.

A rename that may not replace is no single step in every server: Samba may look first and rename then. To link is one,
so a file is created as a second link to what was written.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any

import smbclient
from fsspec.implementations.smb import SMBFileSystem
from smbprotocol.exceptions import LogonFailure, SMBAuthenticationError

from minidsms.archive.objects import OneAtATime
from minidsms.archive.remote_folders import RemoteFolders, check_not_forked, inside
from minidsms.cql.errors import Error

_SHARED = "rwd"
"""What others may do with a file that is open."""
_NO_NAME = re.compile(r'[<>:"|?*\\]')


class Smb(SMBFileSystem):  # type: ignore[misc]
    """fsspec's, which replaces where it shall, and connects again where the connection was lost."""

    @staticmethod
    def _strip_protocol(path: str) -> str:
        if wrong := _NO_NAME.search(inside(path)):
            raise Error(f"{path!r}: names on SMB servers have no {wrong[0]!r}")
        return inside(path)

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        """What a folder holds, by one request."""
        found = smbclient.scandir(self._unc(path), port=self._port)
        there = [(f"{path}/{each.name}", "directory" if each.is_dir() else "file") for each in found]
        return [{"name": name, "type": kind} for name, kind in there] if detail else [name for name, _ in there]

    def _open(self, path: str, mode: str = "rb", cache_type: str = "none", **kwargs: Any) -> Any:
        """A file; nothing is kept of it, whatever is asked for."""
        return super()._open(path, mode, **kwargs)

    def put_whole(self, path: str, data: bytes) -> None:
        """Write a file."""
        with self._open(path, "wb") as file:
            file.write(data)

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Rename; a file that is there is replaced."""
        smbclient.replace(self._unc(path1), self._unc(path2), port=self._port)

    def move_to_new(self, path: str, to: str) -> None:
        """Rename; OSError where there is something of that name."""
        if self.isdir(path):
            smbclient.rename(self._unc(path), self._unc(to), port=self._port)
            return
        smbclient.link(self._unc(path), self._unc(to), port=self._port)
        with contextlib.suppress(OSError):  # the next writer removes it
            self.rm_file(path)

    def reach(self) -> None:
        """Connect where the connection was lost."""
        self._connect()

    def _unc(self, path: str) -> str:
        return f"\\\\{self.host}{path}".replace("/", "\\")


def folders(scheme: str, told: Mapping[str, Any]) -> RemoteFolders:
    """Folders of an SMB server. told: what the address says of it."""
    check_not_forked(scheme)
    try:
        system = OneAtATime(Smb(skip_instance_cache=True, share_access=_SHARED, **told))
    except (LogonFailure, SMBAuthenticationError) as error:
        told_of = f"{scheme}://{told['host']}: {str(error)[:200]}"
        raise Error(f"{told_of}\nhelp: smb://user:password@server/share/folder, or FSSPEC_SMB_PASSWORD") from None
    return RemoteFolders(scheme, system, system.put_whole)
