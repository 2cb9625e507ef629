"""The 22 queries of TPC-H against DuckDB, and those written by hand against both; which plans must not multiply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import minidsms
from benchmarks.tpch.by_hand import BY_HAND
from benchmarks.tpch.queries import QUERIES, VIEW
from benchmarks.tpch.running import is_same, loaded
from benchmarks.tpch.tables import tables

TABLES = tables(0.5, seed=7)


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as db:
        db.execute("SET threads = 1")  # the same sums of the view in both places of query 15
        for name, table in TABLES.items():
            db.register(f"{name}_arrow", table)
            db.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_arrow")
        db.execute(VIEW)
        yield db


def answer(text: str) -> list[tuple[Any, ...]]:
    """The present rows after all tables were pushed at one instant, the query running before."""
    with minidsms.connect() as db:
        query = loaded(db, {}).query(text)
        for name, table in TABLES.items():
            db.push(name, table, ts=1)
        db.advance(2)
        return query.snapshot()


@pytest.mark.parametrize("number", sorted(QUERIES))
def test_query_answers_as_duckdb_does(number: int, oracle: duckdb.DuckDBPyConnection) -> None:
    expected = oracle.execute(QUERIES[number]).fetchall()
    assert expected and any(value is not None for value in expected[0])
    assert is_same(answer(QUERIES[number]), expected)


@pytest.mark.parametrize("number", sorted(BY_HAND))
def test_query_by_hand_is_the_same_query(number: int, oracle: duckdb.DuckDBPyConnection) -> None:
    assert is_same(oracle.execute(BY_HAND[number]).fetchall(), oracle.execute(QUERIES[number]).fetchall())


@pytest.mark.parametrize("number", sorted(set(QUERIES) - {2, 11, 15, 17, 20, 22}))
def test_plan_has_no_product(number: int) -> None:
    """Those left out look up one row for all: the result of a subquery, or whether it has begun."""
    with minidsms.connect() as db:
        assert "Cartesian Product" not in loaded(db, {}).query(QUERIES[number]).explain()


@pytest.mark.parametrize("number", (4, 17, 18, 21, 22))
def test_answer_follows_rows_that_leave(number: int, oracle: duckdb.DuckDBPyConnection) -> None:
    """The rows of every second order leave again; then the answer is that over the rest."""
    with minidsms.connect() as db:
        query = loaded(db, TABLES).query(QUERIES[number])
        for name, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
            odd = oracle.sql(f"SELECT * FROM {name} WHERE {key} % 2 = 1").to_arrow_table()
            db.push(name, odd, ts=2, sign=-1)
        db.advance(3)
        even = duckdb.connect()
        for name, table in TABLES.items():
            even.register(f"{name}_arrow", table)
            key = {"lineitem": "l_orderkey", "orders": "o_orderkey"}.get(name)
            even.execute(
                f"CREATE TABLE {name} AS SELECT * FROM {name}_arrow" + (f" WHERE {key} % 2 = 0" if key else "")
            )
        assert is_same(query.snapshot(), even.execute(QUERIES[number]).fetchall())
