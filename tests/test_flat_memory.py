"""What a connection holds does not grow with its streams, however they are fed."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import minidsms

QUERIES = {
    "join": "SELECT ISTREAM(R.k, S.v) FROM R [RANGE 50], S [RANGE 50] WHERE R.k = S.k",
    "join of relations": "SELECT R.k, S.v FROM R [ROWS 40], S [ROWS 40] WHERE R.k = S.k",
    "outer join": "SELECT R.k, S.v FROM R [RANGE 50] LEFT JOIN S [RANGE 50] ON R.k = S.k",
    "semi-join": "SELECT RSTREAM(k) FROM R [NOW] WHERE k IN (SELECT k FROM S [RANGE 50])",
    "lookup join": "SELECT RSTREAM(R.k, S.v) FROM R [NOW] JOIN S [PARTITION BY v ROWS 1] ON R.k = S.k",
    "union": "SELECT k FROM R [RANGE 50] UNION SELECT k FROM S [RANGE 50]",
    "newest rows": "SELECT ISTREAM(R.k, S.v) FROM R [RANGE 50], S [PARTITION BY v ROWS 1] WHERE R.k = S.k",
}


def held(query: str, rounds: int, rows: int, turns: int) -> list[int]:
    """Bytes held after each round. turns: rows of R before those of S; keys are new in every round."""
    sizes = []
    with minidsms.connect() as db:
        db.execute("CREATE STREAM R (k INTEGER, v INTEGER); CREATE STREAM S (k INTEGER, v INTEGER)")
        asked = db.query(query)
        for at in range(0, rounds * rows, turns):
            pushed = [(at + i, (at + i) % 7) for i in range(turns)]
            ts = [at + i for i in range(turns)]
            db.push("R", pushed, ts=ts)
            db.push("S", pushed, ts=ts)
            asked.fetch()
            if (at + turns) % rows == 0:
                if asked.kind == "relation":
                    asked.snapshot()  # Changes not yet counted wait, up to a fixed number.
                sizes.append(db.nbytes)
    return sizes


@pytest.mark.parametrize("turns", [1, 5, 200])
@pytest.mark.parametrize("name", QUERIES)
def test_streams_pushed_by_turns_are_let_go_as_their_windows_pass(name: str, turns: int) -> None:
    sizes = held(QUERIES[name], 8, 200, turns)
    assert max(sizes[4:]) <= 2 * max(sizes[:2])


def test_answers_are_let_go_when_they_have_been_fetched() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        query = db.query("SELECT ISTREAM(k + 1) FROM S [NOW]")
        for ts, fetch in enumerate((query.fetch, query.fetch_arrow)):
            db.push("S", [(100 * ts + i,) for i in range(100)], ts=ts)
            db.advance(ts)
            assert query.figures()["waiting"] == 100
            held = [weakref.ref(batch.columns[0].values) for batch in query.waiting_batches()]
            fetch()
            gc.collect()
            assert held and all(each() is None for each in held)


@pytest.mark.parametrize("rows", [5_000, 17_000, 33_000])
def test_rings_have_room_for_less_than_twice_what_they_hold(rows: int) -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM R (k INTEGER, v INTEGER); CREATE STREAM S (k INTEGER, v INTEGER)")
        db.query(f"SELECT k, v FROM R [RANGE {rows}]")
        for at in range(0, 3 * rows, 100):
            values = np.arange(at, at + 100)
            db.push("R", {"k": values, "v": values}, ts=values)
        held = db.stream_input("R").store
        assert held.nbytes <= 2 * 24 * (rows + 200)
        joined = db.query(f"SELECT ISTREAM(R.k, S.v) FROM R [RANGE {rows}], S [RANGE {rows}] WHERE R.k = S.k")
        for at in range(3 * rows, 6 * rows, 100):
            values = np.arange(at, at + 100)
            db.push("R", {"k": values, "v": values}, ts=values)
            db.push("S", {"k": values, "v": values}, ts=values)
            joined.fetch()
        (of_join,) = [op for op in joined.network.operators if op.name == "MJoin"]
        assert sum(part.nbytes for part in of_join.synopses()) <= 2 * 2 * (rows + 200) * (28 + 8 * 4 / 3)
