"""What adapts an n-way join: all there is of orders, caches, trees, indexes and routes, but what was asked for.

Invariant: where steps go by bands, or by bit addresses, neither caches nor trees know what they find, and a join has
none that adapt.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from minidsms.elements import Schema
from minidsms.expressions.attributes import Attributes
from minidsms.joins.join import Join
from minidsms.plan.n_way_joins import caching_of
from minidsms.streamon.stream_monitor import StreaMon
from minidsms.synopses.bag_windows import BagWindow
from minidsms.synopses.indexed_window import IndexedWindow


def adapt_join(join: Join, asked: Hashable, streamon: StreaMon, attributes: Callable[[Schema], Attributes]) -> None:
    """Let all of the join's plan adapt that was not asked for. What times a plan looks first: others may profile. Of
    two inputs there is the index alone.
    """
    from minidsms.streamon.join_ordering.adaptive_orders import AdaptiveOrders
    from minidsms.streamon.join_trees.pipelines import JoinPipelines
    from minidsms.streamon.join_watch import JoinWatch

    has_bits = _has_bits(join, streamon)
    is_pair = join.graph.n == 2
    has_trees = asked in ("auto", "xjoin") and not join.graph.bands and not has_bits
    watch = JoinWatch(join, streamon)
    join.watch_by(watch)
    caching = None
    consistency = caching_of(asked, streamon.settings)
    if consistency != "off" and not join.graph.bands and not has_bits and not is_pair:
        from minidsms.streamon.caching.adaptive_caches import AdaptiveCaches

        caching = AdaptiveCaches(watch, consistency)
    index = None
    if not has_bits and streamon.settings["join_index"] in ("auto", "patterns") and join.graph.has_patterns:
        from minidsms.streamon.join_index.adaptive_index import AdaptiveIndex

        index = AdaptiveIndex(watch, streamon.settings["join_index"] == "patterns")
    pipelines = JoinPipelines(join, streamon.settings["cost_model"] == "measured", caching, index)
    orders = None if is_pair else AdaptiveOrders(watch, pipelines)
    pipelines.on_return += [each.return_to_pipelines for each in (orders, index, caching) if each is not None]
    if has_trees:
        from minidsms.streamon.join_trees.adaptive_trees import AdaptiveTrees

        watch.add(AdaptiveTrees(watch, asked == "xjoin", pipelines))
    if caching is not None:
        watch.add(caching)
    if has_bits:
        from minidsms.streamon.join_index.adaptive_bits import AdaptiveBits

        watch.add(AdaptiveBits(watch))
    if index is not None:
        watch.add(index)
    if orders is None:
        return
    watch.add(orders)
    if streamon.settings["routing"] == "auto":
        from minidsms.streamon.content_routing.of_joins.adaptive_routes import AdaptiveRoutes

        kept = [Schema(tuple(window.schema[c] for c in _told_apart(window))) for window in join.index.windows]
        join.tell_apart_by([attributes(schema) for schema in kept])
        able = {i: attributes(schema) for i, schema in enumerate(kept) if i in orders.filters}
        routable = {i: each for i, each in able.items() if each.readings()}
        watch.add(AdaptiveRoutes(watch, orders, routable))


def _told_apart(window: IndexedWindow | BagWindow) -> Sequence[int]:
    """The columns by which its rows may be told apart: those it keeps, if rows leave in the order they came."""
    return window.kept if isinstance(window, IndexedWindow) else ()


def _has_bits(join: Join, streamon: StreaMon) -> bool:
    """Bits were asked for, and the join, which keeps no results, can have them."""
    return streamon.settings["join_index"] == "bit_address" and join.graph.has_addresses and join.uses_orders
