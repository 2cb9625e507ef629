"""A disk under the engine's files that stops at the n-th operation, and then has only what it had to have.

Beneath `open` and `os` of the engine's own modules it counts writes, syncs, renames and the like. At the n-th one the
process ends, halfway through it; whatever the engine still asks for does not happen. A crash of the machine then takes
what no sync has promised: of what was appended to a file any part from its end, or any blocks amid it, of the names
changed in a folder any number of the last ones.

Invariant: what a sync of the file, or of the folder for its names, has returned from stays.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from minidsms.durability.connection import DurableConnection
from tests.long.faults import is_ours

_IN_OS = ("open", "write", "pwrite", "fsync", "ftruncate", "replace", "rename", "unlink", "mkdir", "link")


class Crash(BaseException):
    """The process has ended here."""


class Disk:
    """folder: what is tracked.  at: the operation at which the process ends, from 1; 0 for none.

    count: operations so far.  is_over: the process has ended.
    """

    def __init__(self, folder: str, at: int, rng: Random) -> None:
        self.folder = os.path.realpath(folder)
        self.at = at
        self.count = 0
        self.is_over = False
        self._rng = rng
        self._of = os.getpid(), threading.get_ident()
        self._paths: dict[int, str] = {}
        self._synced: dict[str, bytes] = {}
        self._names: list[tuple[str, Callable[[], None]]] = []

    def operation(self) -> None:
        """Count one; Crash where the process ends before it."""
        if self.is_over:
            raise Crash
        if (os.getpid(), threading.get_ident()) != self._of:
            return  # when a thread beside the engine comes to it is nothing to count on, as what a child does
        self.count += 1
        if self.count == self.at:
            self.is_over = True
            raise Crash

    def lose(self) -> None:
        """The machine has crashed: what was not synced may be gone."""
        kept = self._rng.randint(0, len(self._names))
        for _, undo in reversed(self._names[kept:]):
            undo()
        for path in {*self._paths.values(), *self._synced}:
            if not os.path.isfile(path):
                continue
            now, synced = _content(path), self._synced.get(path, b"")
            if now.startswith(synced):
                left = now[: self._rng.randint(len(synced), len(now))]
                if self._rng.random() < 0.5:
                    left = with_holes(left, len(synced), self._rng)
            else:  # cut off, or written anew: either has happened or not
                left = self._rng.choice((now, synced))
            with open(path, "wb") as file:
                file.write(left)

    # ------------------------------------------------------------------------------------------------ operations

    def opened(self, path: Any, number: int, was_there: bool) -> None:
        """A file has been opened."""
        real = os.path.realpath(os.fspath(path))
        if not real.startswith(self.folder):
            return
        self._paths[number] = real
        if not was_there:
            self._names.append((os.path.dirname(real), lambda: _remove(real)))
        elif os.path.isfile(real):
            self._synced.setdefault(real, _content(real))

    def synced(self, number: int) -> None:
        """A file, or a folder's names, are on disk."""
        path = self._paths.get(number)
        if path is None:
            return
        if os.path.isdir(path):
            self._names = [(folder, undo) for folder, undo in self._names if folder != path]
        elif os.path.isfile(path):
            self._synced[path] = _content(path)

    def renamed(self, old: Any, new: Any, replaced: bytes | None) -> None:
        """A name has taken another's place."""
        source, target = (os.path.realpath(os.fspath(p)) for p in (old, new))
        self._call(source, target)

        def undo() -> None:
            if os.path.exists(target):
                os.replace(target, source)
                self._call(target, source)
            if replaced is not None:
                _write(target, replaced)
                self._synced[target] = replaced

        self._names.append((os.path.dirname(target), undo))

    def linked(self, old: Any, new: Any) -> None:
        """A file has one more name: what of it is on disk is, by whichever name."""
        source, target = (os.path.realpath(os.fspath(p)) for p in (old, new))
        self._names.append((os.path.dirname(target), lambda: _remove(target)))
        self._synced[target] = self._synced.get(source, _content(source))

    def _call(self, old: str, new: str) -> None:
        """A file, or all in a folder, by another name."""
        self._paths = {n: _behind(old, new, p) for n, p in self._paths.items()}
        self._synced.pop(new, None)
        self._synced = {_behind(old, new, p): content for p, content in self._synced.items()}

    def unlinked(self, path: Any, content: bytes | None) -> None:
        """A name is gone."""
        real = os.path.realpath(os.fspath(path))
        synced = self._synced.pop(real, b"")

        def undo() -> None:
            if content is not None:
                _write(real, content)
                self._synced[real] = synced

        self._names.append((os.path.dirname(real), undo))


@contextlib.contextmanager
def crashing(disk: Disk) -> Iterator[Disk]:
    """The disk, for as long as the context lasts; Crash ends it."""
    real = {name: getattr(os, name) for name in _IN_OS}
    real_open = builtins.open

    def os_open(path: Any, *arguments: Any, **options: Any) -> int:
        if not is_ours():
            return int(real["open"](path, *arguments, **options))
        disk.operation()
        was_there = os.path.exists(path)
        number = int(real["open"](path, *arguments, **options))
        disk.opened(path, number, was_there)
        return number

    def write(number: int, data: Any) -> int:
        if not is_ours():
            return int(real["write"](number, data))
        was_over = disk.is_over
        try:
            disk.operation()
        except Crash:
            if not was_over:
                real["write"](number, bytes(data)[: disk._rng.randint(0, len(data))])
            raise
        return int(real["write"](number, data))

    def fsync(number: int) -> None:
        if is_ours():
            disk.operation()
            disk.synced(number)
        else:
            real["fsync"](number)

    def replace(old: Any, new: Any, **options: Any) -> None:
        if not is_ours():
            return real["replace"](old, new, **options)  # type: ignore[no-any-return]
        disk.operation()
        replaced = _content(new) if os.path.isfile(new) else None
        real["replace"](old, new, **options)
        disk.renamed(old, new, replaced)
        return None

    def unlink(path: Any, **options: Any) -> None:
        if not is_ours():
            return real["unlink"](path, **options)  # type: ignore[no-any-return]
        disk.operation()
        content = _content(path) if os.path.isfile(path) else None
        real["unlink"](path, **options)
        disk.unlinked(path, content)
        return None

    def link(old: Any, new: Any, **options: Any) -> None:
        if not is_ours():
            return real["link"](old, new, **options)  # type: ignore[no-any-return]
        disk.operation()
        real["link"](old, new, **options)
        disk.linked(old, new)
        return None

    def counted(name: str) -> Callable[..., Any]:
        def operation(*arguments: Any, **options: Any) -> Any:
            if is_ours():
                disk.operation()
            return real[name](*arguments, **options)

        return operation

    def opening(path: Any, *arguments: Any, **options: Any) -> Any:
        if not is_ours():
            return real_open(path, *arguments, **options)
        disk.operation()
        was_there = isinstance(path, int) or os.path.exists(path)
        file = real_open(path, *arguments, **options)
        if not isinstance(path, int):
            disk.opened(path, file.fileno(), was_there)
        return file

    def thread_ended(arguments: threading.ExceptHookArgs) -> None:
        if not isinstance(arguments.exc_value, Crash):
            threading.__excepthook__(arguments)

    patched: dict[str, Callable[..., Any]] = {
        "open": os_open, "write": write, "fsync": fsync, "replace": replace, "rename": replace, "unlink": unlink,
        "link": link, "ftruncate": counted("ftruncate"), "mkdir": counted("mkdir"), "pwrite": counted("pwrite"),
    }  # fmt: skip
    try:
        for name, function in patched.items():
            setattr(os, name, function)
        builtins.open = opening  # type: ignore[assignment]
        threading.excepthook = thread_ended
        yield disk
    except Crash:
        pass
    finally:
        builtins.open = real_open
        threading.excepthook = threading.__excepthook__
        for name, function in real.items():
            setattr(os, name, function)


def end_process(db: DurableConnection) -> None:
    """What the system does when a process ends: its threads are gone, its files and locks let go."""
    assert db.log is not None
    db.log.stop()
    if db.archiver is not None:
        db.archiver.give_up()
    db.abandon()


def with_holes(content: bytes, synced: int, rng: Random) -> bytes:
    """What is left of a file where blocks behind its synced part have not been written, but later ones have."""
    left, block = bytearray(content), rng.choice((8, 64, 512))
    for start in range(synced - synced % block, len(left), block):
        if rng.random() < 0.3:
            first, end = max(start, synced), min(start + block, len(left))
            left[first:end] = bytes(end - first)
    return bytes(left)


def _behind(old: str, new: str, path: str) -> str:
    """What a file, or one in a folder, is called once that has another name."""
    return new + path[len(old) :] if path == old or path.startswith(old + os.sep) else path


def _content(path: Any) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
