"""MEDIAN and other quantiles as kernels keep them, beside the states of Python values and the definition."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.aggregates.aggregate import Settings, SortKey
from minidsms.aggregates.ordered import Chosen, Interpolated, share_of
from minidsms.elements import Batch, Type
from minidsms.kernels.arrays import normal
from minidsms.synopses.ordered_values import OrderedValues
from minidsms.testing.compare import check
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case
from minidsms.testing.grammar import STREAMS
from tests.operators.harness import column, run_over

SHARES = (0, 0.1, 0.25, 0.3, 0.5, 0.7, 0.95, 0.999999999, 1)
HUGE = 2**63
FLOATS = (math.inf, -math.inf, -0.0, 0.0, 5e-324, -5e-324, 1.5e308, -1.7e308, 1e-310, 2.0**-1022, 1.0, 1e16, 0.1)
WHOLE = (HUGE - 1, -HUGE, HUGE - 2, 1 - HUGE, 2**53, 2**53 + 1, 2**54 + 2, 2**55 + 1, -(2**54) - 1, 0, 1)


def _near(rng: Random) -> float:
    """One of neighbouring floats, so that what is between two of them has to be rounded."""
    return float(1.0 + rng.randrange(6) * 2.0**-52)


DRAWN: dict[str, tuple[Type, Callable[[Random], Any]]] = {
    "few": (Type.INTEGER, lambda rng: rng.choice((None, 1, 2, 2, 3))),
    "many": (Type.INTEGER, lambda rng: rng.randrange(-1000, 1000)),
    "huge": (Type.INTEGER, lambda rng: rng.choice(WHOLE) if rng.random() < 0.5 else rng.randrange(-HUGE, HUGE)),
    "neighbours": (Type.INTEGER, lambda rng: 2**56 + rng.randrange(40)),
    "floats": (Type.FLOAT, lambda rng: rng.choice((None, rng.uniform(-2, 2), rng.uniform(0, 1e9)))),
    "odd floats": (Type.FLOAT, lambda rng: rng.choice(FLOATS)),
    "scales": (Type.FLOAT, lambda rng: rng.choice((-1, 1)) * 10.0 ** rng.randrange(-320, 308)),
    "near floats": (Type.FLOAT, _near),
    "opposite floats": (Type.FLOAT, lambda rng: rng.choice((-1, 1)) * _near(rng)),
}


def _moves(rng: Random, n: int, draw: Callable[[Random], Any]) -> list[tuple[int, int, Any, int]]:
    """(instant, group, value, sign): groups grow to a hundred values and shrink to none."""
    present: list[tuple[int, Any]] = []
    moves, ts = [], 0
    for step in range(n):
        ts += rng.choice((0, 0, 1))
        while present and rng.random() < (0.3 if step < n // 2 else 0.7):
            moves.append((ts, *present.pop(rng.randrange(len(present))), -1))
        present.append((rng.choice((0, 0, 0, 1, 2)), draw(rng)))
        moves.append((ts, *present[-1], 1))
    return moves + [(ts + 1, *row, -1) for row in present]


def _kept(state: OrderedValues) -> OrderedValues:
    """Another that goes on from what it would be kept as."""
    arrays = state.arrays(np.arange(3))
    made = OrderedValues(*state_arguments(state))
    made.restore(arrays, 8)
    return made


def state_arguments(state: OrderedValues) -> tuple[Any, ...]:
    return state._type, False, False, False, None, False, False, state._share


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("kind", [Interpolated, Chosen])
@pytest.mark.parametrize("drawn", DRAWN)
def test_the_answer_is_that_of_sorted_python_values(drawn: str, kind: Any, is_descending: bool) -> None:
    type_, draw = DRAWN[drawn]
    for share in SHARES:
        rng = Random(f"{drawn} {kind} {share}")
        settings = Settings(parameters=(share,), keys=(SortKey(is_descending),))
        state = OrderedValues(type_, False, False, False, None, share=share_of(kind, settings))
        state.resize(8)
        twins, sizes = [kind(settings) for _ in range(3)], [0] * 3
        moves = _moves(rng, 250, draw)
        start = 0
        while start < len(moves):
            stop = min(len(moves), start + rng.choice((1, 7, 100)))
            while stop < len(moves) and moves[stop][0] == moves[stop - 1][0]:
                stop += 1  # an instant comes at once
            part = moves[start:stop]
            n, ts = stop - start, np.array([m[0] for m in part])
            values, sign = column([m[2] for m in part], type_), np.array([m[3] for m in part], np.int8)
            run, argument = run_over(Batch(ts, sign, [values]), [m[1] for m in part])
            state.advance(run, argument, 0)
            state.settle(n)
            words = normal(run.results[:, 0])
            result_type = type_ if kind is Chosen else Type.FLOAT
            found = (words.view(np.float64) if result_type is Type.FLOAT else words).tolist()
            for i, (at, group, value, step) in enumerate(part):
                if value is not None:
                    twins[group].add(value) if step > 0 else twins[group].remove(value)
                    sizes[group] += step
                if all(later[:2] != (at, group) for later in part[i + 1 :]):
                    expected = twins[group].result() if sizes[group] else None
                    assert run.status[i, 0] == (expected is not None)
                    if expected is not None:
                        # Negative zero is put out as zero.
                        assert repr(found[i]) == repr(expected + 0.0 if result_type is Type.FLOAT else expected)
            start = stop
            if rng.random() < 0.1:
                state = _kept(state)
        assert len(state) == 0 and not state.tables["places"].any()


def test_shares_of_more_decimals_than_kernels_take_stay_exact() -> None:
    assert share_of(Chosen, Settings(parameters=(0.3333333333333333,))) is None
    assert share_of(Chosen, Settings(parameters=(1e-300,))) is None
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (v INTEGER)")
        query = db.query("SELECT QUANTILE_DISC(v, 0.3333333333333333), QUANTILE_DISC(v, 0.333333333) FROM S")
        db.push("S", [(v,) for v in range(1, 4)], ts=[1, 1, 1])
        db.advance(1)
        assert query.snapshot() == [(1, 1)]


def _case(seed: int) -> Case:
    rng = Random(seed)
    share = rng.choice(SHARES)
    value = rng.choice(("v", "x", "t", "k"))
    number = rng.choice(("v", "x", "k"))
    calls = rng.sample(
        (
            f"MEDIAN({number})",
            f"MEDIAN(DISTINCT {number})",
            f"QUANTILE_CONT({number}, {share})",
            f"QUANTILE_DISC({value}, {share})",
            f"QUANTILE_DISC(DISTINCT {value}, {share})",
            f"PERCENTILE_CONT({share}) WITHIN GROUP (ORDER BY {number} DESC)",
            f"PERCENTILE_DISC({share}) WITHIN GROUP (ORDER BY {value} DESC)",
            f"APPROX_PERCENTILE({share}) WITHIN GROUP (ORDER BY {value})",
            "MEDIAN(v) FILTER (WHERE x > 0)",
            "COUNT(*)",
            "MAX(t)",
        ),
        3,
    )
    window = rng.choice(
        ("[RANGE 4]", "[ROWS 5]", "[RANGE 6 SLIDE 2]", "[PARTITION BY k ROWS 2]", "[RANGE UNBOUNDED]", "[NOW]")
    )
    group = rng.choice((" GROUP BY k", " GROUP BY k", " GROUP BY t", ""))
    source = f"Sa {window}"
    if rng.random() < 0.3:
        source = f"(SELECT k, v, x, t FROM Sa {window} EXCEPT ALL SELECT k, v, x, t FROM Sa [ROWS 3]) AS s"
    query = f"SELECT {', '.join(f'{c} AS c{i}' for i, c in enumerate(calls))} FROM {source}{group}"
    declared = f"CREATE STREAM Sa ({', '.join(f'{c} {t.name}' for c, t in STREAMS['Sa'])})"
    return Case((declared,), query, random_feed(rng, ["Sa"], 40))


@pytest.mark.parametrize("batch_size", [1, 7, 65_536])
def test_the_answer_is_that_of_the_definition(batch_size: int) -> None:
    for seed in range(25):
        assert check(_case(seed), batch_size=batch_size) == "agreed"


def test_texts_are_in_order_whatever_codes_they_have() -> None:
    """As texts leave, others get their codes."""
    rng = Random(5)
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t TEXT)")
        query = db.query("SELECT QUANTILE_DISC(t, 0.5) FROM S [ROWS 9]")
        present: list[str] = []
        for i in range(500):
            text = f"{rng.randrange(10**6)}"
            present = [*present, text][-9:]
            db.push("S", (text,), ts=i)
            db.advance(i)
            if i % 50 == 0:
                assert query.snapshot() == [(sorted(present)[(len(present) - 1) // 2],)]
