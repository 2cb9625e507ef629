"""From the bound query to the logical plan: event instants made explicit, subqueries made joins.

IN and EXISTS as conjuncts become semijoins and antijoins; a subquery anywhere else becomes columns looked up by an
outer join on its correlation, from which the expression is computed with SQL's three-valued logic (docs/semantics R1,
R2).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from minidsms.cql import bound
from minidsms.cql.bound import Expr, Node
from minidsms.cql.errors import CqlError
from minidsms.cql.functions import can_fail
from minidsms.cql.rewriting import outer_columns
from minidsms.cql.scalar import substitute
from minidsms.cql.scalar_text import print_aggregate, print_expression
from minidsms.elements import Field, Schema, Type
from minidsms.plan import correlation
from minidsms.plan.correlation import Lifted, lift
from minidsms.plan.logical import (
    NO_COLUMNS,
    FirstArrival,
    KeepArrival,
    RelationEvents,
    RestoreArrival,
    SemiJoin,
    WindowEvents,
    column_refs,
    conjunction,
    conjuncts,
    filtered,
    projected,
    replace_children,
    rewrite,
    shift,
    taken_as_where,
    unfiltered,
    union_all,
    with_arguments,
)
from minidsms.plan.matching import ONE, column, matched_rows
from minidsms.plan.per_outer_row import for_each_outer_row
from minidsms.plan.reading import ordered_streams
from minidsms.plan.rules.fold_constants import fold

TRUE = bound.Literal(Type.BOOLEAN, True)
FALSE = bound.Literal(Type.BOOLEAN, False)
UNKNOWN = bound.Literal(Type.BOOLEAN, None)


def build(root: Node, text: str) -> Node:
    """The logical plan of a bound query. Raises CqlError, with its place, for a subquery that is not supported."""
    return Builder(root, text).build(root)


class Builder:
    """Holds what has been built, so that a node used twice stays one node."""

    def __init__(self, root: Node, text: str) -> None:
        self._root = root
        self._text = text
        self._built: dict[int, Node] = {}
        self._kept: list[Node] = []  # keeps the keys of _built alive: an id must not be reused
        self._ordered = ordered_streams(root)

    def build(self, node: Node) -> Node:
        key = id(node)
        if key not in self._built:
            self._built[key] = self._build(node)
            self._kept.append(node)
        return self._built[key]

    def _build(self, node: Node) -> Node:
        below, parts = taken_as_where(node)
        if parts:
            return self.where(self.build(below), parts)
        match node:
            case bound.Constant():
                return dataclasses.replace(node, sources=self._inputs())
            case bound.Project():
                source, exprs = self.looked_up(self.build(node.input), node.exprs)
                return bound.Project(node.schema, source, exprs)
            case bound.Aggregate():
                return self._aggregate(node)
            case bound.Join():
                return self._join(node)
            case bound.Lateral():
                return self.lateral(self.build(node.input), node)
            case bound.RelationToStream():
                events = () if node.op is not bound.StreamKind.RSTREAM or node.ticks else node.events
                instants = tuple(self._events(e) for e in events)
                source, is_ordered = self.build(node.input), id(node) in self._ordered
                return dataclasses.replace(node, input=source, events=(), instants=instants, ordered=is_ordered)
            case _:
                assert not node.expressions, f"no plan for {type(node).__name__}"
                return node.over([self.build(child) for child in node.inputs])

    def _events(self, node: Node) -> Node:
        """The instants at which a window or base relation changes, as written."""
        if isinstance(node, bound.Window):
            window = self.build(node)
            assert isinstance(window, bound.Window)
            return WindowEvents(NO_COLUMNS, window.input, node.spec)
        if isinstance(node, bound.Constant):
            return FirstArrival(NO_COLUMNS, (self.build(node),))
        assert isinstance(node, bound.BaseRelation)
        return RelationEvents(NO_COLUMNS, node.name)

    def _inputs(self) -> tuple[Node, ...]:
        """The streams and the changes of the relations that the query reads, its subqueries included."""
        return tuple(
            self.build(node) if isinstance(node, bound.BaseStream) else self._events(node)
            for node in bound.with_subqueries(self._root)
            if isinstance(node, bound.Declared)
        )

    def first_arrival(self, events: tuple[Node, ...]) -> Node:
        """The relation of no columns that gains its row at the first arrival in any of the events (R3)."""
        sources = []
        for node in events:
            if isinstance(node, bound.Window):
                window = self.build(node)
                assert isinstance(window, bound.Window)
                sources.append(window.input)
            elif isinstance(node, bound.Constant):
                sources.append(self.build(node))
            else:
                sources.append(self._events(node))
        return FirstArrival(NO_COLUMNS, tuple({id(s): s for s in sources}.values()))

    def _aggregate(self, node: bound.Aggregate) -> Node:
        args = node.expressions
        below = self._with_arrival(node.input, args) if node.is_by_arrival else None
        source, exprs = self.looked_up(self.build(node.input) if below is None else below, args)
        if below is not None:
            refs = column_refs(below.schema)
            names = [*(f"column{i + 1}" for i in range(len(exprs))), refs[-1].name]
            source = projected(source, [*exprs, refs[-1]], names)
            exprs = column_refs(source.schema)[:-1]
            source = RestoreArrival(Schema(source.schema.fields[:-1]), source)
        start = self.first_arrival(node.events) if node.is_global else None
        k = len(node.keys)
        keys, calls = tuple(exprs[:k]), with_arguments(node.aggregates, exprs[k:])
        return dataclasses.replace(node, input=source, keys=keys, aggregates=calls, events=(), start=start)

    def _with_arrival(self, node: Node, args: tuple[Expr, ...]) -> Node | None:
        """The filtered window under FIRST or LAST with its arrival numbers as a last column; None where they pass by
        themselves.
        """
        filters: list[list[Expr]] = []
        window, parts = unfiltered(node)
        while parts:
            filters.append(parts)
            window, parts = unfiltered(window)
        exprs = [*args, *itertools.chain(*filters)]
        if not any(bound.subqueries(e) for e in exprs) or not window.has_arrival_order:
            return None
        arrival = Field("_arrival", Type.INTEGER)
        source: Node = KeepArrival(window.schema + Schema((arrival,)), self.build(window))
        for parts in reversed(filters):
            source = self.where(source, parts)
        return source

    def _join(self, node: bound.Join) -> Node:
        left, right = self.build(node.left), self.build(node.right)
        if node.condition is None or not bound.subqueries(node.condition):
            return dataclasses.replace(node, left=left, right=right)
        if node.join is not bound.JoinKind.INNER:
            return self.joined(node.join, left, right, node.condition)
        crossed = dataclasses.replace(node, left=left, right=right, condition=None)
        return self.where(crossed, conjuncts(node.condition))

    def joined(self, join: bound.JoinKind, left: Node, right: Node, condition: Expr | None) -> Node:
        """The join; the subqueries of its condition are looked up by the rows of the side whose columns they name."""
        if condition is None or not bound.subqueries(condition):
            return bound.Join.of(left, right, condition, join)
        width = len(left.schema)
        sides = _Widened(left), _Widened(right)
        found: dict[Expr, tuple[bool, Expr]] = {}

        def look_up(e: Expr) -> Expr | None:
            if isinstance(e, bound.SUBQUERIES):
                named = bound.columns_used(e).union(*(outer_columns(query, 1) for query in bound.subqueries(e)))
                of_right = any(i >= width for i in named)
                if of_right and any(i < width for i in named):
                    reason = "a subquery in the ON of an outer join names columns of both sides"
                    hint = "join with the subquery's table first, or move the condition to WHERE"
                    raise CqlError(reason, self._text, e.span, "", hint)
                found[e] = of_right, self._over(sides[of_right], shift(e, -width) if of_right else e)
                return e
            return None

        def change(e: Expr) -> Expr | None:
            if e in found:
                of_right, value = found[e]
                return shift(value, wide) if of_right else value
            return shift(e, wide - width) if isinstance(e, bound.ColumnRef) and e.index >= width else None

        rewrite(condition, look_up)
        wide = len(sides[0].source.schema)
        joined = bound.Join.of(sides[0].source, sides[1].source, rewrite(condition, change), join)
        return projected(joined, [*column_refs(left.schema), *column_refs(right.schema, wide)])

    def lateral(self, source: Node, node: bound.Lateral) -> Node:
        """Rows of source joined with those that the node's query has for them."""
        right, pairs = self._independent(_Widened(source), node.rows.query)
        width, shown = len(source.schema), len(source.schema) + len(node.rows.query.schema)
        same = [_equal(outer, column(right, i, width)) for outer, i in pairs]
        joined = self.joined(node.join, source, right, conjunction([*same, *conjuncts(node.condition)]))
        return projected(joined, column_refs(joined.schema)[:shown])

    # ------------------------------------------------------------------------------------------------- WHERE

    def where(self, source: Node, parts: list[Expr]) -> Node:
        """Semijoins for the conjuncts that are plain IN or EXISTS, look-ups for other subqueries, then what remains."""
        schema = source.schema
        plain = [p for p in parts if not bound.subqueries(p)]
        if len(plain) == len(parts):
            return filtered(source, parts)  # as written: a user function may ask to stay where it is
        # Rows that a part which cannot fail turns away need no subquery; a part that can fail waits for it (R4).
        source = filtered(source, [p for p in plain if not can_fail(p)])
        waiting = [p for p in plain if can_fail(p)]
        rest: list[Expr] = []
        asking = sorted((p for p in parts if bound.subqueries(p)), key=_is_judged_early)
        for part in asking:
            # Of a semi-join the keys are computed for every row: where they can fail all else must have been asked.
            is_last = part is asking[-1] and not waiting and not rest
            joined = self._semi_joined(source, part) if is_last or not _is_judged_early(part) else None
            if joined is None:
                rest.append(part)
            else:
                source = joined
        if not rest:
            return filtered(source, waiting)
        wide, exprs = self.looked_up(source, tuple(rest))
        return projected(filtered(wide, [*waiting, *exprs]), column_refs(schema))

    def _semi_joined(self, source: Node, part: Expr) -> Node | None:
        """The source under a conjunct that is [NOT] EXISTS or [NOT] IN; None for any other."""
        negated = isinstance(part, bound.Call) and part.function == "not"
        inner = part.args[0] if isinstance(part, bound.Call) and negated else part
        if any(bound.subqueries(e) for e in bound.children(inner)):
            return None
        if not isinstance(inner, bound.Exists | bound.InQuery):
            return None
        lifted = lift(inner.query)
        if lifted is None:
            return None
        if isinstance(inner, bound.Exists):
            return self._matched(source, lifted, [], negated)
        if can_fail(inner) and (lifted.conditions or len(inner.args) > 1):
            return None  # comparisons of one row with another tell less than all that stands left of IN
        if negated:
            return self._not_in(source, lifted, inner.args)
        return self._matched(source, lifted, [(arg, i) for i, arg in enumerate(inner.args)], anti=False)

    def _matched(self, source: Node, lifted: Lifted, equal: list[tuple[Expr, int]], anti: bool) -> Node:
        """Source rows with (anti: without) a row of the lifted query that equals on its pairs and on `equal`."""
        right = self.build(lifted.node)
        pairs = [*lifted.pairs, *equal]
        if lifted.conditions:
            return self._matched_by_condition(source, right, pairs, lifted.conditions, anti)
        keys: list[tuple[Expr, Expr]] = [(outer, column(right, i)) for outer, i in pairs]
        return SemiJoin(source.schema, source, right, tuple(keys), anti)

    def _matched_by_condition(
        self, source: Node, right: Node, pairs: list[tuple[Expr, int]], conditions: list[Expr], anti: bool
    ) -> Node:
        """The same under conditions that are no equalities."""
        width = len(source.schema)
        parts: list[Expr] = [_equal(outer, column(right, i, width)) for outer, i in pairs]
        parts += [correlation.to_outer_row(shift(condition, width)) for condition in conditions]
        joined = bound.Join.of(source, right, conjunction(parts))
        return matched_rows(source, joined, 0, parts, anti)

    def _not_in(self, source: Node, lifted: Lifted, args: tuple[Expr, ...]) -> Node:
        """x NOT IN q is TRUE when nothing equals x, q holds no NULL, and x is no NULL unless q is empty (R2).

        Rows whose x is NULL are looked at apart: they are few, and ask only whether q has a row.
        """
        if lifted.conditions or len(args) > 1:
            possible = [_not(_is_false(_equal(arg, bound.OuterRef(arg.type, i)))) for i, arg in enumerate(args)]
            # Here the roles of `conditions` are turned: write the row's own columns as outer, the query's as inner.
            conditions = [_swap(p) for p in possible]
            right = self.build(lifted.node)
            return self._matched_by_condition(source, right, lifted.pairs, [*lifted.conditions, *conditions], anti=True)
        (arg,) = args
        unequal = self._matched(filtered(source, [_not(_is_null(arg))]), lifted, [(arg, 0)], anti=True)
        before_any = self._matched(filtered(source, [_is_null(arg)]), lifted, [], anti=True)
        left = union_all(unequal, before_any)
        right = self.build(lifted.node)
        nulls = filtered(right, [_is_null(column(right, 0))])
        pairs = tuple((outer, column(right, i)) for outer, i in lifted.pairs)
        return SemiJoin(source.schema, left, nulls, pairs, anti=True)

    # ---------------------------------------------------------------------------------------------- look-ups

    def looked_up(self, source: Node, exprs: tuple[Expr, ...]) -> tuple[Node, tuple[Expr, ...]]:
        """The source widened by what the subqueries in exprs need, and the expressions over it."""
        state = _Widened(source)
        return_exprs = tuple(self._over(state, e) for e in exprs)
        return state.source, return_exprs

    def _over(self, state: _Widened, expr: Expr) -> Expr:
        """The expression over what its subqueries are looked up in."""

        def change(e: Expr) -> Expr | None:
            if not isinstance(e, bound.SUBQUERIES):
                return None
            # Subqueries nested in its arguments are looked up first.
            return self._value(state, replace_children(e, lambda child: rewrite(child, change)))

        return rewrite(expr, change)

    def _look_up(self, state: _Widened, right: Node, pairs: list[tuple[Expr, int]]) -> list[bound.ColumnRef]:
        """Join each row with the one right row of equal pairs, or NULLs; the right columns' places."""
        source = state.source
        width = len(source.schema)
        condition = conjunction([_equal(state.tried(outer), column(right, i, width)) for outer, i in pairs])
        state.source = bound.Join.of(source, right, condition, bound.JoinKind.LEFT)
        return list(column_refs(right.schema, width))

    def _value(self, state: _Widened, e: Expr) -> Expr:
        """A subquery expression as an expression over looked-up columns. Rows are looked up whether or not it is
        computed for them; so what they are looked up by, and what stands left of IN, fails where it is (R4).
        """
        around, state.failing = state.failing, []
        value = self._found(state, replace_children(e, state.tried))
        computed, state.failing = [_is_null(key) for key in dict.fromkeys(state.failing)], around
        if not computed:
            return value
        of_all = functools.reduce(lambda a, b: _call("is distinct from", a, b), computed)
        return bound.Case(e.type, ((of_all, value),), value)

    def _found(self, state: _Widened, e: Expr) -> Expr:
        """The same, of operands that cannot fail."""
        if isinstance(e, bound.ScalarQuery):
            return self._scalar(state, e)
        assert isinstance(e, bound.Exists | bound.InQuery | bound.Quantified)
        if isinstance(e, bound.InQuery) and len(e.args) > 1:
            return self._row_membership(state, e)
        right, pairs = self._independent(state, e.query)
        keys: list[Expr] = [column(right, i) for _, i in pairs]
        outers = [outer for outer, _ in pairs]
        if isinstance(e, bound.Exists):
            (count,) = self._group(state, right, keys, outers, [_count()])
            return _not(_is_null(count))
        if isinstance(e, bound.InQuery):
            return self._membership(state, right, keys, outers, e)
        return self._quantified(state, right, keys, outers, e)

    def _independent(self, state: _Widened, query: Node) -> tuple[Node, list[tuple[Expr, int]]]:
        """The query without outer columns, and the pairs (outer expression, column) by which a row finds its part."""
        lifted = lift(query)
        if lifted is None or lifted.conditions:
            return for_each_outer_row(self, state.source, query, self._text)
        return self.build(lifted.node), lifted.pairs

    def _group(
        self, state: _Widened, right: Node, keys: list[Expr], outers: list[Expr], calls: list[bound.AggregateCall]
    ) -> list[bound.ColumnRef]:
        """Aggregates of the right per key, looked up; NULL where the group is empty.

        Every look-up joins on at least the constant 1, so that uncorrelated queries are no special case.
        """
        keys, outers = keys or [ONE], outers or [ONE]
        fields = [Field(f"key{i + 1}", k.type) for i, k in enumerate(keys)]
        fields += [Field(call.function, call.type) for call in calls]
        grouped = bound.Aggregate(Schema(tuple(fields)), right, tuple(keys), tuple(calls))
        refs = self._look_up(state, grouped, [(outer, i) for i, outer in enumerate(outers)])
        return refs[len(keys) :]

    def _membership(self, state: _Widened, right: Node, keys: list[Expr], outers: list[Expr], e: bound.InQuery) -> Expr:
        value, arg = column(right, 0), e.args[0]
        (match,) = self._group(state, right, [*keys, value], [*outers, arg], [_count()])
        total, known = self._group(state, right, keys, outers, [_count(), _count(value)])
        return bound.Case(
            Type.BOOLEAN,
            (
                (_not(_is_null(match)), TRUE),
                (_is_null(total), FALSE),
                (_is_null(arg), UNKNOWN),
                (_call("<", known, total), UNKNOWN),
            ),
            FALSE,
        )

    def _row_membership(self, state: _Widened, e: bound.InQuery) -> Expr:
        """(a, b) IN q: TRUE beside an equal row, else NULL beside one that may be equal, else FALSE (R2)."""
        equal = [_equal(_as_outer(arg), column(e.query, i)) for i, arg in enumerate(e.args)]
        possible = [_not(_is_false(part)) for part in equal]
        is_match = self._value(state, bound.Exists(Type.BOOLEAN, filtered(e.query, equal)))
        is_possible = self._value(state, bound.Exists(Type.BOOLEAN, filtered(e.query, possible)))
        return bound.Case(Type.BOOLEAN, ((is_match, TRUE), (is_possible, UNKNOWN)), FALSE)

    def _quantified(
        self, state: _Widened, right: Node, keys: list[Expr], outers: list[Expr], e: bound.Quantified
    ) -> Expr:
        value = column(right, 0)
        calls = [
            _count(),
            _count(value),
            bound.AggregateCall("min", value, value.type),
            bound.AggregateCall("max", value, value.type),
        ]
        total, known, least, greatest = self._group(state, right, keys, outers, calls)
        is_any = e.quantifier == "any"
        decided = _decision(e.op, is_any, e.arg, least, greatest)
        if is_any and e.op == "=":
            # Between least and greatest there may be a gap: equality with some row needs the row itself.
            (match,) = self._group(state, right, [*keys, value], [*outers, e.arg], [_count()])
            decided = _not(_is_null(match))
        if not is_any and e.op == "<>":
            (match,) = self._group(state, right, [*keys, value], [*outers, e.arg], [_count()])
            decided = _is_null(match)
        return bound.Case(
            Type.BOOLEAN,
            (
                (_is_null(total), FALSE if is_any else TRUE),
                (_is_null(e.arg), UNKNOWN),
                (_call("=", known, bound.Literal(Type.INTEGER, 0)), UNKNOWN),
                (decided if is_any else _not(decided), TRUE if is_any else FALSE),
                (_call("<", known, total), UNKNOWN),
            ),
            FALSE if is_any else TRUE,
        )

    def _scalar(self, state: _Widened, e: bound.ScalarQuery) -> Expr:
        aggregate = self._global_aggregate(e.query)
        if not correlation.is_correlated(e.query):
            right = self.build(e.query)
            value = column(right, 0)
            if aggregate is not None:  # at most one row: no need to count
                (_, ref) = self._look_up(state, projected(right, [ONE, value], ["key1", "value"]), [(ONE, 0)])
                return ref
            calls = [_count(), bound.AggregateCall("min", value, value.type)]
            count, least = self._group(state, right, [], [], calls)
            return _single(e, count, least)
        if aggregate is not None and not any(map(correlation.looks_out, aggregate.expressions)):
            below = lift(aggregate.input)
            if below is not None and not below.conditions:
                return self._correlated_aggregate(state, e, aggregate, below)
        right, pairs = self._independent(state, e.query)
        value = column(right, 0)
        count, least = self._group(
            state,
            right,
            [column(right, i) for _, i in pairs],
            [outer for outer, _ in pairs],
            [_count(), bound.AggregateCall("min", value, value.type)],
        )
        return _single(e, count, least)

    def _correlated_aggregate(
        self, state: _Widened, e: bound.ScalarQuery, aggregate: bound.Aggregate, lifted: Lifted
    ) -> Expr:
        """(SELECT f(aggregates) FROM .. WHERE inner = outer): groups per outer value; without a group COUNT is 0.

        As a query without GROUP BY it has its row only from the first arrival in its windows on (R3), which need not be
        asked where no group is NULL, too, and none is there before.
        lifted: the aggregate's input.
        """
        node: Node = e.query
        assert isinstance(node, bound.Project)
        expr, having = node.exprs[0], unfiltered(node.input)[1]

        def over_groups(expr: Expr, results: Sequence[Expr]) -> Expr:
            values = aggregate.or_of_no_rows(results)
            found = rewrite(expr, lambda x: values[x.index] if isinstance(x, bound.ColumnRef) else None)
            return correlation.to_outer_row(found)

        exists: list[Expr] = []
        of_no_group = fold(over_groups(expr, [bound.Literal(call.type, None) for call in aggregate.aggregates]))
        is_null = isinstance(of_no_group, bound.Literal) and of_no_group.value is None
        if having or not is_null or not _awaits(aggregate.input, aggregate.events):
            start = projected(self.first_arrival(aggregate.events), [ONE, ONE], ["key1", "started"])
            (_, started) = self._look_up(state, start, [(ONE, 0)])
            exists = [_not(_is_null(started))]
        right, args = self.looked_up(self.build(lifted.node), aggregate.expressions)
        results = self._group(
            state,
            right,
            [column(right, i) for _, i in lifted.pairs],
            [outer for outer, _ in lifted.pairs],
            list(with_arguments(aggregate.aggregates, args)),
        )
        value = over_groups(expr, results)
        condition = conjunction([*exists, *(over_groups(part, results) for part in having)])
        return value if condition is None else bound.Case(e.type, ((condition, value),), bound.Literal(e.type, None))

    @staticmethod
    def _global_aggregate(node: Node) -> bound.Aggregate | None:
        """The aggregate of a block `SELECT expression over aggregates FROM ..` without GROUP BY, else None."""
        if not isinstance(node, bound.Project):
            return None
        below, parts = unfiltered(node.input)
        if any(map(bound.subqueries, (*parts, *node.exprs))):
            return None
        return below if isinstance(below, bound.Aggregate) and below.is_global else None


def _is_judged_early(part: Expr) -> bool:
    """A semi-join for the part would compute something that can fail for rows that other parts turn away."""
    lifted = [found for found in map(lift, bound.subqueries(part)) if found is not None]
    return can_fail(part) or any(can_fail(outer) for each in lifted for outer, _ in each.pairs)


def _awaits(node: Node, events: Sequence[Node]) -> bool:
    """Whether the relation surely has no row before something has come of the events: no relation or constant beside
    windows gives one.
    """
    if any(node is event for event in events):
        return True
    await_ = (_awaits(below, events) for below in node.inputs)
    match node:
        case bound.Join(join=bound.JoinKind.INNER):
            return any(await_)
        case bound.Join(join=bound.JoinKind.LEFT):
            return next(await_)
        case _:
            return bool(node.inputs) and all(await_)


@dataclass
class _Widened:
    """source: the rows, widened by what has been looked up.  failing: what can fail of that by which they were."""

    source: Node
    failing: list[Expr] = field(default_factory=list)

    def tried(self, key: Expr) -> Expr:
        """The key, NULL where it fails."""
        if not can_fail(key):
            return key
        self.failing.append(key)
        return bound.Call(key.type, "try", (key,))


# ------------------------------------------------------------------------------------------------ small expressions


def _call(function: str, *args: Expr) -> Expr:
    return bound.Call(Type.BOOLEAN, function, args)


def _equal(a: Expr, b: Expr) -> Expr:
    return _call("=", a, b)


def _not(a: Expr) -> Expr:
    return _call("not", a)


def _is_null(a: Expr) -> Expr:
    return _call("is null", a)


def _is_false(a: Expr) -> Expr:
    return bound.Case(Type.BOOLEAN, ((_is_null(a), FALSE),), _not(a))


def _count(arg: Expr | None = None) -> bound.AggregateCall:
    return bound.AggregateCall("count", arg, Type.INTEGER)


def _single(e: bound.ScalarQuery, count: Expr, value: bound.ColumnRef) -> Expr:
    """The value of a subquery of `count` rows, by the words of which a failure and EXPLAIN speak."""
    return bound.Call(e.type, "single", (count, dataclasses.replace(value, name=_words(e.query))), span=e.span)


def _words(query: Node) -> str:
    """`SELECT v + 1 FROM R`: what a subquery shows, and of what."""
    while isinstance(query, bound.Distinct):
        query = query.input
    if isinstance(query, bound.SetOperation):
        return f"{_words(query.left)} {query.op.value}{' ALL' if query.all else ''} {_words(query.right)}"
    shown: Sequence[str] = query.schema.names
    groups = ""
    if isinstance(query, bound.Project):
        exprs: Sequence[Expr] = query.exprs
        below = bound.beneath(query.input, lambda project: False)
        if isinstance(below, bound.Aggregate):
            calls = [bound.ColumnRef(call.type, 0, print_aggregate(call)) for call in below.aggregates]
            exprs = [substitute(e, [*below.keys, *calls]) for e in exprs]
            groups = f" GROUP BY {', '.join(map(print_expression, below.keys))}" if below.keys else ""
        shown = [print_expression(e) for e in exprs]
    return f"SELECT {', '.join(shown)} FROM {', '.join(bound.names_read(query)) or '(VALUES ..)'}{groups}"


def _swap(e: Expr) -> Expr:
    """Exchange the roles of ColumnRef and OuterRef."""

    def change(x: Expr) -> Expr | None:
        if isinstance(x, bound.OuterRef):
            return bound.ColumnRef(x.type, x.index, x.name)
        if isinstance(x, bound.ColumnRef):
            return bound.OuterRef(x.type, x.index, x.name)
        return None

    return rewrite(e, change)


def _as_outer(e: Expr) -> Expr:
    """An expression over a row as a query that looks out at this row says it."""
    return rewrite(e, lambda x: bound.OuterRef(x.type, x.index, x.name) if isinstance(x, bound.ColumnRef) else None)


def _decision(op: str, is_any: bool, x: Expr, least: Expr, greatest: Expr) -> Expr:
    """The comparison that decides x op ANY (all) of the non-NULL values between least and greatest."""
    if op in ("<", "<="):
        return _call(op, x, greatest if is_any else least)
    if op in (">", ">="):
        return _call(op, x, least if is_any else greatest)
    both = (_call(op, x, least), _call(op, x, greatest))
    return bound.Call(Type.BOOLEAN, "or" if op == "<>" else "and", both)
