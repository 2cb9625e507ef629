"""The screens of a group of queries: which operators have one, and who has a turn.

Invariant: after `arrange` the queue of a filter that stands behind a screen hangs on the screen and on nothing else;
its producer, as plans know it, is still the operator that the screen reads.  docs/sharing.md.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from minidsms.operators.operator import Operator
from minidsms.operators.screen import FEWEST, Screen, Woken
from minidsms.operators.select import Select
from minidsms.queues import Queue
from minidsms.screens.screening import Screening


class Screens:
    """Those of one group. turns: the group's operators and screens, producers before consumers.  awake: those of them
    that stand behind no screen.
    """

    def __init__(self, screening: Screening | None) -> None:
        self._screening = screening
        self._of_producer: dict[int, Screen] = {}
        self.woken = Woken()
        self.turns: list[Operator] = []
        self.awake: list[Operator] = []

    def __iter__(self) -> Iterator[Screen]:
        return iter(self._of_producer.values())

    @property
    def is_on(self) -> bool:
        """There may be screens."""
        return self._screening is not None and self._screening.is_on

    @property
    def folds(self) -> bool:
        """Screens may run queries."""
        return self._screening is not None and self._screening.is_on and not self._screening.is_by_column

    def of(self, producer: Operator) -> Screen | None:
        """The screen over an operator."""
        screen = self._of_producer.get(id(producer))
        return None if screen is None or screen.failure is not None else screen

    def made(self, producer: Operator) -> Screen:
        """The screen over an operator, a new one if there is none."""
        screen = self.of(producer)
        if screen is None:
            assert self._screening is not None
            screen = self._of_producer[id(producer)] = Screen(producer, self._screening, self.woken)
        return screen

    def candidates(self, operators: Sequence[Operator]) -> dict[int, list[Select]]:
        """The filters that a screen could look at, by the id of what they read, where it would pay."""
        found: dict[int, list[Select]] = {}
        for operator in operators if self.is_on else ():
            if isinstance(operator, Select) and operator.box is not None and operator.inputs[0].producer is not None:
                found.setdefault(id(operator.inputs[0].producer), []).append(operator)
        return {key: selects for key, selects in found.items() if self._is_enough(key, len(selects))}

    def _is_enough(self, producer: int, selects: int) -> bool:
        screen = self._of_producer.get(producer)
        return selects + (0 if screen is None or screen.failure is not None else screen.folded) >= FEWEST

    def pays(self, screen: Screen, operators: Sequence[Operator]) -> bool:
        """There are filters enough for a screen, and there may be screens."""
        key = id(screen.producer)
        selects = sum(
            isinstance(o, Select) and o.box is not None and id(o.inputs[0].producer) == key for o in operators
        )
        return self.is_on and self._is_enough(key, selects)

    def arrange(self, operators: Sequence[Operator]) -> None:
        """Put screens where they pay, take them away where they do not, and build their tables. All is at rest."""
        wanted = self.candidates(operators)
        self._take_away(operators)
        known = {id(operator): operator for operator in operators}
        for key in wanted:
            self.made(known[key])  # in place of one that has failed
        for key in [
            k for k, s in self._of_producer.items() if k not in known or (k not in wanted and not s.folded) or s.failure
        ]:
            del self._of_producer[key]
        for key, screen in self._of_producer.items():
            screen.keep(wanted.get(key, ()))
            screen.settle()
            self._put_before(screen, known[key])
        self._find_turns(operators)

    def forget(self, gone: Container[int]) -> None:
        """These operators, by id, run no more."""
        self.turns = [operator for operator in self.turns if id(operator) not in gone]
        self.awake = [operator for operator in self.awake if id(operator) not in gone]

    def _take_away(self, operators: Sequence[Operator]) -> None:
        """Let every filter's queue hang on its producer again."""
        if not self._of_producer:
            return
        readers: dict[int, list[Queue]] = {}
        for operator in operators:
            if isinstance(operator, Select):
                operator.stand_behind(None)
            for queue in operator.inputs:
                readers.setdefault(id(queue.producer), []).append(queue)
        for operator in operators:
            if id(operator) in self._of_producer:
                operator.outputs = readers.get(id(operator), [])

    def _put_before(self, screen: Screen, producer: Operator) -> None:
        """Let the filters' queues hang on the screen."""
        behind = {id(queue) for queue in screen.outputs}
        producer.outputs = [*(q for q in producer.outputs if id(q) not in behind), screen.inputs[0]]
        screen.inputs[0].progress = screen.progress = producer.progress
        for select in screen.selects:
            select.stand_behind(screen, screen.box_of(select))

    def _find_turns(self, operators: Sequence[Operator]) -> None:
        self.woken.behind = {}
        self.turns = list(operators)
        self.awake = self.turns
        if not self._of_producer:
            return
        self.turns = []
        for operator in operators:
            self.turns.append(operator)
            screen = self._of_producer.get(id(operator))
            if screen is not None:
                self.turns.append(screen)
        reader = {id(queue): operator for operator in operators for queue in operator.inputs}
        for screen in self._of_producer.values():
            for select in screen.selects:
                self.woken.behind[id(select.inputs[0])] = _behind(select, reader)
        asleep = {id(operator) for reading in self.woken.behind.values() for operator in reading}
        self.awake = [operator for operator in self.turns if id(operator) not in asleep]


def _behind(select: Select, reader: Mapping[int, Operator]) -> list[Operator]:
    """The filter and all that reads it, nearer ones first."""
    found: dict[int, Operator] = {id(select): select}
    todo: list[Operator] = [select]
    for operator in todo:
        for queue in operator.outputs:
            if id(reader[id(queue)]) not in found:
                found[id(reader[id(queue)])] = reader[id(queue)]
                todo.append(reader[id(queue)])
    return list(found.values())
