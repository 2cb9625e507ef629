"""Rows of a join that find no partner are told apart without NULL where its condition lets no NULL pass."""

from __future__ import annotations

from random import Random

import pytest

from minidsms import connect
from minidsms.testing.compare import check
from minidsms.testing.generators import Case, declaration, random_feed

QUERY = "SELECT a.k, a.v, b.v AS w FROM Sa [RANGE 3] AS a FULL JOIN Sb [RANGE 5] AS b ON "
WITHOUT_NULL = ("a.k = b.k AND a.v <> b.v", "a.k - 1 < b.k", "a.k = b.k AND CAST(a.v AS FLOAT) > b.v")
WITH_NULL = ("a.k = b.k OR a.v = 1", "a.k = b.k AND COALESCE(a.v, 1) <> b.v", "a.k = b.k AND (a.v IS NULL OR b.v = 1)")


@pytest.mark.parametrize("condition", [*WITHOUT_NULL, *WITH_NULL])
def test_null_is_a_key_where_rows_with_null_may_match(condition: str) -> None:
    with connect() as db:
        for stream in ("Sa", "Sb"):
            db.execute(declaration(stream))
        plan = "\n".join(line for (line,) in db.execute("EXPLAIN " + QUERY + condition))
    assert ("(NULL = NULL)" in plan) is (condition in WITH_NULL)


@pytest.mark.parametrize("condition", [*WITHOUT_NULL, *WITH_NULL])
@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_the_definition(condition: str, seed: int) -> None:
    declared = tuple(map(declaration, ("Sa", "Sb")))
    assert check(Case(declared, QUERY + condition, random_feed(Random(seed), ["Sa", "Sb"], 12))) == "agreed"
