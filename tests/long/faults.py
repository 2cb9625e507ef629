"""A layer under every file, socket and clock of the engine that lets the n-th operation fail.

It stands between the engine's modules and `open`, `os`, `socket`, `tempfile`, `time`, Parquet by pyarrow and the client
of Kafka, counts what they ask for, and fails where it was told to: a disk that is full (half of what was to be written
is), a read error, a rename that is refused, a connection cut off, a clock that jumps. As in SQLite's tests a case is
run for n = 1, 2, 3, .. until nothing fails any more: `tests.long.fault_cases`.

Invariant: nothing but calls of the engine's own modules is counted, and what a failed operation has really done is what
it may have done when the system fails so: a file is closed though its close has failed.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyarrow import dataset, parquet

try:
    import confluent_kafka
except ImportError:
    confluent_kafka = None  # type: ignore[assignment]

_IN_OS = (
    "open", "fsync", "fstat", "ftruncate", "link", "listdir", "makedirs", "mkdir", "posix_fallocate", "pwrite",
    "rename", "replace", "scandir", "stat", "unlink", "write",
)  # fmt: skip
_IN_PARQUET = ("write_table", "read_metadata", "read_schema")
"""What pyarrow does with files that it opens by itself."""
_OF_KAFKA = {
    "Consumer": ("assign", "close", "commit", "consume", "list_topics", "poll", "subscribe"),
    "Producer": ("flush", "list_topics", "poll", "produce", "purge"),
}
_CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns")
_REASONS = {
    "open": errno.EMFILE,
    "read": errno.EIO,
    "write": errno.ENOSPC,
    "send": errno.ECONNRESET,
    "recv": errno.ECONNRESET,
    "accept": errno.ECONNABORTED,
    "connect": errno.ECONNREFUSED,
    "replace": errno.EACCES,
    "unlink": errno.EACCES,
}
"""What an operation fails with; others with EIO."""


class Faults:
    """at: the operation that fails, from 1; 0 for none.  lasting: so do all after it.  jump_s: clocks jump instead.

    count: operations so far.  failed: names of those that have failed.
    """

    def __init__(self, at: int, lasting: bool = False, jump_s: float | None = None) -> None:
        self.at = at
        self.count = 0
        self.failed: list[str] = []
        self.is_on = True
        self._lasting = lasting
        self._jump_s = jump_s
        self._lock = threading.Lock()

    def is_due(self, name: str) -> bool:
        """Count an operation; whether it is to fail."""
        with self._lock:
            if not self.is_on or (name in _CLOCKS) != (self._jump_s is not None):
                return False
            self.count += 1
            due = self.at > 0 and (self.count == self.at or (self._lasting and self.count > self.at))
            if due:
                self.failed.append(name)
            return due

    def check(self, name: str) -> None:
        """Count an operation; OSError where it is to fail."""
        if self.is_due(name):
            number = _REASONS.get(name, errno.EIO)
            raise OSError(number, os.strerror(number))

    def time(self, name: str, now: float) -> float:
        """What a clock says. A lasting jump is one of the clock, another of a single answer."""
        if not self.is_due(name) or self._jump_s is None:
            return now
        return type(now)(now + self._jump_s * (10**9 if name.endswith("_ns") else 1))


class File:
    """An open file whose operations are counted."""

    def __init__(self, file: Any, faults: Faults) -> None:
        self._file = file
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)

    def __enter__(self) -> File:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def read(self, *size: int) -> Any:
        """As a file's."""
        self._faults.check("read")
        return self._file.read(*size)

    def readline(self, *size: int) -> Any:
        """As a file's."""
        self._faults.check("read")
        return self._file.readline(*size)

    def readinto(self, buffer: Any) -> int:
        """As a file's."""
        self._faults.check("read")
        return int(self._file.readinto(buffer))

    def write(self, data: Any) -> int:
        """As a file's; a disk that is full has taken half."""
        if self._faults.is_due("write"):
            half = data[: len(data) // 2] if isinstance(data, str) else bytes(data)[: len(bytes(data)) // 2]
            self._file.write(half)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return int(self._file.write(data))

    def flush(self) -> None:
        """As a file's."""
        self._faults.check("flush")
        self._file.flush()

    def close(self) -> None:
        """As a file's; it is closed in any case."""
        was_closed = self._file.closed
        self._file.close()
        if not was_closed:
            self._faults.check("close")


@contextlib.contextmanager
def injected(faults: Faults) -> Iterator[Faults]:
    """The layer, for as long as the context lasts."""
    with contextlib.ExitStack() as stack:

        def patch(owner: Any, name: str, wrapped: Callable[..., Any]) -> None:
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, wrapped)

        patch(builtins, "open", _opening(builtins.open, faults))
        patch(tempfile, "TemporaryFile", _opening(tempfile.TemporaryFile, faults))
        for name in _IN_OS:
            if hasattr(os, name):
                patch(os, name, _checked(getattr(os, name), name, faults))
        for name in _CLOCKS:
            patch(time, name, _told(getattr(time, name), name, faults))
        for name in _IN_PARQUET:
            patch(parquet, name, _checked(getattr(parquet, name), name, faults))
        patch(dataset, "dataset", _checked(dataset.dataset, "dataset", faults))
        patch(socket, "socket", _socket_class(faults))
        if confluent_kafka is not None:
            for name, operations in _OF_KAFKA.items():
                patch(confluent_kafka, name, _kafka_class(getattr(confluent_kafka, name), operations, faults))
        try:
            yield faults
        finally:
            faults.is_on = False


def is_ours(depth: int = 2) -> bool:
    """Whether a module of the engine has called."""
    name = str(sys._getframe(depth).f_globals.get("__name__", ""))
    return name.startswith("minidsms.") and not name.startswith("minidsms.testing.")


def _opening(real: Callable[..., Any], faults: Faults) -> Callable[..., Any]:
    def opening(*arguments: Any, **options: Any) -> Any:
        if not is_ours():
            return real(*arguments, **options)
        faults.check("open")
        return File(real(*arguments, **options), faults)

    return opening


def _checked(real: Callable[..., Any], name: str, faults: Faults) -> Callable[..., Any]:
    def checked(*arguments: Any, **options: Any) -> Any:
        if is_ours():
            faults.check(name)
        return real(*arguments, **options)

    return checked


def _told(real: Callable[[], Any], name: str, faults: Faults) -> Callable[[], Any]:
    def told() -> Any:
        return faults.time(name, real()) if is_ours() else real()

    return told


def _socket_class(faults: Faults) -> type[socket.socket]:
    class Socket(socket.socket):
        """Every operation of a socket that the engine asks for is counted; those of the tests' own are not."""

    def counted(name: str, kind: str) -> Callable[..., Any]:
        def operation(self: Any, *arguments: Any) -> Any:
            if is_ours():
                faults.check(kind)
            return getattr(super(Socket, self), name)(*arguments)

        return operation

    for name, kind in (
        ("send", "send"), ("sendall", "send"), ("recv", "recv"), ("accept", "accept"), ("connect", "connect"),
        ("bind", "bind"), ("listen", "listen"), ("shutdown", "shutdown"),
    ):  # fmt: skip
        setattr(Socket, name, counted(name, kind))
    return Socket


def _kafka_class(real: type[Any], operations: Sequence[str], faults: Faults) -> type[Any]:
    """A client of Kafka whose operations fail as they do where the broker is gone."""

    class Client(real):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            if is_ours():
                check("connect")
            super().__init__(*arguments, **options)

    def check(name: str) -> None:
        if faults.is_due(name):
            raise confluent_kafka.KafkaException(confluent_kafka.KafkaError(confluent_kafka.KafkaError._TRANSPORT))

    def counted(name: str) -> Callable[..., Any]:
        def operation(self: Any, *arguments: Any, **options: Any) -> Any:
            asked = is_ours()
            if asked and name != "close":
                check(name)
            done = getattr(super(Client, self), name)(*arguments, **options)
            if asked and name == "close":  # it is closed in any case
                check(name)
            return done

        return operation

    for name in operations:
        setattr(Client, name, counted(name))
    return Client
