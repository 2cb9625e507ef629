"""MIN, MAX, FIRST, LAST, ARG_MIN and ARG_MAX over many values, against sorting those present after every element."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from minidsms.elements import Batch, Type
from minidsms.kernels.arrays import normal
from minidsms.synopses.ordered_values import OrderedValues
from tests.operators.harness import column, run_over


def answers(state: OrderedValues, moves: list[tuple[int, int, Any, int]], type_: Type) -> list[Any]:
    """The answer after each of the moves (group, sign, value, seq)."""
    n = len(moves)
    sign = np.array([m[1] for m in moves], np.int8)
    seq = np.array([m[3] for m in moves], np.int64)
    values = column([m[2] for m in moves], type_)
    batch = Batch(np.arange(n), sign, [values], seq)
    run, argument = run_over(batch, [m[0] for m in moves])
    state.resize(8)
    state.advance(run, argument, 0)
    state.settle(n)
    words = normal(run.results[:, 0])
    found = (words.view(np.float64) if type_ is Type.FLOAT else words).tolist()
    return [v if ok else None for v, ok in zip(found, run.status[:, 0].tolist())]


def some_moves(rng: random.Random, n: int, is_fifo: bool, draw: Any) -> list[tuple[int, int, Any, int]]:
    present: list[tuple[int, Any, int]] = []
    moves = []
    for seq in range(n):
        # Grow to some hundreds of values, then shrink to none.
        while present and rng.random() < (0.3 if seq < n // 2 else 0.7):
            group, value, number = present.pop(0 if is_fifo else rng.randrange(len(present)))
            moves.append((group, -1, value, number))
        item = (rng.randrange(3), draw(), seq)
        present.append(item)
        moves.append((item[0], 1, item[1], item[2]))
    return moves


@pytest.mark.parametrize("is_fifo", [True, False])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("kind", ["few", "many", "floats", "by arrival"])
def test_the_answer_is_the_extreme_of_the_values_present(is_fifo: bool, largest: bool, kind: str) -> None:
    rng = random.Random(f"{is_fifo} {largest} {kind}")
    draws: dict[str, Any] = {
        "few": lambda: rng.choice((None, 1, 2, 2**63 - 1, -(2**63))),
        "many": lambda: rng.randrange(-1000, 1000),
        "floats": lambda: rng.choice((None, float("inf"), -float("inf"), 0.0, rng.uniform(-2, 2))),
        "by arrival": lambda: rng.choice((None, 1, 2)),
    }
    moves = some_moves(rng, 1500, is_fifo, draws[kind])
    type_ = Type.FLOAT if kind == "floats" else Type.INTEGER
    state = OrderedValues(type_, largest, kind == "by arrival", is_fifo, None)
    present: list[dict[int, Any]] = [{}, {}, {}]
    start = 0
    while start < len(moves):
        stop = start + rng.choice((1, 7, 400))
        for (group, sign, value, seq), mine in zip(moves[start:stop], answers(state, moves[start:stop], type_)):
            if sign > 0:
                present[group][seq] = value
            else:
                del present[group][seq]
            here = present[group]
            if kind == "by arrival":
                expected = here[(max if largest else min)(here)] if here else None
            else:
                expected = (max if largest else min)((v for v in here.values() if v is not None), default=None)
            assert mine == expected
        start = stop
    assert len(state) <= sum(len(p) for p in present)


def texts_by(text: Callable[[int], str]) -> Any:
    """A dictionary that has this text for a code."""
    return SimpleNamespace(decode=lambda column: [text(code) for code in column.values.tolist()])


@pytest.mark.parametrize("is_fifo", [True, False])
def test_text_stays_in_order_when_codes_are_used_again(is_fifo: bool) -> None:
    texts = ["", "m", "c", "x"]
    state = OrderedValues(Type.TEXT, False, False, is_fifo, texts_by(lambda code: texts[code]))
    assert answers(state, [(0, 1, 1, 0), (0, 1, 3, 1)], Type.TEXT) == [1, 1]
    texts += ["a", "n"]
    assert answers(state, [(0, 1, 5, 2), (0, -1, 1, 0), (0, 1, 2, 3)], Type.TEXT) == [1, 5, 2]
    held = {int(c) for codes in state.live_codes() for c in codes}
    assert held <= {2, 3, 5} and 2 in held
    # Code 1 is nobody's now and comes to stand for another text.
    texts[1] = "b"
    assert answers(state, [(0, 1, 1, 4), (0, 1, 4, 5), (0, -1, 3, 1)], Type.TEXT) == [1, 4, 4]


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("by_arrival", [True, False])
@pytest.mark.parametrize("type_", [Type.INTEGER, Type.TEXT])
def test_where_nothing_leaves_one_value_per_group_is_kept(largest: bool, by_arrival: bool, type_: Type) -> None:
    rng = random.Random(f"{largest} {by_arrival} {type_}")
    # Ascending and descending runs are the worst case of a deque that waits for deletions.
    drawn = [*range(1, 600), *range(600, 1, -1), *(rng.randrange(1, 600) for _ in range(300))]
    values = [None if rng.random() < 0.1 else v for v in drawn]
    moves = [(rng.randrange(3), 1, value, seq) for seq, value in enumerate(values)]
    state = OrderedValues(type_, largest, by_arrival, True, texts_by("{:05}".format), is_append_only=True)
    found: list[Any] = []
    for start in range(0, len(moves), 100):
        found += answers(state, moves[start : start + 100], type_)
        assert len(state) <= 3
    present: list[list[Any]] = [[], [], []]
    for (group, _, value, _), mine in zip(moves, found):
        if by_arrival or value is not None:
            present[group].append(value)
        here = present[group]
        if by_arrival:
            assert mine == here[-1 if largest else 0]
        else:
            assert mine == ((max if largest else min)(here) if here else None)


@pytest.mark.parametrize("deletions", ["fifo", "any", "none"])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("by", ["INTEGER", "FLOAT", "TEXT"])
@pytest.mark.parametrize("of", ["INTEGER", "FLOAT", "TEXT"])
def test_of_equal_ones_the_extreme_has_the_extreme_argument(of: str, by: str, largest: bool, deletions: str) -> None:
    rng = random.Random(f"{of} {by} {largest} {deletions}")
    texts = {code: "".join(rng.choice("ab\0") for _ in range(rng.randrange(5))) + str(code) for code in range(1, 40)}
    few: dict[str, Any] = {
        "INTEGER": lambda: rng.choice((None, 0, 1, -1, 2**63 - 1, -(2**63))),
        "FLOAT": lambda: rng.choice((None, 0.0, -0.5, -1.5, 1.5, float("inf"), -float("inf"))),
        "TEXT": lambda: rng.choice((None, *range(1, 40))),
    }
    moves = some_moves(rng, 900, deletions == "fifo", lambda: (few[of](), few[by]()))
    moves = [move for move in moves if move[1] > 0 or deletions != "none"]
    of_type, by_type = getattr(Type, of), getattr(Type, by)
    grows = deletions == "none"
    state = OrderedValues(
        of_type, largest, False, deletions != "any", texts_by(texts.__getitem__), grows, by_type=by_type
    )
    state.resize(3)

    def rank(value: Any, name: str) -> Any:
        return texts[value] if name == "TEXT" else value

    present: list[Counter[Any]] = [Counter(), Counter(), Counter()]
    start = 0
    while start < len(moves):
        part = moves[start : start + rng.choice((1, 7, 400))]
        groups, sign, values = [m[0] for m in part], np.array([m[1] for m in part], np.int8), [m[2] for m in part]
        run, argument = run_over(Batch(np.arange(len(part)), sign, [column([v[0] for v in values], of_type)]), groups)
        _, second = run_over(Batch(np.arange(len(part)), sign, [column([v[1] for v in values], by_type)]), groups)
        state.advance(run, argument, 0, second)
        words = normal(run.results[:, 0])
        found = (words.view(np.float64) if of == "FLOAT" else words).tolist()
        for (group, step, (value, key), _), mine, ok in zip(part, found, run.status[:, 0].tolist()):
            if value is not None and key is not None:
                present[group][rank(key, by), rank(value, of), value] += step
            here = [row for row, n in present[group].items() if n]
            assert (mine if ok else None) == ((max if largest else min)(here)[-1] if here else None)
        held = {code for codes in state.live_codes() for code in codes.tolist()}
        assert not held or "TEXT" in (of, by)
        start += len(part)
    assert len(state) <= (3 if grows else sum(n > 0 for group in present for n in group.values()))
