"""The binder: from a syntax tree to what it means (docs/semantics R1 to R5, S1 to S3, D1 to D4).

`bind` resolves names, settles types and writes the defaults out; the result is a `bound.Node` for the planner and a
syntax tree for EXPLAIN. Views are bound first, each once, those that others stand on before those others.

Invariant: whatever the tree, `bind` returns or raises CqlError.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from minidsms.cql import bound, syntax
from minidsms.cql.blocks import BlockBinder
from minidsms.cql.bound import SetKind, StreamKind, WindowKind
from minidsms.cql.catalog import Catalog, ViewDef
from minidsms.cql.coercion import coerce_columns
from minidsms.cql.defaults import is_monotonic, to_stream
from minidsms.cql.errors import CqlError
from minidsms.cql.expression_binder import Context
from minidsms.cql.functions import common_type
from minidsms.cql.scope import listing
from minidsms.cql.session import Piece, Session, parts
from minidsms.elements import Field, Schema, Type

__all__ = ["Bound", "bind", "bind_view", "is_monotonic"]


@dataclass(frozen=True)
class Bound:
    """A bound query.

    node: what it means.  expanded: the tree with every default written out (D4).  streams, relations: what it reads, by
    the names they were declared under.  warnings: what the author may not have meant, in words.
    """

    node: bound.Node
    expanded: syntax.Query
    streams: tuple[str, ...]
    relations: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def bind(query: syntax.Query, catalog: Catalog, text: str) -> Bound:
    """What an outermost query means; a monotonic relation becomes its ISTREAM (D2). Raises CqlError."""
    session = Session(catalog, text)
    try:
        piece = _bind_with_views(query, session)
        node, tree = piece.node, piece.tree
        if node.kind == "relation" and is_monotonic(node):
            node = to_stream(StreamKind.ISTREAM, node, catalog.rstream_ticks)
            tree = syntax.RelationToStream("istream", tree, span=tree.span)
    except RecursionError:
        raise CqlError("the query nests too deeply", hint="split it with CREATE VIEW") from None
    return Bound(
        node,
        tree,
        tuple(s.name for s in session.streams.values()),
        tuple(r.name for r in session.relations.values()),
        tuple(session.warnings),
    )


def bind_view(view: ViewDef, catalog: Catalog) -> bound.Node:
    """What a view means, under its own column names. Raises CqlError."""
    session = Session(catalog, view.text)
    try:
        _bind_views(view.query, session)
        return _bind_one_view(view, session).node
    except RecursionError:
        raise CqlError("the view nests too deeply") from None


# ------------------------------------------------------------------------------------------------------------ views


def _bind_with_views(query: syntax.Query, session: Session) -> Piece:
    _bind_views(query, session)
    return QueryBinder(session).bind(query, None, False)


def _views_named(query: syntax.Query, catalog: Catalog) -> list[str]:
    """The views a query names, by key."""
    names = (part.name.lower() for part in parts(query) if isinstance(part, syntax.TableRef))
    return [name for name in dict.fromkeys(names) if catalog.kind_of(name) == "view"]


def _bind_views(query: syntax.Query, session: Session) -> None:
    """Bind every view the query stands on, deepest first: a loop, so that a long chain of views needs no stack."""
    catalog = session.catalog
    pending = [(name, False) for name in reversed(_views_named(query, catalog))]
    open_: set[str] = set()
    while pending:
        name, ready = pending.pop()
        if name in session.views:
            continue
        view = catalog.views[name]
        if ready:
            session.views[name] = _bind_one_view(view, session)
            open_.discard(name)
            continue
        if name in open_:
            raise CqlError(f'the view "{view.name}" is defined by itself', hint="drop it and create it anew")
        open_.add(name)
        pending.append((name, True))
        pending.extend((n, False) for n in reversed(_views_named(view.query, catalog)))


def _bind_one_view(view: ViewDef, session: Session) -> Piece:
    own = session.with_text(view.text)
    piece = QueryBinder(own).bind(view.query, None, False)
    node = piece.node
    count = len(node.schema)
    for given, what in ((len(view.columns), "names"), (len(view.types), "types")):
        if given and given != count:
            raise own.error(
                f'the view "{view.name}" has {given} column {what} for {count} columns',
                view.query.span,
                f"the query gives: {listing(node.schema.names)}",
            )
    if view.types:
        node = _typed(own, view, node)
    if view.columns:
        node = replace(node, schema=bound.named(node.schema, view.columns))
    return Piece(node, piece.tree)


def _typed(session: Session, view: ViewDef, node: bound.Node) -> bound.Node:
    """The view's relation or stream with the column types a script's `vtable` gives."""
    for column, want in zip(node.schema, view.types):
        if common_type((column.type, want)) is not want:
            raise session.error(
                f'column "{column.name}" of the view "{view.name}" is {column.type}, not {want}',
                view.query.span,
                "",
                f"declare it as {column.type}, or write CAST({column.name} AS {want}) in the query",
            )
    if not isinstance(node, bound.RelationToStream):
        return coerce_columns(session, node, view.types, view.query.span)
    inner = coerce_columns(session, node.input, view.types, view.query.span)
    return node if inner is node.input else to_stream(node.op, inner, node.ticks)


# ---------------------------------------------------------------------------------------------------------- queries


class QueryBinder:
    """Binds queries of one text: blocks, set operators and relation-to-stream operators."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def bind(self, query: syntax.Query, outer: Context | None, correlated: bool) -> Piece:
        """A query, as a stream or a relation. outer: the enclosing query; correlated: WHERE may use its row."""
        match query:
            case syntax.Select():
                block = BlockBinder(self.session, outer, correlated, self._from_item, self.relation)
                return block.bind(query)
            case syntax.SetOperation():
                return self._set_operation(query, outer, correlated)
            case syntax.RelationToStream(op=op, query=inner):
                # A stream per outer row would have no meaning: under the operator the enclosing row is out of reach.
                piece = self._as_relation(self.bind(inner, outer, False))
                kind = StreamKind[op.upper()]
                node = to_stream(kind, piece.node, self.session.catalog.rstream_ticks)
                return Piece(node, replace(query, query=piece.tree))
            case _:
                raise AssertionError(f"no rule for {type(query).__name__}")

    def relation(self, query: syntax.Query, outer: Context) -> Piece:
        """A subquery of an expression: a relation, which may use the enclosing row in its WHERE."""
        return self._as_relation(self.bind(query, outer, True))

    def _from_item(self, query: syntax.Query, outer: Context | None) -> Piece:
        return self.bind(query, outer, False)

    def _as_relation(self, piece: Piece) -> Piece:
        """A stream where a relation is wanted gets [RANGE UNBOUNDED] (D1)."""
        if piece.node.kind == "relation":
            return piece
        node = piece.node
        window = bound.Window(node.schema, node, bound.WindowSpec(WindowKind.UNBOUNDED))
        ref = syntax.QueryRef(piece.tree, syntax.UnboundedWindow())
        names = [name.lower() for name in node.schema.names]
        if len(set(names)) == len(names):
            items = tuple(syntax.SelectItem(syntax.Name(n)) for n in node.schema.names)
        else:
            items = (syntax.SelectItem(syntax.Star()),)
        return Piece(window, syntax.Select(items, (ref,)))

    def _set_operation(self, query: syntax.SetOperation, outer: Context | None, correlated: bool) -> Piece:
        left = self._as_relation(self.bind(query.left, outer, correlated))
        right = self._as_relation(self.bind(query.right, outer, correlated))
        a, b = left.node, right.node
        word = query.op.upper()
        if len(a.schema) != len(b.schema):
            raise self.session.error(
                f"{word} needs as many columns on the right as on the left: {len(b.schema)} are not {len(a.schema)}",
                query.right.span,
                f"left: {listing(a.schema.names)}; right: {listing(b.schema.names)}",
            )
        types: list[Type] = []
        for mine, theirs in zip(a.schema, b.schema):
            common = common_type((mine.type, theirs.type))
            if common is None:
                raise self.session.error(
                    f"{word} cannot bring together {mine.name}, which is {mine.type}, and {theirs.name}, "
                    f"which is {theirs.type}",
                    query.right.span,
                    hint=f"convert one of them: CAST({theirs.name} AS {mine.type})",
                )
            types.append(common)
        a = coerce_columns(self.session, a, types, query.left.span)
        b = coerce_columns(self.session, b, types, query.right.span)
        schema = Schema(tuple(Field(f.name, t) for f, t in zip(a.schema, types)))
        every = query.all or self.session.catalog.bag_set_operations
        node = bound.SetOperation(schema, SetKind[word], every, a, b)
        return Piece(node, replace(query, all=every, left=left.tree, right=right.tree))
