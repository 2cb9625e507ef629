"""Slices pass from hand to hand: through all operators of a group, one after the other, and no queue.

A turn among a scheduler's looks at queues, room, and what has been begun, and puts what it makes where the next turn
finds it; of a slice of few elements that would be half of the time. Here the operators' turns, in an order in which
producers stand before consumers, are one sequence of calls, each of which gives what the next ones take.

Few elements pass so through any plan. Along a path, where every operator has one reader and one producer, but the first
may read several sources, all slices do: whatever the scheduler, only the operator that was handed something is ready.
What comes in several batches stands in a queue, and is taken from there where only the last operator is left.

Invariant: afterwards operators and counters are as after turns of all; queues have held nothing, and are told how far
their producers are before anything passes through them again (`tell_queues`). What does not pass so stands in queues as
if the operators before it had had their turns.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from minidsms.elements import Batch
from minidsms.operators.operator import MOST_BY_HAND, QUEUED, Operator
from minidsms.queues import LITTLE

_MADE = 4
"""Of what has passed along a path so far an operator may make so many times as much: elements of a window leave it
again, and a change of a group is two rows."""
_Station = tuple[Callable[[Sequence[Batch | None], int], Batch | None], slice, Sequence[int]]
"""How an operator takes what it is given; which of all that is handed on that is; and where what it gives stands."""


def _is_path(operators: Sequence[Operator]) -> bool:
    """Behind sources, all of which the first of the others reads, and alone reads, they follow one on the other."""
    sources = list(itertools.takewhile(lambda operator: not operator.inputs, operators))
    behind = operators[len(sources) :]
    given = [id(queue) for source in sources for queue in source.outputs]
    is_met = len(given) == len(sources) and (not behind or set(given) == {id(queue) for queue in behind[0].inputs})
    return is_met and all(reader.inputs == operator.outputs for operator, reader in itertools.pairwise(behind))


def tell_queues(operators: Sequence[Operator]) -> None:
    """Tell the queues behind these operators how far they are."""
    for operator in operators:
        progress = operator.progress
        for queue in operator.outputs:
            if progress > queue.progress:
                queue.progress = progress


class ByHand:
    """The operators of a group, which are told how much they may hand on. quantum: elements that an operator may take
    in a turn, and a sixteenth more.

    most: elements that may pass so; -1 where time may not pass so either: where a reader has little room, or does not
    stand behind the operator that it reads.  is_path: as `_is_path` says.  has_passed: a slice has, and queues have not
    been told.
    """

    def __init__(self, operators: Sequence[Operator], quantum: int = 0) -> None:
        self._operators = operators
        self.quantum = quantum
        self.has_passed = False
        self._queues = [queue for operator in operators for queue in operator.inputs]
        self._stations: list[_Station] = []
        places = {id(queue): at for at, queue in enumerate(self._queues)}
        end, may_pass = 0, bool(operators)
        for operator in operators:
            first, end = end, end + len(operator.inputs)
            readers = [places.get(id(queue), -1) for queue in operator.outputs]
            may_pass &= (
                all(queue.ample >= MOST_BY_HAND for queue in operator.outputs) and min(readers, default=end) >= end
            )
            self._stations.append((operator.take_by_hand, slice(first, end), readers))
        self.is_path = may_pass and _is_path(operators)
        most = quantum + quantum // LITTLE if self.is_path else min(quantum, MOST_BY_HAND)
        self.most = min((most, *(operator.quantum for operator in operators))) if may_pass else -1
        for operator in operators:
            made = _MADE * most if self.is_path else most
            operator.most_by_hand = min((made, *(queue.ample for queue in operator.outputs)))

    def pass_on(self, until: int) -> bool:
        """Let the slice pass that sources have been allowed, up to an instant; False where some of it stands in queues.

        Nothing has been begun, and nothing waits in queues.
        """
        handed: list[Batch | None] = [None] * len(self._queues)
        for take, given, readers in self._stations:
            batch = take(handed[given], until)
            if batch is QUEUED:
                self.tell_queues()
                for queue, waiting in zip(self._queues[given.stop :], handed[given.stop :]):
                    if waiting is not None:
                        queue.put(waiting)
                return self.is_path and given.stop == len(self._queues) - 1 and self._last_takes()
            for at in readers:
                handed[at] = batch
        self.has_passed = True
        return True

    def _last_takes(self) -> bool:
        """What waits stands before the last operator of a path, which takes it, if that is all of the slice; whether it
        was. The operator before it may have put out a part, or have left all in its own queue, until it has resumed.
        """
        before, last = self._operators[-2:]
        if before.has_work():
            return False
        while last.has_work():
            last.run(self.quantum)
        return True

    def tell_queues(self) -> None:
        """What comes next passes through them."""
        self.has_passed = False
        tell_queues(self._operators)
