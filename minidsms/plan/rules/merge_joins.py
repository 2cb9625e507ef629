"""Inner equi-joins become one n-way join.

A cascade of binary joins keeps every intermediate result as a bag; an n-way join keeps its inputs alone (Babu 2005,
section 3.2). Merged are inputs of any kind as far as equalities connect them, and products of three or more without any
condition; other conditions stand in a filter above. Two inputs are merged only where both are windows whose rows leave
in the order they came, also filtered and projected: for others the binary join is the faster one. The rule runs last:
it reads the columns of its inputs by number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from minidsms.cql import bound
from minidsms.cql.bound import Expr, JoinKind, Node, StreamKind
from minidsms.cql.functions import can_fail
from minidsms.cql.origins import equal_pair
from minidsms.cql.window_spec import WindowKind, WindowSpec
from minidsms.plan.logical import (
    Equality,
    MultiJoin,
    column_refs,
    columns_used,
    conjunction,
    conjuncts,
    filtered,
    nodes,
    projected,
    putting_out,
    reader_counts,
    rebuilt,
    renumbered,
    shift,
    unfiltered,
)
from minidsms.plan.rules.find_bands import find_bands
from minidsms.plan.rules.push_filters import push

_MOST_INPUTS = 12


def merge_joins(root: Node) -> Node:
    """Merge the inner joins; tell those that ISTREAM reads which columns it shows."""
    if not any(isinstance(node, bound.Join) for node in nodes(root)):
        return root
    before = reader_counts(root)
    root = rebuilt(root, lambda node, new: merged(new, [before[id(child)] == 1 for child in node.inputs]))
    root = find_bands(_parted(root))
    shown, passed, readers = shown_by_istream(root), _passed_by_rstream(root), reader_counts(root)

    def change(node: Node, new: Node) -> Node:
        if isinstance(node, MultiJoin) and isinstance(new, MultiJoin):
            new = dataclasses.replace(new, names=tuple(map(name_of, new.windows)))
            if id(node) in shown:
                return _over_streams(dataclasses.replace(new, shown=shown[id(node)]))
            if id(node) not in passed and (new.outer or _is_of_two_alone(node, new, readers)):
                return _over_streams(new)
        return new

    return rebuilt(root, change)


# ----------------------------------------------------------------------------------------------------------- merging


@dataclass
class _Part:
    """One side of a join: windows, equalities and other conditions among them, and where the side's columns stand."""

    windows: list[Node]
    equalities: list[Equality]
    columns: list[tuple[int, int]]
    rest: list[Expr]


def merged(node: Node, is_alone: Sequence[bool]) -> Node:
    """An inner join as an n-way one, with what stands below; a projection over one chooses its columns.

    is_alone: of each input, whether nothing else reads it.
    """
    if isinstance(node, bound.Join) and node.join is JoinKind.LEFT:
        return _joined(node, *(_Part([child], [], _columns(child), []) for child in node.inputs))
    if bound.is_inner_join(node):
        left, right = (_part(child, alone) for child, alone in zip(node.inputs, is_alone))
        return _joined(node, left, right)
    if isinstance(node, bound.Project) and is_alone[0]:
        join, above = unfiltered(node.input)
        return putting_out(node, join, above) if isinstance(join, MultiJoin) else node
    return node


def _part(node: Node, is_alone: bool) -> _Part:
    """The node as a side of an n-way join."""
    below, rest = unfiltered(node)
    if isinstance(below, MultiJoin) and is_alone and not below.outer and not any(map(can_fail, rest)):
        return _Part(list(below.windows), list(below.equalities), list(below.columns), rest)
    return _Part([node], [], _columns(node), [])


def _columns(node: Node) -> list[tuple[int, int]]:
    return [(0, c) for c in range(len(node.schema))]


def _is_fifo(node: Node) -> bool:
    """A window whose rows leave in the order they came, maybe filtered and projected."""
    return isinstance(bound.beneath(node), bound.Window) and node.is_fifo


def name_of(node: Node) -> str:
    """What FROM calls the window, or the declared name of a relation; else ""."""
    node = bound.beneath(node)
    return node.name if isinstance(node, bound.Window | bound.BaseRelation) else ""


def _joined(join: bound.Join, left: _Part, right: _Part) -> Node:
    width, moved = len(join.left.schema), len(left.windows)
    windows = left.windows + right.windows
    columns = left.columns + [(i + moved, c) for i, c in right.columns]
    equalities = left.equalities + [((i + moved, c), (j + moved, d)) for (i, c), (j, d) in right.equalities]
    rest = left.rest + [shift(e, width) for e in right.rest]
    linked = join.condition is None and not equalities and not rest
    for part in conjuncts(join.condition):
        pair = equal_pair(part, width)
        ends = None if pair is None else [_end(e, columns) for e in (pair[0], shift(pair[1], width))]
        if ends is None or ends[0] is None or ends[1] is None:
            rest.append(part)
            continue
        equalities.append((_place(ends[0], windows), _place(ends[1], windows)))
        linked = True
    if not linked or len(windows) > _MOST_INPUTS:
        return join
    is_outer = join.join is JoinKind.LEFT
    joined = MultiJoin(join.schema, tuple(windows), tuple(equalities), tuple(columns), outer=is_outer)
    assert not (is_outer and rest), "an outer join that is no union joins by equalities alone"
    return filtered(joined, rest)


def _end(expr: Expr, columns: Sequence[tuple[int, int]]) -> tuple[int, Expr] | None:
    """(input, expression over it) of one side of an equality; None where it reads several inputs, or none."""
    inputs = {columns[i][0] for i in columns_used(expr)}
    return (inputs.pop(), renumbered(expr, lambda i: columns[i][1])) if len(inputs) == 1 else None


def _place(end: tuple[int, Expr], windows: list[Node]) -> tuple[int, int]:
    """(input, column) of an equality's side; a computed one becomes a further column of its window."""
    i, expr = end
    if isinstance(expr, bound.ColumnRef):
        return i, expr.index
    schema = windows[i].schema
    windows[i] = projected(windows[i], [*column_refs(schema), expr], [*schema.names, f"key{len(schema) + 1}"])
    return i, len(schema)


def _parted(root: Node) -> Node:
    """The plan with binary joins again where two inputs were merged for which these are faster."""
    readers = reader_counts(root)

    def change(node: Node, new: Node) -> Node:
        was, (below, parts) = unfiltered(node)[0], unfiltered(new)
        if isinstance(node, MultiJoin) and len(node.windows) == 2:
            assert isinstance(new, MultiJoin)
            return new if node.equalities and all(map(_is_fifo, node.windows)) else _binary(new)
        if parts and isinstance(was, MultiJoin) and readers[id(was)] == 1 and not isinstance(below, MultiJoin):
            return push(below, parts, {})
        return new

    return rebuilt(root, change)


def _binary(join: MultiJoin) -> Node:
    """A join of two inputs as a binary one, with its columns chosen above."""
    left, right = join.windows
    schema, width = left.schema + right.schema, len(left.schema)

    def column(place: tuple[int, int]) -> bound.ColumnRef:
        at = place[1] + (width if place[0] == 1 else 0)
        return bound.ColumnRef(schema[at].type, at, schema[at].name)

    equal = [bound.Call(bound.Type.BOOLEAN, "=", (column(a), column(b))) for a, b in join.equalities]
    kind = JoinKind.LEFT if join.outer else JoinKind.INNER
    joined = bound.Join.of(left, right, conjunction(equal), kind)
    return projected(joined, [column(place) for place in join.columns], join.schema.names)


# ----------------------------------------------------------------------------------------------------------- netting


def shown_by_istream(root: Node) -> dict[int, tuple[int, ...]]:
    """For each join that only an ISTREAM reads, by id: its columns that stand unchanged in the stream's rows.

    Such a join may leave out deletions that cancel nothing: whatever is deleted was inserted once, and the filters and
    projections between treat both alike (docs/semantics S1).
    """
    readers = reader_counts(root)
    result: dict[int, tuple[int, ...]] = {}
    for stream in nodes(root):
        if not bound.is_stream_of(stream, StreamKind.ISTREAM):
            continue
        node, shown = stream.input, set(range(len(stream.input.schema)))
        while isinstance(node, bound.ByRow) and readers[id(node)] == 1:
            if isinstance(node, bound.Project):
                shown = {e.index for i in shown if isinstance(e := node.exprs[i], bound.ColumnRef)}
            node = node.input
        if isinstance(node, MultiJoin) and not node.outer and readers[id(node)] == 1:
            result[id(node)] = tuple(sorted(shown))
    return result


def _passed_by_rstream(root: Node) -> set[int]:
    """By id the joins of NOW windows below an RSTREAM, which passes on what they put out where they are given the
    windows' changes, netted by nobody (`plan.rules.pass_what_enters`).
    """
    found = set()
    for stream in nodes(root):
        if bound.is_stream_of(stream, StreamKind.RSTREAM) and not stream.ordered:
            join = bound.beneath(stream.input)
            windows = [] if not isinstance(join, MultiJoin) else join.windows[:1] if join.outer else join.windows
            if any(bound.is_now_window(bound.beneath(window)) for window in windows):
                found.add(id(join))
    return found


# --------------------------------------------------------------------------------------------------- without windows


def _over_streams(join: MultiJoin) -> MultiJoin:
    """A join that ISTREAM reads, or of two, over the streams themselves, where all its windows are ranges without
    SLIDE.

    No window need put out what leaves: the join sees it by the instants of the rows it holds. Filters and projections
    commute with range windows (docs/semantics W8).
    """
    taken = [stream_below(window) for window in join.windows]
    parts = [part for part in taken if part is not None]
    if len(parts) < len(taken):
        return join
    return dataclasses.replace(join, windows=tuple(s for s, _ in parts), specs=tuple(spec for _, spec in parts))


def _is_of_two_alone(before: MultiJoin, join: MultiJoin, readers: Mapping[int, int]) -> bool:
    """It has two inputs, and nobody else reads what is in them, which would then be held twice."""
    own = all(readers[id(node)] == 1 for window in before.windows for node in _down_to_window(window))
    return len(join.windows) == 2 and not join.bands and own


def _down_to_window(node: Node) -> Iterator[Node]:
    yield node
    while isinstance(node, bound.ByRow):
        node = node.input
        yield node


def stream_below(node: Node) -> tuple[Node, WindowSpec] | None:
    """The stream below a range window, with the filters and projections above the window, and what the window is."""
    window = bound.beneath(node)
    if not isinstance(window, bound.Window) or window.spec.slide is not None or not _is_base(window.input):
        return None
    is_range = window.spec.kind in (WindowKind.RANGE, WindowKind.UNBOUNDED)
    return (bound.moved_onto(node, window.input), window.spec) if is_range else None


def _is_base(node: Node) -> bool:
    """A stream as it was pushed, filtered and projected: its rows have arrival numbers of their own."""
    return isinstance(bound.beneath(node), bound.BaseStream)
