"""Who feeds whom among the operators of one run, by position.

Invariant: position i stands for the i-th operator as long as `is_of` says so. Operators are only referred to weakly:
what a dropped query used is not kept alive by the scheduler.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from minidsms.scheduler.scheduler import Schedulable


class Wiring:
    """consumers, producers: per position, the positions behind and before it.

    readers: per position, how many queues its output goes into; one more than consumers where a reader is elsewhere.
    """

    def __init__(self, operators: Sequence[Schedulable]) -> None:
        self._operators = [weakref.ref(operator) for operator in operators]
        reader_of = {id(queue): i for i, operator in enumerate(operators) for queue in operator.inputs}
        self.readers = [len(operator.outputs) for operator in operators]
        self.consumers: list[list[int]] = []
        self.producers: list[list[int]] = [[] for _ in operators]
        for i, operator in enumerate(operators):
            behind = {reader_of[id(queue)] for queue in operator.outputs if id(queue) in reader_of}
            self.consumers.append(sorted(behind))
            for consumer in behind:
                self.producers[consumer].append(i)

    def is_of(self, operators: Sequence[Schedulable]) -> bool:
        """These are the operators, joined as they were."""
        return len(operators) == len(self._operators) and all(
            known() is operator and readers == len(operator.outputs)
            for known, operator, readers in zip(self._operators, operators, self.readers)
        )
