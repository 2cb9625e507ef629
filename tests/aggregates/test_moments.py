"""CORR, REGR_SLOPE, VAR_POP and the like as kernels keep them, beside whole numbers of all that is there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from minidsms.aggregates.moments import RESULTS, Moments
from minidsms.elements import Batch, Type
from minidsms.kernels.arrays import normal
from minidsms.synopses.moments import MomentSums
from tests.operators.harness import column, run_over

HUGE = 2**63
OF_VALUES = ("var_pop", "stddev_pop")
FLOATS = (math.inf, -math.inf, 0.0, 0.0, 5e-324, -5e-324, 1.5e308, -1.7e308, 1e-310, 2.0**-1022, 1.0, 1e16, 0.1)


def _line(rng: Random) -> tuple[float, float]:
    x = rng.randrange(50) / 4
    return 3 * x - 2.5, x


DRAWN: dict[str, tuple[Type, Type, Callable[[Random], tuple[Any, Any]]]] = {
    "few": (Type.INTEGER, Type.INTEGER, lambda rng: (rng.choice((None, 1, 2)), rng.choice((None, 0, 2, 3)))),
    "huge": (Type.INTEGER, Type.INTEGER, lambda rng: (rng.randrange(-HUGE, HUGE), rng.choice((-HUGE, HUGE - 1, 1)))),
    "mixed": (Type.INTEGER, Type.FLOAT, lambda rng: (rng.randrange(-9, 9), rng.choice((None, rng.uniform(0, 1e9))))),
    "zeros": (Type.FLOAT, Type.FLOAT, lambda rng: (rng.choice((0.0, 0.1)), rng.choice((0.0,) * 19 + (0.25,)))),
    "line": (Type.FLOAT, Type.FLOAT, _line),
    "near": (Type.FLOAT, Type.INTEGER, lambda rng: (1.0 + rng.randrange(6) * 2.0**-52, 2**60 + rng.randrange(3))),
    "floats": (Type.FLOAT, Type.FLOAT, lambda rng: (rng.gauss(0, 1), rng.gauss(5, 1e-3))),
    "odd floats": (Type.FLOAT, Type.FLOAT, lambda rng: (rng.choice(FLOATS), rng.choice((*FLOATS, None)))),
    "scales": (Type.FLOAT, Type.FLOAT, lambda rng: (10.0 ** rng.randrange(-320, 308), -(10.0 ** rng.randrange(-9, 9)))),
}  # fmt: skip


def _result(function: str, present: Counter[tuple[Any, Any]]) -> float | None:
    """By whole numbers of 2 ** -1074, with nothing kept from before."""
    pairs = [pair for pair, n in present.items() for _ in range(n) if None not in pair]
    if not pairs or any(math.isinf(value) for pair in pairs for value in pair):
        return None
    whole = [tuple(int(Fraction(value) * 2**1074) for value in pair) for pair in pairs]
    sums = [sum(y for y, _ in whole), sum(x for _, x in whole)]
    sums += [sum(y * y for y, _ in whole), sum(x * x for _, x in whole), sum(y * x for y, x in whole)]
    result = RESULTS[function](Moments(len(pairs), 1074, *sums))
    return None if result is None else result + 0.0


def _kept(state: MomentSums) -> MomentSums:
    """Another that goes on from what it would be kept as."""
    types = [Type.INTEGER if is_integer else Type.FLOAT for is_integer in state._are_integers]
    made = MomentSums(state._function, *types)
    made.restore(state.arrays(np.arange(3)), 8)
    return made


@pytest.mark.parametrize("drawn", DRAWN)
@pytest.mark.parametrize("function", RESULTS)
def test_the_answer_is_that_of_whole_numbers_to_the_bit(function: str, drawn: str) -> None:
    rng = Random(f"{function} {drawn}")
    y_type, x_type, draw = DRAWN[drawn]
    is_of_values = function in OF_VALUES
    state = MomentSums(function, y_type, None if is_of_values else x_type)
    state.resize(8)
    present: list[Counter[tuple[Any, Any]]] = [Counter(), Counter(), Counter()]
    moves: list[tuple[int, int, tuple[Any, Any], int]] = []
    here: list[tuple[int, tuple[Any, Any]]] = []
    ts = 0
    for step in range(240):
        ts += rng.choice((0, 0, 1))
        while here and rng.random() < (0.3 if step < 120 else 0.6):
            moves.append((ts, *here.pop(rng.randrange(len(here))), -1))
        y, x = draw(rng)
        here.append((rng.choice((0, 0, 0, 1, 2)), (y, y) if is_of_values else (y, x)))
        moves.append((ts, *here[-1], 1))
    moves += [(ts + 1, *row, -1) for row in here]
    start = answered = 0
    while start < len(moves):
        part = moves[start : start + rng.choice((1, 7, 100))]
        at, sign = np.array([m[0] for m in part]), np.array([m[3] for m in part], np.int8)
        groups = [m[1] for m in part]
        run, argument = run_over(Batch(at, sign, [column([m[2][0] for m in part], y_type)]), groups)
        _, by = run_over(Batch(at, sign, [column([m[2][1] for m in part], x_type)]), groups)
        state.advance(run, argument, 0, None if is_of_values else by)
        found = normal(run.results[:, 0]).view(np.float64).tolist()
        for i, (ts, group, pair, step) in enumerate(part):
            present[group][pair] += step
            if all(later[:2] != (ts, group) for later in part[i + 1 :]):
                expected = _result(function, present[group])
                assert (repr(found[i]) if run.status[i, 0] else None) == (None if expected is None else repr(expected))
                answered += expected is not None
        start += len(part)
        if rng.random() < 0.1:
            state = _kept(state)
    assert answered and not any(table.any() for table in state.tables.values()), "what has left has left no trace"


@pytest.mark.parametrize(
    "values", [[0, 2**54 + 2], [0, 2**54 + 3], [5e-324, 1e-323], [1e200, -1e200], [1e-200, 2e-200]]
)
def test_a_rounding_that_bits_of_pairs_do_not_tell_is_that_of_whole_numbers(
    values: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle between two floats, or next to it, and where floats end."""
    asked = []
    monkeypatch.setitem(RESULTS, "regr_sxy", lambda m, exact=RESULTS["regr_sxy"]: asked.append(m) or exact(m))
    type_, ones = Type.FLOAT if isinstance(values[1], float) else Type.INTEGER, np.ones(2, np.int8)
    for x in ([0, 1], values):
        state = MomentSums("regr_sxy", type_, Type.FLOAT)
        state.resize(1)
        run, argument = run_over(Batch(np.array([1, 1]), ones, [column(values, type_)]), [0, 0])
        _, by = run_over(Batch(np.array([1, 1]), ones, [column(x, Type.FLOAT)]), [0, 0])
        state.advance(run, argument, 0, by)
        was_asked = len(asked)
        assert repr(float(run.floats[1, 0])) == repr(_result("regr_sxy", Counter(zip(values, map(float, x)))))
    assert was_asked
