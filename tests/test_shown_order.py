"""The present rows of a query that ends with ORDER BY .. LIMIT, in its order: docs/semantics R6."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import minidsms
from minidsms.shell.main import main

ORDERS = ["v", "v DESC, k", "k NULLS FIRST, 2", "k DESC NULLS FIRST, v DESC", "f, k", "-v NULLS FIRST", "3 DESC, v"]
ROWS = [
    (rng.choice(["a", "B", "é", "ab", None]), rng.choice([None, -1, 0, 7]), rng.choice([0.5, -2.0, None]))
    for rng in [random.Random(5)]
    for _ in range(60)
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("size", [1, 7, 60])
def test_the_present_rows_stand_in_the_order_of_the_query(order: str, size: int) -> None:
    query = f"SELECT k, v, f, -v FROM R ORDER BY {order}"
    names = ("k", "v", "f", "4")
    with minidsms.connect(batch_size=size) as db, duckdb.connect() as there:
        db.execute("CREATE RELATION R (k TEXT, v INTEGER, f FLOAT)")
        first = db.query(f"{query} LIMIT 20")
        for i in range(0, len(ROWS), size):
            db.push("R", ROWS[i : i + size], ts=i)
        db.push("R", ROWS[:5], ts=100, sign=-1)
        db.advance(101)
        there.register("R", pa.table(dict(zip("kvf", map(list, zip(*ROWS[5:]))))))
        ties = ", ".join(f"{name} NULLS FIRST" for name in names)
        wanted = there.execute(f"{query}, {ties} LIMIT 20").fetchall()
        assert first.snapshot() == wanted
        assert [tuple(row.values()) for row in first.arrow().to_pylist()] == wanted
        assert first.present(3) == (20, wanted[:3])


@pytest.mark.parametrize("type_", ["TEXT[]", "STRUCT(a TEXT)", "DECIMAL(12, 10)[]", "MAP(TEXT, DATE[])"])
def test_nested_values_that_are_equal_in_all_keys_stand_as_their_texts(type_: str) -> None:
    texts, days = ["b'", "a", '"', "é", "None", None], [datetime.date(1, 1, 1), datetime.date(999, 1, 1), None]
    rows = {
        "TEXT[]": [[text] for text in texts],
        "STRUCT(a TEXT)": [{"a": text} for text in texts],
        "DECIMAL(12, 10)[]": [[Decimal(text)] for text in ("0.0000000001", "2", "-1", "10", "0")],
        "MAP(TEXT, DATE[])": [{"k": [day]} for day in days] + [{"'": [day]} for day in days],
    }[type_]
    with minidsms.connect() as db:
        db.execute(f"CREATE RELATION R (x {type_}, b BOOLEAN)")
        first = [db.query(f"SELECT x, b FROM R ORDER BY b LIMIT {n}") for n in range(1, len(rows) + 1)]
        db.push("R", [(row, True) for row in rows], ts=0)
        db.advance(1)
        *_, every = (query.snapshot() for query in first)
        for n, query in enumerate(first, 1):
            assert query.snapshot() == every[:n]


def test_in_no_order_of_keys_that_are_not_shown() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE RELATION R (k TEXT, v INTEGER)")
        hidden, shown = (db.query(f"SELECT {what} FROM R ORDER BY v DESC LIMIT 2") for what in ("k", "v, k"))
        db.push("R", [("a", 1), ("b", 3), ("c", 2)], ts=0)
        db.advance(1)
        assert sorted(hidden.snapshot()) == [("b",), ("c",)] and not hidden.order
        assert shown.snapshot() == [(3, "b"), (2, "c")]
        html = shown._repr_html_()
        assert html.index(">b<") < html.index(">c<")


def test_a_table_of_the_shell_stands_in_this_order_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.csv").write_text("k,v\na,1\nb,3\nc,2\n")
    text = "CREATE RELATION R (k TEXT, v INTEGER) FROM 'r.csv'; SELECT k, v FROM R ORDER BY v DESC LIMIT 2"
    assert main(["--no-config", "--mode", "table", "-c", text]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()[-2:]] == [["b", "3"], ["c", "2"]]
