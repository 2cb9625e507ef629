"""Queries: blocks, set operators and relation-to-stream operators put together (docs/semantics R1, S1 to S3, D1).

Invariant: the tree beside a node says in CQL what the node means, with every default written out (D4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from minidsms.cql import bound, syntax
from minidsms.cql.blocks import BlockBinder
from minidsms.cql.bound import SetKind, StreamKind
from minidsms.cql.coercion import coerce_columns
from minidsms.cql.expression_binder import Context
from minidsms.cql.functions import can_cast, common_type
from minidsms.cql.grouping_sets import has_sets, one_by_one
from minidsms.cql.rewriting import outer_columns
from minidsms.cql.scope import listing
from minidsms.cql.session import Piece, Session
from minidsms.cql.sources import named_columns
from minidsms.cql.values import bind_values, over_one_row
from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.elements import Field, Schema, Type


class QueryBinder:
    """Binds queries of one text: blocks, set operators and relation-to-stream operators."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def bind(self, query: syntax.Query, outer: Context | None, correlated: bool) -> Piece:
        """A query, as a stream or a relation. outer: the enclosing query; correlated: its row may be used."""
        match query:
            case syntax.Select() if has_sets(query):
                block = BlockBinder(self.session, outer, correlated, self._from_item, self.relation)
                select, scope = block.with_names(query)
                return self.bind(one_by_one(self.session, select, scope), outer, correlated)
            case syntax.Limited(query=select) if has_sets(select):
                block = BlockBinder(self.session, outer, correlated, self._from_item, self.relation)
                select, scope = block.with_names(select)
                return self.bind(one_by_one(self.session, replace(query, query=select), scope), outer, correlated)
            case syntax.Select():
                return BlockBinder(self.session, outer, correlated, self._from_item, self.relation).bind(query)
            case syntax.Limited(query=select):
                block = BlockBinder(self.session, outer, correlated, self._from_item, self.relation)
                return block.bind(select, query)
            case syntax.Values():
                over = over_one_row(self.session, query, correlated)
                return bind_values(self.session, query) if over is None else self.bind(over, outer, correlated)
            case syntax.SetOperation():
                return self._set_operation(query, outer, correlated)
            case syntax.RelationToStream(op=op, query=inner):
                # A stream per outer row would have no meaning: under the operator the enclosing row is out of reach.
                piece = self._as_relation(self.bind(inner, outer, False))
                kind = StreamKind[op.upper()]
                node = bound.to_stream(kind, piece.node, self.session.catalog.rstream_ticks)
                return Piece(node, replace(query, query=piece.tree))
            case syntax.With():
                return self._with(query, outer, correlated)
            case _:
                assert_never(query)

    def _with(self, query: syntax.With, outer: Context | None, correlated: bool) -> Piece:
        """The query, in whose names and in those of the tables behind it each common table is one node."""
        inside = QueryBinder(self.session.within())
        tables: list[syntax.CommonTable] = []
        for table in query.tables:
            piece = inside.bind(table.query, outer, False)
            node = named_columns(self.session, piece.node, table.columns, table.span)
            inside = QueryBinder(inside.session.within())
            inside.session.common[table.name.lower()] = Piece(node, piece.tree)
            tables.append(replace(table, query=piece.tree))
        piece = inside.bind(query.query, outer, correlated)
        return Piece(piece.node, replace(query, tables=tuple(tables), query=piece.tree))

    def relation(self, query: syntax.Query, outer: Context) -> Piece:
        """A subquery of an expression: a relation, which may use the enclosing row."""
        return self._as_relation(self.bind(query, outer, True))

    def _from_item(self, query: syntax.Query, outer: Context | None, correlated: bool) -> Piece:
        """A query in FROM: where it uses no enclosing row the same text is the same node, whatever stands around it."""
        known = self.session.tables.get(query)
        if known is not None and not correlated:
            return known
        # Here a name may be a column of an enclosing query that was the block's own elsewhere.
        piece = self.bind(query, outer, correlated)
        looks_out = correlated and outer_columns(piece.node)
        return piece if looks_out else self.session.tables.setdefault(query, piece)

    def _as_relation(self, piece: Piece) -> Piece:
        """A stream where a relation is wanted gets [RANGE UNBOUNDED] (D1)."""
        if piece.node.kind == "relation":
            return piece
        node = piece.node
        window = bound.Window(node.schema, node, WindowSpec(WindowKind.UNBOUNDED))
        ref = syntax.QueryRef(piece.tree, syntax.UnboundedWindow())
        names = [name.lower() for name in node.schema.names]
        if len(set(names)) == len(names):
            items = tuple(syntax.SelectItem(syntax.Name(n)) for n in node.schema.names)
        else:
            items = (syntax.SelectItem(syntax.Star()),)
        return Piece(window, syntax.Select(items, (ref,)))

    def _by_names(self, node: bound.Node, names: Sequence[str], written: syntax.Query) -> bound.Node:
        """The relation with columns of these names, NULL for those that it does not have."""
        there = [name.lower() for name in node.schema.names]
        twice = next((name for name in there if there.count(name) > 1), None)
        if twice is not None:
            reason = f'BY NAME: several columns are called "{twice}"'
            raise self.session.error(reason, written.span, "", "rename one with AS")
        own = dict(zip(there, bound.column_refs(node.schema)))
        exprs = [own.get(name.lower(), bound.Literal(Type.NULL, None)) for name in names]
        return bound.projected(node, exprs, names)

    def _set_operation(self, query: syntax.SetOperation, outer: Context | None, correlated: bool) -> Piece:
        left = self._as_relation(self.bind(query.left, outer, correlated))
        right = self._as_relation(self.bind(query.right, outer, correlated))
        a, b = left.node, right.node
        if query.by_name:
            there = {name.lower() for name in a.schema.names}
            names = [*a.schema.names, *(name for name in b.schema.names if name.lower() not in there)]
            a, b = self._by_names(a, names, query.left), self._by_names(b, names, query.right)
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
                odd, wanted = (mine, theirs) if theirs.type is Type.TEXT else (theirs, mine)
                raise self.session.error(
                    f"{word} cannot bring together {mine.name}, which is {mine.type}, and {theirs.name}, "
                    f"which is {theirs.type}",
                    query.right.span,
                    hint=f"convert one of them: CAST({odd.name} AS {wanted.type})"
                    if can_cast(odd.type, wanted.type)
                    else "",
                )
            types.append(common)
        a = coerce_columns(self.session, a, types, query.left.span)
        b = coerce_columns(self.session, b, types, query.right.span)
        schema = Schema(tuple(Field(f.name, t) for f, t in zip(a.schema, types)))
        every = query.all or self.session.catalog.bag_set_operations
        node = bound.SetOperation(schema, SetKind[word], every, a, b)
        return Piece(node, replace(query, all=every, left=left.tree, right=right.tree))
