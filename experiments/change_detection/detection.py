"""Detectors alone: how long until a change is told, how many are missed, and how many are told where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from minidsms.streamon.change_detection.detectors import NAMES, detectors

RUNS = 100
SHOWN = 300
"""Items behind the change."""


@dataclass(frozen=True)
class Case:
    """Items of `of` observations each; the share changes after `before` items."""

    of: int
    share: float
    other: float
    before: int


CASES = tuple(
    Case(of, share, other, before)
    for of, share, other in ((20, 0.5, 0.8), (20, 0.1, 0.3), (20, 0.5, 0.6), (100, 0.5, 0.8), (100, 0.5, 0.6))
    for before in (60, 200, 1000)
)


BOUNDS = tuple(Case(20, 0.0, exceeded, before) for exceeded in (0.001, 0.01, 0.1) for before in (60, 1000))
"""A bound that rows have kept, and that a share of them exceeds from then on."""


@dataclass(frozen=True)
class Told:
    """delay: median of the observations from the change until it is told.  missed: runs in which it is not.
    false: changes told before it, per 1000 items.
    """

    delay: float | None
    missed: int
    false: float


def told(name: str, case: Case, seed: int = 5) -> Told:
    """Of RUNS streams. Each has the threshold of a stream alone."""
    own = detectors(name, 1).threshold  # type: ignore[attr-defined]
    made = detectors(name, RUNS, threshold=own, seed=seed)
    rng = np.random.default_rng(seed)
    shares = np.repeat([case.share, case.other], [case.before, SHOWN])
    hits = rng.binomial(case.of, shares[:, None], (len(shares), RUNS)).astype(np.int64)
    now = case.of * np.arange(1, len(shares) + 1)
    since = np.repeat((now - case.of)[:, None], RUNS, axis=1)
    changes = made.observe(hits, np.full_like(hits, case.of), np.ascontiguousarray(since), now) >= 0
    behind = changes[case.before :]
    found = behind.any(axis=0)
    delays = (behind.argmax(axis=0)[found] + 1) * case.of
    false = 1000 * float(changes[: case.before].mean())
    return Told(float(np.median(delays)) if len(delays) else None, int(RUNS - found.sum()), false)


def all_told(cases: Sequence[Case] = CASES) -> dict[Case, dict[str, Told]]:
    """Every detector in every case."""
    return {case: {name: told(name, case) for name in NAMES} for case in cases}
