"""Lines of the standard input, or of a named pipe, as they are written."""

from __future__ import annotations

import os
import select
import socket
import sys

from minidsms.cql.errors import Error
from minidsms.sources.files import cannot_read
from minidsms.sources.line_cutter import LineCutter
from minidsms.sources.live_lines import LiveLines

_READ_BYTES = 1 << 18


class PipeReader:
    """Reads the standard input (path "-") or a named pipe until its writers have closed it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._wake, self._woken = socket.socketpair()
        if path == "-":
            try:
                self._descriptor = os.dup(sys.stdin.fileno())
            except (OSError, ValueError, AttributeError):
                raise Error("there is no standard input to read\nhelp: name a file") from None
            return
        try:
            # Without O_NONBLOCK the opening itself would wait for a writer.
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            raise cannot_read(path, error) from None

    def run(self, source: LiveLines) -> None:
        """Read to the end."""
        rows, cutter = source.rows("the standard input" if self._path == "-" else self._path), LineCutter()
        has_begun = self._path == "-"
        try:
            while True:
                ready, _, _ = select.select([self._descriptor, self._woken.fileno()], [], [])
                if self._woken.fileno() in ready:
                    return
                try:
                    data = os.read(self._descriptor, _READ_BYTES)
                except BlockingIOError:
                    continue
                has_begun = has_begun or bool(data)
                if not data:
                    if has_begun:
                        source.inbox.put(rows, cutter.end())
                        return
                    # A named pipe that nobody has opened for writing yet reads as ended.
                    if select.select([self._woken], [], [], 0.05)[0]:
                        return
                elif not source.inbox.put(rows, cutter.feed(data)):
                    return
        finally:
            os.close(self._descriptor)

    def stop(self) -> None:
        """Let `run` return."""
        try:
            self._wake.send(b"x")
        except OSError:
            return
