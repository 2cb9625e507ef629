"""The running plan of a query: operators, of which other queries of its group may use some, too.

Invariant: operators stand behind those that feed them; what a plan is linked to runs before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from minidsms.cql.node import Node
from minidsms.elements import MIN_INSTANT
from minidsms.operators.constants import ByQuery, Constant
from minidsms.operators.contents import KnowsContents, PresentContents
from minidsms.operators.operator import Failure, Operator
from minidsms.operators.output import Output
from minidsms.operators.screen import Screen
from minidsms.operators.select import Select
from minidsms.plan.sharing import name_lineage, operators_behind
from minidsms.queues import Queue
from minidsms.screens.tail import Folding, Tail

if TYPE_CHECKING:
    from minidsms.engine.group import Group
    from minidsms.inputs.relation_input import RelationInput


class InputProgress(Protocol):
    """What the engine asks of an input."""

    @property
    def progress(self) -> int:
        """No later element has ts <= it."""

    @property
    def greatest_ts(self) -> int | None:
        """The greatest instant seen."""

    @property
    def ended(self) -> bool:
        """Nothing more comes."""


@runtime_checkable
class Entrance(Protocol):
    """An operator through which an input enters a plan; told by what it does, not by its class."""

    def waiting(self) -> int:
        """Elements that have not been handed on."""

    def ts_of_waiting(self, index: int) -> int:
        """The instant of the index-th waiting element."""

    def allow(self, until: int) -> None:
        """Elements with ts <= until may go."""


@cache
def is_entrance(kind: type[Operator]) -> bool:
    """Asked of classes: to ask of each operator takes a twentieth of the time that a query takes to be registered."""
    return issubclass(kind, Entrance)


def entrances(operators: Iterable[Operator]) -> list[Entrance]:
    """Those of these operators that are."""
    return [cast(Entrance, operator) for operator in operators if is_entrance(type(operator))]  # type: ignore[arg-type]


class Network:
    """The running plan of a query: its operators, in an order in which producers stand before consumers.

    output: the last operator, this query's alone; the others may serve other queries of the group too.
    streams, relations: the inputs read.  is_immediate: see `Operator.is_immediate`.
    links: queues out of operators that run already; they are joined to them by `Group.add`, so that a plan that is
    given up leaves nothing behind.
    tail: what a screen needs to know to run the query (`screens.tail`). While it is folded its operators are those
    that lead to the screen.
    constant: what the query has of its own, where it runs in a family (`plan.constants`).
    """

    def __init__(
        self,
        operators: Sequence[Operator],
        output: Output | None,
        streams: Sequence[InputProgress],
        relations: Sequence[RelationInput],
        is_immediate: bool,
        links: Sequence[Queue] = (),
        tail: Tail | None = None,
        constant: Constant | None = None,
    ) -> None:
        self.operators: Sequence[Operator] = list(operators)
        self.constant = constant
        self._is_member = False
        self.output = output
        self.folding = Folding(tail) if tail is not None else None
        self.streams = streams
        self.relations = relations
        self.is_immediate = is_immediate
        self.links = list(links)
        self.sources = entrances(operators)
        self.contents: PresentContents | None = None
        self.places: Mapping[Node, Sequence[int]] = {}
        """By node of the plan, which of the operators it is, of those that may keep their state, its last one last."""
        self.failure: Failure | None = None
        self.ending: Failure | None = None
        """How it is going to fail, as it did when the same came before."""
        self.on_failure: Callable[[Failure], object] = _ignored
        self.group: Group | None = None

    @property
    def progress(self) -> int:
        """The greatest instant whose answer is known."""
        if self.failure is not None:
            return self.failure.ts - 1
        return MIN_INSTANT if self.group is None else self.group.progress

    @property
    def is_paused(self) -> bool:
        """What comes waits in the stores. Only of a network that is alone in its group (`Groups.part`)."""
        return self.group is not None and self.group.is_paused

    @is_paused.setter
    def is_paused(self, value: bool) -> None:
        if self.group is not None:
            self.group.is_paused = value

    @property
    def batch_size(self) -> int | None:
        """Elements in a slice, or None. Only of a network that is alone in its group."""
        return None if self.group is None else self.group.batch_size

    @batch_size.setter
    def batch_size(self, value: int | None) -> None:
        if self.group is not None:
            self.group.batch_size = value

    def replace(self, copies: Mapping[int, Operator]) -> None:
        """Take other operators for those below the output, by the ids of the old ones. It is in no group meanwhile."""
        assert self.output is not None
        before = self.output.inputs[0]
        producer = copies[id(before.producer)]
        queue = Queue(before.schema, before.bound, before.name, before.byte_bound)
        queue.producer, queue.progress = producer, producer.progress
        producer.outputs.append(queue)
        self.output.inputs = [queue]
        self.operators = operators_behind(self.output)
        self.sources = entrances(self.operators)
        if self.contents is not None:
            known = next(op for op in self.operators if op.lineage == self.contents.operator.lineage)
            assert isinstance(known, KnowsContents)
            self.contents.operator = known
        if self.constant is not None:
            self._leave_family(self.constant.number)

    def _leave_family(self, number: int) -> None:
        """The operators of a family have been copied for this query alone: from now on they put out less than those."""
        own: set[int] = set()
        for operator in self.operators:
            if isinstance(operator, ByQuery):
                operator.keep_only(number)
            if isinstance(operator, ByQuery) or any(id(queue.producer) in own for queue in operator.inputs):
                own.add(id(operator))
                name_lineage(operator, None, None)

    def join_family(self) -> None:
        """Let the operators of its family work for it."""
        if self.constant is not None:
            self._is_member = True
            for operator in self.operators:
                if isinstance(operator, ByQuery):
                    operator.admit(self.constant)

    def quit_family(self) -> None:
        """Let them work for it no more."""
        if self.constant is not None and self._is_member:
            self._is_member = False
            for operator in self.operators:
                if isinstance(operator, ByQuery):
                    operator.dismiss(self.constant.number)

    def connect(self) -> None:
        """Let the operators that it shares with others feed it, too."""
        for queue in self.links:
            assert queue.producer is not None
            queue.progress = queue.producer.progress
            queue.producer.outputs.append(queue)
        self.links = []

    @property
    def working(self) -> list[Operator]:
        """Its operators, and the screens that hand them their rows, or run it."""
        selects = [op for op in self.operators if isinstance(op, Select)]
        screens = {id(select.screen): select.screen for select in selects if select.screen is not None}
        if self.folding is not None and self.folding.screen is not None:
            screens[id(self.folding.screen)] = self.folding.screen
        return [*self.operators, *screens.values()]

    def fold(self, screen: Screen, leading: Sequence[Operator]) -> None:
        """Let a screen run it. leading: the operators that lead to the screen."""
        assert self.folding is not None
        self.folding.fold(screen)
        self.operators, self.output, self.sources = leading, None, entrances(leading)

    def unfold(self, made: Network) -> None:
        """Take the operators of a plan made for it."""
        assert self.folding is not None
        self.folding.unfold()
        self.operators, self.output, self.sources, self.links = made.operators, made.output, made.sources, made.links

    def fail(self, failure: Failure) -> None:
        """It has come to its end; its operators stay, for who looks at them, until the query is closed."""
        for operator in self.operators:
            operator.shown += 1
        self.failure, self.sources = failure, []

    def close(self) -> None:
        """Give up a plan that no group has taken: its operators' claims on stores."""
        for operator in self.operators:
            if operator.failures is None:  # no group runs it
                close_operator(operator)

    def release(self) -> None:
        """Its query is closed: what only its operators hold goes at once, whoever still refers to the query; but not
        amid a slice, where a function of the user has closed it: they may yet have a turn.
        """
        operators, is_amid = self.operators, self.group is not None and self.group.is_in_flight
        # First: an interrupt on the way leaves nothing behind that is asked for what has gone.
        self.operators, self.sources, self.output, self.contents = [], [], None, None
        self.on_failure = _ignored
        for operator in operators:
            operator.shown -= self.failure is not None
            if operator.failures is None and not operator.shown and not is_amid:
                operator.let_go()


def _ignored(failure: Failure) -> None:
    """Nobody is told of it."""


def close_operator(operator: Operator) -> None:
    """End what an operator claims of shared stores."""
    close = getattr(operator, "close", None)
    if close is not None:
        close()
