"""FROM: from names, windows and joins to one relation and the scope of its row (docs/semantics R1, D1, D3).

Invariant: what leaves here is a relation. A stream without a window got [RANGE UNBOUNDED], and the tree says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from copy import copy
from dataclasses import dataclass, replace
from typing import assert_never

from minidsms.counted import counted
from minidsms.cql import as_of, bound, syntax
from minidsms.cql.bound import JoinKind, StreamKind
from minidsms.cql.coercion import agree
from minidsms.cql.defaults import is_monotonic
from minidsms.cql.errors import CqlError
from minidsms.cql.expression_binder import Context, ExpressionBinder
from minidsms.cql.over import is_instant
from minidsms.cql.rewriting import conjunction
from minidsms.cql.scalar import is_own, rewrite_through, shift
from minidsms.cql.scope import Ambiguous, Column, Merged, Scope, ambiguous, did_you_mean, listing
from minidsms.cql.session import Piece, Session, parts
from minidsms.cql.window_spec import BOUNDS, INSTANT, LONGEST_WITH_BOUNDS, WindowKind, WindowSpec
from minidsms.cql.windows import bind_window
from minidsms.elements import Schema, Type

_ZERO = bound.Literal(Type.INTEGER, 0)
_PAIR = tuple(syntax.Pair(syntax.Name(name), syntax.Name(f"the {name}")) for name in ("element", "place"))
_NUMBERED = syntax.Lambda(("the element", "the place"), syntax.Call("STRUCT", _PAIR))
"""An element and its place, of UNNEST WITH ORDINALITY; no name a user writes has a blank."""
KINDS = {
    "inner": JoinKind.INNER,
    "cross": JoinKind.INNER,
    "left": JoinKind.LEFT,
    "right": JoinKind.RIGHT,
    "full": JoinKind.FULL,
}


@dataclass(frozen=True)
class Source:
    """A FROM item, or several joined: node (a stream only before its window is given), names, expanded tree."""

    node: bound.Node
    scope: Scope
    tree: syntax.FromItem


class SourceBinder:
    """Binds the items of one FROM. `bind_query` binds what stands in parentheses; `outer` is the enclosing query, whose
    row may be used where `correlated` is True.

    named: the names that the block uses, in lower case; by them windows know which implied columns are wanted (W10).
    """

    def __init__(
        self,
        session: Session,
        outer: Context | None,
        bind_query: Callable[[syntax.Query, Context | None, bool], Piece],
        bind_relation: Callable[[syntax.Query, Context], Piece],
        named: Set[str] = frozenset(),
        correlated: bool = False,
    ) -> None:
        self.session = session
        self.correlated = correlated
        self.named = named
        self.outer = outer
        self.bind_query = bind_query
        self.bind_relation = bind_relation
        self._defaulted: list[str] = []

    def bind_all(self, items: tuple[syntax.FromItem, ...]) -> tuple[Source, tuple[syntax.FromItem, ...]]:
        """The comma-separated items as one left-deep cross product, and their expanded trees."""
        whole = self.bind(items[0])
        trees = [whole.tree]
        for item in items[1:]:
            whole = self._behind(whole, item)
            trees.append(whole.tree)
        if self._defaulted and isinstance(whole.node, bound.Join):
            # A join must keep all rows of such a stream for ever; whoever forgot a window wants to know.
            has = "has" if len(self._defaulted) == 1 else "have"
            self.session.warnings.append(
                f"{listing(self._defaulted)} {has} no window: the join keeps every row, as with [RANGE UNBOUNDED]"
            )
        return whole, tuple(trees)

    def _behind(self, left: Source, item: syntax.FromItem) -> Source:
        """An item beside what stands before its comma, which LATERAL and UNNEST in it see; its tree alone."""
        match item:
            case syntax.Unnest():
                return self._unnested(left, item)
            case syntax.QueryRef(is_lateral=True):
                return self._lateral(left, item, JoinKind.INNER, None)
            case syntax.Join() if _looks_back(item, left.scope):
                if item.natural or item.as_of or item.kind in ("right", "full"):
                    reason = "what LATERAL or UNNEST sees stands before the comma, outside this join"
                    hint = "make it one table: (SELECT .. FROM A, LATERAL (..) AS s) AS x, and join that"
                    raise self.session.error(reason, item.span, "", hint)
                return self._join(item, self._behind(left, item.left))
        right = self.bind(item)
        scope = self._beside(left, right, item)
        return Source(bound.Join.of(left.node, right.node), scope, right.tree)

    def _binder(self, scope: Scope, clause: str) -> ExpressionBinder:
        return ExpressionBinder(self.session, Context(scope, clause, self.outer, self.correlated), self.bind_relation)

    def _below(self, window: syntax.Window | None) -> SourceBinder:
        """For what a window is over, if there is one: a stream, which sees no enclosing row."""
        if window is None or not self.correlated:
            return self
        below = copy(self)
        below.correlated = False
        return below

    def _inside(self) -> SourceBinder:
        """For what becomes a query inside this one, of whose row it sees nothing."""
        if not self.correlated:
            return self
        inside = copy(self)
        inside.outer = Context(Scope([]), "FROM", self.outer, True)
        return inside

    def bind(self, item: syntax.FromItem) -> Source:
        """One item as a relation: D1 gives a stream without a window [RANGE UNBOUNDED]."""
        source = self._item(item)
        if source.node.kind == "relation":
            return source
        window = syntax.UnboundedWindow()
        node, scope = self._window(source.node, source.scope, WindowSpec(WindowKind.UNBOUNDED))
        self._defaulted.append(scope.tables[0].alias or "a subquery")
        match source.tree:
            case syntax.TableRef() | syntax.QueryRef() | syntax.ParenthesisedRef():
                return Source(node, scope, replace(source.tree, window=window))
            case _:
                raise AssertionError("a join is a relation")

    def _item(self, item: syntax.FromItem) -> Source:
        match item:
            case syntax.TableRef():
                return self._table(item)
            case syntax.QueryRef():
                return self._query(item)
            case syntax.ParenthesisedRef():
                return self._parenthesised(item)
            case syntax.Join():
                return self._join(item)
            case syntax.Unnest():
                one = syntax.Values(((syntax.SelectItem(syntax.Literal(None)),),))
                return self._unnested(Source(self.bind_query(one, self.outer, False).node, Scope([]), item), item)
            case _:
                assert_never(item)

    # ---------------------------------------------------------------------------------------------------- tables

    def _table(self, ref: syntax.TableRef) -> Source:
        key = ref.name.lower()
        kind = self.session.catalog.kind_of(ref.name)
        node: bound.Node
        common = self.session.common.get(key)
        if common is not None or kind is not None:
            self.session.count("inputs", 1, ref.span)
        if common is not None:
            node = common.node
        elif kind == "stream":
            node = self.session.stream(key)
        elif kind == "relation":
            node = self.session.relation(key)
        elif kind == "view":
            node = self.session.views[key].node
        else:
            raise self._unknown_table(ref)
        schema = renamed(self.session, node.schema, ref.columns, ref.span, ref.name)
        scope = Scope.of_table(ref.alias or ref.name, schema, ref.name)
        source = Source(node, scope, replace(ref, window=None))
        return source if ref.window is None else self._windowed(source, ref.window)

    def _unknown_table(self, ref: syntax.TableRef) -> CqlError:
        known = [*self.session.common, *self.session.catalog.names()]
        place = (ref.span[0], min(ref.span[1], ref.span[0] + len(ref.name))) if ref.span != (0, 0) else ref.span
        nothing, way_out = "nothing has been declared yet", f"declare it: CREATE STREAM {ref.name} (..)"
        if self.session.catalog.is_of_archives:
            nothing, way_out = "the folder holds no archives", f"its archive would be {ref.name}/ in the folder"
        note = f"there are: {listing(known)}" if known else nothing
        hint = did_you_mean(ref.name, [*known, *self.session.catalog.system_names()]) or way_out
        if ref.name.lower() in self.session.catalog.queries:
            hint = f'"{ref.name}" is a query, and queries read views: CREATE VIEW names what several of them read'
        return self.session.error(f'unknown stream, relation or view "{ref.name}"', place, note, hint)

    def _query(self, ref: syntax.QueryRef) -> Source:
        piece = self.bind_query(ref.query, self.outer, self._below(ref.window).correlated)
        node = named_columns(self.session, piece.node, ref.columns, ref.span)
        tree = replace(ref, query=piece.tree, window=None)
        source = Source(node, Scope.of_table(ref.alias or "", node.schema), tree)
        return source if ref.window is None else self._windowed(source, ref.window)

    def _parenthesised(self, ref: syntax.ParenthesisedRef) -> Source:
        inner = self._below(ref.window)._item(ref.item)
        source = Source(inner.node, inner.scope, replace(ref, item=inner.tree, window=None))
        if ref.columns:  # which the window names, too
            source = self._called(source, ref)
        if ref.window is not None:
            source = self._windowed(source, ref.window)
        return source if ref.alias is None or ref.columns else self._called(source, ref)

    def _called(self, source: Source, ref: syntax.ParenthesisedRef) -> Source:
        """The source under the alias and the column names of its parentheses."""
        assert ref.alias is not None
        own = [column.name for _, column in source.scope.star()]
        names = names_of_columns(self.session, own, ref.columns, ref.span, "the table in parentheses")
        node = replace(source.node, name=ref.alias) if isinstance(source.node, bound.Window) else source.node
        return replace(source, node=node, scope=source.scope.renamed(ref.alias, names))

    # --------------------------------------------------------------------------------------------------- windows

    def _windowed(self, source: Source, window: syntax.Window) -> Source:
        """The window over a stream; a monotonic subquery or view becomes one by ISTREAM (D3)."""
        node, tree = source.node, source.tree
        if node.kind == "relation":
            if not _could_be_stream(tree):
                raise self._no_stream(source, window, "this already has a window, or joins several")
            if isinstance(node, bound.BaseRelation):
                raise self._no_stream(source, window, f'"{node.name}" is a relation: it has its present content')
            if not is_monotonic(node):
                raise self._not_monotonic(source, window)
            if id(node) not in self.session.derived:
                ticks = self.session.catalog.rstream_ticks
                self.session.derived[id(node)] = bound.to_stream(StreamKind.ISTREAM, node, ticks)
            node, tree = self.session.derived[id(node)], _as_istream(tree, source.node)
        spec = bind_window(self.session, window, source.scope)
        assert isinstance(tree, syntax.TableRef | syntax.QueryRef | syntax.ParenthesisedRef)
        held, scope = self._window(node, source.scope, spec)
        return Source(held, scope, replace(tree, window=window))

    def _window(
        self, stream: bound.Node, scope: Scope, spec: WindowSpec, span: tuple[int, int] = (0, 0)
    ) -> tuple[bound.Node, Scope]:
        """The window over a stream, with its implied columns where the block names them (W10)."""
        table, implied = scope.tables[0], []
        if "current_timestamp" in self.named or ("ts" in self.named and not table.find("ts")):
            instant = _reference(INSTANT, len(stream.schema), 0)
            implied += [Column("current_timestamp", instant), Column("ts", instant)]
            stream = bound.Stamped.of(stream)
        is_ending = spec.kind is WindowKind.SESSION and "window_end" in self.named
        if is_ending and not isinstance(stream, bound.Stamped):
            stream = bound.Stamped.of(stream)
        node: bound.Node = bound.Window.of(stream, spec, table.alias)
        width = len(stream.schema)
        implied += [Column(f.name, _reference(spec.implied, width, i)) for i, f in enumerate(spec.implied)]
        if is_ending:
            implied.append(Column("window_end", _reference(BOUNDS, len(node.schema) - 1, 1)))
            node = session_ends(node, width - 1, spec.range_ or 0)
        bounds = self._bounds(width, spec, span)
        return bound.Bounds.of(node, spec) if bounds else node, scope.implying([*implied, *bounds])

    def _bounds(self, width: int, spec: WindowSpec, span: tuple[int, int]) -> list[Column]:
        """Start and end of a window that moves in steps, behind so many columns, where the block names them."""
        if spec.step is None or self.named.isdisjoint(BOUNDS.names):
            return []
        if (spec.range_ or 0) > LONGEST_WITH_BOUNDS:
            raise self.session.error(f"a window with window_start is at most {LONGEST_WITH_BOUNDS} ticks long", span)
        return [Column(f.name, _reference(BOUNDS, width, i)) for i, f in enumerate(BOUNDS)]

    def _no_stream(self, source: Source, window: syntax.Window, note: str) -> CqlError:
        return self.session.error("a window needs a stream", window.span, note, "leave the window out")

    def _not_monotonic(self, source: Source, window: syntax.Window) -> CqlError:
        tree = source.tree
        if isinstance(tree, syntax.TableRef):
            what, written = f'the view "{tree.name}"', f"SELECT * FROM {tree.name}"
        else:
            what, written = "the subquery", "SELECT .."
        shown = f" {self.session.snippet(window.span)}" if window.span != (0, 0) else ""
        return self.session.error(
            f"{'a window' if shown else 'ASOF JOIN'} needs a stream, and {what} is a relation that can lose rows",
            window.span if shown else tree.span,
            "",
            f"say which stream of it is meant: (ISTREAM ({written})){shown}, or DSTREAM or RSTREAM",
        )

    # ----------------------------------------------------------------------------------------------------- joins

    def _beside(self, left: Source, right: Source, item: syntax.FromItem) -> Scope:
        return self._scope_beside(left, right.scope, right.node.schema, item)

    def _scope_beside(self, left: Source, right: Scope, schema: Schema, item: syntax.FromItem) -> Scope:
        """The names of both. right, schema: what stands to the right, and its columns."""
        taken = {t.alias.lower() for t in left.scope.tables if t.alias}
        for table in right.tables:
            if table.alias.lower() in taken:
                raise self.session.error(
                    f'"{table.alias}" stands twice in FROM',
                    item.span,
                    "",
                    f"give one another name: {table.alias} AS ..",
                )
        width = len(left.node.schema)
        self.session.check_width(width + len(schema), item.span)
        return left.scope.beside(right, width)

    def _unnested(self, left: Source, ref: syntax.Unnest, keeps_all: bool = False) -> Source:
        """A row for each element of a list of the left side's rows. keeps_all: of no element, one with NULL."""
        binder = self._binder(left.scope, "UNNEST")
        listed = binder.value(ref.list)
        element = listed.type.element
        if element is None:
            hint = "STRING_SPLIT makes a list of a text, JSON_ITEMS of an array of JSON, ARRAY_AGG of a group"
            raise self.session.error(f"UNNEST takes a list, not {listed.type}", ref.list.span, "", hint)
        names = ["unnest" if ref.alias is None else ref.alias, *(["ordinality"] * ref.is_numbered)]
        if len(ref.columns) > len(names):
            reason = f"UNNEST gives {'two columns' if ref.is_numbered else 'one column'}, not {len(ref.columns)}"
            raise self.session.error(reason, ref.span, "", f"AS {ref.alias}({', '.join(ref.columns[: len(names)])})")
        if ref.is_numbered:
            listed = binder.value(syntax.Call("LIST_TRANSFORM", (ref.list, _NUMBERED), span=ref.list.span))
            element = listed.type.element
            assert element is not None
        if keeps_all:
            one = bound.Call(listed.type, "list_value", (bound.Literal(element, None),))
            some = bound.Call(Type.BOOLEAN, ">", (bound.Call(Type.INTEGER, "cardinality", (listed,)), _ZERO))
            listed = bound.Case(listed.type, ((some, listed),), one)
        names[: len(ref.columns)] = ref.columns
        node: bound.Node = bound.Unnest.of(left.node, listed, names[0])
        if ref.is_numbered:
            *before, both = bound.column_refs(node.schema)
            places = [bound.Literal(Type.INTEGER, place) for place in range(2)]
            taken = [bound.Call(element.fields[i][1], "struct_extract", (both, at)) for i, at in enumerate(places)]
            node = bound.projected(node, [*before, *taken], [*left.node.schema.names, *names])
        own = Schema(node.schema.fields[-len(names) :])
        scope = self._scope_beside(left, Scope.of_table(ref.alias or "unnest", own), own, ref)
        return Source(node, scope, replace(ref, list=self.session.expand(ref.list)))

    def _join_unnested(self, ref: syntax.Join, left: Source, right: syntax.Unnest) -> Source:
        """left JOIN UNNEST(..): of the rows with elements, or of all."""
        if not self._unnests_beside(ref):
            hint = "CROSS JOIN UNNEST(..), JOIN UNNEST(..) ON condition, or LEFT JOIN UNNEST(..) ON TRUE"
            raise self.session.error("UNNEST is not joined so", ref.span, "", hint)
        source = self._unnested(left, right, ref.kind == "left")
        tree = replace(ref, left=left.tree, right=source.tree)
        if ref.on is None or _is_true(ref.on):
            return replace(source, tree=tree)
        condition = self._binder(source.scope, "ON").condition(ref.on)
        node = bound.filtered(source.node, [condition])
        return Source(node, source.scope, replace(tree, on=self.session.expand(ref.on)))

    def _lateral(self, left: Source, ref: syntax.QueryRef, kind: JoinKind, on: syntax.Expr | None) -> Source:
        """Each row of the left side with the rows that a query which sees it has; its tree is that of the query."""
        context = Context(left.scope, "LATERAL", self.outer, self.correlated)
        piece = self.bind_relation(ref.query, context)
        found = named_columns(self.session, piece.node, ref.columns, ref.span)
        right = Source(found, Scope.of_table(ref.alias or "", found.schema), replace(ref, query=piece.tree))
        scope = self._beside(left, right, ref)
        condition = None if on is None else self._binder(scope, "ON").condition(on)
        schema, rows = left.node.schema + found.schema, bound.Exists(Type.BOOLEAN, found)
        node: bound.Node = bound.Lateral(schema, left.node, rows, kind, None if kind is JoinKind.INNER else condition)
        if condition is not None and kind is JoinKind.INNER:
            node = bound.filtered(node, [condition])
        return Source(node, scope, right.tree)

    def _join_lateral(self, ref: syntax.Join, left: Source, right: syntax.QueryRef) -> Source:
        """left JOIN LATERAL (query)."""
        if ref.kind not in ("cross", "inner", "left") or ref.natural or ref.using:
            hint = "CROSS JOIN LATERAL (..), JOIN LATERAL (..) ON condition, or LEFT JOIN LATERAL (..) ON condition"
            raise self.session.error("LATERAL is not joined so", ref.span, "", hint)
        source = self._lateral(left, right, KINDS[ref.kind], ref.on)
        on = None if ref.on is None else self.session.expand(ref.on)
        return replace(source, tree=replace(ref, left=left.tree, right=source.tree, on=on))

    def _unnests_beside(self, ref: syntax.Join) -> bool:
        """Whether the elements of a list to the right are put beside the rows with whose columns it is computed."""
        is_plain = ref.kind in ("cross", "inner") or (ref.kind == "left" and _is_true(ref.on))
        return is_plain and not (ref.natural or ref.using)

    def _join(self, ref: syntax.Join, left: Source | None = None) -> Source:
        """left: what stands on the left side, where that is more than the item there."""
        if ref.as_of:
            return self._as_of(ref)
        left = left or self.bind(ref.left)
        if isinstance(ref.right, syntax.Unnest):
            names = [part for part in parts(ref.right.list) if isinstance(part, syntax.Name)]
            if names or self._unnests_beside(ref):
                return self._join_unnested(ref, left, ref.right)
        if isinstance(ref.right, syntax.QueryRef) and ref.right.is_lateral:
            return self._join_lateral(ref, left, ref.right)
        is_half = ref.kind in ("semi", "anti")
        right = (self._inside() if is_half else self).bind(ref.right)
        scope = self._beside(left, right, ref.right)
        if is_half:
            return self._half_join(ref, left, right, scope)
        kind = KINDS[ref.kind]
        condition: bound.Expr | None = None
        on = ref.on
        if ref.natural:
            ref = replace(ref, using=self._common_columns(ref, left.scope, right.scope), natural=False)
        if ref.using:
            condition = self._using(ref, kind, left, right, scope)
        elif on is not None:
            if kind in (JoinKind.INNER, JoinKind.LEFT):
                equate_conjuncts(scope, on)
            condition = self._binder(scope, "ON").condition(on)
            on = self.session.expand(on)
        node = bound.Join.of(left.node, right.node, condition, kind)
        return Source(node, scope, replace(ref, left=left.tree, right=right.tree, on=on))

    def _half_join(self, ref: syntax.Join, left: Source, right: Source, scope: Scope) -> Source:
        """left SEMI JOIN right: the left rows for which EXISTS (SELECT * FROM right WHERE condition), or ANTI, not."""
        if ref.using:
            condition = self._using(ref, JoinKind.INNER, left, right, scope)
        else:
            assert ref.on is not None
            condition = self._binder(scope, "ON").condition(ref.on)
        width = len(left.node.schema)

        def seen(e: bound.Expr, depth: int) -> bound.Expr | None:
            if is_own(e, depth):
                outer = bound.OuterRef(e.type, e.index, e.name, depth + 1, span=e.span)
                return outer if e.index < width else replace(e, index=e.index - width)
            return replace(e, level=e.level + 1) if isinstance(e, bound.OuterRef) and e.level > depth else None

        found: bound.Expr = bound.Exists(Type.BOOLEAN, bound.filtered(right.node, [rewrite_through(condition, seen)]))
        if ref.kind == "anti":
            found = bound.Call(Type.BOOLEAN, "not", (found,))
        on = None if ref.on is None else self.session.expand(ref.on)
        tree = replace(ref, left=left.tree, right=right.tree, on=on)
        return Source(bound.filtered(left.node, [found]), left.scope, tree)

    def _using(self, ref: syntax.Join, kind: JoinKind, left: Source, right: Source, scope: Scope) -> bound.Expr:
        """The equalities of USING; the scope learns the merged columns."""
        width = len(left.node.schema)
        equalities: list[bound.Expr] = []
        merged: list[Merged] = []
        covered: set[bound.Expr] = set()
        for name in ref.using:
            a = self._using_column(name, left.scope)
            b = shift(self._using_column(name, right.scope), width)
            covers = {a, b}
            for old in scope.merged:
                if old.column.expr in (a, b):
                    covers |= old.covers
            pair = agree(self.session, [replace(a, span=name.span), replace(b, span=name.span)], "cannot compare")
            equalities.append(bound.Call(Type.BOOLEAN, "=", tuple(pair), span=name.span))
            if kind is JoinKind.FULL:
                expr: bound.Expr = bound.Call(pair[0].type, "coalesce", tuple(pair), span=name.span)
            else:
                expr = pair[1] if kind is JoinKind.RIGHT else pair[0]
            merged.append(Merged(Column(name.name, expr), frozenset(covers)))
            covered |= covers
            if kind is JoinKind.INNER:
                scope.equate(a, b)
        scope.merge(merged + [m for m in scope.merged if not m.covers & covered])
        return conjunction(equalities)

    # --------------------------------------------------------------------------------------------- joins as of

    def _as_of(self, ref: syntax.Join) -> Source:
        """The window of the leftmost stream over its elements, each with what it finds as it comes (R11)."""
        found, first, window = self._found_as_of(ref)
        spec = bind_window(self.session, window, first.scope)
        stream = bound.to_stream(StreamKind.RSTREAM, found.node, False)
        table, *others = found.scope.tables
        node: bound.Node = bound.Window.of(stream, spec, table.alias)
        bounds = self._bounds(len(stream.schema), spec, window.span)
        if bounds:
            table = replace(table, implied=(*table.implied, *bounds))
            node = bound.Bounds.of(node, spec)
        return Source(node, replace(found.scope, tables=[table, *others]), found.tree)

    def _found_as_of(self, ref: syntax.Join) -> tuple[Source, Source, syntax.Window]:
        """The elements of an instant with what they find; those of the leftmost stream alone, and its window."""
        if isinstance(ref.left, syntax.Join) and ref.left.as_of:
            left, first, window = self._found_as_of(ref.left)
        else:
            item = as_of.stream_item(self.session, ref.left)
            window = as_of.left_window(self.session, item)
            left = self._held(self._stream(item, ref.right), syntax.NowWindow(), window)
            first = left
        item = as_of.without_window(self.session, as_of.stream_item(self.session, ref.right))
        right = self._stream(item, ref.left)
        self._beside(left, right, ref.right)  # names that stand twice are told before what they compare
        found = as_of.compared(self.session, ref, left.scope, right.scope)
        keys = found.merged + found.keys
        right = self._held(right, syntax.PartitionWindow(keys, 1) if keys else syntax.RowsWindow(1), None)
        of_left = first if found.instant is not None else left
        as_of.check_instants(
            self.session,
            ref,
            found,
            first.scope,
            right.scope,
            lambda expr: self._is_instant(expr, of_left, first),
            lambda expr: self._is_instant(expr, right, right),
        )
        scope = self._beside(left, right, ref.right)
        kind = KINDS[ref.kind]
        conditions: list[bound.Expr] = []
        if found.merged:
            conditions.append(self._using(replace(ref, using=found.merged), kind, left, right, scope))
        if found.instant is not None:
            self._merge_instants(found.instant, first, right, len(left.node.schema), scope)
        # Under the stream of what is found the enclosing row is out of reach.
        binder = ExpressionBinder(self.session, Context(scope, "ON", None), self.bind_relation)
        for part in found.equal:
            equate_conjuncts(scope, part)
        conditions += [binder.condition(part) for part in found.equal]
        condition = conjunction(conditions) if conditions else bound.Literal(Type.BOOLEAN, True)
        node = bound.Join.of(left.node, right.node, condition, kind)
        on = None if ref.on is None else self.session.expand(ref.on)
        return Source(node, scope, replace(ref, left=left.tree, right=right.tree, on=on)), first, window

    def _stream(self, item: as_of.StreamItem, other: syntax.FromItem) -> Source:
        """A side of an ASOF JOIN without its window. other: the other side."""
        source = self._below(syntax.UnboundedWindow())._item(replace(item, window=None))
        if not isinstance(source.node, bound.BaseRelation):
            return source
        name, stream = source.node.name, other.name if isinstance(other, syntax.TableRef) else "S"
        lookup = f"FROM {stream} [NOW] AS s JOIN {name} ON s.k = {name}.k"
        hint = f"what {name} has at the instant of a row is found by {lookup}"
        raise self.session.error("ASOF JOIN joins two streams", item.span, f'"{name}" is a relation', hint)

    def _held(self, source: Source, window: syntax.Window, written: syntax.Window | None) -> Source:
        """The stream in a window that the join gives it; the tree has the one that is written."""
        held = self._windowed(source, window)
        assert isinstance(held.tree, as_of.StreamItem)
        return replace(held, tree=replace(held.tree, window=written))

    def _is_instant(self, expr: syntax.Expr, source: Source, stream: Source) -> bool:
        """Whether it is known to be the instant of the stream, the first of the source. CqlError for unknown names."""
        if not isinstance(expr, syntax.Name):
            return False
        try:
            found = source.scope.find(expr.name, expr.qualifier)
        except Ambiguous as problem:
            raise ambiguous(expr.name, problem.tables, self.session.text, expr.span) from None
        if found is None:
            raise source.scope.unknown(expr.name, expr.qualifier, self.session.text, expr.span)
        assert isinstance(found, bound.ColumnRef)
        is_first = found.index < len(stream.node.schema)
        return is_first and is_instant(stream.node, found.index, self.session.catalog)

    def _merge_instants(self, name: syntax.Name, first: Source, right: Source, width: int, scope: Scope) -> None:
        """By the name that USING gives the instants stands that of the left stream."""
        later, earlier = first.scope.find(name.name, None), right.scope.find(name.name, None)
        assert later is not None and earlier is not None
        old = [m for m in scope.merged if later in m.covers]
        covers = frozenset((later, shift(earlier, width))).union(*(m.covers for m in old))
        is_implied = not any(s.scope.tables[0].has_column(name.name) for s in (first, right))
        names = as_of.INSTANTS if is_implied else (name.name,)
        merged = [Merged(Column(each, later), covers, is_implied=is_implied) for each in names]
        scope.merge([*(m for m in scope.merged if m not in old), *merged])

    def _common_columns(self, ref: syntax.Join, left: Scope, right: Scope) -> tuple[syntax.Name, ...]:
        """The columns of a NATURAL JOIN: the names that both sides have, in the order of the left one."""
        there = {column.name.lower() for _, column in right.star()}
        names = {column.name.lower(): column.name for _, column in left.star() if column.name.lower() in there}
        if not names:
            note = "; ".join(
                f"{side} has: {listing(c.name for _, c in scope.star())}"
                for side, scope in (("the left", left), ("the right", right))
            )
            hint = "name the columns with ON, or write CROSS JOIN"
            raise self.session.error("a NATURAL JOIN of sides that have no column name in common", ref.span, note, hint)
        return tuple(syntax.Name(name, span=ref.span) for name in names.values())

    def _using_column(self, name: syntax.Name, scope: Scope) -> bound.Expr:
        try:
            found = scope.find(name.name, None)
        except Ambiguous as problem:
            advice = "USING cannot tell which; write ON with"
            raise ambiguous(name.name, problem.tables, self.session.text, name.span, advice) from None
        if found is None:
            raise scope.unknown(name.name, None, self.session.text, name.span)
        return found


def session_ends(window: bound.Node, instant: int, gap: int) -> bound.Node:
    """What a window of sessions holds, with the end of each session as a last column: its last instant and the gap.

    instant: the column that holds the instants of elements.
    """
    id_ = len(window.schema) - 1
    refs = bound.column_refs(window.schema)
    last = bound.AggregateCall("max", refs[instant], Type.TIMESTAMP)
    fields = bound.Schema((window.schema[id_], bound.Field("last", Type.TIMESTAMP)))
    ends = bound.Aggregate(fields, window, (refs[id_],), (last,))
    of_one = bound.Call(Type.BOOLEAN, "=", (refs[id_], bound.ColumnRef(Type.INTEGER, id_ + 1, "session_id")))
    joined = bound.Join.of(window, ends, of_one)
    length = bound.Literal(Type.INTERVAL, gap)
    end = bound.Call(Type.TIMESTAMP, "+", (bound.ColumnRef(Type.TIMESTAMP, id_ + 2, "last"), length))
    return bound.projected(joined, [*refs, end], [*window.schema.names, "window_end"])


def _reference(fields: Schema, width: int, i: int) -> bound.ColumnRef:
    """The i-th of the fields, which stand behind `width` columns."""
    return bound.ColumnRef(fields[i].type, width + i, fields[i].name)


def named_columns(session: Session, node: bound.Node, columns: tuple[str, ...], span: tuple[int, int]) -> bound.Node:
    """A subquery's node under the column names given behind its alias; itself where there are none."""
    if not columns:
        return node
    return replace(node, schema=renamed(session, node.schema, columns, span, "the subquery"))


def renamed(session: Session, schema: Schema, columns: tuple[str, ...], span: tuple[int, int], of: str) -> Schema:
    """A schema with the column names given behind an alias; those behind the last leave their own. of: whose it is."""
    return bound.named(schema, names_of_columns(session, schema.names, columns, span, of)) if columns else schema


def names_of_columns(
    session: Session, own: Sequence[str], given: tuple[str, ...], span: tuple[int, int], of: str
) -> tuple[str, ...]:
    """The names given to the first columns, and those that the others have of their own."""
    if len(given) > len(own):
        reason = f"{counted(len(given), 'column name')} for {counted(len(own), 'column')}"
        raise session.error(reason, span, "", f"{of} gives: {listing(own)}")
    return *given, *own[len(given) :]


def equate_conjuncts(scope: Scope, condition: syntax.Expr) -> None:
    """Tell the scope which columns the condition makes equal, so that either may be named bare (R1)."""
    for conjunct in syntax.conjuncts(condition):
        match conjunct:
            case syntax.Binary(op="=", left=syntax.Name() as a, right=syntax.Name() as b):
                left, right = _certain(scope, a), _certain(scope, b)
                if left is not None and right is not None:
                    scope.equate(left, right)


def _certain(scope: Scope, name: syntax.Name) -> bound.Expr | None:
    try:
        return scope.find(name.name, name.qualifier)
    except Ambiguous:
        return None


def _looks_back(join: syntax.Join, before: Scope) -> bool:
    """Whether a LATERAL or UNNEST in a join behind a comma may see what stands before the comma.

    Where nothing else stands before it, by any name; behind other items, where it names a table from there.
    """
    named = [item for item in parts(join.right) if isinstance(item, syntax.Name)] if _sees(join.right) else []
    aliases = {table.alias.lower() for table in before.tables}
    if any(name.qualifier is not None and name.qualifier.lower() in aliases for name in named):
        return True
    return _looks_back(join.left, before) if isinstance(join.left, syntax.Join) else _sees(join.left)


def _sees(item: syntax.FromItem) -> bool:
    if isinstance(item, syntax.Unnest):
        return any(isinstance(part, syntax.Name) for part in parts(item.list))
    return isinstance(item, syntax.QueryRef) and item.is_lateral


def _is_true(expr: syntax.Expr | None) -> bool:
    return isinstance(expr, syntax.Literal) and expr.value is True


def _could_be_stream(tree: syntax.FromItem) -> bool:
    """Whether the item is a lone table or query that has no window yet."""
    match tree:
        case syntax.TableRef(window=None) | syntax.QueryRef(window=None):
            return True
        case syntax.ParenthesisedRef(item=item, window=None):
            return _could_be_stream(item)
        case _:
            return False


def _as_istream(tree: syntax.FromItem, node: bound.Node) -> syntax.FromItem:
    """The tree of a monotonic view or subquery with ISTREAM written out."""
    match tree:
        case syntax.TableRef(name=name, alias=alias, columns=columns):
            items = tuple(syntax.SelectItem(syntax.Name(n)) for n in node.schema.names)
            lower = [n.lower() for n in node.schema.names]
            if len(set(lower)) < len(lower):
                items = (syntax.SelectItem(syntax.Star()),)
            query = syntax.Select(items, (syntax.TableRef(name),))
            return syntax.QueryRef(syntax.RelationToStream("istream", query), None, alias or name, columns)
        case syntax.QueryRef(query=query):
            return replace(tree, query=syntax.RelationToStream("istream", query))
        case syntax.ParenthesisedRef(item=item):
            return replace(tree, item=_as_istream(item, node))
        case _:
            raise AssertionError("only a lone table or query becomes a stream")
