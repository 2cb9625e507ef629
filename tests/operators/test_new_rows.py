"""NewRows: of each instant's rows those that outnumber the equal ones of the tick before."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from minidsms.elements import Schema, Type
from minidsms.operators.new_rows import NewRows
from tests.operators.harness import Element, Netted, Row, feed, queue, random_cuts

S = Schema.of(("a", Type.INTEGER), ("b", Type.TEXT), ("x", Type.FLOAT))


def elements(seed: int, instants: int, most: int, values: int) -> list[Element]:
    rng = random.Random(seed)
    found: list[Element] = []
    ts = 0
    for _ in range(instants):
        ts += rng.choice((1, 1, 1, 2, 5))
        for _ in range(rng.randint(1, most)):
            row = (rng.randrange(values), rng.choice((0, 1, None)), rng.choice((0.0, 1.5, None)))
            found.append((ts, 1, row))
    return found


def twin(stream: list[Element]) -> Netted:
    instants: dict[int, Counter[Row]] = {}
    for ts, _, row in stream:
        instants.setdefault(ts, Counter())[row] += 1
    new = {ts: rows - instants.get(ts - 1, Counter()) for ts, rows in instants.items()}
    return {ts: rows for ts, rows in new.items() if rows}


@pytest.mark.parametrize(("most", "values"), [(1, 2), (3, 2), (6, 1), (40, 3), (40, 60)])
@pytest.mark.parametrize("seed", range(4))
def test_rows_that_were_there_a_tick_before_are_left_out_as_often(seed: int, most: int, values: int) -> None:
    stream = elements(seed, 60, most, values)
    for cuts in ([], random_cuts(seed, 150), range(1, 320)):
        assert feed(NewRows(queue(S)), [stream], cuts) == twin(stream)


def test_rows_are_held_only_while_the_next_tick_may_come() -> None:
    op = NewRows(queue(S))
    feed(op, [[(1, 1, (1, 0, 0.0)), (2, 1, (1, 0, 0.0)), (2, 1, (2, 7, 0.0))]], [], until=2)
    (rows,) = op.synopses()
    assert len(rows) == 2 and [codes.tolist() for codes in rows.live_codes()] == [[0, 7]] and rows.nbytes > 0
    feed(op, [[(3, 1, (2, 7, 0.0))]], [], until=5)
    assert len(rows) == 0


def test_state_given_as_arrays_and_taken_back_continues_alike() -> None:
    stream = elements(4, 60, 3, 2)
    cut = next(ts for ts, _, _ in stream[60:] if any(other == ts + 1 for other, _, _ in stream))
    first, second = NewRows(queue(S)), NewRows(queue(S))
    before = feed(first, [[e for e in stream if e[0] <= cut]], [], until=cut)
    second.resume(first.state(), cut)
    second.progress = cut
    after = feed(second, [[e for e in stream if e[0] > cut]], [])
    assert {**before, **after} == twin(stream)
