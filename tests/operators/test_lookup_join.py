"""LookupJoin against a twin that looks through the whole relation for every element."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from minidsms.elements import Schema, Type
from minidsms.operators import lookup_join
from minidsms.operators.lookup_join import LookupJoin
from minidsms.operators.lookup_row import LookupRow
from tests.joins.test_two_way import KEYS, S, relation, rows
from tests.operators.harness import Element, Netted, Row, contents, feed, feed_in_turn, queue, random_cuts, run_in_order

Keys = tuple[tuple[int, ...], tuple[int, ...]]
COLUMNS = ((0, 0), (1, 2), (0, 1), (1, 0))
SCHEMA = Schema(tuple(S[c] for _, c in COLUMNS))


def elements(seed: int, n: int = 60) -> list[Element]:
    rng = random.Random(seed)
    instants = sorted(rng.randrange(1, 40) for _ in range(n))
    return [(ts, 1, row) for ts, row in zip(instants, rows(seed, n, 5))]


def twin(stream: Sequence[Element], right: Sequence[Element], keys: Keys, outer: bool) -> Netted:
    """What is put out at each instant, by the definition."""
    states = contents(right)
    answer: Netted = {}
    for ts, _, row in stream:
        before = [instant for instant in states if instant <= ts]
        held = states[max(before)] if before else Counter[Row]()
        met: Counter[Row] = Counter()
        for other, count in held.items():
            pairs = [(row[i], other[j]) for i, j in zip(*keys)]
            if all(a is not None and a == b for a, b in pairs):
                met[tuple((row, other)[i][c] for i, c in COLUMNS)] += count
        if outer and not met:
            met[tuple(row[c] if i == 0 else None for i, c in COLUMNS)] += 1
        for found, count in met.items():
            answer.setdefault(ts, Counter())[found] += count
    return answer


def operator(keys: Keys, outer: bool, fifo: bool) -> LookupJoin:
    return LookupJoin(queue(S), queue(S), list(zip(*keys)), COLUMNS, SCHEMA, outer, fifo)


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("fifo", [True, False])
@pytest.mark.parametrize("keys", [*KEYS, ((0, 1, 0), (0, 1, 0)), ((0, 0), (0, 0))])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_elements_meet_what_the_relation_has_at_their_instants(outer: bool, fifo: bool, keys: Keys, seed: int) -> None:
    stream, right = elements(seed), relation(fifo, seed + 100)
    answer = feed(operator(keys, outer, fifo), [stream, right], random_cuts(seed, 80))
    assert answer == twin(stream, right, keys, outer)


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("fifo", [True, False])
def test_slices_buffers_and_full_queues_do_not_change_the_answer(
    outer: bool, fifo: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = ((0,), (0,))
    stream, right = elements(7, 80), relation(fifo, 8, 40, 3)
    expected = run_in_order(operator(keys, outer, fifo), [stream, right])
    assert feed(operator(keys, outer, fifo), [stream, right], range(1, 100)) == twin(stream, right, keys, outer)
    for room in (1, 2, 5):
        monkeypatch.setattr(lookup_join, "_FEW", room)
        monkeypatch.setattr(lookup_join, "_MANY", 2 * room)
        for many in (1, 1000):
            assert run_in_order(operator(keys, outer, fifo), [stream, right], room=many, budget=6) == expected


def one_row(seed: int) -> list[Element]:
    """Changes of a relation that never has more rows."""
    rng, changes, held = random.Random(seed), list[Element](), None
    for ts, row in zip(sorted(rng.sample(range(1, 40), 20)), rows(seed, 20, 5)):
        if held is not None:
            changes.append((ts, -1, held))
        held = row if held is None or rng.random() < 0.6 else None
        if held is not None:
            changes.append((ts, 1, held))
    return changes


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_elements_meet_the_one_row_that_is_there_at_their_instants(outer: bool, seed: int) -> None:
    stream, right = elements(seed), one_row(seed + 100)
    expected = twin(stream, right, ((), ()), outer)
    for cuts in (range(1, 41), random_cuts(seed, 80), ()):
        assert feed(LookupRow(queue(S), queue(S), COLUMNS, SCHEMA, outer), [stream, right], cuts) == expected
    first, second = (LookupRow(queue(S), queue(S), COLUMNS, SCHEMA, outer) for _ in range(2))
    answer = feed_in_turn(first, second, [stream, right], 20)
    assert answer == expected


def test_a_row_replaced_at_an_elements_instant_is_met_as_it_is_then() -> None:
    stream: list[Element] = [(1, 1, (1, 0, 0.0)), (2, 1, (1, 0, 0.0)), (3, 1, (1, 0, 0.0))]
    right: list[Element] = [(1, 1, (1, 5, 0.5)), (2, -1, (1, 5, 0.5)), (2, 1, (1, 6, 1.5)), (3, -1, (1, 6, 1.5))]
    for fifo in (True, False):
        output = run_in_order(operator(((0,), (0,)), True, fifo), [stream, right])
        assert [e[2][1] for e in output] == [0.5, 1.5, None]


@pytest.mark.parametrize("keys", [((0,), (0,)), ((0, 1), (0, 1))])
def test_the_relation_grows_and_shrinks(keys: Keys) -> None:
    n = 5000
    right: list[Element] = [(1, 1, (i, i % 7, 0.0)) for i in range(n)] + [
        (3, -1, (i, i % 7, 0.0)) for i in range(n - 1)
    ]
    stream: list[Element] = [(ts, 1, (i, i % 7, 0.0)) for ts in (2, 3) for i in range(0, 2 * n, 7)]
    stream += [(4, 1, (n - 1, (n - 1) % 7, 0.0))]
    op = operator(keys, False, False)
    answer = feed(op, [stream, right], [1, 2, 3])
    assert {ts: sum(rows.values()) for ts, rows in answer.items()} == {2: -(-n // 7), 4: 1}
    assert op.describe().figures["rows"] == 1


@pytest.mark.parametrize("fifo", [True, False])
@pytest.mark.parametrize("keys", [(0,), (0, 1), ()])
def test_state_given_as_arrays_and_taken_back_continues_alike(fifo: bool, keys: tuple[int, ...]) -> None:
    stream, right = elements(41), relation(fifo, 42)
    first, second = operator((keys, keys), True, fifo), operator((keys, keys), True, fifo)
    answer = feed_in_turn(first, second, [stream, right], 20)
    assert answer == twin(stream, right, (keys, keys), True)


def test_live_codes_are_those_of_rows_held() -> None:
    schema = Schema.of(("b", Type.TEXT))
    op = LookupJoin(queue(schema), queue(schema), [(0, 0)], [(0, 0)], schema)
    feed(op, [[(1, 1, (7,))], [(1, 1, (8,)), (2, 1, (9,)), (3, -1, (8,))]], [1, 2])
    assert [[c.tolist() for c in s.live_codes()] for s in op.synopses()] == [[[9]]]
    row = LookupRow(queue(schema), queue(schema), [(0, 0)], schema)
    feed(row, [[(1, 1, (7,))], [(1, 1, (8,)), (2, -1, (8,)), (2, 1, (9,))]], [1, 2])
    assert [[c.tolist() for c in s.live_codes()] for s in row.synopses()] == [[[9]]]
