"""Queries over thousands of rows against DuckDB's answers to the same text: `python -m tests.long.beside_duckdb`.

Each case takes a query, what it reads, settings and a feed from its seed (`beside_cases.py`). The feed comes in pushes
of one to 1,500 rows, and now and then row by row, where a relation loses its least or greatest rows: so structures
grow, shrink, give memory back, and count or fetch what is far from what is shown, as they do not in the small cases
that the definition answers. After each part the changes fetched so far must come to what DuckDB answers about the rows
that are there, and what ISTREAM or DSTREAM of the same query gives to the changes of their instants. A difference, or a
call that raises, is told with the command that shows it again, and the exit status is 1. So it is where a case never
ends, and the last kind and seed told are its.

Cases of the kind `nested` are others: random queries over few rows (`nested_beside.py`).

Invariant: what runs depends on the kind and the seed alone.  docs/semantics R1 to R7, S1.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

import minidsms
from minidsms.durability.connection import DurableConnection
from tests.long import nested_beside
from tests.long.asked import Answer, Asked, Row, plain
from tests.long.beside_cases import FIRST_ROWS, IN_OTHER_WORDS, KINDS, VIEWS, WIDE, Kind

_ARROW = {
    "t": pa.string(), "f": pa.float64(), "p": pa.decimal128(9, 2), "w": pa.timestamp("ms"), "b": pa.bool_(),
}  # fmt: skip
"""Types of columns; the others are INTEGER."""
_NEVER = 1 << 60
NESTED = "nested"
"""The kind of `nested_beside`: random queries over few rows."""
_HANGS_S = 900.0
"""A case that takes longer never ends."""


@dataclass
class Feed:
    """What has come: all elements of S, the rows of Rel that are there, and all changes of Rel."""

    rng: Random
    columns: Sequence[str]
    keys: int
    values: int
    ts: int = 1
    elements: list[Row] = field(default_factory=list)
    present: list[Row] = field(default_factory=list)
    changes: list[tuple[Row, int, int]] = field(default_factory=list)

    def begin(self, db: minidsms.Connection) -> None:
        row = (1, 2, "n1", 0.5, Decimal("1.50"), 0, True)[: len(self.columns)]
        for name in ("S", "Rel"):
            db.push(name, row, ts=1)
        self.elements.append((*row, 1))
        self._changed([row], 1)

    def row(self) -> Row:
        rng = self.rng
        drawn: Row = (rng.randrange(self.keys), rng.randrange(self.values), f"n{rng.randrange(400)}")
        if len(self.columns) > len(drawn):
            number = Decimal(rng.randrange(-500, 9000)) / 100
            instant = rng.randrange(600) * 60_000
            drawn = (*drawn, rng.randrange(-400, 4000) / 4, number, instant, rng.random() < 0.5)
        return tuple(None if rng.random() < 0.03 else value for value in drawn)

    def _changed(self, rows: Sequence[Row], sign: int) -> None:
        self.changes += [(row, self.ts, sign) for row in rows]
        if sign > 0:
            self.present += rows

    def push_many(self, db: minidsms.Connection, size: int) -> None:
        """Elements, rows that come, or rows that go."""
        kind, rng = self.rng.random(), self.rng
        self.ts += 1
        if kind < 0.6:
            rows, instants = [self.row() for _ in range(size)], []
            for _ in rows:
                self.ts += rng.choice((0, 0, 1))
                instants.append(self.ts)
            db.push("S", rows, ts=instants)
            self.elements += [(*row, ts) for row, ts in zip(rows, instants)]
        elif kind < 0.8 or not self.present:
            rows = [self.row() for _ in range(size)]
            db.push("Rel", rows, ts=[self.ts] * size)
            self._changed(rows, 1)
        else:
            rng.shuffle(self.present)
            going, self.present = self.present[:size], self.present[size:]
            db.push("Rel", going, ts=[self.ts] * len(going), sign=-1)
            self._changed(going, -1)

    def trickle(self, db: minidsms.Connection, size: int) -> None:
        """Row by row, elements and, from one end of an order, rows that go."""
        by, rng = self.rng.randrange(3), self.rng
        self.present.sort(key=lambda row: (row[by] is not None, row[by] or (0 if by < 2 else "")))
        if rng.random() < 0.5:
            self.present.reverse()
        for _ in range(size):
            self.ts += 1
            if rng.random() < 0.3:
                row = self.row()
                db.push("S", row, ts=self.ts)
                self.elements.append((*row, self.ts))
            elif self.present:
                row = self.present.pop()
                db.push("Rel", row, ts=self.ts, sign=-1)
                self._changed([row], -1)
            if rng.random() < 0.8:
                db.advance(self.ts)

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """All that has come, as tables."""
        numbered = [(*element, i) for i, element in enumerate(self.elements)]
        yield "S", _table(numbered, *self.columns, "ts", "number")
        yield "Rel", _table(self.present, *self.columns)
        yield "Log", _table(self._log(), *self.columns, "ts", "gone")

    def _log(self) -> list[Row]:
        """Each row that Rel has had, and from when on and until when."""
        there: dict[Row, list[int]] = {}
        found = []
        for row, ts, sign in self.changes:
            if sign > 0:
                there.setdefault(row, []).append(ts)
            else:
                found.append((*row, there[row].pop(), ts))
        return found + [(*row, since, _NEVER) for row, all_since in there.items() for since in all_since]


def _table(rows: Sequence[Row], *names: str) -> pa.Table:
    types = [_ARROW.get(name, pa.int64()) for name in names]
    return pa.table({name: pa.array([row[i] for row in rows], types[i]) for i, name in enumerate(names)})


def answered_by_duckdb(text: str, kind: Kind, sources: Mapping[str, str], feed: Feed, now: int) -> Answer:
    """The rows of the query over what has come up to now."""
    order = FIRST_ROWS.get(text)
    if order is not None:
        text = f"{text[: text.rindex('ORDER BY')]}ORDER BY {order} {text[text.rindex('LIMIT') :]}"
    text = IN_OTHER_WORDS.get(text, text)
    filled = text.format_map({name: f"({kind.sources[source].format(now=now)})" if name in "ABC" else source
                              for name, source in sources.items()} | {"now": str(now)})  # fmt: skip
    with duckdb.connect(config={"threads": 1}) as con:
        for name, table in feed.tables():
            con.register(name, table)
        return Counter(map(plain, con.execute(filled).fetchall()))


class Place:
    """The connection of a case, which may have a folder."""

    def __init__(self, rng: Random, kind: Kind, options: dict[str, Any]) -> None:
        self._rng, self._options = rng, options
        self._folder = tempfile.TemporaryDirectory() if kind.in_folder else None
        self.db = self._opened()
        self.db.execute(f"CREATE STREAM S ({kind.columns}); CREATE RELATION Rel ({kind.columns})")
        if kind.columns == WIDE:
            for name, text in VIEWS.items():
                self.db.execute(f"CREATE VIEW {name} AS {text}")

    def _opened(self) -> minidsms.Connection:
        return minidsms.connect(*([self._folder.name] if self._folder else []), **self._options)

    def move(self, feed: Feed, asked: Asked) -> None:
        """In a folder, now and then make a checkpoint, while rows come and are fetched, and open it again."""
        if not isinstance(self.db, DurableConnection):
            return
        db, left, rng = self.db, self._rng.randrange(12), self._rng

        def go_on() -> None:
            nonlocal left
            left -= 1
            if left >= 0:
                feed.push_many(db, rng.choice((1, 30, 300)))
            if left >= 0 and rng.random() < 0.3:
                asked.fetch(db)

        if rng.random() < 0.5:
            db.checkpoints._go_on = go_on  # type: ignore[method-assign]
            db.checkpoint()
            left = 0
        if rng.random() < 0.4:
            db.close()
            self.db = self._opened()

    def close(self) -> None:
        self.db.close()
        if self._folder:
            self._folder.cleanup()


def difference_of(seed: int, name: str = "plain") -> str | None:
    """What differs in the case of this kind and seed, in words."""
    if name == NESTED:
        return nested_beside.difference_of(seed)
    rng, kind = Random(seed), KINDS[name]
    text = rng.choice(kind.queries)
    sources = {name: rng.choice((*kind.sources, "Rel", "Rel")) for name in "ABC"}
    sources |= {"n": str(rng.choice((1, 3, 10, 40, 300))), "m": str(rng.choice((0, 0, 2, 50)))}
    is_joined = "{B}" in text or "{A}" not in text
    keys, values = (900, 2000) if is_joined else (rng.choice((3, 40, 900)), rng.choice((30, 2000)))
    options = rng.choice(kind.options)
    if kind.columns == WIDE:
        keys = max(keys, 40)  # rows that share a partition cost their square
    feed = Feed(rng, [column.split()[0] for column in kind.columns.split(", ") if column[0].isalpha()], keys, values)
    place = Place(rng, kind, options)
    try:
        sign = 0 if kind.columns != WIDE else rng.choice((0, 1, -1))
        query_text = text.format_map(sources)
        asked = Asked(place.db, query_text, sign)
        feed.begin(place.db)
        for part in range(rng.choice((12, 25) if kind.columns != WIDE else (8, 14))):
            for _ in range(rng.choice((1, 1, 4))):
                if rng.random() < 0.3:
                    feed.trickle(place.db, rng.choice((20, 150)))
                else:
                    feed.push_many(place.db, rng.choice((1, 2, 30, 600, 1500)))
            place.move(feed, asked)
            now = feed.ts = feed.ts + rng.choice((0, 1, 500, 3000))
            place.db.advance(now)
            found, expected = asked.fetch(place.db), answered_by_duckdb(text, kind, sources, feed, now)
            if expected != found or asked.difference:
                missing, wrong = (expected - found).most_common(4), (found - expected).most_common(4)
                streamed = f"\n{sign:+} as a stream {asked.difference.most_common(4)}" if asked.difference else ""
                where = f"{query_text}; {options}, part {part}, instant {now}"
                return f"{where}\nmissing {missing}\nwrong {wrong}{streamed}"
            if sum(expected.values()) > kind.most:
                break
    finally:
        place.close()
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of the first; the others follow")
    parser.add_argument("--kind", choices=[*KINDS, NESTED], help="of all; without it the kinds take turns")
    given = parser.parse_args(arguments)
    begun, failures, kinds = time.monotonic(), 0, [given.kind] if given.kind else [*KINDS, NESTED]
    for seed in range(given.seed, given.seed + given.cases):
        kind = kinds[seed % len(kinds)]
        print(f"\r{kind} {seed} ", end="", file=sys.stderr)
        faulthandler.dump_traceback_later(_HANGS_S, exit=True, file=2)
        try:
            difference = difference_of(seed, kind)
        except Exception:
            difference = traceback.format_exc()
        finally:
            faulthandler.cancel_dump_traceback_later()
        if difference is not None:
            failures += 1
            again = f"python -m tests.long.beside_duckdb --kind {kind} --cases 1 --seed {seed}"
            print(f"{difference}\nagain: {again}\n", flush=True)
    print(f"{given.cases} cases, {failures} of them differ, {time.monotonic() - begun:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
