"""Semi-joins of what arrives now, as filters that may stand in any order."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from random import Random
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.elements import Batch, Column, Schema, Type
from minidsms.synopses.instant_counts import InstantCounts
from minidsms.testing.compare import check, run_definition
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case, declaration
from minidsms.testing.switching import forced_switching
from tests.seeds import seeds

NAMES = ["Sa", "Sb", "Sc", "Rel"]
PROBING = [
    "SELECT RSTREAM(*) FROM Sa [NOW] WHERE k IN (SELECT k FROM Sb [ROWS 3]) AND t IN (SELECT t FROM Rel) AND v > 1",
    "SELECT RSTREAM(k + 1 AS c) FROM Sa [NOW] WHERE k IN (SELECT k FROM Sb [RANGE 4])"
    " AND k NOT IN (SELECT k FROM Sc [ROWS 2])",
    "SELECT RSTREAM(k) FROM Sa [NOW] WHERE EXISTS (SELECT * FROM Sb [RANGE 3] WHERE Sb.k = Sa.k AND Sb.t = Sa.t)"
    " AND NOT EXISTS (SELECT * FROM Rel WHERE Rel.k = Sa.k) AND x < 2.0",
    "SELECT RSTREAM(Sb.k, v) FROM Sb [NOW] WHERE k IN (SELECT k FROM Sa [RANGE 5 SLIDE 2])"
    " AND v IN (SELECT v FROM Sa [ROWS 4])",
    "SELECT RSTREAM(k, v) FROM Sa [NOW] WHERE v * v > 3 AND k IN (SELECT k FROM Sa [RANGE 3] WHERE v > 0)",
    "SELECT RSTREAM(k) FROM Sa [NOW] WHERE k IN (SELECT k FROM Sb [RANGE UNBOUNDED] GROUP BY k HAVING COUNT(*) > 1)",
    "SELECT RSTREAM(k) FROM Sa [NOW] WHERE k IN (SELECT COUNT(*) FROM Sb [RANGE 3]) OR k IN (SELECT k FROM Sc [NOW])",
]
WITHOUT_KEYS = [
    "SELECT RSTREAM(k, v) FROM Sa [NOW] WHERE k NOT IN (SELECT k FROM Sb [ROWS 2])",
    "SELECT RSTREAM(*) FROM Sa [NOW] WHERE t NOT IN (SELECT t FROM Rel) AND k > 0 AND v < 3",
    "SELECT RSTREAM(k) FROM Sa [NOW] WHERE k NOT IN (SELECT k FROM Sb [RANGE 3] WHERE Sb.t = Sa.t)",
    "SELECT RSTREAM(k) FROM Sa [NOW] WHERE k NOT IN (SELECT k FROM Sb [RANGE 2] WHERE v > 1)"
    " AND k NOT IN (SELECT k FROM Sc [NOW]) AND EXISTS (SELECT * FROM Rel WHERE k > 1)",
    "SELECT RSTREAM(k, x) FROM Sa [NOW] WHERE NOT EXISTS (SELECT * FROM Sb [RANGE 2]) AND k IN (SELECT k FROM Rel)",
    "SELECT RSTREAM(v) FROM Sa [NOW] WHERE EXISTS (SELECT * FROM Sb [ROWS 1] WHERE v > 1)",
]
"""Some probes ask for any row."""
PROBING += WITHOUT_KEYS
WAYS: tuple[dict[str, Any], ...] = (
    {"adaptive": "off"},
    {"forced_every": 1},
    {"cost_model": "fixed", "profile_rate": 1.0, "profile_window": 5},
    {"cost_model": "fixed", "profile_rate": 1.0, "profile_window": 5, "filter_ordering": "local_swaps"},
)


@pytest.mark.parametrize("query", PROBING)
def test_probes_answer_as_the_definition_does(query: str) -> None:
    for seed in seeds(5):
        rng = Random(seed)
        feed = random_feed(rng, NAMES, 14, may_be_extreme=False)
        case = Case(tuple(map(declaration, NAMES)), query, feed, registered=0 if seed % 3 else 2)
        expected = run_definition(case)
        for i, way in enumerate(WAYS):
            batch_size = (1, 2, 7, 65_536)[(seed + i) % 4]
            assert check(case, None if seed % 2 else 1, expected, batch_size=batch_size, **way) == "agreed"


def test_semi_joins_of_now_are_filters_of_the_stream() -> None:
    with minidsms.connect() as db:
        for name in NAMES:
            db.execute(declaration(name))
        plan = db.query(PROBING[0]).explain()
        assert "Select v > 1 AND k IN (.. Sb ..) AND t IN (.. Rel ..)" in plan and "SemiJoin" not in plan
        for query in WITHOUT_KEYS:
            plan = db.query(query).explain()
            assert "Join" not in plan and "Select" in plan
        assert "Select k NOT IN (.. Sb ..) AND (k IS NOT NULL OR NOT EXISTS (.. Sb ..)) AND NOT EXISTS (.. Sb ..)" in (
            db.query(WITHOUT_KEYS[0]).explain()
        )
        assert (
            "AntiJoin" in db.query("SELECT RSTREAM(k) FROM Sa [NOW] WHERE k + 1 NOT IN (SELECT k FROM Rel)").explain()
        )
        # What is read again by a window is ordered by value within an instant (T3).
        nested = (
            "SELECT COUNT(*) FROM (SELECT RSTREAM(k) FROM Sa [NOW] WHERE k IN (SELECT k FROM Sb [ROWS 3])) [ROWS 2]"
        )
        assert "SemiJoin" in db.query(nested).explain()
        assert "SemiJoin" in db.query(PROBING[0].replace("[NOW]", "[RANGE 2]")).explain()
        assert "SemiJoin" in db.query(PROBING[0].replace("RSTREAM", "DSTREAM")).explain()
        assert "SemiJoin" not in db.query(PROBING[0].replace("RSTREAM", "ISTREAM")).explain()


@pytest.mark.parametrize("batch_size", [1, 2, 7, 65_536])
def test_not_in_of_rows_with_null_asks_whether_there_is_any_row(batch_size: int) -> None:
    with minidsms.connect(batch_size=batch_size) as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE STREAM T (k INTEGER)")
        query = db.query("SELECT RSTREAM(k) FROM S [NOW] WHERE k NOT IN (SELECT k FROM T [RANGE 3])")
        for ts in range(12):
            db.push("S", [(None,), (1,), (2,)], ts=ts)
            if ts in (2, 7):
                db.push("T", (1 if ts == 2 else None,), ts=ts)
        db.advance(12)
        seen = {ts: {c.row[0] for c in changes} for ts, changes in groupby(query.fetch(), lambda c: c.ts)}
    free, beside_one = {None, 1, 2}, {2}
    assert seen == {ts: free for ts in (0, 1, 5, 6, 10, 11)} | {ts: beside_one for ts in (2, 3, 4)}


def test_the_probe_that_drops_most_comes_first() -> None:
    with minidsms.connect(cost_model="fixed", profile_rate=1.0, profile_window=100) as db:
        db.execute("CREATE STREAM S0 (a INTEGER); CREATE STREAM S1 (a INTEGER); CREATE STREAM S2 (a INTEGER)")
        query = db.query(
            "SELECT RSTREAM(*) FROM S0 [NOW] "
            "WHERE S0 IN (SELECT * FROM S1 [ROWS 100]) AND S0 IN (SELECT * FROM S2 [ROWS 10]) AND a >= 0"
        )
        db.push("S1", {"a": list(range(100))}, ts=[0] * 100)
        db.push("S2", {"a": list(range(10))}, ts=[0] * 10)
        db.push("S0", {"a": list(range(100)) * 3}, ts=list(range(1, 301)))
        db.advance(300)
        assert [c.row for c in query.fetch()] == [(a,) for a in range(10)] * 3
        (decision,) = query.decisions()
        # As written F1 is the comparison: it cannot fail and has moved to the stream.
        assert decision.new_plan.startswith("F3") and "a IN (.. S2 ..)" in query.explain(analyze=True)


def test_switching_amid_a_slice_sees_every_relation_at_its_instant() -> None:
    with minidsms.connect() as db, forced_switching(db, 1, seed=1):
        db.execute("CREATE STREAM S0 (a INTEGER); CREATE STREAM S1 (a INTEGER); CREATE STREAM S2 (a INTEGER)")
        query = db.query(
            "SELECT RSTREAM(*) FROM S0 [NOW] "
            "WHERE S0 IN (SELECT * FROM S1 [ROWS 1]) AND S0 IN (SELECT * FROM S2 [ROWS 1])"
        )
        n = 40
        for stream, shift in (("S1", 0), ("S2", 1), ("S0", 0)):
            db.push(stream, {"a": [(i + shift) // 2 for i in range(n)]}, ts=list(range(n)))
        db.advance(n)
        assert [c.ts for c in query.fetch()] == [i for i in range(n) if i // 2 == (i + 1) // 2]


def test_counts_at_an_instant_are_those_of_a_recount() -> None:
    rng = np.random.default_rng(3)
    schema = Schema.of(("k", Type.INTEGER), ("t", Type.INTEGER))
    for null_safe in (False, True):
        counts = InstantCounts(schema, null_safe)
        held: Counter[tuple[Any, ...]] = Counter()
        for slice_ in range(30):
            changes: list[tuple[int, int, tuple[Any, ...]]] = []
            for ts in range(slice_ * 10, slice_ * 10 + int(rng.integers(0, 10))):
                there = [key for key, n in (held + Counter()).items() for _ in range(n)]
                if there and rng.random() < 0.5:
                    key = there[int(rng.integers(len(there)))]
                    changes.append((ts, -1, key))
                    held[key] -= 1
                key = (int(rng.integers(0, 3)), None if rng.random() < 0.2 else int(rng.integers(0, 2)))
                changes.append((ts, 1, key))
                held[key] += 1
            counts.begin(batch_of(changes) if changes else None)
            at_end = Counter({key: n for key, n in held.items() if n})
            keys = [(k, t) for k in range(4) for t in (None, 0, 1)] * 11
            instants = np.repeat(np.arange(slice_ * 10 - 1, slice_ * 10 + 10), 12)
            columns = columns_of(keys)
            found = counts.present(columns, instants)
            for key, ts, present in zip(keys, instants.tolist(), found.tolist()):
                later = sum(sign for at, sign, changed in changes if changed == key and at > ts)
                expected = at_end[key] - later > 0 and (null_safe or None not in key)
                assert present == expected
            counts.finish()
            assert len(counts) == sum(1 for key in at_end if null_safe or None not in key)
        copy = InstantCounts(schema, null_safe)
        copy.restore(counts.arrays())
        assert (copy.present(columns, instants) == counts.present(columns, instants)).all() and len(copy) == len(counts)


def test_a_relation_without_key_columns_has_one_key() -> None:
    counts = InstantCounts(Schema(()), False)
    counts.begin(Batch(np.array([1, 3, 3, 5]), np.array([1, 1, -1, -1], np.int8), []))
    asked = np.array([0, 1, 2, 3, 4, 5, 6])
    assert counts.present([], asked).tolist() == [False, True, True, True, True, False, False]
    counts.finish()
    assert len(counts) == 0
    counts.begin(Batch(np.array([7]), np.array([1], np.int8), []))
    counts.finish()
    copy = InstantCounts(Schema(()), False)
    copy.restore(counts.arrays())
    assert copy.present([], np.array([8])).tolist() == [True] and len(copy) == 1


def columns_of(keys: list[tuple[Any, ...]]) -> list[Column]:
    result = []
    for values in zip(*keys):
        valid = np.array([v is not None for v in values])
        result.append(Column(np.array([v or 0 for v in values], np.int64), None if valid.all() else valid))
    return result


def batch_of(changes: list[tuple[int, int, tuple[Any, ...]]]) -> Batch:
    ts = np.array([c[0] for c in changes], np.int64)
    return Batch(ts, np.array([c[1] for c in changes], np.int8), columns_of([c[2] for c in changes]))
