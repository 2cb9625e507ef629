"""A terminal for the tests: the shell runs in a pseudo-terminal, and pyte draws what a person would see.

Nothing here waits for a fixed time: `wait` looks until something stands on the screen.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pyte

from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parent.parent.parent

_OF_KERNELS = ("NUMBA_CACHE_DIR", "MINIDSMS_COMPILE_AHEAD")
"""Where the tests' kernels are, and that nothing but what is needed is compiled (tests/conftest.py)."""

UP, DOWN, RIGHT = "\x1b[A", "\x1b[B", "\x1b[C"


class Terminal:
    """A shell on a screen of rows x columns."""

    def __init__(self, folder: Path, *arguments: str, rows: int = 30, columns: int = 110, **variables: str) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=10_000)
        self.screen.write_process_input = self.send
        self._stream = pyte.ByteStream(self.screen)
        self.exit_code: int | None = None
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            **{name: value for name, value in os.environ.items() if name in _OF_KERNELS},
            **variables,
        }
        self._process, self._master = pty.fork()
        if self._process == 0:
            os.chdir(folder)
            os.execve(sys.executable, [sys.executable, "-m", "minidsms", *arguments], environment)
        self._size(rows, columns)

    def _size(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows: int, columns: int) -> None:
        """Another size, as when a window is dragged."""
        self.screen.resize(rows, columns)
        self._size(rows, columns)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGWINCH)

    def send(self, keys: str) -> None:
        """Press keys."""
        with contextlib.suppress(OSError):
            os.write(self._master, keys.encode())

    def line(self, text: str) -> None:
        """Type a line and press Enter."""
        self.send(text + "\r")

    # ------------------------------------------------------------------------------------------------- looking

    def read(self, seconds: float = 0.05) -> None:
        """Draw what has come, waiting at most so long for it."""
        ready, _, _ = select.select([self._master], [], [], seconds)
        if ready:
            try:
                data = os.read(self._master, 65_536)
            except OSError:
                data = b""
            if data:
                self._stream.feed(data)

    @property
    def lines(self) -> list[str]:
        """What stands on the screen, without blanks at the ends."""
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        """The same as one text."""
        return "\n".join(self.lines)

    @property
    def everything(self) -> str:
        """What has left the screen at the top, and what stands there."""
        gone = ["".join(row[i].data for i in range(self.screen.columns)).rstrip() for row in self.screen.history.top]
        return "\n".join([*gone, *self.lines])

    @property
    def prompt(self) -> str:
        """The last line that begins with the prompt."""
        return next((line for line in reversed(self.lines) if line.startswith("cql>")), "")

    def wait(self, wanted: str | Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        """Look until a text stands on the screen, or something is so."""
        until = time.monotonic() + patience_s
        is_there = (lambda: wanted in self.text) if isinstance(wanted, str) else wanted
        while not is_there():
            assert time.monotonic() < until, f"{wanted!r} never came; there stands:\n{self.text}"
            self.read()

    def wait_end(self) -> int:
        """The exit code, once the shell has ended."""
        until = time.monotonic() + PATIENCE_S
        while self.exit_code is None:
            assert time.monotonic() < until, f"the shell does not end; there stands:\n{self.text}"
            self.read()
            self._look_for_end()
        return self.exit_code

    @property
    def has_ended(self) -> bool:
        """The shell has ended."""
        self._look_for_end()
        return self.exit_code is not None

    def _look_for_end(self) -> None:
        if self.exit_code is None:
            process, status = os.waitpid(self._process, os.WNOHANG)
            if process:
                self.exit_code = os.waitstatus_to_exitcode(status)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        os.close(self._master)
