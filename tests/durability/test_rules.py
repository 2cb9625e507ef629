"""The queries of a table of rules, in a connection with a folder."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import minidsms
from minidsms.durability import kept_files
from minidsms.durability.connection import DurableConnection
from minidsms.durability.kept_file import KeptFile
from minidsms.durability.log_writer import LogWriter
from minidsms.elements import Batch
from minidsms.engine.running_query import RunningQuery
from tests.refusing import refusing

TEMPLATE = "SELECT k, COUNT(*) FROM S [RANGE 3] WHERE v > $most GROUP BY k"
DECLARED = "CREATE STREAM S (k INTEGER, v INTEGER); CREATE RELATION Limits (who TEXT, most INTEGER) KEY (who)"


def feed(db: minidsms.Connection, i: int) -> None:
    db.push("S", [(i % 3, i % 7), (i % 2, i % 5)], ts=i)
    if i % 4 == 0:
        db.upsert("Limits", [(f"who{i // 4 % 3}", i % 6)], ts=i)
    if i % 12 == 2:
        db.push("Limits", [(f"who{i // 4 % 3}", (i - 2) % 6)], ts=i, sign=-1)
    db.advance(i)


def end(db: minidsms.Connection) -> None:
    """The process is killed."""
    assert isinstance(db, DurableConnection) and db.log is not None
    db.log.stop()
    db.abandon()


def test_rules_and_their_answers_come_back(tmp_path: Path) -> None:
    found: Counter[Any] = Counter()
    with minidsms.connect() as wanted:
        wanted.execute(DECLARED)
        expected = wanted.query_each(TEMPLATE, "Limits", "alarm")
        db = minidsms.connect(tmp_path / "db")
        db.execute(DECLARED)
        rules = db.query_each(TEMPLATE, "Limits", "alarm")
        for i in range(40):
            feed(wanted, i)
            feed(db, i)
            if i % 5 == 3:
                found.update(rules.fetch())
            if i in (8, 18, 29):
                if i != 18:
                    found.update(rules.fetch())
                    db.checkpoint()
                end(db)
                db = minidsms.connect(tmp_path / "db")
                rules = db.query_each(TEMPLATE, "limits", "alarm")
                assert set(rules) == set(expected) and len(rules)
        found.update(rules.fetch())
        assert found == Counter(expected.fetch())
        with pytest.raises(minidsms.Error, match="other queries of a table"):
            db.query_each("SELECT k FROM S WHERE v > $most", "Limits", "alarm")
        rules.close()
        db.close()
    with minidsms.connect(tmp_path / "db") as db:
        assert not db.queries
        db.checkpoint()
        assert len(db.query_each("SELECT k FROM S WHERE v > $most", "Limits", "alarm")) == len(expected)


def test_answers_of_a_row_that_is_gone_wait_in_the_log(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        db.execute(DECLARED)
        rules = db.query_each("SELECT ISTREAM(k) FROM S WHERE v > $most", "Limits")
        db.push("Limits", ("ann", 1), ts=0)
        db.push("S", (1, 2), ts=1)
        db.push("Limits", ("ann", 1), ts=2, sign=-1)
        with pytest.raises(minidsms.Error, match="1 answer of queries whose rows of Limits are gone waits"):
            db.checkpoint()
    with minidsms.connect(tmp_path / "db") as db:
        (rules,) = db.rules  # type: ignore[attr-defined]
        assert [(key, change.row) for key, change in rules.fetch()] == [("ann", (1,))]
        db.checkpoint()
    with minidsms.connect(tmp_path / "db") as db:
        assert db.query_each("SELECT ISTREAM(k) FROM S WHERE v > $most", "Limits").fetch() == []


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_a_rule_that_was_dropped_stays_away(tmp_path: Path, is_checkpointed: bool) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        db.execute(DECLARED)
        rules = db.query_each("SELECT ISTREAM(k) FROM S WHERE v > $most", "Limits")
        db.push("Limits", [("ann", 1), ("bob", 1)], ts=0)
        db.execute("DROP QUERY Limits_bob")
        db.push("S", (1, 2), ts=1)
        if is_checkpointed:
            db.checkpoint()
            db.checkpoint()
    with minidsms.connect(tmp_path / "db") as db:
        (rules,) = db.rules  # type: ignore[attr-defined]
        assert list(db.queries) == ["limits_ann"]
        assert [(key, change.row) for key, change in rules.fetch()] == [("ann", (1,))]
        db.push("Limits", ("bob", 1), ts=2, sign=-1)
        db.push("Limits", ("bob", 1), ts=3)
        assert rules["bob"].state == "running"


def test_the_second_row_of_a_key_comes_out_of_a_checkpoint_as_it_is(tmp_path: Path) -> None:
    first, second = ("ann", 1), ("ann", 5)
    with minidsms.connect(tmp_path / "db") as db:
        db.execute(DECLARED)
        rules = db.query_each("SELECT COUNT(*) FROM S [RANGE 100] WHERE v > $most", "Limits")
        db.push("Limits", first, ts=0)
        db.push("Limits", second, ts=1)
        db.push("S", (1, 9), ts=2)
        db.push("Limits", first, ts=3, sign=-1)
        db.push("S", (1, 9), ts=4)
        db.advance(9)
        wanted = rules["ann"].snapshot()
        rules.fetch()
        db.checkpoint()
    with minidsms.connect(tmp_path / "db") as db:
        (rules,) = db.rules  # type: ignore[attr-defined]
        assert "v > 5" in rules["ann"].text and rules["ann"].snapshot() == wanted == [(1,)]
        assert rules.fetch() == [] and not rules.failures


def test_answers_of_a_row_that_is_gone_come_once_whatever_a_checkpoint_keeps(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        db.execute(DECLARED)
        rules = db.query_each("SELECT COUNT(*) FROM Limits WHERE most > $most", "Limits")
        db.push("Limits", [("ann", 1), ("bob", 2)], ts=0)
        db.push("Limits", ("ann", 1), ts=1, sign=-1)
        assert rules.fetch()
        db.checkpoint()
    with minidsms.connect(tmp_path / "db") as db:
        (rules,) = db.rules  # type: ignore[attr-defined]
        assert rules.fetch() == []


def test_a_checkpoint_forgets_rows_whose_successors_came_with_their_ends(tmp_path: Path) -> None:
    sizes = []
    for is_new_first in (False, True):
        folder = tmp_path / str(is_new_first)
        with minidsms.connect(folder) as db:
            db.execute(DECLARED)
            db.push("Limits", ("ann", 0), ts=0)
            rules = db.query_each("SELECT ISTREAM(k) FROM S WHERE v > $most", "Limits")
            for ts in range(1, 50):
                changes = [(("ann", ts - 1), -1), (("ann", ts), 1)]
                data, sign = zip(*(reversed(changes) if is_new_first else changes))
                db.push("Limits", list(data), ts=ts, sign=list(sign))
            db.push("S", (1, 99), ts=50)
            db.advance(60)
            rules.fetch()
            db.checkpoint()
        sizes.append(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()))
        with minidsms.connect(folder) as db:
            (rules,) = db.rules  # type: ignore[attr-defined]
            assert "v > 49" in rules["ann"].text and rules.fetch() == []
    assert sizes[1] <= sizes[0] + 100


@pytest.mark.parametrize("arrow", [False, True])
def test_answers_that_could_not_be_fetched_wait_as_before(tmp_path: Path, arrow: bool) -> None:
    with minidsms.connect(tmp_path) as db:
        assert isinstance(db, DurableConnection)
        db.execute(DECLARED)
        db.push("Limits", [("a", 0), ("b", 0)], ts=0)
        rules = db.query_each("SELECT ISTREAM(k) FROM S WHERE v > $most", "Limits")
        db.push("S", [(1, 1), (2, 1)], ts=1)
        query = rules["a"]

        def full(*payload: object, is_awaited: bool = True) -> int:
            raise minidsms.Error("the disk is full")

        with pytest.MonkeyPatch.context() as patch, pytest.raises(minidsms.Error, match="full"):
            patch.setattr(db.log, "append", full)
            rules.fetch_arrow() if arrow else rules.fetch()
        assert query.position == 0

        def interrupted() -> list[Batch]:
            signal.raise_signal(signal.SIGINT)
            return RunningQuery.taken_batches(query)

        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(query, "taken_batches", interrupted)
            rules.fetch_arrow() if arrow else rules.fetch()
    with minidsms.connect(tmp_path) as db:
        rules = db.query_each("SELECT ISTREAM(k) FROM S WHERE v > $most", "Limits")
        assert [(key, change.row[0]) for key, change in rules.fetch()] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


FILES: dict[str, dict[str, Any]] = {
    "ann.csv": {},
    "ann.jsonl.gz": {},
    "ann-{n}.csv": {"roll_rows": 3},
    "added.csv": {"append": True},
}


def written(folder: Path, name: str) -> list[int]:
    """The k of every answer in the files of a query."""
    found = []
    for path in sorted(folder.glob(name.replace("{n}", "*"))):
        text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
        found += [
            int(line.strip("}").rpartition(":" if "{" in line else ",")[2])
            for line in text.splitlines()
            if "_ts," not in line
        ]
    return found


def rules_with_a_file(folder: Path, name: str) -> tuple[DurableConnection, Any]:
    """One rule whose file is to hold 2, 3, 4 and 5; the last comes with the end of its row."""
    db = minidsms.connect(folder / "db")
    assert isinstance(db, DurableConnection)
    db.execute(DECLARED)
    rules = db.query_each("SELECT ISTREAM(v) FROM S WHERE v > $most", "Limits")
    db.push("Limits", [("ann", 1), ("bob", 9)], ts=0)
    rules["ann"].into(str(folder / name), **FILES[name])
    db.push("S", [(0, v) for v in range(1, 5)], ts=[1, 2, 3, 4])
    db.push("S", (0, 5), ts=5, block=False)
    assert rules.fetch() == []
    return db, rules


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("mark_s", [0.0, 1e9])
def test_the_file_of_a_rule_whose_row_is_gone_has_all_its_answers(
    name: str, mark_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_files, "MARK_S", mark_s)
    db, rules = rules_with_a_file(tmp_path, name)
    db.push("Limits", ("ann", 1), ts=6, sign=-1)
    assert written(tmp_path, name) == [2, 3, 4, 5] and rules.fetch() == []
    db.push("S", (0, 9), ts=7)
    db.close()
    with minidsms.connect(tmp_path / "db") as again:
        (rules,) = again.rules  # type: ignore[attr-defined]
        assert not again.warnings and list(rules) == ["bob"] and rules.fetch() == []
        again.checkpoint()
        assert rules.fetch() == []
    assert written(tmp_path, name) == [2, 3, 4, 5]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("at", ["sync", "mark", "publish"])
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_file_of_a_rule_that_could_not_take_its_place_does_when_the_folder_is_opened_again(
    is_killed: bool, at: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_files, "MARK_S", 1e9)
    db, _ = rules_with_a_file(tmp_path, name)

    class Killed(BaseException):
        pass

    def failing(*_: object, **__: object) -> None:
        reason = OSError(errno.EIO, os.strerror(errno.EIO)) if at != "publish" else minidsms.Error("cannot write")
        raise Killed if is_killed else reason

    of, method = {"sync": (KeptFile, "sync"), "mark": (os, "write"), "publish": (KeptFile, "publish")}[at]
    write = os.write

    def refusing(number: int, data: bytes) -> int:
        if b'"kind":"done"' in bytes(data):
            failing()
        return write(number, data)

    with monkeypatch.context() as patched, pytest.raises(Killed if is_killed else minidsms.Error):
        patched.setattr(of, method, refusing if at == "mark" else failing)
        db.push("Limits", ("ann", 1), ts=6, sign=-1)
    with pytest.raises(minidsms.Error, match="open the folder again"):
        db.push("S", (0, 9), ts=7)
    end(db) if is_killed else db.close()
    for _ in range(2):
        with minidsms.connect(tmp_path / "db") as again:
            (rules,) = again.rules  # type: ignore[attr-defined]
            assert not again.warnings and list(rules) == ["bob"] and rules.fetch() == []
            assert again.position("Limits") == 3
        assert written(tmp_path, name) == [2, 3, 4, 5]
    assert not list(tmp_path.glob(".*.kept"))


@pytest.mark.parametrize("is_marked", [False, True])
def test_where_the_file_of_a_rule_still_cannot_take_its_place_a_warning_says_where_its_answers_are(
    is_marked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_files, "MARK_S", 1e9)
    db, _ = rules_with_a_file(tmp_path, "ann.csv")

    with monkeypatch.context() as patched:
        patched.setattr(KeptFile, "_take_place" if is_marked else "sync", refusing(errno.EIO))
        with pytest.raises(minidsms.Error, match=r"ann\.csv"):
            db.push("Limits", ("ann", 1), ts=6, sign=-1)
        db.close()
        with minidsms.connect(tmp_path / "db") as again:
            (told,) = again.warnings
            assert "query Limits_ann has ended" in told and ".ann.csv.kept" in told
            (rules,) = again.rules  # type: ignore[attr-defined]
            assert [change.row for _, change in rules.fetch()] == ([] if is_marked else [(2,), (3,), (4,), (5,)])
    with minidsms.connect(tmp_path / "db") as again:
        assert not again.warnings
    assert not is_marked or written(tmp_path, "ann.csv") == [2, 3, 4, 5]


def test_a_function_that_a_rule_feeds_gets_each_answer_once(tmp_path: Path) -> None:
    db = minidsms.connect(tmp_path / "db")
    db.execute(DECLARED)
    rules = db.query_each("SELECT ISTREAM(v) FROM S WHERE v > $most", "Limits")
    db.push("Limits", ("ann", 1), ts=0)
    told: list[int] = []
    rules["ann"].into(lambda table: told.extend(table["v"].to_pylist()))
    db.push("S", [(0, v) for v in range(1, 5)], ts=[1, 2, 3, 4])
    db.push("S", (0, 5), ts=5, block=False)
    db.push("Limits", ("ann", 1), ts=6, sign=-1)
    assert told == [2, 3, 4, 5] and rules.fetch() == []
    db.close()
    with minidsms.connect(tmp_path / "db") as again:
        (rules,) = again.rules  # type: ignore[attr-defined]
        assert rules.fetch() == []


@pytest.mark.parametrize("how", ["row", "rules"])
def test_a_checkpoint_leaves_out_what_was_said_of_an_earlier_query_of_the_same_row(how: str, tmp_path: Path) -> None:
    db = minidsms.connect(tmp_path / "db")
    db.execute(DECLARED)
    template = "SELECT ISTREAM(v) FROM S WHERE v > $most"
    rules = db.query_each(template, "Limits")
    for most in (1, 3):
        db.push("Limits", ("ann", most), ts=2 * most)
        rules["ann"].into(str(tmp_path / "added.csv"), append=True)
        rules["ann"].pause()
        rules["ann"].resume()
        db.push("S", [(0, 2), (0, 4)], ts=2 * most)
        if most == 1:
            db.push("Limits", ("ann", 1), ts=2 * most + 1, sign=-1)
            if how == "rules":
                rules.close()
                rules = db.query_each(template, "Limits")
    db.checkpoint()
    end(db)
    with minidsms.connect(tmp_path / "db") as again:
        (rules,) = again.rules  # type: ignore[attr-defined]
        again.push("S", [(0, 2), (0, 5)], ts=9)
        again.push("Limits", ("ann", 3), ts=10, sign=-1)
        assert rules.fetch() == [] and not again.warnings
    assert written(tmp_path, "added.csv") == [2, 4, 4, 5]


def test_a_checkpoint_leaves_queries_alone_whose_rules_are_named_like_those_that_have_been_closed(
    tmp_path: Path,
) -> None:
    db, rules = rules_with_a_file(tmp_path, "ann.csv")
    others = db.query_each("SELECT ISTREAM(v) FROM S WHERE v > $most", "Limits", "Limits_large")
    others["ann"].into(str(tmp_path / "large.csv"))
    rules.close()
    db.push("S", (0, 6), ts=6)
    db.checkpoint()
    end(db)
    with minidsms.connect(tmp_path / "db") as again:
        (others,) = again.rules  # type: ignore[attr-defined]
        again.push("S", (0, 7), ts=7)
        again.push("Limits", ("ann", 1), ts=8, sign=-1)
        assert others.fetch() == [] and not again.warnings
    assert written(tmp_path, "large.csv") == [6, 7]


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_row_that_comes_again_and_goes_in_one_push_leaves_the_file_of_its_first_query(
    is_killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_files, "MARK_S", 1e9)
    db, _ = rules_with_a_file(tmp_path, "ann.csv")

    class Killed(BaseException):
        pass

    def killed(_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched, contextlib.suppress(Killed):
        if is_killed:
            patched.setattr(KeptFile, "sync", killed)
        db.push("Limits", [("ann", 1), ("ann", 2), ("ann", 2)], ts=6, sign=[-1, 1, -1])
    end(db)
    for _ in range(2):
        with minidsms.connect(tmp_path / "db") as again:
            (rules,) = again.rules  # type: ignore[attr-defined]
            assert not again.warnings and list(rules) == ["bob"] and rules.fetch() == []
    assert written(tmp_path, "ann.csv") == [2, 3, 4, 5]


def test_a_row_may_go_whose_file_could_not_be_gone_on_with(tmp_path: Path) -> None:
    db, _ = rules_with_a_file(tmp_path, "ann.csv")
    db.close()
    os.truncate(tmp_path / ".ann.csv.kept", 1)
    with minidsms.connect(tmp_path / "db") as again:
        assert "has become shorter" in again.warnings[0]
        again.push("S", (0, 6), ts=6)
        again.push("Limits", ("ann", 1), ts=7, sign=-1)
    with minidsms.connect(tmp_path / "db") as again:
        (rules,) = again.rules  # type: ignore[attr-defined]
        assert not again.warnings and [change.row for _, change in rules.fetch()][-1] == (6,)


@pytest.mark.parametrize(
    ("how", "name"), [*(("rules", name) for name in FILES), *(("row", name) for name in [*FILES][:3])]
)
def test_what_stands_in_its_place_stays_where_the_end_of_its_query_is_the_last_entry(
    how: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_files, "MARK_S", 1e9)
    db, rules = rules_with_a_file(tmp_path, name)
    db.advance(5)
    if how == "row":  # as written by a version that noted no ends
        db.checkpoint()  # marks the file
        monkeypatch.setattr(LogWriter, "note_ended", lambda *_: None)
        db.push("Limits", ("ann", 1), ts=6, sign=-1)
        monkeypatch.undo()
    else:
        rules.close()
    db.close()
    if FILES[name].get("append"):
        with (tmp_path / name).open("a") as file:
            file.write("9,1,9\n")
    for _ in range(2):
        with minidsms.connect(tmp_path / "db") as again:
            assert not again.warnings
    assert written(tmp_path, name) == [2, 3, 4, 5, *([9] if FILES[name].get("append") else [])]


def test_the_end_of_a_row_is_told_before_what_is_measured_at_the_same_step(tmp_path: Path) -> None:
    now = 0
    db = minidsms.connect(tmp_path / "db", clock=lambda: now)
    db.execute(DECLARED)
    rules = db.query_each("SELECT ISTREAM(v) FROM S WHERE v > $most", "Limits")
    db.execute("CREATE QUERY measured AS SELECT ISTREAM(entity) FROM SysStream WHERE kind = 'source'")
    db.push("Limits", ("ann", 1), ts=0)
    rules["ann"].into(str(tmp_path / "ann.csv"))
    db.push("S", [(0, v) for v in range(1, 5)], ts=[1, 2, 3, 4])
    now = 1_000_000
    db.push("Limits", ("ann", 1), ts=6, sign=-1)
    assert db.queries["measured"].fetch()
    db.close()
    with minidsms.connect(tmp_path / "db", clock=lambda: now) as again:
        (rules,) = again.rules  # type: ignore[attr-defined]
        assert rules.fetch() == [] and not again.warnings
    assert written(tmp_path, "ann.csv") == [2, 3, 4]


def test_a_checkpoint_is_made_where_the_process_ended_before_the_log_said_that_a_row_s_query_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = minidsms.connect(tmp_path / "db")
    db.execute(DECLARED)
    rules = db.query_each("SELECT ISTREAM(v) FROM S WHERE v > $most", "Limits")
    db.push("Limits", ("ann", 1), ts=0)
    rules["ann"].pause()

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(LogWriter, "note_ended", killed)
        db.push("Limits", ("ann", 1), ts=1, sign=-1)
    end(db)
    with minidsms.connect(tmp_path / "db") as again:
        (rules,) = again.rules  # type: ignore[attr-defined]
        again.push("Limits", ("ann", 2), ts=2)
        again.push("S", [(0, 2), (0, 3)], ts=3)
        assert [change.row for _, change in rules.fetch()] == [(3,)]
        again.checkpoint()
    with minidsms.connect(tmp_path / "db") as again:
        (rules,) = again.rules  # type: ignore[attr-defined]
        assert list(rules) == ["ann"] and rules["ann"].state == "running" and rules.fetch() == []
