"""Schedulers by name, as `SET scheduler = ..` gives it."""

from __future__ import annotations

from collections.abc import Callable

from minidsms.scheduler.chain import Chain
from minidsms.scheduler.fifo import Fifo
from minidsms.scheduler.greedy import Greedy
from minidsms.scheduler.round_robin import RoundRobin
from minidsms.scheduler.scheduler import Scheduler

__all__ = ["SCHEDULERS", "Chain", "Fifo", "Greedy", "RoundRobin", "Scheduler", "scheduler_named"]

SCHEDULERS: dict[str, Callable[[int], Scheduler]] = {
    "round_robin": RoundRobin,
    "fifo": Fifo,
    "greedy": Greedy,
    "chain": Chain,
}


def scheduler_named(name: str, quantum: int, chain_latency_bound: int | None = None) -> Scheduler:
    """A new scheduler. chain_latency_bound: in ticks; only Chain has one."""
    if name == "chain":
        return Chain(quantum, chain_latency_bound)
    return SCHEDULERS[name](quantum)
