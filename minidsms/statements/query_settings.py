"""Settings of one query: those of the connection, except what `ALTER QUERY q SET` has changed.

Invariant: what a query has of its own takes effect on its operators and queues at once, and a change of the
connection's settings on those of every query that has none. docs/statements/alter.md; Babu 2005, section 2.4.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from minidsms.cql.errors import Error
from minidsms.elements import MAX_INSTANT
from minidsms.settings import SETTINGS, Settings, checked
from minidsms.statements.arguments import name_of

if TYPE_CHECKING:
    from minidsms.engine.network import Network
    from minidsms.limits.allowance import Allowance

ALTERABLE = ("batch_size", "queue_size", "queue_bytes", "quantum", "memory_limit", "memory_priority")
"""The settings a query may have of its own."""


class QuerySettings:
    """common: the connection's.  own: what this query has been given."""

    def __init__(self, common: Settings) -> None:
        self._common = common
        self.own: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return self.own.get(name, self._common[name])

    def set(self, name: str, value: Any) -> None:
        """Change one; 'default' gives it up. Error with the choices where the name or the value is wrong."""
        key = name_of(name).lower()
        if key not in ALTERABLE:
            near = difflib.get_close_matches(key, ALTERABLE, 1)
            there = f'; did you mean "{near[0]}"?' if near else f"; a query has: {', '.join(ALTERABLE)}"
            what = "is a setting of the connection, not of a query" if key in SETTINGS else "is no setting of a query"
            raise Error(f'"{name}" {what}{there}')
        if isinstance(value, str) and value.lower() == "default":
            self.own.pop(key, None)
        else:
            self.own[key] = checked(key, value)

    @property
    def memory_limit(self) -> int | None:
        """What the query alone may hold; the connection's limit is of all together."""
        limit: int | None = self.own.get("memory_limit")
        return limit

    def apply(self, network: Network, allowance: Allowance) -> None:
        """Let the values take effect on a running plan.  allowance: of the query."""
        network.batch_size = self.own.get("batch_size")
        if network.group is not None and network.group.is_apart:
            network.group.queue_size = self.own.get("queue_size")
            network.group.queue_bytes = self.own.get("queue_bytes")
            network.group.allow(allowance)
        quantum = self.own.get("quantum", MAX_INSTANT)
        for operator in network.operators:
            operator.quantum = quantum
            for queue in operator.inputs:
                queue.limit(self["queue_size"], self["queue_bytes"])
        if network.group is not None:
            network.group.refit()

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in self.own.items())
