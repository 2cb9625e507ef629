"""Large pushes are read where they stand, and the answers are those of rows that were copied."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.elements import Column, Schema, Type
from minidsms.inputs import stream_input
from minidsms.synopses import stream_store
from minidsms.synopses.stream_store import StreamStore

DECLARED = "CREATE STREAM A (k INTEGER, v FLOAT); CREATE STREAM B (k INTEGER, v FLOAT);"
QUERIES = (
    ("SELECT k, v FROM A WHERE v > 20",),
    ("SELECT k, v FROM A",),
    ("SELECT k + 1, v FROM A WHERE k = 3", "SELECT v FROM A WHERE v < 30"),
    ("SELECT k, COUNT(*), MAX(k) FROM A [RANGE 7] GROUP BY k", "SELECT k FROM A WHERE k > 2"),
    ("SELECT k, v FROM A [ROWS 5]",),
    ("ISTREAM (SELECT A.k, A.v, B.v FROM A [RANGE 9], B [RANGE 5] WHERE A.k = B.k)", "SELECT k FROM B WHERE v < 9"),
    ("SELECT k, v FROM A [PARTITION BY k ROWS 2]", "RSTREAM (SELECT k FROM A [RANGE 6 SLIDE 3])"),
)


@pytest.fixture(autouse=True)
def every_push_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_store, "_WORTH_PASSING", 1)
    monkeypatch.setattr(stream_input, "_WORTH_A_STEP", 1)


def pushes(seed: int) -> list[tuple[str, list[int], list[float], list[int]]]:
    rng = random.Random(seed)
    ts, found = 0, []
    for _ in range(12):
        n = rng.choice([1, 3, 8, 40])
        instants = []
        for _ in range(n):
            ts += rng.choice([0, 0, 1, 2])
            instants.append(ts)
        found.append(
            (rng.choice("AB"), [rng.randrange(5) for _ in range(n)], [rng.random() * 40 for _ in range(n)], instants)
        )
    return found


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1000])
@pytest.mark.parametrize("queries", QUERIES)
def test_what_passes_is_answered_as_what_is_copied(queries: tuple[str, ...], batch_size: int) -> None:
    for seed in range(3):
        with minidsms.connect(batch_size=batch_size) as passing, minidsms.connect() as copying:
            asked = []
            for db in (passing, copying):
                db.execute(DECLARED)
                asked.append([db.query(q) for q in queries])
            for name, k, v, ts in pushes(seed):
                columns = {"k": np.array(k), "v": np.array(v)}
                passing.push(name, columns, ts=np.array(ts))
                # They belong to the application again.
                columns["k"][:] = -1
                columns["v"][:] = -1.0
                for row in zip(k, v, ts):
                    copying.push(name, row[:2], ts=row[2])
            for db in (passing, copying):
                db.advance(500)
            for one, other in zip(*asked):
                assert sorted(one.fetch()) == sorted(other.fetch()) != []


def test_nothing_that_was_given_stays_in_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    with minidsms.connect() as db:
        db.execute(DECLARED)
        q = db.query("SELECT k FROM A WHERE v > 1")
        given = np.arange(5000)
        db.push("A", {"k": given, "v": given * 1.0}, ts=given)
        store = db.stream_input("A").store
        assert len(store) == 0 and store.nbytes < 5000 * 8, "what nobody keeps has not been copied"
        window = db.query("SELECT COUNT(*) FROM A [RANGE 100]")
        later = given + 5000
        db.push("A", {"k": later, "v": later * 1.0}, ts=later)
        later[:] = 0
        assert store.ts(store.head - 3, store.head).tolist() == [9997, 9998, 9999]
        db.advance(9999)
        assert window.snapshot() == [(100,)]
        assert len(q.fetch()) == 4998 + 5000


def test_of_a_push_in_parts_only_the_last_instant_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []
    put = StreamStore._put

    def counting(self: StreamStore, start: int, ts: Any, columns: Any) -> None:
        copied.append(len(ts))
        put(self, start, ts, columns)

    monkeypatch.setattr(StreamStore, "_put", counting)
    with minidsms.connect(batch_size=64) as db:
        db.execute(DECLARED)
        db.create_function("minus", np.negative, ["INTEGER"], "INTEGER", vectorized=True)
        q = db.query("SELECT k FROM A WHERE minus(k) < -1")
        given = np.arange(5000)
        db.push("A", {"k": given, "v": given * 1.0}, ts=given // 10)
        assert copied == [10] and len(q.fetch()) == 4990 - 2
        # What waits is closed by the next push, and processed before it is stored.
        db.push("A", {"k": given + 2, "v": given * 1.0}, ts=given // 10 + 500)
        assert copied == [10, 10] and len(q.fetch()) == 5000
        # Here it goes on.
        db.push("A", {"k": given + 2, "v": given * 1.0}, ts=given // 10 + 999)
        assert sum(copied[2:]) > 10 and len(q.fetch()) == 5000
        db.push("A", (7, 7.0), ts=1498)
        db.advance(1498)
        assert len(q.fetch()) == 11


def test_a_call_that_is_interrupted_leaves_nothing_of_the_application_in_the_store() -> None:
    def stumbling(v: Any) -> Any:
        raise KeyboardInterrupt

    with minidsms.connect() as db:
        db.execute(DECLARED)
        db.create_function("stumbling", stumbling, ["FLOAT"], "FLOAT", vectorized=True)
        db.query("SELECT stumbling(v) FROM A")
        counting = db.query("SELECT COUNT(*) FROM A [RANGE 10], B [RANGE 10]")
        given = np.arange(10)
        with pytest.raises(KeyboardInterrupt):
            db.push("A", {"k": given, "v": given * 1.0}, ts=given)
        given[:] = 77
        store = db.stream_input("A").store
        assert store.gather(0, np.arange(store.tail, store.head)).values.tolist() == list(range(10))
        assert counting.name


def test_arrays_that_kernels_do_not_take_are_copied() -> None:
    store = StreamStore(Schema.of(("a", Type.INTEGER)))
    store.reader()
    frozen = np.arange(5)
    frozen.flags.writeable = False
    for ts, values in ((np.arange(5), frozen), (np.arange(10)[::2], np.arange(5)), (np.arange(5), np.arange(10)[::2])):
        first = store.append(ts, [Column(values)], passes=True)
        kept = store.ts(first, first + 5), store.gather(0, np.arange(first, first + 5)).values
        assert all(array.flags.writeable and array.flags.c_contiguous for array in kept)
