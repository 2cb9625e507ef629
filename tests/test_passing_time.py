"""Time that passes without elements: what is due comes when it is due, and what is not costs nothing.

docs/semantics T4, T5; `Group.release`.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

import minidsms
from tests.seeds import seeds

DECLARED = "CREATE STREAM A (k INTEGER, v INTEGER); CREATE STREAM B (k INTEGER, w INTEGER);"

QUERIES = (
    "SELECT k, v FROM A [RANGE 7]",
    "SELECT k, v FROM A [RANGE 7] WHERE v > 2",
    "SELECT k, v FROM A [NOW]",
    "SELECT k, v FROM A [RANGE 9 SLIDE 4]",
    "SELECT k, v FROM A [RANGE 3 SLIDE 5]",
    "SELECT k, v FROM A [ROWS 3]",
    "SELECT k, v FROM A [ROWS 4 SLIDE 3]",
    "SELECT k, v FROM A [PARTITION BY k ROWS 2]",
    "SELECT k, v FROM A [PARTITION BY k ROWS 2 RANGE 5]",
    "SELECT k, COUNT(*), MAX(v) FROM A [RANGE 7] GROUP BY k",
    "SELECT COUNT(*) FROM A [RANGE 6 SLIDE 2]",
    "SELECT COUNT(*) FROM A [RANGE 5], B [RANGE 3] WHERE A.k = B.k",
    "RSTREAM (SELECT k FROM A [RANGE 6 SLIDE 3])",
    "RSTREAM (SELECT k FROM A [RANGE 6])",
    "DSTREAM (SELECT k, v FROM A [RANGE 4])",
    "ISTREAM (SELECT A.v, B.w FROM A [RANGE 7], B [RANGE 3] WHERE A.k = B.k)",
    "SELECT A.v, B.w FROM A [RANGE 7], B [RANGE 3 SLIDE 2] WHERE A.k = B.k",
    "SELECT A.v, B.w FROM A [RANGE 7] LEFT JOIN B [RANGE 3] ON A.k = B.k",
    "SELECT v FROM A [RANGE 7] WHERE k NOT IN (SELECT k FROM B [RANGE 2])",
    "SELECT k FROM A [RANGE 7] EXCEPT SELECT k FROM B [RANGE 5]",
    "SELECT u.k FROM (DSTREAM (SELECT k FROM A [RANGE 4])) [RANGE 5] AS u",
)


def _rows(seed: int) -> list[tuple[str, int, int, int]]:
    """(stream, ts, k, v), with gaps and with instants that share elements."""
    rng = random.Random(seed)
    ts, rows = 0, []
    for _ in range(25):
        ts += rng.choice([0, 0, 1, 1, 2, 6, 13])
        rows.append((rng.choice("AB"), ts, rng.randrange(3), rng.randrange(6)))
    return rows


@pytest.mark.parametrize("scheduler", ["round_robin", "chain"])
@pytest.mark.parametrize("query", QUERIES)
def test_every_change_comes_at_its_tick(query: str, scheduler: str) -> None:
    for seed in seeds(3):
        rows = _rows(seed)
        end = rows[-1][1] + 30
        with minidsms.connect(scheduler=scheduler) as ticking, minidsms.connect(scheduler=scheduler) as at_once:
            ticking.execute(DECLARED)
            at_once.execute(DECLARED)
            q, whole = ticking.query(query), at_once.query(query)
            came: list[tuple[int, minidsms.Change]] = []
            for t in range(end + 1):
                for stream, ts, k, v in rows:
                    if ts == t:
                        ticking.push(stream, (k, v), ts=t)
                ticking.advance(t)
                came += [(t, change) for change in q.fetch()]
            for stream, ts, k, v in rows:
                at_once.push(stream, (k, v), ts=ts)
            at_once.advance(end)
            assert [change for t, change in came if change.ts != t] == []
            assert Counter(change for _, change in came) == Counter(whole.fetch())


def test_a_tick_at_which_nothing_is_due_runs_no_operator() -> None:
    with minidsms.connect() as db:
        db.execute(DECLARED)
        q = db.query("SELECT k, COUNT(*) FROM A [RANGE 10] GROUP BY k")
        db.push("A", (1, 1), ts=1)
        db.advance(1)
        runs = [operator.counters.runs for operator in q.network.operators]
        for t in range(2, 11):
            db.advance(t)
        assert [operator.counters.runs for operator in q.network.operators] == runs
        assert q.closed_until == 10
        assert len(q.fetch()) == 1
        db.advance(11)
        assert [(c.ts, c.sign) for c in q.fetch()] == [(11, -1)]


def test_a_query_that_joins_a_running_plan_after_idle_time_sees_only_what_comes() -> None:
    with minidsms.connect() as db:
        db.execute(DECLARED)
        db.query("SELECT k FROM A [RANGE 10]")
        db.push("A", (1, 1), ts=1)
        for t in range(1, 9):
            db.advance(t)
        late = db.query("SELECT k FROM A [RANGE 10]")
        db.push("A", (2, 2), ts=9)
        db.advance(30)
        assert [(c.ts, c.sign, c.row) for c in late.fetch()] == [(9, 1, (2,)), (19, -1, (2,))]
