"""One SELECT block, from FROM to DISTINCT (docs/semantics R1, R3).

The shape: [Top] <- [Distinct] <- Project <- [Filter qualify <- Project] <- [Over .. <- Project] <- [Filter having]
<- [Aggregate] <- [Filter where] <- the FROM tree.

Invariant: a block without GROUP BY, HAVING and aggregates has no Aggregate node; every other block has exactly one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from minidsms.counted import counted
from minidsms.cql import bound, syntax
from minidsms.cql.aggregates import Groups, has_aggregates
from minidsms.cql.columns import name_of, with_columns
from minidsms.cql.defaults import event_windows
from minidsms.cql.errors import CqlError
from minidsms.cql.expression_binder import Context, ExpressionBinder
from minidsms.cql.grouping_sets import key_meant
from minidsms.cql.over import Overs
from minidsms.cql.scope import Column, Scope, did_you_mean, listing
from minidsms.cql.session import Piece, Session, cut, parts
from minidsms.cql.sources import Source, SourceBinder, equate_conjuncts
from minidsms.elements import Field, Schema

_WHERE_OVER_STANDS = ("the select list", "ORDER BY", "QUALIFY")
_WHERE_ALIASES_STAND = ("HAVING", "QUALIFY")

ELEMENTS = ("unnest", "explode")
_UNNESTED = "unnested"
"""What the elements of a list in the select list are called in FROM."""


def _without_elements(item: syntax.SelectItem) -> syntax.SelectItem:
    """`*` is what it is without the elements."""
    if not isinstance(item.expr, syntax.Star) or item.expr.qualifier is not None:
        return item
    left_out = (*item.expr.left_out, syntax.Name(_UNNESTED, span=item.span))
    return replace(item, expr=replace(item.expr, left_out=left_out))


def _given_once(items: Sequence[syntax.SelectItem]) -> dict[str, syntax.Expr]:
    """The names that a select list gives once, in lower case, and what they stand for."""
    given = [(item.alias.lower(), item.expr) for item in items if item.alias is not None]
    times = Counter(alias for alias, _ in given)
    return {alias: expr for alias, expr in given if times[alias] == 1}


@dataclass(frozen=True)
class Output:
    """One column of the select list. has_alias: AS has given the name."""

    name: str
    expr: bound.Expr
    has_alias: bool = False


class BlockBinder:
    """Binds one block. outer: the enclosing query, whose row may be used where correlated is True."""

    def __init__(
        self,
        session: Session,
        outer: Context | None,
        correlated: bool,
        bind_query: Callable[[syntax.Query, Context | None, bool], Piece],
        bind_relation: Callable[[syntax.Query, Context], Piece],
    ) -> None:
        self.session = session
        self.outer = outer
        self.correlated = correlated
        self.bind_query = bind_query
        self.bind_relation = bind_relation
        self.aliases: dict[str, syntax.Expr] = {}
        self.given_once: dict[str, syntax.Expr] = {}
        self.overs = Overs(session)

    def bind(self, select: syntax.Select, limited: syntax.Limited | None = None) -> Piece:
        """The block's relation. limited: where its ORDER BY and LIMIT stand."""
        self._check_sources(select)
        written, select = select, self._with_elements(select)
        hidden = "" if select is written else _UNNESTED
        self.aliases = {item.alias.lower(): item.expr for item in select.items if item.alias is not None}
        self.given_once = _given_once(select.items)
        source, source_trees = self._sources(select, limited)
        scope, from_node = source.scope, source.node
        select = with_columns(self.session, select, scope, hidden)
        if any(isinstance(key, syntax.EveryKey) for key in select.group_by):
            select = self._by_every_key(select, scope)
        node = from_node
        if select.where is not None:
            equate_conjuncts(scope, select.where)
            self._warn_of_the_clock(select)
            binder = self._binder(scope, "WHERE", named=_given_once(select.written or select.items))
            binder.context = replace(binder.context, is_of_set=bool(select.written))
            condition = binder.condition(select.where)
            node = bound.filtered(node, [condition])
        groups = self._groups(select, scope)
        outputs, items = self._outputs(select, scope, groups)
        self.session.check_width(len(outputs), select.span)
        having = None
        if select.having is not None:
            having = self._binder(scope, "HAVING", groups=groups).condition(select.having)
        shown = len(outputs)
        keys = () if limited is None else self._sort_keys(limited, select, scope, groups, outputs)
        qualified = len(outputs)
        if select.qualify is not None:
            condition = self._binder(scope, "QUALIFY", groups=groups).condition(select.qualify)
            outputs.append(Output("qualify", condition))
        if groups is not None:
            self._check_arrival(groups, from_node)
            node = _aggregate(node, groups)
        if having is not None:
            node = bound.filtered(node, [having])
        schema = Schema(tuple(Field(o.name, o.expr.type) for o in outputs))
        exprs = [o.expr for o in outputs]
        if self.overs.calls:
            node, exprs = self.overs.over(node, exprs)
        node = bound.Project(schema, node, tuple(exprs))
        if select.qualify is not None:
            refs = bound.column_refs(schema)
            node = bound.filtered(node, [refs[qualified]])
            schema = Schema(schema.fields[:qualified])
            node = bound.projected(node, refs[:qualified], schema.names)
        if select.distinct:
            node = bound.Distinct(schema, node)
        if limited is not None:
            node = bound.Top(schema, node, keys, self._limit(limited), limited.offset)
            node = bound.projected(node, bound.column_refs(schema)[:shown], schema.names)
        tree = replace(self._expanded(select), items=tuple(items), sources=source_trees)
        if limited is None:
            return Piece(node, tree)
        order = tuple(replace(key, expr=self.session.expand(key.expr)) for key in limited.order)
        return Piece(node, replace(limited, query=tree, order=order))

    def _warn_of_the_clock(self, select: syntax.Select) -> None:
        """Warn where the instant of a stream's row is compared with CURRENT_TIMESTAMP, elsewhere that of the clock."""
        source = select.sources[0]
        is_table = len(select.sources) == 1 and isinstance(source, syntax.TableRef)
        name = source.name.lower() if is_table and isinstance(source, syntax.TableRef) else ""
        declared = None if name in self.session.common else self.session.catalog.streams.get(name)
        if declared is None or select.where is None:
            return
        names = [name.lower() for name in declared.schema.names]
        instants = {"ts"} if "ts" not in names else set()
        instants |= set() if declared.timestamp_by is None else {names[declared.timestamp_by]}
        for condition in syntax.conjuncts(select.where):
            if isinstance(condition, syntax.Binary) and condition.op in ("<", "<=", ">", ">=", "="):
                sides = (condition.left, condition.right)
                read = [{p.name.lower() for p in parts(s) if isinstance(p, syntax.Name)} for s in sides]
                if {"current_timestamp"} in read and any(r and r <= instants for r in read):
                    self.session.warnings.append(
                        f"{self.session.snippet(condition.span)} compares the instant of a row with itself, for "
                        f"CURRENT_TIMESTAMP is no clock: {declared.name} [RANGE 5 MINUTES] holds the last five minutes"
                    )

    def _limit(self, limited: syntax.Limited) -> int:
        if limited.limit is None:
            first, last = limited.order[0].span, limited.order[-1].span
            by = cut(self.session.text[first[0] : last[1]])
            hint = f"ORDER BY {by} LIMIT n keeps its first n rows, and snapshot() gives them in this order"
            raise self.session.error("a relation has no order", (first[0], last[1]), "", hint)
        return limited.limit

    def _expanded(self, select: syntax.Select) -> syntax.Select:
        """With what its conditions have become, subqueries among it."""
        where, having, qualify = (
            None if condition is None else self.session.expand(condition)
            for condition in (select.where, select.having, select.qualify)
        )
        return replace(select, where=where, having=having, qualify=qualify, written=())

    def with_names(self, select: syntax.Select) -> tuple[syntax.Select, Scope]:
        """The block with the columns that * and COLUMNS stand for, and what names mean before rows are grouped."""
        self._check_sources(select)
        scope = self._sources(select)[0].scope
        binder = self._binder(scope, "the select list")
        items: list[syntax.SelectItem] = []
        for item in chain.from_iterable(
            self._fields(each, binder) for each in with_columns(self.session, select, scope, "").items
        ):
            items += self._named(item, scope) if isinstance(item.expr, syntax.Star) else (item,)
        return replace(select, items=tuple(items)), scope

    def _check_sources(self, select: syntax.Select) -> None:
        if not select.sources:
            raise self.session.error(
                "a query needs FROM", select.span, "", "name the streams or relations it reads: SELECT .. FROM S"
            )

    def _sources(
        self, select: syntax.Select, limited: syntax.Limited | None = None
    ) -> tuple[Source, tuple[syntax.FromItem, ...]]:
        """FROM, and its expanded trees."""
        named = {part.name.lower() for part in parts(limited or select) if isinstance(part, syntax.Name)}
        sources = SourceBinder(self.session, self.outer, self.bind_query, self.bind_relation, named, self.correlated)
        return sources.bind_all(select.sources)

    def _with_elements(self, select: syntax.Select) -> syntax.Select:
        """UNNEST(list) or EXPLODE(list), once in the select list of a block without groups, stands in FROM."""
        calls = [
            part
            for item in select.items
            for part in parts(item.expr, syntax.Query | syntax.Case | syntax.Lambda)
            if isinstance(part, syntax.Call) and part.function.lower() in ELEMENTS
        ]
        if len(calls) != 1 or select.group_by:
            return select
        call = calls[0]
        if len(call.args) != 1 or call.distinct or call.order or call.nulls:
            return select
        element = syntax.Name(_UNNESTED, _UNNESTED, span=call.span)
        items = []
        for each in select.items:
            item = syntax.rewritten(each, lambda part: element if part is call else None)
            if item.expr is element and item.alias is None:
                item = replace(item, alias=call.function.lower())
            items.append(item)
        if any(has_aggregates(item.expr, self.session.catalog) for item in items):
            return select
        unnest = syntax.Unnest(call.args[0], _UNNESTED, (_UNNESTED,), span=call.span)
        items = [_without_elements(item) for item in items]
        return replace(select, items=tuple(items), sources=(*select.sources, unnest))

    def _sort_keys(
        self,
        limited: syntax.Limited,
        select: syntax.Select,
        scope: Scope,
        groups: Groups | None,
        outputs: list[Output],
    ) -> tuple[tuple[int, bound.SortKey], ...]:
        """By which of the outputs rows are sorted; what the select list does not show is added to them."""
        binder = self._binder(scope, "ORDER BY", groups=groups, named=self.given_once)
        shown = len(outputs)
        keys = []
        for key in limited.order:
            place = self._place_in(key.expr, outputs[:shown])
            if place is None:
                expr = binder.value(key.expr)
                place = next((i for i, output in enumerate(outputs) if output.expr == expr), len(outputs))
                if place == len(outputs):
                    if select.distinct:
                        reason = "with DISTINCT, ORDER BY names columns of the select list"
                        raise self.session.error(reason, key.expr.span, "", "add it to the select list")
                    outputs.append(Output(self._name(key.expr, place), expr))
            if outputs[place].expr.type.is_nested:
                raise self.session.error("lists have no order", key.expr.span, "", "order by an element")
            keys.append((place, bound.SortKey(key.descending, bool(key.nulls_first))))
        return tuple(keys)

    def _place_in(self, expr: syntax.Expr, outputs: list[Output]) -> int | None:
        """Where in the select list a place or an alias stands; None for an expression."""
        if isinstance(expr, syntax.Literal) and type(expr.value) is int:
            if not 1 <= expr.value <= len(outputs):
                reason = f"ORDER BY {expr.value}: the select list has {counted(len(outputs), 'column')}"
                raise self.session.error(reason, expr.span)
            return expr.value - 1
        if not isinstance(expr, syntax.Name) or expr.qualifier is not None:
            return None
        name = expr.name.lower()
        return next((i for i, each in enumerate(outputs) if each.has_alias and each.name.lower() == name), None)

    def _binder(
        self,
        scope: Scope,
        clause: str,
        groups: Groups | None = None,
        named: Mapping[str, syntax.Expr] | None = None,
    ) -> ExpressionBinder:
        overs = self.overs if clause in _WHERE_OVER_STANDS else None
        if named is None:
            named = self.aliases if clause in _WHERE_ALIASES_STAND else {}
        context = Context(scope, clause, self.outer, self.correlated, groups, self.aliases, overs, named)
        return ExpressionBinder(self.session, context, self.bind_relation)

    # ---------------------------------------------------------------------------------------------------- groups

    def _groups(self, select: syntax.Select, scope: Scope) -> Groups | None:
        catalog = self.session.catalog
        grouped = bool(select.group_by) or select.having is not None
        shown = [item.expr for item in select.items] + ([] if select.qualify is None else [select.qualify])
        if not grouped and not any(has_aggregates(expr, catalog) for expr in shown):
            return None
        keys: dict[bound.Expr, None] = {}
        for expr in select.group_by:
            meant = key_meant(self.session, expr, select, scope)
            key = self._key(meant, scope)
            if isinstance(key, bound.Literal) and meant is expr:
                raise self.session.error(
                    "GROUP BY a constant makes no groups", expr.span, "", "name the column, or its place in the list"
                )
            keys.setdefault(key)
        used = [*shown, *([] if select.having is None else [select.having])]
        absent = frozenset(self._key(expr, scope) for expr in select.absent)
        return Groups(self.session, tuple(keys), any(has_aggregates(expr, catalog) for expr in used), absent)

    def _key(self, expr: syntax.Expr, scope: Scope) -> bound.Expr:
        return self._binder(scope, "GROUP BY", named=self.given_once).bind(expr)

    def _by_every_key(self, select: syntax.Select, scope: Scope) -> syntax.Select:
        """GROUP BY ALL, with the keys that are meant."""
        keys: list[syntax.Expr] = []
        others: set[str] = set()
        for item in select.items:
            if isinstance(item.expr, syntax.Star):
                raise self.session.error("GROUP BY ALL counts past a *", item.span, "", "name the columns")
            has_over = any(isinstance(part, syntax.Over) for part in parts(item, syntax.Query))
            is_constant = isinstance(item.expr, syntax.Literal)
            names = {part.name.lower() for part in parts(item, syntax.Query) if isinstance(part, syntax.Name)}
            is_other = has_over or is_constant or has_aggregates(item.expr, self.session.catalog)
            if is_other or (names & others and not self._is_key(item.expr, scope)):
                others.add((item.alias or "").lower())
            else:
                keys.append(item.expr)
        having = select.having
        if not keys and having is None:
            having = syntax.Literal(True)
        return replace(select, group_by=tuple(keys), having=having)

    def _is_key(self, expr: syntax.Expr, scope: Scope) -> bool:
        """Whether an expression stands for something to group by, whatever the select list calls its names."""
        try:
            return not isinstance(self._key(expr, scope), bound.Literal)
        except CqlError:
            return False

    def _check_arrival(self, groups: Groups, from_node: bound.Node) -> None:
        for call in groups.aggregates:
            if call.is_by_arrival and not from_node.has_arrival_order:
                instead = "MIN and MAX work" if call.settings is None else "with ORDER BY inside it works"
                raise self.session.error(
                    f"{call.function.upper()} needs the arrival order of one windowed stream",
                    call.span,
                    "",
                    f"FROM must be a single stream with its window; {instead} on any relation",
                )

    # ----------------------------------------------------------------------------------------------- select list

    def _outputs(
        self, select: syntax.Select, scope: Scope, groups: Groups | None
    ) -> tuple[list[Output], list[syntax.SelectItem]]:
        """The columns, and the select list with `*` written out."""
        named: dict[str, syntax.Expr] = {}
        binder = self._binder(scope, "the select list", groups=groups, named=named)
        outputs: list[Output] = []
        trees: list[syntax.SelectItem] = []
        for item in chain.from_iterable(self._fields(written, binder) for written in select.items):
            if isinstance(item.expr, syntax.Star):
                columns = self._star(item.expr, scope)
                replaced, renamed = _changes(item.expr)
                written: list[syntax.SelectItem] = []
                for alias, column in columns:
                    other = replaced.get(column.name.lower())
                    if other is not None:
                        outputs.append(Output(column.name, binder.value(other.expr), True))
                        written.append(replace(other, expr=self.session.expand(other.expr)))
                        continue
                    expr = replace(column.expr, span=item.expr.span)
                    given = renamed.get(column.name.lower())
                    called = given or column.name
                    outputs.append(Output(called, expr if groups is None else groups.to_row(expr), given is not None))
                    name = name_of(scope, alias, column)
                    written += [] if name is None else [syntax.SelectItem(name, given)]
                # A column that has no name of its own can only be had by the star.
                trees += written if len(written) == len(columns) else [item]
            else:
                called = item.alias or self._name(item.expr, len(outputs))
                outputs.append(Output(called, binder.value(item.expr), item.alias is not None))
                trees.append(replace(item, expr=self.session.expand(item.expr)))
                alias = (item.alias or "").lower()
                if self.given_once.get(alias) is item.expr:
                    named[alias] = item.expr
        return outputs, trees

    def _name(self, expr: syntax.Expr, position: int) -> str:
        """A column without alias is called as it is written."""
        if isinstance(expr, syntax.Name):
            return expr.name
        return self.session.snippet(expr.span) or f"column{position + 1}"

    def _fields(self, item: syntax.SelectItem, binder: ExpressionBinder) -> list[syntax.SelectItem]:
        """`s.*` of a STRUCT as its fields; any other item as it is."""
        star = item.expr
        if not isinstance(star, syntax.Star) or star.qualifier is None or not binder.is_struct(star.qualifier):
            return [item]
        struct = syntax.Name(star.qualifier, span=star.span)
        names = [name for name, _ in binder.bind(struct).type.fields]
        literals = [syntax.Literal(name, span=star.span) for name in names]
        calls = [syntax.Call("STRUCT_EXTRACT", (struct, literal), span=star.span) for literal in literals]
        return [syntax.SelectItem(call, name) for call, name in zip(calls, names)]

    def _named(self, item: syntax.SelectItem, scope: Scope) -> list[syntax.SelectItem]:
        """`*` as the columns that it stands for, each by its name."""
        assert isinstance(item.expr, syntax.Star)
        replaced, renamed = _changes(item.expr)
        items = []
        for alias, column in self._star(item.expr, scope):
            name = name_of(scope, alias, column)
            if name is None:
                reason = f'several columns are called "{column.name}"'
                raise self.session.error(reason, item.span, "", "rename one in a query")
            given = renamed.get(column.name.lower(), column.name)
            called = syntax.SelectItem(replace(name, span=item.span), given, span=item.span)
            items.append(replaced.get(column.name.lower(), called))
        return items

    def _star(self, star: syntax.Star, scope: Scope) -> list[tuple[str, Column]]:
        if star.qualifier is not None and scope.table(star.qualifier) is None:
            raise scope.unknown("*", star.qualifier, self.session.text, star.span)
        columns = scope.star(star.qualifier)
        there = [column.name for _, column in columns]
        named = [(name.name, name.span) for name in star.left_out]
        changed = [(item.alias or "", item.span) for item in star.replaced]
        changed += [(item.expr.name, item.expr.span) for item in star.renamed if isinstance(item.expr, syntax.Name)]
        left_out = {name.lower() for name, _ in named}
        known, taken = set(map(str.lower, there)), set(left_out)
        for name, span in changed:
            if name.lower() in taken:
                raise self.session.error(f'"{name}" stands behind * twice', span, "", "leave one of them out")
            taken.add(name.lower())
        for name, span in [*named, *changed]:
            if name.lower() not in known:
                hint = did_you_mean(name, there)
                raise self.session.error(f'* has no column "{name}"', span, f"it has: {listing(there)}", hint)
        kept = [each for each in columns if each[1].name.lower() not in left_out]
        if not kept:
            raise self.session.error("EXCLUDE leaves no column", star.span)
        return kept


def _changes(star: syntax.Star) -> tuple[dict[str, syntax.SelectItem], dict[str, str]]:
    """What REPLACE puts in the place of columns, and the names that RENAME gives; by column, in lower case."""
    replaced = {item.alias.lower(): item for item in star.replaced if item.alias is not None}
    renamed = {
        item.expr.name.lower(): item.alias
        for item in star.renamed
        if isinstance(item.expr, syntax.Name) and item.alias is not None
    }
    return replaced, renamed


def _aggregate(node: bound.Node, groups: Groups) -> bound.Aggregate:
    keys = [
        Field(k.name if isinstance(k, bound.ColumnRef) else f"key{i + 1}", k.type) for i, k in enumerate(groups.keys)
    ]
    results = [Field(a.function, a.type) for a in groups.aggregates]
    return bound.Aggregate(
        Schema((*keys, *results)),
        node,
        groups.keys,
        tuple(groups.aggregates),
        not groups.keys,
        event_windows(node),
    )
