"""Examples 3.1 and 3.2 of the paper, and chance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest

from minidsms.streamon.content_routing.gain_ratio import Telling, sure_gains, telling

SELECTIVITIES = {"a": (0.32, 0.10, 0.55), "b": (0.31, 0.20, 0.65), "c": (0.27, 0.90, 0.60)}
"""Table 1: what O1, O2 and O3 pass where A = a, b, c; the three are equally frequent."""


def told_by(passed: Sequence[int], of: int) -> Telling:
    """What an attribute tells of a filter that passes so many of the tuples of each of its buckets."""
    drops = np.concatenate([np.arange(of) >= each for each in passed]).astype(np.uint8)
    (told,) = telling(drops[:, None], np.repeat(np.arange(len(passed), dtype=np.uint8), of), len(passed))
    return told


def evaluations(passes: tuple[float, ...], order: tuple[int, ...]) -> float:
    """Operators that a tuple visits, if they are independent in its class."""
    return sum(float(np.prod([passes[f] for f in order[:place]])) for place in range(len(order)))


def test_example_3_1_each_class_has_its_own_best_order() -> None:
    orders = list(permutations(range(3)))
    mean = {o: sum(evaluations(p, o) for p in SELECTIVITIES.values()) / 3 for o in orders}
    single = min(orders, key=mean.__getitem__)
    assert single == (0, 1, 2) and mean[single] == pytest.approx(1.412, abs=5e-4)
    best = {a: min(orders, key=lambda o, p=p: evaluations(p, o)) for a, p in SELECTIVITIES.items()}  # type: ignore[misc]
    assert best == {"a": (1, 0, 2), "b": (1, 0, 2), "c": (0, 2, 1)}
    costs = [evaluations(p, best[a]) for a, p in SELECTIVITIES.items()]
    assert costs == pytest.approx([1.132, 1.262, 1.432], abs=5e-4)
    assert sum(costs) / 3 == pytest.approx(1.275, abs=1e-3)


@pytest.mark.parametrize(("operator", "ratio"), [(0, 0.0010), (1, 0.264), (2, 0.0032)])
def test_example_3_2_by_equations_2_to_5(operator: int, ratio: float) -> None:
    """The paper prints 0.33, 0.63 and 0.37, which its equations do not give; that O2 comes far first holds."""
    told = told_by([round(1000 * p[operator]) for p in SELECTIVITIES.values()], 1000)
    assert told.ratio == pytest.approx(ratio, abs=5e-4)


def test_a_filter_that_passes_all_or_nothing_is_told_of_by_nothing() -> None:
    for share in (0, 1):
        told = told_by([100 * share] * 5, 100)
        assert told.gain == 0 and not told.is_telling(None) and not told.is_telling(0.0)


def test_noise_is_taken_for_a_classifier_nearly_never() -> None:
    rng = np.random.default_rng(0)
    drops = (rng.random((150, 400)) < 0.4).astype(np.uint8)
    told = telling(drops, rng.integers(0, 24, 150).astype(np.uint8), 24)
    assert 0.06 < np.mean([t.gain for t in told]) < 0.16, "chance alone gives about 0.11 bits"
    assert sum(t.is_telling(None) for t in told) < 12
    assert sum(t.is_telling(0.01) for t in told) > 300, "a small gamma takes noise for a classifier"


def test_many_attributes_at_once_tell_what_each_tells_alone() -> None:
    rng = np.random.default_rng(3)
    drops = (rng.random((900, 3)) < 0.4).astype(np.uint8)
    cells = [rng.integers(0, d, 900).astype(np.uint8) for d in (2, 7, 25)]
    cells.append(drops[:, 0] * 3)
    cells.append(np.zeros(900, np.uint8))
    alone = [[told.sure_gain for told in telling(drops, each, 25)] for each in cells]
    assert sure_gains(drops, cells, 25) == pytest.approx(np.array(alone))
    assert alone[3][0] > 0.5 and alone[4] == [0, 0, 0]
