"""Generated n-way joins: whatever caches the pipelines have, the answer is the one by definition (semantics T5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minidsms
from tests.long.join_cases import random_join_case
from tests.seeds import seeds
from tests.streamon.join_answers import agree, agree_in_all_batches

EAGER: dict[str, Any] = {"cost_model": "fixed", "cache_interval": 100}
WAYS: tuple[dict[str, Any], ...] = (
    {"caching": "prefix", "forced_every": 1},
    {"caching": "global", "forced_every": 1, "cache_memory": 4096},
    {"caching": "global", "forced_every": 2, "cache_memory": "none"},
    {"caching": "global", "forced_every": 7, "adaptive": "off"},
    {"caching": "prefix", **EAGER},
    {"caching": "global", **EAGER, "profile_rate": 1.0, "profile_window": 5},
)


@pytest.mark.parametrize("start", seeds(0, 20, 10))
def test_caches_do_not_show_in_any_answer(start: int) -> None:
    agree(((seed, random_join_case(700_000 + seed)) for seed in range(start, start + 10)), WAYS)


def test_what_no_equality_links_with_an_input_may_be_cached_for_it_as_a_whole() -> None:
    rng = np.random.default_rng(1)
    columns = [{name: rng.integers(0, 50, 4000) for name in "kvt"} for _ in "ABCD"]
    given = []
    for options in ({"caching": "off"}, EAGER):
        with minidsms.connect(batch_size=100, **options) as db:
            for name in "ABCD":
                db.execute(f"CREATE STREAM {name} (k INTEGER, v INTEGER, t INTEGER)")
            query = db.query(
                "SELECT a.k, c.t FROM A [ROWS 5] AS a JOIN B [ROWS 5] AS b ON a.v = b.v + 1 JOIN C [ROWS 5] AS c "
                "ON b.k = c.k JOIN D [ROWS 5] AS d ON c.v = d.v OR c.t = d.t"
            )
            for name, pushed in zip("ABCD", columns):
                db.push(name, pushed, ts=np.arange(4000))
            given.append([(change.ts, change.sign, change.row) for change in query.fetch()])
            told = query.explain(analyze=True)
    assert given[0] == given[1] != []
    assert "cache [b, c] for a" in told


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, 1000, 50))
def test_caches_do_not_show_in_a_thousand_answers(start: int) -> None:
    agree_in_all_batches(((seed, random_join_case(800_000 + seed)) for seed in range(start, start + 50)), WAYS)
