"""RSTREAM of rows that last an instant passes on what enters: there is nothing else at that instant.

Rows of a NOW window, and what joins make of them, leave at the next tick. So all that is present at an instant has come
at it. Whatever comes is present, too: windows put out no row that comes and leaves at one instant, and joins the
deletions of an instant before its insertions. No account of the rows present is kept, and nobody asks at which instants
to speak (docs/semantics S2).

    RSTREAM (SELECT * FROM S [NOW] JOIN R ON R.k = S.k)

What stands between becomes the same of a stream: a NOW window is its stream, what chooses rows and computes columns is
given what enters alone, and a join with a relation whose rows last looks them up.

It holds where the rows of an instant need no order by value (T3). A join that lets rows go by itself nets what it puts
out, a row of the instant before with an equal one of now, and is left as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minidsms.cql import bound
from minidsms.cql.bound import Expr, JoinKind, Node, StreamKind
from minidsms.cql.origins import equal_pairs
from minidsms.plan.logical import (
    Entering,
    LookupJoin,
    MultiJoin,
    NewRows,
    column_refs,
    conjuncts,
    filtered,
    momentary,
    nodes,
    projected,
    putting_out,
    reader_counts,
)


def pass_what_enters(root: Node) -> Node:
    """Replace each such relation-to-stream operator."""
    streams = _Streams(reader_counts(root), momentary(root))
    for node in nodes(root):
        streams.visit(node)
    return streams.done[id(root)]


class _Streams:
    """done: what nodes have become, by id."""

    def __init__(self, readers: Mapping[int, int], momentary: set[int]) -> None:
        self.done: dict[int, Node] = {}
        self._readers = readers
        self._momentary = momentary
        self._netting: set[int] = set()
        """Of RSTREAM, the nodes that stay what they are."""

    def visit(self, node: Node) -> None:
        """Note what becomes of it; inputs first."""
        is_rstream = bound.is_stream_of(node, StreamKind.RSTREAM) and not node.ordered
        if is_rstream and id(node.inputs[0]) in self._momentary:
            new = self._stream(node.inputs[0])
            if new.schema != node.schema:
                is_named = isinstance(new, Entering | LookupJoin | bound.Project)
                as_named = projected(new, column_refs(new.schema), node.schema.names)
                new = dataclasses.replace(new, schema=node.schema) if is_named else as_named
        else:
            new = node.over([self.done[id(child)] for child in node.inputs])
            self._netting.update([id(node)] if is_rstream else [])
        if isinstance(new, NewRows) and id(node.inputs[0]) in self._netting:
            # What lasts an instant where rules began has become a join that lets rows go by itself.
            assert bound.is_stream_of(new.input, StreamKind.RSTREAM)
            new = dataclasses.replace(new.input, op=StreamKind.ISTREAM)
        self.done[id(node)] = new

    def _stream(self, node: Node) -> Node:
        """What enters a relation whose rows last an instant."""
        if isinstance(node, bound.Window):
            return self.done[id(node.input)]
        below, is_alone = self.done[id(node)], self._readers[id(node)] == 1
        if isinstance(node, bound.ByRow) and is_alone:
            stream = self._stream(node.input)
            if isinstance(node, bound.Project) and isinstance(stream, LookupJoin):
                return putting_out(node, stream)
            return node.over([stream])
        if isinstance(node, bound.SetOperation) and is_alone:
            return node.over([self._stream(child) for child in node.inputs])
        if isinstance(node, bound.Join | MultiJoin) and is_alone:
            found = self._looked_up(node)
            if found is not None:
                return found
            assert isinstance(below, bound.Join | MultiJoin)
            below = dataclasses.replace(below, only_enters=True)
        return Entering(below.schema, below)

    def _looked_up(self, join: bound.Join | MultiJoin) -> Node | None:
        """The join where one of two inputs is momentary, and looks up the rows of the other."""
        is_momentary = [id(child) in self._momentary for child in join.inputs]
        matching = _matching(join) if sorted(is_momentary) == [False, True] else None
        if matching is None:
            return None
        which = is_momentary.index(True)
        relation = self.done[id(join.inputs[1 - which])]
        if matching.is_banded and (matching.pairs or not relation.has_one_row):
            return None
        stream = self._stream(join.inputs[which])
        stream, own = _with_columns(stream, [pair[which] for pair in matching.pairs])
        relation, others = _with_columns(relation, [pair[1 - which] for pair in matching.pairs])
        columns = tuple((int(i != which), c) for i, c in matching.columns)
        looked_up = LookupJoin(join.schema, stream, relation, tuple(zip(own, others)), columns, matching.outer)
        return filtered(looked_up, matching.rest)


@dataclass(frozen=True)
class _Matching:
    """How a join of two matches rows. pairs: of expressions over either that are equal.  columns: the (input, column)
    of each that it gives.  rest: what else it asks of these.  is_banded: it need not find pairs outside of a band.
    """

    pairs: Sequence[tuple[Expr, Expr]]
    columns: Sequence[tuple[int, int]]
    outer: bool
    rest: Sequence[Expr] = ()
    is_banded: bool = False


def _matching(join: bound.Join | MultiJoin) -> _Matching | None:
    """None where a lookup does not find the same."""
    if isinstance(join, MultiJoin):
        refs = [column_refs(window.schema) for window in join.windows]
        sides = [{i: refs[i][c] for i, c in equality} for equality in join.equalities]
        equal = [(side[0], side[1]) for side in sides]
        return _Matching(equal, join.columns, join.outer, is_banded=bool(join.bands))
    width = len(join.left.schema)
    pairs, rest = equal_pairs(conjuncts(join.condition), width)
    outer = join.join is JoinKind.LEFT
    if outer and rest:
        return None
    columns = [(0, c) for c in range(width)] + [(1, c) for c in range(len(join.right.schema))]
    return _Matching(pairs, columns, outer, rest)


def _with_columns(node: Node, exprs: Sequence[Expr]) -> tuple[Node, list[int]]:
    """The node with further columns where expressions are computed, and where each expression stands."""
    refs = column_refs(node.schema)
    further = [e for e in exprs if not isinstance(e, bound.ColumnRef)]
    names = [f"key{len(refs) + k + 1}" for k in range(len(further))]
    places = iter(range(len(refs), len(refs) + len(further)))
    at = [e.index if isinstance(e, bound.ColumnRef) else next(places) for e in exprs]
    return projected(node, [*refs, *further], [*node.schema.names, *names]), at
