"""Lines of the standard input, or of a named pipe, as they are written."""

from __future__ import annotations

import os
import selectors
import socket
import sys
from typing import IO, cast

from minidsms.cql.errors import Error
from minidsms.process.forking import cut_off, register
from minidsms.sources.files import cannot_read
from minidsms.sources.line_cutter import LineCutter
from minidsms.sources.live_lines import LiveLines

_READ_BYTES = 1 << 18
_LOOK_S = 0.05
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)
"""Of any descriptors: select() takes none from 1024 on, and epoll no files."""


class PipeReader:
    """Reads the standard input (path "-") or a named pipe until its writers have closed it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = _standard_input() if path == "-" else _opened(path)
        self._wake, self._woken = socket.socketpair()
        register(self)

    def abandon(self) -> None:
        """In a child of fork(): the parent reads."""
        cut_off(self._file, self._wake, self._woken)

    def run(self, source: LiveLines) -> None:
        """Read to the end."""
        rows, cutter = source.rows("the standard input" if self._path == "-" else self._path), LineCutter()
        has_begun = self._path == "-"
        with _Selector() as selector:
            selector.register(self._file, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                if any(key.fileobj is self._woken for key, _ in selector.select()):
                    return
                data = self._file.read(_READ_BYTES)
                if data is None:
                    continue
                has_begun = has_begun or bool(data)
                if not data:
                    if has_begun:
                        source.inbox.put(rows, *cutter.end())
                        return
                    # A named pipe that nobody has opened for writing yet reads as ended.
                    selector.unregister(self._file)
                    if selector.select(_LOOK_S):
                        return
                    selector.register(self._file, selectors.EVENT_READ)
                elif not source.inbox.put(rows, *cutter.feed(data)):
                    return

    def stop(self) -> None:
        self._wake.close()  # wakes as well as a byte does, and needs no memory

    def close(self) -> None:
        """Let writers of the pipe know that nobody reads it."""
        self._file.close()


def _standard_input() -> IO[bytes]:
    try:
        return cast("IO[bytes]", open(os.dup(sys.stdin.fileno()), "rb", buffering=0))
    except (OSError, ValueError, AttributeError):
        raise Error("there is no standard input to read\nhelp: name a file") from None


def _opened(path: str) -> IO[bytes]:
    try:
        # Without O_NONBLOCK the opening itself would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        return cast("IO[bytes]", open(descriptor, "rb", buffering=0))
    except OSError as error:
        raise cannot_read(path, error) from None
