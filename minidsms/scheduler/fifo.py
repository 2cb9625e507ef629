"""FIFO: the element that came first is processed first, as far as it goes. Babu 2005, section 2.3.2."""

from __future__ import annotations

from minidsms.scheduler.by_priority import ByPriority


class Fifo(ByPriority):
    """quantum: elements per turn."""

    name = "fifo"
    is_measuring = False
