"""The answer to a query, by definition.

A window's contents at an instant follow from the arrivals so far (docs/semantics W1 to W11), the relation at an instant
is SQL over bags of rows (R1 to R5), a stream is the difference of two relations (S1) or one of them (S2). Nothing is
incremental and nothing is fast: this is what the engine is compared with. It shares the bound tree with it, no more.

Invariant: rows of windows stand in arrival order, and filters keep it; FIRST and LAST rest on that.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from minidsms.cql import bound
from minidsms.cql.bound import JoinKind, SetKind, StreamKind
from minidsms.cql.functions import can_fail
from minidsms.cql.scalar import conjuncts
from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.elements import MIN_INSTANT
from minidsms.testing.definition_aggregates import OF_ROWS, mean, stddev, total, variance
from minidsms.testing.definition_expressions import (
    Failed,
    Result,
    Scope,
    conjunction,
    evaluate,
    judged,
    known,
    normal,
)
from minidsms.testing.definition_over import in_order, over
from minidsms.testing.history import Change, Failure, History, Row, Value, net_changes, value_order


def answer(node: bound.Node, history: History, until: int) -> list[Change]:
    """The netted changes at every instant <= until: elements of a stream (sign +1), or changes of a relation.

    Raises Failure at the first instant the query cannot be evaluated at.
    """
    return answer_and_end(node, history, until)[0]


def answer_and_end(node: bound.Node, history: History, until: int) -> tuple[list[Change], Definition]:
    """`answer`, and everything as it is at the last instant at which something may change."""
    world = Definition(node, history)
    changes: list[Change] = []
    before: Sequence[Row] = ()
    for tau in instants(node, history, until):
        try:
            world.come(tau)
            for query in world.independent:  # judged at every instant, whether or not a row looks at them
                world.rows(query)
            if node.kind == "stream":
                now = [(ts, +1, row) for ts, row in world.arrivals(node) if ts == tau]
            else:
                rows = world.rows(node)
                now, before = net_changes(tau, before, rows), rows
        except Failed as failed:
            raise Failure(tau, str(failed), changes) from None
        changes += sorted(now, key=lambda change: (change[1], value_order(change[2])))
    return changes, world


def relation_at(node: bound.Node, history: History, tau: int) -> list[Row]:
    """The rows of a relation at the instant, duplicates included, in no particular order. Raises Failure."""
    world = Definition(node, history)
    try:
        for instant in sorted({*instants(node, history, tau), tau}):
            world.come(instant)
        return list(world.rows(node))
    except Failed as failed:
        raise Failure(world.tau, str(failed)) from None


def instants(node: bound.Node, history: History, until: int) -> list[int]:
    """Every instant <= until at which the node may change or speak, ascending; some at which it does not."""
    found: dict[int, list[int]] = {}
    nodes = _bottom_up(node)
    inputs = {id(n): _told(n, history) for n in nodes if isinstance(n, bound.Declared)}
    first = min((ts for told in inputs.values() for ts in told), default=None)
    for n in nodes:
        below = sorted({ts for child in _below(n) for ts in found[id(child)]})
        match n:
            case bound.Declared():
                own: Iterable[int] = inputs[id(n)]
            case bound.Constant() if first is not None:
                own = [first]
            case bound.Window(spec=WindowSpec(step=int(step))) if below:
                own = range(-(-below[0] // step) * step, until + 1, step)
            case bound.Window(spec=spec):
                own = [ts + (spec.range_ or 1) for ts in below]
            case bound.RelationToStream(ticks=True) if below:
                own = range(below[0], until + 1)
            case _:
                own = ()
        found[id(n)] = sorted({ts for ts in (*below, *own) if ts <= until})
    return found[id(node)]


def _told(node: bound.Declared, history: History) -> list[int]:
    """The instants of a stream's elements or of a relation's changes."""
    if isinstance(node, bound.BaseStream):
        return [ts for ts, _ in history.streams.get(node.name.lower(), [])]
    return [ts for ts, _, _ in history.relations.get(node.name.lower(), [])]


class Definition:
    """The streams and relations of one query over one history, at the instant `tau`: `come` gives them the next.

    derived: the derived streams, each before those that read it.  independent: the subqueries, and parts of others,
    that depend on no row.
    """

    def __init__(self, node: bound.Node, history: History) -> None:
        nodes = _bottom_up(node)
        queries = [q for n in nodes for expr in n.expressions for q in bound.subqueries(expr)]
        self.history = history
        self.tau = MIN_INSTANT
        self.derived = [n for n in nodes if isinstance(n, bound.RelationToStream)]
        self.independent = [part for query in queries for part in _independent(query)]
        self._inputs = [n for n in nodes if isinstance(n, bound.Declared)]
        self._fixed = {n for n in nodes if not _looks_out(n)}
        self._rows: dict[bound.Node, Sequence[Row]] = {}
        self._partitions: dict[bound.Node, dict[str, list[Row]]] = {}
        self._elements: dict[bound.Node, list[tuple[int, Row]]] = {stream: [] for stream in self.derived}
        self._before: dict[bound.Node, Sequence[Row]] = {stream: () for stream in self.derived}
        self._events = {stream: [self._event(event) for event in stream.events] for stream in self.derived}

    def come(self, tau: int) -> None:
        """The instant comes: derived streams speak."""
        self.tau, self._rows = tau, {}
        for stream in self.derived:
            self._speak(stream)

    def arrivals(self, stream: bound.Node) -> Sequence[tuple[int, Row]]:
        """(ts, row) of all elements so far, in order."""
        if isinstance(stream, bound.Stamped):
            return [(ts, (*row, ts)) for ts, row in self.arrivals(stream.input)]
        if not isinstance(stream, bound.BaseStream):
            return self._elements[stream]
        elements = self.history.streams.get(stream.name.lower(), [])
        return elements[: bisect.bisect_right(elements, self.tau, key=lambda element: element[0])]

    def _speak(self, node: bound.RelationToStream) -> None:
        """The elements of a derived stream at this instant: S1, S2, ordered as T3 says."""
        before, rows = self._before[node], self.rows(node.input)
        events = [self._event(event) for event in node.events]
        spoken: list[Row] = []
        if node.op is StreamKind.RSTREAM:
            spoken = list(rows) if node.ticks or events != self._events[node] else []
        else:
            more, less = (rows, before) if node.op is StreamKind.ISTREAM else (before, rows)
            entered = Counter(more) - Counter(less)
            for row in reversed(more):  # from the newest back: of equal rows the last to arrive are taken
                if entered[row] > 0:
                    entered[row] -= 1
                    spoken.insert(0, row)
        if not node.keeps_order:
            spoken.sort(key=value_order)
        self._elements[node] += [(self.tau, row) for row in spoken]
        self._before[node], self._events[node] = rows, events

    def _event(self, event: bound.Node) -> object:
        """What differs when S2 counts a change: other elements in the window, or one more change of the relation.

        A window that moves in steps counts as changing at each multiple from its first arrival on.
        """
        if isinstance(event, bound.Constant):
            return self._has_told(event)
        if not isinstance(event, bound.Window):
            return len(self._changes(event))
        elements = self.arrivals(event.input)
        step = event.spec.step
        multiples = self.tau // step - (elements[0][0] - 1) // step if step and elements else 0
        return multiples, tuple(self.held(event))

    def held(self, window: bound.Window) -> Sequence[int]:
        """Which arrivals (0, 1, ..) the window holds now, in order: W1 to W9, W11."""
        spec, elements, tau = window.spec, self.arrivals(window.input), self.tau
        n, size = len(elements), spec.rows or 0
        match spec.kind:
            case WindowKind.UNBOUNDED:
                return range(n)
            case WindowKind.RANGE:
                b = tau // spec.slide * spec.slide if spec.slide else tau  # (b - T, b], or b alone when T is 0
                return [i for i in range(n) if b - (spec.range_ or 1) < elements[i][0] <= b]
            case WindowKind.HOP:
                assert spec.range_ is not None and spec.slide is not None
                b = tau // spec.slide * spec.slide
                return [i for i in range(n) if b - spec.range_ <= elements[i][0] < b]
            case WindowKind.ROWS:
                last = n // spec.slide * spec.slide if spec.slide else n
                return range(max(0, last - size), last)
            case WindowKind.SESSION:
                return sorted(i for session in self._sessions(window) for i in session)
            case WindowKind.PARTITION:
                groups: dict[Row, list[int]] = {}
                for i, (_, row) in enumerate(elements):
                    groups.setdefault(tuple(row[k] for k in spec.keys), []).append(i)
                newest = sorted(i for group in groups.values() for i in group[-size:])
                return [i for i in newest if spec.range_ is None or tau - (spec.range_ or 1) < elements[i][0]]

    def _sessions(self, window: bound.Window) -> list[list[int]]:
        """The arrivals of the present session of each key that has one: W11."""
        spec, elements = window.spec, self.arrivals(window.input)
        assert spec.range_ is not None
        sessions: dict[Row, list[int]] = {}
        for i, (ts, row) in enumerate(elements):
            session = sessions.setdefault(tuple(row[k] for k in spec.keys), [])
            if session and ts - elements[session[-1]][0] >= spec.range_:
                session.clear()
            session.append(i)
        return [session for session in sessions.values() if self.tau < elements[session[-1]][0] + spec.range_]

    def rows(self, node: bound.Node, outer: tuple[Row, ...] = ()) -> Sequence[Row]:
        """The relation now; `outer` are the rows of the enclosing queries, nearest first. Raises Failed."""
        if node not in self._fixed:
            return self._evaluate(node, outer)
        if node not in self._rows:
            self._rows[node] = self._evaluate(node, outer)
        return self._rows[node]

    def _evaluate(self, node: bound.Node, outer: tuple[Row, ...]) -> Sequence[Row]:
        match node:
            case bound.Window(spec=spec) if spec.kind is WindowKind.SESSION:
                elements = self.arrivals(node.input)
                first = {i: session[0] for session in self._sessions(node) for i in session}
                return [(*elements[i][1], elements[first[i]][0], first[i] + 1) for i in sorted(first)]
            case bound.Window():
                elements = self.arrivals(node.input)
                return [elements[i][1] for i in self.held(node)]
            case bound.Bounds(input=below, spec=spec):
                assert spec.range_ is not None and spec.step is not None
                end = self.tau // spec.step * spec.step
                return [(*row, end - spec.range_, end) for row in self.rows(below, outer)]
            case bound.Unnest(input=below):
                rows: Sequence[tuple[Any, ...]] = self.rows(below, outer)
                return [(*row[:-1], element) for row in rows for element in row[-1] or ()]
            case bound.Constant(rows=written):
                has_begun = not self._inputs or any(map(self._has_told, self._inputs))
                return [tuple(evaluate(e, (), self._scope(())) for e in row) for row in written] if has_begun else []
            case bound.BaseRelation():
                present: list[Row] = []
                for _, sign, row in self._changes(node):
                    present.append(row) if sign > 0 else present.remove(row)
                return present
            case bound.Filter() | bound.Join(join=JoinKind.INNER):
                return [row for row, verdict in self._candidates(node, outer) if known(verdict) is True]
            case bound.Join():
                return self._outer_join(node, outer)
            case bound.Lateral(input=below):
                return [both for row in self.rows(below, outer) for both in self._beside(node, row, outer)]
            case bound.Project(input=below, exprs=exprs):
                scope = self._scope(outer)
                return [tuple(evaluate(e, row, scope) for e in exprs) for row in self.rows(below, outer)]
            case bound.Aggregate():
                return self._aggregate(node, outer)
            case bound.Distinct(input=below):
                return list(dict.fromkeys(self.rows(below, outer)))
            case bound.Top(input=below, limit=limit, offset=offset):
                ordered = in_order(self.rows(below, outer), node.order)
                return ordered[offset : offset + limit]
            case bound.Over(input=below, call=call):
                told, user = self._partitions.setdefault(node, {}), self.history.aggregates
                return [(*row, normal(result)) for *row, result in over(self.rows(below, outer), call, told, user)]
            case bound.SetOperation(op=op, all=all_, left=left, right=right):
                a, b = Counter(self.rows(left, outer)), Counter(self.rows(right, outer))
                if not all_:
                    a, b = Counter(set(a)), Counter(set(b))
                union = a + b if all_ else a | b
                return list({SetKind.UNION: union, SetKind.EXCEPT: a - b, SetKind.INTERSECT: a & b}[op].elements())
        raise TypeError(f"no relation: {node!r}")

    def _candidates(
        self, node: bound.Node, outer: tuple[Row, ...], conditions: Sequence[bound.Expr] = ()
    ) -> list[tuple[Row, Result]]:
        """The rows of filters over inner joins whose conditions are TRUE, or failed and not FALSE or NULL elsewhere.

        WHERE and the ONs of inner joins are one conjunction: an error in one counts only if all others are TRUE (R4).
        So a condition is judged as soon as its columns are there: a row that it rules out is in no row of the join.
        conditions: those of nodes above.
        """
        match node:
            case bound.Filter(input=below, condition=condition):
                return self._candidates(below, outer, (*conjuncts(condition), *conditions))
            case bound.Join(join=JoinKind.INNER, left=left, right=right, condition=condition):
                conditions = (*conjuncts(condition), *conditions)
                early = [c for c in conditions if _reads_below(c, len(left.schema))]
                conditions = [c for c in conditions if c not in early]
                lefts, rights = self._candidates(left, outer, early), self._candidates(right, outer)
                rows: Iterable[tuple[Row, tuple[Result, ...]]] = ((a + b, (u, v)) for a, u in lefts for b, v in rights)
            case _:
                rows = ((row, ()) for row in self.rows(node, outer))
        scope = self._scope(outer)
        verdicts = ((row, conjunction(chain(told, (judged(c, row, scope) for c in conditions)))) for row, told in rows)
        return [(row, verdict) for row, verdict in verdicts if verdict is not None and verdict is not False]

    def _outer_join(self, node: bound.Join, outer: tuple[Row, ...]) -> list[Row]:
        lefts, rights, scope = self.rows(node.left, outer), self.rows(node.right, outer), self._scope(outer)
        pairs = [(i, j) for i in range(len(lefts)) for j in range(len(rights))]
        if node.condition is not None:
            pairs = [(i, j) for i, j in pairs if evaluate(node.condition, lefts[i] + rights[j], scope) is True]
        result = [lefts[i] + rights[j] for i, j in pairs]
        if node.join in (JoinKind.LEFT, JoinKind.FULL):
            matched = {i for i, _ in pairs}
            result += [a + (None,) * len(node.right.schema) for i, a in enumerate(lefts) if i not in matched]
        if node.join in (JoinKind.RIGHT, JoinKind.FULL):
            matched = {j for _, j in pairs}
            result += [(None,) * len(node.left.schema) + b for j, b in enumerate(rights) if j not in matched]
        return result

    def _beside(self, node: bound.Lateral, row: Row, outer: tuple[Row, ...]) -> list[Row]:
        """The row with each that the query has for it, or with NULLs."""
        found, scope = [row + other for other in self.rows(node.rows.query, (row, *outer))], self._scope(outer)
        if node.condition is not None:
            found = [both for both in found if evaluate(node.condition, both, scope) is True]
        if found or node.join is JoinKind.INNER:
            return found
        return [row + (None,) * len(node.rows.query.schema)]

    def _aggregate(self, node: bound.Aggregate, outer: tuple[Row, ...]) -> list[Row]:
        groups: dict[Row, list[Row]] = {}
        scope, present = self._scope(outer), self.rows(node.input, outer)
        if node.is_global:
            # R3: no row before the first arrival in a window, even if a base relation has rows to count.
            if not any(map(self._has_told, node.events)):
                for call in node.aggregates:
                    self._given(call, present, scope)  # they may fail, though nothing is made of them
                return []
            groups[()] = []
        for row in present:
            groups.setdefault(tuple(evaluate(k, row, scope) for k in node.keys), []).append(row)
        calls = node.aggregates
        return [key + tuple(self._aggregated(c, rows, scope) for c in calls) for key, rows in groups.items()]

    def _given(self, call: bound.AggregateCall, members: Sequence[Row], scope: Scope) -> list[Row]:
        """The values of its arguments in each row."""
        args = call.args if call.has_objects else () if call.arg is None else (call.arg,)
        return [tuple(evaluate(a, row, scope) for a in args) for row in members]

    def _aggregated(self, call: bound.AggregateCall, members: list[Row], scope: Scope) -> Value:
        given = self._given(call, members, scope)
        if call.settings is not None:
            if call.settings.passes_nulls:
                given = [values for values in given if None not in values[: call.settings.values]]
            given = list(dict.fromkeys(given)) if call.distinct else given
            return normal(OF_ROWS[call.function](given, call.settings)) if given else None
        if call.function in ("first", "last"):
            given = [values for values in given if values != (None,)] if call.ignores_nulls else given
            return given[0 if call.function == "first" else -1][0] if given else None
        given = [values for values in given if None not in values]
        if call.user:
            state = self.history.aggregates[call.function.lower()].factory()
            for values in given:
                state.add(*values)
            return normal(state.result()) if given else None
        if call.function == "count":
            return len(set(given) if call.distinct else given)
        numbers = [value for (value,) in (dict.fromkeys(given) if call.distinct else given)]
        return normal(AGGREGATES[call.function](numbers)) if numbers else None

    def _has_told(self, event: bound.Node) -> bool:
        """Something has come of a stream, window, base or constant relation."""
        if isinstance(event, bound.Constant):
            return bool(self.rows(event))
        stream = event.input if isinstance(event, bound.Window) else event
        return bool(self._changes(stream) if isinstance(stream, bound.BaseRelation) else self.arrivals(stream))

    def _changes(self, relation: bound.Node) -> list[Change]:
        """The changes of a base relation so far."""
        assert isinstance(relation, bound.BaseRelation)
        return [c for c in self.history.relations.get(relation.name.lower(), []) if c[0] <= self.tau]

    def _scope(self, outer: tuple[Row, ...]) -> Scope:
        return Scope(self.rows, outer, self.history.functions, self.history.tick_ns)


def _below(node: bound.Node) -> Iterator[bound.Node]:
    """The nodes read: inputs, then the subqueries of expressions."""
    yield from node.inputs
    for expr in node.expressions:
        yield from bound.subqueries(expr)


def _bottom_up(node: bound.Node) -> list[bound.Node]:
    """The node and all that it reads, each once and after what it reads itself."""
    found: dict[bound.Node, None] = {}
    for below in _below(node):
        found.update(dict.fromkeys(_bottom_up(below)))
    return [*found, node]


def _reads_below(condition: bound.Expr, width: int) -> bool:
    """Whether the columns up to `width` are all that the condition reads of a row."""
    return not bound.subqueries(condition) and all(column < width for column in bound.columns_used(condition))


def _independent(node: bound.Node, is_in_where: bool = False) -> Iterator[bound.Node]:
    """The subquery, or the largest parts of it, that depend on no row outside it. is_in_where: the node's conditions
    belong to a conjunction that does depend on one, and are judged with it.
    """
    is_where = isinstance(node, bound.Filter) or (isinstance(node, bound.Join) and node.join is JoinKind.INNER)
    if not _looks_out(node) and not (is_where and is_in_where):
        yield node
        return
    for below in node.inputs:
        yield from _independent(below, is_where)


def leaves_failures_open(node: bound.Node) -> bool:
    """Whether, in a subquery that depends on a row outside it, something can fail beside what `_independent` gives: for
    which rows it is judged is left open (R4), and the query may fail earlier than here.
    """
    below = [query for n in _bottom_up(node) for expr in n.expressions for query in bound.subqueries(expr)]
    while below:
        found = below.pop()
        if not _looks_out(found):
            continue
        calls = found.aggregates if isinstance(found, bound.Aggregate) else ()
        fails = isinstance(found, bound.Over) and found.call.can_fail
        if fails or any(map(can_fail, found.expressions)) or any(c.function not in _NEVER_FAILING for c in calls):
            return True
        below += found.inputs
    return False


_NEVER_FAILING = frozenset(("count", "min", "max"))


def _looks_out(node: bound.Node, depth: int = 0) -> bool:
    """Whether the relation depends on a row of a query outside it; depth: queries between here and that outside."""
    for expr in node.expressions:
        if any(isinstance(e, bound.OuterRef) and e.level > depth for e in bound.walk(expr)):
            return True
        if any(_looks_out(query, depth + 1) for query in bound.subqueries(expr)):
            return True
    return any(_looks_out(below, depth) for below in node.inputs)


AGGREGATES: dict[str, Callable[[Sequence[Any]], Any]] = {
    "sum": total,
    "avg": mean,
    "min": min,
    "max": max,
    "variance": variance,
    "stddev": stddev,
}
