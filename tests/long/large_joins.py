"""Joins of thousands of rows: cases of two to five inputs whose rows find one partner, and seldom more.

A key runs up with the rows, in order or scattered; a stream is ahead of the others or behind them by a lead, which may
jump, and its rows lie within a spread of their place. Keys come again never, once in some hundred rows, or always. So
tables grow, rows are let go and come back, and values that nobody waits for any more are met after all: what a feed of
twenty rows does not reach. Streams have windows of every kind; relations are deleted from and updated; keys are
INTEGER, FLOAT, TIMESTAMP or TEXT, some of them declared, some values NULL.

Invariant: the case depends on the seed and the number of rows alone, and the engine takes its feed as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from minidsms.testing.feeds import Advance, Element, Push, Step
from minidsms.testing.generators import Case
from minidsms.testing.history import Row, Value

INPUTS = (2, 2, 2, 3, 3, 4, 5)
KEY_TYPES = ("INTEGER", "INTEGER", "TEXT", "FLOAT", "TIMESTAMP")
LENGTHS = (50, 200, 1000, 3000)
"""Of windows, in ticks; about as many rows of a stream come."""
CALLS = ((1, 5, 50, 300), (300, 2000), (5, 50), (1, 3, 700))
"""How many rows of a stream may come in one call: one of these for a case."""
BREAKS = (0.0, 0.0, 0.0005, 0.003, 0.02)
"""The share of the rows of an input whose key has come before."""
BACK = (5, 60, 2000)
"""Up to so many rows before."""
AGAIN = 20
"""So often each key comes in an input that has none."""
NULLS = 0.01
SCATTER, SPACE = 48_271, 1 << 20
"""v SCATTER mod SPACE is another number for each v below SPACE."""


@dataclass
class _Input:
    """One of the join: T0, T1, .. (a, b, x).

    a is what it may have a key on; b lies near the a of the same moment. lead, spread: see above, in rows.
    breaks: share of rows whose a has come before; 1: every a comes `AGAIN` times.
    """

    name: str
    is_relation: bool
    lead: int
    spread: int
    breaks: float
    used: set[int] = field(default_factory=set)
    held: list[Row] = field(default_factory=list)


def large_join(seed: int, rows: int) -> Case:
    """The case of a seed. rows: of each stream; relations get a tenth."""
    rng = Random(seed)
    type_ = rng.choice(KEY_TYPES)
    inputs = [_input(rng, i) for i in range(rng.choice(INPUTS))]
    if rng.random() < 0.3:
        rng.choice(inputs).breaks = 1.0
    declarations = tuple(
        f"CREATE {'RELATION' if each.is_relation else 'STREAM'} {each.name} (a {type_}, b {type_}, x INTEGER)"
        + (" KEY (a)" if each.breaks < 1 and rng.random() < (0.8 if each.is_relation else 0.2) else "")
        for each in inputs
    )
    query = _query(rng, inputs)
    return Case(declarations, query, tuple(_feed(rng, inputs, rows, _Values(rng, type_, rng.random() < 0.6))))


def _input(rng: Random, number: int) -> _Input:
    return _Input(
        f"T{number}",
        is_relation=number > 0 and rng.random() < 0.25,
        lead=rng.randrange(-30, 30),
        spread=rng.choice((0, 0, 1, 5, 30)),
        breaks=rng.choice(BREAKS),
    )


def _query(rng: Random, inputs: list[_Input]) -> str:
    """Equalities along a tree, most of them with the child's a; now and then one more, which closes a circle."""
    names = [each.name for each in inputs]
    conditions = [
        f"{rng.choice(names[:i])}.{rng.choice('ab')} = {names[i]}.{'a' if rng.random() < 0.85 else 'b'}"
        for i in range(1, len(names))
    ]
    if len(names) > 2 and rng.random() < 0.07:
        conditions.append(f"T0.b = {names[-1]}.b")
    if rng.random() < 0.3:
        conditions.append(f"{rng.choice(names)}.x < {rng.randrange(2, 9)}")
    everything = ", ".join(f"{name}.{column} AS {column}{i}" for i, name in enumerate(names) for column in "abx")
    shown = rng.choice(
        (
            *(f"ISTREAM({everything})", "ISTREAM(T0.x)", f"DSTREAM(T0.x, {names[-1]}.x AS y)", everything, "T0.x"),
            *("COUNT(*), SUM(T0.x)", "ISTREAM(T0.x, COUNT(*))"),
        )
    )
    group = " GROUP BY T0.x" if "T0.x, COUNT" in shown else ""
    items = [_item(rng, each) for each in inputs]
    rng.shuffle(items)
    return f"SELECT {shown} FROM {', '.join(items)} WHERE {' AND '.join(conditions)}{group}"


def _item(rng: Random, of: _Input) -> str:
    """What FROM says of an input."""
    if of.is_relation:
        return of.name
    length = rng.choice(LENGTHS)
    window = rng.choice(
        (
            *(f" [RANGE {length}]",) * 8,
            *(f" [ROWS {length // 3}]", f" [RANGE {length} SLIDE {length // 25}]", "", "", " [NOW]"),
            rng.choice(
                (f" [RANGE {length} SLIDE 7]", " [PARTITION BY a ROWS 1]", f" [PARTITION BY b ROWS 2 RANGE {length}]")
            ),
        )
    )
    kind = rng.random()
    if kind < 0.1:
        return f"(SELECT a, b, x FROM {of.name}{window} WHERE x > 0) AS {of.name}"
    if kind < 0.15:
        return f"(SELECT a, a AS b, MAX(x) AS x FROM {of.name}{window} GROUP BY a) AS {of.name}"
    return of.name + window


@dataclass(frozen=True)
class _Values:
    """What stands for the numbers of keys."""

    rng: Random
    type: str
    rises: bool

    def of(self, number: int) -> Value:
        if self.rng.random() < NULLS:
            return None
        key = max(number, 0) if self.rises else max(number, 0) * SCATTER % SPACE
        return f"k{key}" if self.type == "TEXT" else key / 2 if self.type == "FLOAT" else key


def _feed(rng: Random, inputs: list[_Input], rows: int, values: _Values) -> Iterator[Step]:
    """Calls that bring as many rows of each input for the same instants, relations first; a heartbeat ends them."""
    calls, jumps = rng.choice(CALLS), rng.choice((0.0, 0.05))
    at = ts = 0
    while at < rows:
        size = min(rng.choice(calls), rows - at)
        for each in sorted(rng.sample(inputs, len(inputs)), key=lambda each: not each.is_relation):
            if rng.random() < jumps:
                each.lead = rng.randrange(-60, 60)
            yield Push(each.name, tuple(_elements(rng, each, at, size, ts, values)))
        at, ts = at + size, ts + size + 1
        if rng.random() < 0.05:
            ts += 500
        if rng.random() < 0.5:
            yield Advance(ts - 1)
    yield Advance(ts + 10)
    yield Advance(ts + 2 * max(LENGTHS))


def _elements(rng: Random, of: _Input, at: int, size: int, ts: int, values: _Values) -> Iterator[Element]:
    """The elements of one call, within `size` instants; the first row is the stream's `at`-th."""
    last = ts + size
    for place in range(at, at + size, 10 if of.is_relation else 1):
        ts = min(last, ts + rng.choice((0, 0, 1, 1, 2)))
        row: Row = (values.of(_key(rng, of, place)), values.of(place + rng.randrange(-40, 40)), rng.randrange(10))
        if of.is_relation and of.held and rng.random() < 0.4:
            old = of.held.pop(rng.randrange(len(of.held)))
            yield ts, -1, old
            if rng.random() < 0.4:
                continue
            row = (old[0], *row[1:])
        yield ts, +1, row
        if of.is_relation:
            of.held.append(row)


def _key(rng: Random, of: _Input, place: int) -> int:
    """The number of the a of a row: near its place, and not one that came before, unless keys break."""
    number = max(0, place + of.lead + rng.randrange(-of.spread, of.spread + 1))
    if of.breaks == 1:
        return number // AGAIN
    if rng.random() < of.breaks:
        number = max(0, number - rng.randrange(1, rng.choice(BACK)))
    else:
        while number in of.used:
            number += 1
    of.used.add(number)
    return number
