"""The system streams of a connection: which there are, who listens, and when they are published.

A publisher samples or records something of the engine and gives it as rows. It works only while some query reads its
stream: `begin` is called with the first reader and `end` with the last, and in between `columns` is asked whenever the
engine has come to rest and `is_due` says so.
Invariants: a stream nobody reads has no input, holds nothing and costs nothing; a call publishes a stream at most once,
so that queries over a system stream, of which it tells too, cannot feed it without bound.
Babu 2005, section 2.4; docs/sys-stream.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Protocol

from minidsms.cql.catalog import StreamDef
from minidsms.elements import Schema
from minidsms.inputs.stream_input import StreamInput
from minidsms.system_streams.system_input import SystemInput
from minidsms.values.dictionary import TextDictionary

if TYPE_CHECKING:
    from minidsms.limits.admission import Admission


class Publisher(Protocol):
    """What fills one system stream.

    name: of the stream.  schema: its columns; the first is the instant, which is filled in.
    """

    name: str
    schema: Schema

    def begin(self, now: int) -> None:
        """Somebody listens from now on. now: the clock's tick."""

    def end(self) -> None:
        """Nobody listens any more."""

    @property
    def is_prompt(self) -> bool:
        """It may become due within a tick; else only time makes it so."""

    def is_due(self, now: int) -> bool:
        """There is something to publish."""

    def columns(self, now: int) -> Mapping[str, Sequence[Any]]:
        """The rows to publish, a sequence per column but the first; what has been given is not given again."""


class SystemStreams:
    """streams: the connection's inputs by key, where those of the streams read stand too.

    clock: gives the present tick.  admission: as `StreamInput`'s.  opened: told of an input as it begins to be written.
    """

    def __init__(
        self,
        streams: dict[str, StreamInput],
        dictionary: TextDictionary,
        tick_ns: int,
        clock: Callable[[], int],
        admission: Admission,
        opened: Callable[[SystemInput], None],
    ) -> None:
        self._streams = streams
        self._dictionary = dictionary
        self._tick_ns = tick_ns
        self._clock = clock
        self._admission = admission
        self._opened = opened
        self._publishers: dict[str, Publisher] = {}
        self._definitions: dict[str, StreamDef] = {}
        self._read: dict[str, SystemInput] = {}
        self.is_read = False
        """Some query reads a system stream."""
        self._asked: int | None = None
        self._is_prompt = False
        self.held: Sequence[str] = ()
        """Streams that stay open though their last reader goes: the query that takes its place reads their past."""

    def add(self, publisher: Publisher) -> StreamDef:
        """Make a system stream known; its definition, for the catalog."""
        key = publisher.name.lower()
        self._publishers[key] = publisher
        self._definitions[key] = StreamDef(publisher.name, publisher.schema, timestamp_by=0, is_system=True)
        return self._definitions[key]

    def definitions(self) -> dict[str, StreamDef]:
        """Every system stream, by key."""
        return dict(self._definitions)

    def open(self, names: Iterable[str]) -> None:
        """A query is about to read these streams; those that are system streams begin to be written."""
        for key in [name.lower() for name in names]:
            publisher = self._publishers.get(key)
            if publisher is None or key in self._read:
                continue
            stream = SystemInput(self._definitions[key], self._dictionary, self._tick_ns, self._clock, self._admission)
            self._opened(stream)
            self._streams[key] = self._read[key] = stream
            self.is_read = True
            self._asked = None
            self._is_prompt |= publisher.is_prompt
            publisher.begin(self._clock())

    def is_unread(self, name: str) -> bool:
        """It is a system stream, and nobody reads it."""
        return name.lower() in self._publishers and name.lower() not in self._read

    def close_unread(self, readers: Callable[[str], Sequence[object]]) -> None:
        """Forget the inputs of streams that nobody reads any more. readers: gives who reads a stream."""
        held = [name.lower() for name in self.held]
        for key in [k for k in self._read if k not in held and not readers(k)]:
            del self._read[key], self._streams[key]
            self._publishers[key].end()
        self.is_read = bool(self._read)
        self._is_prompt = any(self._publishers[key].is_prompt for key in self._read)

    def begin_anew(self) -> None:
        """Nothing of what has been is to be published."""
        for key in self._read:
            self._publishers[key].end()
            self._publishers[key].begin(self._clock())

    def publish(self) -> list[str]:
        """Publish what is due; the keys of the streams that have news. Nothing while the clock gives no instant: the
        call that comes to its end here has been carried out.
        """
        try:
            now = index(self._clock())
        except Exception:
            return []
        if now == self._asked and not self._is_prompt:
            return []  # asked after every push: what waits for time to pass need not be asked twice in a tick
        self._asked = now
        written = []
        for key, stream in self._read.items():
            publisher = self._publishers[key]
            if publisher.is_due(now):
                columns = publisher.columns(now)
                if len(next(iter(columns.values()))) and stream.publish(columns):
                    written.append(key)
        return written
