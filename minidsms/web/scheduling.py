"""The schedulers side by side: what waits in queues while the same bursts come to the same queries.

A connection has one scheduler, so each gets a connection of its own, which ends with the experiment. Between two
arrivals a scheduler may let so many operators run, and what is in the queues is counted after each: elsewhere a call
returns when nothing waits any more.  Babu 2005, section 2.3.2; docs/scheduling.md.
"""

from __future__ import annotations

import numpy as np

from minidsms.elements import MIN_INSTANT, Int64Array
from minidsms.operators.stream_source import StreamSource
from minidsms.scheduler import SCHEDULERS

TEXT = """CREATE STREAM S (k INTEGER, v INTEGER);

SELECT ISTREAM(k, v) FROM S [RANGE 50] WHERE v % 10 = 0;
SELECT k, COUNT(*) FROM S [RANGE 20] WHERE v % 2 = 0 GROUP BY k;
SELECT DISTINCT k FROM S [ROWS 100];
"""
BLOCK = 200
"""Elements of one arrival, each of an instant of its own; and the quantum."""
BURST, PAUSE, BURSTS = 20, 60, 4
"""Arrivals with elements, arrivals without, and how often."""
RUNS = 5
"""Operators that may run between two arrivals."""


def side_by_side(seed: int) -> dict[str, list[int]]:
    """Elements in all queues after every run of an operator, by scheduler. seed: of the elements that come."""
    for name in SCHEDULERS:
        queued(name, seed, 1)  # what is loaded and compiled at first would count as the operators' time
    return {name: queued(name, seed, BURSTS) for name in SCHEDULERS}


def queued(scheduler_name: str, seed: int, bursts: int) -> list[int]:
    """Elements in all queues after every run of an operator."""
    from minidsms.connection import connect

    rng = np.random.default_rng(seed)
    sizes: list[int] = []
    with connect(scheduler=scheduler_name, quantum=BLOCK, sharing="off", adaptive="off", compilation="off") as db:
        db.execute(TEXT)
        groups = db.groups.all
        operators = [op for group in groups for op in group.operators]
        others = [op for op in operators if not isinstance(op, StreamSource)]
        for arrival in range((BURST + PAUSE) * bursts):
            if arrival % (BURST + PAUSE) < BURST:
                instants: Int64Array = arrival * BLOCK + np.arange(BLOCK, dtype=np.int64)
                elements = {"k": rng.integers(0, 20, BLOCK), "v": rng.integers(0, 1000, BLOCK)}
                db.push("S", elements, instants, block=False)
                for group in groups:
                    group.release(MIN_INSTANT, 1 << 20)
                    group.let_go()
                for source in operators:
                    if isinstance(source, StreamSource):
                        source.run(BLOCK)
            for _ in range(RUNS):
                operator = db.scheduler.choose(others)
                if operator is not None:
                    operator.run(BLOCK)
                sizes.append(sum(queue.size for op in others for queue in op.inputs))
    return sizes
