"""A broker in memory under the engine's client of Kafka, which outlives the processes that crash: transactions, the
fencing of a producer by the next of its id, and readers that see only what has been committed.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

ADDRESS = "kafka://127.0.0.1:9092/"


class KafkaException(Exception):
    """What the client raises."""


class KafkaError:
    """The end of a partition."""

    _PARTITION_EOF = -191

    def code(self) -> int:
        """Which error."""
        return self._PARTITION_EOF


@dataclass(frozen=True)
class TopicPartition:
    """A place in a topic."""

    topic: str
    partition: int = 0
    offset: int = 0


@dataclass
class Record:
    """A message, or (value: None) the end of a transaction. state: "open", "committed" or "aborted"."""

    at: int
    content: bytes | None
    given: list[tuple[str, bytes]]
    state: str

    def error(self) -> None:
        """None: it is a message."""

    def offset(self) -> int:
        """Where it stands."""
        return self.at

    def value(self) -> bytes | None:
        """What it says."""
        return self.content

    def headers(self) -> list[tuple[str, bytes]]:
        """Its headers."""
        return self.given


class Broker:
    """operation: called before whatever a broker is asked for, and once more when a transaction has been committed."""

    def __init__(self) -> None:
        self.topics: dict[str, list[Record]] = {}
        self.producers: dict[str, Producer] = {}
        self.operation: Callable[[], None] = lambda: None

    def add(self, topic: str, *given: Any) -> Record:
        """Append a record."""
        records = self.topics.setdefault(topic, [])
        records.append(Record(len(records), *given))
        return records[-1]

    def committed(self, topic: str) -> list[bytes]:
        """The messages that a reader of what has been committed sees."""
        return [r.content for r in self.topics.get(topic, ()) if r.state == "committed" and r.content is not None]

    def numbers(self, topic: str) -> list[int]:
        """Which answers these are, as their headers say."""
        of = [
            dict(r.given)["minidsms-answer"] for r in self.topics.get(topic, ()) if r.state == "committed" and r.given
        ]
        return [int(said.rpartition(b":")[2]) for said in of]


class _Client:
    broker: Broker

    def __init__(self, configuration: dict[str, Any]) -> None:
        self.configuration = configuration

    def list_topics(self, topic: str, timeout: float) -> Any:
        """Every topic is there, with one partition."""
        self.broker.operation()
        self.broker.topics.setdefault(topic, [])
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None})})


class Producer(_Client):
    """Writes in transactions."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        super().__init__(configuration)
        self._id = configuration["transactional.id"]
        self._sent: list[Record] = []
        self._told: list[Callable[[], None]] = []

    def init_transactions(self, timeout_s: float) -> None:
        """What an earlier producer of this id has under way is aborted."""
        self.broker.operation()
        before = self.broker.producers.get(self._id)
        if before is not None:
            before._end("aborted")
        self.broker.producers[self._id] = self

    def begin_transaction(self) -> None:
        """Nothing is under way."""
        assert not self._sent

    def produce(
        self, topic: str, value: bytes, partition: int, on_delivery: Callable[..., Any], headers: list[Any]
    ) -> None:
        """Append a message that nobody is to see yet."""
        self.broker.operation()
        self._check()
        record = self.broker.add(topic, value, headers, "open")
        self._topic = topic
        self._sent.append(record)
        self._told.append(lambda: on_delivery(None, record))

    def poll(self, timeout_s: float) -> int:
        """Tell what has been delivered."""
        while self._told:
            self._told.pop(0)()
        return 0

    def commit_transaction(self, timeout_s: float) -> None:
        """Let everybody see what has been sent."""
        self.broker.operation()
        self._check()
        self.poll(0)
        self._end("committed")
        self.broker.operation()

    def _check(self) -> None:
        if self.broker.producers.get(self._id) is not self:
            raise KafkaException("another producer has this id")

    def _end(self, state: str) -> None:
        for record in self._sent:
            record.state = state
        if self._sent:
            self.broker.add(self._topic, None, [], state)
        self._sent = []

    def purge(self) -> None:
        """Nothing waits."""

    def flush(self, timeout_s: float) -> int:
        """Nothing waits."""
        return 0


class Consumer(_Client):
    """Reads what has been committed."""

    def __init__(self, configuration: dict[str, Any]) -> None:
        super().__init__(configuration)
        assert configuration["isolation.level"] == "read_committed"

    def get_watermark_offsets(self, partition: TopicPartition, timeout_s: float) -> tuple[int, int]:
        """The first offset, and that behind the last."""
        self.broker.operation()
        return 0, len(self.broker.topics[partition.topic])

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Read from there on."""
        (self._place,) = partitions
        self._next = self._place.offset

    def poll(self, timeout_s: float) -> Any:
        """The next message, or the end: before what is not known to be committed."""
        self.broker.operation()
        for record in self.broker.topics[self._place.topic][self._next :]:
            if record.state == "open":
                break
            self._next = record.at + 1
            if record.state == "committed" and record.content is not None:
                return record
        return SimpleNamespace(error=KafkaError)  # called, it gives one

    def close(self) -> None:
        """Nothing is open."""


@contextlib.contextmanager
def broker() -> Iterator[Broker]:
    """One, for as long as the context lasts."""
    made = Broker()
    module = ModuleType("confluent_kafka")
    own = {"broker": made}
    vars(module).update(
        KafkaException=KafkaException, KafkaError=KafkaError, TopicPartition=TopicPartition,
        Producer=type("Producer", (Producer,), own), Consumer=type("Consumer", (Consumer,), own),
    )  # fmt: skip
    before = sys.modules.get("confluent_kafka")
    sys.modules["confluent_kafka"] = module
    try:
        yield made
    finally:
        del sys.modules["confluent_kafka"]
        if before is not None:
            sys.modules["confluent_kafka"] = before
