"""The queries that read the same inputs: they go through the same slices, and may share operators.

A group has one frontier, the instant up to which every stream that it reads has told all (docs/semantics T4). A slice
is a range of whole instants, about `batch_size` elements, and ends at the frontier (docs/design, point 10).

Invariant: an operator runs as long as one of the networks uses it, and no longer.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast

from minidsms.elements import MAX_INSTANT, MIN_INSTANT, Int64Array
from minidsms.engine.by_hand import ByHand, tell_queues
from minidsms.engine.network import Entrance, InputProgress, Network, close_operator, entrances, is_entrance
from minidsms.limits.allowance import OPEN, Allowance
from minidsms.operators.operator import Failure, Operator
from minidsms.operators.relation_source import RelationSource
from minidsms.operators.screen import Screen
from minidsms.plan.sharing import Leading, RunningOperators, operators_behind
from minidsms.plan.tails import filter_of
from minidsms.queues import LITTLE
from minidsms.scheduler.parallel import Parallel
from minidsms.scheduler.scheduler import Scheduler
from minidsms.screens.of_group import Screens
from minidsms.screens.screening import Screening
from minidsms.synopses.stream_store import StreamStore

if TYPE_CHECKING:
    from minidsms.inputs.relation_input import RelationInput


class OwnsStore(Protocol):
    """A synopsis that may keep its rows in a store of its own: a window's stub. Told by what it has, not by its
    class, so that a connection without windows need not load compiled kernels.
    """

    @property
    def own_store(self) -> StreamStore | None:
        """The store, once there is one."""


@cache
def _owns_store(kind: type) -> bool:
    """Asked of classes: to ask of each synopsis takes longer."""
    return hasattr(kind, "own_store")


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
        relations: Sequence[RelationInput],
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
        self.released = self._most = 0
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
        self.is_in_flight = False
        """A slice is under way: operators may be in the middle of it that no network uses any more."""
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
        network.connect()
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
        network.connect()
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
                self.sources += entrances((operator,))
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
        stubs = {id(s) for operator in gone.values() for s in operator.synopses()}
        for operator in gone.values():
            for queue in operator.inputs:
                producer = queue.producer
                if producer is not None and id(producer) not in gone:
                    producer.outputs = [q for q in producer.outputs if q is not queue]
                queue.clear()
            self.running.remove(operator)
            close_operator(operator)
            operator.failures = None
        self.screens.forget(gone)
        self.stubs = [s for s in self.stubs if id(s) not in stubs]

    # --------------------------------------------------------------------------------------------------- progress

    def frontier(self, heartbeat: int) -> int:
        """The greatest closed instant (docs/semantics T4). heartbeat: of the whole connection; it moves queries of
        which relations alone may still change.
        """
        progress = MAX_INSTANT
        for stream in self.streams:
            if not stream.ended and stream.progress < progress:
                progress = stream.progress
        if progress < MAX_INSTANT:
            return progress
        heartbeat = MIN_INSTANT if self.is_behind else heartbeat
        of_streams = _greatest(self.streams)
        greatest = max(of_streams, _greatest(self.relations))
        # Beside streams that have ended, only a source may change a relation once more at the same instant.
        told = [r.told for r in self.relations if not r.ended and (r.is_fed or not self.streams)]
        closed = max(heartbeat, min(told), greatest - 1) if told else max(heartbeat, greatest)
        return max(min(closed, greatest), of_streams, self.ends_at) if self.streams else closed

    @property
    def is_of_relations(self) -> bool:
        """A change of a relation closes the instants before it for the others (T4)."""
        return len(self.relations) > 1 and all(stream.ended for stream in self.streams)

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
        most = batch_size + batch_size // LITTLE
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
                if waiting > most:
                    last = source.ts_of_waiting(batch_size)
                    cut = first if last <= first else last - 1
                    if cut < until:
                        until, self.is_cut = cut, True
        if self._is_changed:
            self._is_changed = False
            self._arrange()
            tell_queues(self.operators)
            self._by_hand = ByHand(())
            self._timed = [op for op in self.operators if op.acts_on_time and not is_entrance(type(op))]  # type: ignore[arg-type]
        if not self.is_immediate and earliest > until and self._sleeps(until):
            # The operators' own progress follows with the next slice, which then is longer.
            self.progress = until
            return self.is_cut and self.release(heartbeat, batch_size)
        self._until, self.released, self._most = until, released, most
        self.is_in_flight = True
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

    def pass_by_hand(self, scheduler: Scheduler, is_alone: bool) -> bool:
        """Let the slice pass from hand to hand where nobody needs to choose (`engine.by_hand`); whether it has passed.
        is_alone: no other group might pass at the same time.
        """
        by_hand, elements = self._by_hand, self.released
        if by_hand.quantum != scheduler.quantum:
            if by_hand.has_passed:
                by_hand.tell_queues()
            by_hand = self._by_hand = ByHand(() if any(self.screens) else self.operators, scheduler.quantum)
        if by_hand.is_path and is_alone:
            # Of what waits a slice has no more than these, or an instant, which an operator takes in one turn, too.
            elements = elements if self.is_immediate else min(elements, self._most)
        elif elements >= scheduler.least:
            return False
        if elements <= by_hand.most and by_hand.pass_on(self._until):
            self.is_in_flight = False
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
        self.is_in_flight = False
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
        if self.is_in_flight:
            self.stop(f"interrupted by {reason}")

    def stop(self, reason: str) -> None:
        """No query has an answer behind the last slice, or what it has put out of the one under way."""
        self.is_in_flight = self.is_cut = False
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
        network.fail(failure)
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
        return held + (sum(q.nbytes for op in self.operators for q in op.inputs) if self.is_in_flight else 0)


def _greatest(inputs: Iterable[InputProgress]) -> int:
    """The greatest instant that one of them has shown, MIN_INSTANT where none has."""
    return max((i.greatest_ts for i in inputs if i.greatest_ts is not None), default=MIN_INSTANT)
