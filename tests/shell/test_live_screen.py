"""What is written while a prompt stands, and keys pressed in the very instant in which it goes out."""

from __future__ import annotations

import contextlib
import io
import sys
import threading

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from minidsms.shell.live_screen import Above, LiveScreen
from minidsms.shell.styles import Styles


class Pressed(io.StringIO):
    """A standard output during whose first writing keys are pressed."""

    def __init__(self, press: contextlib.ExitStack) -> None:
        super().__init__()
        self._press = press

    def write(self, text: str) -> int:
        self._press.close()
        return super().write(text)


def test_the_terminal_stays_raw_while_output_is_lifted_above_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = LiveScreen(Styles(False))
    cooked: list[str] = []
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        press = contextlib.ExitStack()
        press.callback(keys.send_text, "typed\r")
        shown = Pressed(press)
        monkeypatch.setattr(sys, "stdout", shown)

        def cooked_mode() -> contextlib.AbstractContextManager[None]:
            cooked.append("cooked")
            return contextlib.nullcontext()

        monkeypatch.setattr(keys, "cooked_mode", cooked_mode)
        prompt: PromptSession[str] = PromptSession()

        def begin() -> None:
            screen.prompt_begins(prompt.app)
            screen.write("first\n")
            screen.write("second\n")

        assert prompt.prompt(pre_run=begin) == "typed"
        screen.prompt_ends()
    assert shown.getvalue() == "first\nsecond\n"
    assert cooked == []


def test_what_goes_to_the_standard_error_is_shown_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    with contextlib.redirect_stderr(Above(LiveScreen(Styles(False)))):
        print("compiling", end="", file=sys.stderr)
        assert not shown.getvalue() and sys.stderr.isatty()
        print(" kernels\n\x1b[2Jsecond", file=sys.stderr)
    assert shown.getvalue() == "compiling kernels\n\\x1b[2Jsecond\n"


def test_a_line_that_is_written_over_is_shown_as_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    above = Above(LiveScreen(Styles(False)))
    for part in ("starting ..", "\r           \r", "started\n", "10 %\r20 %\r", "\n", "of Windows\r\n"):
        above.write(part)
    assert shown.getvalue() == "started\n20 %\nof Windows\n"


def test_what_is_told_while_something_is_shown_comes_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Telling(io.StringIO):
        def write(self, text: str) -> int:
            if text == "first\n":
                print("second", file=sys.stderr)
            return super().write(text)

    shown, screen = Telling(), LiveScreen(Styles(False))
    monkeypatch.setattr(sys, "stdout", shown)
    with contextlib.redirect_stderr(Above(screen)):
        thread = threading.Thread(target=screen.write, args=("first\n",), daemon=True)
        thread.start()
        thread.join(10)
    assert not thread.is_alive() and sorted(shown.getvalue().split()) == ["first", "second"]
