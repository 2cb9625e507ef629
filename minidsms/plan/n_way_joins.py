"""With which plan an n-way join begins, and what adapts it: pipelines, a tree that was written or adapts, or all that
there is.

Invariant: queries whose joins differ in what `SET join_plan` or `SET caching` asked for do not share an operator; their
answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from minidsms.cql.errors import CqlError
from minidsms.cql.scope import listing
from minidsms.elements import Schema
from minidsms.operators.operator import Operator
from minidsms.plan.input_names import input_names
from minidsms.plan.logical import MultiJoin
from minidsms.plan.written_join_plan import WORDS, Tree, tree_over
from minidsms.queues import Queue
from minidsms.streamon.content_routing.attributes import Attributes
from minidsms.streamon.stream_monitor import StreaMon
from minidsms.synopses.bag_windows import BagWindow
from minidsms.synopses.indexed_windows import IndexedWindow

if TYPE_CHECKING:
    from minidsms.joins.join import Join


def join_plan_of(node: MultiJoin, streamon: StreaMon) -> Hashable:
    """What the settings ask for a join: 'mjoin', 'xjoin' or 'auto', or a tree over its inputs.

    CqlError where a plan that was written out is not one of these inputs.
    """
    asked = str(streamon.settings["join_plan"])
    if asked not in WORDS:
        return tree_over(asked, input_names(node.names))
    return asked if len(node.windows) > 2 else "mjoin"


def plan_key(node: MultiJoin, streamon: StreaMon) -> Hashable:
    """What must be alike in the settings of two queries that share a join: its plan, its caching and its index."""
    asked = join_plan_of(node, streamon)
    if len(node.windows) < 3:
        return asked, node.bands and streamon.settings["join_index"] == "hash"
    return asked, _caching_of(asked, streamon), streamon.settings["join_index"], streamon.settings["routing"] == "auto"


def _caching_of(asked: Hashable, streamon: StreaMon) -> str:
    """The consistency of the caches that a join may have, or 'off': as asked for, else as goes with its plan."""
    caching = str(streamon.settings["caching"])
    if caching == "auto":
        return "global" if asked == "auto" else "off"
    return caching if asked in ("auto", "mjoin") else "off"


def n_way_join(
    node: MultiJoin,
    queues: Sequence[Queue],
    fifo: Sequence[bool] | None,
    streamon: StreaMon,
    attributes: Callable[[Schema], Attributes],
) -> Operator:
    """The operator that joins the windows in these queues, with what adapts it.

    fifo: of each input, whether its rows leave in the order they came; None where the join lets them go itself.
    attributes: by which rows may be told apart.
    """
    from minidsms.joins.join import Join
    from minidsms.joins.spec import JoinSpec

    ranges = None if node.specs is None else [spec.range_ for spec in node.specs if spec is not None]
    asked = join_plan_of(node, streamon)
    bands = () if streamon.settings["join_index"] == "hash" else node.bands
    spec = JoinSpec(node.equalities, node.columns, node.schema, node.shown, ranges, fifo, bands=bands)
    join = Join(queues, spec, input_names(node.names))
    if isinstance(asked, tuple):
        join.take_tree(_checked(asked, join))
    elif asked == "xjoin":
        join.take_tree(_first_tree(join))
    if len(queues) > 2:
        _adapt(join, asked, streamon, attributes)
    return join


def _adapt(join: Join, asked: Hashable, streamon: StreaMon, attributes: Callable[[Schema], Attributes]) -> None:
    """Let all of the join's plan adapt that was not asked for. What times a plan looks first: others may profile.

    Where steps go by bands, or by bit addresses, neither caches nor trees know what they find.
    """
    from minidsms.streamon.join_ordering.adaptive_orders import AdaptiveOrders
    from minidsms.streamon.join_watch import JoinWatch

    names, operator = join.names, f"MJoin {', '.join(join.names)}"
    has_bits = _has_bits(join, streamon)
    has_trees = asked in ("auto", "xjoin") and not join.graph.bands and not has_bits
    watch = JoinWatch(join, join.graph.n, streamon)
    join.watch_by(watch)
    caching = None
    consistency = _caching_of(asked, streamon)
    if consistency != "off" and not join.graph.bands and not has_bits:
        from minidsms.streamon.caching.adaptive_caches import AdaptiveCaches

        caching = AdaptiveCaches(join, names, operator, streamon, watch, consistency)
    if has_trees:
        from minidsms.streamon.join_trees.adaptive_trees import AdaptiveTrees

        watch.add(AdaptiveTrees(join, names, operator, streamon, watch, asked == "xjoin", caching))
    if caching is not None:
        watch.add(caching)
    if has_bits:
        from minidsms.streamon.join_index.adaptive_bits import AdaptiveBits

        watch.add(AdaptiveBits(join, names, operator, streamon, watch))
    elif streamon.settings["join_index"] in ("auto", "patterns") and join.graph.has_patterns:
        from minidsms.streamon.join_index.adaptive_index import AdaptiveIndex

        watch.add(AdaptiveIndex(join, names, operator, streamon, watch, streamon.settings["join_index"] == "patterns"))
    orders = AdaptiveOrders(join, names, operator, streamon, watch)
    watch.add(orders)
    if streamon.settings["routing"] == "auto":
        from minidsms.streamon.join_routing.adaptive_routes import AdaptiveRoutes

        kept = [Schema(tuple(window.schema[c] for c in _told_apart(window))) for window in join.index.windows]
        join.tell_apart_by([attributes(schema) for schema in kept])
        able = {i: attributes(schema) for i, schema in enumerate(kept) if i in orders.filters}
        routable = {i: each for i, each in able.items() if each.readings()}
        watch.add(AdaptiveRoutes(join, orders, operator, streamon, watch, routable))


def _told_apart(window: IndexedWindow | BagWindow) -> Sequence[int]:
    """The columns by which its rows may be told apart: those it keeps, if rows leave in the order they came."""
    return window.kept if isinstance(window, IndexedWindow) else ()


def _has_bits(join: Join, streamon: StreaMon) -> bool:
    """Bits were asked for, and the join can have them: equalities link all inputs, and it keeps no results."""
    graph = join.graph
    return streamon.settings["join_index"] == "bit_address" and graph.is_connected and join.uses_orders


def _first_tree(join: Join) -> Tree:
    """A tree of two-way joins to begin with. CqlError where equalities do not link all inputs."""
    from minidsms.joins.tree import left_deep

    if not join.graph.is_connected:
        raise CqlError(
            "join_plan = xjoin needs equalities that link all inputs of the join",
            note=f"this query joins: {listing(join.names)}",
            hint="SET join_plan = mjoin",
        )
    return left_deep(join.graph)


def _checked(tree: Tree, join: Join) -> Tree:
    """The tree in normal form; CqlError where it takes a Cartesian product that can be avoided."""
    from minidsms.joins.tree import normal, tree_text, unlinked

    apart = unlinked(tree, join.graph)
    if apart is not None:
        raise CqlError(
            f"join_plan joins {tree_text(apart, join.names)}, which no equality of the query links",
            hint="join linked inputs first, or SET join_plan = mjoin",
        )
    return normal(tree)
