"""How far an archive's writer has come: a small file beside the metadata, replaced after every write.

Invariant: every element of the archive with an arrival below `arrivals` is in a file; every element with ts <= `closed`
that will ever be accepted has been accepted below `arrivals`. An archive without the file is complete as it is.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from minidsms.archive.storage import storage_of, write_bytes
from minidsms.cql.errors import Error

_NAME = "_progress.json"
_OLD_NAME = "progress.json"


@dataclass(frozen=True)
class Progress:
    """arrivals: all below are on disk.  closed: the greatest instant after which only later elements come, or None."""

    arrivals: int
    closed: int | None


def read_progress(folder: str, version: int) -> Progress | None:
    """What the last writer of an archive of this version said, None where it said nothing. Error where the file is
    damaged.
    """
    path = _path(folder, version)
    try:
        data = json.loads(storage_of(path).read(path))
        closed = data["closed"]
        return Progress(int(data["arrivals"]), None if closed is None else int(closed))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise Error(f"{path}: cannot be read: {str(error)[:200]}") from None


def write_progress(folder: str, version: int, progress: Progress) -> None:
    """Replace what was said before. Raises OSError."""
    text = json.dumps({"arrivals": progress.arrivals, "closed": progress.closed})
    write_bytes(_path(folder, version), text.encode())


def _path(folder: str, version: int) -> str:
    """In an archive of version 1 that has the file under the name of then, it keeps it."""
    if version > 1:
        return os.path.join(folder, _NAME)
    old = os.path.join(folder, _OLD_NAME)
    return old if storage_of(old).exists(old) else os.path.join(folder, _NAME)
