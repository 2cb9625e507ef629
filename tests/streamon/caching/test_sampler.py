"""What sampled rows meet in their pipelines, against joining them by hand."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import minidsms
from minidsms.elements import Batch
from minidsms.joins.plan import CacheSpec
from minidsms.streamon.caching.sampler import PipelineSampler

R, S, T = 0, 1, 2
QUERIES = {
    "ranges": "SELECT ISTREAM(R.a, T.b) FROM R [RANGE 500], S [RANGE 500], T [RANGE 500] WHERE R.a = S.a AND S.b = T.b",
    "rows": "SELECT R.a, T.b FROM R [ROWS 500], S [ROWS 500], T [ROWS 500] WHERE R.a = S.a AND S.b = T.b",
    "bag": "SELECT R.a, T.b FROM R [PARTITION BY a ROWS 99], S [ROWS 500], T [ROWS 500] WHERE R.a = S.a AND S.b = T.b",
}


def joined(
    query: str, rows: dict[str, list[tuple[int, ...]]], join_index: str = "auto"
) -> tuple[Any, list[Batch | None]]:
    """A join that has taken all rows, at one instant, and the part that they were."""
    db = minidsms.connect(join_plan="mjoin", caching="prefix", join_index=join_index)
    db.execute("CREATE STREAM R (a INTEGER); CREATE STREAM S (a INTEGER, b INTEGER); CREATE STREAM T (b INTEGER)")
    q = db.query(query)
    join: Any = next(op for op in q.network.operators if op.name == "MJoin")
    parts: list[list[Batch | None]] = []
    join.watch.joined = lambda part, beside_ns: parts.append(list(part))
    for stream, each in rows.items():
        db.push(stream, each, ts=1)
    db.advance(1)
    (part,) = parts
    return join, part


def some_rows() -> dict[str, list[tuple[int, ...]]]:
    rng = Random(5)
    return {
        "R": [(rng.randrange(20),) for _ in range(60)],
        "S": [(rng.randrange(25), rng.randrange(25)) for _ in range(60)],
        "T": [(rng.randrange(20),) for _ in range(60)],
    }


@pytest.mark.parametrize("join_index", ["auto", "bit_address"])
@pytest.mark.parametrize("query", QUERIES)
def test_samples_count_the_tuples_that_reach_each_position(query: str, join_index: str) -> None:
    rows = some_rows()
    join, part = joined(QUERIES[query], rows, join_index)
    assert any(join.index.configurations) == (join_index == "bit_address")
    sampler = PipelineSampler(join, join.watch, measures_time=False)
    sampler.joined(part)
    of_t = [[s for s in rows["S"] if s[1] == t[0]] for t in rows["T"]]
    results = [r for matches in of_t for s in matches for r in rows["R"] if r[0] == s[0]]
    figures = sampler.pipeline_figures()[T]
    assert figures.sampled == 60
    assert figures.processed == (60, sum(map(len, of_t)), len(results))


@pytest.mark.parametrize("query", QUERIES)
def test_the_probe_stream_of_a_cache_is_followed_key_by_key(query: str) -> None:
    rows = some_rows()
    join, part = joined(QUERIES[query], rows)
    sampler = PipelineSampler(join, join.watch, measures_time=False)
    first, second = CacheSpec(T, (S, R)), CacheSpec(R, (T,))
    sampler.profile(frozenset((first, second)))
    sampler.joined(part)
    samples = sampler.probe_samples()
    assert [key for sample in samples[first] for (key,) in sample.keys.tolist()] == [t[0] for t in rows["T"]]
    probed = Counter(key for sample in samples[second] for (key,) in sample.keys.tolist())
    assert probed == Counter(s[1] for r in rows["R"] for s in rows["S"] if s[0] == r[0])
    assert sampler.probe_samples() == {}


def test_rows_that_came_later_or_have_left_are_not_met() -> None:
    db = minidsms.connect(join_plan="mjoin", caching="prefix")
    db.execute("CREATE STREAM R (a INTEGER); CREATE STREAM S (a INTEGER, b INTEGER); CREATE STREAM T (b INTEGER)")
    q = db.query("SELECT ISTREAM(R.a) FROM R [RANGE 5], S [RANGE 5], T [RANGE 5] WHERE R.a = S.a AND S.b = T.b")
    join: Any = next(op for op in q.network.operators if op.name == "MJoin")
    sampler = PipelineSampler(join, join.watch, measures_time=False)
    join.watch.joined = lambda part, beside_ns: sampler.joined(part)
    db.push("S", [(1, 1)] * 3, ts=[1, 8, 20])
    db.push("T", [(1,), (1,)], ts=[3, 10])
    db.advance(20)
    assert sampler.pipeline_figures()[T].processed == (2, 2, 0)


def test_changes_of_what_a_cache_stands_for_are_sampled_by_its_key() -> None:
    rows = some_rows()
    join, part = joined(QUERIES["rows"], rows)
    sampler = PipelineSampler(join, join.watch, measures_time=False)
    spec = CacheSpec(T, (S, R))
    sampler.profile(frozenset((spec,)))
    sampler.joined(part)
    changed = Counter(key for keys in sampler.change_samples()[spec] for (key,) in keys.tolist())
    pairs = Counter(s[1] for r in rows["R"] for s in rows["S"] if r[0] == s[0])
    assert changed == Counter({key: 2 * count for key, count in pairs.items()})  # by rows of R, and by those of S
    assert sampler.change_samples() == {}
