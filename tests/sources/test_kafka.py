"""Kafka as a source and a sink, against a broker on loopback.

The broker is the one at MINIDSMS_TEST_KAFKA (host:port) where that is set; otherwise the client library's own test
broker, which speaks the protocol over TCP (its groups and offsets too) and keeps topics in memory.
"""

from __future__ import annotations

import csv
import io
import json
import os
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import minidsms
from minidsms.cql.errors import CqlError, Error

kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed: pip install 'minidsms[kafka]'")


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """host:port of a broker."""
    if "MINIDSMS_TEST_KAFKA" in os.environ:
        yield os.environ["MINIDSMS_TEST_KAFKA"]
        return
    keeper = kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 2})
    found = next(iter(keeper.list_topics(timeout=60).brokers.values()))
    yield f"{found.host}:{found.port}"
    del keeper


@pytest.fixture
def topic() -> str:
    return f"t{uuid.uuid4().hex}"


def produce(broker: str, topic: str, *messages: bytes | None, partition: int = 0) -> None:
    producer = kafka.Producer({"bootstrap.servers": broker})
    for message in messages:
        producer.produce(topic, value=message, partition=partition)
    assert producer.flush(10) == 0


def open_stream(path: str, *options: str, more: str = "") -> tuple[Any, Any]:
    db = minidsms.connect()
    given = f" WITH ({', '.join(options)})" if options else ""
    db.execute(f"CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts {more} FROM 'kafka://{path}'{given}")
    return db, db.query("SELECT ts, v FROM S")


def rows(query: Any) -> list[Any]:
    return [c.row for c in query.fetch()]


def test_the_messages_of_a_topic_are_rows_to_its_end(broker: str, topic: str) -> None:
    produce(broker, topic, *(b'{"ts": %d,\n "v": %d}' % (i, i * i) for i in range(2000)))
    db, q = open_stream(f"{broker}/{topic}", "until_end = true")
    db.run()
    assert rows(q) == [(i, i * i) for i in range(2000)]
    assert db.stream_input("S").ended


def test_malformed_messages_are_kept_with_their_partition_and_offset(broker: str, topic: str) -> None:
    produce(broker, topic, b'{"ts": 1, "v": 1}', b"no", None, b'{"ts": 2, "v": 2}')
    db, q = open_stream(f"{broker}/{topic}", "until_end = true")
    db.run()
    assert rows(q) == [(1, 1), (2, 2)]
    reasons = [reason for _, reason in db.stream_input("S").rejected]
    assert [reason.rpartition(", ")[2] for reason in reasons] == ["line 1: no JSON object", "line 2: no JSON object"]
    assert all("partition 0 (lines are offsets)" in reason for reason in reasons)


def test_partitions_are_put_in_order_within_the_slack(broker: str, topic: str) -> None:
    produce(broker, topic, *(b"%d,0" % i for i in range(0, 100, 2)))
    produce(broker, topic, *(b"%d,1" % i for i in range(1, 100, 2)), partition=1)
    db = minidsms.connect()
    db.execute(
        "CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts SLACK 100 "
        f"FROM 'kafka://{broker}/{topic}' FORMAT csv WITH (until_end = true)"
    )
    q = db.query("SELECT ts, v FROM S")
    db.run()
    assert rows(q) == [(i, i % 2) for i in range(100)]


def test_messages_that_come_later_are_read_until_somebody_says_stop(broker: str, topic: str) -> None:
    produce(broker, topic, b'{"ts": 1, "v": 1}')
    db, q = open_stream(f"{broker}/{topic}", "offset = 'latest'")
    running = threading.Thread(target=db.run)
    running.start()
    counters = db.stream_input("S").counters
    end = time.monotonic() + 240
    sent = 1
    while not counters.accepted and time.monotonic() < end:
        # Where the end is, the broker says some time after the start.
        sent += 1
        produce(broker, topic, b'{"ts": %d, "v": 2}' % sent)
        time.sleep(0.1)
    db.stop()
    running.join(240)
    found = rows(q)
    db.close()
    assert not running.is_alive() and found and (1, 1) not in found


def test_a_group_goes_on_where_it_was_when_it_stopped(broker: str, topic: str) -> None:
    produce(broker, topic, *(b'{"ts": %d, "v": 0}' % i for i in range(50)))
    quick = ("`kafka.session.timeout.ms` = 6000", "`kafka.heartbeat.interval.ms` = 1000")
    options = (f"group = 'g{topic}'", "until_end = true", *quick)
    db, q = open_stream(f"{broker}/{topic}", *options)
    db.run()
    assert len(rows(q)) == 50
    db.close()
    produce(broker, topic, *(b'{"ts": %d, "v": 1}' % i for i in range(50, 70)))
    db, q = open_stream(f"{broker}/{topic}", *options)
    db.run()
    assert rows(q) == [(i, 1) for i in range(50, 70)]


def test_answers_are_messages_in_their_order_and_another_engine_reads_them(broker: str, topic: str) -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM A (v INTEGER)")
    db.execute(f"CREATE QUERY q AS SELECT RSTREAM(v) FROM A [NOW] INTO 'kafka://{broker}/{topic}'")
    db.push("A", [(i,) for i in range(3000)], ts=list(range(3000)))
    db.advance(5000)
    written = db.queries["q"]
    db.execute("DROP QUERY q")
    assert written.written["rows"] == 3000 and written.written["state"] == "written"
    other = minidsms.connect()
    other.execute(
        "CREATE STREAM B (_ts INTEGER, v INTEGER) TIMESTAMP BY _ts "
        f"FROM 'kafka://{broker}/{topic}' WITH (until_end = true)"
    )
    q = other.query("SELECT _ts, v FROM B")
    other.run()
    assert rows(q) == [(i, i) for i in range(3000)]


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_text_of_several_lines_is_one_message(broker: str, topic: str, format: str) -> None:
    texts = ["one\ntwo", 'a "b"\n\r\nc', "", "plain", '"']
    with minidsms.connect() as db:
        db.execute("CREATE STREAM A (t TEXT)")
        db.execute(f"CREATE QUERY q AS SELECT t FROM A INTO 'kafka://{broker}/{topic}' FORMAT {format}")
        db.push("A", [(text,) for text in texts], ts=list(range(5)))
        db.execute("DROP QUERY q")
    reader = kafka.Consumer({"bootstrap.servers": broker, "group.id": topic, "auto.offset.reset": "earliest"})
    reader.assign([kafka.TopicPartition(topic, 0, 0)])
    messages = [reader.poll(10).value().decode() for _ in texts]
    reader.close()
    if format == "csv":
        assert [next(csv.reader(io.StringIO(m, newline="")))[-1] for m in messages] == texts
    else:
        assert [json.loads(m)["t"] for m in messages] == texts


@pytest.mark.parametrize(
    ("path", "options", "said"),
    [
        ("127.0.0.1:1/t", ("`kafka.socket.timeout.ms` = 100",), "no answer from Kafka"),
        ("127.0.0.1:9092", (), "no address of a topic"),
        ("192.168.0.1:9092/t", (), "allow_remote"),
        ("127.0.0.1:9092,example.org:9092/t", (), "allow_remote"),
        ("127.0.0.1:1/t", ("offset = 'middle'",), "earliest, latest"),
        ("127.0.0.1:1/t", ("`kafka.no.such.thing` = 1",), "refuses the configuration"),
    ],
)
def test_what_cannot_be_read_is_told_where_it_stands(
    path: str, options: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minidsms.sources.kafka_client.ANSWER_S", 0.5)
    with pytest.raises(CqlError) as caught:
        open_stream(path, *options)
    assert said in str(caught.value) and "^^^" in str(caught.value)


def test_a_broker_that_has_gone_makes_the_sink_fail(broker: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    db = minidsms.connect()
    db.execute("CREATE STREAM A (v INTEGER)")
    q = db.query("SELECT RSTREAM(v) FROM A [NOW]")
    with pytest.raises(Error, match="has no partition 99"):
        q.into(f"kafka://{broker}/{topic}", partition=99)
    assert q.sink is None


def test_without_the_client_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(CqlError, match=r"minidsms\[kafka\]"):
        open_stream("127.0.0.1:1/t")


class Waiting:
    """A consumer of a topic with so many messages; waited: how long each call was ready to wait."""

    def __init__(self, messages: int) -> None:
        self.messages = list(range(messages))
        self.waited: list[float] = []

    def poll(self, timeout: float) -> int | None:
        self.waited.append(timeout)
        return self.messages.pop(0) if self.messages else None

    def consume(self, number: int, timeout: float) -> list[int]:
        self.waited.append(timeout)
        taken, self.messages = self.messages[:number], self.messages[number:]
        return taken


def test_a_message_does_not_wait_for_others_and_those_that_wait_come_together() -> None:
    from minidsms.sources.kafka_source import what_waits

    consumer = Waiting(7000)
    assert what_waits(consumer) == list(range(5000))
    assert what_waits(consumer) == list(range(5000, 7000))
    assert consumer.waited[1] == consumer.waited[3] == 0, "nothing is waited for once something has come"
    assert what_waits(consumer) == []
    assert 0 < consumer.waited[-1] < 1, "an idle thread sleeps, and sees soon that it shall stop"


class Message:
    """Of a partition; value None: its end."""

    def __init__(self, partition: int, offset: int, value: bytes | None) -> None:
        self.partition, self.offset, self.value = (lambda: partition), (lambda: offset), (lambda: value)
        self.is_end = value is None

    def error(self) -> Any:
        return SimpleNamespace(code=lambda: kafka.KafkaError._PARTITION_EOF) if self.is_end else None


class Member:
    """A consumer of a group that has partitions 0 and 1, and is to give back 1 behind its first message."""

    def __init__(self) -> None:
        self.mine = {0, 1}
        self.committed: list[tuple[int, int, bool]] = []
        """Partition, offset, and whether the partition was ours."""
        self._steps = iter([Message(0, 0, b"1,0"), Message(1, 0, b"2,1"), None, Message(0, 1, b"3,0")])

    def list_topics(self, topic: str, timeout: float) -> Any:
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None, 1: None})})

    def subscribe(self, topics: list[str], on_revoke: Any) -> None:
        self._on_revoke = on_revoke

    def assignment(self) -> list[Any]:
        return [kafka.TopicPartition("t", number) for number in self.mine]

    def poll(self, timeout: float) -> Any:
        message = next(self._steps, Message(0, 2, None))
        if message is None:
            self._on_revoke(self, [kafka.TopicPartition("t", 1)])
            self.mine = {0}
            return Message(1, 1, b"9,9")
        return message

    def consume(self, number: int, timeout: float) -> list[Any]:
        return []

    def commit(self, offsets: list[Any], asynchronous: bool) -> None:
        self.committed += [(each.partition, each.offset, each.partition in self.mine) for each in offsets]

    def close(self) -> None:
        """Nothing is open."""


def test_what_has_been_pushed_of_a_partition_is_committed_before_another_member_has_it_and_not_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    member = Member()
    monkeypatch.setattr(kafka, "Consumer", lambda configuration: member)
    monkeypatch.setattr("minidsms.sources.kafka_source._COMMIT_S", 0.0)
    db = minidsms.connect()
    db.execute("CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts")
    db.feed("S", "kafka://127.0.0.1:9092/t", "csv", group="g", until_end=True)
    q = db.query("SELECT ts, v FROM S")
    db.run()
    assert rows(q) == [(1, 0), (2, 1), (3, 0)]
    assert (1, 1, True) in member.committed and (0, 2, True) in member.committed
    assert all(is_mine for _, _, is_mine in member.committed)


def test_no_client_is_assigned_a_partition_twice(
    broker: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would now and then give again what it had fetched for the first assignment."""
    assigned: list[tuple[int, int]] = []

    class Consumer(kafka.Consumer):  # type: ignore[misc, name-defined]
        def assign(self, partitions: list[Any]) -> None:
            assigned.extend((id(self), p.partition) for p in partitions)
            super().assign(partitions)

        def incremental_assign(self, partitions: list[Any]) -> None:
            assigned.extend((id(self), p.partition) for p in partitions)
            super().incremental_assign(partitions)

    clients: list[Any] = []
    monkeypatch.setattr(kafka, "Consumer", lambda *given: clients.append(Consumer(*given)) or clients[-1])
    for partition in (0, 1):
        produce(broker, topic, *(b"%d,%d" % (i, partition) for i in range(5)), partition=partition)
    for run in range(2):
        with minidsms.connect(tmp_path / "db") as db:
            if run == 0:
                db.execute(
                    "CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts SLACK 100 "
                    f"FROM 'kafka://{broker}/{topic}' FORMAT csv WITH (until_end = true)"
                )
            db.run(until=-99 if run == 0 else None)
    assert len(clients) == 3 and len(set(assigned)) == len(assigned) > 4


@pytest.mark.parametrize("until", [3, 11, 40])
def test_a_folder_keeps_the_offset_of_each_partition(broker: str, topic: str, until: int, tmp_path: Path) -> None:
    produce(broker, topic, *(b"%d,0" % i if i % 7 else b"none" for i in range(0, 50, 2)))
    produce(broker, topic, *(b"%d,1" % i for i in range(1, 50, 2)), partition=1)
    for run in range(3):
        with minidsms.connect(tmp_path / "db") as db:
            if run == 0:
                db.execute(
                    "CREATE STREAM S (ts INTEGER, v INTEGER) TIMESTAMP BY ts SLACK 100 "
                    f"FROM 'kafka://{broker}/{topic}' FORMAT csv WITH (until_end = true)"
                )
                db.query("SELECT ts, v FROM S", "q")
            db.run(until=until - 100 if run == 0 else None)  # within the slack nothing beyond `until` is pushed
            assert not db.warnings
            assert run or db.position("S") < 50
            found = db.queries["q"].fetch(ack=0)
            rejected = db.stream_input("S").counters.rejected
    expected = [(i, i % 2) for i in range(50) if i % 14]
    assert [change.row for change in found] == expected and rejected == 4
