"""Where archives can lie, of each kind a new place.

Some have no server among the packages. `MINIDSMS_TEST_PLACES` in the environment lets the tests run there as well: in
`hdfs` and `smb`, if their servers are there (tests/real_servers.py), in new buckets of `abfs` or `gs`, with the
credentials and the endpoint that adlfs or gcsfs find, and below addresses, such as `hdfs://namenode:8020/tests`.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fsspec

from tests import real_servers
from tests.hdfs_server import served
from tests.object_store import bucket
from tests.sftp_server import trusted

GIVEN = os.environ.get("MINIDSMS_TEST_PLACES", "").split()
ELSEWHERE = ("memory", "s3", "sftp", "webhdfs", *GIVEN)
"""The kinds that are no folders of this machine."""


@contextmanager
def elsewhere(kind: str, folder: Path) -> Iterator[str]:
    """A place where nothing is. kind: local or one of `ELSEWHERE`.  folder: an empty one of this machine."""
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
    elif "://" in kind or kind in ("hdfs", "smb"):
        yield f"{kind if '://' in kind else getattr(real_servers, kind)()}/{name}"
    elif kind in ("abfs", "gs"):
        fsspec.filesystem(kind).mkdir(name)
        yield f"{kind}://{name}"
    else:
        yield str(folder) if kind == "local" else f"memory://{name}"
