"""A statement knows where it stands in its text: a connection with a folder keeps just that piece of it."""

from __future__ import annotations

import pytest

from minidsms.cql.parser import parse
from minidsms.testing.generators import random_case

TEXTS = {
    "SELECT a FROM S ORDER BY a DESC NULLS FIRST LIMIT 3",
    "SELECT a FROM S ORDER BY a LIMIT 3 OFFSET 2",
    "ISTREAM (SELECT a FROM S [ROWS 3] ORDER BY a LIMIT 1)",
    "SELECT a FROM S [SESSION 4 PARTITION BY a]",
    "SELECT a FROM S [HOP 3 EVERY 4] WHERE a IN (1, 2) HAVING a = 1",
    "SELECT DISTINCT ON (a) a, b FROM S ORDER BY b DESC",
    "SELECT DISTINCT ON (a) a, b FROM S ORDER BY b DESC LIMIT 3 OFFSET 1",
    "SELECT DISTINCT ON (a) a FROM S",
    "SELECT a FROM S ORDER BY a OFFSET 1 ROW FETCH FIRST 3 ROWS ONLY",
    "SELECT RANK() OVER w FROM S WINDOW w AS (ORDER BY a), v AS (w ROWS 3 PRECEDING)",
    "SELECT a FROM S QUALIFY RANK() OVER (ORDER BY a) = 1",
    "SELECT a FROM S GROUP BY ALL",
    "SELECT * EXCLUDE (a) REPLACE (b + 1 AS b) FROM S",
    "FROM S SELECT a WHERE a > 1",
    "FROM S [ROWS 3]",
    "SELECT ARRAY_AGG(a ORDER BY b) FROM S GROUP BY b",
    "SELECT [1, 2] FROM S NATURAL JOIN T",
    "WITH U AS (SELECT a FROM S) SELECT a FROM U",
    "SELECT a FROM S AS x [ROWS 3]",
    "SELECT a FROM (SELECT a FROM S) AS x [ROWS 3]",
    "SELECT a FROM (S) AS x [ROWS 3]",
    "SELECT a FROM S GROUP BY a::VARCHAR(3)",
    "SELECT a FROM S GROUP BY a::INTEGER[]",
    "VALUES (1, 2), (3, 4)",
} | {random_case(seed).query for seed in range(150)}


@pytest.mark.parametrize("before", ["", "CREATE VIEW V AS ", "CREATE QUERY q AS "])
def test_a_statement_spans_its_text(before: str) -> None:
    for text in TEXTS:
        statement = before + text
        (first, second) = parse(f"{statement}; {statement};")
        assert first.span == (0, len(statement)), statement
        assert second.span == (len(statement) + 2, 2 * len(statement) + 2), statement


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER STREAM S ADD a DECIMAL(3, 1)",
        "ALTER STREAM S ADD COLUMN a ARRAY<MAP(TEXT, INTEGER)>",
        "ALTER STREAM S ADD COLUMN a INTEGER[]",
        "CREATE STREAM S (a MAP(TEXT, DECIMAL(3, 1))) SLACK 3 SECONDS",
        "CREATE RELATION R (a INTEGER) KEY (a)",
        "INSERT INTO S (a) VALUES (1), (2)",
        "SET memory_limit = -5",
    ],
)
def test_a_statement_that_is_no_query_spans_its_text(statement: str) -> None:
    assert [found.span for found in parse(f"{statement}; {statement}")] == [
        (0, len(statement)),
        (len(statement) + 2, 2 * len(statement) + 2),
    ]
