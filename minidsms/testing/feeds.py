"""Random feeds: what is pushed into streams and relations, in which calls, with heartbeats between them.

Timestamps have ties and gaps, domains are small so that rows meet, some values are NULL. A stream with slack gets its
elements out of order, one with LATE DROP some that are too late.

Invariant: a feed is accepted as it stands: a stream's elements within its slack (unless it drops late ones), after its
heartbeats; a relation's change before its instant closes, every deletion after an equal insertion.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from minidsms.elements import Type
from minidsms.testing.grammar import LIST, PRICE, RELATIONS, STREAMS, TOTAL
from minidsms.testing.history import Row, Value
from minidsms.values.coded import scaled

Element = tuple[int, int, Row]
"""(ts, sign, row)."""


@dataclass(frozen=True)
class Push:
    """Rows of (ts, sign, row) for one stream or relation, in one call."""

    name: str
    rows: tuple[Element, ...]


@dataclass(frozen=True)
class Advance:
    """A heartbeat, on one stream or (None) on all."""

    ts: int
    stream: str | None = None


Step = Push | Advance


@dataclass(frozen=True)
class Slack:
    """What a stream allows: elements late by so many ticks; later ones are dropped or must not come."""

    ticks: int = 0
    drops: bool = False


@dataclass
class Progress:
    """What one stream's input manager knows (docs/semantics T6): no element with ts <= progress comes any more."""

    slack: Slack = Slack()
    progress: int | None = None
    greatest: int | None = None

    def admits(self, ts: int) -> bool:
        """Whether an element is in time; then it has been seen."""
        if self.progress is not None and ts <= self.progress:
            return False
        self.greatest = ts if self.greatest is None else max(ts, self.greatest)
        self.advance(self.greatest - self.slack.ticks - 1)
        return True

    def advance(self, ts: int) -> None:
        """A heartbeat."""
        self.progress = ts if self.progress is None else max(ts, self.progress)


def random_feed(
    rng: Random,
    names: list[str],
    size: int,
    may_be_extreme: bool = True,
    slack: Mapping[str, Slack] = {},
) -> tuple[Step, ...]:
    """Elements for each name, in an interleaving, ending with a heartbeat on all."""
    null = rng.choice((0.0, 0.1, 0.25))
    extreme = rng.random() < 0.04 and may_be_extreme
    waiting = {name: _elements(rng, name, size, null, extreme) for name in names}
    for name, allowed in slack.items():
        if name in waiting:
            waiting[name] = _out_of_order(rng, waiting[name], allowed)
    last = max((ts for rows in waiting.values() for ts, _, _ in rows), default=0)
    steps = _Interleaving(rng, waiting, {name for name, allowed in slack.items() if allowed.drops}).steps()
    last = max([last, *(step.ts for step in steps if isinstance(step, Advance))])
    return (*steps, Advance(last + rng.randint(0, 9)))


def _elements(rng: Random, name: str, size: int, null: float, extreme: bool) -> list[Element]:
    """The elements of one stream or relation, in order of time."""
    columns = STREAMS.get(name) or RELATIONS[name]
    is_relation = name in RELATIONS
    ts = rng.randint(0, 3)
    rows: list[Element] = []
    held: list[Row] = []
    for _ in range(rng.randint(0 if rng.random() < 0.1 else size // 2, size)):
        ts += rng.choice((0, 0, 1, 1, 1, 2, 3, 7))
        row = tuple(_value(rng, type_, null, extreme) for _, type_ in columns)
        # What enters and leaves a relation at one instant would be an event without a net change: left out.
        changed_now = {r for t, _, r in rows if t == ts} if is_relation else set()
        old = [r for r in held if r not in changed_now]
        if is_relation and old and rng.random() < 0.4:
            row = rng.choice(old)
            held.remove(row)
            rows.append((ts, -1, row))
        elif row not in changed_now:
            held.append(row)
            rows.append((ts, +1, row))
    return rows


def _value(rng: Random, type_: Type, null: float, extreme: bool) -> Value:
    if rng.random() < null:
        return None
    match type_:
        case Type.INTEGER | Type.INTERVAL | Type.TIMESTAMP if extreme:
            return rng.choice((2**63 - 1, -(2**63), 2**62, 1, 0))
        case Type.INTEGER | Type.INTERVAL:
            return rng.randint(0, 3)
        case Type.TIMESTAMP:
            return rng.choice((0, 1, 2, 1000, 86_400_000))
        case Type.FLOAT:
            return rng.randint(-2, 6) / 2
        case Type.TEXT:
            return rng.choice("abcd")
        case Type.DATE:
            return datetime.date(1970, 1, rng.randint(1, 4))
        case Type.TIME:
            return datetime.time(second=rng.randint(0, 2))
        case _ if type_ is LIST:
            return tuple(rng.choice((0, 1, 2, None)) for _ in range(rng.randint(0, 2)))
        case _ if type_ is TOTAL and extreme:
            return scaled(rng.choice((10**36, -(10**36), 2**61, 1 - 2**61, 0)), 2)
        case _ if type_ in (PRICE, TOTAL):
            return scaled(rng.choice((-50, 0, 25, 125, 150)), 2)
        case _:
            return rng.random() < 0.5


def _out_of_order(rng: Random, rows: list[Element], slack: Slack) -> list[Element]:
    """The elements in another order that the slack allows; where late ones are dropped, in worse order still."""
    reach = slack.ticks + (rng.choice((0, 0, 2)) if slack.drops else 0)
    delayed = sorted(range(len(rows)), key=lambda i: (rows[i][0] + rng.uniform(0, reach), i) if reach else (0, i))
    return [rows[i] for i in delayed]


class _Interleaving:
    """Calls that bring the elements: in order of time, or one source far ahead of another; in small and large runs.

    A stream's element with ts waits for every change of a relation before ts, or that change might come too late.
    """

    def __init__(self, rng: Random, waiting: dict[str, list[Element]], dropping: set[str]) -> None:
        self.rng = rng
        self.waiting = waiting
        self.dropping = dropping
        self.position = dict.fromkeys(waiting, 0)
        self.ordered = rng.random() < 0.6
        self.run = rng.choice((1, 1, 2, 5, 1000))
        self.beats = rng.choice((0.0, 0.25, 0.25, 0.6))

    def coming(self, name: str) -> list[int]:
        """The instants of what is still to come, in the order of its coming."""
        return [ts for ts, _, _ in self.waiting[name][self.position[name] :]]

    def steps(self) -> list[Step]:
        """All of them."""
        steps: list[Step] = []
        while heads := {name: coming[0] for name in self.waiting if (coming := self.coming(name))}:
            first_change = min((ts for name, ts in heads.items() if name in RELATIONS), default=None)
            ready = [n for n, ts in heads.items() if n in RELATIONS or first_change is None or ts <= first_change]
            first = min(ready, key=lambda n: (heads[n], n not in RELATIONS))
            name = first if self.ordered else self.rng.choice(ready)
            others = [ts for other, ts in heads.items() if other != name]
            chosen: list[Element] = []
            for element in self.waiting[name][self.position[name] :][: self.run]:
                ts = element[0]
                held_back = first_change is not None and name not in RELATIONS and ts > first_change
                if chosen and (held_back or (self.ordered and others and ts > min(others))):
                    break
                chosen.append(element)
            self.position[name] += len(chosen)
            steps.append(Push(name, tuple(chosen)))
            if self.rng.random() < self.beats:
                steps += self.heartbeat(max(ts for ts, _, _ in chosen))
        return steps

    def heartbeat(self, shown: int) -> list[Step]:
        """One, on all streams or on one, where nothing at or before its instant is still to come."""
        stream = self.rng.choice([None, *(name for name in self.waiting if name in STREAMS)])
        concerned = [n for n in self.waiting if stream in (None, n) or n in RELATIONS]
        coming = [ts for n in concerned if n not in self.dropping for ts in self.coming(n)]
        until = min(coming, default=shown + 2) - 1
        return [Advance(self.rng.randint(max(until - 3, 0), until), stream)] if until >= 0 else []
