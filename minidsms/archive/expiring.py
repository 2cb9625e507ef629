"""Retention: files of a stream's archive whose elements are all older than what is to be kept leave it in one commit.

Age is event time, before the greatest instant of the archive. A relation keeps its changes: its rows follow from them.
"""

from __future__ import annotations

import contextlib
import os

from minidsms.archive.storage import storage_of
from minidsms.archive.writer import Writer


def expire(writer: Writer, kept: int) -> int:
    """Remove the files of what is more than `kept` ticks old; how many. Raises OSError, and then nothing has gone."""
    archive = writer.archive
    files = archive.files() if archive.metadata.kind == "stream" else []
    last = max((f.last_ts for f in files), default=0)
    old = [f.path for f in files if f.last_ts < last - kept]
    if old:
        writer.commit("expire", removed=old)
        writer.discard(old)
        for folder in {os.path.dirname(path) for path in old}:
            with contextlib.suppress(OSError):  # others of its files are kept
                storage_of(folder).remove_folder(folder)
    return len(old)
