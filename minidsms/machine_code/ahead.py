"""A second process that compiles, while this one runs: what a first run will soon ask for, and what is hot.

A plan imports the files of its kernels when it is built, so what waits there when the first of them is called is what
the plan may need. The largest are begun first: they are called last. Forms of templates (`templates`) are asked for one
by one, by queries that run well enough without them: one process at a time makes them, of a low priority.

Invariant: a process that has lost the one that started it begins nothing new. What is under way, the first thing from
the start, it finishes within LINGER_S, so that short programs which run one after the other find it in the end; where
another process makes the same it goes at once. It is in no session of a terminal, holds no folder or file of its
parent's, says nothing, and dies of whatever ends it: what it leaves then is as if it were not there (`store`).
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from minidsms.cql.errors import Error
from minidsms.machine_code import environment, store
from minidsms.process.forking import keep_whole
from minidsms.process.threads import begun

if TYPE_CHECKING:
    from minidsms.machine_code.definition import Definition

_SETTING = "MINIDSMS_COMPILE_AHEAD"
"""In the environment: 0 keeps all compilation in the process that needs it."""
_NAME = "minidsms-compiles"
"""Of the threads that wait for such processes."""
_PATIENT = "--patient"
"""As the first argument: others go first on the processors."""
_CHOSEN = "NUMBA_CACHE_DIR"
_PLACES = (_CHOSEN, "XDG_CACHE_HOME")
"""Of folders, in the environment: `store.kept_in`."""
LINGER_S = 60.0
"""For what is under way when the process that asked has ended: a form takes 3 to 8 s of a processor."""

_lock = threading.RLock()
keep_whole(_lock)
_asked: list[str] = []
"""Places of forms, the first of which are being compiled while `_is_running`."""
_is_running = False
_started = False
_is_left = threading.Event()
"""In a process that compiles: the one that started it has ended, ..."""
_waits = threading.Event()
"""... nothing is under way, for another process compiles the same."""


def _forget() -> None:
    """In the child of a fork nobody waits for the process."""
    global _is_running
    _is_running = False
    _asked.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def start(waiting: Iterable[Definition]) -> None:
    """Begin with these, once in a process; not where there is one processor, or nowhere to keep what is made."""
    global _started
    if _is_possible() and not _started:
        names = [
            f"{definition.function.__module__}:{definition.function.__name__}"
            for definition in sorted(waiting, key=lambda definition: -definition.size)
        ]
        _started = bool(names)
        if names:
            process = _process(names)
            if process is not None:
                with suppress(Error):
                    begun(process.wait, _NAME)


def ask(place: str) -> bool:
    """Have a form compiled; False where that cannot be.  place: `Form.place`."""
    with _lock:
        if not _is_possible():
            return False
        if place not in _asked:
            _asked.append(place)
        return _is_running or _go_on()


def is_under_way(place: str) -> bool:
    """It was asked for, and there is no answer."""
    with _lock:
        return place in _asked


def _go_on() -> bool:
    """Begin a process with all that is asked for; False where none can be started."""
    global _is_running
    places = list(_asked)
    process = _process([_PATIENT, *places])
    _is_running = process is not None and _is_awaited(process, places)
    if not _is_running:
        _asked.clear()
    return _is_running


def _is_awaited(process: subprocess.Popen[bytes], places: list[str]) -> bool:
    """A thread waits for the process; False where there can be none: then it is ended."""
    try:
        begun(partial(_wait, process, places), _NAME)
    except Error:
        process.kill()
        process.wait()
        return False
    return True


def _wait(process: subprocess.Popen[bytes], places: list[str]) -> None:
    global _is_running
    answered = places if process.wait() == 0 else _answered(places)
    with _lock:
        _is_running = False
        _asked[:] = [place for place in _asked if place not in answered]
        if _asked:
            _go_on()


def _answered(places: list[str]) -> list[str]:
    """By a process that something has ended: what it has kept, and the next one, which may be what ended it."""
    return places[: 1 + sum(1 for _ in takewhile(_is_kept, places))]


def _is_kept(place: str) -> bool:
    definition = _definition_at(place)
    return definition is not None and store.read(definition.name, environment.mark(definition.digest)) is not None


def compile_all(names: Iterable[str]) -> None:
    """Compile the kernels "module:function", and the forms by their places, that are not kept yet."""
    for name in names:
        definition = _definition_at(name)
        if definition is not None:
            with store.alone(definition.name, before_waiting=_waits.set):
                _waits.clear()
                if store.read(definition.name, environment.mark(definition.digest)) is None:
                    from minidsms.machine_code import compiling

                    compiling.compile_and_keep(definition)
        if _is_left.is_set():
            return


def _definition_at(name: str) -> Definition | None:
    from minidsms.machine_code.definition import definition_of
    from minidsms.machine_code.templates import form_at

    module, _, function = name.partition(":")
    if ":" in function:
        return form_at(name).definition
    return definition_of(getattr(importlib.import_module(module), function))


def _is_possible() -> bool:
    is_wanted = _processors() > 1 and os.environ.get(_SETTING) != "0" and store.kept_in() is not None
    # Within a program that embeds Python the executable is that program.
    return is_wanted and Path(sys.executable or "").name.startswith("python")


def _process(arguments: list[str]) -> subprocess.Popen[bytes] | None:
    try:
        places = {name: os.path.abspath(os.environ[name]) for name in _PLACES if os.environ.get(name)}
        paths = os.pathsep.join(os.path.abspath(path) for path in sys.path if path and isinstance(path, str))
        return subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=os.path.abspath(os.sep),
            env={**os.environ, **places, "PYTHONPATH": paths, _SETTING: "0"},
            start_new_session=True,
        )
    except OSError:  # also where a place is relative to a working directory that is gone
        return None


@cache
def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end_behind_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # Python's own reader would be at work when the interpreter ends
    _is_left.set()
    _waits.wait(LINGER_S)
    os._exit(0)


def main(arguments: list[str]) -> None:
    """Compile what the arguments name."""
    threading.Thread(target=_end_behind_parent, daemon=True).start()
    if arguments[:1] == [_PATIENT]:
        with suppress(OSError, AttributeError):
            os.nice(10)
        arguments = arguments[1:]
    chosen = os.environ.get(_CHOSEN)
    if not chosen or os.path.exists(chosen):  # else it has been removed since
        compile_all(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
