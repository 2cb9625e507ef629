"""`spark.readStream.format("minidsms_kafka")`: the messages of Kafka topics, as a stream and in batch.

Spark's own connector comes from Maven; this source needs only the client library that `minidsms[kafka]` brings, where
the workers run. Columns and options are called as there, so a program moves from one to the other by the format's name.

Invariant: a batch is what lies between two offsets of every partition, which Spark keeps in its checkpoint, so a batch
that is repeated has the same messages; where some are gone, that is an error.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from minidsms.cql.errors import Error
from minidsms.sources.kafka_client import KafkaAddress, asking, configuration, kafka, kafka_address, partitions
from minidsms.sources.kafka_source import what_waits
from minidsms.spark.raw_files import RawFiles

try:
    from pyspark.sql.streaming import datasource as limits
except ImportError:  # pragma: no cover  (Spark before 4.2 reads all there is)
    limits = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FORMAT = "minidsms_kafka"
DDL = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp_ltz"
_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
_SERVERS = "kafka.bootstrap.servers"
_OPTIONS = ("subscribe", "startingoffsets", "endingoffsets", "maxoffsetspertrigger", "failondataloss")
_LATEST, _EARLIEST = -1, -2
_SILENCE_S = 120.0
"""How long a broker may give nothing of what it has."""

Offsets = dict[str, dict[str, int]]
"""By topic and partition (texts, as JSON has them): which message comes next."""


class Topics:
    """Topics of a cluster. given: options of the client."""

    def __init__(self, brokers: str, topics: Sequence[str], given: Mapping[str, str]) -> None:
        self.brokers = brokers
        self.topics = tuple(topics)
        self._given = dict(given)
        self._client: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_client": None}

    def consumer(self) -> Any:
        """A client that takes nothing yet. Error where its configuration is none."""
        own = {"group.id": "minidsms", "enable.auto.commit": False, "enable.partition.eof": True}
        address = KafkaAddress(self.brokers, ",".join(self.topics))
        library = kafka()
        try:
            return library.Consumer(configuration(address, self._given, **own, **{"auto.offset.reset": "error"}))
        except (library.KafkaException, TypeError, ValueError) as error:
            raise Error(f"Kafka refuses the configuration: {str(error)[:200]}") from None

    def bounds(self) -> dict[str, dict[str, tuple[int, int]]]:
        """By topic and partition, the offset of the first message that is there and the one behind the last."""
        self._client = self._client or self.consumer()
        make, found = kafka().TopicPartition, {}
        for topic in self.topics:
            address = KafkaAddress(self.brokers, topic)
            numbers = partitions(self._client, address)
            with asking(address):
                asked = [(n, self._client.get_watermark_offsets(make(topic, n), timeout=10)) for n in numbers]
            if any(told is None for _, told in asked):
                raise Error(f"no answer from Kafka at {self.brokers}\nhelp: is the broker running?")
            found[topic] = {str(n): (low, high) for n, (low, high) in asked}
        return found

    def close(self) -> None:
        """Let go of the client."""
        if self._client is not None:
            self._client.close()
            self._client = None


@dataclass
class Span(InputPartition):
    """What a task reads: the messages of a partition from one offset to before another."""

    topic: str
    number: int
    first: int
    end: int


def spans(start: Offsets, end: Offsets, bounds: Mapping[str, Mapping[str, tuple[int, int]]], lossless: bool) -> Any:
    """What lies between offsets. lossless: Error where the first of it is gone."""
    found = []
    for topic, numbers in end.items():
        for number, last in numbers.items():
            low, high = bounds.get(topic, {}).get(number, (0, 0))
            first = start.get(topic, {}).get(number, low)
            if lossless and (first > last or first < min(low, last)):
                there = f"it has messages {low:,} to {high - 1:,}" if low < high else "it has none"
                raise Error(
                    f"messages of {topic}, partition {number}, are gone: {first:,} comes next, and {there}\n"
                    "help: failOnDataLoss = false goes on with what is there"
                )
            if max(first, low) < last:
                found.append(Span(topic, int(number), max(first, low), last))
    return found


def read(topics: Topics, span: Span, lossless: bool = True) -> Iterator[pa.RecordBatch]:
    """The messages of a span. Error where the broker has not all of them, or falls silent."""
    library = kafka()
    consumer = topics.consumer()
    address = KafkaAddress(topics.brokers, span.topic)
    try:
        with asking(address):
            consumer.assign([library.TopicPartition(span.topic, span.number, span.first)])
        heard_s, ended = time.monotonic(), span.first
        while ended < span.end:
            with asking(address):
                messages = what_waits(consumer)
            if messages:
                heard_s = time.monotonic()
            elif time.monotonic() - heard_s > _SILENCE_S:
                raise Error(f"Kafka at {topics.brokers} has told nothing of {span.topic} for {_SILENCE_S:.0f} s")
            taken = []
            for message in messages:
                error = message.error()
                if error is None:
                    if message.offset() < span.end:
                        taken.append(message)
                    ended = message.offset() + 1
                elif error.code() == library.KafkaError._PARTITION_EOF:
                    if message.offset() < span.end and lossless:
                        raise Error(f"{span.topic}, partition {span.number}, ends at {message.offset():,} by now")
                    ended = span.end
                elif error.fatal() or not error.retriable():
                    raise Error(f"Kafka: {error.str()}")
            if taken:
                yield _batch(taken)
    finally:
        consumer.close()


def _batch(messages: Sequence[Any]) -> pa.RecordBatch:
    columns = [
        [m.key() for m in messages],
        [m.value() for m in messages],
        [m.topic() for m in messages],
        [m.partition() for m in messages],
        [m.offset() for m in messages],
        [None if (at := m.timestamp()[1]) < 0 else at * 1000 for m in messages],
    ]
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, _SCHEMA)], _SCHEMA)


def new_messages(
    spark: SparkSession, place: str, options: Mapping[str, str], seen: Collection[str]
) -> tuple[RawFiles, DataFrame]:
    """What of a topic no earlier ingest has read, `kafka://host:port/topic`: by partition, and its messages.

    seen: what the log remembers, a partition's place and its offsets from and to each. A topic is the same where one of
    its brokers is.
    """
    address = kafka_address(place, allow_remote=True)
    wrong = next((name for name in options if not name.startswith("kafka.")), None)
    if wrong is not None:
        raise Error(f"a topic has no option {wrong}\nhelp: options of the client are called kafka.*")
    read_up_to: dict[str, int] = {}
    for name in seen:
        where, _, offsets = name.partition("|")
        if where.startswith("kafka://"):
            brokers, topic, number = where.removeprefix("kafka://").split("/")
            if topic == address.topic and set(brokers.split(",")) & set(address.brokers.split(",")):
                read_up_to[number] = max(read_up_to.get(number, 0), int(offsets.partition("|")[2]))
    given = {name.removeprefix("kafka."): value for name, value in options.items()}
    topics = Topics(address.brokers, [address.topic], given)
    bounds = topics.bounds()
    topics.close()
    end: Offsets = {t: {n: high for n, (_, high) in numbers.items()} for t, numbers in bounds.items()}
    found = spans({address.topic: read_up_to}, end, bounds, lossless=True)
    at = f"kafka://{address.brokers}/{address.topic}"
    identities = {f"{at}/{s.number}": f"{at}/{s.number}|{s.first}|{s.end}" for s in found}
    reader = spark.read.format(FORMAT).options(**options).option(_SERVERS, address.brokers)
    reader = reader.option("subscribe", address.topic)
    for name, offset in (("startingOffsets", "first"), ("endingOffsets", "end")):
        told = {n: high for n, (_, high) in bounds[address.topic].items()}
        told |= {str(s.number): getattr(s, offset) for s in found}
        reader = reader.option(name, json.dumps({address.topic: told}))
    return RawFiles((tuple(identities),) if identities else (), identities, 0, {}), reader.load()


class KafkaSource(DataSource):
    """The format `minidsms_kafka`. Options: kafka.bootstrap.servers and others of the client; subscribe, topics apart
    by commas; startingOffsets, endingOffsets (not of a stream): earliest, latest, or JSON {"topic": {"0": 23}};
    maxOffsetsPerTrigger; failOnDataLoss.
    """

    @classmethod
    def name(cls) -> str:
        """As `format` calls it."""
        return FORMAT

    def schema(self) -> str:
        """Those of Spark's own connector, less the kind of timestamp."""
        self._told()
        return DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        """What Spark reads a batch with."""
        return _Reader(*self._told())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """What Spark reads a stream with."""
        if "endingoffsets" in {name.lower() for name in self.options}:
            raise Error("a stream has no endingOffsets\nhelp: leave it out, or read in batch")
        return _StreamReader(*self._told())

    def _told(self) -> tuple[Topics, dict[str, str]]:
        given = {name.lower(): value for name, value in self.options.items()}
        client = {n.removeprefix("kafka."): given.pop(n) for n in list(given) if n.startswith("kafka.")}
        wrong = next((name for name in given if name not in _OPTIONS), None)
        topics = [topic.strip() for topic in given.get("subscribe", "").split(",") if topic.strip()]
        if wrong is not None or not topics or "bootstrap.servers" not in client:
            told = f"no option {wrong}" if wrong is not None else f"{_SERVERS} and subscribe are wanted"
            hint = f"the options of format {FORMAT} are kafka.*, {', '.join(_OPTIONS)}"
            raise Error(f"{told}\nhelp: {hint}")
        return Topics(client.pop("bootstrap.servers"), topics, client), given


def _is_lossless(options: Mapping[str, str]) -> bool:
    return options.get("failondataloss", "true").lower() == "true"


def _offsets(text: str, bounds: Mapping[str, Mapping[str, tuple[int, int]]], otherwise: int) -> Offsets:
    """Where to begin, or to end. otherwise: of partitions that are not named."""
    named: Any = {}
    words = {"earliest": _EARLIEST, "latest": _LATEST}
    otherwise = words.get(text.lower(), otherwise)
    try:
        if text.lower() not in words:
            named = {t: {str(int(n)): int(at) for n, at in numbers.items()} for t, numbers in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError):
        raise Error(f'offsets are earliest, latest, or {{"topic": {{"0": 23}}}}, not {text[:80]}') from None
    found: Offsets = {}
    for topic, numbers in bounds.items():
        for number, (low, high) in numbers.items():
            at = named.get(topic, {}).get(number, otherwise)
            found.setdefault(topic, {})[number] = {_EARLIEST: low, _LATEST: high}.get(at, at)
    return found


class _Reader(DataSourceReader):
    """What lies between offsets when it is asked for."""

    def __init__(self, topics: Topics, options: Mapping[str, str]) -> None:
        self._topics, self._options = topics, options

    def partitions(self) -> Sequence[InputPartition]:
        """A task for each partition of a topic."""
        bounds = self._topics.bounds()
        self._topics.close()
        start = _offsets(self._options.get("startingoffsets", "earliest"), bounds, _EARLIEST)
        end = _offsets(self._options.get("endingoffsets", "latest"), bounds, _LATEST)
        found: Sequence[InputPartition] = spans(start, end, bounds, _is_lossless(self._options))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A task's messages."""
        assert isinstance(partition, Span)
        return read(self._topics, partition, _is_lossless(self._options))


class _StreamReader(DataSourceStreamReader, *([] if limits is None else [limits.SupportsTriggerAvailableNow])):  # type: ignore[misc]
    """Messages as they come."""

    def __init__(self, topics: Topics, options: Mapping[str, str]) -> None:
        self._topics, self._options = topics, options
        self._last: Offsets | None = None
        """Where a trigger that takes what is there now ends."""
        most = options.get("maxoffsetspertrigger")
        if most is not None and (not most.isdigit() or int(most) < 1):
            raise Error(f"maxOffsetsPerTrigger is a number of messages, not {most[:40]}")
        if most is not None and limits is None:
            raise Error("maxOffsetsPerTrigger needs Spark 4.2 or newer")
        self._most = None if most is None else int(most)

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query begins: the end, unless startingOffsets says where."""
        return _offsets(self._options.get("startingoffsets", "latest"), self._topics.bounds(), _EARLIEST)

    def getDefaultReadLimit(self) -> Any:
        """maxOffsetsPerTrigger."""
        return limits.ReadAllAvailable() if self._most is None else limits.ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:
        """What comes from now on is another run's."""
        self._last = self._behind()

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:
        """How far a batch goes: to the end, or, where it may not have so many, each partition by what waits in it."""
        end = self._behind() if self._last is None else self._last
        most = getattr(limit, "max_rows", None)
        if most is None:
            return end
        waits = {(t, n): at - start.get(t, {}).get(n, 0) for t, numbers in end.items() for n, at in numbers.items()}
        every = sum(waits.values())
        if every <= most:
            return end
        return {
            t: {n: at - (w := waits[t, n]) + min(w, max(1, w * most // every)) for n, at in numbers.items()}
            for t, numbers in end.items()
        }

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """A task for each partition of a topic."""
        found: Sequence[InputPartition] = spans(start, end, self._topics.bounds(), _is_lossless(self._options))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """A task's messages."""
        assert isinstance(partition, Span)
        return read(self._topics, partition, _is_lossless(self._options))

    def stop(self) -> None:
        """Leave the brokers."""
        self._topics.close()

    def _behind(self) -> Offsets:
        return {t: {n: high for n, (_, high) in told.items()} for t, told in self._topics.bounds().items()}
