"""The constraints of a connection: each is watched once, however many queries use it. Babu 2005, section 6.1.6.

A query that begins finds k of what others use already. `SHOW CONSTRAINTS` lists what is watched.

Invariant: a constraint is watched as long as somebody uses it, and forgotten then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from minidsms.elements import Int64Array
from minidsms.streamon.k_mon.contracts import Arrivals, KConstraint, Kind, Monitor, User

COLUMNS = ("stream", "attribute", "constraint", "edge", "k", "used by", "saves bytes")


class _Counted(Monitor, Protocol):
    """A monitor that tells what it holds."""

    @property
    def nbytes(self) -> int: ...

    def leave(self, user: object) -> None: ...


@dataclass
class _Watched:
    """A constraint's monitor and its users, in the order in which they came."""

    monitor: _Counted
    users: list[User] = field(default_factory=list)


class ConstraintRegistry:
    """The monitors of a connection, by constraint. kinds: what is watched; of other constraints k stays infinite."""

    def __init__(self) -> None:
        self.kinds = frozenset(Kind)
        self._watched: dict[KConstraint, _Watched] = {}

    def watch(self, constraint: KConstraint, user: User) -> Monitor:
        """The constraint's monitor, shared with its other users."""
        watched = self._watched.get(constraint)
        if watched is None:
            watched = self._watched[constraint] = _Watched(
                new_monitor(constraint) if constraint.kind in self.kinds else Unwatched(constraint)
            )
        if not any(other is user for other in watched.users):
            watched.users.append(user)
        return watched.monitor

    def leave(self, constraint: KConstraint, user: User) -> None:
        """The user needs it no more; without users it is forgotten."""
        watched = self._watched.get(constraint)
        if watched is None:
            return
        watched.users = [other for other in watched.users if other is not user]
        watched.monitor.leave(user)
        if not watched.users:
            del self._watched[constraint]

    def monitor_of(self, constraint: KConstraint) -> Monitor | None:
        """The monitor, where the constraint is watched."""
        watched = self._watched.get(constraint)
        return None if watched is None else watched.monitor

    @property
    def nbytes(self) -> int:
        """Bytes that the monitors hold."""
        return sum(watched.monitor.nbytes for watched in self._watched.values())

    def table(
        self, queries: Mapping[int, Sequence[str]] | None = None
    ) -> list[tuple[str, str, str, str | None, int | None, str, int]]:
        """A row for each constraint, see COLUMNS; by stream, attribute and kind. k is None where it is not used.

        queries: by the id of a user the names of the queries that it works for; one without is called by its own.
        """
        queries = queries or {}
        rows = []
        for constraint, watched in self._watched.items():
            users = list(
                dict.fromkeys(
                    name for user in watched.users for name in queries.get(id(user)) or (user.name_of_user(),)
                )
            )
            saved = sum(user.saved_nbytes(constraint) for user in watched.users)
            attributes = ", ".join(constraint.attributes)
            kind, k = constraint.kind.value, watched.monitor.k
            rows.append((constraint.stream, attributes, kind, constraint.edge, k, ", ".join(users), saved))
        return sorted(rows, key=lambda row: (row[0], row[1], row[2], row[3] or ""))


@dataclass
class Unwatched:
    """Stands for a monitor of a constraint that is not watched."""

    constraint: KConstraint

    @property
    def k(self) -> None:
        """Infinite."""

    @property
    def nbytes(self) -> int:
        """Nothing is held."""
        return 0

    def observe(self, arrivals: Arrivals, parents: Arrivals | None = None) -> None:
        """Nothing is looked at."""

    def sleeps_through(self, arrivals: Int64Array, parents: Int64Array | None = None) -> bool:
        """Always."""
        return True

    def need(self, user: object, most: int, may_sample: bool) -> None:
        """Nothing is told."""

    def below(self, k: int, number: int | None = None) -> int | None:
        """Nothing is known."""
        return None

    def leave(self, user: object) -> None:
        """Nothing is kept."""

    def refuted(self) -> None:
        """Nothing was said."""


def new_monitor(constraint: KConstraint) -> _Counted:
    """A monitor of its own for a constraint, with the parameters of the thesis' experiments."""
    # Imported when needed: it loads the compiler.
    if constraint.kind is Kind.RIDS:
        from minidsms.streamon.k_mon.monitoring.rids import RidsMonitor

        return RidsMonitor(constraint)
    if constraint.kind is Kind.CA:
        from minidsms.streamon.k_mon.monitoring.clustered import ClusteredMonitor

        return ClusteredMonitor(constraint)
    from minidsms.streamon.k_mon.monitoring.ordered import OrderedMonitor

    return OrderedMonitor(constraint)
