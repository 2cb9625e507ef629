"""What is written as in other systems answers as the definition says, over streams: names of the select list in WHERE,
months, lengths of time, STRUCTs in braces, firsts and lasts by an order.
"""

from __future__ import annotations

from random import Random

import pytest

from minidsms.testing.compare import check
from minidsms.testing.feeds import Advance, Push
from minidsms.testing.generators import Case

_DAY = 86_400_000
_JANUARY = 1_704_067_200_000
_LAST_OF_JANUARY = _JANUARY + 30 * _DAY
_COLUMNS = "k INTEGER, v INTEGER, x FLOAT, u TEXT, at TIMESTAMP"
TABLES = (
    f"CREATE STREAM A ({_COLUMNS})",
    f"CREATE STREAM B ({_COLUMNS})",
    "CREATE RELATION R (k INTEGER, name TEXT, since TIMESTAMP)",
)
QUERIES = [
    "ISTREAM (SELECT k, v * 2 AS w FROM A [RANGE 3] WHERE w > 2)",
    "SELECT k, v % 2 AS odd, COUNT(*) AS n FROM A [RANGE 4] WHERE odd = 1 GROUP BY k, odd HAVING n > 1",
    "SELECT A.k, A.v - B.v AS d FROM A [RANGE 4], B [RANGE 5] WHERE A.k = B.k AND d BETWEEN 0 AND 2",
    "SELECT A.k, A.k + 1 AS j FROM A [RANGE 4] LEFT JOIN R ON A.k = R.k WHERE j > 1",
    "SELECT k, v AS a, (SELECT MAX(v) FROM B [RANGE 3] WHERE B.k = A.k) AS m FROM A [RANGE 3] WHERE m >= a",
    "SELECT k, x AS y FROM A [ROWS 4] WHERE y IN (SELECT x FROM B [ROWS 4])",
    "SELECT k, v + 1 AS w, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, x, u) AS r FROM A [RANGE 5] WHERE w "
    "< 4 QUALIFY r = 1",
    "SELECT k, v + 1 AS w FROM A [RANGE 5] ORDER BY w * -1, k LIMIT 3",
    "SELECT v % 2 AS o, k AS kk, SUM(x) AS s FROM A [RANGE 4] WHERE o = 1 AND kk > 0 GROUP BY ROLLUP (o, kk)",
    "SELECT k, u || 'x' AS w FROM A [PARTITION BY k ROWS 1] WHERE w LIKE 'a%'",
    "SELECT A.k FROM A [RANGE 4], B [RANGE 4] WHERE B.at BETWEEN A.at AND A.at + INTERVAL '1 month'",
    "SELECT A.k FROM A [RANGE 4] WHERE NOT EXISTS (SELECT * FROM B [RANGE 6] WHERE B.k = A.k AND B.at > A.at "
    "AND B.at <= A.at + INTERVAL (v) MONTHS)",
    "SELECT at + INTERVAL '1 month' AS a, at - INTERVAL '1 year 2 days' AS b, at + v * INTERVAL '1 month' AS "
    "c FROM A [RANGE 3] WHERE a > TIMESTAMP '2024-03-01'",
    "SELECT TIME_BUCKET(INTERVAL '2 months', at) AS b, COUNT(*), SUM(v) FROM A [RANGE 6] GROUP BY b",
    "SELECT k, MEDIAN(at - TIMESTAMP '2024-02-01') AS m, STDDEV(at - TIMESTAMP '2024-02-01'), "
    "QUANTILE_CONT(at - TIMESTAMP '2024-02-01', 0.3) FROM A [RANGE 5] GROUP BY k",
    "SELECT k, MEDIAN(at - TIMESTAMP '2024-02-01') OVER (PARTITION BY k ORDER BY v, x, u, at ROWS 2 "
    "PRECEDING) FROM A [ROWS 5]",
    "SELECT (at - TIMESTAMP '2024-02-01') * x AS a, (at - TIMESTAMP '2024-02-01') / x AS b, SIGN(at - "
    "TIMESTAMP '2024-02-20') FROM A [ROWS 3]",
    "SELECT k, {'v': v, 'u': u}.v AS w FROM A [RANGE 3] WHERE w > 1 AND u SIMILAR TO '(a|b)%'",
    "SELECT k, FIRST(v ORDER BY x, at) AS f, LAST(u ORDER BY at DESC, x) AS l FROM A [RANGE 5] GROUP BY k",
    "SELECT k, LISTAGG(u, '-') WITHIN GROUP (ORDER BY x) FILTER (WHERE v > 1) FROM A [RANGE 5] GROUP BY k",
    "SELECT k, SUM(v) AS total, COUNT(*) FILTER (WHERE u = 'a') AS n FROM A [TUMBLE 3 SECONDS] GROUP BY k",
    "SELECT DISTINCT k, v > 1 AS big FROM A [RANGE 4] WHERE big OR v IS NULL",
    "SELECT k FROM A [RANGE 5] WHERE at > (SELECT MAX(since) - INTERVAL '1 month' FROM R)",
    "SELECT k, LIST_FILTER([v, k], lambda e: e > 1) AS l FROM A [ROWS 4] WHERE CARDINALITY(l) > 0",
    "DSTREAM (SELECT k, at + INTERVAL '1 quarter' AS q FROM A [RANGE 2] WHERE q < TIMESTAMP '2024-06-01')",
    "SELECT A.k, a.at - INTERVAL '1 month' AS b FROM A [RANGE 3] JOIN R ON R.since >= A.at - INTERVAL '1 "
    "month' AND R.k = A.k",
    "SELECT k, v AS w FROM A [ROWS 3] WHERE w = 1 UNION SELECT k, v + 1 AS w FROM B [ROWS 3] WHERE w = 1",
    "SELECT k, AVG(x) AS m FROM (SELECT k, x * 2 AS x, v AS y FROM A [RANGE 4] WHERE y > 0) WHERE k < 3 GROUP BY k",
    "SELECT window_start, v * 2 AS w, COUNT(*) FROM A [TUMBLE 3] WHERE w > 1 GROUP BY window_start, w",
    "SELECT k, v AS w FROM A [SESSION 2 PARTITION BY k] WHERE w > 0",
]

HALF_JOINS = [
    "SELECT k, v FROM A [RANGE 4] SEMI JOIN B [RANGE 3] USING (k)",
    "SELECT A.k, A.v FROM A [ROWS 4] LEFT ANTI JOIN B [ROWS 3] ON A.k = B.k AND A.v < B.v",
    "SELECT a.k, B.v FROM A [RANGE 4] AS a SEMI JOIN R ON a.k = R.k JOIN B [ROWS 3] ON B.k = a.k "
    "ANTI JOIN R AS r ON r.k = B.v",
    "SELECT k, COUNT(*) FROM R ANTI JOIN A [RANGE 2] USING (k) GROUP BY k",
    "SELECT v FROM A [RANGE 5] AS a WHERE v IN (SELECT B.v FROM B [ROWS 4] SEMI JOIN R ON R.k = B.k AND R.k <> a.k)",
    "RSTREAM (SELECT * FROM A [NOW] SEMI JOIN B [PARTITION BY k ROWS 1] ON A.k IS NOT DISTINCT FROM B.k)",
]

COLUMN_NAMES = [
    "SELECT x, s.y, u FROM A [PARTITION BY x ROWS 2] AS s (x, y, z) WHERE y > 0",
    "SELECT a.i, b.i AS j, name FROM A a (i) [RANGE 3], R AS b (i) WHERE a.i = b.i AND a.ts < b.since",
    "SELECT i, MAX(ts) FROM A [ROWS 4] AS s (i, j, x, u, ts) GROUP BY i",
    "SELECT COUNT(*) FROM (SELECT k, v FROM A WHERE v > 0) [ROWS 3] AS s (w) WHERE w = 1",
    "WITH P AS (SELECT k, v FROM A WHERE v > 0) SELECT v, SUM(k) FROM P [ROWS 3] AS s (v, k) GROUP BY v",
    "SELECT s.i, t.j FROM A [RANGE 4] AS s (i) ASOF LEFT JOIN B AS t (i, j) ON s.i = t.i AND s.ts >= t.ts",
]

ROWS = [
    "SELECT k, v FROM A [ROWS 4] WHERE v BETWEEN SYMMETRIC k AND 1 OR x NOT BETWEEN SYMMETRIC 1.5 AND v",
    "SELECT k, u FROM A [RANGE 4] WHERE (k, v) NOT BETWEEN SYMMETRIC (2, 2) AND (1, v)",
    "SELECT s.k, t.v FROM A AS s ASOF JOIN B AS t ON s.k IS NOT DISTINCT FROM t.k AND s.ts >= t.ts",
    "SELECT s.k, t.v FROM A [RANGE 3] AS s ASOF LEFT JOIN B AS t ON t.k IS NOT DISTINCT FROM s.v AND s.u = t.u "
    "AND s.ts >= t.ts",
    "SELECT k, v, (k, v) < (2, v + k) AS a, (v, x, k) >= (1, 0.5, 2) AS b FROM A [ROWS 4]",
    "SELECT k, u FROM A [RANGE 4] WHERE (k, v) BETWEEN (1, 0) AND (2, 2) OR NOT (u, k) > ('ab', 1)",
    "SELECT A.k, B.v FROM A [RANGE 4] JOIN B [RANGE 4] ON A.k = B.k AND (A.v, A.x) <= (B.v, B.x)",
    "SELECT A.k, B.v FROM A [ROWS 3], B [ROWS 3] WHERE (A.k, A.v) IS NOT DISTINCT FROM (B.k, B.v)",
    "SELECT k, v FROM A [RANGE 3] WHERE (k, v) < ((SELECT MAX(k) FROM R), (SELECT MIN(v) FROM B [ROWS 2]))",
    "SELECT k FROM A [RANGE 4] WHERE (k, v) = ANY (SELECT k, v FROM B [RANGE 3])",
    "SELECT k FROM A [RANGE 4] WHERE (k, v) <> ALL (SELECT k, v FROM B [RANGE 3])",
]

LISTS = [
    "SELECT k, ARRAY(SELECT B.v FROM B [ROWS 4] WHERE B.k = A.k) AS l FROM A [ROWS 4]",
    "SELECT k, ARRAY(SELECT DISTINCT v % 3 FROM B [RANGE 3]) AS l FROM A [RANGE 3]",
    "SELECT k, ARRAY(SELECT B.u FROM B [ROWS 4] WHERE B.k > A.k AND B.v IS NOT NULL) AS l FROM A [ROWS 3]",
    "SELECT ARRAY(SELECT v FROM B [RANGE 3]) AS l, ARRAY(SELECT name FROM R) AS n",
    "SELECT k FROM A [RANGE 3] WHERE CARDINALITY(ARRAY(SELECT COUNT(*) FROM B [RANGE 3] GROUP BY k)) > 1",
    "SELECT k, ARRAY(SELECT k FROM B [ROWS 2] UNION SELECT v FROM B [ROWS 2]) AS l FROM A [ROWS 2]",
    "SELECT k, e FROM A [ROWS 3], UNNEST(ARRAY(SELECT v FROM B [ROWS 3])) AS e",
    "SELECT k, COUNT(*) FROM A [ROWS 3] GROUP BY k HAVING k = ANY (ARRAY(SELECT k FROM B [ROWS 3]))",
]


def _feed(rng: Random) -> tuple[Push | Advance, ...]:
    def row() -> tuple[int | float | str | None, ...]:
        days = _JANUARY + _DAY * rng.randrange(100) + rng.randrange(_DAY)
        at = rng.choice([None, days, days, _LAST_OF_JANUARY])
        return (
            rng.choice([0, 1, 2, 3, None]), rng.choice([0, 1, 2, 3, -1, None]), rng.choice([0.5, 1.5, -2.0, 0.0, None]),
            rng.choice(["a", "ab", "b", "cx", None]), at,
        )  # fmt: skip

    since = [_JANUARY + _DAY * rng.randrange(100) for _ in range(3)]
    steps: list[Push | Advance] = [Push("R", tuple((0, 1, (k, "a", day)) for k, day in enumerate(since)))]
    instant = 0
    for _ in range(10):
        instant += rng.choice([0, 1, 1, 2, 3])
        rows = tuple((instant, 1, row()) for _ in range(rng.randrange(1, 4)))
        steps.append(Push(rng.choice(["A", "A", "B"]), rows))
    return (*steps, Advance(instant + 9))


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_in_other_words_answers_as_the_definition_says(query: str) -> None:
    for seed in range(2):
        assert check(Case(TABLES, query, _feed(Random(seed)))) == "agreed"


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1000])
@pytest.mark.parametrize("query", [*HALF_JOINS, *COLUMN_NAMES, *ROWS, *LISTS])
def test_it_does_in_batches_of_every_size(query: str, batch_size: int) -> None:
    assert check(Case(TABLES, query, _feed(Random(batch_size))), batch_size=batch_size) == "agreed"
