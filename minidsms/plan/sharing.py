"""Which operators of several queries are one: the operators of a group by what they put out.

Operators have one lineage when they put out the same elements from now on: of equal kind and parameters, over inputs
of one lineage, with equal state. State is equal where there is none, or none yet: a filter joins those that have run
for long, a window only those nothing has come into. docs/design, points 3 and 10; Babu 2005, sections 2.3.1 and 2.4.

Invariant: with sharing on a new plan takes a running operator of the lineage it needs, if there is one; with sharing
off it makes its own and notes the lineage, so that sharing can be switched on later.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence

from minidsms.elements import Schema
from minidsms.operators.operator import Operator

_lineages = itertools.count(1)


class RunningOperators:
    """The operators of a group, to be found by what they put out.

    is_sharing: new plans take operators that run; else they only take their lineage.
    """

    def __init__(self, is_sharing: bool) -> None:
        self.is_sharing = is_sharing
        self._by_key: dict[Hashable, list[Operator]] = {}

    def find(self, key: Hashable, is_as_new: Callable[[Operator], bool]) -> Operator | None:
        """A running operator that puts out what a new one of this key would."""
        for operator in self._by_key.get(key, ()):
            if is_as_new(operator):
                return operator
        return None

    def add(self, operator: Operator) -> None:
        """The operator runs from now on."""
        if operator.lineage_key is not None:
            self._by_key.setdefault(operator.lineage_key, []).append(operator)

    def remove(self, operator: Operator) -> None:
        """The operator runs no more."""
        known = self._by_key.get(operator.lineage_key)
        if known is not None:
            known[:] = [op for op in known if op is not operator]
            if not known:
                del self._by_key[operator.lineage_key]


class Leading(RunningOperators):
    """The operators that lead to a screen. Whatever has come into them, a query that was folded reads them."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        super().__init__(is_sharing=True)
        for operator in operators:
            self.add(operator)

    def find(self, key: Hashable, is_as_new: Callable[[Operator], bool]) -> Operator | None:
        return super().find(key, lambda operator: True)


def lineage_key(shape: Hashable, schema: Schema, inputs: Sequence[Operator]) -> Hashable:
    """What gives the lineage of an operator of this shape over these inputs."""
    return shape, tuple(schema.types), tuple(operator.lineage for operator in inputs)


def name_lineage(operator: Operator, key: Hashable, like: Operator | None) -> None:
    """Give a new operator its lineage: that of a running one that puts out the same, or a new one."""
    operator.lineage_key = key
    operator.lineage = next(_lineages) if like is None else like.lineage


def operators_behind(output: Operator) -> list[Operator]:
    """The operators that lead to one, and itself, producers before consumers."""
    order: list[Operator] = []
    seen: set[int] = set()
    stack: list[tuple[Operator, bool]] = [(output, False)]
    while stack:
        operator, is_ready = stack.pop()
        if is_ready:
            order.append(operator)
        elif id(operator) not in seen:
            seen.add(id(operator))
            stack.append((operator, True))
            producers = [queue.producer for queue in reversed(operator.inputs)]
            stack.extend((producer, False) for producer in producers if producer is not None)
    return order
