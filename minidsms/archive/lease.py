"""One writer for an archive where nothing tells that a process has ended: a lock that runs out unless it is renewed.

    Pos/_lock.json      who writes, and until when at the latest

It keeps writers that mean well apart. A writer that was held up until its lease ran out has lost the archive to the
next one, whose commit takes the number that it would have given its own (`log.publish`).
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import threading
import time
from datetime import UTC, datetime
from typing import Any

from minidsms.archive.storage import Storage
from minidsms.cql.errors import Error
from minidsms.process.ended import has_ended
from minidsms.process.forking import register
from minidsms.process.threads import begun

_NAME = "_lock.json"
LEASE_S = 60.0
"""So long after its last word a writer is taken for gone."""
_RENEW_S = 20.0


class Lease:
    """Held from construction to `release`. Error where another writer has the archive."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._path = os.path.join(folder, _NAME)
        self._token = secrets.token_hex(8)
        self._mutex = threading.Lock()
        self._ended = threading.Event()
        self._is_lost = False
        try:
            self._take(folder)
        except OSError as error:
            raise Error(f"cannot write the archive {folder!r}: {str(error)[:200]}") from None
        register(self)
        try:
            begun(self._renew, "minidsms lease")
        except Error:
            self.release()
            raise

    def _take(self, folder: str) -> None:
        try:
            self._storage.create(self._path, self._content())
            return
        except FileExistsError:
            holder = self._holder()
        if not _is_gone(holder):
            until = datetime.fromtimestamp(holder["until_ms"] / 1000, UTC).isoformat(" ", "seconds")
            raise Error(
                f"the archive {folder!r} is being written by somebody else: process {holder['process']} of "
                f"{holder['machine']!r}, until {until} unless it goes on\n"
                f"help: close that connection, or name another folder; if it is gone, wait or remove {self._path!r}"
            )
        self._storage.write(self._path, lambda file: file.write(self._content()))
        if self._holder().get("writer") != self._token:
            raise Error(f"the archive {folder!r} is being written by somebody else")

    def _content(self) -> bytes:
        until_ms = time.time_ns() // 1_000_000 + int(LEASE_S * 1000)
        content = {"writer": self._token, "machine": platform.node(), "process": os.getpid(), "until_ms": until_ms}
        return json.dumps(content).encode()

    def _holder(self) -> dict[str, Any]:
        """What the lock says; nothing where it is gone, or says nothing."""
        try:
            content = json.loads(self._storage.read(self._path))
            return content if isinstance(content.get("until_ms"), int) else {}
        except (FileNotFoundError, ValueError, AttributeError):
            return {}

    def _renew(self) -> None:
        while not self._ended.wait(_RENEW_S):
            with contextlib.suppress(OSError), self._mutex:
                if self._ended.is_set():
                    return
                if self._holder().get("writer") != self._token:
                    self._is_lost = True
                    return
                self._storage.write(self._path, lambda file: file.write(self._content()))

    def is_held(self) -> bool:
        """See `Held`. It is looked at as often as it is renewed; in between the log decides (`Storage.locks`)."""
        return not self._is_lost

    def abandon(self) -> None:
        """In a child of fork(): only the parent holds it."""
        self._ended = threading.Event()
        self._ended.set()
        self._mutex = threading.Lock()

    def release(self) -> None:
        """Let another writer have it. Releasing twice is no error."""
        if self._ended.is_set():
            return
        self._ended.set()
        with contextlib.suppress(OSError), self._mutex:
            if self._holder().get("writer") == self._token:
                self._storage.remove(self._path)


def _is_gone(holder: dict[str, Any]) -> bool:
    """Whether the writer of a lock is no more: it has said nothing for too long, or is known to have ended."""
    if not holder or holder["until_ms"] <= time.time_ns() // 1_000_000:
        return True
    process = holder.get("process")
    return holder.get("machine") == platform.node() and isinstance(process, int) and has_ended(process)
