"""Joins whose windows are indexed by bit addresses, as `SET join_index = 'bit_address'` asks."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import minidsms
from minidsms.query import Query
from minidsms.settings import INDEX_ASSESSMENTS, INDEX_MIGRATIONS, INDEX_TUNINGS
from minidsms.streamon.loop import adaptations_of
from minidsms.testing.compare import check
from tests.long.join_cases import random_join_case
from tests.seeds import seeds
from tests.streamon.join_index.test_adaptive_index import FIXED, push, triangle

BITS: dict[str, Any] = {**FIXED, "join_index": "bit_address"}
SETTINGS = [
    {
        "index_assessment": INDEX_ASSESSMENTS[n % 5],
        "index_tuning": INDEX_TUNINGS[n % 4],
        "index_migration": INDEX_MIGRATIONS[n % 3],
    }
    for n in range(12)
]


def bits(query: Query) -> list[tuple[int, ...]]:
    (each,) = [a for a in adaptations_of(query.network.operators) if a.technique == "join index"]
    return [each.of for each in each.executor.plan]


@pytest.fixture(scope="module")
def by_keys() -> list[Any]:
    with minidsms.connect(**FIXED, join_index="hash") as db:
        query = triangle(db)
        push(db, 30, 900)
        return sorted(query.fetch())


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: "-".join(each.values()))
def test_bits_are_chosen_by_what_is_asked_and_no_answer_shows_them(
    settings: dict[str, str], by_keys: list[Any]
) -> None:
    with minidsms.connect(**BITS, **settings, index_window=2000) as db:
        query = triangle(db)
        push(db, 30, 900)
        assert query.decisions() and {d.technique for d in query.decisions()} == {"join index"}
        assert all(sum(each) > 4 for each in bits(query))
        assert "index of C: bits of y " in query.explain(analyze=True)
        assert sorted(query.fetch()) == by_keys


def test_bits_follow_the_patterns_of_the_orders() -> None:
    with minidsms.connect(**BITS, index_window=2000, index_tuning="continuous") as db:
        query = triangle(db)
        push(db, 30, 600)
        (place,) = [a for a in adaptations_of(query.network.operators) if a.technique == "join index"]
        join = place.executor.join
        asked = place.profiler.workloads
        for j, workload in asked.items():
            able = {join.graph.known((i, *order[: order.index(j)]), j) for i, order in enumerate(join.orders) if i != j}
            assert workload.frequencies.keys() <= able
        assert len(asked) == 3 and sum(map(sum, bits(query))) > 0


@pytest.mark.parametrize("migration", INDEX_MIGRATIONS)
@pytest.mark.parametrize("seed", seeds(6))
def test_every_configuration_gives_the_answer_by_definition(seed: int, migration: str) -> None:
    rng = Random(f"{seed} {migration}")
    case = random_join_case(4_000 + seed, (3, 4), 14, ("cycle", "complete", "chain")[seed % 2 :])
    settings = {
        "join_index": "bit_address", "index_migration": migration, "forced_every": (1, 2, 3, 7, None)[seed % 5],
        "batch_size": rng.choice((1, 2, 7, 65_536)), "rows_per_push": rng.choice((1, 2, None)), "index_window": 5,
    }  # fmt: skip
    check(case, **settings)


def test_joins_that_cannot_have_bits_go_by_keys() -> None:
    with minidsms.connect(**BITS) as db:
        for name in "ABC":
            db.execute(f"CREATE STREAM {name} (x INTEGER)")
        apart = db.query("SELECT A.x FROM A [RANGE 5], B [RANGE 5], C [RANGE 5] WHERE A.x = B.x")
        assert "index of" not in apart.explain(analyze=True)
        db.execute("SET join_plan = 'xjoin'")
        kept = db.query("SELECT A.x FROM A [RANGE 5], B [RANGE 5], C [RANGE 5] WHERE A.x = B.x AND B.x = C.x")
        assert "XJoin" in kept.explain(analyze=True) and "index of" not in kept.explain(analyze=True)


def test_a_join_by_a_band_does_not_have_bits() -> None:
    """A join of two such streams raised an AssertionError as it was made."""
    answers = []
    for index in ("bit_address", "hash"):
        with minidsms.connect(**{**BITS, "join_index": index}) as db:
            db.execute("CREATE STREAM A (k INTEGER, x INTEGER); CREATE STREAM B (k INTEGER, y INTEGER)")
            db.execute("CREATE STREAM C (k INTEGER)")
            near = "A.k = B.k AND A.x >= B.y AND A.x <= B.y + 2"
            queries = [
                db.query(f"SELECT A.x, B.y FROM A [RANGE 9], B [RANGE 9] WHERE {near}"),
                db.query(f"SELECT A.x, B.y FROM A [RANGE 9], B [RANGE 9], C [RANGE 9] WHERE {near} AND C.k = A.k"),
            ]
            assert "bits of" not in queries[0].explain(analyze=True)
            for ts in range(60):
                db.push("ABC"[ts % 3], (ts % 2, ts % 5)[: 1 if ts % 3 == 2 else 2], ts=ts)
            db.advance(99)
            answers.append([sorted(query.fetch()) for query in queries])
    assert answers[0] == answers[1] and all(answers[0])
