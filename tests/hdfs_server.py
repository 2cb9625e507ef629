"""A stand-in for a NameNode and a DataNode, on the loopback address: the part of WebHDFS that archives need, over
folders of this machine (https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/WebHDFS.html).
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

_PREFIX = "/webhdfs/v1"
_names = threading.Lock()
"""A NameNode carries out one change of names after the other."""


class _RemoteError(Exception):
    def __init__(self, status: int, java: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.java = java


@functools.cache
def _serve() -> int:
    """Let it run until the process ends; its port."""

    class Quiet(WSGIRequestHandler):
        def log_request(self, *args: Any, **options: Any) -> None:
            """Nobody reads it."""

    running = make_server("127.0.0.1", 0, _answer, threaded=True, request_handler=Quiet)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    return running.server_port


def served(folder: Path) -> str:
    """The address of a folder of this machine."""
    return f"webhdfs://someone@127.0.0.1:{_serve()}{folder}"


@Request.application
def _answer(request: Request) -> Response:
    path = Path(request.path.removeprefix(_PREFIX))
    try:
        return _OPERATIONS[request.method, request.args["op"].upper()](request, path)
    except FileNotFoundError as error:
        failed = _RemoteError(404, "FileNotFoundException", f"File does not exist: {error.filename}")
    except _RemoteError as error:
        failed = error
    told = {"exception": failed.java, "javaClassName": f"java.io.{failed.java}", "message": str(failed)}
    return _told({"RemoteException": told}, failed.status)


def _told(content: object, status: int = 200) -> Response:
    return Response(json.dumps(content), status, content_type="application/json")


def _status(path: Path, name: str) -> dict[str, object]:
    found = path.stat()
    is_folder = path.is_dir()
    return {
        "pathSuffix": name, "type": "DIRECTORY" if is_folder else "FILE", "length": 0 if is_folder else found.st_size,
        "owner": "someone", "group": "all", "permission": "755", "replication": 1, "blockSize": 1 << 27,
        "accessTime": 0, "modificationTime": int(found.st_mtime * 1000), "fileId": found.st_ino, "childrenNum": 0,
        "storagePolicy": 0,
    }  # fmt: skip


def _get_status(request: Request, path: Path) -> Response:
    return _told({"FileStatus": _status(path, "")})


def _list(request: Request, path: Path) -> Response:
    names = sorted(os.listdir(path)) if not path.is_file() else [""]
    return _told({"FileStatuses": {"FileStatus": list(_statuses(path, names))}})


def _statuses(path: Path, names: list[str]) -> Iterator[dict[str, object]]:
    for name in names:
        try:
            yield _status(path / name, name)
        except FileNotFoundError:
            continue


def _at_data_node(request: Request, path: Path) -> Response:
    """The NameNode sends clients to a DataNode; this one is at the same address."""
    if "data_node" not in request.args:
        query = request.query_string.decode()
        there = f"{request.host_url.rstrip('/')}{_PREFIX}{quote(str(path))}?{query}&data_node=true"
        return Response(status=307, headers={"Location": there})
    if request.method == "PUT":
        return _create(request, path)
    with path.open("rb") as file:
        file.seek(int(request.args.get("offset", 0)))
        content = file.read(int(request.args["length"]) if "length" in request.args else -1)
    return Response(content, content_type="application/octet-stream")


def _create(request: Request, path: Path) -> Response:
    replaces = request.args.get("overwrite", "false") == "true"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("wb" if replaces else "xb") as file:
            file.write(request.get_data())
    except FileExistsError:
        raise _RemoteError(403, "FileAlreadyExistsException", f"{path} already exists") from None
    return Response(status=201)


def _rename(request: Request, path: Path) -> Response:
    to = Path(request.args["destination"])
    replaces = request.args.get("renameoptions", "").upper() == "OVERWRITE"
    with _names:
        if replaces:
            os.replace(path, to)
            return Response(status=200)
        possible = path.exists() and not to.exists() and to.parent.is_dir()
        if possible:
            path.rename(to)
    return _told({"boolean": possible})


def _delete(request: Request, path: Path) -> Response:
    with _names:
        if not path.exists():
            return _told({"boolean": False})
        if not path.is_dir():
            path.unlink()
        elif request.args.get("recursive") == "true":
            shutil.rmtree(path)
        elif any(path.iterdir()):
            raise _RemoteError(403, "PathIsNotEmptyDirectoryException", f"{path} is non empty")
        else:
            path.rmdir()
    return _told({"boolean": True})


def _make_folders(request: Request, path: Path) -> Response:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise _RemoteError(403, "FileAlreadyExistsException", f"Path is not a directory: {path}") from None
    return _told({"boolean": True})


_OPERATIONS = {
    ("GET", "GETFILESTATUS"): _get_status,
    ("GET", "LISTSTATUS"): _list,
    ("GET", "OPEN"): _at_data_node,
    ("PUT", "CREATE"): _at_data_node,
    ("PUT", "RENAME"): _rename,
    ("PUT", "MKDIRS"): _make_folders,
    ("DELETE", "DELETE"): _delete,
}
