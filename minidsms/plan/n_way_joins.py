"""Which operator joins the windows of an n-way join: an MJoin, an XJoin with a tree that was written or adapts, or one
that chooses between these and caches.

Invariant: queries whose joins differ in what `SET join_plan` or `SET caching` asked for do not share an operator; their
answers are the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, cast

from minidsms.cql.errors import CqlError
from minidsms.cql.scope import listing
from minidsms.operators.operator import Operator
from minidsms.plan.input_names import input_names
from minidsms.plan.logical import MultiJoin
from minidsms.plan.written_join_plan import WORDS, Tree, tree_over
from minidsms.queues import Queue
from minidsms.streamon.stream_monitor import StreaMon

if TYPE_CHECKING:
    from minidsms.operators.cached_mjoin import CachedMJoin
    from minidsms.operators.mjoin import MJoin
    from minidsms.operators.xjoin import XJoin


def join_plan_of(node: MultiJoin, streamon: StreaMon) -> Hashable:
    """What the settings ask for a join: 'mjoin', 'xjoin' or 'auto', or a tree over its inputs.

    CqlError where a plan that was written out is not one of these inputs.
    """
    asked = str(streamon.settings["join_plan"])
    if asked not in WORDS:
        return tree_over(asked, input_names(node.names))
    return asked if len(node.windows) > 2 else "mjoin"


def plan_key(node: MultiJoin, streamon: StreaMon) -> Hashable:
    """What must be alike in the settings of two queries that share the operator of a join: its plan and its caching."""
    return join_plan_of(node, streamon), streamon.settings["caching"] if len(node.windows) > 2 else "off"


def n_way_join(node: MultiJoin, queues: Sequence[Queue], fifo: Sequence[bool] | None, streamon: StreaMon) -> Operator:
    """The operator that joins the windows in these queues, with what adapts it.

    fifo: of each input, whether its rows leave in the order they came; None where the join lets them go itself.
    """
    from minidsms.operators.mjoin import MJoin

    names = input_names(node.names)
    ranges = None if node.specs is None else [spec.range_ for spec in node.specs if spec is not None]
    arguments = (queues, node.equalities, node.columns, node.schema, node.shown, ranges, fifo)
    asked = join_plan_of(node, streamon)
    join: MJoin
    if asked == "auto":
        from minidsms.operators.auto_join import AutoJoin

        join = AutoJoin(*arguments)
    elif isinstance(asked, tuple) or asked == "xjoin":
        join = _with_tree(arguments, asked, names)
    elif streamon.settings["caching"] == "off" or len(queues) < 3:
        join = MJoin(*arguments)
    else:
        from minidsms.operators.cached_mjoin import CachedMJoin

        join = CachedMJoin(*arguments)
    join.names = names
    if len(queues) > 2:
        _adapt(join, asked, streamon)
    return join


def _adapt(join: MJoin, asked: Hashable, streamon: StreaMon) -> None:
    """Let all of the join's plan adapt that was not asked for. What times a plan looks first: others may profile."""
    from minidsms.streamon.join_ordering.adaptive_orders import AdaptiveOrders
    from minidsms.streamon.join_watch import JoinWatch

    names, operator = join.names, f"MJoin {', '.join(join.names)}"
    has_trees = asked in ("auto", "xjoin")
    has_caches = asked == "auto" or (asked == "mjoin" and streamon.settings["caching"] != "off")
    join.watch = watch = JoinWatch(join, join.graph.n, streamon)
    if has_trees:
        from minidsms.streamon.join_trees.adaptive_trees import AdaptiveTrees

        planted = cast("XJoin", join)
        planted.planting = AdaptiveTrees(planted, names, operator, streamon, watch, binary=asked == "xjoin")
        watch.add(planted.planting)
    if has_caches:
        from minidsms.streamon.caching.adaptive_caches import AdaptiveCaches

        consistency = "global" if asked == "auto" else None
        join.caching = AdaptiveCaches(cast("CachedMJoin", join), names, operator, streamon, watch, consistency)
        watch.add(join.caching)
    watch.add(AdaptiveOrders(join, names, operator, streamon, watch))


def _with_tree(arguments: tuple[Any, ...], asked: Hashable, names: tuple[str, ...]) -> XJoin:
    """An XJoin with the tree asked for, or one to begin with. CqlError where the join cannot have it."""
    from minidsms.joins.tree import left_deep
    from minidsms.operators.xjoin import XJoin

    join = XJoin(*arguments)
    if isinstance(asked, tuple):
        join.take_tree(_checked(asked, join, names))
        return join
    if not join.graph.is_connected:
        raise CqlError(
            "join_plan = xjoin needs equalities that link all inputs of the join",
            note=f"this query joins: {listing(names)}",
            hint="SET join_plan = mjoin",
        )
    join.take_tree(left_deep(join.graph))
    return join


def _checked(tree: Tree, join: XJoin, names: Sequence[str]) -> Tree:
    """The tree in normal form; CqlError where it takes a Cartesian product that can be avoided."""
    from minidsms.joins.tree import normal, tree_text, unlinked

    apart = unlinked(tree, join.graph)
    if apart is not None:
        raise CqlError(
            f"join_plan joins {tree_text(apart, names)}, which no equality of the query links",
            hint="join linked inputs first, or SET join_plan = mjoin",
        )
    return normal(tree)
