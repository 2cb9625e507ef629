"""Where archives can lie, of each kind a new place."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.hdfs_server import served
from tests.object_store import bucket
from tests.sftp_server import trusted


@contextmanager
def elsewhere(kind: str, folder: Path) -> Iterator[str]:
    """A place where nothing is. kind: local, memory, s3, sftp or webhdfs.  folder: an empty one of this machine."""
    name = f"b{secrets.token_hex(6)}"
    if kind == "s3":
        with bucket(name) as found:
            yield found
    elif kind == "sftp":
        (folder / name).mkdir()
        with trusted(folder / name) as found:
            yield found
    elif kind == "webhdfs":
        yield served(folder)
    else:
        yield str(folder) if kind == "local" else f"memory://{name}"
