"""The binder: from a syntax tree to what it means (docs/semantics R1 to R5, S1 to S3, D1 to D4).

`bind` resolves names, settles types and writes the defaults out; the result is a `bound.Node` for the planner and a
syntax tree for EXPLAIN. `stream_def`, `relation_def` and `view_def` do the same for declarations.

The way down: binder, views, queries (set and stream operators), blocks (SELECT), sources (FROM), expression_binder;
beside it scope (names), coercion (types), windows and times, aggregates, defaults.

Invariant: whatever the tree, `bind` returns or raises CqlError.
"""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.cql import bound, syntax
from minidsms.cql.bound import StreamKind
from minidsms.cql.catalog import Catalog
from minidsms.cql.declarations import relation_def, stream_def, view_def
from minidsms.cql.defaults import is_monotonic
from minidsms.cql.errors import CqlError
from minidsms.cql.queries import QueryBinder
from minidsms.cql.session import Session
from minidsms.cql.views import bind_view, bind_views

__all__ = ["Bound", "bind", "bind_view", "is_monotonic", "relation_def", "stream_def", "view_def"]


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
        bind_views(query, session)
        piece = QueryBinder(session).bind(query, None, False)
        node, tree = piece.node, piece.tree
        if node.kind == "relation" and is_monotonic(node):
            node = bound.to_stream(StreamKind.ISTREAM, node, catalog.rstream_ticks)
            tree = syntax.RelationToStream("istream", tree, span=tree.span)
    except RecursionError:
        raise CqlError("the query nests too deeply", hint="split it with CREATE VIEW") from None
    read = set(map(id, bound.with_subqueries(node)))  # not what a WITH names for nobody
    streams = tuple(s.name for s in session.streams.values() if id(s) in read)
    relations = tuple(r.name for r in session.relations.values() if id(r) in read)
    return Bound(node, tree, streams, relations, tuple(session.warnings))
