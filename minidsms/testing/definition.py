"""The answer to a query, by definition.

A window's contents at an instant follow from the arrivals so far (docs/semantics W1 to W7), the relation at an instant
is SQL over bags of rows (R1 to R5), a stream is the difference of two relations (S1) or one of them (S2). Nothing is
incremental and nothing is fast: this is what the engine is compared with. It shares the bound tree with it, no more.

Invariant: rows of windows stand in arrival order, and filters keep it; FIRST and LAST rest on that.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from minidsms.cql import bound
from minidsms.cql.bound import JoinKind, SetKind, StreamKind, WindowKind
from minidsms.cql.catalog import AggregateDef, FunctionDef
from minidsms.elements import Type
from minidsms.testing.definition_expressions import (
    MAX_INTEGER,
    MIN_INTEGER,
    Failed,
    Result,
    Row,
    Scope,
    Value,
    conjunction,
    evaluate,
)

Change = tuple[int, int, Row]
"""(ts, sign, row)."""


class Failure(Exception):
    """The query has no answer from instant `ts` on. `changes` are its answers before, which stand."""

    def __init__(self, ts: int, reason: str, changes: Sequence[Change] = ()) -> None:
        super().__init__(f"at instant {ts}: {reason}")
        self.ts = ts
        self.reason = reason
        self.changes = list(changes)


@dataclass
class History:
    """What has been fed: per stream (ts, row) in arrival order, per relation (ts, sign, row); names in lower case."""

    streams: dict[str, list[tuple[int, Row]]] = field(default_factory=dict)
    relations: dict[str, list[Change]] = field(default_factory=dict)
    functions: Mapping[str, FunctionDef] = field(default_factory=dict)
    aggregates: Mapping[str, AggregateDef] = field(default_factory=dict)
    tick_ns: int = 1_000_000


def answer(node: bound.Node, history: History, until: int) -> list[Change]:
    """The netted changes at every instant <= until: elements of a stream (sign +1), or changes of a relation.

    Raises Failure at the first instant the query cannot be evaluated at.
    """
    world = Definition(history, until)
    derived, subqueries = world.judged(node)
    changes: list[Change] = []
    previous: Sequence[Row] = ()
    for tau in world.instants(node):
        try:
            # What does not depend on a row is judged at every instant, whether or not a row of the query looks at it.
            spoken = [world.arrivals(stream, tau) for stream in derived]
            for subquery in subqueries:
                world.rows(subquery, tau)
            current = world.rows(node, tau) if node.kind == "relation" else ()
        except Failure as failure:
            raise Failure(failure.ts, failure.reason, changes) from None
        if node.kind == "stream":
            now = [(ts, +1, row) for ts, row in spoken[-1] if ts == tau]
        else:
            now = net_changes(tau, previous, current)
            previous = current
        changes += sorted(now, key=_change_order)
    return changes


def relation_at(node: bound.Node, history: History, tau: int) -> list[Row]:
    """The rows of a relation at the instant, duplicates included, in no particular order."""
    return list(Definition(history, tau).rows(node, tau))


def instants(node: bound.Node, history: History, until: int) -> list[int]:
    """Every instant <= until at which the node may change or speak, ascending; some at which it does not."""
    return Definition(history, until).instants(node)


def net_changes(tau: int, before: Iterable[Row], after: Iterable[Row]) -> list[Change]:
    """The changes that turn one bag into the other."""
    old, new = Counter(before), Counter(after)
    return [(tau, -1, r) for r in (old - new).elements()] + [(tau, +1, r) for r in (new - old).elements()]


def value_order(row: Row) -> tuple[tuple[bool, Value], ...]:
    """Column by column, NULL first."""
    return tuple((value is not None, value) for value in row)


def _change_order(change: Change) -> tuple[int, int, tuple[tuple[bool, Value], ...]]:
    return change[0], change[1], value_order(change[2])


@dataclass
class _Derived:
    """A derived stream as far as it has been computed: its elements, the next instant, the relation before it."""

    elements: list[tuple[int, Row]]
    waiting: Iterator[int]
    next: int | None
    before: Sequence[Row]
    contents: tuple[object, ...]


class Definition:
    """The nodes of one query over one history, up to one instant."""

    def __init__(self, history: History, until: int) -> None:
        self.history = history
        self.until = until
        self.derived: dict[int, _Derived] = {}
        self._instants: dict[int, list[int]] = {}
        self._tau: int | None = None
        self._rows: dict[int, Sequence[Row]] = {}  # of uncorrelated nodes, at the instant _tau
        self._depth: dict[int, int] = {}

    # ------------------------------------------------------------------------------------------------ instants

    def instants(self, node: bound.Node) -> list[int]:
        """Every instant at which the node may change or speak, ascending: a superset."""
        known = self._instants.get(id(node))
        if known is None:
            found = {t for t in self._own_instants(node) if t <= self.until}
            for below in _below(node):
                found.update(self.instants(below))
            known = self._instants[id(node)] = sorted(found)
        return known

    def _own_instants(self, node: bound.Node) -> Iterable[int]:
        match node:
            case bound.BaseStream(name=name):
                return [ts for ts, _ in self.history.streams.get(name.lower(), [])]
            case bound.BaseRelation(name=name):
                return [ts for ts, _, _ in self.history.relations.get(name.lower(), [])]
            case bound.Window(input=stream, spec=spec):
                below = self.instants(stream)
                if spec.kind is WindowKind.RANGE and spec.slide is not None and below:
                    return range(-(-below[0] // spec.slide) * spec.slide, self.until + 1, spec.slide)
                return [ts + (spec.range_ or 1) for ts in below]
            case bound.RelationToStream(op=StreamKind.RSTREAM, ticks=True):
                below = self.instants(node.input)
                return range(below[0], self.until + 1) if below else ()
            case _:
                return ()

    # -------------------------------------------------------------------------------------------------- streams

    def judged(self, node: bound.Node) -> tuple[list[bound.RelationToStream], list[bound.Node]]:
        """The derived streams in a query, each before those that read it (the query itself last if it is one), and the
        subqueries of its expressions that look at no row outside.
        """
        streams: list[bound.RelationToStream] = []
        subqueries: list[bound.Node] = []
        seen: set[int] = set()

        def visit(n: bound.Node) -> None:
            if id(n) in seen:
                return
            seen.add(id(n))
            for below in _below(n):
                visit(below)
            if isinstance(n, bound.RelationToStream):
                streams.append(n)
            queries = (q for expr in bound.expressions(n) for q in bound.subqueries(expr))
            subqueries.extend(q for q in queries if self._outer_depth(q) == 0)

        visit(node)
        return streams, subqueries

    def arrivals(self, stream: bound.Node, tau: int) -> Sequence[tuple[int, Row]]:
        """(ts, row) of all elements with ts <= tau, in order."""
        if isinstance(stream, bound.BaseStream):
            elements = self.history.streams.get(stream.name.lower(), [])
        else:
            assert isinstance(stream, bound.RelationToStream)
            if id(stream) not in self.derived:
                waiting = iter(self.instants(stream))
                nothing = tuple(() if isinstance(event, bound.Window) else 0 for event in stream.events)
                self.derived[id(stream)] = _Derived([], waiting, next(waiting, None), (), nothing)
            state = self.derived[id(stream)]
            while state.next is not None and state.next <= tau:
                self._speak(stream, state, state.next)
                state.next = next(state.waiting, None)
            elements = state.elements
        return elements[: bisect.bisect_right(elements, tau, key=lambda element: element[0])]

    def _speak(self, node: bound.RelationToStream, state: _Derived, tau: int) -> None:
        """The elements of a derived stream at one instant: S1, S2, ordered as T3 says."""
        rows = self.rows(node.input, tau)
        contents = tuple(self._contents(event, tau) for event in node.events)
        spoken: list[Row] = []
        if node.op is StreamKind.RSTREAM:
            slid = any(self._slides(event, tau) for event in node.events)
            if node.ticks or slid or contents != state.contents:
                spoken = list(rows)
        else:
            old, new = Counter(state.before), Counter(rows)
            entered = new - old if node.op is StreamKind.ISTREAM else old - new
            # From the newest back, so that what is taken of equal rows are the last to arrive.
            for row in reversed(rows if node.op is StreamKind.ISTREAM else state.before):
                if entered[row] > 0:
                    entered[row] -= 1
                    spoken.append(row)
            spoken.reverse()
        if not node.keeps_order:
            spoken.sort(key=value_order)
        state.elements.extend((tau, row) for row in spoken)
        state.before, state.contents = rows, contents

    def _contents(self, event: bound.Node, tau: int) -> object:
        """What differs when other elements are in the window, or the base relation has had a change (S2)."""
        if isinstance(event, bound.Window):
            return tuple(self.held(event, tau))
        assert isinstance(event, bound.BaseRelation)
        return sum(ts <= tau for ts, _, _ in self.history.relations.get(event.name.lower(), []))

    def _slides(self, event: bound.Node, tau: int) -> bool:
        """Whether a RANGE window with SLIDE counts as changing now: at each multiple from its first arrival on."""
        if not isinstance(event, bound.Window) or event.spec.kind is not WindowKind.RANGE or event.spec.slide is None:
            return False
        return tau % event.spec.slide == 0 and len(self.arrivals(event.input, tau)) > 0

    # -------------------------------------------------------------------------------------------------- windows

    def held(self, window: bound.Window, tau: int) -> Sequence[int]:
        """Which arrivals (0, 1, ..) the window holds at the instant, in order: W1 to W7."""
        spec = window.spec
        elements = self.arrivals(window.input, tau)
        n = len(elements)
        match spec.kind:
            case WindowKind.UNBOUNDED:
                return range(n)
            case WindowKind.RANGE:
                b = tau if spec.slide is None else tau // spec.slide * spec.slide
                return [i for i in range(n) if _within(elements[i][0], spec.range_, b)]
            case WindowKind.ROWS:
                assert spec.rows is not None
                last = n if spec.slide is None else n // spec.slide * spec.slide
                return range(max(0, last - spec.rows), last)
            case WindowKind.PARTITION:
                assert spec.rows is not None
                groups: dict[Row, list[int]] = {}
                for i, (_, row) in enumerate(elements):
                    groups.setdefault(tuple(row[k] for k in spec.keys), []).append(i)
                newest = sorted(i for group in groups.values() for i in group[-spec.rows :])
                return [i for i in newest if spec.range_ is None or _within(elements[i][0], spec.range_, tau)]

    # ------------------------------------------------------------------------------------------------ relations

    def rows(self, node: bound.Node, tau: int, outer: tuple[Row, ...] = ()) -> Sequence[Row]:
        """The relation at the instant; `outer` are the rows of the enclosing queries, nearest first."""
        if tau != self._tau:
            self._tau, self._rows = tau, {}
        if self._outer_depth(node) > 0:
            return self._evaluate(node, tau, outer)
        known = self._rows.get(id(node))
        if known is None:
            known = self._evaluate(node, tau, outer)
            if tau == self._tau:  # a derived stream below may have been computed at earlier instants meanwhile
                self._rows[id(node)] = known
        return known

    def _evaluate(self, node: bound.Node, tau: int, outer: tuple[Row, ...]) -> Sequence[Row]:
        match node:
            case bound.Window():
                elements = self.arrivals(node.input, tau)
                return [elements[i][1] for i in self.held(node, tau)]
            case bound.BaseRelation(name=name):
                return _accumulated(self.history.relations.get(name.lower(), []), tau)
            case bound.Filter() | bound.Join(join=JoinKind.INNER):
                candidates = self._candidates(node, tau, outer)
                return [row for row, verdict in candidates if _required(verdict, tau)]
            case bound.Join():
                return self._outer_join(node, tau, outer)
            case bound.Project(input=below, exprs=exprs):
                scope = self._scope(tau, outer)
                rows = self.rows(below, tau, outer)
                return [tuple(_required(evaluate(e, row, scope), tau) for e in exprs) for row in rows]
            case bound.Aggregate():
                return self._aggregate(node, tau, outer)
            case bound.Distinct(input=below):
                return list(dict.fromkeys(self.rows(below, tau, outer)))
            case bound.SetOperation(left=left, right=right):
                return _set_operation(node, self.rows(left, tau, outer), self.rows(right, tau, outer))
        raise TypeError(f"no relation: {node!r}")

    def _candidates(self, node: bound.Node, tau: int, outer: tuple[Row, ...]) -> list[tuple[Row, Result]]:
        """The rows of filters over inner joins whose conditions are TRUE, or failed and not FALSE or NULL elsewhere.

        WHERE and the ONs of inner joins are one conjunction: an error in one counts only if all others are TRUE (R4).
        """
        match node:
            case bound.Filter(input=below, condition=condition):
                before = self._candidates(below, tau, outer)
            case bound.Join(join=JoinKind.INNER, left=left, right=right, condition=condition):
                lefts, rights = self._candidates(left, tau, outer), self._candidates(right, tau, outer)
                before = [(a + b, conjunction((va, vb))) for a, va in lefts for b, vb in rights]
            case _:
                return [(row, True) for row in self.rows(node, tau, outer)]
        if condition is None:
            return before
        scope = self._scope(tau, outer)
        judged = ((row, conjunction((verdict, evaluate(condition, row, scope)))) for row, verdict in before)
        return [(row, verdict) for row, verdict in judged if verdict is not None and verdict is not False]

    def _outer_join(self, node: bound.Join, tau: int, outer: tuple[Row, ...]) -> list[Row]:
        lefts, rights = self.rows(node.left, tau, outer), self.rows(node.right, tau, outer)
        scope = self._scope(tau, outer)
        matched_left: set[int] = set()
        matched_right: set[int] = set()
        result: list[Row] = []
        for (i, a), (j, b) in itertools.product(enumerate(lefts), enumerate(rights)):
            if node.condition is None or _required(evaluate(node.condition, a + b, scope), tau) is True:
                result.append(a + b)
                matched_left.add(i)
                matched_right.add(j)
        if node.join in (JoinKind.LEFT, JoinKind.FULL):
            nulls = (None,) * len(node.right.schema)
            result += [a + nulls for i, a in enumerate(lefts) if i not in matched_left]
        if node.join in (JoinKind.RIGHT, JoinKind.FULL):
            nulls = (None,) * len(node.left.schema)
            result += [nulls + b for j, b in enumerate(rights) if j not in matched_right]
        return result

    def _aggregate(self, node: bound.Aggregate, tau: int, outer: tuple[Row, ...]) -> list[Row]:
        scope = self._scope(tau, outer)
        groups: dict[Row, list[Row]] = {}
        if node.is_global:
            # R3: no row before the first arrival in a window, even if a base relation has rows to count.
            if not any(self._has_begun(event, tau) for event in node.events):
                return []
            groups[()] = []
        for row in self.rows(node.input, tau, outer):
            key = tuple(_required(evaluate(k, row, scope), tau) for k in node.keys)
            groups.setdefault(key, []).append(row)
        return [
            key + tuple(self._aggregated(call, members, scope, tau) for call in node.aggregates)
            for key, members in groups.items()
        ]

    def _aggregated(self, call: bound.AggregateCall, members: list[Row], scope: Scope, tau: int) -> Value:
        if call.user:
            state = self.history.aggregates[call.function.lower()].factory()
            added = [tuple(_required(evaluate(a, row, scope), tau) for a in call.args) for row in members]
            added = [values for values in added if None not in values]
            for values in added:
                state.add(*values)
            result: Value = state.result() if added else None
            return result
        if call.arg is None:
            return len(members)
        values = [_required(evaluate(call.arg, row, scope), tau) for row in members]
        if call.distinct:
            values = list(dict.fromkeys(values))
        return _required(_aggregate_of(call.function, values, call.type), tau)

    def _has_begun(self, event: bound.Node, tau: int) -> bool:
        """Whether anything has arrived in the window, or changed in the base relation (R3)."""
        if isinstance(event, bound.Window):
            return len(self.arrivals(event.input, tau)) > 0
        assert isinstance(event, bound.BaseRelation)
        return any(ts <= tau for ts, _, _ in self.history.relations.get(event.name.lower(), []))

    def _scope(self, tau: int, outer: tuple[Row, ...]) -> Scope:
        return Scope(
            lambda query, rows: self.rows(query, tau, rows), outer, self.history.functions, self.history.tick_ns
        )

    def _outer_depth(self, node: bound.Node) -> int:
        """How many enclosing queries the relation looks into: 0 when it is the same whatever their rows are."""
        known = self._depth.get(id(node))
        if known is None:
            depths = [self._outer_depth(below) for below in node.inputs]
            for expr in bound.expressions(node):
                depths += [e.level for e in bound.walk(expr) if isinstance(e, bound.OuterRef)]
                depths += [self._outer_depth(query) - 1 for query in bound.subqueries(expr)]
            known = self._depth[id(node)] = max(depths, default=0)
        return known


def _below(node: bound.Node) -> Iterator[bound.Node]:
    """The nodes read: inputs, then the subqueries of expressions."""
    yield from node.inputs
    for expr in bound.expressions(node):
        yield from bound.subqueries(expr)


def _within(ts: int, range_: int | None, tau: int) -> bool:
    """(tau - T, tau], or exactly tau when T is 0: W1, W2."""
    assert range_ is not None
    return ts == tau if range_ == 0 else tau - range_ < ts <= tau


def _required(result: Result, tau: int) -> Value:
    if isinstance(result, Failed):
        raise Failure(tau, result.reason)
    return result


def _accumulated(changes: Iterable[Change], tau: int) -> list[Row]:
    """The bag that the changes up to the instant leave."""
    rows: list[Row] = []
    for ts, sign, row in changes:
        if ts <= tau:
            rows.append(row) if sign > 0 else rows.remove(row)
    return rows


def _set_operation(node: bound.SetOperation, left: Sequence[Row], right: Sequence[Row]) -> list[Row]:
    a, b = Counter(left), Counter(right)
    if not node.all:
        a, b = Counter(set(left)), Counter(set(right))
    match node.op:
        case SetKind.UNION:
            result = a + b if node.all else a | b
        case SetKind.EXCEPT:
            result = a - b
        case SetKind.INTERSECT:
            result = a & b
    return list(result.elements())


def _aggregate_of(function: str, values: Sequence[Value], type_: Type) -> Result:
    """An aggregate of the values in order of arrival, NULLs among them (R3)."""
    if function in ("first", "last"):
        return values[0 if function == "first" else -1] if values else None
    known = [v for v in values if v is not None]
    if function == "count":
        return len(known)
    if not known:
        return None
    if function in ("min", "max"):
        return (min if function == "min" else max)(known)
    numbers: list[int | float] = known  # type: ignore[assignment]
    if function == "sum":
        total = _sum(numbers)
        if isinstance(total, int) and not MIN_INTEGER <= total <= MAX_INTEGER:
            return Failed("integer overflow in SUM")
        return float(total) if type_ is Type.FLOAT and total is not None else total
    if function == "avg":
        total = _sum(numbers)
        return None if total is None else total / len(numbers)
    return _spread(function, numbers)


def _spread(function: str, numbers: Sequence[int | float]) -> float | None:
    """Sample variance or its root; NULL for fewer than two rows."""
    total = _sum(numbers)
    if len(numbers) < 2 or total is None or math.isinf(total):
        return None
    mean = total / len(numbers)
    variance = math.fsum((x - mean) ** 2 for x in numbers) / (len(numbers) - 1)
    return variance if function == "variance" else math.sqrt(variance)


def _sum(numbers: Sequence[int | float]) -> int | float | None:
    """Exact for integers, rounded once for floats; NULL where infinities cancel (NaN)."""
    if all(isinstance(x, int) for x in numbers):
        return sum(numbers)
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):
        total = float(sum(numbers))
        return None if math.isnan(total) else total
