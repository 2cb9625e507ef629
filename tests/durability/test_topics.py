"""A Kafka topic that a query of a connection with a folder writes holds every answer once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.durability.connection import DurableConnection
from minidsms.durability.kept_files import KeptFiles
from minidsms.durability.kept_topic import KeptTopic
from tests.sources.test_kafka import broker, kafka, topic

__all__ = ["broker", "topic"]  # fixtures
QUERY = "SELECT k, COUNT(*) AS n FROM S [RANGE 5] GROUP BY k"


def opened(folder: Path, place: str) -> DurableConnection:
    db = minidsms.connect(folder)
    assert isinstance(db, DurableConnection)
    db.execute("CREATE STREAM IF NOT EXISTS S (k INTEGER)")
    db.execute(f"CREATE QUERY IF NOT EXISTS q AS {QUERY} INTO 'kafka://{place}'")
    assert not db.warnings
    return db


def end(db: DurableConnection) -> None:
    """The process is killed."""
    assert db.log is not None
    db.log.stop()
    db.abandon()


def messages(broker: str, topic: str) -> list[Any]:
    reader = kafka.Consumer(
        {"bootstrap.servers": broker, "group.id": "all", "enable.partition.eof": True, "auto.offset.reset": "earliest"}
    )
    reader.assign([kafka.TopicPartition(topic, 0, 0)])
    found = []
    while (message := reader.poll(10)) is not None and not message.error():
        found.append(message)
    assert message is not None
    reader.close()
    return found


def expected(n: int) -> list[tuple[Any, ...]]:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        query = db.query(QUERY)
        for i in range(n):
            db.push("S", (i % 3,), ts=i)
        return sorted((c.ts, c.sign, *c.row) for c in query.fetch())


def test_every_answer_is_one_message_however_often_the_process_ends(
    broker: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(files: KeptFiles, is_forced: bool) -> Any:
        new_marks(files, is_forced)  # the transaction is committed, and the log does not say so
        raise Killed

    new_marks = KeptFiles.new_marks
    db = opened(tmp_path / "db", f"{broker}/{topic}")
    for i in range(20):
        if i in (5, 11):
            monkeypatch.setattr(KeptFiles, "new_marks", killed)
            with pytest.raises(Killed):
                db.push("S", (i % 3,), ts=i)
            monkeypatch.undo()
        elif db.position("S") == i:
            db.push("S", (i % 3,), ts=i)
        if i in (5, 8, 11, 15):
            end(db)
            db = opened(tmp_path / "db", f"{broker}/{topic}")
            assert db.position("S") == i + 1
        if i == 13:
            db.checkpoint()
    db.close()
    found = messages(broker, topic)
    rows = [json.loads(message.value()) for message in found]
    assert sorted((r["_ts"], r["_sign"], r["k"], r["n"]) for r in rows) == expected(20)
    numbers = [int(dict(message.headers())["minidsms-answer"].rpartition(b":")[2]) for message in found]
    assert numbers == list(range(len(found)))


def test_what_a_topic_cannot_be_told_waits_to_be_fetched(
    broker: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = opened(tmp_path / "db", f"{broker}/{topic}")
    db.push("S", (1,), ts=0)
    end(db)
    path = next((tmp_path / "db").glob("log-1/*.log"))
    assert topic.encode() in path.read_bytes()
    monkeypatch.setattr("minidsms.durability.kept_topic.KafkaWriter", _unreachable)
    with minidsms.connect(tmp_path / "db") as db:
        assert "no answer from Kafka" in db.warnings[0] and "wait to be fetched" in db.warnings[0]
        db.push("S", (1,), ts=1)
    monkeypatch.undo()
    with opened(tmp_path / "db", f"{broker}/{topic}") as db:
        db.push("S", (1,), ts=2)
    assert [json.loads(m.value())["n"] for m in messages(broker, topic)] == [1, 1, 2]


def _unreachable(*given: Any, **more: Any) -> None:
    raise minidsms.Error("no answer from Kafka")


def test_what_comes_with_the_end_of_a_row_is_committed_when_its_row_is_on_disk(
    broker: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = KeptTopic.sync

    def synced(sink: KeptTopic) -> None:
        assert db.log.is_synced or not sink.wants_mark
        sync(sink)

    db: Any = minidsms.connect(tmp_path / "db", durability="os")
    db.execute("CREATE RELATION Limits (who TEXT, most INTEGER) KEY (who)")
    rules = db.query_each("SELECT ISTREAM(most) FROM Limits WHERE most > $most", "Limits")
    db.push("Limits", ("ann", 1), ts=0)
    rules["ann"].into(f"kafka://{broker}/{topic}")
    monkeypatch.setattr(KeptTopic, "sync", synced)
    db.push("Limits", ("bob", 2), ts=1)
    db.push("Limits", ("ann", 1), ts=2, sign=-1)  # closes the instant before
    db.close()
    with minidsms.connect(tmp_path / "db") as again:
        (rules,) = again.rules  # type: ignore[attr-defined]
        assert rules.fetch() == [] and not again.warnings
    assert [json.loads(m.value())["most"] for m in messages(broker, topic)] == [2]


def test_a_text_of_several_lines_is_one_message_in_csv(broker: str, topic: str, tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        db.execute("CREATE STREAM S (t TEXT, n TEXT)")
        db.execute(f"CREATE QUERY q AS SELECT ISTREAM(t, n) FROM S [NOW] INTO 'kafka://{broker}/{topic}' FORMAT csv")
        db.push("S", [('a\nb "c"', "x"), ("", None)], ts=1)
        db.advance(1)
    assert [m.value() for m in messages(broker, topic)] == [b'1,1,"a\nb ""c""",x', b'1,1,"",']
