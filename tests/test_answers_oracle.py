"""Two oracles that share no code agree: the evaluator by definition, and DuckDB over windows computed apart."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest

from minidsms.cql import bound
from minidsms.cql.parser import parse_query
from minidsms.testing.compare import bind_case, canonical
from minidsms.testing.definition import relation_at
from minidsms.testing.generators import Case, random_case
from minidsms.testing.grammar import Options
from tests.duckdb_oracle import DuckDbOracle
from tests.seeds import seeds

SQL_ONLY = Options(views=False, derived=False, portable=True, outputs=False, extreme=False, late=False)
INSTANTS = 8
"""Instants looked at in each case, spread evenly."""


def differences(case: Case, database: duckdb.DuckDBPyConnection) -> list[str]:
    node = bind_case(case).node
    if isinstance(node, bound.RelationToStream):  # D2 wrote an ISTREAM around a monotonic query
        node = node.input
    history, until = case.history(), case.closed()
    oracle = DuckDbOracle(parse_query(case.query), history, database)
    first = oracle.begins()
    found = []
    for tau in range(first, until + 1, max(1, (until - first) // INSTANTS)) if first is not None else ():
        ours = Counter(map(canonical, relation_at(node, history, tau)))
        theirs = Counter(map(canonical, oracle.relation_at(tau)))
        if ours != theirs:
            found.append(f"at {tau}: by definition {ours}, DuckDB {theirs}\n{oracle.sql}\n{case}")
    return found


@pytest.mark.parametrize("start", seeds(0, 60, 20))
def test_duckdb_answers_the_same_over_the_same_windows(start: int) -> None:
    with duckdb.connect() as database:
        for seed in range(start, start + 20):
            assert differences(random_case(seed, SQL_ONLY), database) == []
