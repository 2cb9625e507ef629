"""What `snapshot` shows is what the changes leave, whoever knows the rows: an operator, a stub, or a bag of them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import minidsms

DECLARATIONS = "CREATE STREAM S (k INTEGER, v INTEGER, t TEXT); CREATE STREAM R (k INTEGER)"
QUERIES = {
    "window": "SELECT * FROM S [RANGE 5]",
    "now": "SELECT t FROM S [NOW]",
    "slide": "SELECT k, v FROM S [RANGE 6 SLIDE 2]",
    "rows": "SELECT k FROM S [ROWS 3]",
    "rows slide": "SELECT k, t FROM S [ROWS 4 SLIDE 3]",
    "filter": "SELECT v, t FROM S [RANGE 5] WHERE k > 1",
    "computed": "SELECT v + 1, t FROM S [RANGE 5] WHERE v % 2 = 0",
    "partition": "SELECT k, v FROM S [PARTITION BY k ROWS 2]",
    "partition of a while": "SELECT k, t FROM S [PARTITION BY k ROWS 2 RANGE 4]",
    "partition, one column": "SELECT t FROM S [PARTITION BY t ROWS 1]",
    "derived": "SELECT k FROM (SELECT ISTREAM(k, v) FROM S [RANGE 5] WHERE v > 2) AS d [RANGE 3]",
    "union all": "SELECT k FROM S [RANGE 3] UNION ALL SELECT k FROM R [RANGE 4]",
    "join": "SELECT S.k, v FROM S [RANGE 4], R [RANGE 3] WHERE S.k = R.k",
    "distinct": "SELECT DISTINCT k, t FROM S [RANGE 5]",
    "except": "SELECT k FROM S [RANGE 5] EXCEPT SELECT k FROM R [ROWS 2]",
    "no columns twice": "SELECT k, k FROM S [RANGE 5]",
}


def apply(present: Counter[Any], changes: list[minidsms.Change]) -> None:
    for change in changes:
        present[change.row] += change.sign
    for row in [row for row, n in present.items() if n == 0]:
        del present[row]


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("batch", [1, 50])
def test_the_snapshot_is_what_the_changes_leave(name: str, batch: int) -> None:
    rng = random.Random(name)
    present: Counter[Any] = Counter()
    with minidsms.connect(batch_size=batch) as db:
        db.execute(DECLARATIONS)
        query = db.query(QUERIES[name])
        ts = 0
        for _ in range(40):
            n = rng.randrange(4)
            stamps = sorted(ts + rng.randrange(4) for _ in range(n))
            if n:
                rows = [(rng.randrange(3), rng.randrange(6), rng.choice((None, "a", "b"))) for _ in range(n)]
                db.push("S", rows, ts=stamps)
                db.push("R", [(rng.randrange(3),) for _ in range(n)], ts=stamps)
            ts += rng.randrange(4, 7)
            db.advance(ts - 1)
            apply(present, query.fetch())
            assert Counter(query.snapshot()) == present


def test_rows_that_are_present_are_held_once_and_freed_when_the_query_is_closed() -> None:
    with minidsms.connect() as db:
        db.execute(DECLARATIONS)
        query = db.query("SELECT k, t FROM S [RANGE 10]")
        for ts in range(0, 20_000, 100):
            db.push("S", [(i, i, f"text {ts + i}") for i in range(100)], ts=list(range(ts, ts + 100)))
        db.advance(19_999)
        assert Counter(query.snapshot()) == Counter((i, f"text {19_900 + i}") for i in range(90, 100))
        (net,) = (o for o in query.stats()["operators"] if o["operator"] == "Net")
        assert net["rows"] == 10 and net["bytes"] == 0
        query.close()
        db.push("S", [(1, 1, "last")], ts=[20_000])
        db.advance(20_001)
        assert len(db.stream_store("S")[0]) == 0


def test_many_changes_counted_behind_the_engine_are_in_the_snapshot() -> None:
    n = 150_000
    with minidsms.connect() as db:
        db.execute(DECLARATIONS)
        query = db.query("SELECT S.k, t FROM S [RANGE 4], R [RANGE UNBOUNDED] WHERE S.k = R.k")
        db.push("R", [(0,), (1,)], ts=0)
        k, ts = [i % 3 for i in range(n)], [i // 1000 for i in range(n)]
        for start in range(0, n, 10_000):
            part = slice(start, start + 10_000)
            texts = [f"t{i % 7}" for i in range(start, start + 10_000)]
            db.push("S", {"k": k[part], "v": k[part], "t": texts}, ts=ts[part])
            db.advance(ts[start + 9_999], stream="R")
            query.fetch_arrow()
        db.advance(ts[-1])
        expected = Counter((k[i], f"t{i % 7}") for i in range(n) if k[i] < 2 and ts[i] > ts[-1] - 4)
        assert Counter(query.snapshot()) == expected
