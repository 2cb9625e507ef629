"""A query WITH HISTORY begins with the same elements however often its folder is opened again."""

from __future__ import annotations

from pathlib import Path

import pytest

import minidsms
from minidsms import Change
from minidsms.durability.connection import DurableConnection
from minidsms.testing.feeds import Push
from tests.long.crash_cases import Call, check_calls
from tests.long.crashes import end_process

LATE = {
    "sums": "SELECT SUM(v), COUNT(*) FROM S [RANGE 4]",
    "per_key": "SELECT k, COUNT(*) FROM S GROUP BY k",
    "newest": "SELECT k, v FROM S [ROWS 3]",
    "pairs": "SELECT ISTREAM(A.v, B.v AS w) FROM S [RANGE 6] AS A, S [ROWS 2] AS B WHERE A.k = B.k",
    "known": "SELECT name, v FROM S [RANGE 9], R WHERE S.k = R.k",
}


def calls(n: int) -> list[Call]:
    made = [
        Call("CREATE STREAM S (k TEXT, v INTEGER)"),
        Call("CREATE RELATION R (k TEXT, name TEXT)"),
        Call(step=Push("R", (((0, 1, ("k1", "one"))), (0, 1, ("k2", None))))),
        Call("SELECT k, v FROM S [RANGE 10]", "holder"),
    ]
    for i in range(n):
        rows = tuple((i + j // 2, 1, (f"k{(i + j) % 3}" if (i + j) % 5 else None, i * 10 + j)) for j in range(3))
        made.append(Call(step=Push("S", rows)))
        if i == 5:
            made += [Call(text, name, "WITH HISTORY") for name, text in LATE.items()]
        if i == 7:
            made.append(Call("ALTER STREAM S ADD COLUMN more INTEGER"))
        if i == 9:
            made.append(Call("SELECT more, v FROM S [RANGE 10]", "later", "WITH HISTORY"))
    return made


def test_answers_through_crashes_are_those_of_a_run_without(tmp_path: Path) -> None:
    names = [*LATE, "later"]
    assert sum(check_calls(calls(24), names, str(tmp_path / f"{seed}" / "db"), seed) for seed in range(5))


@pytest.mark.parametrize("late", LATE)
def test_it_stays_when_the_query_that_held_it_is_gone_and_shrinks_as_time_passes(tmp_path: Path, late: str) -> None:
    def known(db: minidsms.Connection) -> list[Change]:
        return db.queries[late].fetch(ack=0)

    db = minidsms.connect(tmp_path / "db")
    for call in calls(6)[:-5]:
        call.make(db)
    db.execute(f"CREATE QUERY {late} AS {LATE[late]} WITH HISTORY; DROP QUERY holder")
    for i in range(6, 30):
        wanted = known(db)
        assert isinstance(db, DurableConnection)
        if i % 3 == 0:
            db.checkpoint()
        end_process(db)
        db = minidsms.connect(tmp_path / "db")
        assert [c.ts for c in known(db)] == [c.ts for c in wanted] and set(known(db)) == set(wanted)
        db.push("S", [("k1", i), ("k2", i + 1)], ts=[i, i])
    with minidsms.connect() as other:
        for call in calls(6)[:-5]:
            call.make(other)
        other.execute(f"CREATE QUERY {late} AS {LATE[late]} WITH HISTORY; DROP QUERY holder")
        for i in range(6, 30):
            other.push("S", [("k1", i), ("k2", i + 1)], ts=[i, i])
        assert sorted(map(repr, known(db))) == sorted(map(repr, other.queries[late].fetch()))
    db.execute("CHECKPOINT")
    assert db.execute("SHOW CHECKPOINTS").rows[-1][3] < 20
    db.close()


def test_a_query_that_takes_another_ones_place_begins_with_what_that_held(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        db.execute("CREATE STREAM S (v INTEGER); CREATE QUERY q AS SELECT v FROM S [RANGE 10]")
        db.push("S", [(1,), (2,), (3,)], ts=[1, 8, 12])
        db.advance(12)
        db.execute("CREATE OR REPLACE QUERY q AS SELECT SUM(v) FROM S [RANGE 5] WITH HISTORY")
        assert db.queries["q"].snapshot() == [(5,)]
    for _ in range(2):
        with minidsms.connect(tmp_path / "db") as db:
            assert db.queries["q"].fetch(ack=0) == [Change(12, 1, (5,))]
            db.checkpoint()


def test_a_statement_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        with pytest.raises(minidsms.Error, match="unknown column"):
            db.execute("CREATE QUERY q AS SELECT x FROM S [RANGE 5] WITH HISTORY")
    with minidsms.connect(tmp_path / "db") as db:
        assert not db.queries and not db.warnings


def test_it_that_fails_in_its_past_has_failed_there_and_answers_nothing_however_often_it_is_opened(
    tmp_path: Path,
) -> None:
    db = minidsms.connect(tmp_path / "db")
    db.execute("CREATE STREAM S (t TEXT); CREATE QUERY holder AS SELECT t FROM S [RANGE 100]")
    db.push("S", [("1",), ("none",), ("3",)], ts=[1, 2, 3])
    db.advance(5)
    for text in ("SELECT CAST(t AS INTEGER) AS n FROM S [RANGE 50]", "SELECT ISTREAM(CAST(t AS INTEGER)) FROM S [NOW]"):
        name = f"late{len(db.queries)}"
        db.execute(f"CREATE QUERY {name} AS {text} WITH HISTORY")
    for i in range(3):
        assert isinstance(db, DurableConnection)
        for name in ("late1", "late2"):
            assert db.queries[name].failure is not None and db.queries[name].results == 0
            with pytest.raises(minidsms.QueryError, match="'none'"):
                db.queries[name].fetch()
        db.push("S", ("4",), ts=6 + i)
        if i:
            db.checkpoint()
        end_process(db)
        db = minidsms.connect(tmp_path / "db")
    db.close()
