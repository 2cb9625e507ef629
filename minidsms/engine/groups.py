"""The groups of a connection: which queries run as one, and which of them an input concerns.

Invariant: every registered query's network is in one group; groups over the same inputs differ in whether elements pass
at once, or in what was closed when they began.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from minidsms.cql.errors import Error
from minidsms.elements import MIN_INSTANT
from minidsms.engine.group import Group
from minidsms.engine.network import Network
from minidsms.limits.allowance import OPEN, Allowance
from minidsms.plan.copying import CannotCopy, copied
from minidsms.plan.dividing import divide, share
from minidsms.plan.logical import Stop
from minidsms.plan.physical import Inputs
from minidsms.plan.reading import inputs_of, is_immediate
from minidsms.screens.screening import Screening


class Groups:
    """All groups of one connection."""

    def __init__(self, is_sharing: bool, screening: Screening | None = None, allowance: Allowance = OPEN) -> None:
        self.allowance = allowance
        self.screening = screening
        self.all: list[Group] = []
        self.is_sharing = is_sharing
        self._of_input: dict[str, list[Group]] = {}
        self._of_key: dict[tuple[frozenset[str], bool], list[Group]] = {}
        self._names: dict[int, list[str]] = {}

    def switch(self, is_sharing: bool) -> None:
        """Share operators, or let every query have its own. The engine is at rest."""
        if is_sharing == self.is_sharing:
            return
        self.is_sharing = is_sharing
        for group in self.all:
            group.running.is_sharing = is_sharing
            if is_sharing:
                share(group)
            else:
                divide(group)

    def part(self, network: Network) -> None:
        """Give a network a group of its own, so that it may be paused or have its own settings. The engine is at rest.

        Raises Error where it shares a user's aggregate that cannot be copied.
        """
        group = network.group
        assert group is not None
        group.unfold(network)
        if len(group.networks) > 1:
            try:
                copies = copied(network.operators[:-1], {}, {}) if network.failure is None else {}
            except CannotCopy as error:
                raise Error(f"the query shares operators with others and cannot be parted from them: {error}") from None
            apart = Group(
                group.streams, group.relations, group.is_immediate, group.progress, self.is_sharing, self.screening,
                self.allowance,
            )  # fmt: skip
            names = self._names[id(group)]
            group.remove(network)
            if copies:
                network.replace(copies)
            apart.add(network)
            self.add(apart, names)
            group = apart
        group.is_apart = True

    def reading(self, name: str) -> Sequence[Group]:
        """The groups that read a stream or relation, by lower-case name."""
        return self._of_input.get(name, ())

    def reading_alone(self, stream: str, is_immediate: bool) -> Sequence[Group]:
        """The groups of queries over one stream. is_immediate: whose elements pass at once."""
        return self._of_key.get((frozenset([stream]), is_immediate), ())

    def for_plan(self, root: Stop, inputs: Inputs, frontier: int, with_history: bool) -> Group:
        """The group that a plan is to join: one over the same inputs, closed as far, or a new one.

        A query that begins with the past first catches up, alone.
        """
        streams, relations = inputs_of(root)
        immediate = is_immediate(root)
        if not with_history:
            for group in self._of_key.get((frozenset([*streams, *relations]), immediate), ()):
                if group.operators and group.progress == frontier and not group.is_apart:
                    return group
        return Group(
            [inputs.stream(name)[1] for name in streams],
            [inputs.relation(name)[1] for name in relations],
            immediate,
            MIN_INSTANT if with_history else frontier,
            self.is_sharing,
            self.screening,
            self.allowance,
        )

    def add(self, group: Group, names: Sequence[str]) -> None:
        """Run a group, if it does not yet. names: of its inputs."""
        if id(group) in self._names:
            return
        self._names[id(group)] = [name.lower() for name in names]
        self.all.append(group)
        self._of_key.setdefault(self._key(group), []).append(group)
        for name in self._names[id(group)]:
            self._of_input.setdefault(name, []).append(group)

    def _key(self, group: Group) -> tuple[frozenset[str], bool]:
        return frozenset(self._names[id(group)]), group.is_immediate

    def remove(self, network: Network) -> None:
        """Forget a network, and its group if it was the last one."""
        group = network.group
        assert group is not None
        try:
            group.remove(network)
        finally:
            if not group.networks and id(group) in self._names:
                self._forget(group)

    def keep(self, networks: Collection[Network]) -> None:
        """Forget every network but these, and every group without one: a call was cut short."""
        kept = {id(network) for network in networks}
        for group in list(self.all):
            for network in [n for n in group.networks if id(n) not in kept]:
                group.remove(network)
            if not group.networks:
                self._forget(group)

    def _forget(self, group: Group) -> None:
        """Run a group no more."""
        inputs = (self._of_input.get(name, []) for name in self._names[id(group)])
        for groups in (self.all, self._of_key.get(self._key(group), []), *inputs):
            groups[:] = [g for g in groups if g is not group]
        self._names.pop(id(group), None)
