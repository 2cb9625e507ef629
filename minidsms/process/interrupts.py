"""Interrupts wait while a call is at work.

Python runs the handler of a signal in the main thread between two of its instructions, and `KeyboardInterrupt` comes
out of wherever that is. So the lock of the engine keeps off not only other threads: while the main thread holds it,
SIGINT is counted, and the program's own handler is called once the lock has been let go, or before that where the call
may end (`let_through`). Callbacks are interrupted at once (`passing`). A second interrupt ends what takes long: the
query at work fails as if its time were over, and what the engine waits for, functions of the program, sources and
sinks, is left (`breakable`).

Handlers of other signals are the program's. One that raises as a section begins or ends tears it: the next section
finds that the call which the first one stands in has ended, and lets go what it held.

Invariant: within `held`, which an `EngineLock` is too, and outside of `passing` and `breakable`, no interrupt comes
out. docs/processes.md.
"""

from __future__ import annotations

import os
import signal
import threading

# What is behind `signal`, which makes enumerations of numbers: that would take longer than a push.
from _signal import getsignal as _handler  # type: ignore[import-not-found]
from _signal import signal as _handle
from collections.abc import Callable
from inspect import CO_GENERATOR
from sys import _getframe as _frame
from threading import get_ident
from types import FrameType
from typing import Any, Protocol

_INTERRUPT = int(signal.SIGINT)
_LOOK_S = 0.05
"""Who waits for the lock looks so often whether there was an interrupt."""


class Working(Protocol):
    """What is at work under a lock, and can be told to end soon."""

    def expire(self) -> None:
        """Take no more time. Called by a handler, between any two instructions."""


_HOLDING, _BREAKABLE, _PASSING = range(3)
"""Which interrupts come out of a section: none; the second; all that come while a function of the program runs."""


class _Held:
    """The interrupts that wait: of the main thread, which alone runs handlers.

    depth: sections it is in, and modes of those around them.  call: where the outermost stands.  locks: held by it.
    count: interrupts since.  before: the program's handler.  working: what a second one ends.
    """

    __slots__ = ("before", "call", "count", "depth", "locks", "main", "mode", "modes", "note", "working")

    def __init__(self) -> None:
        self.main = threading.main_thread().ident
        self.depth = self.count = 0
        self.mode = _HOLDING
        self.modes: dict[int, int] = {}
        self.call: FrameType | None = None
        self.locks: list[threading.RLock] = []
        self.before: Any = None
        self.working: Working | None = None
        self.note = self._note  # one object, to be known again

    def enter(self, call: FrameType) -> None:
        """Keep interrupts off from now on, where Python handles them.  call: where the section stands."""
        if self.depth and self._is_under_way(call):
            self.modes[self.depth], self.mode = self.mode, _HOLDING
            self.depth += 1
            return
        if self.depth:
            self._let_go()
        before = _handler(_INTERRUPT)
        if callable(before) and before is not self.note:
            self.count, self.before = 0, before
            _handle(_INTERRUPT, self.note)
        self.call = call
        self.depth = 1

    def leave(self) -> None:
        """Let them come as before, and at the end those that have waited."""
        self.depth = depth = self.depth - 1
        if depth:
            self.mode = self.modes[depth]
            if self.mode == _PASSING:
                self.let_through()
            return
        self.call = self.working = None
        before = self.before
        if before is not None:
            now = _handle(_INTERRUPT, before)
            # The program has taken another one meanwhile; or there is none any more, as the interpreter ends.
            if now is not self.note and now is not None:
                _handle(_INTERRUPT, now)
        if self.count:
            self.let_through()

    def let_through(self) -> None:
        """Hand what waits to the program's handler, which usually raises."""
        if self.count:
            count, self.count = self.count, 0
            for _ in range(count):
                self.before(_INTERRUPT, None)

    def _is_under_way(self, frame: FrameType | None) -> bool:
        """The call of the outermost section has not ended, as far as that is known.

        What others call by itself, such as an ExitStack, or a generator, may end before the section does.
        """
        call = self.call
        if call is None or not _is_ours(call) or call.f_code.co_flags & CO_GENERATOR:
            return True
        while frame is not None and frame is not call:
            frame = frame.f_back
        return frame is not None

    def _let_go(self) -> None:
        """Another signal's handler has raised amidst the beginning or the end of a section."""
        for lock in self.locks:
            while lock._is_owned():  # type: ignore[attr-defined]
                lock.release()
        self.locks.clear()
        self.depth, self.mode = 1, _HOLDING
        self.leave()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if not self.depth or not self._is_under_way(frame):
            self._let_go()
            return
        mode = self.mode
        if (mode == _BREAKABLE and self.count > 1) or (mode == _PASSING and not _is_ours(frame)):
            # What is left of the section when this has raised is the engine's.
            self.mode = _HOLDING
            self.let_through()
            self.mode = mode
        elif self.count > 1 and self.working is not None:
            self.working.expire()

    def forked(self) -> None:
        """In a child, whose only thread is now the main one."""
        if self.main != get_ident():
            self.main = get_ident()
            if self.depth:
                self.depth, self.count = 1, 0
                self.leave()


def _is_ours(frame: FrameType | None) -> bool:
    """It is the engine that has been interrupted, and not what it has called."""
    name = None if frame is None else frame.f_globals.get("__name__")
    return isinstance(name, str) and name.startswith("minidsms.")


_held = _Held()
os.register_at_fork(after_in_child=_held.forked)


class _Section:
    """A part of a call in which interrupts wait."""

    __slots__ = ()

    def __enter__(self) -> None:
        if get_ident() == _held.main:
            _held.enter(_frame(1))

    def __exit__(self, *exc: object) -> None:
        if get_ident() == _held.main:
            _held.leave()


class _Within:
    """A part of such a section in which they come out after all."""

    __slots__ = ("_mode",)

    def __init__(self, mode: int) -> None:
        self._mode = mode

    def __enter__(self) -> None:
        if _held.depth and get_ident() == _held.main:
            _held.mode = self._mode

    def __exit__(self, *exc: object) -> None:
        if get_ident() == _held.main:
            _held.mode = _HOLDING


held = _Section()
passing = _Within(_PASSING)
"""Callbacks, which are not the engine's."""
breakable = _Within(_BREAKABLE)
"""What may take as long as it likes, and does not change the engine: functions of the program, sources, sinks."""


def are_held() -> bool:
    """No interrupt comes out here, in the main thread."""
    return _held.depth > 0 and _held.mode == _HOLDING


def let_through() -> None:
    """Let an interrupt that waits come here, where a call may end."""
    if _held.count and get_ident() == _held.main:
        _held.let_through()


def let_handlers_exit(error: BaseException) -> None:
    """Raise a SystemExit again that a signal's handler has raised amid a function of the program. Others are the
    function's.
    """
    trace = error.__traceback__ if isinstance(error, SystemExit) else None
    while trace is not None:
        if _is_handlers(trace.tb_frame):
            raise error
        trace = trace.tb_next


def _is_handlers(frame: FrameType) -> bool:
    """It has been given the frame that it stands on, as Python gives handlers the one that they interrupt."""
    below = frame.f_back
    given = [part for each in frame.f_locals.values() for part in (each if type(each) is tuple else (each,))]
    return below is not None and any(part is below for part in given)


class EngineLock:
    """A lock that its thread may take again, and that keeps interrupts off while it is held.

    inner: the lock itself, for conditions.  working: what a second interrupt ends.
    """

    __slots__ = ("_undo", "inner", "undoable", "working")

    def __init__(self) -> None:
        self.inner = threading.RLock()
        self.working: Working | None = None
        self._undo: Callable[[], object] | None = None
        self.undoable = 0
        """How many calls have ended that an interrupt may still undo: nothing they have taken is gone for good."""

    def __enter__(self) -> None:
        """An interrupt ends the wait for it."""
        inner = self.inner
        if get_ident() == _held.main:
            call = _frame(1)
            _held.enter(call)
            _held.locks.append(inner)
            if not inner.acquire(False):
                self._wait(call)
            _held.working = self.working
        else:
            inner.acquire()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        undo = self._undo
        try:
            if undo is not None:
                self._undo = None
                if kind is not None:
                    undo()
                    undo = None
                else:
                    self.undoable += 1
        finally:
            self.inner.release()
            if get_ident() == _held.main:
                _held.locks.pop()
                if undo is None:
                    _held.leave()
                else:
                    self._leave(undo)
            elif undo is not None:
                self.undoable -= 1

    def _leave(self, undo: Callable[[], object]) -> None:
        try:
            _held.leave()
        except BaseException:
            with self:
                undo()
            raise
        finally:
            self.undoable -= 1

    def acquire(self) -> bool:
        """As of any lock."""
        self.__enter__()
        if get_ident() == _held.main:
            _held.call = None  # nothing tells when it is let go
        return True

    def release(self) -> None:
        """As of any lock."""
        self.__exit__(None, None, None)

    def _wait(self, call: FrameType) -> None:
        while not self.inner.acquire(timeout=_LOOK_S):
            if _held.count:
                _held.locks.pop()
                _held.leave()
                _held.enter(call)  # where the program's handler has not raised

    def undo_on_error(self, undo: Callable[[], object]) -> None:
        """Where an exception comes in place of what the call gives back, an interrupt for one: undo it, under the lock.
        Called with the lock; forgotten as the `with` that the call stands in ends.
        """
        self._undo = undo
