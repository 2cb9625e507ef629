"""Kafka as a source of Spark's, against the client library's own broker, or the one at MINIDSMS_TEST_KAFKA."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from minidsms.cql.errors import Error
from minidsms.spark import register, stream
from minidsms.spark.ingest import ingest
from minidsms.spark.kafka import Span, Topics, read, spans
from minidsms.spark.stateful import forget_engines
from minidsms.spark.streaming import prepare
from minidsms.testing.definition import answer
from minidsms.testing.history import History
from tests.archive.reading import rows
from tests.sources.test_kafka import broker, kafka, produce, topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["broker", "topic"]

DECLARED = "CREATE STREAM S (at TIMESTAMP, k INTEGER, v INTEGER) TIMESTAMP BY at"


def _json(*elements: tuple[int, int, int]) -> list[bytes]:
    return [json.dumps({"at": at, "k": k, "v": v}).encode() for at, k, v in elements]


def _batch(spark: SparkSession, broker: str, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("minidsms_kafka").option("kafka.bootstrap.servers", broker).option("subscribe", topic)
    return reader.options(**options).load()


def test_a_batch_is_what_lies_between_two_offsets(spark: SparkSession, broker: str, topic: str) -> None:
    register(spark)
    produce(broker, topic, b"a", None, b"c", partition=0)
    produce(broker, topic, b"d", partition=1)
    frame = _batch(spark, broker, topic)
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp"]
    found = frame.selectExpr("partition", "offset", "cast(value as string) v", "timestamp > '2020-01-01' t").collect()
    assert sorted(map(tuple, found)) == [(0, 0, "a", True), (0, 1, None, True), (0, 2, "c", True), (1, 0, "d", True)]
    some = _batch(
        spark,
        broker,
        topic,
        startingOffsets=json.dumps({topic: {"0": 1, "1": -1}}),
        endingOffsets=json.dumps({topic: {"0": 2}}),
    )
    assert [(r.partition, r.offset) for r in some.collect()] == [(0, 1)]


def test_an_ingest_takes_the_messages_that_no_earlier_one_has_read(
    spark: SparkSession, broker: str, topic: str, tmp_path: Path
) -> None:
    produce(broker, topic, *_json((3, 1, 30), (1, 1, 10)), b"no", None, partition=0)
    produce(broker, topic, *_json((2, 2, 20)), partition=1)

    def taken() -> tuple[int, int]:
        done = ingest(f"kafka://{broker}/{topic}", str(tmp_path), DECLARED, "json", spark=spark)
        return done.rows, done.rejected

    assert taken() == (3, 2)
    assert taken() == (0, 0)
    produce(broker, topic, *_json((4, 2, 40)), partition=1)
    assert taken() == (1, 0)
    assert [tuple(row.values())[3:] for row in rows(tmp_path, "S")] == [(1, 1, 10), (2, 2, 20), (3, 1, 30), (4, 2, 40)]


@pytest.mark.parametrize("most", ["3", pytest.param("", marks=pytest.mark.long)])
def test_a_stream_over_restarts_is_answered_as_by_the_definition(
    spark: SparkSession, broker: str, topic: str, tmp_path: Path, most: str
) -> None:
    session = spark.newSession()
    register(session)
    query = "SELECT k, COUNT(*), SUM(v) FROM S [RANGE 3 SECONDS] GROUP BY k"
    fed = [(1000 + 1000 * i, i % 3, i) for i in range(12)]
    for part in range(2):
        for at, k, v in fed[6 * part : 6 * part + 6]:
            produce(broker, topic, *_json((at, k, v)), partition=k % 2)
        reader = session.readStream.format("minidsms_kafka").option("kafka.bootstrap.servers", broker)
        reader = reader.options(subscribe=topic, startingOffsets="earliest")
        messages = (reader.option("maxOffsetsPerTrigger", most) if most else reader).load()
        read = messages.selectExpr("from_json(cast(value as string), 'at long, k long, v long') m").select("m.*")
        answers = stream(query, {"S": read}, DECLARED.replace("TIMESTAMP BY at", "TIMESTAMP BY at SLACK 2 SECONDS"))
        writing = answers.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        writing = writing.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
        writing.start().awaitTermination()
        forget_engines()
    produce(broker, topic, *_json((99000, 0, 0)), partition=0)
    found = [(r[0], r[1], tuple(r[2:])) for r in session.read.parquet(str(tmp_path / "out")).collect()]
    until = max(at for at, _, _ in fed) - 2001
    history = History({"s": [(at, (at, k, v)) for at, k, v in fed]}, {})
    found = [change for change in found if change[0] <= until]
    assert Counter(found) == Counter(answer(prepare(query, DECLARED).query.node, history, until)) != Counter()


def test_what_is_gone_and_what_is_no_option_is_told(spark: SparkSession, broker: str, topic: str) -> None:
    bounds = {"t": {"0": (5, 9)}}
    assert spans({"t": {"0": 7}}, {"t": {"0": 9}}, bounds, True) == [Span("t", 0, 7, 9)]
    assert spans({"t": {"0": 2}}, {"t": {"0": 9}}, bounds, False) == [Span("t", 0, 5, 9)]
    for first in (2, 12):
        with pytest.raises(Error, match=f"are gone: {first} comes next, and it has messages 5 to 8"):
            spans({"t": {"0": first}}, {"t": {"0": 9}}, bounds, True)
    produce(broker, topic, b"a")
    with pytest.raises(Error, match="ends at 1 by now"):
        list(read(Topics(broker, [topic], {}), Span(topic, 0, 0, 3)))
    assert [len(batch) for batch in read(Topics(broker, [topic], {}), Span(topic, 0, 0, 3), lossless=False)] == [1]
    register(spark)
    told: list[tuple[Callable[[], Any], str]] = [
        (lambda: _batch(spark, broker, topic, magic="1"), "no option magic"),
        (lambda: spark.read.format("minidsms_kafka").load(), "kafka.bootstrap.servers and subscribe are wanted"),
        (lambda: _batch(spark, broker, topic, startingOffsets="now").collect(), "offsets are earliest, latest, or"),
    ]
    for call, reason in told:
        with pytest.raises(Exception, match=reason):
            call()
    with pytest.raises(Error, match="a topic has no option header"):
        ingest(f"kafka://{broker}/{topic}", "/tmp/none", DECLARED, "json", options={"header": "1"}, spark=spark)
    with pytest.raises(Error, match="its messages are json"):
        ingest(f"kafka://{broker}/{topic}", "/tmp/none", DECLARED, "csv", spark=spark)
    assert kafka is not None
