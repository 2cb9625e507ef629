"""Random nested queries over few rows against DuckDB's answers: the kind `nested` of `tests.long.beside_duckdb`.

A case registers two queries at once, so that they share what is alike, over three relations, a stream in five windows,
and two views. Its connection may have a folder, which is then closed and opened again, with and without a checkpoint.
What is not supported is refused, and no case.

Invariant: what runs depends on the seed alone.  docs/semantics R1 to R10, S1.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import ExitStack
from random import Random
from typing import Any

import duckdb

import minidsms
from minidsms.durability.connection import DurableConnection
from tests.long.asked import Answer, Asked, Row, plain
from tests.long.nested_sql import NestedSql

_RELATIONS = ("A", "B", "C")
_COLUMNS = "k, v, t"
_READ = {
    **{name: (name, name) for name in _RELATIONS},
    "range": ("S [RANGE 3]", f"(SELECT {_COLUMNS} FROM S WHERE ts > {{now}} - 3)"),
    "rows": ("S [ROWS 4]", f"(SELECT {_COLUMNS} FROM S ORDER BY number DESC LIMIT 4)"),
    "newest": ("S [PARTITION BY k ROWS 1]", f"(SELECT {_COLUMNS} FROM S QUALIFY "
               "ROW_NUMBER() OVER (PARTITION BY k ORDER BY number DESC) = 1)"),
    "now": ("S [NOW]", f"(SELECT {_COLUMNS} FROM S WHERE ts = {{now}})"),
    "slide": ("S [RANGE 4 SLIDE 2]", f"(SELECT {_COLUMNS} FROM S "
              "WHERE ts > {now} // 2 * 2 - 4 AND ts <= {now} // 2 * 2)"),
    "Counts": ("Counts", "(SELECT k, COUNT(*) AS v, MAX(t) AS t FROM A GROUP BY k)"),
    "Joined": ("Joined", "(SELECT B.k, S.v, S.t FROM B JOIN S ON B.k = S.k WHERE S.ts > {now} - 2)"),
}  # fmt: skip
"""What queries read, as CQL and as DuckDB have it."""
_VIEWS = """CREATE VIEW Counts AS SELECT k, COUNT(*) AS v, MAX(t) AS t FROM A GROUP BY k;
    CREATE VIEW Joined AS SELECT B.k, S.v, S.t FROM B, S [RANGE 2] WHERE B.k = S.k"""
_OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {}, {"batch_size": 1}, {"batch_size": 7}, {"adaptive": "off"}, {"sharing": "off"}, {"compilation": "off"},
    {"threads": 2},
)  # fmt: skip
_MOST_CHARACTERS = 4000


def difference_of(seed: int) -> str | None:
    """What differs in the case of this seed, in words."""
    rng = Random(seed)
    drawn = [NestedSql(rng, [*_RELATIONS, *_READ], ["newest"]).query() for _ in range(2)]
    with ExitStack() as opened:
        place = _Place(rng, opened)
        asked = [(text, query) for i, text in enumerate(drawn) if (query := place.asked(text, i)) is not None]
        for _ in range(rng.randint(3, 6) if asked else 0):
            place.change()
            for text, query in asked:
                found, expected = query.fetch(place.db), place.answered(text)
                if expected != found or query.difference:
                    missing, wrong = expected - found, found - expected
                    place_of_it = f"{_read(text, 0)}; {place.options}, instant {place.now}, {place.held}"
                    return f"{place_of_it}\nmissing {missing}\nwrong {wrong}\nas a stream {query.difference}"
    return None


def _read(text: str, side: int, now: int = 0) -> str:
    return text.format_map({name: both[side].format(now=now) for name, both in _READ.items()})


class _Place:
    """Where a case runs: the engine, which may have a folder, and DuckDB beside it."""

    def __init__(self, rng: Random, opened: ExitStack) -> None:
        self._rng = rng
        self.options = rng.choice(_OPTIONS)
        self._folder = opened.enter_context(tempfile.TemporaryDirectory()) if rng.random() < 0.3 else None
        self.db = self._connected()
        opened.callback(lambda: self.db.close())
        self._duck = opened.enter_context(duckdb.connect(config={"threads": 1}))
        self.now = self._arrived = 0
        self.held: dict[str, list[Row]] = {name: [] for name in _RELATIONS}
        for name in _RELATIONS:
            self.db.execute(f"CREATE RELATION {name} (k INTEGER, v INTEGER, t TEXT)")
            self._duck.execute(f"CREATE TABLE {name} (k BIGINT, v BIGINT, t VARCHAR)")
        self.db.execute(f"CREATE STREAM S (k INTEGER, v INTEGER, t TEXT); {_VIEWS}")
        self._duck.execute("CREATE TABLE S (k BIGINT, v BIGINT, t VARCHAR, ts BIGINT, number BIGINT)")

    def _connected(self) -> minidsms.Connection:
        return minidsms.connect(*([self._folder] if self._folder else []), literal_limit=None, **self.options)

    def asked(self, text: str, number: int) -> Asked | None:
        """None where one of the two refuses it."""
        if len(text) > _MOST_CHARACTERS:
            return None
        try:
            self._duck.execute(f"EXPLAIN {_read(text, 1)}")
            return Asked(self.db, _read(text, 0), self._rng.choice((0, 1, -1)), number)
        except (minidsms.CqlError, duckdb.Error):
            return None

    def change(self) -> None:
        """Go on by an instant: rows come and go, elements arrive; and the folder may be opened again."""
        rng = self._rng
        self.now += 1
        for name, held in self.held.items():
            coming = [self._row() for _ in range(rng.randint(int(self.now == 1), 4))]
            going = [held.pop(rng.randrange(len(held))) for _ in range(rng.choice((0, 0, 1, 2))) if held]
            coming = [row for row in coming if row not in going]
            signs = [-1] * len(going) + [1] * len(coming)
            if signs:
                self.db.push(name, going + coming, ts=self.now, sign=signs)
            held += coming
            self._duck.execute(f"DELETE FROM {name}")
            if held:
                self._duck.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", held)
        for _ in range(rng.randint(int(self.now == 1), 4)):
            row = self._row()
            self.db.push("S", row, ts=self.now)
            self._duck.execute("INSERT INTO S VALUES (?, ?, ?, ?, ?)", (*row, self.now, self._arrived))
            self._arrived += 1
        self.db.advance(self.now)
        if isinstance(self.db, DurableConnection) and rng.random() < 0.6:
            if rng.random() < 0.7:
                self.db.checkpoint()
            self.db.close()
            self.db = self._connected()

    def _row(self) -> Row:
        rng = self._rng
        return rng.choice((0, 1, 2, 3, None)), rng.choice((0, 1, 2, None)), rng.choice(("a", "b", "", None))

    def answered(self, text: str) -> Answer:
        """By DuckDB, now."""
        return Counter(map(plain, self._duck.execute(_read(text, 1, self.now)).fetchall()))
