"""A second process that compiles what a first run will soon ask for, while the run compiles what it asks for now.

A plan imports the files of its kernels when it is built, so what waits there when the first of them is called is what
the plan may need. The largest are begun first: they are called last. The process ends with the one that started it.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from minidsms.machine_code import environment, store

if TYPE_CHECKING:
    from minidsms.machine_code.definition import Definition

_SETTING = "MINIDSMS_COMPILE_AHEAD"
"""In the environment: 0 keeps all compilation in the process that needs it."""


def start(waiting: Iterable[Definition]) -> None:
    """Begin with these, once in a process; not where there is one processor, or nowhere to keep what is made."""
    is_wanted = _processors() > 1 and os.environ.get(_SETTING) != "0" and store.kept_in() is not None
    # Within a program that embeds Python the executable is that program.
    if is_wanted and Path(sys.executable or "").name.startswith("python"):
        names = [
            f"{definition.function.__module__}:{definition.function.__name__}"
            for definition in sorted(waiting, key=lambda definition: -definition.size)
        ]
        _run(tuple(names))


def compile_all(names: Iterable[str]) -> None:
    """Compile the kernels "module:function" that are not kept yet."""
    from minidsms.machine_code import compiling
    from minidsms.machine_code.definition import definition_of

    for name in names:
        module, _, function = name.partition(":")
        definition = definition_of(getattr(importlib.import_module(module), function))
        if definition is not None:
            with store.alone(definition.name):
                if store.read(definition.name, environment.mark(definition.digest)) is None:
                    compiling.compile_and_keep(definition)


_started = False


def _run(names: tuple[str, ...]) -> None:
    global _started
    if _started or not names:
        return
    _started = True
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), _SETTING: "0"},
        )
    except OSError:
        return
    threading.Thread(target=process.wait, daemon=True).start()


@cache
def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    compile_all(sys.argv[1:])
