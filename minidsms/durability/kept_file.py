"""A file of answers while a query of a durable connection writes it.

It stands beside its place under a hidden name, as long as it grows, and takes its place when it is done. What the log
says of it is a mark: so many answers, in so many bytes, which were synced before. Opening the folder again cuts the
file off at its mark; the answers behind it come again, and are written again.

A Parquet or Arrow file cannot be cut off: what grows is a stream of Arrow messages, of which the file is made when it
takes its place. A file that is added to grows where it is.

Invariant: the file holds every answer before its mark once, and what stands behind is nobody's to rely on.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from minidsms.answers.results import ResultCodec
from minidsms.archive.atomic import sync_folder
from minidsms.cql.errors import Error, saying
from minidsms.elements import Batch, Schema
from minidsms.process.interrupts import held
from minidsms.sinks.append_output import AppendOutput, end_of_last_line, is_empty
from minidsms.sinks.columnar_sink import ColumnarSink
from minidsms.sinks.destination import cannot_write
from minidsms.sinks.locking import try_hold
from minidsms.sinks.packed_file import STRETCH, PackedFile


@dataclass(frozen=True)
class Mark:
    """How far a query's answers are where INTO says. path: the place, a file's absolute.  until: answers of the query.
    rows: written.  nbytes: of the file, or of the part that grows; of a topic, the offset behind the last message.
    part: the number of that part.  first: rows in the parts before it.  id: what tells our messages in a topic.
    is_packed: the file is compressed as its name says; what a folder began before files were is not.
    """

    path: str
    until: int
    rows: int
    nbytes: int
    part: int = 0
    first: int = 0
    id: str = ""
    is_packed: bool = False


def hidden(path: str) -> str:
    """Where the file is until it takes its place."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:200]}.kept")


class KeptFile:
    """What a `LineSink` writes to. nbytes: where it goes on; 0 for a new file. Error where that cannot be."""

    def __init__(self, path: str, nbytes: int) -> None:
        self.shown = path
        self._is_new = nbytes == 0
        self.has_ended = False
        """It has taken its place, or was removed."""
        self._hidden = self._stands_at(path)
        flags = os.O_RDWR | (os.O_CREAT if self._is_new else 0)
        with saying(f"cannot write {path!r}"):
            self._handle: int | None = os.open(self._hidden, flags, 0o644)
        try:
            if try_hold(self._handle) is False:
                raise Error(f"cannot write {path!r}: another query or connection is writing it")
            if os.fstat(self._handle).st_size < nbytes:
                raise Error(f"cannot go on with {path!r}: {self._hidden!r} has become shorter")
            os.ftruncate(self._handle, nbytes)
            os.lseek(self._handle, nbytes, os.SEEK_SET)
            if self._is_new:
                sync_folder(os.path.dirname(path))
        except OSError as error:  # of one that is held
            self.discard()
            raise Error(f"cannot write {path!r}: {error.strerror or error}") from None
        except BaseException:
            self.leave()  # it may be another's
            raise

    def _stands_at(self, path: str) -> str:
        return hidden(path)

    def write(self, data: bytes) -> None:
        """Add whole lines. Error where the disk does not take them."""
        assert self._handle is not None
        left = memoryview(data)
        with saying(f"cannot write {self.shown!r}"):
            while left:
                left = left[os.write(self._handle, left) :]

    def sync(self) -> None:
        """Return when what was written is on disk. Raises OSError."""
        assert self._handle is not None
        os.fsync(self._handle)
        self._is_new = False

    def publish(self) -> None:
        """Take the place. Error where that cannot be."""
        with self._ending():
            self.sync()
            self._take_place()

    @contextlib.contextmanager
    def _ending(self) -> Iterator[None]:
        """What the context does is the last of it."""
        try:
            with saying(f"cannot write {self.shown!r}"):
                yield
                self.has_ended = True
                sync_folder(os.path.dirname(self.shown))
        finally:
            self.leave()

    def _take_place(self) -> None:
        os.replace(self._hidden, self.shown)

    def leave(self) -> None:
        """Close the file as it is, to be gone on with."""
        with held:  # an interrupt must not come between the two
            handle, self._handle = self._handle, None
            if handle is not None:
                os.close(handle)

    def remove(self) -> None:
        """Leave nothing of it, for good. Error where that cannot be."""
        with self._ending():
            os.unlink(self._hidden)

    def discard(self) -> None:
        """Leave it, and nothing of a new one."""
        try:
            if self._is_new and self._handle is not None:
                with contextlib.suppress(OSError):
                    self._take_back(self._handle)
        finally:
            self.leave()

    def _take_back(self, handle: int) -> None:
        os.unlink(self._hidden)


class AddedFile(KeptFile):
    """One that is added to where it is, by nobody else meanwhile. nbytes: where it goes on, also of a new sink."""

    def __init__(self, path: str, nbytes: int) -> None:
        self._begins_at = nbytes
        super().__init__(path, nbytes)
        self._is_new = True

    @staticmethod
    def begins_at(path: str) -> int:
        """Where a new sink goes on: behind the last whole line. Error where the file cannot be written."""
        if is_empty(path):
            return 0
        _sync_whole(path)  # a mark is of what stays
        size = os.path.getsize(path)
        whole = end_of_last_line(path, size)
        if whole == 0:
            AppendOutput(path).discard()  # ends the line
            return os.path.getsize(path)
        return size if whole is None else whole

    def _stands_at(self, path: str) -> str:
        return path

    def _take_place(self) -> None:
        """It is there."""

    def _take_back(self, handle: int) -> None:
        os.ftruncate(handle, self._begins_at)


class KeptLines(KeptFile):
    """One of lines, of which it makes a compressed file."""

    def _take_place(self) -> None:
        made = PackedFile(self.shown)
        try:
            with open(self._hidden, "rb") as file:
                while data := file.read(STRETCH):
                    made.write(data)
            made.publish()
        finally:
            made.discard()
        os.unlink(self._hidden)


def _sync_whole(path: str) -> None:
    """Return when a file that others have written is on disk."""
    with saying(f"cannot write {path!r}"):
        handle = os.open(path, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        sync_folder(os.path.dirname(path))


class ArrowMessages:
    """Answers as messages of Arrow's stream format, which may be cut off behind any of them: a `LineFormat`."""

    def __init__(self, schema: Schema, codec: ResultCodec) -> None:
        self._codec = codec

    def header(self) -> bytes:
        """The schema's message."""
        return bytes(memoryview(self._codec.table(()).schema.serialize()))

    def decode(self, batch: Batch) -> Any:
        """An Arrow table."""
        return self._codec.table((batch,))

    def text(self, decoded: Any) -> bytes:
        """The messages of a table."""
        return b"".join(memoryview(batch.serialize()) for batch in decoded.combine_chunks().to_batches())


class KeptMessages(KeptFile):
    """Takes `ArrowMessages`, of which it makes a Parquet or Arrow file."""

    def __init__(self, path: str, nbytes: int, format: str) -> None:
        super().__init__(path, nbytes)
        self._format = format

    def _take_place(self) -> None:
        made = ColumnarSink(self.shown, self._format)
        try:
            with open(self._hidden, "rb") as file, pa.ipc.open_stream(file) as messages:
                made.begin(messages.schema)
                for batch in messages:
                    made.add(pa.Table.from_batches([batch]))
            made.close()
        except pa.ArrowException as error:
            raise cannot_write(self.shown, error) from None
        finally:
            made.discard()
        os.unlink(self._hidden)
