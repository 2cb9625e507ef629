"""Queries over system streams in a connection with a folder: what was measured is in the log, as what is pushed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import minidsms
from minidsms.durability import checkpoint
from minidsms.durability.connection import DurableConnection
from minidsms.durability.segments import entries
from minidsms.testing.switching import forced_switching
from tests.long.crashes import end_process


class Clock:
    """A clock that is set."""

    now = 0

    def __call__(self) -> int:
        return self.now


def opened(tmp_path: Path, clock: Clock) -> DurableConnection:
    db = minidsms.connect(tmp_path / "db", clock=clock)
    assert isinstance(db, DurableConnection)
    return db


def declare(db: minidsms.Connection) -> None:
    db.execute("SET sys_interval = 10; CREATE STREAM S (v INTEGER)")
    db.query("SELECT v FROM S [RANGE 10]", "rows")


QUERIES = {
    "told": "SELECT ISTREAM(entity, property, ival) FROM SysStream WHERE property = 'results' AND entity = 'rows'",
    "mean": "SELECT entity, AVG(ival) FROM SysStream [RANGE 40] WHERE kind = 'query' GROUP BY entity",
    "count": "SELECT COUNT(*) FROM SysStream",
    "decided": "SELECT * FROM SysDecisions [RANGE 10]",
}


def answers(db: minidsms.Connection) -> dict[str, Counter[str]]:
    return {
        name: Counter(repr(c) for batch in query.waiting_batches() for c in query.codec.changes(batch))
        for name, query in db.queries.items()
    }


@pytest.mark.parametrize("checkpoint_every", [0, 3])
def test_what_was_measured_is_the_same_again(tmp_path: Path, checkpoint_every: int) -> None:
    clock = Clock()
    db = opened(tmp_path, clock)
    declare(db)
    for name, text in QUERIES.items():
        db.query(text, name)
    for i in range(30):
        clock.now = 5 * i
        db.push("S", (i,), ts=i)
        if i % 4 == 3:
            before, position = answers(db), db.stream_input("SysStream").journal.position  # type: ignore[union-attr]
            if checkpoint_every and i % checkpoint_every == 0:
                db.checkpoint()
            end_process(db)
            db = opened(tmp_path, clock)
            assert answers(db) == before
            assert db.stream_input("SysStream").journal.position == position  # type: ignore[union-attr]
    assert sum(answers(db)["told"].values()) > 5
    with pytest.raises(minidsms.Error, match="written by the engine"):
        db.position("SysStream")
    with pytest.raises(minidsms.Error, match="written by the engine"):
        db.push("SysStream", (1,))
    for name in QUERIES:
        db.execute(f"DROP QUERY {name}")
    before = answers(db)
    end_process(db)
    db = opened(tmp_path, clock)
    db.checkpoint()
    end_process(db)
    db = opened(tmp_path, clock)
    assert answers(db) == before
    query = db.query("SELECT COUNT(*) FROM SysStream", "again")
    clock.now += 100
    db.push("S", (1,), ts=100)
    before = answers(db)
    assert query.results
    db.checkpoint()
    end_process(db)
    with opened(tmp_path, clock) as db:
        assert answers(db) == before


def test_nothing_is_written_where_nobody_reads(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as db:
        declare(db)
        before = db.entries
        for i in range(10):
            clock.now = 100 * i
            db.push("S", (i,), ts=i)
        assert db.entries == before + 10
        assert sum(1 for _ in entries(db.log_folder)) == before + 11


def test_a_query_that_takes_the_place_of_the_only_reader_begins_with_what_that_held(tmp_path: Path) -> None:
    clock = Clock()
    for folder in (None, tmp_path / "db"):
        clock.now = 0
        with minidsms.connect(folder, clock=clock) as db:
            db.execute("SET sys_interval = 10; CREATE STREAM S (v INTEGER)")
            db.query("SELECT ival FROM SysStream [RANGE 1 HOUR]", "q")
            for i in range(4):
                clock.now = 20 * i
                db.push("S", (i,), ts=i)
            held = len(db.queries["q"].snapshot())
            db.execute("CREATE OR REPLACE QUERY q AS SELECT COUNT(*) FROM SysStream [RANGE 1 HOUR] WITH HISTORY")
            clock.now = 100
            db.push("S", (4,), ts=4)
            (counted,) = db.queries["q"].snapshot()[0]
            assert held > 0 and counted > held
    with opened(tmp_path, clock) as again:
        assert again.queries["q"].snapshot() == [(counted,)]


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_decisions_that_came_one_by_one_are_there_again(tmp_path: Path, has_checkpoint: bool) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as db, forced_switching(db, 1):
        db.execute("CREATE STREAM S (v INTEGER)")
        db.query("SELECT v FROM S WHERE v > 1 AND v < 5 AND v <> 3", "filtered")
        db.query("SELECT ISTREAM(*) FROM SysDecisions", "decided")
        db.query("SELECT technique, COUNT(*) FROM SysDecisions [RANGE 12] GROUP BY technique", "counted")
        for i in range(4):
            clock.now = 5 * i
            db.push("S", (2,), ts=i)
        if has_checkpoint:
            db.checkpoint()
        before = answers(db)
    assert sum(before["decided"].values()) >= 4  # one more where a form of the aggregate has been kept
    with opened(tmp_path, clock) as db:
        assert answers(db) == before


def test_a_publication_larger_than_a_push_of_a_checkpoint_stands_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A push to a system stream closes its instant: what is left of a publication would be late."""
    monkeypatch.setattr(checkpoint, "ROWS_AT_ONCE", 8)
    clock = Clock()
    with opened(tmp_path, clock) as db:
        declare(db)
        db.query("SELECT kind, COUNT(*) FROM SysStream [RANGE 1 HOUR] GROUP BY kind", "kinds")
        for i in range(4):
            clock.now = 20 * i
            db.push("S", (i,), ts=i)
            db.checkpoint()
        before = answers(db)
        assert sum(n for _, n in db.queries["kinds"].snapshot()) > 3 * 8
    with opened(tmp_path, clock) as db:
        assert answers(db) == before
