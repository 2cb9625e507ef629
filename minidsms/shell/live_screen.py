"""The screen of the interactive shell: what is written while a prompt stands appears above it.

Any thread may write. While no prompt stands the text goes out at once; while one stands it waits for the prompt's event
loop, which lifts the prompt for a moment. What is being typed is not disturbed.

Invariant: texts appear whole, in the order in which they were written. The terminal stays raw meanwhile, so that keys
pressed in that moment are neither echoed by the terminal nor turned into signals: the prompt takes them as any others.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
import threading
from typing import TYPE_CHECKING, Any

from minidsms.shell.harmless import harmless
from minidsms.shell.styles import Styles

if TYPE_CHECKING:
    from prompt_toolkit.application import Application


class LiveScreen:
    """A `Screen` (see `screen.py`)."""

    def __init__(self, styles: Styles) -> None:
        self.styles = styles
        self._lock = threading.RLock()  # what is freed as a thread writes may warn: its text goes behind
        self._waiting: list[str] = []
        self._app: Application[Any] | None = None
        self._is_scheduled = False

    @property
    def width(self) -> int | None:
        """Columns of the terminal."""
        return shutil.get_terminal_size().columns

    # ------------------------------------------------------------------------------------------- around a prompt

    def prompt_begins(self, app: Application[Any]) -> None:
        """From now on texts wait for the prompt's event loop."""
        with self._lock:
            self._app = app
            self._is_scheduled = False

    def prompt_ends(self) -> None:
        """Texts go out at once again; those that waited go first."""
        with self._lock:
            self._app = None
            self._put_out()

    # --------------------------------------------------------------------------------------------------- writing

    def write(self, text: str) -> None:
        """Results, above the prompt."""
        with self._lock:
            self._waiting.append(text)
            if self._app is None:
                self._put_out()
                return
            loop = self._app.loop
            if not self._is_scheduled and loop is not None:
                self._is_scheduled = True
                # A loop that has been closed: the prompt is ending, and its end puts the text out.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._show, self._app)

    def raw(self, text: str) -> None:
        """Lines for other programs, made harmless: a person reads them here."""
        self.write(harmless(text))

    def note(self, text: str) -> None:
        """A dim line for each line of the text."""
        self.write("".join(self.styles("dim", line) + "\n" for line in text.split("\n")))

    def warn(self, text: str) -> None:
        """A line that begins with "warning: "."""
        self.write(self.styles.error(f"warning: {text}") + "\n")

    def error(self, text: str) -> None:
        """An error, its first word in red."""
        self.write(self.styles.error(text) + "\n")

    def flush(self) -> None:
        """Nothing waits that could go out."""
        with self._lock:
            if self._app is None:
                self._put_out()

    def _show(self, app: Application[Any]) -> None:
        """In the prompt's event loop: see to it that what waits is shown."""
        from prompt_toolkit.application import run_in_terminal

        if app.is_done or not app.is_running:
            return  # the end of a prompt puts out what waits
        busy = app._running_in_terminal_f
        if busy is None or busy.done():
            app.create_background_task(self._show_above(app))
        else:
            # An editor has the terminal, or the shell is stopped: after that.
            run_in_terminal(self._put_out_waiting)

    async def _show_above(self, app: Application[Any]) -> None:
        """Lift the prompt, put out what waits, draw the prompt again.

        Not by `run_in_terminal`: that lets the terminal echo keys meanwhile, and they would appear twice.
        """
        # The terminal's answer to where the prompt stands must not come when it stands elsewhere.
        if app.output.responds_to_cpr:
            await app.renderer.wait_for_cpr_responses()
        busy = app._running_in_terminal_f
        if app.is_done or not app.is_running or (busy is not None and not busy.done()):
            self._show(app)
            return
        app.renderer.erase()
        self._put_out_waiting()
        app.renderer.request_absolute_cursor_position()
        app._redraw()

    def _put_out_waiting(self) -> None:
        with self._lock:
            self._is_scheduled = False
            self._put_out()

    def _put_out(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            text = "".join(waiting)
            # A prompt begins at the left.
            sys.stdout.write(text if text.endswith("\n") else text + "\n")
            sys.stdout.flush()


class Above(io.TextIOBase):
    """A standard error whose lines are notes above the prompt: the engine's, of libraries, of the user's functions."""

    def __init__(self, screen: LiveScreen) -> None:
        self._screen = screen
        self._lock = threading.RLock()
        self._begun = ""

    def isatty(self) -> bool:
        """Somebody reads it."""
        return True

    def writable(self) -> bool:
        """It is written to."""
        return True

    def write(self, text: str) -> int:
        """Whole lines are shown, as they stand when all is written that goes back to their beginning; the rest waits
        for its end.
        """
        with self._lock:
            *lines, self._begun = map(_newest, (self._begun + text).split("\n"))
        for line in lines:  # without the lock: the screen has one of its own
            self._screen.note(harmless(line.rstrip("\r")))
        return len(text)


def _newest(line: str) -> str:
    """What a line holds since it was begun anew by a carriage return."""
    return line[line.rstrip("\r").rfind("\r") + 1 :]
