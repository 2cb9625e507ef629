"""From a reduced join of the logical plan to its operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from minidsms.cql.catalog import Catalog
from minidsms.plan.adaptivity import Adaptivity
from minidsms.plan.input_names import input_names
from minidsms.plan.logical import MultiJoin, ReducedJoin
from minidsms.plan.state_reduction import over_same_streams
from minidsms.queues import Queue

if TYPE_CHECKING:
    from minidsms.operators.k_mon_join import KMonJoin


def reduced_from(node: MultiJoin, catalog: Catalog, adaptivity: Adaptivity, queues: Sequence[Queue]) -> KMonJoin | str:
    """What does the work of a join over streams while it runs, and keeps fewer rows; or why there is nothing."""
    reduced = over_same_streams(node, catalog)
    return reduced if isinstance(reduced, str) else reduced_join(reduced, queues, adaptivity)


def reduced_join(node: ReducedJoin, queues: Sequence[Queue], adaptivity: Adaptivity) -> KMonJoin:
    """The operator of a join that keeps rows of its own."""
    from minidsms.operators.k_mon_join import KMonJoin, KMonSpec, windows_of

    assert node.specs is not None
    names = input_names(node.names)
    spec = KMonSpec(
        node.edges,
        windows_of(node.specs),
        node.columns,
        node.schema,
        node.passes,
        for_istream=node.shown is not None,
        unique=dict(node.unique),
        reduces=node.mode == "k-mon",
        is_lossy=node.trust == "lossy",
        trusts_keys=node.trust == "trusting",
        names=names,
    )
    return KMonJoin(queues, spec, adaptivity.surroundings(node, f"KMonJoin {', '.join(names)}"))
