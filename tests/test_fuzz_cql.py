"""Whatever the text, a connection answers it or raises an Error; nothing else escapes, and it goes on working."""

from __future__ import annotations

import re
from random import Random

import pytest

import minidsms
from minidsms.testing.generators import declaration
from minidsms.testing.grammar import RELATIONS, STREAMS, Grammar
from minidsms.testing.user_definitions import create_all
from tests.seeds import seeds

TOKEN = re.compile(r"\w+|'[^']*'|<>|<=|>=|\S")
WORDS = TOKEN.findall(
    "SELECT FROM WHERE GROUP BY HAVING DISTINCT ALL ANY NOT IN EXISTS UNION EXCEPT INTERSECT JOIN LEFT ON AS NULL "
    "ISTREAM RSTREAM DSTREAM ROWS RANGE NOW SLIDE PARTITION UNBOUNDED CASE WHEN END CAST COUNT SUM LAST INTERVAL DAY "
    "k v x t b at d Sa Sb Sc Sd Rel ( ) [ ] , . * + - / % = < > ; ' 0 1 2.5 9223372036854775808 1e400 'a' ` $ \\ \x00"
)

WEIRD = [
    "SELECT 1 FROM Sa [NOW]",
    "SELECT NULL FROM Sa [NOW]",
    "SELECT NULL, NULL AS a, NULL AS a FROM Sa [ROWS 1] GROUP BY k",
    "SELECT k, k, k AS k FROM Sa [ROWS 2]",
    "SELECT * FROM Sa [ROWS 2] AS a, Sa [ROWS 2] AS b",
    "SELECT DISTINCT * FROM Sa [ROWS 2] AS a, Rel AS b, Sa [NOW] AS c WHERE a.k = c.k",
    "SELECT COUNT(*) FROM Sa [ROWS 2] HAVING COUNT(*) > 1",
    "SELECT 1 FROM Sa [ROWS 2] HAVING MAX(v) IS NOT NULL",
    "SELECT k FROM Sa [ROWS 2] GROUP BY k, k, v",
    "SELECT COUNT(*) FROM Sa [ROWS 2] GROUP BY 1 = 1",
    "SELECT 'a' || NULL, NULL + NULL, - NULL FROM Sa [NOW]",
    "SELECT (SELECT 1 FROM Sb [NOW]) FROM Sa [NOW]",
    "SELECT (SELECT COUNT(*) FROM Sb [ROWS 2] AS b WHERE b.k = a.k) FROM Sa [ROWS 2] AS a",
    "SELECT k FROM Sa [ROWS 2] AS a WHERE EXISTS (SELECT * FROM Sb [ROWS 2] AS b WHERE EXISTS (SELECT * FROM Sc [NOW] "
    "AS c WHERE c.k = b.k AND c.k = a.k))",
    "SELECT SUM((SELECT MAX(b.v) FROM Sb [ROWS 2] AS b WHERE b.k = a.k)) FROM Sa [ROWS 2] AS a",
    "SELECT a.k FROM Sa [ROWS 2] AS a GROUP BY a.k HAVING EXISTS (SELECT * FROM Sb [NOW] AS b WHERE b.k = a.k)",
    "SELECT a.k FROM Sa [ROWS 2] AS a LEFT JOIN Rel AS r ON r.k = (SELECT MAX(k) FROM Sb [NOW] AS b WHERE b.v = a.v)",
    "SELECT * FROM Sa [ROWS 2] WHERE k IN (SELECT a FROM Rel WHERE a IN (SELECT v FROM Sb [NOW]))",
    "SELECT * FROM Sa [ROWS 2] WHERE k > ALL (SELECT a FROM Rel UNION SELECT k FROM Sc [NOW])",
    "SELECT CASE WHEN EXISTS (SELECT * FROM Rel) THEN 1 ELSE (SELECT MIN(a) FROM Rel) END FROM Sa [NOW]",
    "SELECT * FROM (SELECT * FROM (SELECT * FROM Sa) [ROWS 1] AS a) [ROWS 1] AS b",
    "SELECT 1 FROM Rel",
    "SELECT COUNT(*) FROM Rel",
    "SELECT * FROM Rel UNION ALL SELECT * FROM Rel",
    "RSTREAM (SELECT * FROM Rel)",
    "ISTREAM (SELECT 1 FROM Sa [NOW] WHERE FALSE)",
    "SELECT * FROM Sa [NOW] WHERE NULL",
    "SELECT * FROM Sa [NOW] WHERE 1 / 0 = 1 OR 9223372036854775807 + 1 > 0",
    "SELECT * FROM Sa [RANGE 9223372036854775807]",
    "SELECT * FROM Sa [ROWS 9223372036854775807 SLIDE 9223372036854775807]",
    "SELECT * FROM Sa [RANGE 9223372036854775807 SLIDE 9223372036854775807]",
    "SELECT LAST(k) FROM Sa [NOW], Sb [NOW]",
    "SELECT Sa FROM Sa [NOW]",
    "SELECT k FROM Sa [NOW] WHERE Sa IN (SELECT * FROM Sa [ROWS 2])",
    "SELECT COUNT(DISTINCT k), SUM(DISTINCT k), AVG(DISTINCT x) FROM Sa [ROWS 3] GROUP BY t",
    "SELECT ua_span(k), uf_tag(t, COUNT(*)) FROM Sa [ROWS 3] GROUP BY t",
    "SELECT uf_twice(uf_twice(k)) FROM Sa [NOW] WHERE uf_odd(k, v)",
]


def connection() -> minidsms.Connection:
    db = minidsms.connect(batch_size=2)
    create_all(db)
    for name in (*STREAMS, *RELATIONS):
        db.execute(declaration(name))
    return db


def feed(db: minidsms.Connection, ts: int) -> None:
    """A row for every stream and the relation; queries may fail, the connection may not."""
    db.push("Rel", [(1, 2, "a")], ts=ts)
    db.push("Sa", [(1, 2, 0.5, "a"), (None, 1, None, "b")], ts=ts)
    db.push("Sb", [(1, 2, "a")], ts=ts)
    db.push("Sc", [(1, True)], ts=ts)
    db.push("Sd", [(1, 5, 3, None)], ts=ts)
    db.advance(ts)


def tried(db: minidsms.Connection, text: str, ts: int) -> bool:
    """Run the text, feed what it made, take its answers; whether it was accepted."""
    try:
        db.query(text)
    except minidsms.Error as error:
        assert str(error)
        return False
    feed(db, ts)
    for query in list(db.queries.values()):
        try:
            query.explain()
            query.fetch()
        except minidsms.Error:
            pass
        query.close()
    return True


@pytest.mark.parametrize("text", WEIRD)
def test_weird_queries_run_or_are_refused(text: str) -> None:
    with connection() as db:
        for ts in (1, 2):
            tried(db, text, ts)


def mutated(rng: Random, text: str) -> str:
    """The text with up to three places changed: words lost, others put in, the end repeated."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        at = rng.randrange(len(tokens) + 1)
        new = rng.choices(WORDS, k=rng.randint(0, 2)) if rng.random() < 0.7 else tokens[-2:]
        tokens[at : at + rng.randint(0, 2)] = new
    return " ".join(tokens)


@pytest.mark.parametrize("start", seeds(0, 600, 100))
def test_mutated_queries_raise_nothing_but_errors_of_minidsms(start: int) -> None:
    accepted = 0
    with connection() as db:
        for seed in range(start, start + 100):
            rng = Random(seed)
            text = mutated(rng, Grammar(rng).query())
            try:
                accepted += tried(db, text, seed)
            except Exception as error:
                raise AssertionError(f"seed {seed}: {text}") from error
    assert accepted > 5


def test_statements_of_random_words_raise_nothing_but_errors_of_minidsms() -> None:
    starts = ("SELECT", "CREATE VIEW V AS SELECT", "CREATE STREAM", "SET", "DROP", "EXPLAIN SELECT", "SHOW", "DESCRIBE")
    with connection() as db:
        for seed in range(500):
            rng = Random(seed)
            text = " ".join([rng.choice(starts), *rng.choices(WORDS, k=rng.randint(0, 9))])
            try:
                db.execute(text)
            except minidsms.Error as error:
                assert str(error)
        feed(db, 1)
