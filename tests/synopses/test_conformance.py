"""What every synopsis owes, whatever it keeps (`synopses.synopsis`): its state as arrays and back, the codes it
holds, its bytes.

Queries are fed until their synopses have filled, shrunk, grown again and gone around their rings. Then each synopsis
gives its arrays and takes them back, and the queries go on beside twins of which nobody asked that: the answers must be
the same.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.synopses.synopsis import Synopsis

DECLARED = """
    CREATE STREAM R (k INTEGER, t TEXT, x FLOAT);
    CREATE STREAM S (k INTEGER, t TEXT, x FLOAT);
    CREATE STREAM T (k INTEGER, t TEXT, x FLOAT);
    CREATE RELATION Rel (k INTEGER, t TEXT);
"""
QUERIES = {
    "join of streams": "SELECT ISTREAM(R.t, S.x) FROM R [RANGE 40], S [RANGE 90] WHERE R.k = S.k",
    "join of windows": "SELECT R.t, S.x FROM R [ROWS 30], S [RANGE 40] WHERE R.k = S.k",
    "join of bags": "SELECT R.t, P.x FROM R [RANGE 40], S [PARTITION BY k ROWS 2] AS P WHERE R.k = P.k",
    "join with a condition": "SELECT R.t, S.t FROM R [ROWS 9], S [PARTITION BY k ROWS 1] WHERE R.k < S.k",
    "join of a relation": "SELECT R.k, Rel.t FROM R [RANGE 40], Rel WHERE R.k = Rel.k",
    "semi-join": "SELECT R.t FROM R [RANGE 40] WHERE R.k IN (SELECT k FROM S [RANGE 50])",
    "anti-join": "SELECT t FROM R [PARTITION BY k ROWS 2] AS P WHERE k NOT IN (SELECT k FROM S [ROWS 5] WHERE k > 2)",
    "groups": "SELECT t, COUNT(*), SUM(k), MIN(x), MAX(k) FROM R [RANGE 40] GROUP BY t",
    "groups of floats": "SELECT k, SUM(x), AVG(x) FROM R [ROWS 30] GROUP BY k",
    "distinct groups": "SELECT t, COUNT(DISTINCT k) FROM R [RANGE 40] GROUP BY t",
    "quantiles": "SELECT k, MEDIAN(x), QUANTILE_CONT(k, 0.3), QUANTILE_DISC(t, 0.7) FROM R [RANGE 40] GROUP BY k",
    "distinct quantiles": "SELECT t, MEDIAN(DISTINCT k), COUNT(DISTINCT k) FROM R [ROWS 30] GROUP BY t",
    "moments": "SELECT t, CORR(x, k), REGR_INTERCEPT(k, x), VAR_POP(DISTINCT k) FROM R [ROWS 30] GROUP BY t",
    "bits": "SELECT t, BIT_AND(k), BIT_XOR(DISTINCT k) FROM R [RANGE 40] GROUP BY t",
    "most frequent": "SELECT k, MODE(t), MODE() WITHIN GROUP (ORDER BY x DESC) FROM R [RANGE 40] GROUP BY k",
    "distinct": "SELECT DISTINCT t FROM R [RANGE 40]",
    "except": "SELECT t FROM R [RANGE 40] EXCEPT SELECT t FROM S [RANGE 30]",
    "rstream": "SELECT RSTREAM(t, k) FROM R [RANGE 10]",
    "bounds": "SELECT k, t, window_end FROM R [HOP 40 EVERY 10]",
    "sessions": "SELECT k, x, window_start, session_id FROM R [SESSION 3 PARTITION BY t]",
    "first rows": "SELECT k, t FROM R [RANGE 40] ORDER BY t DESC LIMIT 3 OFFSET 1",
    "ranks": "SELECT k, t, DENSE_RANK() OVER (PARTITION BY k ORDER BY t) AS n FROM R [RANGE 40]",
    "ranks of numbers": "SELECT k, RANK() OVER (PARTITION BY t ORDER BY x DESC) AS n FROM R [RANGE 40]",
    "neighbours": "SELECT k, x, LEAD(x, 2) OVER (PARTITION BY k ORDER BY x) AS n FROM R [ROWS 30]",
    "running": "SELECT k, SUM(x) OVER (PARTITION BY t ORDER BY ts) AS s, LAG(t, 2) OVER (ORDER BY ts) AS l FROM R",
    "slide": "SELECT k, t FROM R [RANGE 40 SLIDE 10]",
    "panes": "SELECT t, COUNT(*), SUM(k), MIN(x) FROM R [RANGE 40 SLIDE 20] GROUP BY t",
}
COVERED = {"IndexedWindow", "BagWindow", "KeyCounts", "Bag", "PartitionStub"}
"""Kinds that must be among those met."""
CODES = range(6)


def fed(db: Any, rng: random.Random, first: int, elements: int, keys: int) -> int:
    """So many elements of each stream, and changes of the relation; returns the instant after them."""
    ts = first + 1
    for _ in range(elements):
        ts += rng.randrange(2)
        for name in "RST":
            key = None if rng.random() < 0.1 else rng.randrange(keys)
            db.push(name, (key, f"code {rng.choice(CODES)}", rng.randrange(8) / 4), ts=ts)
        if rng.random() < 0.3:
            db.push("Rel", (rng.randrange(keys), f"code {rng.choice(CODES)}"), ts=ts)
    db.advance(ts + 1)
    return ts + 1


def through_phases(db: Any, seed: int) -> int:
    """Fill, shrink, grow again; windows go around their rings several times."""
    rng = random.Random(seed)
    ts = fed(db, rng, 1, 120, 5)
    db.advance(ts + 200)  # every range is empty
    return fed(db, rng, ts + 200, 90, 12)


def synopses_of(query: Any) -> list[Synopsis]:
    """Of all operators, as memory is accounted for."""
    return [s for operator in query.network.operators for s in operator.synopses()]


@pytest.mark.parametrize("name", QUERIES)
def test_a_synopsis_that_is_given_its_own_arrays_goes_on_as_before(name: str) -> None:
    answers = []
    for restores in (False, True):
        with minidsms.connect() as db:
            db.execute(DECLARED)
            query = db.query(QUERIES[name])
            ts = through_phases(db, 1)
            met = synopses_of(query)
            if restores:
                for synopsis in met:
                    assert isinstance(synopsis, Synopsis), type(synopsis)
                    held = synopsis.arrays()
                    codes = codes_of(synopsis)
                    synopsis.restore({each: array.copy() for each, array in held.items()})
                    again = synopsis.arrays()
                    assert held.keys() == again.keys()
                    assert all(is_alike(held[each], again[each]) for each in held), type(synopsis)
                    assert codes <= codes_of(synopsis), "what refers to a store holds its rows itself from now on"
                    assert synopsis.nbytes >= 0
            fed(db, random.Random(2), ts, 60, 12)
            answers.append(Counter(query.fetch()))
    assert answers[0] and answers[0] == answers[1]


def codes_of(synopsis: Synopsis) -> set[int]:
    """The TEXT codes held, NULL's aside."""
    return {int(code) for codes in synopsis.live_codes() for code in np.unique(codes)}


def is_alike(one: np.ndarray, other: np.ndarray) -> bool:
    """The same rows, in any order: those of bags may have got other slots."""
    if one.shape != other.shape:
        return False
    if not one.size:
        return True
    rows = [array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1) for array in (one, other)]
    ordered = [array[np.lexsort(array.T[::-1])] for array in rows]
    return bool(np.array_equal(ordered[0], ordered[1], equal_nan=ordered[0].dtype.kind == "f"))


def test_all_kinds_of_synopses_of_joins_groups_and_windows_are_met() -> None:
    met = set()
    for text in QUERIES.values():
        with minidsms.connect() as db:
            db.execute(DECLARED)
            met |= {type(synopsis).__name__ for synopsis in synopses_of(db.query(text))}
    assert met >= COVERED


@pytest.mark.parametrize("name", ["join of bags", "semi-join", "groups", "distinct"])
def test_state_shrinks_after_a_burst_and_names_no_code_of_what_has_left(name: str) -> None:
    with minidsms.connect() as db:
        db.execute(DECLARED)
        query = db.query(QUERIES[name])
        rng = random.Random(3)
        ts = fed(db, rng, 1, 40, 5)
        before = sum(synopsis.nbytes for synopsis in synopses_of(query))
        ts += 1
        for _ in range(4):
            n = 2_000
            rows = {"k": np.arange(n), "t": [f"burst {i}" for i in range(n)], "x": np.zeros(n)}
            for stream in "RS":
                db.push(stream, rows, ts=np.full(n, ts))
        db.advance(ts + 100)
        most = sum(synopsis.nbytes for synopsis in synopses_of(query))
        for _ in range(30):
            ts = fed(db, rng, ts + 100, 2, 5)
        now = sum(synopsis.nbytes for synopsis in synopses_of(query))
        assert before <= most and (most < 2 * before or now < most)
