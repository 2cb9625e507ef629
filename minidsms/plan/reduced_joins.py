"""From a reduced join of the logical plan to its operator."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from minidsms.dictionary import TextDictionary
from minidsms.operators.operator import Operator
from minidsms.plan.input_names import input_names
from minidsms.plan.logical import ReducedJoin
from minidsms.queues import Queue
from minidsms.streamon.stream_monitor import StreaMon


def reduced_join(node: ReducedJoin, queues: Sequence[Queue], streamon: StreaMon, texts: TextDictionary) -> Operator:
    """The operator of a join that keeps rows of its own. texts: to name rows that violate a key."""
    from minidsms.operators.k_mon_join import KMonJoin, KMonSpec, Surroundings, windows_of
    from minidsms.streamon.k_mon.watching import Source

    assert node.specs is not None
    forcing, names = streamon.forcing, input_names(node.names)
    operator = f"KMonJoin {', '.join(names)}"
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
    around = Surroundings(
        sources=[Source(*source) for source in node.sources],
        monitors=streamon.constraints if streamon.is_adaptive else None,
        may_adapt=lambda: streamon.is_adaptive,
        texts=texts,
        tell=lambda join, instant, text: streamon.note_violation(instant, join, operator, text),
        warn=streamon.warn,
        forced=None if forcing is None else Random(forcing.seed),
    )
    return KMonJoin(queues, spec, around)
