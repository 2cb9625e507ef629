"""DISTINCT and the set operators against Counters recomputed at every instant, whatever the cuts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

import minidsms
from minidsms.elements import Schema, Type
from minidsms.operators.distinct import DuplicateEliminate
from minidsms.operators.operator import Operator
from minidsms.operators.set_operation import Except, Intersect, Union
from minidsms.operators.union_all import UnionAll
from minidsms.queues import Queue
from tests.operators.harness import (
    Element,
    Netted,
    Row,
    contents,
    differences,
    feed,
    netted,
    queue,
    random_cuts,
    random_relation,
    random_window,
    run_in_order,
)

SCHEMA = Schema.of(("a", Type.INTEGER), ("b", Type.FLOAT), ("c", Type.BOOLEAN))
Rule = Callable[[Counter[Row], Counter[Row]], Counter[Row]]

BINARY: dict[str, tuple[Callable[[Queue, Queue], Operator], Rule]] = {
    "union": (Union, lambda l, r: Counter(set(l) | set(r))),
    "except": (lambda l, r: Except(l, r, False), lambda l, r: Counter(set(l) - set(r))),
    "except all": (lambda l, r: Except(l, r, True), lambda l, r: l - r),
    "intersect": (lambda l, r: Intersect(l, r, False), lambda l, r: Counter(set(l) & set(r))),
    "intersect all": (lambda l, r: Intersect(l, r, True), lambda l, r: l & r),
    "union all": (UnionAll, lambda l, r: l + r),
}


def some_rows(rng: random.Random, n: int) -> list[Row]:
    return [
        (rng.choice((None, 0, 1, 2)), rng.choice((None, 0.0, -1.5, float("inf"))), rng.choice((None, True, False)))
        if rng.random() < 0.3
        else (rng.randrange(3), 1.0, True)
        for _ in range(n)
    ]


def twin(left: list[Element], right: list[Element], rule: Rule) -> Netted:
    of_left, of_right = contents(left), contents(right)
    now_left: Counter[Row] = Counter()
    now_right: Counter[Row] = Counter()
    states = {}
    for ts in sorted({*of_left, *of_right}):
        now_left, now_right = of_left.get(ts, now_left), of_right.get(ts, now_right)
        states[ts] = rule(now_left, now_right)
    return differences(states)


@pytest.mark.parametrize("seed", range(6))
def test_distinct_holds_each_row_once(seed: int) -> None:
    rows = some_rows(random.Random(seed), 80)
    items = (random_window if seed % 2 else random_relation)(rows, seed)
    expected = twin(items, [], lambda l, r: Counter(set(l)))
    for cuts in ([], random_cuts(seed, 100), list(range(120))):
        operator = DuplicateEliminate(queue(SCHEMA))
        assert feed(operator, [items], cuts) == expected
    assert len(operator.rows) == len(set(contents(items)[items[-1][0]]))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("seed", range(4))
def test_set_operators_follow_their_definition(name: str, seed: int) -> None:
    build, rule = BINARY[name]
    rng = random.Random(seed)
    left = random_relation(some_rows(rng, 60), seed)
    right = random_window(some_rows(rng, 60), seed + 1, size=9)
    expected = twin(left, right, rule)
    for cuts in ([], random_cuts(seed, 90), list(range(120))):
        operator = build(queue(SCHEMA), queue(SCHEMA))
        assert feed(operator, [left, right], cuts, room=1) == expected


@pytest.mark.parametrize("name", BINARY)
def test_set_operators_take_one_sided_and_append_only_input(name: str) -> None:
    build, rule = BINARY[name]
    rows = some_rows(random.Random(1), 30)
    items = [(i // 3, 1, row) for i, row in enumerate(rows)]
    for left, right in ((items, []), ([], items), (items, items[::2])):
        operator = build(queue(SCHEMA), queue(SCHEMA))
        assert feed(operator, [left, right], [2, 5], append_only=True) == twin(left, right, rule)


FIFO: dict[str, Callable[[Queue, Queue, list[bool]], Operator]] = {
    "union": lambda l, r, fifo: Union(l, r, None, fifo),
    "except": lambda l, r, fifo: Except(l, r, False, None, fifo),
    "except all": lambda l, r, fifo: Except(l, r, True, None, fifo),
    "intersect": lambda l, r, fifo: Intersect(l, r, False, None, fifo),
    "intersect all": lambda l, r, fifo: Intersect(l, r, True, None, fifo),
}


@pytest.mark.parametrize("name", FIFO)
@pytest.mark.parametrize("fifo", [[True, True], [False, True]])
def test_rows_that_leave_in_the_order_they_came_need_not_be_looked_up(name: str, fifo: list[bool]) -> None:
    rng = random.Random(name)
    left = (random_window if fifo[0] else random_relation)(some_rows(rng, 90), 3)
    right = random_window(some_rows(rng, 90), 4, size=9)
    expected = twin(left, right, BINARY[name][1])
    for cuts in ([], random_cuts(5, 90), list(range(120))):
        operator = FIFO[name](queue(SCHEMA), queue(SCHEMA), fifo)
        assert feed(operator, [left, right], cuts, room=1) == expected


def test_a_restored_distinct_over_a_window_goes_on_as_the_first_one_would() -> None:
    items = random_window(some_rows(random.Random(7), 90), 7)
    middle = items[len(items) // 2][0]
    first = DuplicateEliminate(queue(SCHEMA), True)
    before, after = [i for i in items if i[0] <= middle], [i for i in items if i[0] > middle]
    changes = feed(first, [before], list(range(120)), until=middle)
    second = DuplicateEliminate(queue(SCHEMA), True)
    second.rows.restore(first.rows.arrays())
    changes |= feed(second, [after], random_cuts(7, 120))
    assert changes == twin(items, [], lambda l, r: Counter(set(l)))


def test_union_all_puts_left_before_right_and_deletions_first() -> None:
    schema = Schema.of(("a", Type.INTEGER))
    left: list[Element] = [(1, 1, (1,)), (2, -1, (1,)), (2, 1, (2,))]
    right: list[Element] = [(1, 1, (10,)), (2, -1, (10,)), (2, 1, (20,)), (3, 1, (30,))]
    expected = [(1, 1, (1,)), (1, 1, (10,)), (2, -1, (1,)), (2, -1, (10,)), (2, 1, (2,)), (2, 1, (20,)), (3, 1, (30,))]
    assert run_in_order(UnionAll(queue(schema), queue(schema)), [left, right]) == expected
    shift = 2**62

    def late(items: list[Element]) -> list[Element]:
        return [(ts + shift, *rest) for ts, *rest in items]

    operator = UnionAll(queue(schema), queue(schema))
    assert run_in_order(operator, [late(left), late(right)], until=shift + 9) == late(expected)


def test_rows_that_left_are_forgotten() -> None:
    schema = Schema.of(("t", Type.TEXT))
    operator = DuplicateEliminate(queue(schema), True)
    items: list[Element] = []
    for i in range(20_000):
        items += [(i, -1, (i - 50,))] if i >= 50 else []
        items += [(i, 1, (i,))]
    assert feed(operator, [items], list(range(0, 20_000, 500)), room=1) == netted(items)
    assert len(operator.rows) == 50
    assert operator.rows.table.capacity <= 1024
    assert sum(len(codes) for codes in operator.rows.live_codes()) == 50
    restored = DuplicateEliminate(queue(schema), True)
    restored.rows.restore(operator.rows.arrays())
    assert feed(restored, [[(30_000, -1, (19_950,)), (30_000, 1, (19_998,))]]) == {30_000: Counter({(19_950,): -1})}
    assert operator.describe().figures["rows"] == 50


@pytest.mark.parametrize("type_", ["INTEGER", "FLOAT", "BOOLEAN", "TEXT"])
@pytest.mark.parametrize("joined", ["EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL", "UNION", ""])
@pytest.mark.parametrize("batch_size", [1, 2, 7, 65_536])
def test_a_single_column_is_read_where_it_stands_in_the_store(type_: str, joined: str, batch_size: int) -> None:
    """Rows of two columns are not: they take the words that are gathered."""
    rng = random.Random(f"{type_} {joined}")
    values: list[object] = [None, *(rng.sample(range(900), 200))]
    if type_ == "FLOAT":
        values = [None, *(v / 4 for v in values if isinstance(v, int)), 0.0, float("inf")]
    elif type_ == "BOOLEAN":
        values = [None, True, False]
    elif type_ == "TEXT":
        values = [None if v is None else f"v{v}" for v in values]

    def text(columns: str) -> str:
        second = f" {joined} SELECT {columns} FROM B [RANGE 60]" if joined else ""
        return f"SELECT {'' if joined else 'DISTINCT '}{columns} FROM A [RANGE 90]{second}"

    with minidsms.connect(batch_size=batch_size) as db:
        db.execute(f"CREATE STREAM A (v {type_}); CREATE STREAM B (v {type_})")
        one, two = db.query(text("v")), db.query(text("v, v AS w"))
        ts = 0
        for _ in range(6):
            rows = [rng.choice(values) for _ in range(100)]
            instants = [ts := ts + rng.choice((0, 0, 1)) for _ in rows]
            if batch_size > 2:
                db.push(rng.choice("AB"), {"v": rows}, ts=instants)
            else:
                for row, at in zip(rows, instants):
                    db.push(rng.choice("AB"), (row,), ts=at)
            ts += 1
        db.advance(ts + 100)
        changes = one.fetch()
        assert changes or type_ == "BOOLEAN"
        assert [(c.ts, c.sign, c.row[0]) for c in changes] == [(c.ts, c.sign, c.row[0]) for c in two.fetch()]
