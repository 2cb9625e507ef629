"""Queries that shared a reduced join and come apart: each goes on with rows, files and monitors that stay its own."""

from __future__ import annotations

import minidsms
from minidsms.connection import Connection

QUERY = "SELECT ISTREAM(P.x, F.y) FROM P [RANGE 100000], F [RANGE 100000] WHERE P.k = F.k"


def feed(db: Connection, first: int, n: int) -> None:
    """Flows, and after each the packet that joins it."""
    keys = list(range(first, first + n))
    db.push("F", {"k": keys, "y": keys}, ts=[2 * k for k in keys])
    db.push("P", {"k": keys, "x": keys}, ts=[2 * k + 1 for k in keys])
    db.advance(2 * (first + n))


def two_queries_that_have_let_rows_go() -> tuple[Connection, minidsms.Query, minidsms.Query]:
    db = minidsms.connect(state_reduction="k-mon")
    db.execute("CREATE STREAM P (k INTEGER, x INTEGER); CREATE STREAM F (k INTEGER, y INTEGER) KEY (k)")
    one, other = db.query(QUERY, name="one"), db.query(QUERY, name="other")
    feed(db, 0, 20_000)
    assert "spilled 0" not in one.explain(analyze=True)
    one.fetch(), other.fetch()
    return db, one, other


def users(db: Connection) -> set[str]:
    return {row[db.execute("SHOW CONSTRAINTS").columns.index("used by")] for row in db.execute("SHOW CONSTRAINTS").rows}


def test_rows_that_had_gone_come_back_in_each_of_them() -> None:
    db, one, other = two_queries_that_have_let_rows_go()
    other.set("batch_size", 100)  # parts it
    db.push("F", (7, -7), ts=50_000)
    db.advance(50_000)
    assert [c.row for c in one.fetch()] == [c.row for c in other.fetch()] == [(7, -7)]


def test_what_is_left_of_them_goes_on_when_one_is_dropped() -> None:
    db, one, other = two_queries_that_have_let_rows_go()
    db.execute("SET sharing = off")
    one.close()
    db.push("F", (7, -7), ts=50_000)
    db.advance(50_000)
    assert [c.row for c in other.fetch()] == [(7, -7)]


def test_constraints_are_watched_for_as_long_as_either_uses_them() -> None:
    db, one, other = two_queries_that_have_let_rows_go()
    assert users(db) == {"one, other"}
    other.set("batch_size", 100)
    assert users(db) == {"one, other"}
    one.close()
    assert users(db) == {"other"}
    other.close()
    assert users(db) == set()
