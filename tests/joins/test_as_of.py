"""ASOF JOIN against rows found one by one, and against the definition, however pushes are cut (docs/semantics R11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, TypeAlias

import pytest

from minidsms.testing.compare import check, run_definition
from minidsms.testing.feeds import Advance, Push
from minidsms.testing.generators import Case

DECLARED = ("CREATE STREAM S (k INTEGER, v INTEGER)", "CREATE STREAM T (k INTEGER, w INTEGER)")
END = 40
Elements: TypeAlias = list[tuple[int, tuple[Any, ...]]]


def elements(rng: Random, n: int) -> Elements:
    """In the order of their instants; keys are few, and some of them NULL."""
    instants = sorted(rng.randrange(30) for _ in range(n))
    return [(ts, (rng.choice((1, 2, 3, None)), i)) for i, ts in enumerate(instants)]


def found(left: Elements, right: Elements, keeps_all: bool) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Each of the left elements with the last of the right ones of its key up to its instant."""
    for ts, (k, v) in left:
        last = [w for at, (key, w) in right if key == k is not None and at <= ts][-1:]
        if last or keeps_all:
            yield ts, (k, v, last[0] if last else None)


@pytest.mark.parametrize("rows_per_push", [1, 2, 7, None])
@pytest.mark.parametrize("kind", ["ASOF JOIN", "ASOF LEFT JOIN"])
@pytest.mark.parametrize("length", [None, 4])
def test_each_element_has_the_last_row_that_had_come(kind: str, length: int | None, rows_per_push: int | None) -> None:
    for seed in range(5):
        rng = Random(seed)
        left, right = elements(rng, 25), elements(rng, 25)
        window = "" if length is None else f" [RANGE {length}]"
        query = f"SELECT S.k, v, w FROM S{window} {kind} T ON S.k = T.k AND S.ts >= T.ts"
        pushes = [Push(name, tuple((ts, 1, row) for ts, row in rows)) for name, rows in (("S", left), ("T", right))]
        case = Case(DECLARED, query, (*pushes, Advance(END)))
        expected: Counter[tuple[int, int, tuple[Any, ...]]] = Counter()
        for ts, row in found(left, right, "LEFT" in kind):
            expected[ts, 1, row] += 1
            if length is not None:
                expected[ts + length, -1, row] += 1
        defined = run_definition(case)
        assert Counter(defined.changes) == expected
        assert check(case, rows_per_push, defined) == "agreed"
