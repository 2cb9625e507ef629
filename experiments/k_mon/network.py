"""The query of chapter 1: traffic that went over links C, B and O within ten minutes. Babu 2005, sections 1.3, 6.1.1.

The goal is a twentieth of the memory of SWJ; the thesis reckons two orders of magnitude.
"""

from __future__ import annotations

from experiments.k_mon import workload
from experiments.k_mon.memory import MODES
from experiments.k_mon.running import Query, Run, run

MINUTES = 60_000
QUERY = Query(
    {name: "(pid INTEGER, size INTEGER) KEY (pid)" for name in "cbo"},
    "SELECT SUM(c.size) FROM c [RANGE 10 MINUTES], b [RANGE 10 MINUTES], o [RANGE 10 MINUTES]"
    " WHERE c.pid = b.pid AND b.pid = o.pid",
)
DELAY_S = 0.5
"""Bound of the latency from one link to the next."""


def traffic(rate: int, minutes: int = 16) -> dict[str, Run]:
    """`rate` packets a second on C and O, ten times as many on B; each mode over the same packets."""
    streams = workload.links(minutes * 60, rate, DELAY_S, 1)
    return {name: run(QUERY, streams, settings, slice_ticks=2000) for name, settings in MODES.items()}
