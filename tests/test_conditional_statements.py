"""IF EXISTS, IF NOT EXISTS, OR REPLACE: what is done, left alone or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import minidsms
from minidsms.cql.errors import CqlError


@pytest.fixture
def db() -> minidsms.Connection:
    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER, v INTEGER); CREATE RELATION R (k INTEGER)")
    return db


def test_what_is_there_is_left_as_it_is(db: minidsms.Connection) -> None:
    query = db.execute("CREATE QUERY q AS SELECT k FROM S")
    assert db.execute("CREATE QUERY IF NOT EXISTS q AS SELECT v FROM S") is query
    db.execute("CREATE STREAM IF NOT EXISTS s (other TEXT); CREATE RELATION IF NOT EXISTS R (other TEXT)")
    db.execute("CREATE VIEW IF NOT EXISTS V AS SELECT k FROM S; CREATE VIEW IF NOT EXISTS v AS SELECT v FROM S")
    assert db.query("SELECT * FROM V").schema.names == ("k",)
    with pytest.raises(CqlError, match="there is a relation"):
        db.execute("CREATE STREAM IF NOT EXISTS R (k INTEGER)")


def test_what_is_not_there_need_not_be_dropped(db: minidsms.Connection) -> None:
    for kind in ("STREAM", "RELATION", "VIEW", "QUERY"):
        db.execute(f"DROP {kind} IF EXISTS nothing")
    db.execute("DROP RELATION IF EXISTS R")
    with pytest.raises(CqlError, match='no relation "R"'):
        db.execute("DROP RELATION R")
    with pytest.raises(CqlError, match="S is a stream"):
        db.execute("DROP RELATION IF EXISTS S")


def test_a_view_is_replaced_for_what_is_registered_from_then_on(db: minidsms.Connection) -> None:
    db.execute("CREATE OR REPLACE VIEW V AS SELECT k FROM S")
    before = db.query("SELECT * FROM V")
    db.execute("CREATE OR REPLACE VIEW V AS SELECT v AS k FROM S")
    after = db.query("SELECT * FROM V")
    db.push("S", (1, 2), ts=1)
    db.advance(1)
    assert [change.row for change in before.fetch()] == [(1,)]
    assert [change.row for change in after.fetch()] == [(2,)]


def test_a_view_is_not_replaced_under_views_that_need_it(db: minidsms.Connection) -> None:
    db.execute("CREATE VIEW V AS SELECT k FROM S; CREATE VIEW W AS SELECT k + 1 AS n FROM V")
    with pytest.raises(CqlError, match="W cannot stand on this"):
        db.execute("CREATE OR REPLACE VIEW V AS SELECT v FROM S")
    with pytest.raises(CqlError, match='unknown stream, relation or view "V"'):
        db.execute("CREATE OR REPLACE VIEW V AS SELECT n AS k FROM W")
    assert db.query("SELECT n FROM W").schema.names == ("n",)


def test_a_query_that_asks_the_same_is_kept_and_another_one_replaced(
    db: minidsms.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    q = db.execute("CREATE OR REPLACE QUERY q AS SELECT k, SUM(v) AS n FROM S GROUP BY k")
    db.push("S", [(1, 2), (1, 3)], ts=[1, 2])
    assert db.execute("CREATE or REPLACE QUERY q AS SELECT k,  SUM(v) n FROM S [RANGE UNBOUNDED] GROUP BY k") is q
    assert db.execute("CREATE OR REPLACE QUERY q AS SELECT k, SUM(v) AS n FROM S GROUP BY k INTO 'a.csv'") is q
    db.push("S", (1, 5), ts=3)
    db.advance(3)
    assert db.execute("CREATE OR REPLACE QUERY q AS SELECT k, SUM(v) AS n FROM S GROUP BY k INTO 'b.csv'") is q
    assert Path("a.csv").read_text().splitlines()[-1] == "3,1,1,10"
    for wrong in ("SELECT z FROM S", "SELECT k FROM S INTO 'x'", "SELECT k FROM S INTO 'x.csv' WITH (wrong = 1)"):
        with pytest.raises(CqlError):
            db.execute(f"CREATE OR REPLACE QUERY q AS {wrong}")
    assert db.queries["q"] is q and not db.warnings
    other = db.execute("CREATE OR REPLACE QUERY q AS SELECT ISTREAM(v) FROM S")
    assert other is db.queries["q"] and "another one: it sees what comes from now on" in db.warnings[-1]
    db.push("S", (1, 7), ts=4)
    db.advance(4)
    assert [change.row for change in other.fetch()] == [(7,)]
    db.execute("CREATE OR REPLACE QUERY q AS SELECT v FROM S")
    assert Path("b.csv").exists()


@pytest.mark.parametrize("folder", [None, "folder"])
def test_a_query_stays_where_the_place_of_another_cannot_be_written(folder: str | None, tmp_path: Path) -> None:
    with minidsms.connect() if folder is None else minidsms.connect(tmp_path / folder) as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        db.execute(f"CREATE QUERY other AS SELECT k FROM S INTO '{tmp_path / 'taken.csv'}'")
        q = db.execute("CREATE QUERY q AS SELECT k FROM S")
        for place in ("nowhere/a.csv", "nowhere/a.parquet", "taken.csv"):
            with pytest.raises(minidsms.Error):
                db.execute(f"CREATE OR REPLACE QUERY q AS SELECT k + 1 FROM S INTO '{tmp_path / place}'")
        assert db.queries["q"] is q and not db.warnings
        db.push("S", (1,), ts=1)
        assert [change.row for change in q.fetch()] == [(1,)]
        db.execute(f"CREATE OR REPLACE QUERY q AS SELECT k + 1 FROM S INTO '{tmp_path / 'a.csv'}'")
        db.push("S", (1,), ts=2)
        db.advance(2)
    assert (folder is not None) or (tmp_path / "a.csv").read_text().splitlines()[-1] == "2,1,2"


def test_a_folder_keeps_what_a_query_was_replaced_by(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path) as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE OR REPLACE QUERY q AS SELECT SUM(k) FROM S")
        db.push("S", [(1,), (2,)], ts=[1, 2])
        db.execute("CREATE OR REPLACE QUERY q AS SELECT COUNT(*) FROM S")
        db.push("S", (1,), ts=3)
        db.execute("CREATE OR REPLACE QUERY q AS SELECT COUNT(*) FROM S; CHECKPOINT")
    with minidsms.connect(tmp_path) as db:
        db.advance(3)
        assert db.queries["q"].snapshot() == [(1,)]


def test_a_query_that_replaces_another_begins_with_what_its_windows_held(db: minidsms.Connection) -> None:
    db.execute("CREATE QUERY q AS SELECT v FROM S [RANGE 10]")
    db.push("S", [(1, 1), (1, 2), (1, 3)], ts=[1, 8, 12])
    db.advance(12)
    q = db.execute("CREATE OR REPLACE QUERY q AS SELECT SUM(v) FROM S [RANGE 5] WITH HISTORY")
    assert q.snapshot() == [(5,)]
    assert "what the windows before it held; 4 waiting answers are gone" in db.warnings[-1]
