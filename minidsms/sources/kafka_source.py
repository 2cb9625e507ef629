"""Messages of a Kafka topic: each is one record, a JSON object or a CSV line, or of Avro or Protobuf.

Invariants: the messages of a partition stay in order; what has been taken from the broker and not by the engine is
bounded; with a group, an offset is committed only when the rows before it have been pushed, and as long as its
partition is ours: after a stop nothing is lost, and what was pushed last may come again.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from minidsms.cql.errors import Error
from minidsms.sources.blocks import Block
from minidsms.sources.kafka_client import KafkaAddress, asking, configuration, kafka, partitions, reason
from minidsms.sources.line_rows import LineRows
from minidsms.sources.live_lines import LiveLines
from minidsms.sources.messages import Messages

_MESSAGES = 5000
_WAIT_S = 0.1
_COMMIT_S = 2.0
_GIVE_BACK_S = 2.0
"""So long a member of the group that is to have a partition waits until what has been taken of it has been pushed."""
_QUEUED_KB = 16_384


def what_waits(consumer: Any) -> list[Any]:
    """The messages that have come, up to _MESSAGES of them; none if none comes within _WAIT_S.

    Only the first is waited for: `consume` would wait for the others, too, so that each came a tenth of a second late.
    """
    first = consumer.poll(_WAIT_S)
    return [] if first is None else [first, *consumer.consume(_MESSAGES - 1, 0)]


class KafkaReader:
    """Reads a topic. group: of consumers that share its partitions and whose offsets the broker keeps; None: alone.

    latest: without a committed offset begin at the end instead of the beginning.  until_end: end where every partition
    ended once.  messages: how they are read, where they are neither JSON nor CSV.
    """

    def __init__(
        self,
        address: KafkaAddress,
        group: str | None,
        latest: bool,
        until_end: bool,
        given: Mapping[str, Any],
        messages: Messages | None = None,
    ) -> None:
        library = kafka()
        self._messages = messages
        self._told = None if messages is None else messages.learned
        self._address = address
        self._until_end = until_end
        self._commits = group is not None
        self._stopped = threading.Event()
        more = {
            "group.id": group or f"minidsms-{uuid.uuid4()}",
            "auto.offset.reset": "latest" if latest else "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "queued.max.messages.kbytes": _QUEUED_KB,
            # The engine may hold the source back for long; that is no reason to take its partitions away.
            "max.poll.interval.ms": 3_600_000,
        }
        self._configuration = configuration(address, given, **more)
        self._consumer = self._client()
        self._taken: dict[int, tuple[int, int, Any]] = {}
        """By partition, of the block taken last: its first offset, the one behind it, what its reader has learned."""
        self._learned: dict[int, Any] = {}
        self._first: tuple[int, int] | None = None
        """The partition that is read alone, up to an offset: the others follow."""
        self._offsets: dict[int, int] = {}
        self._readers: WeakKeyDictionary[LineRows, int] = WeakKeyDictionary()
        self._reading: dict[int, LineRows] = {}
        """By partition that is ours, what reads it."""
        self._given: dict[LineRows, int] = {}
        """The offset behind what each has been given."""
        self._source: LiveLines | None = None
        self._start = library.OFFSET_END if latest else library.OFFSET_BEGINNING
        try:
            self._numbers = partitions(self._consumer, address)
            with asking(address):
                if group is None:
                    self._consumer.assign(self._places(self._numbers))
                else:
                    self._consumer.subscribe([address.topic], on_revoke=self._give_back)
        except Error:
            self.close()
            raise

    def _client(self) -> Any:
        library = kafka()
        try:
            return library.Consumer(self._configuration)
        except (library.KafkaException, TypeError, ValueError) as error:
            raise Error(f"Kafka refuses the configuration: {reason(error)}") from None

    def _places(self, numbers: Iterable[int]) -> list[Any]:
        """Where to begin in these partitions."""
        make = kafka().TopicPartition
        return [make(self._address.topic, number, self._offsets.get(number, self._start)) for number in numbers]

    def position(self, rows: LineRows, block: Block) -> Any:
        """See `FeederGoesOn`: by partition, the offset to begin at and what is known of its columns; and of which one
        the block is, and where it ends.
        """
        partition = self._readers[rows]
        behind = block.first_line + block.data.count(b"\n")
        self._taken[partition] = block.first_line, behind, rows.learned
        partitions = {
            str(number): [first if number == partition else end, learned]
            for number, (first, end, learned) in sorted(self._taken.items())
        }
        return {"partitions": partitions, "of": partition, "behind": behind}

    def go_on(self, position: Any) -> str:
        """See `FeederGoesOn`. The offsets are the folder's, whatever a group has committed; the rest of the block comes
        before anything of another partition.

        A client to which a partition is assigned again may give once more what it has fetched before: the one that goes
        on is a new one, and the others are added to its assignment.
        """
        partitions = position["partitions"]
        offsets = {int(number): offset for number, (offset, _) in partitions.items()}
        self._learned = {int(number): learned for number, (_, learned) in partitions.items()}
        self._taken = {number: (offset, offset, self._learned[number]) for number, offset in offsets.items()}
        self._offsets = offsets
        self._first = position["of"], position["behind"]
        self.close()
        self._consumer = self._client()
        with asking(self._address):
            self._consumer.assign(self._places([self._first[0]]))
        return ""

    def _go_on_with_others(self, first: int) -> None:
        """The block in which another process has ended is complete."""
        with asking(self._address):
            self._consumer.incremental_assign(self._places(n for n in self._numbers if n != first))
        self._first = None

    def run(self, source: LiveLines) -> None:
        """Read until stopped, or to the end of the topic."""
        library = kafka()
        self._source, source.notes_pushed = source, self._commits
        reading, given = self._reading, self._given
        ended: set[int] = set()
        committed_s = time.monotonic()
        try:
            while not self._stopped.is_set():
                with asking(self._address):
                    messages = what_waits(self._consumer)
                for partition, block in self._blocks(library, messages, ended):
                    if partition not in reading:
                        if partition not in {p.partition for p in self._consumer.assignment()}:
                            continue  # it has become another member's, who is given it, too
                        name = f"{source.path}, partition {partition} (lines are offsets)"
                        reading[partition] = source.rows(name)
                        reading[partition].learn(self._learned.get(partition) or self._told)
                        self._readers[reading[partition]] = partition
                    if not source.inbox.put(reading[partition], block):
                        break
                    given[reading[partition]] = block.first_line + block.data.count(b"\n")
                if self._first is not None:
                    reached = max([self._offsets[self._first[0]], *given.values()])
                    if reached >= self._first[1] or self._first[0] in ended:
                        self._go_on_with_others(self._first[0])
                    continue
                if self._commits and time.monotonic() - committed_s >= _COMMIT_S:
                    self._commit(source, reading)
                    committed_s = time.monotonic()
                if self._until_end and ended and ended >= {p.partition for p in self._consumer.assignment()}:
                    return
        finally:
            if self._commits:
                self._wait_until_pushed(source, reading)
                self._commit(source, reading)

    def _give_back(self, consumer: Any, places: list[Any]) -> None:
        """Partitions become another member's, who begins where we commit; what waits of them comes there again."""
        given_back = {place.partition: self._reading.pop(place.partition, None) for place in places}
        reading = {partition: rows for partition, rows in given_back.items() if rows is not None}
        if self._source is not None and reading:
            self._wait_until_pushed(self._source, reading, _GIVE_BACK_S)
            self._commit(self._source, reading)

    def _wait_until_pushed(self, source: LiveLines, reading: Mapping[int, LineRows], most_s: float = math.inf) -> None:
        """Let the engine take what waits, so that it counts as read."""
        end_s = time.monotonic() + most_s
        while not self._stopped.is_set() and time.monotonic() < end_s:
            if all(self._given.get(rows) == source.pushed.get(rows) for rows in reading.values()):
                return
            self._stopped.wait(0.01)

    def _blocks(self, library: Any, messages: list[Any], ended: set[int]) -> list[tuple[int, Block]]:
        """The messages as blocks of lines, those of a partition that stand together in one."""
        blocks: list[tuple[int, Block]] = []
        lines: list[bytes] = []
        first: tuple[int, int] | None = None
        for message in messages:
            error = message.error()
            if error is not None:
                if error.code() == library.KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                elif error.fatal() or not error.retriable():
                    raise Error(f"Kafka: {error.str()}")
                continue
            partition, offset = message.partition(), message.offset()
            if first is not None and (partition != first[0] or offset != first[1] + len(lines)):
                blocks.append((first[0], Block(b"".join(lines), first[1])))
                lines, first = [], None
            first = first or (partition, offset)
            lines.append(self._line(message.value()) + b"\n")
        if first is not None:
            blocks.append((first[0], Block(b"".join(lines), first[1])))
        return blocks

    def _line(self, value: bytes | None) -> bytes:
        """A message is a line: a line's end inside a JSON object is but a blank."""
        if value is None:
            return b"null"
        return value.replace(b"\n", b" ") if self._messages is None else self._messages.line(value)

    def _commit(self, source: LiveLines, reading: Mapping[int, LineRows]) -> None:
        """Tell the broker what has been pushed."""
        library = kafka()
        offsets = [
            library.TopicPartition(self._address.topic, partition, source.pushed[rows])
            for partition, rows in reading.items()
            if rows in source.pushed
        ]
        if offsets:
            try:
                self._consumer.commit(offsets=offsets, asynchronous=False)
            except library.KafkaException as error:
                source.note(f"offsets could not be committed: {reason(error)}")

    def close(self) -> None:
        """Leave the broker, which also notices by itself when nothing more comes."""
        with contextlib.suppress(kafka().KafkaException):
            self._consumer.close()

    def stop(self) -> None:
        self._stopped.set()
