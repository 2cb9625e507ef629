"""Signals in the moments in which a prompt begins or ends, and between two prompts, end nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from minidsms.cql.errors import Error
from minidsms.process.safety import Safety
from minidsms.shell.configuration import Configuration
from minidsms.shell.interactive import InteractiveShell


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    with create_pipe_input() as keys, create_app_session(keys, DummyOutput()):
        yield InteractiveShell(Configuration(history=""), Safety(False))


def after(error: BaseException, then: Any) -> Callable[..., Any]:
    """A call that raises, and from the second time on gives something."""
    errors = [error]

    def call(*arguments: Any, **named: Any) -> Any:
        if errors:
            raise errors.pop()
        return then

    return call


@pytest.mark.parametrize("error", [KeyboardInterrupt(), asyncio.CancelledError()])
def test_a_prompt_that_is_interrupted_reads_nothing(shell: InteractiveShell, error: BaseException) -> None:
    shell._prompt.prompt = after(error, "SHOW QUERIES;")  # type: ignore[method-assign]
    assert shell._read() == ""
    assert shell._read() == "SHOW QUERIES;"


@pytest.mark.parametrize("place", ["_goes_on", "_read", "_run"])
def test_an_interrupt_between_two_prompts_does_not_end_the_shell(
    shell: InteractiveShell, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = iter([".timer on", ".timer off", ".quit"])
    monkeypatch.setattr(shell._prompt, "prompt", lambda **options: next(texts))
    call, interrupts = getattr(shell, place), [KeyboardInterrupt()]

    def calling(*arguments: Any) -> Any:
        if interrupts and threading.current_thread() is threading.main_thread():
            raise interrupts.pop()
        return call(*arguments)

    monkeypatch.setattr(shell, place, calling)
    assert shell.run() == 0 and not interrupts
    assert next(texts, None) is None and shell.session is not None and shell.session.db.is_closed


def test_a_signal_that_comes_when_the_prompt_has_ended_is_nobodys(shell: InteractiveShell) -> None:
    keys = shell._prompt.app.key_processor
    keys.send_sigint()
    assert not keys.input_queue and not keys.key_buffer


def test_what_keeps_the_engine_from_loading_is_told(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> bool:
        raise MemoryError("nothing is left")

    monkeypatch.setattr(shell, "_run", fail)
    monkeypatch.setattr(shell._prompt, "prompt", lambda **options: ".timer on")
    with pytest.raises(MemoryError, match="nothing is left"):
        shell.run()


def test_a_system_that_gives_no_thread_keeps_the_shell_from_loading(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(shell._prompt, "prompt", lambda **options: ".timer on")
    with pytest.raises(Error, match="no thread can be started"):
        shell.run()
    assert shell.session is not None and shell.session.db.is_closed
