"""A file that grows: its lines as they are written, over rotations and truncations, which are told.

Invariants: a line is read when its end has been written, and once; where the file is replaced under its name, the old
one is read to its end first; where it shrinks, or begins otherwise, reading begins anew at its start. Another process
goes on with the file that has the inode, and the beginning, of the one read: under its name, or under the name a
rotation has given it.
"""

from __future__ import annotations

import os
import threading
import zlib
from dataclasses import dataclass
from typing import IO, Any
from weakref import WeakKeyDictionary

from minidsms.cql.errors import Error
from minidsms.sources.blocks import Block
from minidsms.sources.files import cannot_read, give_up
from minidsms.sources.line_cutter import LineCutter
from minidsms.sources.line_rows import LineRows
from minidsms.sources.live_lines import LiveLines

_READ_BYTES = 1 << 20
_BEGINNING = 1024
"""Bytes by which a file is known again."""


@dataclass
class _Known:
    """By what a file is known again."""

    inode: int
    beginning: bytes

    def is_in(self, position: Any) -> bool:
        """Whether it is the file of a position."""
        length, crc = position["begins"]
        return bool(self.inode == position["inode"] and zlib.crc32(self.beginning[:length]) == crc)


class Tail:
    """Reads a growing file. See `FeederGoesOn`.

    from_end: leave out the lines that stand there already (but that of names).  poll_s: how often to look.
    stop_after_s: end when nothing was written for so long; None: never.
    """

    def __init__(self, path: str, header: bool, from_end: bool, poll_s: float, stop_after_s: float | None) -> None:
        self.path = path
        self._header = header
        self._from_end = from_end
        self._poll_s = poll_s
        self._stop_after_s = stop_after_s
        self._stopped = threading.Event()
        self._file = self._open(path)
        self._from: Any = None
        self._known: WeakKeyDictionary[LineRows, _Known] = WeakKeyDictionary()

    @staticmethod
    def _open(path: str) -> IO[bytes]:
        try:
            return open(path, "rb")
        except (OSError, ValueError) as error:
            raise cannot_read(path, error) from None

    def position(self, rows: LineRows, block: Block) -> Any:
        known = self._known[rows]
        end = block.start + (0 if block.is_broken else len(block.data))
        beginning = known.beginning[:end]
        return {
            "byte": block.start,
            "end": end,
            "line": block.first_line,
            "inode": known.inode,
            "begins": [len(beginning), zlib.crc32(beginning)],
            "learned": rows.learned,
        }

    def go_on(self, position: Any) -> str:
        try:
            found = self._file_of(position)
        except OSError as error:
            raise cannot_read(self.path, error) from None
        self._from_end = False
        if found is None:
            return (
                f"{self.path} was replaced or truncated while nobody read it, behind byte {position['byte']:,}: "
                "reading begins at the start of what is there now"
            )
        if found is not self._file:
            give_up(self._file)
            self._file = found
        self._from = position
        return ""

    def _file_of(self, position: Any) -> IO[bytes] | None:
        """The file of a position, under its name or another in the same folder."""
        folder, there = os.path.dirname(os.path.abspath(self.path)), os.fstat(self._file.fileno())
        if there.st_ino == position["inode"]:
            candidates = [self._file]
        else:
            with os.scandir(folder) as entries:
                candidates = [self._open(e.path) for e in entries if e.inode() == position["inode"] and e.is_file()]
        for file in candidates:
            if self._has(file, position):
                return file
        return None

    @staticmethod
    def _has(file: IO[bytes], position: Any) -> bool:
        """The file is the one of a position, and goes as far, but for the end of its last line."""
        return _known(file).is_in(position) and os.fstat(file.fileno()).st_size + 1 >= position["end"]

    def run(self, source: LiveLines) -> None:
        """Read until stopped."""
        if self._from is not None and not self._has(self._file, self._from):
            source.begins_anew, self._from = True, None
            self._begin_anew(source, "truncated")
        rows, cutter = self._begin(source), LineCutter()
        if self._from is not None:
            if self._from["byte"]:  # else it is in the block
                self._take_header(rows)
            rows.learn(self._from["learned"])
            self._file.seek(self._from["byte"])
            cutter = LineCutter(self._from["line"], self._from["byte"])
        elif self._from_end and (end := _whole_lines(self._file)):
            rows = self._begin(source, " (lines counted from where reading began)")
            self._take_header(rows)
            cutter = LineCutter(start=self._file.seek(end))
        quiet_s = 0.0
        while not self._stopped.is_set():
            position = self._file.tell()
            data = self._read()
            is_known = self._is_known(rows)
            if data and is_known:
                quiet_s = 0.0
                if position < _BEGINNING:
                    self._known[rows] = _known(self._file)
                if not source.inbox.put(rows, *cutter.feed(data)):
                    return
                continue
            change = self._change(position) if is_known else "truncated"
            if change == "replaced" and (data := self._read()):
                # Written between the last reading and the rotation.
                source.inbox.put(rows, *cutter.feed(data))
                continue
            if change and self._begin_anew(source, change):
                source.inbox.put(rows, *(cutter.end() if change == "replaced" else ()))
                rows, cutter = self._begin(source), LineCutter()
                continue
            if self._stop_after_s is not None and quiet_s >= self._stop_after_s:
                source.inbox.put(rows, *cutter.end())
                return
            self._stopped.wait(self._poll_s)
            quiet_s += self._poll_s

    def _begin(self, source: LiveLines, note: str = "") -> LineRows:
        """A reader of the file that is open."""
        rows = source.rows(self.path + note)
        self._known[rows] = _known(self._file)
        return rows

    def _take_header(self, rows: LineRows) -> None:
        """Read the first line, where it is one of names."""
        if self._header:
            rows.take_header(self._file.readline())

    def _read(self) -> bytes:
        try:
            return self._file.read(_READ_BYTES)
        except OSError as error:
            raise cannot_read(self.path, error) from None

    def _is_known(self, rows: LineRows) -> bool:
        """Whether the file begins as it did: else it was truncated, whatever has been written to it since. Where it
        begins with a hole, its writer has gone on behind that at the place where it was.
        """
        beginning = self._known[rows].beginning
        try:
            found = os.pread(self._file.fileno(), len(beginning), 0)
        except OSError as error:
            raise cannot_read(self.path, error) from None
        return found in (beginning, bytes(len(beginning)))

    def _change(self, position: int) -> str:
        """ "replaced", "truncated", or "" where the file is the same."""
        try:
            there, ours = os.stat(self.path), os.fstat(self._file.fileno())
        except OSError:
            return ""  # between two files of a rotation, or gone: more may still be written to ours
        if (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
            return "replaced"
        return "truncated" if ours.st_size < position else ""

    def _begin_anew(self, source: LiveLines, change: str) -> bool:
        """Go over to the file that is there now; False where it cannot be read yet."""
        if change == "truncated":
            source.note(f"{self.path} was truncated: reading begins again at its start")
            self._file.seek(0)
            return True
        try:
            file = self._open(self.path)
        except Error as error:
            source.note_waiting(error)
            return False
        source.note(f"{self.path} was replaced: the old file was read to its end, the new one is read from its start")
        give_up(self._file)
        self._file = file
        return True

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        """Give up the file."""
        give_up(self._file)


def _known(file: IO[bytes]) -> _Known:
    return _Known(os.fstat(file.fileno()).st_ino, os.pread(file.fileno(), _BEGINNING, 0))


def _whole_lines(file: IO[bytes]) -> int:
    """How many bytes the lines that have ended take."""
    end = os.fstat(file.fileno()).st_size
    while end:
        start = max(0, end - _READ_BYTES)
        found = os.pread(file.fileno(), end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
