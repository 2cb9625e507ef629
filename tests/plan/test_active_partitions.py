"""The last rows of keys that a join with recent keys asks for: the same answers, and no state for keys long gone."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import minidsms
from minidsms.cql.binder import bind
from minidsms.cql.parser import parse_query
from minidsms.testing.compare import Answer, difference_of
from minidsms.testing.definition import answer
from minidsms.testing.history import History
from tests.seeds import seeds

LAST = "(SELECT k, g, v / 2 AS w FROM S [PARTITION BY k ROWS 1]) AS L"
RECENT = "(SELECT DISTINCT k FROM S [RANGE 6]) AS A"

REPLACED = [
    f"SELECT L.k, w FROM {LAST}, {RECENT} WHERE L.k = A.k",
    f"SELECT A.k, L.w, L.g FROM {RECENT}, {LAST} WHERE A.k = L.k",
    f"SELECT ISTREAM(L.k, w) FROM {LAST}, {RECENT} WHERE L.k = A.k AND w > 1",
    f"SELECT RSTREAM(L.k, w) FROM {LAST}, {RECENT} WHERE L.k = A.k",
    f"SELECT COUNT(*), SUM(w) FROM {LAST}, {RECENT} WHERE L.k = A.k",
    f"SELECT DISTINCT g FROM {LAST}, {RECENT} WHERE L.k = A.k",
    "SELECT L.k FROM (SELECT k FROM S [PARTITION BY k ROWS 1] WHERE v > 2) AS L,"
    " (SELECT DISTINCT k FROM S [RANGE 6]) AS A WHERE L.k = A.k",
    "SELECT L.v FROM S [PARTITION BY k ROWS 1 RANGE 4] AS L, (SELECT DISTINCT k FROM S [RANGE 6]) AS A WHERE L.k = A.k",
    "SELECT L.v FROM S [PARTITION BY k ROWS 1 RANGE 9] AS L, (SELECT DISTINCT k FROM S [RANGE 6]) AS A WHERE L.k = A.k",
    "SELECT L.v FROM S [PARTITION BY k, g ROWS 1] AS L, (SELECT DISTINCT g, k FROM S [RANGE 6]) AS A"
    " WHERE L.k = A.k AND L.g = A.g",
    f"SELECT L.k, w, T.v FROM {LAST}, {RECENT}, T [RANGE 9] WHERE L.k = A.k AND L.k = T.k",
    f"SELECT A.k, w, T.v FROM {LAST}, {RECENT}, T [ROWS 5] WHERE L.k = A.k AND A.k = T.k",
    f"SELECT C.g, X.k FROM (SELECT L.k, L.g FROM {LAST}, {RECENT} WHERE L.k = A.k) AS C,"
    " (SELECT k FROM S [PARTITION BY k ROWS 3] GROUP BY k HAVING COUNT(DISTINCT g) = 1 AND COUNT(*) = 3) AS X"
    " WHERE C.k = X.k",
]

AS_WRITTEN = [
    f"SELECT L.k FROM {LAST}, (SELECT DISTINCT k FROM T [RANGE 6]) AS A WHERE L.k = A.k",
    f"SELECT L.k FROM {LAST}, (SELECT DISTINCT k FROM S [RANGE 6] WHERE v > 2) AS A WHERE L.k = A.k",
    f"SELECT L.k FROM {LAST}, (SELECT DISTINCT k FROM S [ROWS 6]) AS A WHERE L.k = A.k",
    f"SELECT L.k FROM {LAST}, (SELECT DISTINCT k FROM S [RANGE 6 SLIDE 2]) AS A WHERE L.k = A.k",
    f"SELECT L.k FROM {LAST}, (SELECT DISTINCT k, g FROM S [RANGE 6]) AS A WHERE L.k = A.k",
    f"SELECT L.k FROM {LAST}, (SELECT k FROM S [RANGE 6]) AS A WHERE L.k = A.k",
    f"SELECT L.k FROM {LAST}, (SELECT DISTINCT g FROM S [RANGE 6]) AS A WHERE L.k = A.g",
    f"SELECT L.k FROM {LAST}, {RECENT} WHERE L.g = A.k",
    "SELECT L.k FROM S [PARTITION BY k ROWS 2] AS L, (SELECT DISTINCT k FROM S [RANGE 6]) AS A WHERE L.k = A.k",
    "SELECT L.k FROM S [PARTITION BY g ROWS 1] AS L, (SELECT DISTINCT k FROM S [RANGE 6]) AS A WHERE L.k = A.k",
]

STREAMS = "CREATE STREAM S (k INTEGER, g INTEGER, v INTEGER); CREATE STREAM T (k INTEGER, v INTEGER)"


def rows(rng: Random) -> dict[str, list[tuple[int, tuple[int | None, ...]]]]:
    """Keys that come and go, some NULL, several rows an instant."""
    found: dict[str, list[tuple[int, tuple[int | None, ...]]]] = {"s": [], "t": []}
    for ts in range(40):
        first = ts // 8
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            key = None if rng.random() < 0.1 else first + rng.randrange(4)
            found["s"].append((ts, (key, rng.choice([None, 1, 2]), rng.randrange(9))))
        if rng.random() < 0.4:
            found["t"].append((ts, (first + rng.randrange(4), rng.randrange(9))))
    return found


def answered(text: str, history: dict[str, Any], cut: int, settings: dict[str, Any]) -> tuple[Answer, str]:
    with minidsms.connect(time_unit="s", state_reduction="k-mon", **settings) as db:
        db.execute(STREAMS)
        q = db.query(text)
        together = sorted((t, name, row) for name, items in history.items() for t, row in _keyed(items))
        for first in range(0, len(together), cut):
            for t, name, (_, row) in together[first : first + cut]:
                db.push(name, [row], ts=t)
        db.advance(50)
        return Answer(tuple((c.ts, c.sign, tuple(c.row)) for c in q.fetch())), str(q.explain())


def _keyed(items: list[tuple[int, tuple[Any, ...]]]) -> list[tuple[int, tuple[int, tuple[Any, ...]]]]:
    """Rows that sort by their arrival."""
    return [(t, (at, row)) for at, (t, row) in enumerate(items)]


@pytest.mark.parametrize("text", [*REPLACED, *AS_WRITTEN])
def test_answers_are_those_of_the_definition(text: str) -> None:
    for seed in seeds(2):
        history = rows(Random(seed))
        with minidsms.connect(time_unit="s") as db:
            db.execute(STREAMS)
            node = bind(parse_query(text), db.catalog, "").node
        expected = Answer(tuple(answer(node, History(history, {}, tick_ns=1_000_000_000), 50)))
        for settings in ({}, {"batch_size": 1}, {"batch_size": 7, "sharing": False, "adaptive": False}):
            got, plan = answered(text, history, 5, settings)
            assert difference_of(expected, got) == ""
            assert ("Reduced: of the last rows of" in plan) == (text in REPLACED)


def test_keys_long_gone_are_not_kept() -> None:
    held = {}
    for mode in ("off", "k-mon"):
        with minidsms.connect(state_reduction=mode) as db:
            db.execute(STREAMS)
            q = db.query(REPLACED[0].replace("RANGE 6", "RANGE 100"))
            for first in range(0, 40_000, 1000):
                keys = list(range(first, first + 1000))
                db.push("S", {"k": keys, "g": keys, "v": keys}, ts=keys)
                q.fetch()
            held[mode] = db.memory.nbytes
    assert held["k-mon"] < held["off"] / 15


def test_only_k_mon_looks_for_them() -> None:
    for mode in ("off", "swj"):
        with minidsms.connect(state_reduction=mode) as db:
            db.execute(STREAMS)
            assert "DISTINCT" in db.query(REPLACED[0]).expanded
            assert "Reduced: of" not in str(db.query(REPLACED[0]).explain())
