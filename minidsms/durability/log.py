"""The log of a durable connection: entries at the end of its last segment, synced as its durability demands.

Invariants: `append` has written an entry whole, or has changed nothing and can be called again; entries reach the disk
in the order of their numbers. After a sync that has failed nobody knows what the disk holds: nothing more is taken
until the folder is opened again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Sequence
from typing import NoReturn

from minidsms.archive.atomic import sync_folder
from minidsms.cql.errors import Error, saying
from minidsms.durability.lock import FolderLock
from minidsms.durability.segments import HEADER, Part, entries, frame, header, is_current, name_of_segment, segments
from minidsms.process.interrupts import held
from minidsms.process.threads import begun, end_at_exit

SEGMENT_BYTES = 64 << 20
"""A segment that is longer takes no more entries."""
LARGE_BYTES = 1 << 18
"""Entries of more are not copied into one piece, and synced while the engine works at them."""
BATCH_S = 0.1
"""`batch`: entries are synced so many seconds after they were written, at the latest."""


class Log:
    """A log that is appended to. durability: 'sync', 'batch' or 'os'.  lock: without it nothing is written; None for a
    log that is of no folder yet.  Errors are Error.
    """

    def __init__(self, folder: str, durability: str, lock: FolderLock | None = None) -> None:
        """Goes on after the last whole entry; what stands behind it, cut off by a crash, is removed."""
        self.folder = folder
        self._lock = lock
        self.durability = durability
        self._handle: int | None = None
        self._failure: OSError | None = None
        self._is_torn = self._is_full = False
        self._syncing = threading.Lock()
        self._due = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_over = self._is_urgent = self._is_idle = False
        self.removed_bytes = 0
        self.next = self._size = self._before = 0
        try:
            self._open()
        except OSError as error:
            self.abandon()
            raise Error(f"the log {folder!r} cannot be written: {error.strerror or error}") from None
        self._synced = self._wanted = self.next

    def _open(self) -> None:
        there = segments(self.folder)
        if not there:
            self._begin_segment(0)
            return
        last = there[-1]
        self.next, end = last.first, HEADER.size
        for found in entries(self.folder):
            self.next = found.number + 1
            if found.segment == last:
                end = found.end
        self._handle = os.open(last.path, os.O_RDWR)
        length = os.lseek(self._handle, 0, os.SEEK_END)
        if length < HEADER.size or end == HEADER.size:
            self._write((header(last.first),), 0)
        if length > end:
            self.removed_bytes = length - end
            os.ftruncate(self._handle, end)
        os.fsync(self._handle)
        self._size, self._is_full = end, end > HEADER.size and not is_current(last)

    # ---------------------------------------------------------------------------------------------------- entries

    def append(self, *payload: Part, is_awaited: bool = True, is_amid: bool = False) -> int:
        """Write an entry, whole or not at all; its number. is_awaited: `commit` waits for it.  is_amid: it tells of a
        call that has an entry. Error where it cannot be written.
        """
        self.check()
        try:
            self._mend()
            if self._is_full or self._size > SEGMENT_BYTES:
                self._rotate()
            parts = (frame(self.next, payload, self._synced), *payload)
            self._is_torn = True
            is_large = sum(map(len, parts)) > LARGE_BYTES
            end = self._write(parts if is_large else (b"".join(parts),), self._size)
            self._size, self._before, self._is_torn = end, self._size, False
        except OSError as error:
            otherwise = "" if is_amid else ", and nothing has been taken"
            hint = ""
            if is_amid:
                hint = "\nhelp: close the connection and open the folder again"
            elif error.errno in (errno.ENOSPC, errno.EDQUOT):
                hint = "\nhelp: make room there, and call again; what was taken before is kept"
            reason = f"the log {self.folder!r} cannot be written{otherwise}: {error.strerror or error}"
            raise Error(reason + hint) from None
        self.next += 1
        if is_awaited:
            self._wanted = self.next
        if self.durability == "batch" or (self.durability == "sync" and is_large):
            self._sync_soon(is_large)
        return self.next - 1

    def retract(self, number: int) -> None:
        """The last entry shall not have been written."""
        assert number == self.next - 1 and self._before < self._size
        self.next, self._size, self._is_torn = number, self._before, True
        self._synced, self._wanted = min(self._synced, number), min(self._wanted, number)
        with contextlib.suppress(OSError, Error):
            self.check()
            self._mend()  # else the next entry does

    def retract_last(self, number: int) -> None:
        """The last entry of the log that was opened shall not have been written. Error where it cannot be removed."""
        for found in entries(self.folder):
            if found.number == number:
                self._before = found.start
        self.retract(number)
        if self._is_torn:
            raise Error(f"the log {self.folder!r} cannot be written: entry {number} cannot be removed")

    def commit(self) -> None:
        """Return when what is awaited is as durable as it is to be. Error where it cannot be synced."""
        if self.durability == "sync" and (self._failure is not None or not self.is_synced):
            self.sync()

    def sync(self) -> None:
        """Return when all that has been appended is on disk. One sync serves all who wait for it."""
        wanted = self.next
        self.check(at_once=True)
        if self._synced >= wanted:
            return
        with self._syncing:
            if self._failure is not None:
                self._raise()
            if self._synced < wanted and self._handle is not None:
                reached = self.next
                try:
                    os.fsync(self._handle)
                except OSError as error:
                    self._failure = error
                    self._raise()
                self._synced = reached

    @property
    def is_synced(self) -> bool:
        """What is awaited is known to be on disk."""
        return self._synced >= self._wanted

    def check(self, at_once: bool = False) -> None:
        """Error where a sync has failed, or the folder is another connection's. at_once: though that was looked at a
        moment ago.
        """
        if self._failure is not None:
            self._raise()
        if self._lock is not None:
            (self._lock.check if at_once else self._lock.look)()

    def _raise(self) -> NoReturn:
        assert self._failure is not None
        raise Error(
            f"the log {self.folder!r} could not be synced, and what was pushed last may be lost: "
            f"{self._failure.strerror or self._failure}\nhelp: close the connection and open the folder again"
        ) from None

    # ------------------------------------------------------------------------------------------------------ files

    def _write(self, parts: Sequence[Part], at: int) -> int:
        """Write one part after the other; where the last ends."""
        assert self._handle is not None
        os.lseek(self._handle, at, os.SEEK_SET)
        for part in parts:
            left = memoryview(part)
            at += len(left)
            while left:
                left = left[os.write(self._handle, left) :]
        return at

    def _mend(self) -> None:
        """Cut off what an append that has failed, or an entry retracted, has left."""
        if self._is_torn:
            assert self._handle is not None
            os.ftruncate(self._handle, self._size)
            self._is_torn = False

    def rotate(self) -> None:
        """Let a new segment begin with the next entry; all before it is on disk. Error where that cannot be."""
        with saying(f"the log {self.folder!r} cannot be written"):
            self._rotate()

    def _rotate(self) -> None:
        assert self._handle is not None
        self.sync()
        with self._syncing, held:
            before = self._handle
            self._begin_segment(self.next)
            os.close(before)

    def _begin_segment(self, first: int) -> None:
        path = os.path.join(self.folder, name_of_segment(first))
        before, self._handle = self._handle, os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            end = self._write((header(first),), 0)
            os.fsync(self._handle)
            sync_folder(self.folder)
            self._size, self._is_full = end, False
        except BaseException:
            if before is not None:
                os.close(self._handle)
                self._handle = before
            raise

    # -------------------------------------------------------------------------------------------------- syncing

    def _sync_soon(self, is_large: bool) -> None:
        """Let the thread sync; at once what is large and will be waited for, while the engine is at it."""
        if self._thread is None:
            try:
                self._thread = begun(self._run, "minidsms-log")
            except Error:
                with contextlib.suppress(Error):  # the next call raises it
                    self.sync()
                return
            end_at_exit(self)
        is_urgent = is_large and self.durability == "sync"
        if is_urgent or self._is_idle:  # else it is going to sync anyway, and being woken costs more than the entry
            with self._due:
                self._is_urgent = self._is_urgent or is_urgent
                self._due.notify_all()

    def _run(self) -> None:
        while True:
            with self._due:
                self._is_idle = True  # first: an entry that the question below does not see wakes it
                self._due.wait_for(lambda: self._is_over or self._is_urgent or self._synced < self.next)
                self._is_idle = False
                self._due.wait_for(lambda: self._is_over or self._is_urgent, BATCH_S)
                if self._is_over:
                    return
                self._is_urgent = False
            try:
                self.sync()
            except Error:
                return  # the next call raises it

    def close(self) -> None:
        """Sync what there is, and end. Closing twice is no error."""
        self.stop()
        try:
            if self._handle is not None and self._failure is None and not (self._lock and self._lock.is_lost):
                self.check()
                with contextlib.suppress(OSError):  # what is torn is cut off when the log is opened, too
                    self._mend()
                self.sync()
        finally:
            self.abandon()

    def retire(self) -> None:
        """Another log has all of it, on disk: whoever waits for a sync need not."""
        with self._syncing:
            self._synced = self.next
        self.stop()
        with contextlib.suppress(OSError):
            self._mend()
            if self._handle is not None:
                os.fsync(self._handle)
        self.abandon()

    def stop(self) -> None:
        """End the thread that syncs."""
        with self._due:
            self._is_over = True
            self._due.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def abandon(self) -> None:
        """Close the file as it is; in a child of fork() it is the parent's."""
        with held:  # an interrupt between the two would leave the file open
            handle, self._handle = self._handle, None
            if handle is not None:
                os.close(handle)
        self._thread, self._due, self._syncing = None, threading.Condition(), threading.Lock()

    def __del__(self) -> None:
        """An interrupt may have come before whoever made it could close it."""
        if getattr(self, "_handle", None) is not None:
            self.abandon()
