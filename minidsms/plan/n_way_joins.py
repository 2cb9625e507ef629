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
from minidsms.expressions.attributes import Attributes
from minidsms.operators.operator import Operator
from minidsms.plan.adaptivity import Adaptivity, Reducing
from minidsms.plan.input_names import input_names
from minidsms.plan.logical import MultiJoin
from minidsms.plan.written_join_plan import WORDS, Tree, tree_over
from minidsms.queues import Queue
from minidsms.settings import SettingValues

if TYPE_CHECKING:
    from minidsms.joins.join import Join


def join_plan_of(node: MultiJoin, settings: SettingValues) -> Hashable:
    """What the settings ask for a join: 'mjoin', 'xjoin' or 'auto', or a tree over its inputs.

    CqlError where a plan that was written out is not one of these inputs.
    """
    asked = str(settings["join_plan"])
    if asked not in WORDS:
        return tree_over(asked, input_names(node.names))
    return asked if len(node.windows) > 2 else "mjoin"


def plan_key(node: MultiJoin, settings: SettingValues) -> Hashable:
    """What must be alike in the settings of two queries that share a join: its plan, its caching and its index."""
    asked = join_plan_of(node, settings)
    if len(node.windows) < 3:
        return asked, node.bands and settings["join_index"], settings["state_reduction"]
    names = "join_index", "routing", "state_reduction"
    return asked, caching_of(asked, settings), *(settings[name] for name in names)


def caching_of(asked: Hashable, settings: SettingValues) -> str:
    """The consistency of the caches that a join may have, or 'off': as asked for, else as goes with its plan."""
    caching = str(settings["caching"])
    if caching == "auto":
        return "global" if asked == "auto" else "off"
    return caching if asked in ("auto", "mjoin") else "off"


def n_way_join(
    node: MultiJoin,
    queues: Sequence[Queue],
    fifo: Sequence[bool] | None,
    adaptivity: Adaptivity,
    attributes: Callable[[Schema], Attributes],
    reducing: Reducing,
) -> Operator:
    """The operator that joins the windows in these queues, with what adapts it.

    fifo: of each input, whether its rows leave in the order they came; None where the join lets them go itself.
    attributes: by which rows may be told apart.  reducing: of what would keep fewer rows.
    """
    from minidsms.joins.join import Join
    from minidsms.joins.spec import JoinSpec

    settings = adaptivity.settings
    ranges = None if node.specs is None else [spec.range_ for spec in node.specs if spec is not None]
    asked = join_plan_of(node, settings)
    bands = () if settings["join_index"] == "hash" else node.bands
    spec = JoinSpec(
        node.equalities, node.columns, node.schema, node.shown, ranges, fifo,
        bands=bands, outer=node.outer, only_enters=node.only_enters,
    )  # fmt: skip
    join = Join(queues, spec, input_names(node.names))
    join.threads = adaptivity.threads
    if isinstance(asked, tuple):
        join.take_tree(_checked(asked, join))
    elif asked == "xjoin":
        join.take_tree(_first_tree(join))
    if len(queues) > 2 or (join.graph.has_patterns and not node.outer):
        adaptivity.adapt_join(join, asked, attributes)
    if ranges is not None and node.shown is not None:
        adaptivity.spare_state(join, reducing)
    return join


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
