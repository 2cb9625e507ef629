"""The files of a log, and how what they hold is told from what a crash has left in them.

A log is a sequence of entries, numbered from 0. They stand in segments, files `log/00000000000000000000.log` named
after the number of their first entry:

    header   13 bytes "minidsms-log\\n", version (uint8), number of the first entry (uint64)
    entry    length of the payload (uint64), checksum (uint64), stamp (uint64), payload

Numbers are little-endian. The stamp is the entry's number, and in its upper 24 bits one more than how many of the
entries before it were not on disk yet when it was written; 0 for what is not known. The checksum is XXH3-64 of the
payload, with the stamp as its seed: what is at another place than it was written for is not taken for it. Versions that
are read: 2, whose stamps are numbers alone; 1, with the number in place of the stamp and the CRC-32 (uint32) of number
and payload.

Invariant: a segment is synced before the next one is made, so that only the last can hold entries that are not whole:
what a crash has cut off, or of a write that was not synced left a part, which no call has promised. Anywhere else that
is damage; and so it is where an entry behind says that it had been on disk.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import xxhash

from minidsms.archive.atomic import sync_file
from minidsms.cql.errors import Error, saying

VERSION = 3
HEADER = struct.Struct("<13sBQ")
FRAME = struct.Struct("<QQQ")
_FRAME_1 = struct.Struct("<QIQ")
_MAGIC = b"minidsms-log\n"
_NUMBER_BITS = 40
_NUMBERS = (1 << _NUMBER_BITS) - 1
_MOST_AHEAD = (1 << 64 - _NUMBER_BITS) - 2
_NAME = re.compile(r"(\d{20})\.log")

Part: TypeAlias = bytes | memoryview | pa.Buffer
"""A part of an entry's payload."""


@dataclass(frozen=True)
class Segment:
    """A file of a log. first: the number of its first entry."""

    path: str
    first: int


@dataclass(frozen=True)
class Found:
    """An entry as it stands in its segment, at [start, end)."""

    segment: Segment
    number: int
    start: int
    end: int
    payload: memoryview

    @property
    def where(self) -> str:
        """How errors call it."""
        return f"{self.segment.path!r}, entry {self.number}"


def header(first: int) -> bytes:
    """What a segment begins with."""
    return HEADER.pack(_MAGIC, VERSION, first)


def frame(number: int, parts: Sequence[Part], synced: int = 0) -> bytes:
    """What stands before the payload that these parts make. synced: the entries before this number are on disk."""
    ahead = number - synced
    stamp = number if ahead > _MOST_AHEAD else number | ahead + 1 << _NUMBER_BITS
    if len(parts) == 1:
        return FRAME.pack(len(parts[0]), xxhash.xxh3_64_intdigest(parts[0], stamp), stamp)
    checksum = xxhash.xxh3_64(seed=stamp)
    for part in parts:
        checksum.update(part)
    return FRAME.pack(sum(map(len, parts)), checksum.intdigest(), stamp)


def is_current(segment: Segment) -> bool:
    """Entries as this minidsms writes them may stand in it."""
    data = mapped(segment.path)
    return len(data) < HEADER.size or HEADER.unpack_from(data)[1] in (0, VERSION)


def name_of_segment(first: int) -> str:
    """The file's name."""
    return f"{first:020d}.log"


def sync_segments(folder: str) -> None:
    """Let what stands in a log be on disk. Error where it cannot be synced."""
    for each in segments(folder):
        with saying(f"the log {folder!r} cannot be synced"):
            sync_file(each.path)


def segments(folder: str) -> list[Segment]:
    """Those of a log's folder, in order. Error where it cannot be read."""
    with saying(f"the log {folder!r} cannot be read"):
        names = sorted(os.listdir(folder))
    found = [(_NAME.fullmatch(name), name) for name in names]
    return [Segment(os.path.join(folder, name), int(match[1])) for match, name in found if match is not None]


def entries(
    folder: str, until: int | None = None, after: Found | None = None, begin: int | None = None
) -> Iterator[Found]:
    """Every whole entry, in order, or those before a number, or behind one that has been found, or from one on with
    which a segment begins. Error, naming the segment, where one is damaged or missing.
    """
    there = segments(folder)
    least = begin if after is None else after.segment.first
    if least is not None:
        there = [segment for segment in there if segment.first >= least]
    number = there[0].first if there else 0
    for i, segment in enumerate(there):
        if segment.first != number:
            raise Error(f"{segment.path!r}: entries {number} to {segment.first - 1} before it are missing")
        if until is not None and number >= until:
            return
        if after is not None and segment == after.segment:
            number = after.number + 1
        for found in entries_of(segment, i == len(there) - 1, after):
            number = found.number + 1
            yield found
            if number == until:
                return


def entries_of(segment: Segment, is_last: bool, after: Found | None = None) -> Iterator[Found]:
    """Every whole entry of a segment, or those behind one that has been found there. Error where another than the last
    segment ends in one that is not whole, or one behind it says that it had been on disk.
    """
    data = mapped(segment.path)
    if len(data) < HEADER.size:
        if not is_last:
            raise _damaged(segment, 0, "its header is cut off")
        return
    magic, version, first = HEADER.unpack_from(data)
    if magic != _MAGIC or first != segment.first:
        if is_last and (len(data) == HEADER.size or not any(data[: HEADER.size])):
            return  # no entry is written before the header is on disk
        raise _damaged(segment, 0, "it does not begin as a segment of a log does")
    if version not in range(1, VERSION + 1):
        raise Error(f"{segment.path!r}: version {version} of the format; this minidsms reads up to {VERSION}")
    is_begun = after is not None and after.segment == segment
    at, number = (after.end, after.number + 1) if after is not None and is_begun else (HEADER.size, first)
    while at < len(data):
        found = _whole(segment, version, data, at, number)
        if found is None:
            behind = _whole_behind(segment, data, at, number) if is_last and version == VERSION else None
            if is_last and behind is None:
                return
            told = "" if behind is None else f", and had been synced when entry {behind} was written"
            raise _damaged(segment, at, f"entry {number} is not what was written{told}")
        yield found
        at, number = found.end, number + 1


def _whole(segment: Segment, version: int, data: memoryview, at: int, number: int) -> Found | None:
    """The entry at an offset, or None where there is none, or not all of it."""
    form = _FRAME_1 if version == 1 else FRAME
    if at + form.size > len(data):
        return None
    length, checksum, stamp = form.unpack_from(data, at)
    start = at + form.size
    if stamp & _NUMBERS != number or length > len(data) - start:
        return None
    payload = data[start : start + length]
    if version == 1:
        is_whole = zlib.crc32(payload, zlib.crc32(struct.pack("<Q", number))) == checksum
    else:
        is_whole = xxhash.xxh3_64_intdigest(payload, stamp) == checksum
    return Found(segment, number, at, start + length, payload) if is_whole else None


def _whole_behind(segment: Segment, data: memoryview, at: int, number: int) -> int | None:
    """The number of a whole entry behind the offset that was written when this one had been synced, or None."""
    most = number + (len(data) - at) // FRAME.size
    for first in range(at + FRAME.size, min(at + FRAME.size + 8, len(data))):
        stamps = np.frombuffer(data[first:], "<u8", (len(data) - first) // 8)
        numbers, ahead = (stamps & _NUMBERS).astype(np.int64), (stamps >> _NUMBER_BITS).astype(np.int64)
        for i in np.flatnonzero((ahead > 0) & (numbers <= most) & (numbers - ahead >= number)).tolist():
            found = int(numbers[i])
            if _whole(segment, VERSION, data, first + 8 * i - (FRAME.size - 8), found) is not None:
                return found
    return None


def mapped(path: str) -> memoryview:
    """What a file holds, as it is there. Error where it cannot be read."""
    import mmap

    with saying(f"{path!r} cannot be read"):
        handle = os.open(path, os.O_RDONLY)
    with contextlib.ExitStack() as closing:
        closing.callback(os.close, handle)
        try:
            return memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ))
        except ValueError:  # an empty file
            return memoryview(b"")
        except OSError as error:
            raise Error(f"{path!r} cannot be read: {error.strerror or error}") from None


def _damaged(segment: Segment, at: int, reason: str) -> Error:
    return Error(
        f"{segment.path!r} is damaged at byte {at}: {reason}\n"
        "help: open a copy that db.backup(..) has made, or give up what the log holds from there on by cutting this "
        "segment off there and removing those after it"
    )
