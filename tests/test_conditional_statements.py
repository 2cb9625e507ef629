"""IF EXISTS, IF NOT EXISTS, OR REPLACE: what is done, left alone or refused."""

from __future__ import annotations

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
