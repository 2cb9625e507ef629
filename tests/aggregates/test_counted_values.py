"""MODE, BIT_AND, BIT_OR and BIT_XOR as kernels keep them, beside counting what is there; and, with CORR and the like,
in queries beside the definition.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import reduce
from operator import and_, or_, xor
from random import Random
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.aggregates.moments import RESULTS
from minidsms.elements import Type
from minidsms.synopses.bit_counts import BitCounts
from minidsms.synopses.frequencies import Frequencies
from minidsms.testing.compare import check
from minidsms.testing.feeds import random_feed
from minidsms.testing.generators import Case
from minidsms.testing.grammar import STREAMS
from tests.seeds import seeds
from tests.synopses.test_ordered_values import answers, some_moves, texts_by

OF_VALUES = ("var_pop", "stddev_pop")
TEXTS = dict(enumerate(("b", "", "a\0", "ab", "é", "B", "a"), 1))
WHOLE = (2**63 - 1, -(2**63), 2**62, -1, 5)
DRAWN: dict[str, tuple[Type, Callable[[Random], Any]]] = {
    "few": (Type.INTEGER, lambda rng: rng.choice((None, 1, 2, -2, -3))),
    "huge": (Type.INTEGER, lambda rng: rng.choice((*WHOLE, rng.randrange(-(2**63), 2**63)))),
    "floats": (Type.FLOAT, lambda rng: rng.choice((None, 0.0, -0.5, -1.5, 1.5, math.inf, -math.inf))),
    "texts": (Type.TEXT, lambda rng: rng.choice((None, *TEXTS))),
}


def _agree(rng: Random, make: Callable[[], Any], drawn: str, expected: Callable[[Counter[Any]], Any]) -> Any:
    """See that the state answers behind each element as expected of the counts of what is there; the state, empty."""
    type_, draw = DRAWN[drawn]
    moves = some_moves(rng, 700, False, lambda: draw(rng))
    left: Counter[Any] = Counter()
    for group, sign, value, seq in moves:
        left[group, value, seq] += sign
    moves += [(group, -1, value, seq) for (group, value, seq), n in left.items() if n]
    state, start = make(), 0
    here: list[Counter[Any]] = [Counter(), Counter(), Counter()]
    while start < len(moves):
        part = moves[start : start + rng.choice((1, 7, 300))]
        for (group, sign, value, _), found in zip(part, answers(state, part, type_)):
            if value is not None:
                here[group][value] += sign
            here[group] = +here[group]
            assert found == (expected(here[group]) if here[group] else None)
        start += len(part)
        if rng.random() < 0.2:
            kept, state = state.arrays(np.arange(3)), make()
            state.restore(kept, 8)
    return state


@pytest.mark.parametrize("drawn", ["few", "huge"])
@pytest.mark.parametrize("name", ["bit_and", "bit_or", "bit_xor"])
def test_bits_are_those_of_the_values_present(name: str, drawn: str) -> None:
    of = {"bit_and": and_, "bit_or": or_, "bit_xor": xor}[name]
    state = _agree(Random(f"{name} {drawn}"), lambda: BitCounts(name), drawn, lambda here: reduce(of, here.elements()))
    assert not state.tables["counts"].any(), "what has left has left no trace"


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("drawn", DRAWN)
def test_the_most_frequent_is_that_of_the_values_present(drawn: str, is_descending: bool) -> None:
    type_ = DRAWN[drawn][0]

    def place(value: Any) -> Any:
        return TEXTS[value] if type_ is Type.TEXT else value

    def most(here: Counter[Any]) -> Any:
        among = sorted((value for value in here if here[value] == max(here.values())), key=place)
        return among[-1 if is_descending else 0]

    texts = texts_by(TEXTS.__getitem__)
    state = _agree(Random(f"{drawn} {is_descending}"), lambda: Frequencies(type_, is_descending, texts), drawn, most)
    assert not any(len(codes) for codes in state.live_codes()), "what has left has left no trace"


def _case(seed: int) -> Case:
    rng = Random(seed)
    numbers, values = ("v", "x", "k"), ("v", "x", "t", "k")
    functions = [name for name in RESULTS if name not in OF_VALUES]
    distinct = rng.choice(("", "DISTINCT "))
    calls = [
        *(f"{rng.choice(functions)}({rng.choice(numbers)}, {rng.choice(numbers)})" for _ in range(2)),
        f"{rng.choice(functions)}(v, k) FILTER (WHERE x > 0)",
        f"{rng.choice(OF_VALUES)}({distinct}{rng.choice(numbers)})",
        f"MODE({rng.choice(values)})",
        f"MODE() WITHIN GROUP (ORDER BY {rng.choice(values)} DESC)",
        "MODE(t) FILTER (WHERE v > 1)",
        f"{rng.choice(('BIT_AND', 'BIT_OR', 'BIT_XOR'))}({distinct}{rng.choice(('v', 'k', '-v'))})",
        "BIT_XOR(v) FILTER (WHERE t > 'a')",
        "SUM(DISTINCT v)",
        "SUM(x)",
        "MEDIAN(v)",
    ]
    calls = rng.sample(calls, 5)
    window = rng.choice(
        ("[RANGE 4]", "[ROWS 5]", "[RANGE 6 SLIDE 2]", "[PARTITION BY k ROWS 2]", "[RANGE UNBOUNDED]", "[NOW]")
    )
    group = rng.choice(
        (" GROUP BY k", " GROUP BY t", " GROUP BY ROLLUP (k, t)", " GROUP BY GROUPING SETS ((k), ())", "")
    )
    source = f"Sa {window}"
    if rng.random() < 0.3:
        source = f"(SELECT k, v, x, t FROM Sa {window} EXCEPT ALL SELECT k, v, x, t FROM Sa [ROWS 3]) AS s"
    query = f"SELECT {', '.join(f'{c} AS c{i}' for i, c in enumerate(calls))} FROM {source}{group}"
    declared = f"CREATE STREAM Sa ({', '.join(f'{c} {t.name}' for c, t in STREAMS['Sa'])})"
    return Case((declared,), query, random_feed(rng, ["Sa"], 40))


WAYS: tuple[dict[str, Any], ...] = (
    {"batch_size": 1}, {"batch_size": 2}, {"batch_size": 7, "compilation": "at once"}, {"batch_size": 65_536},
    {"batch_size": 7, "compilation": "off", "adaptive": "off"}, {"batch_size": 7, "sharing": "off", "threads": 2},
)  # fmt: skip


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_the_answer_is_that_of_the_definition(options: dict[str, Any]) -> None:
    for seed in seeds(30):
        assert check(_case(seed), **options) == "agreed"


def test_the_most_frequent_texts_are_in_order_whatever_codes_they_have() -> None:
    """As texts leave, others get their codes."""
    rng = Random(5)
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t TEXT)")
        query = db.query("SELECT MODE(t), MODE() WITHIN GROUP (ORDER BY t DESC) FROM S [ROWS 9]")
        present: list[str] = []
        for i in range(500):
            text = f"{i // 40}{rng.randrange(6)}"
            present = [*present, text][-9:]
            db.push("S", (text,), ts=i)
            db.advance(i)
            counts = Counter(present)
            most = sorted(text for text in counts if counts[text] == max(counts.values()))
            assert query.snapshot() == [(most[0], most[-1])]
