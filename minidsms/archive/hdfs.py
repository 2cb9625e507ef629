"""Archives in HDFS, by the protocols of its NameNode and DataNodes, which hdfs-native speaks without Java.

A rename fails where there is a file, unless it is told to replace one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hdfs_native import WriteOptions
from hdfs_native.fsspec import HdfsFileSystem

from minidsms.archive.remote_folders import RemoteFolders, check_not_forked, inside
from minidsms.cql.errors import Error

_ATTEMPTS = {"dfs.client.failover.max.attempts": "3"}
"""Of a NameNode at a port there is no other to wait for."""


class Hdfs(HdfsFileSystem):  # type: ignore[misc]
    """hdfs-native's, which replaces where it shall, and tells what was missing."""

    _strip_protocol = staticmethod(inside)

    def put_whole(self, path: str, data: bytes) -> None:
        """Write a file; FileNotFoundError where somebody has removed it meanwhile."""
        options = WriteOptions()
        options.overwrite = True
        try:
            with self.client.create(path, options) as file:
                file.write(data)
        except RuntimeError as error:
            raise (FileNotFoundError(path) if "LeaseExpiredException" in str(error) else error) from error

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Rename; a file that is there is replaced."""
        self.client.rename(path1, path2, True)

    def move_to_new(self, path: str, to: str) -> None:
        """Rename; OSError where there is something of that name."""
        self.client.rename(path, to, False)

    def rm_file(self, path: str) -> None:
        """Remove; FileNotFoundError where there is nothing."""
        if not self.client.delete(path, False):
            raise FileNotFoundError(path)

    def rmdir(self, path: str) -> None:
        """Remove a folder that is empty."""
        self.rm_file(path)


def folders(scheme: str, told: Mapping[str, Any]) -> RemoteFolders:
    """Folders of HDFS. told: what the address says of its NameNode."""
    if "username" in told:
        raise Error(
            f"{scheme}: addresses name no user\n"
            "help: HADOOP_USER_NAME in the environment says who you are, or the ticket of Kerberos"
        )
    check_not_forked(scheme)
    try:
        system = Hdfs(skip_instance_cache=True, **(_ATTEMPTS if "port" in told else {}), **told)
    except RuntimeError as error:  # the configuration does not know its name
        name = told.get("host", "")
        raise Error(f"{scheme}://{name}: {error}\nhelp: hdfs://namenode:8020/folder, or set HADOOP_CONF_DIR") from None
    return RemoteFolders(scheme, system, system.put_whole)
