"""ADWIN2 finds the changes that river's does, in windows of the same widths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from minidsms.streamon.change_detection.adwin import Adwin
from minidsms.streamon.change_detection.contracts import Tuning


@dataclass(frozen=True)
class Case:
    """Items of `of` observations each.  phases: (share in thousandths, items).  changes: (item, width of the window
    behind it) as `AdaptiveWindowing` of river 0.26.1 tells them; width: in the end.
    """

    seed: int
    phases: list[tuple[int, int]]
    of: int
    every: int
    delta: float
    changes: list[tuple[int, int]]
    width: int


CASES = (
    Case(1, [(500, 400), (800, 400)], 20, 32, 0.002, [(447, 160), (479, 128), (575, 192)], 416),
    Case(
        2,
        [(100, 300), (300, 300), (100, 300)],
        20,
        1,
        0.002,
        [
            (352, 289),
            (356, 261),
            (360, 233),
            (369, 210),
            (376, 185),
            (386, 163),
            (426, 171),
            (673, 194),
            (686, 175),
            (711, 168),
            (851, 276),
        ],
        324,
    ),
    Case(
        3,
        [(200, 1000), (700, 60), (200, 600)],
        10,
        8,
        0.05,
        [(1015, 376), (1023, 64), (1031, 64), (1039, 64), (1047, 64), (1087, 56), (1103, 64), (1247, 176)],
        588,
    ),
    Case(4, [(500, 3000)], 5, 1, 0.3, [], 3000),
    Case(
        5,
        [(50 + 10 * i, 40) for i in range(60)],
        20,
        32,
        0.002,
        [
            (575, 512),
            (639, 512),
            (735, 544),
            (831, 512),
            (927, 544),
            (991, 544),
            (1023, 512),
            (1087, 512),
            (1183, 544),
            (1279, 512),
            (1375, 544),
            (1407, 512),
            (1503, 544),
            (1535, 512),
            (1567, 480),
            (1695, 544),
            (1759, 544),
            (1823, 544),
            (1919, 512),
            (2015, 544),
            (2111, 512),
            (2207, 544),
            (2303, 512),
        ],
        608,
    ),
    Case(
        6,
        [(0, 200), (1000, 100), (0, 300)],
        4,
        1,
        0.002,
        [
            (212, 181),
            (213, 150),
            (214, 119),
            (215, 88),
            (217, 74),
            (219, 60),
            (223, 56),
            (227, 52),
            (238, 55),
            (285, 86),
            (315, 100),
            (316, 85),
            (317, 70),
            (319, 64),
            (321, 58),
            (325, 54),
            (341, 62),
            (364, 69),
        ],
        304,
    ),
    Case(
        7,
        [(500, 6000), (520, 6000)],
        50,
        32,
        0.002,
        [(7007, 4960), (7103, 4544), (7167, 4096), (7263, 3168), (7455, 2848), (9151, 4032)],
        6880,
    ),
)


def hits_of(case: Case) -> Iterator[int]:
    """The same numbers everywhere and always: from a linear congruential generator."""
    x = case.seed
    for share, items in case.phases:
        for _ in range(items):
            hits = 0
            for _ in range(case.of):
                x = (x * 6364136223846793005 + 1442695040888963407) % 2**64
                hits += (x >> 40) % 1000 < share
            yield hits


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"series {case.seed}")
def test_changes_are_those_of_river(case: Case) -> None:
    detector = Adwin(Tuning(1, threshold=case.delta), every=case.every)
    found = []
    for t, hits in enumerate(hits_of(case)):
        ((since,),) = detector.observe(*(np.array([[x]]) for x in (hits, case.of, t)), np.array([t + 1])).tolist()
        if since >= 0:
            found.append((t, int(detector.widths[0])))
            assert t + 1 - since == detector.widths[0], "the changepoint is where the window begins"
    assert found == case.changes
    assert detector.widths.tolist() == [case.width]


def test_a_window_of_many_items_is_a_few_buckets() -> None:
    detector = Adwin(Tuning(1))
    for t in range(20_000):
        detector.observe(np.array([[t % 2]]), np.array([[2]]), np.array([[t]]), np.array([t + 1]))
    assert detector.widths.tolist() == [20_000]
    assert int(detector._buckets.held.sum()) <= 6 * 15
