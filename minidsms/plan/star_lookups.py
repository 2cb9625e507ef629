"""Joins of a stream's NOW window with several relations become lookups, one behind the other.

Where only what enters is of use (`plan.rules.pass_what_enters`), and so below ISTREAM (`stream_of_instants`), an
element of the stream need be kept for nobody. An n-way join, which changes its orders as it runs, saves more than
lookups do where a relation may have many rows of a key; where each but the last has at most one, in a star, no order
makes them meet more. A join whose plan was asked for by `SET join_plan` stays as it is.

It comes behind the rewrite rules, which know no keys and settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minidsms.cql import bound
from minidsms.cql.bound import Node, StreamKind
from minidsms.cql.catalog import Catalog
from minidsms.elements import Schema
from minidsms.plan.logical import (
    Entering,
    Equality,
    LogicalPlan,
    LookupJoin,
    MultiJoin,
    NewRows,
    Stop,
    nodes,
    reader_counts,
)
from minidsms.settings import SettingValues


def look_up_stars(plan: LogicalPlan, catalog: Catalog, settings: SettingValues) -> LogicalPlan:
    """The plan with such joins replaced."""
    if settings["join_plan"] != "auto":
        return plan
    readers = reader_counts(plan.root)
    done: dict[int, Node] = {}

    def entering(node: Node, schema: Schema) -> Node | None:
        """What enters a star, filtered and projected."""
        if readers[id(node)] > 1:
            return None
        if isinstance(node, bound.ByRow):
            below = entering(node.input, node.input.schema)
            return None if below is None else node.over([below])
        join = done[id(node)]
        if not isinstance(join, MultiJoin) or join.outer or join.bands or join.specs:
            return None
        return _lookups(join, schema, catalog)

    for node in nodes(plan.root):
        star: Node | None = None
        if isinstance(node, Entering):
            star = entering(node.input, node.schema)
        elif bound.is_stream_of(node, StreamKind.ISTREAM) and not node.ordered:
            stream = entering(node.input, node.input.schema)
            star = None if stream is None else NewRows(node.schema, stream)
        done[id(node)] = star or node.over([done[id(child)] for child in node.inputs])
    root = done[id(plan.root)]
    if root is plan.root:
        return plan
    assert isinstance(root, Stop)
    return LogicalPlan((*plan.stages, ("look up stars", root)), plan.notes)


def _lookups(join: MultiJoin, schema: Schema, catalog: Catalog) -> Node | None:
    """None where that is no star."""
    streams = [i for i, window in enumerate(join.windows) if _stream(window) is not None]
    if len(streams) != 1:
        return None
    begins = streams[0]
    order = _order(join, begins, catalog)
    node = _stream(join.windows[begins])
    if order is None or node is None:
        return None
    read = {*join.columns, *(place for equality in join.equalities for place in equality)}
    given = [(begins, c) for c in range(len(node.schema))]
    for met, i in enumerate(order):
        keys = tuple((given.index(a), b[1]) for a, b in _links(join.equalities, i, {begins, *order[:met]}))
        is_last = met == len(order) - 1
        mine = [(i, c) for c in range(len(join.windows[i].schema)) if (i, c) in read]
        columns = join.columns if is_last else tuple(given) + tuple(mine)
        fields = schema if is_last else Schema(tuple(join.windows[k].schema[c] for k, c in columns))
        places = tuple((1, c) if k == i else (0, given.index((k, c))) for k, c in columns)
        node, given = LookupJoin(fields, node, join.windows[i], keys, places, outer=False), list(columns)
    return node


def _stream(node: Node) -> Node | None:
    """The stream below a NOW window, with the filters and projections above the window."""
    window = bound.beneath(node)
    return bound.moved_onto(node, window.input) if bound.is_now_window(window) else None


def _order(join: MultiJoin, begins: int, catalog: Catalog) -> list[int] | None:
    """The relations, each linked to those before it: first those that have at most one row of a key. None where several
    have more, or nothing links one.
    """
    order: list[int] = []
    rest = [i for i in range(len(join.windows)) if i != begins]
    while rest:
        links = {i: _links(join.equalities, i, {begins, *order}) for i in rest}
        unique = [i for i in rest if _has_key(join.windows[i], (b[1] for _, b in links[i]), catalog)]
        following = unique[0] if unique else rest[0]
        if not unique and (len(rest) > 1 or not links[following]):
            return None
        order.append(following)
        rest.remove(following)
    return order


def _has_key(node: Node, columns: Iterable[int], catalog: Catalog) -> bool:
    among = set(columns)
    return any(key <= among for key in node.known_keys(catalog)) and bool(among)


def _links(equalities: Sequence[Equality], i: int, known: set[int]) -> list[Equality]:
    """The equalities of input i with known ones, these first."""
    either = [pair for a, b in equalities for pair in ((a, b), (b, a))]
    return [(a, b) for a, b in either if b[0] == i and a[0] in known]
