"""Queries over thousands of rows against DuckDB's answers to the same text: `python -m tests.long.beside_duckdb`.

Each case takes a query, what it reads, settings and a feed from its seed. The feed comes in pushes of one to 1,500
rows, and now and then row by row, where a relation loses its least or greatest rows: so structures grow, shrink, give
memory back, and count or fetch what is far from what is shown, as they do not in the small cases that the definition
answers. After each part the changes fetched so far must come to what DuckDB answers about the rows that are there. A
difference, or a call that raises, is told with the command that shows it again, and the exit status is 1.

Invariant: what runs depends on the seed alone.  docs/semantics R1 to R7.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

import minidsms

Row = tuple[Any, ...]
Answer = Counter[Row]

DECLARED = "CREATE STREAM S (k INTEGER, v INTEGER, t TEXT); CREATE RELATION Rel (k INTEGER, v INTEGER, t TEXT);"
SOURCES = {
    "Rel": "SELECT k, v, t FROM Rel",
    "S": "SELECT k, v, t FROM S",
    "S [RANGE 400]": "SELECT k, v, t FROM S WHERE ts > {now} - 400",
    "S [RANGE 3000]": "SELECT k, v, t FROM S WHERE ts > {now} - 3000",
    "S [RANGE 2000 SLIDE 500]":
        "SELECT k, v, t FROM S WHERE ts > {now} // 500 * 500 - 2000 AND ts <= {now} // 500 * 500",
    "S [ROWS 700]": "SELECT k, v, t FROM (FROM S ORDER BY number DESC LIMIT 700)",
    "S [ROWS 5000]": "SELECT k, v, t FROM (FROM S ORDER BY number DESC LIMIT 5000)",
    "S [PARTITION BY k ROWS 2]":
        "SELECT k, v, t FROM S QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY number DESC) <= 2",
}  # fmt: skip
"""What is read, and the text that gives the same rows of a table of all that has come."""
FIRST_ROWS = {
    "SELECT k, v, t FROM {A} AS a ORDER BY v DESC LIMIT {n} OFFSET {m}":
        "v DESC NULLS LAST, k NULLS FIRST, t NULLS FIRST",
    "SELECT t, k FROM {A} AS a ORDER BY t LIMIT {n} OFFSET {m}": "t NULLS LAST, k NULLS FIRST",
    "SELECT k, COUNT(*) AS c FROM {A} AS a GROUP BY k ORDER BY c DESC LIMIT {n}": "c DESC NULLS LAST, k NULLS FIRST",
    "SELECT t, SUM(v) AS c FROM {A} AS a GROUP BY t ORDER BY c LIMIT {n}": "c NULLS LAST, t NULLS FIRST",
}  # fmt: skip
"""Queries, and how DuckDB is told to sort as R6 says."""
QUERIES = (
    *FIRST_ROWS,
    "SELECT k, COUNT(*), SUM(v), MIN(v), MAX(v), MIN(t), MAX(t) FROM {A} AS a GROUP BY k",
    "SELECT t, COUNT(v), COUNT(DISTINCT v), COUNT(DISTINCT k), MAX(k) FROM {A} AS a GROUP BY t",
    "SELECT COUNT(*), SUM(v), MIN(t), MAX(t), MIN(v), COUNT(DISTINCT t) FROM {A} AS a",
    "SELECT DISTINCT t, v % 7 AS m FROM {A} AS a",
    "SELECT k, MEDIAN(v), QUANTILE_DISC(v, 0.3) FROM {A} AS a WHERE v IS NOT NULL GROUP BY k",
    "SELECT k, COUNT(*) FROM {A} AS a GROUP BY k HAVING COUNT(*) > 3 AND MAX(v) > 20",
    "SELECT k, AVG(c) AS m FROM (SELECT k, t, COUNT(*) AS c FROM {A} AS a GROUP BY k, t) AS g GROUP BY k",
    "SELECT k, v, t, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, t) AS r FROM {A} AS a QUALIFY r <= 3",
    "SELECT DISTINCT k, v, t, RANK() OVER (PARTITION BY k ORDER BY v) AS r FROM {A} AS a QUALIFY r <= 4",
    "SELECT DISTINCT k, v, DENSE_RANK() OVER (PARTITION BY k ORDER BY t DESC) AS r FROM {A} AS a",
    "SELECT k, v, SUM(v) OVER (PARTITION BY t) AS s FROM {A} AS a",
    "SELECT a.k, a.v, b.t FROM {A} AS a JOIN {B} AS b ON a.k = b.k AND a.v = b.v",
    "SELECT a.k, a.v, b.t FROM {A} AS a LEFT JOIN {B} AS b ON a.k = b.k AND a.v = b.v",
    "SELECT a.k, a.v, b.t, b.k FROM {A} AS a FULL JOIN {B} AS b ON a.v = b.v AND a.k = b.k",
    "SELECT a.v, COUNT(*) FROM {A} AS a JOIN {B} AS b ON a.t = b.t AND a.v = b.v GROUP BY a.v",
    "SELECT a.k, a.v, b.v, c.v FROM {A} AS a, {B} AS b, {C} AS c WHERE a.k = b.k AND b.v = c.v AND a.v = b.v",
    "SELECT k, v FROM {A} AS a WHERE EXISTS (SELECT 1 FROM {B} AS b WHERE b.k = a.k AND b.v > a.v)",
    "SELECT k, v FROM {A} AS a WHERE v NOT IN (SELECT v FROM {B} AS b WHERE b.k = a.k)",
    "SELECT k, v FROM {A} AS a WHERE v > (SELECT AVG(v) FROM {B} AS b WHERE b.k = a.k)",
    "SELECT k, v FROM {A} AS a WHERE NOT EXISTS (SELECT 1 FROM {B} AS b WHERE b.t = a.t AND b.v = a.v)",
    "SELECT k, (SELECT MAX(b.v) FROM {B} AS b WHERE b.t = a.t) AS m FROM {A} AS a",
    "SELECT k, v FROM {A} AS a EXCEPT SELECT k, v FROM {B} AS b",
    "SELECT k, v FROM {A} AS a EXCEPT ALL SELECT k, v FROM {B} AS b",
    "SELECT k, v FROM {A} AS a INTERSECT ALL SELECT k, v FROM {B} AS b",
    "SELECT k, v FROM {A} AS a UNION SELECT v, k FROM {B} AS b",
)
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {}, {"compilation": "at once"}, {"compilation": "off"}, {"adaptive": "off"}, {"threads": 2},
    {"batch_size": 700},
)  # fmt: skip
MOST = 400_000
"""Rows of an answer; a case with more ends there."""
_DIGITS = 6
"""Of FLOAT, compared: DuckDB sums as rows come."""


@dataclass
class Feed:
    """What has come: all elements of S, and the rows of Rel that are there."""

    rng: Random
    keys: int
    values: int
    ts: int = 1
    elements: list[Row] = field(default_factory=list)
    present: list[Row] = field(default_factory=list)

    def row(self) -> Row:
        drawn = self.rng.randrange(self.keys), self.rng.randrange(self.values), f"n{self.rng.randrange(400)}"
        return tuple(None if self.rng.random() < 0.03 else value for value in drawn)

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
            self.present += rows
        else:
            rng.shuffle(self.present)
            going, self.present = self.present[:size], self.present[size:]
            db.push("Rel", going, ts=[self.ts] * len(going), sign=-1)

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
                db.push("Rel", self.present.pop(), ts=self.ts, sign=-1)
            if rng.random() < 0.8:
                db.advance(self.ts)

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """All that has come, as tables."""
        numbered = [(*element, i) for i, element in enumerate(self.elements)]
        yield "S", _table(numbered, "k", "v", "t", "ts", "number")
        yield "Rel", _table(self.present, "k", "v", "t")


def _table(rows: Sequence[Row], *names: str) -> pa.Table:
    types = {name: pa.string() if name == "t" else pa.int64() for name in names}
    return pa.table({name: pa.array([row[i] for row in rows], types[name]) for i, name in enumerate(names)})


def rounded(answer: Answer) -> Answer:
    """Only rows that are there, floats to a few digits."""
    found: Answer = Counter()
    for row, n in answer.items():
        if n:
            found[tuple(round(value, _DIGITS) if isinstance(value, float) else value for value in row)] += n
    return found


def answered_by_duckdb(text: str, sources: dict[str, str], feed: Feed, now: int) -> Answer:
    """The rows of the query over what has come up to now."""
    order = FIRST_ROWS.get(text)
    if order is not None:
        text = f"{text[: text.rindex('ORDER BY')]}ORDER BY {order} {text[text.rindex('LIMIT') :]}"
    filled = text.format_map({name: f"({SOURCES[source].format(now=now)})" if name in "ABC" else source
                              for name, source in sources.items()})  # fmt: skip
    with duckdb.connect(config={"threads": 1}) as con:
        for name, table in feed.tables():
            con.register(name, table)
        return Counter(con.execute(filled).fetchall())


def difference_of(seed: int) -> str | None:
    """What differs in the case of this seed, in words."""
    rng = Random(seed)
    text = rng.choice(QUERIES)
    sources = {name: rng.choice((*SOURCES, "Rel", "Rel")) for name in "ABC"}
    sources |= {"n": str(rng.choice((1, 3, 10, 40, 300))), "m": str(rng.choice((0, 0, 2, 50)))}
    keys, values = (900, 2000) if "{B}" in text else (rng.choice((3, 40, 900)), rng.choice((30, 2000)))
    options, feed, net = rng.choice(OPTIONS), Feed(rng, keys, values), Counter[Row]()
    query_text = text.format_map(sources)
    with minidsms.connect(**options) as db:
        db.execute(DECLARED)
        query = db.query(query_text)
        for name in ("S", "Rel"):
            db.push(name, (1, 2, "n1"), ts=1)
        feed.elements.append((1, 2, "n1", 1))
        feed.present.append((1, 2, "n1"))
        for part in range(rng.choice((12, 25))):
            for _ in range(rng.choice((1, 1, 4))):
                if rng.random() < 0.3:
                    feed.trickle(db, rng.choice((20, 150)))
                else:
                    feed.push_many(db, rng.choice((1, 2, 30, 600, 1500)))
            now = feed.ts = feed.ts + rng.choice((0, 1, 500, 3000))
            db.advance(now)
            for change in query.fetch():
                net[tuple(change.row)] += change.sign
            expected, found = rounded(answered_by_duckdb(text, sources, feed, now)), rounded(net)
            if expected != found:
                missing, wrong = (expected - found).most_common(4), (found - expected).most_common(4)
                return f"{query_text}; {options}, part {part}, instant {now}\nmissing {missing}\nwrong {wrong}"
            if sum(expected.values()) > MOST:
                break
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of the first; the others follow")
    given = parser.parse_args(arguments)
    begun, failures = time.monotonic(), 0
    for seed in range(given.seed, given.seed + given.cases):
        try:
            difference = difference_of(seed)
        except Exception:
            difference = traceback.format_exc()
        if difference is not None:
            failures += 1
            print(f"{difference}\nagain: python -m tests.long.beside_duckdb --cases 1 --seed {seed}\n", flush=True)
    print(f"{given.cases} cases, {failures} of them differ, {time.monotonic() - begun:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
