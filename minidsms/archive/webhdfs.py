"""Archives in HDFS, by the WebHDFS protocol of its NameNode.

`RENAME` tells that it did nothing where there is a file; with `renameoptions=OVERWRITE` it replaces one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fsspec.implementations.webhdfs import WebHDFS

from minidsms.archive.remote_folders import RemoteFolders, inside

_CALLED = {"username": "user"}


class WebHdfs(WebHDFS):  # type: ignore[misc]
    """fsspec's, which hears what the server did not do."""

    def put_whole(self, path: str, data: bytes) -> None:
        """Write a file in one request to the node that the server names."""
        named = self._call("CREATE", "put", path=path, overwrite="true", redirect=False)
        node = self._apply_proxy(named.headers["Location"])
        answer = self.session.put(node, data=data, headers={"content-type": "application/octet-stream"})
        answer.raise_for_status()

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Rename; a file that is there is replaced. OSError where the server does not know how (HttpFS)."""
        done = self._call("RENAME", "put", path=path1, destination=path2, renameoptions="OVERWRITE")
        if done.content and not done.json().get("boolean", True):
            raise OSError(f"{path2}: the server replaces no file by a rename; archives need a NameNode's WebHDFS")

    def move_to_new(self, path: str, to: str) -> None:
        """Rename; OSError where there is something of that name."""
        if not self._call("RENAME", "put", path=path, destination=to).json()["boolean"]:
            raise FileExistsError(to) if self.exists(to) else FileNotFoundError(path)

    def rm_file(self, path: str, **kwargs: Any) -> None:
        """Remove; FileNotFoundError where there is nothing."""
        if not self._call("DELETE", "delete", path=path, recursive="false").json()["boolean"]:
            raise FileNotFoundError(path)

    def rmdir(self, path: str) -> None:
        """Remove a folder that is empty."""
        self.rm_file(path)

    _strip_protocol = staticmethod(inside)


def folders(scheme: str, told: Mapping[str, Any]) -> RemoteFolders:
    """Folders of HDFS. told: what the address says of its NameNode."""
    system = WebHdfs(skip_instance_cache=True, **{_CALLED.get(key, key): value for key, value in told.items()})
    return RemoteFolders(scheme, system, system.put_whole)
