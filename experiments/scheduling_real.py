"""Schedulers on the operators of real queries: what is queued while a burst comes faster than it is processed.

Between two arrivals the scheduler may let so many operators run; what is in the queues is counted after each.
"""

from __future__ import annotations

import numpy as np

from minidsms.cql.binder import bind
from minidsms.cql.catalog import Catalog, StreamDef
from minidsms.cql.parser import parse_query
from minidsms.dictionary import TextDictionary
from minidsms.elements import MIN_INSTANT, Field, Int64Array, Schema, Type
from minidsms.engine.engine import Group
from minidsms.expressions import Context
from minidsms.inputs.stream_input import StreamInput
from minidsms.operators.stream_source import StreamSource
from minidsms.plan.physical import Inputs, PhysicalPlanner
from minidsms.plan.planner import plan
from minidsms.scheduler import SCHEDULERS
from minidsms.settings import Settings
from minidsms.streamon.planning import AdaptivePlans
from minidsms.streamon.stream_monitor import StreaMon

QUERIES = (
    "SELECT ISTREAM(k, v) FROM S [RANGE 50] WHERE v % 10 = 0",
    "SELECT k, COUNT(*) FROM S [RANGE 20] WHERE v % 2 = 0 GROUP BY k",
    "SELECT DISTINCT k FROM S [ROWS 100]",
)
TICK_NS = 1_000_000
BLOCK = 200
"""Elements of one arrival, each of an instant of its own; and the quantum."""
BURST, PAUSE, BURSTS = 20, 60, 4
"""Arrivals with elements, arrivals without, and how often."""
RUNS = 5
"""Operators that may run between two arrivals."""


def queued(scheduler_name: str, seed: int) -> list[int]:
    """Elements in all queues after every run."""
    schema = Schema((Field("k", Type.INTEGER), Field("v", Type.INTEGER)))
    catalog = Catalog(tick_ns=TICK_NS)
    catalog.streams["s"] = StreamDef("S", schema)
    stream = StreamInput(catalog.streams["s"], TextDictionary(), TICK_NS)
    groups = [_group(text, catalog, stream) for text in QUERIES]
    operators = [op for group in groups for op in group.operators]
    sources = [op for op in operators if isinstance(op, StreamSource)]
    others = [op for op in operators if not isinstance(op, StreamSource)]
    scheduler = SCHEDULERS[scheduler_name](BLOCK)
    rng = np.random.default_rng(seed)
    sizes: list[int] = []
    for arrival in range((BURST + PAUSE) * BURSTS):
        if arrival % (BURST + PAUSE) < BURST:
            instants: Int64Array = arrival * BLOCK + np.arange(BLOCK, dtype=np.int64)
            stream.push({"k": rng.integers(0, 20, BLOCK), "v": rng.integers(0, 1000, BLOCK)}, instants)
            for group in groups:
                group.release(MIN_INSTANT, 1 << 20)
            for source in sources:
                source.run(BLOCK)
        for _ in range(RUNS):
            operator = scheduler.choose(others)
            if operator is not None:
                operator.run(BLOCK)
            sizes.append(sum(queue.size for op in others for queue in op.inputs))
    return sizes


def _group(text: str, catalog: Catalog, stream: StreamInput) -> Group:
    node = bind(parse_query(text), catalog, text).node
    inputs = Inputs(lambda _: (stream.store, stream, stream.waiting_instants()), _no_relation)
    texts = TextDictionary()
    fixed = AdaptivePlans(StreaMon(Settings(adaptive="off")), texts)
    planner = PhysicalPlanner(inputs, catalog, Context(texts, TICK_NS, {}), 1 << 40, MIN_INSTANT, fixed)
    network = planner.network(plan(node, text).root, lambda batch: None)
    group = Group(network.streams, network.relations, network.is_immediate)
    group.add(network)
    return group


def _no_relation(name: str) -> tuple:  # type: ignore[type-arg]
    raise KeyError(name)
