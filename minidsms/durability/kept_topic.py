"""A Kafka topic that a query of a durable connection writes: every answer once, by transactions.

What the answers of a call are is one transaction, which is committed when the log that they follow from is on disk.
Each message has a header that says which answer of the query it is. Opening the folder again aborts what was under way,
looks up behind the mark which answer came last, and goes on with the next.

Invariant: no message is committed whose inputs are not on disk.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from typing import Any

from minidsms.answers.results import ResultCodec
from minidsms.cql.errors import Error
from minidsms.durability.kept_file import Mark
from minidsms.elements import Batch, Schema
from minidsms.sinks.kafka_output import KafkaPlace, KafkaWriter
from minidsms.sinks.lines import ROWS_AT_ONCE, LineFormat, LineSink, lines_of
from minidsms.sinks.sink import Sink, asked_of
from minidsms.sources.kafka_client import asking, configuration, kafka, partitions

HEADER = "minidsms-answer"
"""Of each message: the query's id and the number of the answer, from 0, as `id:number`."""
_TRANSACTION_S = 60.0


def can_keep(sink: Sink) -> bool:
    """Whether a sink writes a topic."""
    return isinstance(sink, LineSink) and isinstance(sink.makes_output, KafkaPlace)


def first_mark(sink: Sink, until: int) -> Mark:
    """Where a new sink begins: behind what the topic holds. until: answers that have been taken before."""
    assert isinstance(sink, LineSink) and isinstance(sink.makes_output, KafkaPlace)
    place, id = sink.makes_output, secrets.token_hex(8)
    return Mark(sink.path, until, 0, _Reader(place).end, id=id)


class KeptTopic:
    """A sink that goes on behind the last of its messages that was committed. until: answers that are there."""

    def __init__(self, sink: LineSink, mark: Mark) -> None:
        place = sink.makes_output
        assert isinstance(place, KafkaPlace)
        self.path = sink.path
        self.asked = asked_of(sink)
        self.bytes, self.has_ended = 0, False
        self.notes: deque[str] = deque(maxlen=100)
        self._place, self._makes_format, self._id = place, sink.makes_format, mark.id
        self._format: LineFormat | None = None
        timeout_s = max(_TRANSACTION_S, place.timeout_s)
        more = {"transactional.id": f"minidsms-{mark.id}", "transaction.timeout.ms": int(timeout_s * 1000)}
        self._writer = KafkaWriter(place, **more)
        with asking(place.address):
            self._writer.producer.init_transactions(place.timeout_s)
        found, self._offset = _Reader(place).last_answer(mark)
        self.until = max(mark.until, found + 1)
        self.rows = mark.rows + self.until - mark.until
        self.wants_mark = False
        """A transaction is under way."""

    def open(self, schema: Schema, codec: ResultCodec) -> None:
        """Get ready to write."""
        self._format = self._makes_format(schema, codec)

    def write(self, batch: Batch) -> None:
        """Send the elements, for the transaction that the next mark commits."""
        assert self._format is not None
        for start in range(0, len(batch), ROWS_AT_ONCE):
            part = batch.slice(start, min(start + ROWS_AT_ONCE, len(batch)))
            lines = self._writer.lines(lines_of(self._format, part))
            if not self.wants_mark:
                with asking(self._place.address):
                    self._writer.producer.begin_transaction()
                self.wants_mark = True
            numbers = range(self.until, self.until + len(lines))
            self._writer.send(
                [(line, [(HEADER, b"%s:%d" % (self._id.encode(), n))]) for line, n in zip(lines, numbers)]
            )
            self.until += len(lines)
            self.rows += len(lines)
            self.bytes += sum(map(len, lines))

    def sync(self) -> None:
        """Commit what has been sent. Error where the broker does not."""
        if self.wants_mark:
            with asking(self._place.address):
                self._writer.producer.commit_transaction(self._place.timeout_s)
            self.wants_mark = False
            self._offset = max(self._offset, self._writer.offset)

    def mark(self, until: int) -> Mark:
        """What is to be logged of what has been committed."""
        return Mark(self.path, self.until, self.rows, self._offset, id=self._id)

    def publish_marked(self) -> None:
        """A transaction is whole."""

    def close(self) -> None:
        """Commit what has been sent, and end."""
        self.sync()
        self.leave()

    def leave(self) -> None:
        """End without what has not been committed: it comes again."""
        self._writer.discard()

    discard = leave


class _Reader:
    """Reads the partition from behind a mark, as those do who read only what has been committed."""

    def __init__(self, place: KafkaPlace) -> None:
        library = kafka()
        self._place = place
        more = {
            "group.id": "minidsms", "enable.auto.commit": False, "isolation.level": "read_committed",
            "enable.partition.eof": True, "auto.offset.reset": "earliest", "allow.auto.create.topics": True,
        }  # fmt: skip
        given = {name: value for name, value in place.given.items() if name.partition(".")[0] in _OF_BOTH}
        self._consumer: Any = library.Consumer(configuration(place.address, given, **more))

    @property
    def end(self) -> int:
        """The offset behind the last message. Error where the broker does not say."""
        place = self._place
        with asking(place.address):
            try:
                partitions(self._consumer, place.address)  # so that there is one
                partition = kafka().TopicPartition(place.address.topic, place.partition)
                return int(self._consumer.get_watermark_offsets(partition, place.timeout_s)[1])
            finally:
                self._consumer.close()

    def last_answer(self, mark: Mark) -> tuple[int, int]:
        """(number of the last answer that a message behind the mark says, or -1, offset behind it). Error where the
        broker does not give them.
        """
        place, library = self._place, kafka()
        found, offset = -1, mark.nbytes
        end_s = time.monotonic() + place.timeout_s
        with asking(place.address):
            try:
                self._consumer.assign([library.TopicPartition(place.address.topic, place.partition, mark.nbytes)])
                while True:
                    message = self._consumer.poll(0.1)
                    if message is None:
                        if time.monotonic() > end_s:
                            raise Error(f"Kafka at {place.address.brokers} does not give the messages behind {offset}")
                        continue
                    failure = message.error()
                    if failure is not None:
                        if failure.code() == library.KafkaError._PARTITION_EOF:
                            return found, offset
                        raise library.KafkaException(failure)
                    end_s = time.monotonic() + place.timeout_s
                    offset = message.offset() + 1
                    id, _, number = dict(message.headers() or ()).get(HEADER, b"").partition(b":")
                    if id == mark.id.encode():
                        found = max(found, int(number))
            finally:
                self._consumer.close()


_OF_BOTH = ("security", "sasl", "ssl", "client", "socket", "broker", "api", "log_level", "metadata")
"""How the options of the client begin that a reader takes, too."""
