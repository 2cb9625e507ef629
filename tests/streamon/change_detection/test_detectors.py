"""What every change detector must do, in one suite (Tsamoura, Gounaris and Manolopoulos 2016, section 3)."""

from __future__ import annotations

import numpy as np
import pytest

from minidsms.streamon.change_detection.contracts import NONE, ChangeDetectors
from minidsms.streamon.change_detection.detectors import NAMES, detectors

OF = 20

pytestmark = pytest.mark.parametrize("name", NAMES)


def taken(made: ChangeDetectors, hits: np.ndarray, of: np.ndarray, since: np.ndarray, now: int) -> np.ndarray:
    """One item of each stream."""
    (told,) = made.observe(hits[None, :], of[None, :], since[None, :], np.array([now]))
    return told


class Feed:
    """Items of OF observations for every stream of some detectors."""

    def __init__(self, made: ChangeDetectors, m: int, seed: int = 0) -> None:
        self.made = made
        self.m = m
        self.now = 0
        self._rng = np.random.default_rng(seed)

    def items(self, count: int, share: float | np.ndarray) -> np.ndarray:
        """(count, m) what was told behind each item."""
        return np.array([self.item(self._rng.binomial(OF, share, self.m).astype(np.int64)) for _ in range(count)])

    def item(self, hits: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
        since = np.full(self.m, self.now)
        self.now += OF
        return taken(self.made, hits, np.full(self.m, OF) if of is None else of, since, self.now)


def test_a_large_change_is_told_soon_and_located(name: str) -> None:
    feed = Feed(detectors(name, 1), 1, seed=1)
    assert (feed.items(100, 0.1) < 0).all()
    changed_at = feed.now
    told = feed.items(60, 0.9)[:, 0]
    assert told.max() >= 0
    # ADWIN2 drops what is old bit by bit: the last changepoint counts.
    assert changed_at - 20 * OF <= told[told >= 0][-1] <= changed_at + 60 * OF


def test_a_stream_that_stays_tells_next_to_no_change(name: str) -> None:
    feed = Feed(detectors(name, 20), 20)
    told = feed.items(400, np.linspace(0.1, 0.9, 20))
    assert (told >= 0).sum() <= 4


def test_one_value_over_and_over_is_no_change(name: str) -> None:
    for share in (0, OF // 2, OF):
        feed = Feed(detectors(name, 1), 1)
        assert all(feed.item(np.array([share]))[0] < 0 for _ in range(300))


def test_streams_do_not_know_of_each_other(name: str) -> None:
    shares = np.array([0.2, 0.5, 0.8])
    rng = np.random.default_rng(3)
    hits = np.concatenate([rng.binomial(OF, s, (120, 3)) for s in (shares, shares[[2, 1, 0]])]).astype(np.int64)
    # A threshold of their own: else more streams raise it. Ties of the martingale are broken by the stream's number.
    own = detectors(name, 1).threshold  # type: ignore[attr-defined]
    three, one = Feed(detectors(name, 3, threshold=own), 3), Feed(detectors(name, 1, threshold=own), 1)
    together = [three.item(row)[0] >= 0 for row in hits]
    alone = [one.item(row[:1])[0] >= 0 for row in hits]
    assert (together == alone) if name != "martingale" else (any(together) and any(alone))


def test_the_same_items_tell_the_same_changes(name: str) -> None:
    def told() -> list[list[int]]:
        feed = Feed(detectors(name, 4, seed=7), 4, seed=9)
        return [*feed.items(80, 0.3).tolist(), *feed.items(80, 0.7).tolist()]

    assert told() == told()


def test_a_stream_without_an_item_stands_still(name: str) -> None:
    rng = np.random.default_rng(2)
    hits = [*rng.binomial(OF, 0.2, 100).tolist(), *rng.binomial(OF, 0.8, 100).tolist()]

    def told(gaps: bool) -> list[int]:
        made = detectors(name, 1, threshold=detectors(name, 1).threshold)  # type: ignore[attr-defined]
        found = []
        for number, hit in enumerate(hits):
            if gaps and name != "martingale":  # Which draws a number for every call.
                taken(made, np.array([OF]), np.array([0]), np.array([0]), 0)
            found.append(taken(made, np.array([hit]), np.array([OF]), np.array([number]), number + 1)[0] >= 0)
        return found

    assert told(gaps=True) == told(gaps=False)


def test_items_may_come_one_by_one_or_all_at_once(name: str) -> None:
    rng = np.random.default_rng(6)
    hits = np.concatenate([rng.binomial(OF, share, (70, 3)) for share in (0.3, 0.8)]).astype(np.int64)
    of = np.where(rng.random(hits.shape) < 0.9, OF, 0)
    since = np.arange(len(hits))[:, None] * np.ones((1, 3), np.int64)
    now = np.arange(1, len(hits) + 1)
    one, other = detectors(name, 3), detectors(name, 3)
    one_by_one = [one.observe(hits[t : t + 1], of[t : t + 1], since[t : t + 1], now[t : t + 1])[0] for t in range(140)]
    at_once = other.observe(hits, of, since, now)
    assert (np.array(one_by_one) == at_once).all() and (at_once >= 0).any()


COLLECTS = {"adwin": 10, "beta_cusum": 30, "bound": 6, "change_finder": 30, "cusum": 15, "meta": 19}
"""Items that a detector collects at least before it can tell a change; the others compare from the first on."""


def test_nothing_is_told_before_there_is_feedback(name: str) -> None:
    made = detectors(name, 2, threshold=1e-9 if name not in ("adwin", "meta", "martingale") else 0.9)
    feed = Feed(made, 2)
    for again in range(2):
        for _ in range(COLLECTS.get(name, 0)):
            assert (feed.item(np.array([0, OF]) if feed.now // OF % 2 else np.array([OF, 0])) < 0).all(), again
        made.initialize()


def test_more_streams_ask_for_more_certainty(name: str) -> None:
    rng = np.random.default_rng(8)
    feed = Feed(detectors(name, 500), 500)
    told = feed.items(120, rng.uniform(0.2, 0.8, 500))
    assert (told >= 0).sum() <= 12


def test_there_is_a_stream(name: str) -> None:
    with pytest.raises(ValueError):
        detectors(name, 0)


@pytest.mark.parametrize("tuned", [{"threshold": 1e-300}, {"threshold": 1e6}, {"training": 1}, {"training": 10**9}])
@pytest.mark.parametrize("confidence", [0.0, 1e-18, 1.0])
def test_whatever_the_settings_take_makes_detectors_that_work(
    name: str, tuned: dict[str, float], confidence: float
) -> None:
    feed = Feed(detectors(name, 3, confidence=confidence, **tuned), 3)
    told = np.concatenate((feed.items(40, 0.1), feed.items(40, 0.9)))
    assert ((told == NONE) | ((told >= 0) & (told <= feed.now))).all()
