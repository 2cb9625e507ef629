"""Rewrite rules: pure functions from plan to plan, applied in this order.

No rule moves an instant that docs/semantics R3 or S2 speak of: those are inputs of their own (`logical.WindowEvents`,
`logical.FirstArrival`). No rule evaluates an expression that can fail on rows for which the text would not (R4).
"""

from __future__ import annotations

from collections.abc import Callable

from minidsms.cql.bound import Node
from minidsms.plan.rules.aggregate_partitions import aggregate_partitions
from minidsms.plan.rules.drop_empty import drop_empty
from minidsms.plan.rules.expand_outer_joins import expand_outer_joins
from minidsms.plan.rules.factor_disjunctions import factor_disjunctions
from minidsms.plan.rules.fold_constants import fold_constants
from minidsms.plan.rules.merge_joins import merge_joins
from minidsms.plan.rules.order_joins import order_joins
from minidsms.plan.rules.part_disjunctions import part_disjunctions
from minidsms.plan.rules.pass_what_enters import pass_what_enters
from minidsms.plan.rules.pipeline_semi_joins import pipeline_semi_joins
from minidsms.plan.rules.prune_columns import prune_columns
from minidsms.plan.rules.push_filters import push_filters
from minidsms.plan.rules.skip_windows import skip_windows
from minidsms.plan.rules.stream_of_instants import stream_of_instants

RULES: tuple[Callable[[Node], Node], ...] = (
    fold_constants,  # first: what is constant needs no place
    factor_disjunctions,  # before filters move: a common equality joins, and what remains may read one side alone
    stream_of_instants,  # before RSTREAM is looked at
    skip_windows,  # before filters move: recognises RSTREAM over NOW and ISTREAM over UNBOUNDED as written
    push_filters,  # before joins are ordered: comma joins get their conditions here; never below a ROWS window (W8)
    aggregate_partitions,  # after filters: those that choose partitions stand below the calls
    order_joins,  # needs the conditions
    expand_outer_joins,  # after filters: those that stop at an outer join would not pass its antijoin either
    part_disjunctions,  # after outer joins, of which inner ones have become
    push_filters,  # what the expansion opened, and what the joins of partitions take
    fold_constants,  # and what has met its constant: look-ups that nothing links join on 1 = 1
    drop_empty,  # after constants are known
    prune_columns,  # every expression stands where it will be evaluated
    merge_joins,  # needs the order of the joins, and columns that stay where they are
    pipeline_semi_joins,  # late: other rules know semi-joins, and not what becomes of them
    pass_what_enters,  # last: it asks what the joins have become
)
