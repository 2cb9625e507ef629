"""The constraints of a connection: each is watched once, however many queries use it. Babu 2005, section 6.1.6.

A query that begins finds k of what others use already. `SHOW CONSTRAINTS` lists what is watched.

Invariant: a constraint is watched as long as somebody uses it, and forgotten then.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from minidsms.operators.adaptivity import SharedByCopies
from minidsms.operators.k_mon.contracts import NEVER, Arrivals, KConstraint, Kind, Monitor, User
from minidsms.settings import SettingValues

if TYPE_CHECKING:
    from minidsms.streamon.k_mon.monitoring.estimate import MonitorSettings


class _Counted(Monitor, Protocol):
    """A monitor that tells what it holds."""

    @property
    def nbytes(self) -> int: ...

    def leave(self, user: object) -> None: ...

    @property
    def increases(self) -> int: ...


@dataclass
class _Watched:
    """A constraint's monitor and its users, in the order in which they came."""

    monitor: _Counted
    users: list[User] = field(default_factory=list)


class ConstraintRegistry(SharedByCopies):
    """The monitors of a connection, by constraint. kinds: what is watched; of other constraints k stays infinite.

    settings: of the connection; without, monitors have the parameters of the thesis' experiments.
    """

    columns = ("stream", "attribute", "constraint", "edge", "k", "looked at", "broken", "used by", "saves bytes")
    """Of its table."""

    def __init__(self, settings: SettingValues | None = None) -> None:
        self._settings = settings
        self.kinds = frozenset(Kind)
        self._watched: dict[KConstraint, _Watched] = {}

    def watch(self, constraint: KConstraint, user: User) -> Monitor:
        """The constraint's monitor, shared with its other users."""
        watched = self._watched.get(constraint)
        if watched is None:
            watched = self._watched[constraint] = _Watched(
                new_monitor(constraint, self._settings) if constraint.kind in self.kinds else Unwatched(constraint)
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

    def used_by(self, user: object) -> list[tuple[KConstraint, int]]:
        """The constraints that a user uses and that have a k, with it."""
        used = [(c, w.monitor.k) for c, w in self._watched.items() if any(other is user for other in w.users)]
        return [(constraint, k) for constraint, k in used if k is not None]

    @property
    def nbytes(self) -> int:
        """Bytes that the monitors hold."""
        return sum(watched.monitor.nbytes for watched in self._watched.values())

    def table(
        self, queries: Mapping[int, Sequence[str]] | None = None
    ) -> list[tuple[str, str, str, str | None, int | None, str, int, str, int]]:
        """A row for each constraint, see `columns`; by stream, attribute and kind. k is None where it is not used.

        looked at: see `Monitor.attention`.  broken: how often k has had to be given up.

        queries: by the id of a user the names of the queries that it works for; one without is called by its own.
        """
        queries = queries or {}
        for user in {id(user): user for watched in self._watched.values() for user in watched.users}.values():
            user.tell_monitors()
        rows = []
        for constraint, watched in self._watched.items():
            users = list(
                dict.fromkeys(
                    name for user in watched.users for name in queries.get(id(user)) or (user.name_of_user(),)
                )
            )
            saved = sum(user.saved_nbytes(constraint) for user in watched.users)
            attributes = ", ".join(constraint.attributes)
            monitor = watched.monitor
            rows.append(
                (constraint.stream, attributes, constraint.kind.value, constraint.edge, monitor.k, monitor.attention,
                 monitor.increases, ", ".join(users), saved)
            )  # fmt: skip
        return sorted(rows, key=lambda row: (row[0], row[1], row[2], row[3] or ""))


@dataclass
class Unwatched:
    """Stands for a monitor of a constraint that is not watched: k is infinite, or for another reason known."""

    constraint: KConstraint
    k: int | None = None
    attention = "none"
    nbytes = 0
    increases = 0
    asleep_until = NEVER

    def observe(self, arrivals: Arrivals, parents: Arrivals | None = None) -> None:
        """Nothing is looked at."""

    def need(self, user: object, most: int, may_sample: bool) -> None:
        """Nothing is told."""

    def below(self, k: int, number: int | None = None) -> int | None:
        """Nothing is known of an order."""
        return None

    def leave(self, user: object) -> None:
        """Nothing is kept."""

    def notice(self, number: int) -> None:
        """Nothing is looked at."""

    def refuted(self) -> None:
        """Nothing was said."""


def new_monitor(constraint: KConstraint, settings: SettingValues | None = None) -> _Counted:
    """A monitor of its own for a constraint; what settings leave open is as in the thesis' experiments."""
    # Imported when needed: it loads the compiler.
    if constraint.kind is Kind.KEY:
        from minidsms.streamon.k_mon.monitoring import unique

        asked = None if settings is None else settings["k_mon_window"]
        return unique.UniqueMonitor(constraint, asked or unique.WINDOW)
    if constraint.kind is Kind.RIDS:
        from minidsms.streamon.k_mon.monitoring import rids

        return rids.RidsMonitor(constraint, _chosen(rids.DEFAULTS, settings))
    if constraint.kind is Kind.CA:
        from minidsms.streamon.k_mon.monitoring import clustered

        return clustered.ClusteredMonitor(constraint, _chosen(clustered.DEFAULTS, settings))
    from minidsms.streamon.k_mon.monitoring import ordered

    return ordered.OrderedMonitor(constraint, _chosen(ordered.DEFAULTS, settings))


def _chosen(defaults: MonitorSettings, settings: SettingValues | None) -> MonitorSettings:
    """The parameters of a kind of constraint, as far as settings do not give them."""
    if settings is None:
        return defaults
    return dataclasses.replace(
        defaults,
        window=settings["k_mon_window"] or defaults.window,
        growth=settings["k_mon_growth"] or defaults.growth,
        chance=settings["k_mon_chance"],
        threshold=settings["k_mon_threshold"],
    )
