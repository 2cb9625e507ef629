"""The archiver: a thread of a connection that writes what the recorders hold to files.

Elements are written when there are enough of them for a file, when the oldest has waited for the interval, and when
somebody asks (`flush`). Behind every file the archive's progress is written: which arrivals are on disk, and up to
which instant nothing more comes.

What is written together waited at the same moment. Relations go first, and no progress is told before they are on disk:
who follows the archives would otherwise pass by instants at which a relation still changes.

Invariants: arrival numbers are one sequence for the connection; what `flush` has returned from is on disk; what could
not be written stays, and no further elements are accepted until it can be; at most `LIMIT_BYTES` wait. The thread
never takes the connection's lock: a push that waits for it here would wait for ever.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from minidsms.archive.buffers import Buffers
from minidsms.archive.files import pieces, write_piece
from minidsms.archive.format import Archive
from minidsms.archive.progress import Progress
from minidsms.archive.recorder import Chunk, Recorder, Waiting
from minidsms.archive.writer import Writer
from minidsms.cql.errors import Error
from minidsms.elements import MIN_INSTANT
from minidsms.process.threads import begun, end_at_exit

LIMIT_BYTES = 256 << 20
FILE_BYTES = 64 << 20
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class _Portion:
    """What waited of a recorder at a moment, and what its archive may tell once it is on disk."""

    recorder: Recorder
    waiting: Waiting
    progress: Progress


class Archiver:
    """Writes the archives of a connection.

    file_rows: elements that make a file worth while.  interval_s: how long an element may wait to be written.
    retention: gives how many ticks of a stream are kept, None for all.
    """

    def __init__(self, file_rows: int, interval_s: float, retention: Callable[[], int | None] = lambda: None) -> None:
        self.file_rows = file_rows
        self.interval_s = interval_s
        self.retention = retention
        self.buffers = Buffers(interval_s)
        """Memory for what the recorders copy."""
        self.before_commit: Callable[[], None] = lambda: None
        """What is to be done before elements are committed."""
        self._recorders: dict[Recorder, Writer] = {}
        self._next = 0
        self._nbytes = 0
        self._writing_bytes = 0
        self._since: float | None = None
        self._asked = 0
        self._answered = 0
        self._failure: Error | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closing = self._is_left = self._has_ended = False
        end_at_exit(self)  # a program that does not close its connections finds everything on disk

    # ------------------------------------------------------------------------------------------ for the engine

    def attach(self, recorder: Recorder) -> Writer:
        """Write for one more recorder; what does. Error where another writer has its archive."""
        writer = Writer(recorder.archive)
        try:
            reached = recorder.archive.reached
        except BaseException:
            writer.release()
            raise
        with self._changed:
            self._recorders[recorder] = writer
            self._next = max(self._next, reached)
        return writer

    def detach(self, recorder: Recorder) -> None:
        """Write what the recorder holds, and forget it."""
        if recorder not in self._recorders:
            return
        try:
            self.flush()
        finally:
            with self._changed:
                self._nbytes -= recorder.waiting.nbytes
                self._recorders.pop(recorder).release()

    def forget(self, recorder: Recorder) -> None:
        """Write for a recorder no longer, nor what it holds."""
        with self._changed:
            writer = self._recorders.pop(recorder, None)
            self._nbytes -= recorder.waiting.nbytes
        if writer is not None:
            writer.release()

    def give_up(self) -> None:
        """Write nothing more, nor what waits, and let other writers have the archives."""
        for recorder in self.recorders():
            self.forget(recorder)
        self.close()

    def recorders(self) -> list[Recorder]:
        """Every recorder."""
        return list(self._recorders)

    def take(self, recorder: Recorder, chunk: Chunk, nbytes: int) -> None:
        """Elements to write; they get their arrival numbers now."""
        with self._changed:
            self._fold_rows(recorder)
            chunk.first = self._next
            self._next += len(chunk)
            recorder.waiting.chunks.append(chunk)
            self._count(recorder.waiting, len(chunk), nbytes)

    def take_row(self, recorder: Recorder, ts: int, values: Sequence[Any], nbytes: int) -> None:
        """One element to write; it gets its arrival number now."""
        with self._changed:
            if len(recorder.waiting.rows) >= _ROWS_AT_ONCE:
                self._fold_rows(recorder)
            recorder.waiting.rows.append((ts, self._next, 1, *values))
            self._next += 1
            self._count(recorder.waiting, 1, nbytes)

    @staticmethod
    def _fold_rows(recorder: Recorder) -> None:
        waiting = recorder.waiting
        if waiting.rows:
            waiting.chunks.append(recorder.table_of_rows(waiting.rows))
            waiting.rows = []

    def _count(self, waiting: Waiting, n: int, nbytes: int) -> None:
        waiting.count += n
        waiting.nbytes += nbytes
        self._nbytes += nbytes
        if self._since is None:
            self._since = time.monotonic()
            with contextlib.suppress(Error):  # who flushes, or has to wait, is told
                self._start()
            self._changed.notify_all()
        elif self._is_enough(waiting):
            self._changed.notify_all()

    def admit(self) -> None:
        """Wait until there is room. Error where elements could not be written."""
        if self._failure is None and self._nbytes + self._writing_bytes < LIMIT_BYTES:
            return
        with self._changed:
            while self._failure is None and self._nbytes + self._writing_bytes >= LIMIT_BYTES:
                self._start()
                self._changed.wait()
            if self._failure is not None:
                raise Error(str(self._failure))

    def flush(self) -> None:
        """Return when everything recorded before the call is on disk. Error where it cannot be."""
        with self._changed:
            self._start()
            self._asked += 1
            asked = self._asked
            self._changed.notify_all()
            while self._answered < asked and not self._has_ended:
                self._changed.wait()
            if self._failure is not None:
                raise Error(str(self._failure))

    def close(self) -> None:
        """Write everything and stop. Closing twice is no error. Error where something could not be written."""
        try:
            if self._recorders and not self._is_closing:
                self.flush()
        finally:
            with self._changed:
                self._is_closing = True
                self._changed.notify_all()
            if self._thread is not None:
                self._thread.join()
            self._release()

    def let_go(self) -> None:
        """The connection is no more: write what waits, let other writers have the archives and end. Returns at once,
        for the collector of garbage calls it, amid whatever a thread is doing.
        """
        with self._changed:
            if not self._is_closing:
                self._is_left = True
                self._asked += 1
                self._start()
                self._changed.notify_all()

    def _release(self) -> None:
        self.buffers.close()
        for writer in self._recorders.values():
            writer.release()
        self._recorders.clear()

    def abandon(self) -> None:
        """In a child of fork(): the parent's archiver writes, and this one is closed."""
        self._changed = threading.Condition()
        self._recorders = {}
        self._is_closing, self._thread = True, None

    @property
    def nbytes(self) -> int:
        """Bytes, about, of what has not been written."""
        return self._nbytes + self._writing_bytes

    @property
    def failure(self) -> str | None:
        """Why elements could not be written, or None."""
        return None if self._failure is None else str(self._failure)

    # ----------------------------------------------------------------------------------------------- the thread

    def _start(self) -> None:
        """Let there be a thread. Error where there can be none."""
        if self._thread is None:
            self._thread = begun(self._run, "minidsms archiver")

    def _is_enough(self, waiting: Waiting) -> bool:
        return waiting.count >= self.file_rows or waiting.nbytes >= FILE_BYTES

    def _run(self) -> None:
        try:
            self._work()
        except BaseException:
            with self._changed:
                self._failure = Error("the thread that writes the archives has ended")
            raise
        finally:
            with self._changed:
                self._has_ended = True
                self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                asked = self._wait()
                if asked is None:
                    break
                everything = asked > self._answered or self._is_due() or self._nbytes >= LIMIT_BYTES
                portions = self._portions(everything)
            failure = self._write_all(portions)
            with self._changed:
                self._failure = failure
                self._answered = asked
                if self._is_left and failure is None:
                    self._is_closing = True
                if everything:
                    # What came meanwhile has its own interval; what failed is tried again after one.
                    self._since = time.monotonic() if self._nbytes or failure is not None else None
                self._changed.notify_all()
        if self._is_left:
            self._release()

    def _wait(self) -> int | None:
        """Wait for something to do; how many flushes have been asked for, or None at the end."""
        while True:
            if self._asked > self._answered:
                return self._asked
            if self._is_closing:
                return None
            ready = self._is_due() or (self._failure is None and self._is_some_enough())
            if ready:
                return self._asked
            timeout = None
            if self._since is not None:
                timeout = max(0.0, self._since + self.interval_s - time.monotonic())
            self._changed.wait(timeout)

    def _is_some_enough(self) -> bool:
        return self._nbytes >= LIMIT_BYTES or any(self._is_enough(r.waiting) for r in self._recorders)

    def _is_due(self) -> bool:
        return self._since is not None and time.monotonic() >= self._since + self.interval_s

    def _portions(self, everything: bool) -> list[_Portion]:
        """Take what is to be written now, relations first."""
        chosen = [r for r in self._recorders if everything or self._is_enough(r.waiting)]
        if chosen:
            changed = [r for r in self._recorders if r.waiting.count and _is_of_relation(r)]
            chosen = list(dict.fromkeys([*changed, *chosen]))
        portions = []
        for recorder in chosen:
            closed = recorder.closed()
            self._fold_rows(recorder)
            taken, recorder.waiting = recorder.waiting, Waiting()
            self._nbytes -= taken.nbytes
            self._writing_bytes += taken.nbytes
            portions.append(_Portion(recorder, taken, Progress(self._next, _instant(closed))))
        return portions

    def _write_all(self, portions: Sequence[_Portion]) -> Error | None:
        """Write portions, and tell how far their archives are; why that failed, or None."""
        failure: Error | None = None
        written = []
        for portion in portions:
            try:
                self._write(portion.recorder, portion.waiting)
                written.append(portion)
            except Exception as error:
                failure = self._reason(portion.recorder.archive, error)
        if all(portion in written for portion in portions if _is_of_relation(portion.recorder)):
            for portion in written:
                archive = portion.recorder.archive
                try:
                    if portion.recorder in self._recorders:
                        archive.tell_progress(portion.progress)
                except Exception as error:
                    failure = self._reason(archive, error)
        return failure

    def _write(self, recorder: Recorder, taken: Waiting) -> None:
        """Write what has been taken of a recorder. What fails goes back to it."""
        left: list[Chunk | pa.Table] | list[pa.Table] = taken.chunks
        taken.chunks = []  # its portion stays for the progress, and what has been written counts no more
        writer = self._recorders.get(recorder)
        try:
            if left and writer is not None:
                left = pieces(recorder.archive, recorder.table(left))
                self.before_commit()
                self._commit(writer, left, recorder.kept_behind(taken.count))
                recorder.note_committed(taken.count)
                left = []
                kept = self.retention()
                if kept is not None:
                    writer.expire(kept)
        except BaseException:
            with self._changed:
                self._put_back(recorder, taken, left)
            raise
        finally:
            with self._changed:
                self._writing_bytes -= taken.nbytes

    @staticmethod
    def _commit(writer: Writer, tables: Sequence[pa.Table], kept: Mapping[str, int]) -> None:
        """Write tables as files, and let all of them, or none, be of the archive."""
        writer.check()
        paths: list[str] = []
        try:
            for table in tables:
                paths.append(write_piece(writer.archive, table))
            writer.commit("archive", paths, kept=kept)
        except Exception:
            writer.discard(paths)
            raise

    def _put_back(self, recorder: Recorder, taken: Waiting, left: Sequence[Chunk | pa.Table]) -> None:
        """Let elements wait again, before those that came meanwhile."""
        self._fold_rows(recorder)
        waiting = recorder.waiting
        waiting.chunks = [*left, *waiting.chunks]
        share = sum(len(t) for t in left) / taken.count if taken.count else 0.0
        nbytes = int(taken.nbytes * share)
        waiting.count += sum(len(t) for t in left)
        waiting.nbytes += nbytes
        self._nbytes += nbytes

    @staticmethod
    def _reason(archive: Archive, error: Exception) -> Error:
        text, _, help = str(error).partition("\nhelp: ")
        reason = getattr(error, "strerror", None) or text[:200]
        waits = "its last elements wait in memory; nothing more is taken until they have been written"
        return Error(f"the archive {archive.folder!r} cannot be written: {reason}\nhelp: {help or waits}")


def _is_of_relation(recorder: Recorder) -> bool:
    return recorder.archive.metadata.kind == "relation"


def _instant(closed: int | None) -> int | None:
    return None if closed is None or closed == MIN_INSTANT else closed
