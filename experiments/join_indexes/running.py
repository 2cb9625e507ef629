"""The complete join under settings: slots and addresses that an element makes it inspect, and its processor time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import minidsms
from experiments.join_indexes.streams import COLUMNS, PUSH, STREAMS, pushes, query
from minidsms.streamon.loop import adaptations_of


@dataclass(frozen=True)
class Run:
    """inspected: slots and addresses an element.  us: of an element.  switches: of the index.  answers: rows put out.
    nbytes: of the join's state at the end.
    """

    inspected: float
    us: float
    switches: int
    answers: int
    nbytes: int


def run(
    rows: int,
    changing: int,
    seed: int,
    window: int,
    pins_at: int | None = None,
    pinned: str = "join index",
    **settings: Any,
) -> Run:
    """So many rows of each stream. pins_at: rows after which the index stays as it is, or what else is to be pinned."""
    with minidsms.connect(cost_model="fixed", join_plan="mjoin", caching="off", **settings) as db:
        for s in STREAMS:
            db.execute(f"CREATE STREAM {s} ({', '.join(f'{c} INTEGER' for c in COLUMNS[s])})")
        joined = db.query(query(window))
        (join,) = [operator for operator in joined.network.operators if operator.name == "MJoin"]
        everywhere = adaptations_of([join])
        places = [a for a in everywhere if a.technique == "join index"]
        spent = 0.0
        for ts, data in pushes(rows, changing, seed):
            if pins_at is not None and ts == pins_at:
                for place in everywhere:
                    if place.technique == pinned:
                        place.pin()
            began = time.process_time()
            for s in STREAMS:
                db.push(s, data[s], ts=np.arange(ts, ts + PUSH))
            spent += time.process_time() - began
        elements = rows * len(STREAMS)
        inspected = join.work()[1]  # type: ignore[attr-defined]
        switches = sum(place.switches for place in places)
        nbytes = sum(synopsis.nbytes for synopsis in join.synopses())
        return Run(inspected / elements, 1e6 * spent / elements, switches, joined.fetch_arrow().num_rows, nbytes)
