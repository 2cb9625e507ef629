"""Every query of the literature binds, runs, answers as defined, and means the same when written out in full."""

from __future__ import annotations

import zlib
from random import Random
from typing import Any

import pytest

from minidsms import connect
from minidsms.connection import Connection
from minidsms.cql.binder import bind
from minidsms.cql.parser import parse_query
from minidsms.testing.compare import Answer, difference_of
from minidsms.testing.definition import answer
from minidsms.testing.history import History
from tests.published_queries import PUBLISHED, Published

SETTINGS: tuple[dict[str, Any], ...] = ({}, {"batch_size": 1}, {"batch_size": 3})


class Sample:
    """The repository's `sample1`: one of the rows; here always the least, so that there is one right answer."""

    def __init__(self) -> None:
        self.values: list[int] = []

    def add(self, value: int) -> None:
        self.values.append(value)

    def remove(self, value: int) -> None:
        self.values.remove(value)

    def result(self) -> int | None:
        return min(self.values, default=None)


class CenterOfMass:
    """The mean of the positions, on the line where both coordinates are one number."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def add(self, latitude: float, longitude: float) -> None:
        self.values.append(latitude + 1000 * longitude)

    def remove(self, latitude: float, longitude: float) -> None:
        self.values.remove(latitude + 1000 * longitude)

    def result(self) -> float | None:
        return sum(self.values) / len(self.values) if self.values else None


def distance(a: float, b: float, c: float, d: float) -> float:
    return abs(a - c) + abs(b - d)


def prepared(query: Published, **options: Any) -> Connection:
    """A connection in seconds with everything the query names."""
    db = connect(time_unit="s", **options)
    for name in ("DOLTOEUR", "DolToEuro"):
        db.create_function(name, lambda price: price * 0.908, ["FLOAT"], "FLOAT")
    db.create_function("distance", distance, ["FLOAT"] * 4, "FLOAT")
    db.create_aggregate("sample1", Sample, ["INTEGER"], "INTEGER")
    db.create_aggregate("center_of_mass", CenterOfMass, ["FLOAT", "FLOAT"], "FLOAT")
    for kind, declared in (("STREAM", query.streams), ("RELATION", query.relations)):
        for name, columns in declared.items():
            db.execute(f"CREATE {kind} {name} ({columns})")
    for view in query.views:
        db.execute(view)
    return db


def feed_of(query: Published) -> list[tuple[int, str, int, tuple[Any, ...]]]:
    """(ts, name, sign, row) in order of ts: rows of relations at the beginning, then of streams, with ties."""
    rng = Random(zlib.crc32(query.name.encode()))

    def row(columns: str) -> tuple[Any, ...]:
        names = [column.split()[0] for column in columns.split(", ")]
        return tuple(rng.choice(query.domains.get(name, (1, 2, 3))) for name in names)

    changes = []
    for name, columns in query.relations.items():
        rows = [row(columns) for _ in range(8)]
        changes += [(0, name, +1, r) for r in rows] + [(query.span // 2, name, -1, r) for r in rows[:3]]
    elements = []
    for name, columns in query.streams.items():
        elements += [(rng.randint(1, query.span), name, +1, row(columns)) for _ in range(query.rows)]
    return sorted([*changes, *elements], key=lambda change: change[0])


def run(db: Connection, text: str, query: Published) -> Answer:
    running = db.query(text)
    for ts, name, sign, row in feed_of(query):
        if name in query.relations:
            db.push(name, [row], ts=[ts], sign=[sign])
        else:
            db.push(name, [row], ts=[ts])
    db.advance(query.span + 60)
    changes = tuple((c.ts, c.sign, tuple(c.row)) for c in running.fetch())
    assert not running.fetch()
    return Answer(changes)


def by_definition(db: Connection, query: Published) -> Answer:
    history = History(functions=db.catalog.functions, aggregates=db.catalog.aggregates, tick_ns=db.tick_ns)
    for ts, name, sign, row in feed_of(query):
        if name in query.relations:
            history.relations.setdefault(name.lower(), []).append((ts, sign, row))
        else:
            history.streams.setdefault(name.lower(), []).append((ts, row))
    node = bind(parse_query(query.text), db.catalog, query.text).node
    return Answer(tuple(answer(node, history, query.span + 60)))


@pytest.mark.parametrize("query", PUBLISHED, ids=lambda query: query.name)
def test_a_published_query_answers_as_defined(query: Published) -> None:
    with prepared(query) as db:
        expected = by_definition(db, query)
    assert len(expected.changes) >= 3, "the feed shows too little"
    options = SETTINGS[zlib.crc32(query.text.encode()) % len(SETTINGS)]
    with prepared(query, **options) as db:
        assert difference_of(expected, run(db, query.text, query)) == ""


@pytest.mark.parametrize("query", PUBLISHED, ids=lambda query: query.name)
def test_a_published_query_written_out_in_full_has_the_same_plan(query: Published) -> None:
    with prepared(query) as db:
        short = db.query(query.text)
        full = db.query(short.expanded)
        assert full.expanded == short.expanded
        assert full.schema == short.schema
        assert full.explain() == short.explain()


def test_the_published_queries_are_as_many_as_are_claimed() -> None:
    assert len(PUBLISHED) == len({query.name for query in PUBLISHED}) >= 50
