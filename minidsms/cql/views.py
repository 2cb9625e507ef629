"""Views: bound before the query that names them, each once, those that others stand on before those others.

Invariant: however often a view is named in a session, it is one node. What declarations have bound is kept only to
look at the views that stand on it: it shares no node with a query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, replace

from minidsms.counted import counted
from minidsms.cql import bound, syntax
from minidsms.cql.catalog import Catalog, ViewDef
from minidsms.cql.coercion import coerce_columns
from minidsms.cql.errors import CqlError
from minidsms.cql.functions import common_type
from minidsms.cql.queries import QueryBinder
from minidsms.cql.scope import listing
from minidsms.cql.session import Piece, Session, tables_named


@dataclass(frozen=True)
class BoundView:
    """A view as a declaration has bound it.  named: the views it stands on.  counted: inputs and literals in it."""

    view: ViewDef
    piece: Piece
    named: tuple[str, ...]
    counted: Counter[str]


def bind_view(view: ViewDef, catalog: Catalog) -> bound.Node:
    """What a view means, under its own column names. Raises CqlError."""
    session = Session(catalog, view.text)
    known = catalog.bound_views()
    try:
        bind_views(view.query, session, known)
        return _bind_once(view, session, known).node
    except RecursionError:
        raise CqlError("the view nests too deeply") from None


def check_views(views: Iterable[ViewDef], catalog: Catalog, text: str, span: syntax.Span) -> None:
    """CqlError, at the span of the text that declares something anew, where one of the views cannot stand on that."""
    for view in views:
        try:
            bind_view(view, catalog)
        except CqlError as error:
            reason = f"the view {view.name} cannot stand on this: {error.reason}"
            raise CqlError(reason, text, span, "", f"DROP VIEW {view.name} first") from None


def _views_named(query: syntax.Query, catalog: Catalog) -> list[str]:
    """The views a query names, by key."""
    if not catalog.views:
        return []
    return [name for name in tables_named(query) if catalog.kind_of(name) == "view"]


def bind_views(query: syntax.Query, session: Session, known: MutableMapping[str, BoundView] | None = None) -> None:
    """Bind every view the query stands on, deepest first: a loop, so that a long chain of views needs no stack.

    known: what was bound before and holds still; new views are added.
    """
    catalog = session.catalog
    pending = [(name, False) for name in reversed(_views_named(query, catalog))]
    open_: set[str] = set()
    while pending:
        name, ready = pending.pop()
        if name in session.views:
            continue
        view = catalog.views[name]
        if ready:
            session.views[name] = _bind_once(view, session, known)
            open_.discard(name)
            continue
        if name in open_:
            raise CqlError(f'the view "{view.name}" is defined by itself', hint="drop it and create it anew")
        open_.add(name)
        pending.append((name, True))
        before = None if known is None else known.get(name)
        names = _views_named(view.query, catalog) if before is None else before.named
        pending.extend((n, False) for n in reversed(names))


def _bind_once(view: ViewDef, session: Session, known: MutableMapping[str, BoundView] | None) -> Piece:
    """The view, bound where it is not known; its inputs and literals count either way."""
    key = view.name.lower()
    before = None if known is None else known.get(key)
    if before is not None and before.view is view:
        for what, n in before.counted.items():
            session.count(what, n, view.query.span)
        return before.piece
    counted = session.counted.copy()
    piece = _bind_one_view(view, session)
    if known is not None:
        names = tuple(_views_named(view.query, session.catalog))
        known[key] = BoundView(view, piece, names, session.counted - counted)
    return piece


def _bind_one_view(view: ViewDef, session: Session) -> Piece:
    own = session.with_text(view.text)
    piece = QueryBinder(own).bind(view.query, None, False)
    node = piece.node
    count = len(node.schema)
    for given, what in ((len(view.columns), "column name"), (len(view.types), "column type")):
        if given and given != count:
            raise own.error(
                f'the view "{view.name}" has {counted(given, what)} for {counted(count, "column")}',
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
    return node if inner is node.input else bound.to_stream(node.op, inner, node.ticks)
