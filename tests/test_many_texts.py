"""Functions of texts, lists and STRUCTs where nearly every row has another, by definition, in calls of any length."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import minidsms
from minidsms.testing.compare import check
from minidsms.testing.feeds import Advance, Push
from minidsms.testing.generators import Case

DECLARED = "CREATE STREAM S (t TEXT, l INTEGER[], w TEXT[], f FLOAT, b TEXT)"
MADE = "(SELECT *, STRUCT(a := f, b := b) AS r, MAP('k' := f, 'é' || t := 1.0) AS m FROM S [RANGE 1]) AS s"
EXPRESSIONS = (
    "UPPER(t)", "LOWER(t)", "t || '!'", "LENGTH(t)", "TRIM(t)", "SUBSTRING(t, 2, 3)", "REPLACE(t, 'ß', 's')",
    "t LIKE '%9%'", "t LIKE 'ß_%'", "t LIKE '%_'", "t LIKE ' %'", "t LIKE '%9'", "t LIKE '__'", "t LIKE ''",
    "t LIKE '%x!%%' ESCAPE '!'", "'a9b' LIKE t", "STARTS_WITH(t, 'ß')", "STARTS_WITH('ßx', t)",
    "TRY_CAST(t AS INTEGER)", "CAST(r.a AS TEXT)", "w[1] || t",
    "l[2]", "LIST_SUM(l)", "LEN(w)", "w[-1]", "LIST_DISTINCT(w)", "ARRAY_TO_STRING(w, ',')", "l[:2]", "r.a", "r.b",
    "m", "m['k']", "LEN(m)", "CAST(w AS TEXT)", "CAST(l AS FLOAT[])", "CAST(r AS TEXT)", "STRUCT(l := l, r := r)",
    "[t, r.b]", "TRANSFORM(l, x -> x + 1)", "FILTER(w, x -> x LIKE '%9%')", "LIST_CONCAT(l, l)",
)  # fmt: skip
QUERIES = (
    *(f"SELECT {e} AS c0 FROM {MADE}" for e in EXPRESSIONS),
    "SELECT u AS c0, COUNT(*) AS c1 FROM S [RANGE 1] AS s, UNNEST(s.w) AS u GROUP BY u",
    f"SELECT ARRAY_AGG(r ORDER BY t) AS c0, STRING_AGG(t, ',' ORDER BY t) AS c1 FROM {MADE} GROUP BY LEN(l)",
)
BEGINNINGS = ("", " ", "ß", "ŉ", "İi", "ıI", "\x00", "\t", "é\u0301", "😀", '"\\', "], [", "null", "  x%")


def _row(rng: random.Random, i: int) -> tuple[Any, ...]:
    def text() -> str | None:
        return None if rng.random() < 0.1 else rng.choice(BEGINNINGS) + rng.choice(("", str(i), f"{i} "))

    def or_null(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    length = rng.randrange(4)
    return (
        text(),
        or_null(tuple(or_null(rng.randrange(-i - 1, i + 1)) for _ in range(length))),
        or_null(tuple(text() for _ in range(length))),
        or_null(i / 7),
        text(),
    )


ROWS = [(1 + i // 90, 1, _row(random.Random(i), i)) for i in range(270)]
FEED = (Push("S", tuple(ROWS)), Advance(9))


@pytest.mark.parametrize("query", QUERIES)
def test_queries_answer_as_their_definition(query: str) -> None:
    case = Case((DECLARED,), query, FEED)
    for rows, batch_size in ((1, 1000), (None, 1), (None, 7), (7, 2), (None, 1000)):
        assert check(case, rows, batch_size=batch_size) == "agreed"


def test_columns_of_arrow_are_read_as_rows_are() -> None:
    declared = "CREATE STREAM S (t TEXT, l INTEGER[], w TEXT[], r STRUCT(a FLOAT, b TEXT))"
    struct = pa.struct([("a", pa.float64()), ("b", pa.string())])
    kinds = [pa.string(), pa.list_(pa.int64()), pa.list_(pa.string()), struct]
    t, l, w, f, b = zip(*(row for _, _, row in ROWS))
    r = [None if i % 9 == 8 else {"a": one, "b": other} for i, (one, other) in enumerate(zip(f, b))]
    arrays = [pa.array(values, kind) for values, kind in zip((t, l, w, r), kinds)]
    table = pa.table(arrays, names=list("tlwr"))
    for part in (table, table.slice(101, 77), table.filter(pa.array([i % 9 > 0 for i in range(270)]))):
        with minidsms.connect() as db:
            db.execute(declared)
            answer = db.query("SELECT * FROM S [RANGE 9]")
            db.push("S", part, ts=1)
            db.advance(1)
            found = answer.snapshot()
        with minidsms.connect() as db:
            db.execute(declared)
            answer = db.query("SELECT * FROM S [RANGE 9]")
            for row in part.to_pylist():
                db.push("S", tuple(row.values()), ts=1)
            db.advance(1)
            assert sorted(map(repr, answer.snapshot())) == sorted(map(repr, found))
