"""ALTER STREAM .. ADD COLUMN: queries that run go on as they are; others see the column. docs/statements/alter.md."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

import minidsms
from minidsms.cql.errors import CqlError
from minidsms.testing.compare import difference_of, run_definition, run_together
from minidsms.testing.generators import random_company
from tests.long.crash_cases import widened

QUERIES = (
    "SELECT * FROM S [RANGE 4]",
    "SELECT * FROM S WHERE v > 2",
    "SELECT k, COUNT(*), MAX(v) FROM S [ROWS 3] GROUP BY k",
    "SELECT DISTINCT k FROM S [RANGE 6 SLIDE 2]",
    "SELECT S.k, T.v FROM S [RANGE 5], T [RANGE 3] WHERE S.k = T.k",
    "SELECT * FROM S [PARTITION BY k ROWS 2]",
)
WIDE = ("SELECT * FROM S WHERE name = 'b' OR v > 3", "SELECT name, COUNT(*) FROM S [RANGE 5] GROUP BY name")


def connection(columns: str, **options: Any) -> minidsms.Connection:
    db = minidsms.connect(**options)
    db.execute(f"CREATE STREAM S ({columns}) SLACK 2; CREATE STREAM T (k INTEGER, v INTEGER)")
    return db


def changes(query: Any) -> list[tuple[Any, ...]]:
    return sorted(((c.ts, c.sign, tuple(c.row)) for c in query.fetch()), key=repr)


@pytest.mark.parametrize("batch_size", [1, 2, 7, 65_536])
def test_queries_that_run_and_queries_that_come_answer_as_if_the_stream_had_always_had_the_column(
    batch_size: int,
) -> None:
    for seed in range(97_000, 97_003):
        rng = Random(seed)
        options = {"batch_size": batch_size, "sharing": rng.choice(("on", "off"))}
        narrow, wide = (
            connection("k INTEGER, v INTEGER", **options),
            connection("k INTEGER, v INTEGER, name TEXT", **options),
        )
        texts = {f"old{n}": text for n, text in enumerate(QUERIES)}
        for name, text in texts.items():
            narrow.query(text, name)
            wide.query(text.replace("*", "k, v") if text.startswith("SELECT *") else text, name)
        ts, told, begun = 0, rng.randrange(6, 20), rng.randrange(20, 29)
        for step in range(30):
            if step == told:
                narrow.execute("ALTER STREAM S ADD COLUMN name TEXT")
                for n, text in enumerate(QUERIES + WIDE):
                    for db in (narrow, wide):
                        db.query(text, f"new{n}")
            if step == begun and options["sharing"] == "on":
                for n, text in enumerate(QUERIES + WIDE):
                    for db in (narrow, wide):
                        db.execute(f"CREATE QUERY past{n} AS {text} WITH HISTORY")
            ts += rng.randrange(3)
            row = (rng.randrange(3), rng.randrange(5))
            name = rng.choice(("a", "b", None)) if step >= told else None
            if rng.random() < 0.7:
                narrow.push("S", (*row, name) if step >= told else row, ts=ts)
                wide.push("S", (*row, name), ts=ts)
            else:
                for db in (narrow, wide):
                    db.push("T", row, ts=ts)
        for db in (narrow, wide):
            db.advance(ts + 20)
        for name in wide.queries:
            found, expected = changes(narrow.queries[name]), changes(wide.queries[name])
            assert found == expected, f"seed {seed}, {options}, {name}"


@pytest.mark.parametrize("batch_size", [1, 7, 65_536])
def test_answers_of_generated_queries_do_not_depend_on_columns_that_come(batch_size: int) -> None:
    for seed in range(98_000, 98_006):
        cases = [case for case in random_company(seed) if case.registered == 0]
        try:
            expected = [run_definition(case) for case in cases]
        except CqlError:
            continue
        if not cases:
            continue
        rng = Random(seed)

        def before(db: Any, call: int, queries: Sequence[Any], rng: Random = rng) -> None:
            if call == 0:
                push = db.push
                db.push = lambda name, rows, **given: push(name, _wide(db, name, rows), **given)
            if rng.random() < 0.15:
                stream = rng.choice([s for s in db.catalog.streams.values() if not s.is_system])
                db.execute(f"ALTER STREAM {stream.name} ADD COLUMN added{call} {rng.choice(('TEXT', 'INTEGER'))}")

        answers = run_together(cases, {}, before=before, batch_size=batch_size)
        for case, by_definition, actual in zip(cases, expected, answers):
            assert difference_of(by_definition, actual) == "", f"seed {seed}\n{case}"


def _wide(db: Any, name: str, rows: Any) -> Any:
    one = isinstance(rows, tuple)
    types = [str(field.type) for field in db.stream_input(name).schema]
    padded = [
        tuple(str(v) if types[i] == "TEXT" and type(v) is int else v for i, v in enumerate(row))
        for row in widened(db, name, [rows] if one else rows)
    ]
    return padded[0] if one else padded


def test_what_waits_for_slack_has_null_in_a_column_that_came_later() -> None:
    db = connection("k INTEGER, v INTEGER")
    db.push("S", [(1, 1), (2, 2)], ts=[10, 11])
    db.execute("ALTER STREAM S ADD COLUMN name TEXT")
    q = db.query("SELECT ISTREAM(*) FROM S [NOW]")
    db.push("S", (3, 3, "x"), ts=11)
    db.advance(20)
    assert changes(q) == [(11, 1, (3, 3, "x"))]  # the others came before the query


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_query_with_history_sees_what_windows_of_fewer_columns_hold(tmp_path: Any, checkpoint: bool) -> None:
    folder = str(tmp_path / "db")
    with minidsms.connect(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER, t TEXT)")
        db.query("SELECT * FROM S [RANGE 100]", name="old")
        db.push("S", [(1, "a"), (2, "b")], ts=[1, 5])
        db.execute("ALTER STREAM S ADD COLUMN x TEXT")
        db.push("S", [(3, "c", "new"), (4, "d", None)], ts=[6, 7])
        db.execute("ALTER STREAM S ADD COLUMN y INTEGER")
        db.push("S", (5, "e", "newer", 50), ts=9)
        db.advance(10)
        if checkpoint:
            db.checkpoint()
    with minidsms.connect(folder) as db:
        db.execute("CREATE QUERY past AS SELECT k, x, y FROM S [RANGE 20] WITH HISTORY")
    with minidsms.connect(folder) as db:
        held = [(1, None, None), (2, None, None), (3, "new", None), (4, None, None), (5, "newer", 50)]
        assert sorted(db.queries["past"].snapshot()) == held
        db.queries["old"].close()
        db.advance(26)
        assert sorted(db.queries["past"].snapshot()) == held[3:]
        assert len(db.stream_input("S").store) == 2  # type: ignore[arg-type]


def test_a_stream_that_cannot_be_widened_says_what_to_do(tmp_path: Any) -> None:
    db = connection("k INTEGER, v INTEGER")
    (tmp_path / "a.csv").write_text("k,at\n1,1\n")
    db.execute(f"CREATE STREAM F (k INTEGER, at INTEGER) TIMESTAMP BY at FROM '{tmp_path}/a.csv'")
    db.execute("CREATE VIEW named (a, b) AS SELECT * FROM T [NOW]")
    db.archive("S", str(tmp_path / "archive"))
    for statement, reason in [
        ("ALTER STREAM F ADD COLUMN x INTEGER", "read from a source"),
        ("ALTER STREAM S ADD COLUMN x INTEGER", "the archive goes on"),
        ("ALTER STREAM T ADD COLUMN x INTEGER", "the view named cannot stand on this"),
        ("ALTER STREAM T ADD COLUMN K INTEGER", 'T has a column "K" already'),
        ("ALTER STREAM SysStream ADD COLUMN x INTEGER", "written by the engine"),
        ("ALTER STREAM U ADD COLUMN x INTEGER", 'no stream "U"'),
    ]:
        with pytest.raises(CqlError, match=reason):
            db.execute(statement)
    db.archive("S", None)
    db.execute("ALTER STREAM S ADD COLUMN IF NOT EXISTS x STRUCT(a INTEGER[]); ALTER STREAM S ADD IF NOT EXISTS x TEXT")
    db.execute("ALTER STREAM S ADD COLUMN column INTEGER; ALTER STREAM S ADD add INTEGER")
    assert db.stream_input("S").schema.names == ("k", "v", "x", "column", "add")


def test_an_archive_goes_on_with_the_column(tmp_path: Any) -> None:
    db = connection("k INTEGER, v INTEGER")
    folder = str(tmp_path / "archive")
    db.archive("S", folder)
    db.push("S", (1, 1), ts=1)
    db.archive("S", None)
    db.execute("ALTER STREAM S ADD COLUMN name TEXT")
    db.archive("S", folder)
    db.push("S", (2, 2, "b"), ts=5)
    db.close()
    other = connection("k INTEGER, v INTEGER, name TEXT")
    q = other.query("SELECT ISTREAM(*) FROM S [NOW]")
    other.replay(folder)
    other.advance(9)
    assert changes(q) == [(1, 1, (1, 1, None)), (5, 1, (2, 2, "b"))]


@pytest.mark.parametrize("statement", ["ALTER STREAM S ADD COLUMN name TEXT", ""])
def test_a_stream_that_was_altered_and_dropped_leaves_a_folder_that_opens(tmp_path: Any, statement: str) -> None:
    folder = str(tmp_path / "db")
    with minidsms.connect(folder) as db:
        (tmp_path / "a.csv").write_text("k,at\n1,1\n")
        source = "" if statement else f" TIMESTAMP BY at FROM '{tmp_path}/a.csv'"
        db.execute(f"CREATE STREAM S (k INTEGER, at INTEGER){source}")
        db.execute(statement or "ALTER STREAM S PAUSE")
        db.execute("DROP STREAM S; CHECKPOINT")
    with minidsms.connect(folder) as db:
        assert "S" not in db.catalog.names()


def test_memory_for_elements_that_wait_is_shed_for_queries_of_before_too() -> None:
    db = connection("k INTEGER, v INTEGER", load_shedding="drop oldest", queue_size=10)
    old = db.query("SELECT ISTREAM(S.k) FROM S [NOW], T [RANGE 100] WHERE S.k = T.k", "old")
    db.execute("ALTER STREAM S ADD COLUMN name TEXT")
    db.push("S", [(1, i, "a") for i in range(100)], ts=list(range(100)))
    assert old.shed["S"] >= 80
