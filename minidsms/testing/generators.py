"""Random cases: declarations, a query, and what is fed in which order.

`random_case(seed)` is the fast, seeded form the soak uses; `cases()` draws the same through hypothesis, which shrinks
them. Timestamps have ties and gaps, domains are small so that rows meet, some values are NULL.

Invariant: a feed is accepted as it stands: streams in order of ts, a relation's change before its instant closes, every
deletion after an equal insertion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from random import Random

from hypothesis import strategies as st

from minidsms.elements import Type
from minidsms.testing.definition import History
from minidsms.testing.definition_expressions import Row, Value
from minidsms.testing.grammar import RELATIONS, STREAMS, Grammar, Options


@dataclass(frozen=True)
class Push:
    """Rows of (ts, sign, row) for one stream or relation, in one call."""

    name: str
    rows: tuple[tuple[int, int, Row], ...]


@dataclass(frozen=True)
class Advance:
    """A heartbeat, on one stream or (None) on all."""

    ts: int
    stream: str | None = None


Step = Push | Advance


@dataclass(frozen=True)
class Case:
    """Something to answer: CREATE statements, one query, and the calls that feed it."""

    declarations: tuple[str, ...]
    query: str
    feed: tuple[Step, ...]

    def history(self) -> History:
        """What the feed brings, whatever the order of its calls."""
        history = History()
        for step in self.feed:
            if isinstance(step, Push) and step.name in RELATIONS:
                history.relations.setdefault(step.name.lower(), []).extend(step.rows)
            elif isinstance(step, Push):
                history.streams.setdefault(step.name.lower(), []).extend((ts, row) for ts, _, row in step.rows)
        for changes in history.relations.values():
            changes.sort(key=lambda change: change[0])
        return history

    def closed(self) -> int:
        """The last closed instant: every feed ends with a heartbeat on all streams."""
        assert isinstance(self.feed[-1], Advance)
        return max(step.ts for step in self.feed if isinstance(step, Advance) and step.stream is None)

    def __str__(self) -> str:
        lines = [f"{text};" for text in (*self.declarations, self.query)]
        return "\n".join([*lines, *(f"-- {step}" for step in self.feed)])


def random_case(seed: int, options: Options = Options(), size: int = 14) -> Case:  # noqa: B008  (frozen)
    """The case of a seed; `size` is about how many elements a stream gets."""
    return case_from(Random(seed), options, size)


def cases(options: Options = Options(), size: int = 8) -> st.SearchStrategy[Case]:  # noqa: B008  (frozen)
    """The same cases, drawn and shrunken by hypothesis."""
    return st.randoms(use_true_random=False).map(lambda rng: case_from(rng, options, size))


def case_from(rng: Random, options: Options, size: int) -> Case:
    """A case from a source of randomness."""
    grammar = Grammar(rng, options)
    views = [grammar.view(f"V{i}").text for i in range(rng.choice((0, 0, 1, 2)))] if options.views else []
    query = grammar.query()
    texts = " ".join(_reachable(query, views))
    names = [name for name in (*STREAMS, *RELATIONS) if re.search(rf"\b{name}\b", texts)]
    declared = [declaration(name) for name in names]
    declared += [view for view in views if view in texts]
    return Case(tuple(declared), query, random_feed(rng, names, size, options.extreme))


def declaration(name: str) -> str:
    """The CREATE statement of a stream or relation of the grammar."""
    kind, columns = ("STREAM", STREAMS[name]) if name in STREAMS else ("RELATION", RELATIONS[name])
    return f"CREATE {kind} {name} ({', '.join(f'{column} {type_}' for column, type_ in columns)})"


def _reachable(query: str, views: list[str]) -> list[str]:
    """The texts of the query and the views it uses, directly or not."""
    used = [query]
    for view in reversed(views):
        name = view.split()[2]
        if any(re.search(rf"\b{name}\b", text) for text in used):
            used.append(view)
    return used


# ------------------------------------------------------------------------------------------------------------- feeds


def random_feed(rng: Random, names: list[str], size: int, may_be_extreme: bool = True) -> tuple[Step, ...]:
    """Elements for each name, in an interleaving, ending with a heartbeat on all."""
    null = rng.choice((0.0, 0.1, 0.25))
    extreme = rng.random() < 0.04 and may_be_extreme
    waiting = {name: _elements(rng, name, size, null, extreme) for name in names}
    last = max((ts for rows in waiting.values() for ts, _, _ in rows), default=0)
    steps = _interleaved(rng, waiting)
    last = max([last, *(step.ts for step in steps if isinstance(step, Advance))])
    return (*steps, Advance(last + rng.randint(0, 9)))


def _elements(rng: Random, name: str, size: int, null: float, extreme: bool) -> list[tuple[int, int, Row]]:
    """(ts, sign, row) of one stream or relation, in order."""
    columns = STREAMS.get(name) or RELATIONS[name]
    is_relation = name in RELATIONS
    ts = rng.randint(0, 3)
    rows: list[tuple[int, int, Row]] = []
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
        case Type.INTEGER:
            return rng.choice((2**63 - 1, -(2**63), 2**62, 1, 0)) if extreme else rng.randint(0, 3)
        case Type.FLOAT:
            return rng.randint(-2, 6) / 2
        case Type.TEXT:
            return rng.choice("abcd")
        case _:
            return rng.random() < 0.5


def _interleaved(rng: Random, waiting: dict[str, list[tuple[int, int, Row]]]) -> list[Step]:
    """Calls that bring the elements: in order of time, or one source far ahead of another; in small and large runs.

    A stream's element with ts waits for every change of a relation before ts, or that change might come too late.
    """
    ordered = rng.random() < 0.6
    run = rng.choice((1, 1, 2, 5, 1000))
    position = dict.fromkeys(waiting, 0)
    steps: list[Step] = []

    def next_ts(name: str) -> int | None:
        return waiting[name][position[name]][0] if position[name] < len(waiting[name]) else None

    while True:
        heads = {name: ts for name in waiting if (ts := next_ts(name)) is not None}
        if not heads:
            return steps
        first_change = min((ts for name, ts in heads.items() if name in RELATIONS), default=None)
        ready = [n for n, ts in heads.items() if n in RELATIONS or first_change is None or ts <= first_change]
        name = min(ready, key=lambda n: (heads[n], n not in RELATIONS)) if ordered else rng.choice(ready)
        others = [ts for other, ts in heads.items() if other != name]
        chosen: list[tuple[int, int, Row]] = []
        while len(chosen) < run and (ts := next_ts(name)) is not None:
            held_back = first_change is not None and name not in RELATIONS and ts > first_change
            if chosen and (held_back or (ordered and others and ts > min(others))):
                break
            chosen.append(waiting[name][position[name]])
            position[name] += 1
        steps.append(Push(name, tuple(chosen)))
        steps += _heartbeats(rng, [ts for n in waiting if (ts := next_ts(n)) is not None], ordered, chosen[-1][0])


def _heartbeats(rng: Random, coming: list[int], ordered: bool, shown: int) -> list[Step]:
    """Now and then, where nothing at or before the instant is still to come."""
    if not ordered or rng.random() > 0.25:
        return []
    until = min(coming, default=shown + 2) - 1
    return [Advance(rng.randint(shown, until))] if until >= shown else []


def with_feed(case: Case, feed: tuple[Step, ...]) -> Case:
    """The same query fed otherwise."""
    return replace(case, feed=feed)
