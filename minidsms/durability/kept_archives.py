"""Archives of a durable connection: every element once, however often the process ends.

What an archive has of a recorder stands in its own commits, as a count under the recorder's id; the log says when the
recorder began, and under which id. While the log is carried out, so many elements are passed over.

Invariants: no element is committed whose entry is not on disk; a query's answers are handed on by whole steps, since
their order within an instant may be another next time.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from minidsms.archive.connected import begin, target_of
from minidsms.archive.recorder import Recorder
from minidsms.cql.errors import Error
from minidsms.elements import Batch, Column, Int8Array, Int64Array
from minidsms.inputs.relation_input import RelationInput
from minidsms.inputs.stream_input import StreamInput
from minidsms.sinks.destination import cannot_write

if TYPE_CHECKING:
    from minidsms.archive.archiver import Archiver
    from minidsms.archive.buffers import Buffers
    from minidsms.archive.format import Archive
    from minidsms.archive.recorder import Chunk
    from minidsms.durability.connection import DurableConnection
    from minidsms.durability.log import Log
    from minidsms.query import Query
    from minidsms.values.dictionary import TextDictionary


class KeptArchives:
    """What a connection knows of its archives.

    id: of the recorder that begins with the present call, as its entry of the log says.  is_restored: the entry is a
    checkpoint's, which tells the count at its end.  may_begin: the entry is the last, and what it asks for may not have
    been done.  are_written: by this connection, which is no twin.  lost: by name, why an archive cannot be gone on
    with; the elements it lacks stay in the log.  log: once it is written to.

    It holds no connection: the archiver, which asks it, outlives that.
    """

    def __init__(self) -> None:
        self.id = ""
        self.is_restored = False
        self.may_begin = False
        self.are_written = True
        self.lost: dict[str, str] = {}
        self.log: Log | None = None

    def new_id(self) -> str:
        """The id of a recorder that begins with the present call."""
        self.id = secrets.token_hex(8)
        return self.id

    def recorder(
        self,
        db: DurableConnection,
        archive: Archive,
        target: StreamInput | RelationInput | Query,
        progress: Callable[[], int | None],
    ) -> KeptRecorder:
        """What records into an archive, behind what that has. Error where another writer has it, or it is another one
        than the log says.
        """
        archiver, id = db.archiver, self.id
        assert archiver is not None
        archiver.before_commit = self.sync_log
        if isinstance(target, RelationInput) and archive.partitions() and not db.is_replayed:
            raise Error(f"{archive.folder!r} holds the changes of an earlier run\nhelp: name another folder")
        by_steps = not isinstance(target, StreamInput | RelationInput)
        recorder = KeptRecorder(archiver, archive, db.dictionary, progress, id, by_steps)
        writer = archiver.attach(recorder)
        committed = writer.snapshot.kept.get(id)
        try:
            if committed is None and db.is_replayed and not self.may_begin:
                raise Error(f"{archive.folder!r} is not the one that was written")
            if committed is None:
                writer.commit("begin", kept={id: 0})
        except BaseException as error:
            archiver.forget(recorder)
            if isinstance(error, OSError):
                raise cannot_write(archive.folder, error) from None
            raise
        recorder.goes_on_behind(committed or 0)
        recorder.is_restored = self.is_restored
        return recorder

    def lose(self, db: DurableConnection, name: str, error: Error, is_new: bool) -> None:
        """While the log is carried out: an archive cannot be gone on with, and what it lacks is only counted."""
        told = str(error).partition("\nhelp: ")[0]
        reason = self.lost[name.lower()] = (
            f"the archive of {name} cannot be gone on with: {told}\n"
            f"help: open the folder again when it can be; db.archive({name!r}, None) gives it up"
        )
        target = target_of(db, name)
        if not isinstance(target, StreamInput | RelationInput):
            target.stand_alone()
        target.recorder = cast(Recorder, Counting(reason))
        begin(target, target.recorder, is_new)

    def sync_log(self) -> None:
        """In the archiver's thread: what is committed follows from what is on disk."""
        log = self.log
        if log is not None:
            log.sync()


class Counting:
    """Stands for a recorder where nothing is written. count: elements that have come.  reason: why."""

    must_resume = False

    def __init__(self, reason: str) -> None:
        self.count = 0
        self.is_suspended = self.is_restored = False
        self._reason = reason

    @property
    def archive(self) -> NoReturn:
        """Who asks for it is told why there is none."""
        raise Error(self._reason)

    def check_resumed(self) -> None:
        """It need not be."""

    def add(self, ts: Int64Array, sign: Int8Array | None, columns: Sequence[Column]) -> None:
        """Elements have come."""
        self.count += 0 if self.is_suspended else len(ts)

    def add_batch(self, batch: Batch) -> None:
        """A query's results have come."""
        self.count += len(batch)

    def add_row(self, ts: int, values: Sequence[Any]) -> None:
        """One element has come."""
        self.count += not self.is_suspended


def archived_of(recorder: Recorder | None) -> int | None:
    """How many elements have come since an archive began; None without one."""
    return None if recorder is None else cast(Counting | KeptRecorder, recorder).count


class KeptRecorder(Recorder):
    """Hands on what the archive does not have yet. committed: so many of its elements the archive has.  by_steps: what
    comes waits for `release`.  is_restored: what comes makes a checkpoint's state again, until that says the count.
    """

    def __init__(
        self,
        archiver: Archiver,
        archive: Archive,
        dictionary: TextDictionary,
        progress: Callable[[], int | None],
        id: str,
        by_steps: bool,
    ) -> None:
        self._step = _Step(archiver)
        super().__init__(cast("Archiver", self._step) if by_steps else archiver, archive, dictionary, progress)
        self.id = id
        self.count = 0
        self.is_restored = False
        self.committed = self._there = 0

    def goes_on_behind(self, committed: int) -> None:
        """The archive has so many elements."""
        self.committed = self._there = committed

    def _passed(self, n: int) -> int:
        """How many of the next n are there already."""
        if self.is_restored:
            return n  # a checkpoint flushes the archives
        passed = min(n, max(0, self._there - self.count))
        self.count += n
        return passed

    def add(self, ts: Int64Array, sign: Int8Array | None, columns: Sequence[Column]) -> None:
        n = len(ts)
        passed = 0 if self.is_suspended else self._passed(n)
        if passed:
            ts, sign = ts[passed:], None if sign is None else sign[passed:]
            columns = [column.slice(passed, n) for column in columns]
        super().add(ts, sign, columns)

    def add_row(self, ts: int, values: Sequence[Any]) -> None:
        if not self.is_suspended and not self._passed(1):
            super().add_row(ts, values)

    def release(self) -> None:
        """A step is over: what has come may be written."""
        self._step.release(self)

    def kept_behind(self, n: int) -> Mapping[str, int]:
        return {self.id: self.committed + n}

    def note_committed(self, n: int) -> None:
        self.committed += n


class _Step:
    """What a recorder gives to its archiver, until a step is over."""

    def __init__(self, archiver: Archiver) -> None:
        self._archiver = archiver
        self._taken: list[tuple[Chunk, int]] = []

    @property
    def buffers(self) -> Buffers:
        return self._archiver.buffers

    def take(self, recorder: Recorder, chunk: Chunk, nbytes: int) -> None:
        self._taken.append((chunk, nbytes))

    def release(self, recorder: Recorder) -> None:
        taken, self._taken = self._taken, []
        for chunk, nbytes in taken:
            self._archiver.take(recorder, chunk, nbytes)
