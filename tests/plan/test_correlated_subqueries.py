"""Subqueries that look at the enclosing row in any way: engine and definition agree, instant by instant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

import pytest

from minidsms import connect
from minidsms.cql.errors import CqlError, QueryError
from minidsms.testing.compare import check
from minidsms.testing.generators import Case, declaration, random_feed
from tests.seeds import seeds

WINDOWS = ("[RANGE 3]", "[RANGE 6]", "[ROWS 3]", "[RANGE 4 SLIDE 2]", "[RANGE UNBOUNDED]", "[NOW]")
CONDITIONS = (
    "b.v < a.v",
    "b.k = a.k AND b.v <> a.v",
    "b.v <= a.v OR b.k = a.k",
    "b.k IS NOT DISTINCT FROM a.k",
    "b.t >= a.t",
    "b.v + a.k > 2",
    "a.k IS NULL OR b.k > a.k",
    "b.k = a.k AND b.v > 1",
    "a.v > 1",
    "b.v < a.v AND b.v > (SELECT MIN(c.k) FROM Sc [RANGE 5] AS c)",
    "b.v < a.v AND EXISTS (SELECT * FROM Sc [RANGE 5] AS c WHERE c.k < a.k AND c.k <> b.k)",
    "b.v = (SELECT MAX(c.k) FROM Sc [RANGE 5] AS c WHERE c.k <= a.v)",
    "b.k NOT IN (SELECT c.k FROM Sc [RANGE 5] AS c WHERE c.k = a.k OR c.b)",
)
SUBQUERIES = (
    "(SELECT COUNT(*) FROM {b} AS b WHERE {c})",
    "(SELECT MAX(b.v) FROM {b} AS b WHERE {c})",
    "(SELECT SUM(b.v) + COUNT(b.k) FROM {b} AS b WHERE {c} HAVING COUNT(*) > 1)",
    "(SELECT COUNT(DISTINCT b.k) FROM {b} AS b WHERE {c})",
    "(SELECT SUM((SELECT COUNT(*) FROM Sc [RANGE 5] AS d WHERE d.k >= b.k)) + COUNT(*) FROM {b} AS b WHERE {c})",
    "(SELECT SUM(b.v) FILTER (WHERE b.k IN (SELECT d.k FROM Sc [RANGE 5] AS d)) FROM {b} AS b WHERE {c})",
    "(SELECT AVG(d.n) FROM (SELECT k, COUNT(*) AS n FROM {b} GROUP BY k) AS d, {b} AS b WHERE d.k = b.k AND {c})",
)
RELATIONS = (
    "(SELECT b.v FROM {b} AS b WHERE {c})",
    "(SELECT DISTINCT b.v FROM {b} AS b WHERE {c})",
    "(SELECT MIN(b.v) FROM {b} AS b WHERE {c} GROUP BY b.k)",
    "(SELECT COUNT(*) FROM {b} AS b WHERE {c})",
    "(SELECT b.v FROM {b} AS b WHERE {c} UNION SELECT r.a FROM Rel AS r WHERE r.k <> a.k)",
    "(SELECT b.v FROM {b} AS b WHERE {c} EXCEPT ALL SELECT k FROM Sc [RANGE 2])",
)
OUTER = (
    "SELECT a.k, {scalar} AS n FROM {a} AS a",
    "SELECT a.k, a.v FROM {a} AS a WHERE a.v = {scalar}",
    "SELECT a.k, a.v FROM {a} AS a WHERE a.v <= {scalar} OR a.k = 0",
    "SELECT a.k, {one} AS n FROM {a} AS a",
    "SELECT a.k FROM {a} AS a WHERE a.v {op} ANY {rows}",
    "SELECT a.k FROM {a} AS a WHERE a.v {op} ALL {rows} AND a.v >= 1",
    "SELECT a.k FROM {a} AS a WHERE NOT (a.v {op} ALL {rows})",
    "SELECT a.k, a.v IN {rows} AS i FROM {a} AS a",
    "SELECT a.k FROM {a} AS a WHERE a.v NOT IN {rows}",
    "SELECT a.k FROM {a} AS a WHERE EXISTS {rows} OR a.v = 2",
    "SELECT a.k, EXISTS {rows} AS e FROM {a} AS a",
    "SELECT a.k, SUM({scalar}) AS s FROM {a} AS a GROUP BY a.k",
    "SELECT a.k FROM {a} AS a WHERE NOT EXISTS {rows}",
    "SELECT a.k, (a.k, a.v) IN (SELECT b.k, b.v FROM {b} AS b WHERE {c}) AS i FROM {a} AS a",
    "SELECT a.k FROM {a} AS a WHERE (a.k, a.v) NOT IN (SELECT b.k, b.v FROM {b} AS b WHERE {c}) OR a.v = 3",
)
OVER_JOINS = (
    "SELECT a.k, x.k AS x FROM {a} AS a, Sc [RANGE 4] AS x WHERE a.k = x.k AND EXISTS {rows}",
    "SELECT a.k, x.k AS x FROM {a} AS a, Sc [RANGE 4] AS x WHERE a.k = x.k AND a.v > 0 AND NOT EXISTS {rows}",
    "SELECT a.k FROM Sc [RANGE 4] AS x, {a} AS a WHERE a.v = x.k AND a.v + 1 > 1 AND EXISTS {rows}",
    "SELECT a.k FROM {a} AS a, Sc [RANGE 4] AS x WHERE (a.k = x.k AND a.v > 1) OR (x.k = a.k AND EXISTS {rows})",
    "SELECT a.k, x.k AS x FROM {a} AS a LEFT JOIN Sc [RANGE 4] AS x ON a.v < x.k WHERE NOT EXISTS {rows}",
    "SELECT a.k, x.k AS x FROM {a} AS a FULL JOIN Sc [RANGE 4] AS x ON a.v = 1 OR a.v = 2 WHERE a.k = 1 OR x.k > 0",
    "SELECT a.k, x.k AS x FROM {a} AS a FULL JOIN Sc [RANGE 4] AS x ON (a.v = x.k AND x.b) OR (x.k = a.v AND a.k = 1)",
    "SELECT a.k FROM {a} AS a WHERE EXISTS (SELECT * FROM {b} b WHERE (b.k = a.k AND b.v > 1) OR (a.k = b.k AND {c}))",
    "SELECT a.k FROM {a} AS a WHERE (1, 2) NOT IN (SELECT b.k, b.v FROM {b} AS b)",
)
SETTINGS = ({"batch_size": 1}, {"batch_size": 2}, {}, {"rows_per_push": 1})


def correlated_case(seed: int, forms: Sequence[str] = OUTER) -> Case:
    """A query with a subquery that looks at its row, of one of the forms, and a feed."""
    rng = Random(seed)

    def source(*streams: str) -> str:
        return f"{rng.choice(streams)} {rng.choice(WINDOWS)}"

    b, c = source("Sa", "Sb"), rng.choice(CONDITIONS)
    parts = {"a": source("Sa", "Sb"), "b": b, "c": c, "op": rng.choice(("=", "<>", "<", "<=", ">", ">="))}
    parts["scalar"] = rng.choice(SUBQUERIES).format(b=b, c=c)
    parts["rows"] = rng.choice(RELATIONS).format(b=b, c=c)
    parts["one"] = f"(SELECT DISTINCT b.k FROM {b} AS b WHERE {c} AND b.k = 1)"
    names = ["Sa", "Sb", "Sc", "Rel"]
    return Case(
        tuple(declaration(name) for name in names),
        rng.choice(forms).format(**parts),
        random_feed(rng, names, 8, may_be_extreme=False),
    )


@pytest.mark.parametrize("seed", seeds(80))
def test_a_correlated_subquery_answers_as_defined(seed: int) -> None:
    assert check(correlated_case(seed), **SETTINGS[seed % len(SETTINGS)]) == "agreed"


@pytest.mark.parametrize("seed", seeds(60))
def test_conditions_over_joins_answer_as_defined(seed: int) -> None:
    assert check(correlated_case(seed, OVER_JOINS), **SETTINGS[seed % len(SETTINGS)]) == "agreed"


def test_first_and_last_under_an_inequality_are_refused_with_a_way_out() -> None:
    query = "SELECT k, (SELECT FIRST(v) FROM Sb [ROWS 3] AS b WHERE b.v < a.v) AS f FROM Sa [ROWS 2] AS a"
    declared = (declaration("Sa"), declaration("Sb"))
    answer = check(Case(declared, query, random_feed(Random(0), ["Sa", "Sb"], 3)))
    assert answer.startswith("refused: FIRST")
    assert issubclass(CqlError, Exception)


@pytest.mark.parametrize("join", ["LEFT", "RIGHT", "FULL"])
def test_a_subquery_in_the_on_of_an_outer_join_that_names_both_sides_is_refused_with_a_way_out(join: str) -> None:
    asked = "EXISTS (SELECT * FROM S [NOW] AS c WHERE c.k = a.k AND c.v > b.v)"
    with connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
        with pytest.raises(CqlError, match="names columns of both sides") as caught:
            db.query(f"SELECT a.k FROM S [RANGE 5] AS a {join} JOIN S [RANGE 5] AS b ON a.k = b.k AND {asked}")
        assert "join with the subquery's table first" in str(caught.value)


@pytest.mark.parametrize("subquery", ["(SELECT k FROM L)", "(SELECT MIN(k) + 1 FROM L GROUP BY k)"])
def test_a_scalar_subquery_of_two_rows_is_told_as_it_was_written(subquery: str) -> None:
    with connect() as db:
        db.execute("CREATE RELATION L (k INTEGER); CREATE RELATION P (k INTEGER)")
        query = db.query(f"SELECT P.k FROM P WHERE P.k = {subquery}")
        db.push("L", [(1,), (2,)], ts=1)
        db.push("P", (1,), ts=1)
        db.advance(2)
        with pytest.raises(QueryError, match=re.escape(f"{subquery}: it gave 2 rows; at most one is allowed")):
            query.fetch()
