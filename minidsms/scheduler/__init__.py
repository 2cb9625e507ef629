"""Schedulers by name, as `SET scheduler = ..` gives it."""

from __future__ import annotations

from collections.abc import Callable

from minidsms.scheduler.fifo import Fifo
from minidsms.scheduler.round_robin import RoundRobin
from minidsms.scheduler.scheduler import Scheduler

__all__ = ["SCHEDULERS", "Fifo", "RoundRobin", "Scheduler"]

SCHEDULERS: dict[str, Callable[[int], Scheduler]] = {"round_robin": RoundRobin, "fifo": Fifo}
