"""filter and running in Bytewax; `running` keeps its window by hand: no window of Bytewax tells every change."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import bytewax.operators as op
import numpy as np
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main

RANGE = 10_000


class Group:
    """The bids of one auction in the last ten seconds; what is expired is seen when the next bid comes."""

    def __init__(self) -> None:
        self.held: deque[tuple[int, int]] = deque()
        self.tops: deque[tuple[int, int]] = deque()

    def add(self, bid: tuple[int, int]) -> tuple[int, int]:
        """Count and greatest price after the bid."""
        ts, price = bid
        for queue in (self.held, self.tops):
            while queue and queue[0][0] <= ts - RANGE:
                queue.popleft()
        while self.tops and self.tops[-1][1] <= price:
            self.tops.pop()
        self.held.append(bid)
        self.tops.append(bid)
        return len(self.held), self.tops[0][1]


def step(group: Group | None, bid: tuple[int, int]) -> tuple[Group, tuple[int, int]]:
    group = group or Group()
    return group, group.add(bid)


def flow_of(query: str, rows: list[Any], out: list[Any]) -> Dataflow:
    flow = Dataflow(query)
    stream = op.input("in", flow, TestingSource(rows, batch_size=1000))
    if query == "filter":
        stream = op.filter("filter", stream, lambda row: row[1] % 123 == 0)
    else:
        keyed = op.map("key", stream, lambda row: (str(row[1]), (row[0], row[2])))
        stream = op.stateful_map("group", keyed, step)
    op.output("out", stream, TestingSink(out))
    return flow


if __name__ == "__main__":
    columns = [np.load(Path(sys.argv[2], f"{name}.npy")).tolist() for name in ("ts", "auction", "price")]
    rows = list(zip(*columns))
    out: list[Any] = []
    flow = flow_of(sys.argv[1], rows, out)
    start = time.perf_counter()
    run_main(flow)
    print(json.dumps({"elements": len(rows), "seconds": time.perf_counter() - start, "out": len(out)}))
