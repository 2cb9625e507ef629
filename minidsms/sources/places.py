"""Where a reader is in a file, as JSON, so that another process can go on there.

Invariant: a place is the beginning of a block, and a file that does not begin as it did then is not gone on with.
"""

from __future__ import annotations

import zlib
from typing import Any

from minidsms.cql.errors import Error, shown
from minidsms.sources.blocks import Block
from minidsms.sources.files import OpenFile, cannot_read, is_packed


def place_in(path: str, file: OpenFile, block: Block, learned: Any) -> dict[str, Any]:
    """The place of a block in an open file. learned: what its reader knows of the columns."""
    end = block.start + len(block.data)
    try:
        beginning = file.beginning(end)
    except OSError as error:
        raise cannot_read(path, error) from None
    return {
        "byte": block.start,
        "end": end,
        "line": block.first_line,
        "begins": [len(beginning), zlib.crc32(beginning)],
        "learned": learned,
    }


def check_beginning(path: str, file: OpenFile, place: dict[str, Any]) -> None:
    """Error where a file is not the one that a place is in, or ends before it."""
    length, crc = place["begins"]
    try:
        beginning, size = file.beginning(length), file.size_now()
    except OSError as error:
        raise cannot_read(path, error) from None
    if zlib.crc32(beginning) != crc or (not is_packed(path) and size < place["end"]):
        raise Error(
            f"{shown(path)} is not the file that was read up to byte {place['byte']:,}\n"
            "help: put that file back; what comes now may be appended to it, or pushed"
        )
