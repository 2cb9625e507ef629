"""The engine: takes what the input manager has released through the plans of the queries, slice by slice.

Queries that read the same inputs form a group: they have one frontier, the instant up to which every stream they read
has told all (docs/semantics T4), so they go through the same slices, and may share operators (`plan/sharing.py`). A
slice is a range of whole instants, about `batch_size` elements, and ends at the frontier. So operators never wait for
another input's time; what waits stays in the streams' stores (docs/design, point 10).

Invariant: when `step` returns, the engine is at rest: no operator has work, no queue holds an element, every query has
processed every closed instant.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from time import perf_counter_ns
from typing import Protocol, cast, runtime_checkable

from minidsms.cql.node import Node
from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Int64Array
from minidsms.engine.by_hand import ByHand, tell_queues
from minidsms.limits.allowance import NO_MEMORY, OPEN, Allowance
from minidsms.operators.constants import ByQuery, Constant
from minidsms.operators.contents import KnowsContents, PresentContents
from minidsms.operators.operator import Failure, Operator
from minidsms.operators.output import Output
from minidsms.operators.relation_source import RelationSource
from minidsms.operators.screen import Screen
from minidsms.operators.select import Select
from minidsms.operators.stream_source import StreamSource
from minidsms.plan.sharing import Leading, RunningOperators, name_lineage, operators_behind
from minidsms.plan.tails import filter_of
from minidsms.process.side_by_side import usable_threads
from minidsms.queues import Queue
from minidsms.scheduler import Scheduler
from minidsms.scheduler.parallel import Parallel
from minidsms.scheduler.round_robin import RoundRobin
from minidsms.screens.of_group import Screens
from minidsms.screens.screening import Screening
from minidsms.screens.tail import Folding, Tail
from minidsms.synopses.stream_store import StreamStore


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


class RelationProgress(InputProgress, Protocol):
    """What the engine asks of a relation, too."""

    told: int
    """No later change has ts <= it: for queries that read relations alone."""


@runtime_checkable
class Entrance(Protocol):
    """An operator through which an input enters a plan; told by what it does, for the reason `OwnsStore` gives."""

    def waiting(self) -> int:
        """Elements that have not been handed on."""

    def ts_of_waiting(self, index: int) -> int:
        """The instant of the index-th waiting element."""

    def allow(self, until: int) -> None:
        """Elements with ts <= until may go."""


class OwnsStore(Protocol):
    """A synopsis that may keep its rows in a store of its own: a window's stub. Told by what it has, not by its
    class, so that a connection without windows need not load compiled kernels.
    """

    @property
    def own_store(self) -> StreamStore | None:
        """The store, once there is one."""


@cache
def _is_entrance(kind: type[Operator]) -> bool:
    """Asked of classes: to ask of each operator takes a twentieth of the time that a query takes to be registered."""
    return issubclass(kind, Entrance)


@cache
def _owns_store(kind: type) -> bool:
    """Asked of classes, as above."""
    return hasattr(kind, "own_store")


def _entrances(operators: Iterable[Operator]) -> list[Entrance]:
    return [cast(Entrance, operator) for operator in operators if _is_entrance(type(operator))]  # type: ignore[arg-type]


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
        relations: Sequence[RelationProgress],
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
        self.sources = _entrances(operators)
        self.contents: PresentContents | None = None
        self.places: Mapping[Node, Sequence[int]] = {}
        """By node of the plan, which of the operators it is, of those that may keep their state, its last one last."""
        self.failure: Failure | None = None
        self.ending: Failure | None = None
        """How it is going to fail, as it did when the same came before."""
        self.on_failure: Callable[[Failure], object] = lambda failure: None
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
        self.sources = _entrances(self.operators)
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
        self.operators, self.output, self.sources = leading, None, _entrances(leading)

    def unfold(self, made: Network) -> None:
        """Take the operators of a plan made for it."""
        assert self.folding is not None
        self.folding.unfold()
        self.operators, self.output, self.sources, self.links = made.operators, made.output, made.sources, made.links

    def close(self) -> None:
        """Give up a plan that no group has taken: its operators' claims on stores."""
        for operator in self.operators:
            if operator.failures is None:  # no group runs it
                close_operator(operator)


def close_operator(operator: Operator) -> None:
    """End what an operator claims of shared stores."""
    close = getattr(operator, "close", None)
    if close is not None:
        close()


class Group:
    """The networks over the same inputs, run as one. progress: what was closed before the first of them.  ends_at: up
    to where time goes on when all streams have ended.

    is_apart: it holds one query that has settings of its own or is paused, and takes no other.  is_behind: its inputs
    are given their past, of which heartbeats say nothing.  is_paused: what comes waits in the stores.  is_cut: the
    slice ends before the frontier, and another is due.  batch_size, queue_size, queue_bytes: its own, or None.

    Invariant: `operators` are those of the networks that have not failed, each once, producers before consumers.
    """

    def __init__(
        self,
        streams: Sequence[InputProgress],
        relations: Sequence[RelationProgress],
        is_immediate: bool,
        progress: int = MIN_INSTANT,
        is_sharing: bool = False,
        screening: Screening | None = None,
        allowance: Allowance = OPEN,
    ) -> None:
        self.allowance = allowance
        self.streams = list(streams)
        self.relations = list(relations)
        self.is_immediate = is_immediate
        self.progress = progress
        self.ends_at = MIN_INSTANT
        self.is_paused = False
        self.is_apart = False
        self.is_behind = False
        self.is_cut = False
        self.has_endings = False
        """Queries have an `ending`."""
        self.released = 0
        self.batch_size: int | None = None
        self.queue_size: int | None = None
        self.queue_bytes: int | None = None
        self._networks: dict[int, Network] = {}
        self.operators: list[Operator] = []
        self.sources: list[Entrance] = []
        self.running = RunningOperators(is_sharing)
        self._users: dict[int, int] = {}
        self._failed: list[Operator] = []
        self.stubs: list[OwnsStore] = []
        """Which may own stores (`rest`)."""
        self._until = MIN_INSTANT
        self._in_flight = False
        self._is_changed = False
        self.screens = Screens(screening)
        self._by_hand = ByHand(())
        self._unfolded: list[Network] = []
        self._timed: list[Operator] = []
        self.parallel = Parallel()
        """Which of its operators, and of groups released with it, may run side by side."""

    # ---------------------------------------------------------------------------------------------------- members

    @property
    def networks(self) -> Collection[Network]:
        """Those of its queries, in the order in which they came."""
        return self._networks.values()

    def add(self, network: Network) -> None:
        """Run one more network. The engine is at rest. An interrupt on the way leaves nothing of it behind."""
        try:
            self._add(network)
        except BaseException:
            self._networks.pop(id(network), None)
            self._count_anew(network.operators)
            network.group = None
            raise

    def _add(self, network: Network) -> None:
        network.group = self
        self._networks[id(network)] = network
        _connect(network)
        self.has_endings = self.has_endings or network.ending is not None
        if network.failure is None:
            self._use(network.operators)
            self._is_changed = True
            network.join_family()
            if network.folding is not None and not network.folding.is_folded and network.folding.may_fold:
                self._unfolded.append(network)

    def remove(self, network: Network) -> None:
        """Forget a network, and free what only it used. An interrupt on the way leaves nothing of it behind either."""
        try:
            self._networks.pop(id(network), None)
            if network.failure is None:
                self._drop(network)
        except BaseException:
            self._networks.pop(id(network), None)
            self._count_anew(network.operators)
            raise

    def _count_anew(self, operators: Sequence[Operator]) -> None:
        """Something was cut short: find out from the networks which of these operators run no more."""
        users = Counter(id(op) for n in self.networks if n.failure is None for op in n.operators)
        self._users = dict(users)
        with contextlib.suppress(ValueError, KeyError):  # what has been ended already
            self._end({id(op): op for op in operators if id(op) not in users})

    def _drop(self, network: Network) -> None:
        """Run a network no more."""
        self._is_changed = True
        folding = network.folding
        if folding is not None and folding.is_folded:
            folding.unfold()
        elif folding is not None:
            self._unfolded = [n for n in self._unfolded if n is not network]
        network.quit_family()
        self._leave(network.operators)

    # ---------------------------------------------------------------------------------------------------- folding

    def fold(self) -> None:
        """Let screens run the queries that only show columns of filtered rows, where there are enough filters."""
        if not self.running.is_sharing or self.is_apart or not self._unfolded or not self.screens.folds:
            return
        by_producer: dict[int, list[Network]] = {}
        for network in self._unfolded:
            assert network.output is not None
            select = filter_of(network.operators)
            if select is not None and select.inputs[0].producer is not None:
                by_producer.setdefault(id(select.inputs[0].producer), []).append(network)
        wanted = self.screens.candidates(self.operators)
        for key, networks in by_producer.items():
            if key in wanted:
                self._fold_into(networks)

    def screen_over(self, producer: Operator) -> Screen | None:
        """The screen over an operator of which nothing has to be planned to fold one more query into it."""
        if self.screens.of(producer) is None:
            self.fold()
        return self.screens.of(producer) if self.screens.folds else None

    def _fold_into(self, networks: Sequence[Network]) -> None:
        """Fold queries over one operator."""
        select = filter_of(networks[0].operators)
        assert select is not None and select.inputs[0].producer is not None
        producer = select.inputs[0].producer
        screen, leading = self.screens.made(producer), operators_behind(producer)
        for network in networks:
            self._use(leading)
            self._leave(network.operators)
            network.fold(screen, leading)
        folded = {id(network) for network in networks}
        self._unfolded = [n for n in self._unfolded if id(n) not in folded]

    def unfold(self, network: Network) -> None:
        """Give a folded query operators of its own; it stays so until the group changes. The engine is at rest."""
        folding = network.folding
        if folding is None or not folding.is_folded:
            return
        made = folding.tail.definition.network(Leading(network.operators))
        before = network.operators
        network.unfold(made)
        _connect(network)
        self._use(network.operators)
        self._leave(before)
        self._is_changed = True
        if folding.may_fold:
            self._unfolded.append(network)

    def unfold_all(self) -> None:
        """Give every query operators. The engine is at rest."""
        for network in self.networks:
            self.unfold(network)

    def refit(self) -> None:
        """Bounds of queues have changed: what has been derived from them is derived anew."""
        self._is_changed = True

    def allow(self, allowance: Allowance) -> None:
        """Let its operators take so much from now on."""
        self.allowance = allowance
        for operator in self.operators:
            operator.allowance = allowance

    def users(self, operator: Operator) -> int:
        """How many queries an operator serves."""
        return self._users.get(id(operator), 0)

    def _use(self, operators: Sequence[Operator]) -> None:
        for operator in operators:
            users = self._users.get(id(operator), 0)
            self._users[id(operator)] = users + 1
            if users == 0:
                self._is_changed = True
                operator.failures, operator.allowance = self._failed, self.allowance
                self.operators.append(operator)
                self.running.add(operator)
                self.sources += _entrances((operator,))
                self.stubs += [cast(OwnsStore, s) for s in operator.synopses() if _owns_store(type(s))]

    def _leave(self, operators: Sequence[Operator]) -> None:
        gone: dict[int, Operator] = {}
        for operator in operators:
            self._users[id(operator)] -= 1
            if self._users[id(operator)] == 0:
                del self._users[id(operator)]
                gone[id(operator)] = operator
        if gone:
            self._end(gone)

    def _end(self, gone: Mapping[int, Operator]) -> None:
        """Run these operators, by id, no more."""
        self._is_changed, self._by_hand = True, ByHand(())
        self.operators = [op for op in self.operators if id(op) not in gone]
        self.sources = [op for op in self.sources if id(op) not in gone]
        for operator in gone.values():
            for queue in operator.inputs:
                producer = queue.producer
                if producer is not None and id(producer) not in gone:
                    producer.outputs = [q for q in producer.outputs if q is not queue]
                queue.clear()
            self.running.remove(operator)
            close_operator(operator)
        stubs = {id(s) for operator in gone.values() for s in operator.synopses()}
        self.stubs = [s for s in self.stubs if id(s) not in stubs]

    # --------------------------------------------------------------------------------------------------- progress

    def frontier(self, heartbeat: int) -> int:
        """The greatest closed instant. heartbeat: of the whole connection; it moves queries that read relations
        only.
        """
        progress = MAX_INSTANT
        for stream in self.streams:
            if not stream.ended and stream.progress < progress:
                progress = stream.progress
        if progress < MAX_INSTANT:
            return progress
        heartbeat = MIN_INSTANT if self.is_behind else heartbeat
        greatest = MIN_INSTANT
        for each in chain(self.streams, self.relations):
            ts = each.greatest_ts
            if ts is not None and ts > greatest:
                greatest = ts
        if self.streams:
            return max(greatest, self.ends_at)
        if all(r.ended for r in self.relations):
            return max(greatest, heartbeat)
        told = min(MAX_INSTANT if r.ended else r.told for r in self.relations)
        return max(heartbeat, told, greatest - 1 if greatest > MIN_INSTANT else MIN_INSTANT)

    def closed(self, heartbeat: int) -> int:
        """The greatest instant that is closed for the query, whether or not it has been let to answer it."""
        return self.frontier(heartbeat) if self.is_paused else self.progress

    def release(self, heartbeat: int, batch_size: int) -> bool:
        """Find the next slice that sources may hand on; False when there is nothing to do.

        Time in which nothing comes and nothing happens passes at once: no operator runs for it.
        """
        if not self.operators or self.is_paused:
            return False
        batch_size = self.batch_size or batch_size
        until, earliest = self.frontier(heartbeat), MAX_INSTANT
        self.is_cut = False
        if self.has_endings:
            until = self._before_endings(until)
            if not self.operators:
                return False
        released = 0
        if self.is_immediate:
            for source in self.sources:
                released += source.waiting()
            if not released:
                self.progress = max(until, self.progress)  # time alone yields nothing here
                return False
            until = max(until, self.progress)
        elif until <= self.progress:
            return False
        else:
            for source in self.sources:
                waiting = source.waiting()
                if not waiting:
                    continue
                released += waiting
                first = source.ts_of_waiting(0)
                if first < earliest:
                    earliest = first
                if waiting > batch_size:
                    last = source.ts_of_waiting(batch_size)
                    cut = first if last <= first else last - 1
                    if cut < until:
                        until, self.is_cut = cut, True
        if self._is_changed:
            self._is_changed = False
            self._arrange()
            tell_queues(self.operators)
            self._by_hand = ByHand(() if any(self.screens) else self.operators)
            self._timed = [op for op in self.operators if op.acts_on_time and not _is_entrance(type(op))]  # type: ignore[arg-type]
        if not self.is_immediate and earliest > until and self._sleeps(until):
            # The operators' own progress follows with the next slice, which then is longer.
            self.progress = until
            return self.is_cut and self.release(heartbeat, batch_size)
        self._until, self.released = until, released
        self._in_flight = True
        return True

    def _before_endings(self, until: int) -> int:
        """Fail the queries whose ending comes next; up to where the others go on, before one more has to."""
        coming = [n for n in self.networks if n.ending is not None and n.failure is None]
        for network in coming:
            ending = network.ending
            assert ending is not None
            if ending.ts <= until and not self.is_immediate:
                if ending.ts <= self.progress + 1:
                    self.fail(network, ending)
                else:
                    until, self.is_cut = ending.ts - 1, True
        self.has_endings = bool(coming)
        return until

    def _arrange(self) -> None:
        """Let screens take what they are to run, and give back what they are not. The engine is at rest."""
        self.fold()
        for screen in list(self.screens):
            if not self.screens.folds or not self.screens.pays(screen, self.operators):
                for network in self.networks:
                    if network.folding is not None and network.folding.screen is screen:
                        self.unfold(network)
        self.screens.arrange(self.operators)
        for screen in self.screens:
            screen.failures, screen.allowance = self._failed, self.allowance

    def _sleeps(self, until: int) -> bool:
        """No operator has anything to do up to that instant, as long as no element comes."""
        for operator in self._timed:
            if operator.wakes_at() <= until and operator.failure is None:
                return False
        return True

    def in_turn(self) -> Iterable[Operator]:
        """The operators that may have something to do, producers before consumers: where filters sleep behind screens
        and time alone does nothing, only those that were given something; whoever is given something meanwhile comes.
        """
        if not self.is_immediate:
            return self.screens.turns
        # Who else has a turn is only known as operators run.
        return self._awake_in_turn() if self.screens.woken.behind else self.screens.awake

    def pass_by_hand(self, least: int) -> bool:
        """Let the slice pass from hand to hand where it has few elements (`engine.by_hand`); whether it has passed.
        least: elements from which there is something to choose.
        """
        by_hand, released = self._by_hand, self.released
        if released <= by_hand.most and released < least and self.allowance.is_open and by_hand.pass_on(self._until):
            self._in_flight = False
            self.progress = self._until
            if self._failed:
                self.finish()
            return True
        return False

    def let_go(self) -> None:
        """The slice is to pass through queues: sources may hand it on."""
        if self._by_hand.has_passed:
            self._by_hand.tell_queues()
        for source in self.sources:
            source.allow(self._until)

    def _awake_in_turn(self) -> Iterator[Operator]:
        yield from self.screens.awake
        woken = self.screens.woken.operators
        at = 0
        while at < len(woken):
            yield woken[at]
            at += 1

    def finish(self) -> None:
        """The slice has passed."""
        self._in_flight = False
        self.screens.woken.rest()
        self.progress = self._until
        if self._failed:
            failed = {id(op): op.failure for op in self._failed}
            # A screen that has failed hands nothing on: neither to those folded into it nor to filters behind it.
            for screen in [op for op in self._failed if isinstance(op, Screen)]:
                failed |= {id(select): screen.failure for select in screen.selects}
            self._failed.clear()
            for network in [n for n in self.networks if n.failure is None]:
                found = [failed.get(id(op)) for op in network.operators]
                if network.folding is not None and network.folding.screen is not None:
                    found.append(failed.get(id(network.folding.screen)))
                failures = [failure for failure in found if failure is not None]
                if failures:
                    self._fail(network, min(failures, key=lambda f: f.ts))
            self._stop_at_failures()

    def interrupt(self, reason: str) -> None:
        """An exception has cut a step short: what was in flight is lost, and with it the answers from there on."""
        if self._in_flight:
            self.stop(f"interrupted by {reason}")

    def stop(self, reason: str) -> None:
        """No query has an answer behind the last slice, or what it has put out of the one under way."""
        self._in_flight = self.is_cut = False
        self._failed.clear()
        for network in [n for n in self.networks if n.failure is None]:
            answered = self.progress if network.output is None else max(self.progress, network.output.progress)
            self._fail(network, Failure(answered + 1, reason))

    def fail(self, network: Network, failure: Failure) -> None:
        """Let a query fail. The engine is at rest."""
        self._fail(network, failure)
        self._stop_at_failures()

    def _fail(self, network: Network, failure: Failure) -> None:
        """A query has come to its end; what only it used computes nothing more, and holds nothing back."""
        network.failure, network.sources = failure, []
        network.on_failure(failure)
        self._drop(network)

    def _stop_at_failures(self) -> None:
        """Where every query has failed, nothing is closed beyond the last answers."""
        if not self.operators:
            self.progress = max((n.progress for n in self.networks), default=self.progress)

    def rest(self) -> None:
        """No reference is in flight: the stores that windows over derived streams own may free what they have
        passed.
        """
        for stub in self.stubs:
            store = stub.own_store
            if store is not None:
                store.free()

    def live_codes(self) -> Iterator[Int64Array]:
        """TEXT codes that the synopses hold or that wait in sources."""
        for source in self.sources:
            if isinstance(source, RelationSource):
                yield from source.live_codes()
        for operator in (*self.operators, *self.screens):
            for synopsis in operator.synopses():
                yield from synopsis.live_codes()

    @property
    def nbytes(self) -> int:
        """Bytes held by the operators, and, while they are at work, by the queues between them."""
        held: int = sum(s.nbytes for op in (*self.operators, *self.screens) for s in op.synopses())
        return held + (sum(q.nbytes for op in self.operators for q in op.inputs) if self._in_flight else 0)


class _Turns:
    """The operators of several groups, one turn each time it is gone through."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups

    def __iter__(self) -> Iterator[Operator]:
        for group in self._groups:
            yield from group.in_turn()


WORTH_THREADS = 16_384
"""Elements of a slice from which operators run side by side: handing one to another thread takes some 50 us."""


class Engine:
    """Drives groups of networks with a scheduler. threads: that may be at work on a slice, or 'auto'."""

    def __init__(self, scheduler: Scheduler, batch_size: int, threads: Callable[[], int | str] = lambda: 1) -> None:
        self.scheduler = scheduler
        self.batch_size = batch_size
        self._threads = threads
        self.heartbeat = MIN_INSTANT
        self._in_turn = RoundRobin(scheduler.quantum)

    def _scheduler_for(self, elements: int) -> Scheduler:
        """Where few elements come, nobody needs to choose: they pass through the plan in one turn."""
        scheduler = self.scheduler
        if elements >= scheduler.least:
            return scheduler
        if self._in_turn.quantum != scheduler.quantum:
            self._in_turn = RoundRobin(scheduler.quantum)
        return self._in_turn

    def step(self, groups: Iterable[Group]) -> bool:
        """Process everything that is due in these groups; whether an operator ran."""
        pending: Iterable[Group] = groups
        has_run = False
        while pending:
            released: list[Group] = []
            cut: list[Group] = []
            for group in pending:
                try:
                    if group.release(self.heartbeat, self.batch_size):
                        has_run = True
                        if group.is_cut:
                            cut.append(group)
                        if not group.pass_by_hand(self.scheduler.least):
                            group.let_go()
                            released.append(group)
                except MemoryError:  # its queries end before the slice
                    group.stop(NO_MEMORY)
            if released:
                try:
                    self._run(released)
                except MemoryError:
                    for group in released:
                        group.stop(NO_MEMORY)
            pending = [group for group in cut if group.is_cut] if cut else ()
        return has_run

    def _run(self, released: Sequence[Group]) -> None:
        """Let a slice of these groups pass."""
        elements = 0
        for group in released:
            elements += group.released
        if elements >= WORTH_THREADS and self._threads() != 1:
            self._run_in_parallel(released, elements)
        else:
            self._schedule(released, elements)
        for group in released:
            group.finish()

    def _run_in_parallel(self, released: Sequence[Group], elements: int) -> None:
        """The same, where operators that do not wait for each other run side by side if that pays; the scheduler has
        what is left. Where memory or time is limited, which query fails depends on the order, and stays in one thread.
        """
        groups = [group for group in released if not group.is_immediate and group.allowance.is_open]
        operators = [operator for group in groups for operator in group.screens.turns]
        parallel, threads = released[0].parallel, self._threads()
        at_once = min(parallel.width(operators), usable_threads(threads))
        pays = at_once > 1 and (threads != "auto" or parallel.dividing.pays())
        began = perf_counter_ns()
        if pays:
            for operator in operators:
                if isinstance(operator, StreamSource):
                    operator.store.keep()  # it would be copied by the first who asks, and two may ask at once
            parallel.run(operators, self.scheduler.quantum, at_once)
        self._schedule(released, elements)
        if at_once > 1:
            parallel.dividing.took(pays, (perf_counter_ns() - began) / elements)

    def _schedule(self, released: Sequence[Group], elements: int) -> None:
        """Let the scheduler run what has work. elements: of the slice."""
        scheduler = self._scheduler_for(elements)
        if isinstance(scheduler, RoundRobin):
            turns = released[0].in_turn()
            scheduler.run(turns if len(released) == 1 and isinstance(turns, list) else _Turns(released))
        else:
            scheduler.run([op for g in released for op in g.screens.turns])


def _connect(network: Network) -> None:
    """Let the operators that a network shares with others feed it, too."""
    for queue in network.links:
        assert queue.producer is not None
        queue.progress = queue.producer.progress
        queue.producer.outputs.append(queue)
    network.links = []
