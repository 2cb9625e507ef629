"""The 99 queries of TPC-DS over tables from a seed, against DuckDB: `python -m tests.long.tpcds [--seed N] [QUERY ..]`.

DuckDB's extension `tpcds` says the queries and the tables; where it is not installed, DuckDB fetches it. Tables are
small, and their values those that the queries ask for, so that most of them find rows. Rows come in parts, with others
that come and go again, under settings of the seed; the query begins before all of them and once more amid them. What
it shows in the end must be what DuckDB answers about the rows that are there.

LIMIT is taken away, or made so large that no row is left out, for DuckDB does not say which of equal rows it keeps, as
it does not within the frames of query 51, which may differ. CONCAT is written as `||`, which is NULL in both where an
operand is, and x / 0 is NULL there, too. A query may fail while rows are there twice that DuckDB does not see, where a
subquery that is a value would have two. The exit status is 1 where another differs.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import time
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

import minidsms
from benchmarks.tpch.running import is_same

_LITERAL = r"(?:'[^']*'|-?\d+(?:\.\d+)?)"
_ASKED = re.compile(
    rf"\b(\w+)\s*(?:=|<=|>=|<|>|<>|in|between)\s*\(?\s*(?:cast\s*\(\s*)?({_LITERAL}"
    rf"(?:\s*(?:as\s+date\s*\)|,|and)\s*(?:cast\s*\(\s*)?{_LITERAL})*)",
    re.IGNORECASE,
)
"""A column, and what it is compared with."""
_TYPES = {"BIGINT": "INTEGER", "VARCHAR": "TEXT"}
_SORTED_BY_CHANCE = 51
_FACT_ROWS, _ROWS = 1_500, 60
_ALL = 1_000_000

Tables = dict[str, list[tuple[Any, ...]]]


def benchmark() -> tuple[dict[str, list[tuple[str, str]]], dict[int, str]]:
    """The columns of the tables with their types, and the texts of the queries, as DuckDB has them."""
    with duckdb.connect() as duck:
        try:
            duck.execute("LOAD tpcds")
        except duckdb.Error:
            try:
                duck.execute("INSTALL tpcds; LOAD tpcds")
            except duckdb.Error as error:
                raise SystemExit(f"DuckDB has no extension tpcds, and cannot fetch it: {error}") from None
        duck.execute("CALL dsdgen(sf = 0)")
        names = [name for (name,) in duck.execute("SHOW TABLES").fetchall()]
        schemas = {name: [row[:2] for row in duck.execute(f"DESCRIBE {name}").fetchall()] for name in names}
        return schemas, dict(duck.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall())


def without_limit(text: str) -> str:
    """The query with all its rows; the last ORDER BY needs a LIMIT. CONCAT as an operator."""
    text = re.sub(r"\bconcat\((\S+), (\S+)\)", r"\1 || \2", text)
    text = re.sub(r"\s+LIMIT\s+\d+\s*$", "", text.strip().rstrip(";").rstrip(), flags=re.IGNORECASE)
    behind = text[text.upper().rfind("ORDER BY") :]
    is_last = behind.upper().startswith("ORDER BY") and behind.count("(") == behind.count(")")
    return f"{text}\nLIMIT {_ALL}" if is_last else text


class Values:
    """What the columns of the tables may hold: mostly what some query compares them with."""

    def __init__(self, queries: dict[int, str], rng: Random) -> None:
        self._rng = rng
        self._asked: dict[str, list[str]] = {}
        for text in queries.values():
            for column, literals in _ASKED.findall(text):
                self._asked.setdefault(column.lower(), []).extend(re.findall(_LITERAL, literals))

    def of(self, column: str, type_: str) -> Any:
        """One value; NULL at times."""
        rng, asked = self._rng, self._asked.get(column, [])
        if rng.random() < 0.06:
            return None
        if asked and rng.random() < 0.8:
            few = sorted(set(asked))[:8]
            try:
                return _read(rng.choice(few if rng.random() < 0.5 else asked).strip("'"), type_)
            except (ArithmeticError, ValueError):
                pass
        match type_.partition("(")[0]:
            case "DATE":
                return datetime.date(rng.randrange(1998, 2003), rng.choice((1, 3, 5, 8, 12)), rng.choice((1, 14, 26)))
            case "DECIMAL":
                return Decimal(rng.randrange(-500, 20_000)) / 100
            case "VARCHAR":
                return rng.choice(("a", "b", "Ab", "N", "Y", "x1"))
            case _:
                return rng.randrange(1, 60) if column.endswith(("_sk", "_number")) else rng.randrange(30)


def _read(text: str, type_: str) -> Any:
    match type_.partition("(")[0]:
        case "DATE":
            return datetime.date.fromisoformat(text)
        case "DECIMAL":
            number = Decimal(text).quantize(Decimal("0.01"))
            if abs(number) >= 10**3:
                raise ValueError
            return number
        case "VARCHAR":
            return text
        case _:
            return int(float(text))


def drawn(schemas: dict[str, list[tuple[str, str]]], values: Values) -> Tables:
    """Rows of every table. What is sold and returned has many, the others a first column without equals."""
    tables = {}
    for name, columns in schemas.items():
        is_fact = name.endswith(("_sales", "_returns")) or name == "inventory"
        rows = [[values.of(*column) for column in columns] for _ in range(_FACT_ROWS if is_fact else _ROWS)]
        for i, row in enumerate(rows):
            if not is_fact and columns[0][1] != "VARCHAR":
                row[0] = i + 1
        tables[name] = list(map(tuple, rows))
    return tables


def answered_by_duckdb(duck: duckdb.DuckDBPyConnection, text: str) -> list[tuple[Any, ...]] | None:
    """Its rows; None where it fails, as where a subquery that is a value has two."""
    try:
        return duck.execute(text).fetchall()
    except duckdb.Error:
        return None


def answered(
    text: str, schemas: dict[str, list[tuple[str, str]]], tables: Tables, rng: Random
) -> list[list[tuple[Any, ...]]]:
    """What the query shows in the end that began first, and what that shows which began amid the rows."""
    read = [name for name in schemas if re.search(rf"\b{name}\b", text, re.IGNORECASE)]
    scheduler = rng.choice(("chain", "round_robin", "fifo"))
    with minidsms.connect(batch_size=rng.choice((7, 1_000, 65_536)), scheduler=scheduler) as db:
        parts = []
        for name in read:
            declared = ", ".join(f"{column} {_TYPES.get(type_, type_)}" for column, type_ in schemas[name])
            db.execute(f"CREATE RELATION {name} ({declared})")
            rows = rng.sample(tables[name], len(tables[name]))
            size = len(rows) // rng.choice((1, 3, 8))
            parts += [(name, rows[i : i + size]) for i in range(0, len(rows), size)]
        rng.shuffle(parts)
        queries, ts = [db.query(text)], 0
        for i, (name, rows) in enumerate(parts):
            others = rng.sample(tables[name], 5)
            db.push(name, others, ts=ts)
            db.push(name, rows, ts=ts + 1)
            ts += rng.choice((1, 2))
            db.push(name, others, ts=ts, sign=-1)
            ts += 1
            if i == len(parts) // 2:
                queries.append(db.query(text))
        db.advance(ts)
        return [list(query.snapshot()) for query in queries]


def main(arguments: list[str]) -> int:
    """A line a query: its rows, seconds, and what differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.tpcds", description=__doc__)
    parser.add_argument("queries", nargs="*", type=int, help="default: all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    schemas, queries = benchmark()
    tables = drawn(schemas, Values(queries, Random(options.seed)))
    wrong = 0
    with duckdb.connect() as duck:
        duck.execute("SET default_null_order = 'nulls_last'; SET ieee_floating_point_ops = false")
        for name, columns in schemas.items():
            duck.execute(f"CREATE TABLE {name} ({', '.join(map(' '.join, columns))})")
            held = pa.table({column: [row[i] for row in tables[name]] for i, (column, _) in enumerate(columns)})
            duck.execute(f"INSERT INTO {name} SELECT * FROM held")
            del held
        for number in options.queries or sorted(queries):
            text, began = without_limit(queries[number]), time.perf_counter()
            expected = answered_by_duckdb(duck, text)
            try:
                shown = answered(text, schemas, tables, Random(options.seed * 100 + number))
            except minidsms.Error as error:
                shown = []
                has_two = "at most one is allowed" in str(error)
                told = "a value with two rows" if has_two else f"REFUSED\n{error}"
            else:
                is_equal = expected is not None and all(is_same(expected, rows) for rows in shown)
                other = "sorted by chance" if number == _SORTED_BY_CHANCE else "DIFFERS"
                told = f"{len(shown[0]):,} rows" if is_equal else other
            wrong += told.startswith(("REFUSED", "DIFFERS"))
            print(f"q{number:<3}{time.perf_counter() - began:7.2f} s  {told}", flush=True)
    print(f"{wrong} of {len(options.queries or queries)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
