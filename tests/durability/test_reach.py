"""What a query remembers is there again after a checkpoint, and what it does not remember is gone from the log."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import minidsms
from minidsms.durability.connection import DurableConnection
from minidsms.durability.entry import read
from minidsms.durability.segments import entries

BY_KEY = [
    "SELECT * FROM S [PARTITION BY k ROWS 2]",
    "SELECT k, COUNT(*), SUM(v), FIRST(v), LAST(v) FROM S [PARTITION BY k ROWS 3] GROUP BY k",
    "SELECT ISTREAM(k, v) FROM S [PARTITION BY k, name ROWS 1 RANGE 9]",
    "SELECT COUNT(*), MEDIAN(v) FROM S [PARTITION BY name ROWS 2]",
    "SELECT S.k, T.k FROM S [PARTITION BY k ROWS 1], T [RANGE 7] WHERE S.k = T.k",
    "SELECT name, v FROM (SELECT k, name, v FROM S WHERE v > 1) [PARTITION BY name ROWS 2]",
]
SESSIONS = [
    "SELECT k, COUNT(*), window_start, window_end, session_id FROM S [SESSION 4 PARTITION BY k] "
    "GROUP BY k, window_start, window_end, session_id",
    "SELECT k, SUM(v) FROM S [SESSION 9 PARTITION BY k] GROUP BY k",
    "SELECT COUNT(*), STRING_AGG(name, ',') FROM S [SESSION 1]",
]
OVER = [
    "SELECT ts, k, ROW_NUMBER() OVER (ORDER BY ts) FROM S",
    "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM S",
    "SELECT k, name, LAG(v, 2) OVER (PARTITION BY name ORDER BY ts) FROM S WHERE v > 1",
    "SELECT k, AVG(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) FROM S",
    "SELECT k, DENSE_RANK() OVER (PARTITION BY k ORDER BY ts), MAX(name) OVER (PARTITION BY k ORDER BY ts) FROM S",
    "SELECT k, v, RANK() OVER (PARTITION BY k ORDER BY v) FROM S QUALIFY RANK() OVER (PARTITION BY k ORDER BY v) <= 2",
    "SELECT ISTREAM(k, LEAD(v, 1) OVER (PARTITION BY k ORDER BY ts)) FROM S",
    "SELECT k, LAG(v) OVER (PARTITION BY k ORDER BY v), NTILE(3) OVER (ORDER BY ts) FROM S [ROWS 9]",
    "SELECT k, v FROM S ORDER BY v, k LIMIT 3",
    "SELECT MEDIAN(v) OVER w, MODE(k) OVER w FROM S WINDOW w AS (PARTITION BY name ORDER BY ts ROWS 2 PRECEDING)",
    "SELECT k, VARIANCE(v) OVER (PARTITION BY k), MODE(name) OVER (ORDER BY v ROWS 2 PRECEDING) FROM S [ROWS 9]",
    "SELECT r, COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS r FROM S) GROUP BY r",
]
DERIVED = [
    "SELECT SUM(k) FROM (SELECT k FROM S WHERE k > 2) [ROWS 3]",
    "SELECT COUNT(*), SUM(n) FROM (ISTREAM (SELECT k, COUNT(*) AS n FROM S [RANGE 6] GROUP BY k)) [RANGE 9]",
    "SELECT k, n FROM (DSTREAM (SELECT k, SUM(v) AS n FROM S [ROWS 4] GROUP BY k)) [PARTITION BY k ROWS 2]",
    "SELECT n, COUNT(*) FROM (ISTREAM (SELECT k, COUNT(*) AS n FROM S GROUP BY k)) [RANGE 12 SLIDE 4] GROUP BY n",
    "SELECT window_start, window_end, n, k FROM (ISTREAM (SELECT k, COUNT(*) AS n FROM S GROUP BY k)) [HOP 6 EVERY 3]",
    "SELECT A.k, B.k FROM (ISTREAM (SELECT k FROM S [RANGE 3])) [RANGE 8] A, T [ROWS 2] B WHERE A.k <> B.k",
    "SELECT COUNT(*) FROM (RSTREAM (SELECT k FROM S [ROWS 2])) [ROWS 5 SLIDE 2]",
]
ROWS = [
    "SELECT * FROM S [ROWS 3]",
    "SELECT k, COUNT(*), LAST(v) FROM S [ROWS 7] GROUP BY k",
    "SELECT SUM(v) FROM S [ROWS 5 SLIDE 3]",
    "SELECT COUNT(*) FROM S [RANGE 3]",
    "SELECT a.k FROM S [ROWS 2] AS a, S [RANGE 6] AS b, T [ROWS 1] AS c WHERE a.k = b.k",
]
RSTREAMS = [
    "SELECT ISTREAM(k, name) FROM S [NOW] WHERE k > 1",
    "SELECT ISTREAM(S.k, T.k) FROM S [NOW] LEFT JOIN T [PARTITION BY k ROWS 1] ON S.k = T.k",
    "SELECT RSTREAM(S.k, T.k) FROM S [NOW] LEFT JOIN T [PARTITION BY k ROWS 1] ON S.k = T.k",
    "SELECT RSTREAM(S.v, n) FROM S [NOW] JOIN (SELECT k, COUNT(*) AS n FROM T GROUP BY k) AS g USING (k)",
    "SELECT RSTREAM(k, v) FROM S [NOW] WHERE v > (SELECT AVG(v) FROM S [ROWS 4])",
    "SELECT RSTREAM(k, v) FROM S [RANGE 3]",
    "SELECT RSTREAM(COUNT(*)) FROM S [ROWS 4]",
    "SELECT RSTREAM(S.k, T.k) FROM S [PARTITION BY k ROWS 1], T [RANGE 6 SLIDE 2] WHERE S.k = T.k",
    "SELECT RSTREAM(k, COUNT(*)) FROM S GROUP BY k",
    "SELECT RSTREAM(k) FROM S [SESSION 3 PARTITION BY k]",
    "SELECT RSTREAM(name) FROM (SELECT DISTINCT name FROM S)",
]
CONSTANT = [
    "SELECT * FROM (VALUES (1), (2)) V UNION ALL SELECT k FROM S [RANGE 3]",
    "ISTREAM (SELECT * FROM (VALUES (1), (2)) V UNION ALL SELECT k FROM S [RANGE 3])",
    "SELECT COUNT(*) FROM R",
    "SELECT k, COUNT(*) FROM (SELECT k FROM S UNION ALL SELECT k FROM T [RANGE 4]) GROUP BY k",
    "SELECT k FROM S INTERSECT SELECT k FROM T [RANGE 4]",
]
PANES = [
    "SELECT name, COUNT(*), COUNT(v), MIN(v), MAX(v), SUM(k) FROM S [RANGE 12 SLIDE 4] GROUP BY name",
    "SELECT k, name, window_start, AVG(k), MAX(v) FROM S [TUMBLE 7] GROUP BY k, name, window_start",
    "SELECT MIN(v), SUM(k) FROM S [HOP 10 EVERY 5]",
]
FAILED = [
    "SELECT SUM(k) FROM S [RANGE 50] HAVING CAST('x' AS INTEGER) > COUNT(*) OR COUNT(*) < 20",
    "ISTREAM (SELECT k, CAST(name AS INTEGER) FROM S [NOW])",
]
ALL = [*BY_KEY, *SESSIONS, *OVER, *DERIVED, *PANES, *ROWS, *RSTREAMS, *CONSTANT, *FAILED]


def elements(db: DurableConnection, name: str) -> int:
    """How many of a stream the log that counts holds."""
    found = 0
    for each in entries(db.log_folder):
        fields, rows = read(each)
        if fields["kind"] == "push" and fields["to"] == name:
            journal = db.stream_input(name).journal
            assert journal is not None
            found += len(journal.batch(fields, rows.whole()))
    return found


def answers(query: Any, kept: dict[str, Any]) -> None:
    """Fetch by position; a failure is kept, too."""
    try:
        kept.setdefault(query.name, []).extend(query.fetch())
    except minidsms.QueryError as error:
        kept[query.name + " failed"] = str(error)


def run(texts: list[str], folder: str, declared: str, seed: int, most: int, often: float) -> None:
    """The same pushes into a connection that is made checkpoints of and opened again, and into one that is not. often:
    a checkpoint at so many of the instants, beside two.  most: elements that a checkpoint keeps, for windows of 10.
    """
    rng = Random(seed)
    most = 2 * most if any("[RANGE 50]" in text for text in texts) else most
    db: Any = minidsms.connect(folder, durability="os")
    other = minidsms.connect()
    found: dict[str, Any] = {}
    wanted: dict[str, Any] = {}
    for each in (db, other):
        each.execute(f"CREATE STREAM S (k INTEGER, v FLOAT, name TEXT){declared}; CREATE STREAM T (k INTEGER)")
        each.execute("CREATE RELATION R (k INTEGER)")
        for i, text in enumerate(texts):
            each.query(text, name=f"q{i}")
    n = 0
    for ts in range(0, 200):
        if rng.random() < 0.5:
            rows = [
                (rng.randint(0, 5), rng.choice((1.5, 4.25, None, -3.0)), rng.choice(("a", "b", f"x{ts % 7}", None)))
                for _ in range(rng.randint(1, 3))
            ]
            late = [max(0, ts - rng.choice((0, 0, 1, 2, 9) if "DROP" in declared else (0, 0, 1))) for _ in rows]
            late = late if declared else sorted([ts] * len(rows))
            for each in (db, other):
                each.push("S", rows, ts=late)
            n += len(rows)
        if rng.random() < 0.4:
            row = (rng.randint(0, 5),)
            for each in (db, other):
                each.push("T", row, ts=ts)
        if rng.random() < 0.2:
            for each in (db, other):
                each.push("R", (ts % 4,), ts=ts)
        if rng.random() < 0.1:
            for each in (db, other):
                each.advance(ts - 3 if declared else ts - 1)
        if ts in (70, 110):
            for each in (db, other):
                each.query(texts[ts % len(texts)], name=f"later{ts}")
        if rng.random() < often or ts in (60, 150):
            for kept, each in ((found, db), (wanted, other)):
                for query in each.queries.values():
                    answers(query, kept)
            db.checkpoint()
            whole = db.execute("SHOW CHECKPOINTS").rows[-1][-1]
            assert not whole, whole
            if ts > 100:
                assert elements(db, "S") <= most < n
            if ts == 150 or rng.random() < 0.7:
                db.close()
                db = minidsms.connect(folder, durability="os")
    for kept, each in ((found, db), (wanted, other)):
        each.advance(400)
        for query in each.queries.values():
            answers(query, kept)
        each.close()
    assert found.keys() == wanted.keys()
    for name in found:
        if name.endswith("failed"):
            assert found[name] == wanted[name]
        else:
            text = name if name.startswith("later") else texts[int(name[1:])]
            assert Counter(map(repr, found[name])) == Counter(map(repr, wanted[name])), text


@pytest.mark.parametrize("declared", [" SLACK 2 LATE DROP", pytest.param("", marks=pytest.mark.long)])
def test_queries_go_on_from_a_checkpoint_as_if_there_had_been_none(tmp_path: Path, declared: str) -> None:
    run(ALL, os.fspath(tmp_path / "db"), declared, 1, 40, 0)


@pytest.mark.long
@pytest.mark.parametrize("declared", ["", " SLACK 2", " SLACK 2 LATE DROP"])
def test_each_query_goes_on_from_many_checkpoints(tmp_path: Path, declared: str) -> None:
    for seed, text in enumerate(ALL):
        run([text], os.fspath(tmp_path / str(seed)), declared, seed, 40, 0.03)
    for seed in range(5):
        texts = Random(seed).sample(ALL, 9)
        run(texts, os.fspath(tmp_path / f"sample{seed}"), declared, seed, 40, 0.03)


def test_rows_of_kept_state_outlast_a_change_of_plan_before_their_instant(tmp_path: Path) -> None:
    """They are put out as their instant passes; queues are empty where operators are copied."""
    folder = os.fspath(tmp_path / "db")
    with minidsms.connect(folder) as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        db.query("SELECT k FROM S [RANGE 5]", name="other")
        db.query("SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM S GROUP BY k) WHERE n > 1", name="counts")
        db.execute("ALTER QUERY counts SET batch_size = 3")
        db.query("SELECT MAX(n) FROM (SELECT k, COUNT(*) AS n FROM S GROUP BY k)", name="most")
        db.push("S", [(i % 3,) for i in range(9)], ts=range(9))
        db.query("SELECT k FROM S [RANGE 5]", name="later")
        db.push("S", [(i % 3,) for i in range(9)], ts=range(9, 18))
        db.checkpoint()
        assert not db.execute("SHOW CHECKPOINTS").rows[-1][-1]
    with minidsms.connect(folder) as db:
        db.push("S", (0,), ts=20)
        db.advance(20)
        assert sorted(db.queries["counts"].snapshot()) == [(0, 7), (1, 6), (2, 6)]
        assert db.queries["most"].snapshot() == [(7,)]
