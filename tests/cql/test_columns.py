"""COLUMNS: which columns it stands for, what stands around it, and how the answer calls them."""

from __future__ import annotations

import pytest

import minidsms

ITEMS = [
    ("COLUMNS('bid|ask')", "bid FLOAT, ask FLOAT", (3.0, 5.0)),
    ("COLUMNS(*)", "sym TEXT, bid FLOAT, ask FLOAT", ("a", 3.0, 5.0)),
    ("sym, -COLUMNS('^b')", "sym TEXT, -bid FLOAT", ("a", -3.0)),
    ("COLUMNS('d$') AS x", "x FLOAT", (3.0,)),
    ("COLUMNS('bid|ask') * 2 + COLUMNS('ask|bid')", "bid * 2 + bid FLOAT, ask * 2 + ask FLOAT", (9.0, 15.0)),
    (
        "CASE WHEN sym = 'a long name of something' THEN 0 ELSE COLUMNS('bid|ask') END",
        "CASE WHEN sym = 'a long name of something' THEN 0 ELSE bid.. FLOAT, "
        "CASE WHEN sym = 'a long name of something' THEN 0 ELSE ask.. FLOAT",
        (3.0, 5.0),
    ),
]


@pytest.mark.parametrize(("items", "schema", "row"), ITEMS)
def test_an_item_is_written_for_each_column(items: str, schema: str, row: tuple[object, ...]) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM Quotes (sym TEXT, bid FLOAT, ask FLOAT)")
        query = db.query(f"SELECT {items} FROM Quotes")
        assert str(query.schema) == schema
        assert str(db.query(query.expanded).schema) == schema
        db.push("Quotes", ("a", 3.0, 5.0), ts=1)
        db.advance(1)
        assert [change.row for change in query.fetch()] == [row]


def test_aggregates_of_groups_are_of_each_column() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM Quotes (sym TEXT, bid FLOAT, ask FLOAT)")
        query = db.query("SELECT sym, MAX(COLUMNS('bid|ask')) FROM Quotes [ROWS 9] GROUP BY ALL")
        db.push("Quotes", [("a", 3.0, 5.0), ("a", 4.0, 1.0)], ts=[1, 2])
        db.advance(2)
        assert str(query.schema) == "sym TEXT, MAX(bid) FLOAT, MAX(ask) FLOAT" and query.snapshot() == [("a", 4.0, 5.0)]


def test_a_column_that_several_tables_have_is_named_by_its_own() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER); CREATE STREAM T (k INTEGER, w INTEGER)")
        query = db.query("SELECT COLUMNS('k') FROM S [ROWS 1] AS s, T [ROWS 1] AS t")
        db.push("S", (1, 2), ts=1)
        db.push("T", (3, 4), ts=1)
        db.advance(1)
        assert query.snapshot() == [(1, 3)]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ("COLUMNS('zz')", "no column has such a name"),
        ("COLUMNS('bid|ask') AS x", "AS names one column"),
        ("COLUMNS('(')", "the regular expression is wrong"),
        ("COLUMNS(sym)", "takes a regular expression"),
        ("COLUMNS('bid') + COLUMNS('ask')", "different columns in one item"),
    ],
)
def test_what_it_cannot_stand_for_is_refused(item: str, reason: str) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM Quotes (sym TEXT, bid FLOAT, ask FLOAT)")
        with pytest.raises(minidsms.CqlError, match=reason):
            db.query(f"SELECT {item} FROM Quotes")
