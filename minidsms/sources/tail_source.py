"""A file that grows: its lines as they are written, over rotations and truncations, which are told.

Invariants: a line is read when its end has been written, and once; where the file is replaced under its name, the old
one is read to its end first; where it shrinks, reading begins anew at its start.
"""

from __future__ import annotations

import os
import threading
from typing import IO

from minidsms.cql.errors import Error
from minidsms.sources.blocks import cannot_read, give_up
from minidsms.sources.line_cutter import LineCutter
from minidsms.sources.line_rows import LineRows
from minidsms.sources.live_lines import LiveLines

_READ_BYTES = 1 << 20


class Tail:
    """Reads a growing file.

    from_end: leave out what stands there already (but the line of names).  poll_s: how often to look.
    stop_after_s: end when nothing was written for so long; None: never.
    """

    def __init__(self, path: str, header: bool, from_end: bool, poll_s: float, stop_after_s: float | None) -> None:
        self.path = path
        self._header = header
        self._from_end = from_end
        self._poll_s = poll_s
        self._stop_after_s = stop_after_s
        self._stopped = threading.Event()
        self._file = self._open()

    def _open(self) -> IO[bytes]:
        try:
            return open(self.path, "rb")
        except (OSError, ValueError) as error:
            raise cannot_read(self.path, error) from None

    def run(self, source: LiveLines) -> None:
        """Read until stopped."""
        try:
            self._follow(source)
        finally:
            give_up(self._file)

    def _follow(self, source: LiveLines) -> None:
        rows, cutter = source.rows(self.path), LineCutter()
        if self._from_end:
            rows = source.rows(f"{self.path} (lines counted from where reading began)")
            self._skip(rows)
        quiet_s = 0.0
        while not self._stopped.is_set():
            position = self._file.tell()
            data = self._read()
            if data:
                quiet_s = 0.0
                if not source.inbox.put(rows, cutter.feed(data)):
                    return
                continue
            change = self._change(position)
            if change == "replaced" and (data := self._read()):
                # Written between the last reading and the rotation.
                source.inbox.put(rows, cutter.feed(data))
                continue
            if change:
                source.inbox.put(rows, cutter.end() if change == "replaced" else None)
                self._begin_anew(source, change)
                rows, cutter = source.rows(self.path), LineCutter()
                continue
            if self._stop_after_s is not None and quiet_s >= self._stop_after_s:
                source.inbox.put(rows, cutter.end())
                return
            self._stopped.wait(self._poll_s)
            quiet_s += self._poll_s

    def _skip(self, rows: LineRows) -> None:
        """Go to the end, as it is now."""
        if self._header:
            rows.take_header(self._file.readline())
        self._file.seek(0, os.SEEK_END)

    def _read(self) -> bytes:
        try:
            return self._file.read(_READ_BYTES)
        except OSError as error:
            raise cannot_read(self.path, error) from None

    def _change(self, position: int) -> str:
        """ "replaced", "truncated", or "" where the file is the same."""
        try:
            there, ours = os.stat(self.path), os.fstat(self._file.fileno())
        except OSError:
            return ""  # between two files of a rotation, or gone: more may still be written to ours
        if (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
            return "replaced"
        return "truncated" if ours.st_size < position else ""

    def _begin_anew(self, source: LiveLines, change: str) -> None:
        if change == "truncated":
            source.note(f"{self.path} was truncated: reading begins again at its start")
            self._file.seek(0)
            return
        try:
            file = self._open()
        except Error:
            return
        source.note(f"{self.path} was replaced: the old file was read to its end, the new one is read from its start")
        give_up(self._file)
        self._file = file

    def stop(self) -> None:
        """Let `run` return."""
        self._stopped.set()
