"""Chunks are cut where conditions change: what lies behind the change is filtered in an order for it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import minidsms
from minidsms.streamon.pipelined_filters.look_ahead import SPACING, THRESHOLD, _first_change

CHUNK = 65_536


def test_a_change_is_found_where_it_is() -> None:
    rng = np.random.default_rng(1)
    for before, after in ((0.1, 0.9), (0.95, 0.1), (0.5, 0.8), (0.0, 0.4)):
        drops = np.concatenate((rng.random(300) < before, rng.random(200) < after))
        assert abs(_first_change(drops, before, THRESHOLD) - 300) <= 12


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.5, 0.97, 1.0])
def test_chance_is_hardly_ever_a_change(rate: float) -> None:
    rng = np.random.default_rng(2)
    assert sum(_first_change(rng.random(512) < rate, rate, THRESHOLD) >= 0 for _ in range(500)) <= 2


@pytest.mark.parametrize("change_at", [20_000, 45_000, 60_000, CHUNK])
@pytest.mark.parametrize("detection", ["counts", "auto", "cusum"])
def test_filters_change_places_where_the_stream_changes_within_a_chunk(change_at: int, detection: str) -> None:
    n = CHUNK
    rng = np.random.default_rng(3)

    def columns(shares: np.ndarray) -> dict[str, np.ndarray]:
        return {c: (rng.random(n) < share).astype(np.int64) for c, share in zip("ab", shares)}

    turned = np.arange(n) >= change_at
    shares = [(0.9, 0.2)] * 4 + [(np.where(turned, 0.1, 0.9), np.where(turned, 0.95, 0.2)), (0.1, 0.95), (0.1, 0.95)]
    answers = []
    parts = [columns(share) for share in shares]  # type: ignore[arg-type]
    for options in ({"adaptive": "off"}, {"cost_model": "fixed", "change_detection": detection}):
        with minidsms.connect(**options) as db:  # type: ignore[arg-type]
            db.execute("CREATE STREAM S (a INTEGER, b INTEGER)")
            query = db.query("SELECT a, b FROM S WHERE b = 0 AND a = 0")
            for number, part in enumerate(parts):
                db.push("S", part, ts=np.arange(n) + number * n)
            db.advance(len(parts) * n)
            answers.append(query.fetch())
            decisions = query.decisions()
            watched = re.search(r"watched by .*: 1 change,", query.explain(analyze=True))
    assert answers[0] == answers[1]
    assert [d.new_plan for d in decisions] == ["F2, F1", "F1, F2"]
    assert watched is not None, "what follows the cut is as it is, and no other change"
    found = decisions[1].instant - (4 * n + change_at)
    assert abs(found) <= 8 * SPACING
    assert decisions[1].reason == "a_greedy: another order costs less, after a change of F2"
    rates = re.fullmatch(r"d\(1\|0\) 0\.(\d\d) -> 0\.(\d\d) since ([\d,]+)", decisions[1].statistics["changed"])
    assert rates is not None and abs(int(rates[1]) - 90) <= 2 and int(rates[2]) <= 25
    assert abs(int(rates[3].replace(",", "")) - (4 * n + change_at)) <= 8 * SPACING
