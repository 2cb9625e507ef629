"""A query as the engine runs it: what its plan delivers, where that waits, and where it goes.

Invariant: an answer waits until it is fetched, told to callbacks or taken by a sink, and goes one of these ways.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from minidsms.answers.in_hand import InHand, Loop
from minidsms.answers.newest import Newest
from minidsms.answers.present_rows import PresentRows
from minidsms.answers.results import ResultCodec
from minidsms.answers.rows import Change as Change
from minidsms.answers.shown_order import Order
from minidsms.answers.waiting import WaitingBatches, after
from minidsms.cql.errors import Error
from minidsms.elements import MIN_INSTANT, Batch, Schema
from minidsms.limits.allowance import OwnAllowance
from minidsms.process.collecting import Uncollected
from minidsms.process.interrupts import breakable
from minidsms.statements.query_settings import QuerySettings
from minidsms.synopses.stream_store import StreamStore

if TYPE_CHECKING:
    from minidsms.archive.recorder import Recorder
    from minidsms.cql.bound import Node
    from minidsms.engine.database import Database
    from minidsms.engine.network import Network
    from minidsms.operators.contents import PresentContents
    from minidsms.operators.operator import Failure
    from minidsms.plan.explain import Plan
    from minidsms.screens.tail import Folding
    from minidsms.sinks.sink import Sink

_log = logging.getLogger("minidsms.sinks")
_life = logging.getLogger("minidsms.queries")


class RunningQuery:
    """What the engine knows of a query; the application holds it as a `Query`."""

    def __init__(
        self,
        connection: Database,
        name: str,
        text: str,
        kind: str,
        schema: Schema,
        expanded: str | None,
        codec: ResultCodec,
    ) -> None:
        """expanded: None where only the text is kept; then the network's tail gives it."""
        self._connection = connection
        self.began_s = time.monotonic()
        self.name = name
        self.text = text
        self.kind = kind
        self.schema = schema
        self._expanded = expanded
        self.codec = codec
        self._row_nbytes = 8 + 8 * len(schema) + 1  # of an answer, at most (`Batch.row_nbytes`)
        self._pending = WaitingBatches()
        self._present = PresentRows(schema, connection.background)
        self.order: Order = ()
        """How its present rows are sorted."""
        self._callbacks: list[Callable[[Change], Any]] = []
        self.untold: deque[Change] = deque()
        self._hand: InHand | None = None
        self._loops: tuple[ref[Loop], ...] = ()
        self._is_given = False
        """Loops have been given changes that a folder may still keep."""
        self._sink: Sink | None = None
        self._last_sink: tuple[Sink, str] | None = None
        self._network: Network | None = None
        self._plan: Plan | None = None
        self._folding: Folding | None = None
        self._closed = False
        self._results = 0
        self._most_results: int | None = None
        self.past_until = MIN_INSTANT
        """The greatest instant that was closed when it began with a past."""
        self.began_with_archives = False
        """That past came from archives: it reads stores of its own."""
        self.shed: dict[str, int] = {}
        self.wakers: list[Callable[[], None]] = []
        self.recorder: Recorder | None = None
        self._newest: Newest | None = None
        self.settings = QuerySettings(connection.settings)

    @property
    def expanded(self) -> str:
        """The query with every default written out (docs/semantics D4)."""
        if self._expanded is None:
            assert self._folding is not None
            return self._folding.tail.definition.plan().expanded
        return self._expanded

    def attach(self, network: Network, plan: Plan | None) -> None:
        """Give the query its running plan. plan: what EXPLAIN shows; None: the network's tail knows it."""
        self._network, self._plan, self._folding = network, plan, network.folding
        network.on_failure = self._log_failure
        ending = self._connection.journal.ending_of(self)
        if ending is not None:
            network.ending, self._most_results = ending
        _life.debug("query %s: registered", self.name)
        if plan is not None:
            self.apply_settings()

    def _log_failure(self, failure: Failure) -> None:
        _life.error("query %s: failed at %s: %s", self.name, failure.ts, failure.reason)
        self._connection.journal.note_failure(self, failure)

    def end_at(self, failure: Failure, results: int) -> None:
        """Fail as it failed when the same came before, after so many answers."""
        self.stand_alone()
        self.network.ending, self._most_results = failure, results
        if self.network.group is not None:
            self.network.group.has_endings = True

    def fail_now(self) -> None:
        """What made it fail has come."""
        network = self.network
        if network.failure is None and network.ending is not None and network.group is not None:
            network.group.fail(network, network.ending)

    def deliver(self, batch: Batch) -> int | None:
        """Take final results from the output operator; the first instant of which `answer_limit` allows none, or
        None. Of an instant all come at once.
        """
        n, refused = len(batch.ts), None
        if self._folding is not None:
            self._take_folded()  # what a screen has given it is older
        if self._most_results is not None:
            n = min(n, self._most_results - self._results)
            if n <= 0:
                return None  # it fails when all has come
            batch = batch.slice(0, n)
        connection = self._connection
        limit = None if connection.is_replayed else connection.settings.values["answer_limit"]
        if limit is not None and self._sink is None and not self._callbacks:
            room = limit - self._waiting()[0]
            if n > room:
                refused = int(batch.ts[max(0, room)])
                n = int(np.searchsorted(batch.ts, refused))
                if not n:
                    return refused
                batch = batch.slice(0, n)
        # What memory may lack for comes first: of a query that fails there neither answers nor present rows are shown.
        if self._newest is not None:
            batch = batch.owned()
        if self.kind == "relation" and (self._network is None or self._network.contents is None):
            self._present.add(batch)
        self._pending.append(batch)
        self._results += n
        if connection.news.is_wanted:
            connection.news.note(self)
        connection.memory.grow(n * self._row_nbytes)
        # Who is woken looks what waits before he takes the lock; he may go meanwhile, in a thread of his own.
        for wake in tuple(self.wakers):
            wake()
        if self.recorder is not None:
            self.recorder.add_batch(batch)
        if self._newest is not None:
            self._newest.add(batch)
        return refused

    def _collect(self) -> list[Batch]:
        """What waits, with what a screen holds of it, and what is in hand."""
        self._take_folded()
        pending = self._pending.batches()
        return pending if self._hand is None else [*self._hand.rest(), *pending]

    def _put_back(self) -> None:
        """What is in hand waits as batches again."""
        hand, self._hand = self._hand, None
        if hand is not None and hand.left:
            self.give_back(hand.give_up())

    def _take_in_hand(self, loop: Loop) -> InHand | None:
        """What loops are given next, if anything waits. The caller holds the lock."""
        hand, connection = self._hand, self._connection
        is_left = hand is not None and hand.left > 0
        begin, before = 0, list[Batch]()
        own = ref(loop)
        if connection.journal.keeps_answers and not (is_left and loop.since >= hand.begin and own in self._loops):  # type: ignore[union-attr]
            connection.journal.commit()
            begin = loop.since = self.position
            if own not in self._loops:
                self._loops = (*self._loops, own)
            since = self.note_given()
            if hand is not None:
                before = hand.kept(since)
            self._is_given = True
        if not is_left:
            self._take_folded()
            waiting = self._pending.batches()
            self._hand = hand = InHand(waiting, begin, before) if waiting or before else None
            self._pending.take()
        return hand if hand is not None and (is_left or hand.left) else None

    def _loops_since(self) -> int:
        """The position of the first change that a loop may be at."""
        self._loops = tuple([each for each in self._loops if each() is not None])
        since = [loop.since for each in self._loops if (loop := each()) is not None]
        return min(since) if since else self.position

    def note_given(self) -> int:
        """What loops have been given need not be kept, once none is at it. From where on it is. The caller holds the
        lock.
        """
        since = self._loops_since()
        if self._is_given and not self.untold:
            self._connection.journal.note_taken(self, since)
            self._is_given = bool(self._loops)
        return since

    def end_loops(self) -> None:
        """Let loops be at nothing, and note what they have been given. The caller holds the lock."""
        self._loops = ()
        self.note_given()

    def _take_folded(self) -> None:
        """Let what a screen holds wait here."""
        if self._folding is not None and self._folding.is_waiting:
            for batch in self._folding.take():
                self._pending.append(batch)
                if self._newest is not None:
                    self._newest.add(batch)
                if self.kind == "relation":
                    self._present.add(batch)

    @property
    def is_waiting(self) -> bool:
        """There are answers that have not been fetched."""
        is_held = self._folding is not None and self._folding.is_waiting
        return self._pending.changes > 0 or is_held or (self._hand is not None and self._hand.left > 0)

    def _waiting(self) -> tuple[int, int]:
        """(changes, bytes) that wait."""
        more, nbytes = (0, 0) if self._folding is None or not self._folding.is_waiting else self._folding.waiting()
        left, held = (0, 0) if self._hand is None else (self._hand.left, self._held(self._hand))
        return self._pending.changes + left + more, self._pending.nbytes + held * self._row_nbytes + nbytes

    def _held(self, hand: InHand) -> int:
        """How many changes loops are given or may still be at."""
        since = [loop.since for each in self._loops if (loop := each()) is not None]
        return hand.held(min(since)) if since else hand.left

    def stand_alone(self) -> None:
        """Be told of every batch as it comes: no screen runs the query any more."""
        if self._folding is not None:
            self._folding.may_fold = False
            if self.network.group is not None:
                self.network.group.unfold(self.network)

    @property
    def _contents(self) -> PresentContents | None:
        """What gives the present rows, where an operator knows them."""
        return None if self._network is None else self._network.contents

    def set_sink(self, sink: Sink) -> None:
        """Let the answers, those waiting first, go to an open sink."""
        self._sink, self._last_sink = sink, (sink, "writing")
        self._connection.outward[self.name.lower()] = self
        give_back = self.giving_back()
        try:
            self.drain()
        except BaseException:
            if not self._callbacks:  # which have it among what they are to be told
                give_back()
            raise

    def drain(self) -> None:
        """Hand what waits to the sink. Raises Error where it cannot be written; then the sink is given up."""
        sink = self._sink
        if sink is None or not self.is_waiting:
            return
        self._put_back()
        self._is_given = False  # as in `take`
        pending = self._collect()
        # A sink takes what would wait to be fetched; callbacks are told all the same.
        self.take_for_callbacks()
        self._pending.take()
        try:
            with breakable:
                for batch in pending:
                    if self._sink is sink:  # a function may have closed the query
                        sink.write(batch)
        except BaseException as error:
            if isinstance(error, Error) and hasattr(sink, "notes"):
                sink.notes.append(str(error))
            self.discard_sink()
            raise

    def close_sink(self) -> None:
        """Publish what the sink has been given; later answers wait to be fetched again."""
        self.drain()
        sink, self._sink = self._sink, None
        if sink is not None:
            self._last_sink = (sink, "failed")
            try:
                with breakable:
                    sink.close()
            except KeyboardInterrupt:
                sink.discard()
                raise
            self._last_sink = (sink, "written")
            _log.info("query %s: %s rows written to %s", self.name, f"{sink.rows:,}", sink.path)

    def release_sink(self) -> None:
        """Leave the sink as it is to somebody else."""
        self._sink = None

    def discard_sink(self) -> None:
        """Give the sink up: its file is left as it was."""
        sink, self._sink = self._sink, None
        if sink is not None:
            self._last_sink = (sink, "given up")
            sink.discard()

    @property
    def sink(self) -> Sink | None:
        """Where the answers go instead of waiting to be fetched, or None."""
        return self._sink

    @property
    def inputs_ended(self) -> bool:
        """Every stream read has ended, and there is one; and what came has been answered."""
        network = self.network
        return bool(network.streams) and all(s.ended for s in network.streams) and not network.is_paused

    def take_for_callbacks(self) -> None:
        """Put what waits among what the callbacks are to be told, where there are any."""
        if self._callbacks and self.is_waiting:
            self.untold.extend(self.take())

    def note_told(self) -> None:
        """What was taken for callbacks has been told."""
        if self._connection.journal.keeps_answers:
            with self._connection.lock:
                if not self._closed and not self.untold:
                    self._connection.journal.note_taken(self, self.position)

    def callbacks(self) -> tuple[Callable[[Change], Any], ...]:
        return tuple(self._callbacks)

    def delivered(self, is_new: bool) -> list[Batch]:
        """Where an archive of the query begins: with all its answers where it is new, else with the present rows."""
        if is_new:
            return list(self._collect())
        self._collect()
        if self.kind != "relation":
            return []
        contents = self._contents
        rows = self._present.rows() if contents is None else contents()
        return [Batch(np.full(len(rows), self.closed_until, np.int64), None, rows.columns)]

    def waiting_batches(self) -> list[Batch]:
        """The answers that wait, and before them those that loops under way may be at. They go on waiting."""
        if self._hand is None:
            return list(self._collect())
        self._take_folded()
        return [*self._hand.kept(self._loops_since()), *self._pending.batches()]

    def restore(self, results: int, waiting: Batch) -> None:
        """Have given so many answers, of which these wait."""
        self._take_folded()
        self._pending.replace([waiting] if len(waiting) else [])
        self._results = results - (0 if self._folding is None else self._folding.results)

    def live_batches(self) -> list[Batch]:
        """Results whose TEXT codes are still needed."""
        left = [] if self._folding is None else self._folding.left
        kept = [] if self._newest is None else self._newest.batches()
        given = [] if self._hand is None else self._hand.batches
        return [*self._pending.batches(), *given, *left, *kept, self._present.rows()]

    def taken_batches(self) -> list[Batch]:
        """The answers that wait; they wait no more. The caller holds the lock."""
        self._take_folded()
        self._put_back()
        self._loops = ()  # what they are at is taken, too
        return self._pending.take()

    def take(self) -> list[Change]:
        """What waits; it waits no more. The caller holds the lock."""
        pending = self.taken_batches()
        self._is_given = False  # who is told notes it, when he has been
        changes: list[Change] = []
        with Uncollected():
            for batch in pending:
                changes.extend(self.codec.changes(batch))
        return changes

    def give_back(self, batches: Sequence[Batch], unnote: Callable[[], None] = lambda: None) -> None:
        """What has been taken waits again, before what came since. unnote: see `Journal.note_taken`."""
        if batches:
            self._pending.replace([*batches, *self._pending.batches()])
        unnote()

    def giving_back(self) -> Callable[[], None]:
        """What lets wait again what waits now. The caller holds the lock."""
        self._put_back()
        return partial(self.give_back, [*self._collect()])

    @property
    def failure(self) -> tuple[int, str] | None:
        """(instant, reason) when the query has stopped with an error, else None."""
        if self._network is None or self._network.failure is None:
            return None
        return self._network.failure.ts, self._network.failure.reason

    @property
    def closed_until(self) -> int:
        """The greatest closed instant whose answer is known."""
        assert self._network is not None
        return self._network.progress

    @property
    def results(self) -> int:
        """How many changes it has delivered."""
        return self._results + (0 if self._folding is None else self._folding.results)

    @property
    def position(self) -> int:
        """How many changes have been taken: those that wait are counted from here."""
        return self.results - self._waiting()[0]

    def acknowledge(self, until: int) -> None:
        """The changes before this position wait no more."""
        dropped = until - self.position
        self._put_back()
        self._loops = ()
        self._pending.replace(after(self._collect(), dropped))

    def apply_settings(self) -> None:
        """Let the settings take effect on the running plan."""
        if self._network is not None:
            allowance, limit = self._connection.allowance, self.settings.memory_limit
            if limit is not None and not self._connection.is_replayed:
                allowance = OwnAllowance(allowance, limit, lambda: self.nbytes)
            self.settings.apply(self._network, allowance)

    @property
    def logical(self) -> Node:
        """The rewritten plan."""
        plan = self._plan if self._plan is not None or self._folding is None else self._folding.tail.definition.plan()
        assert plan is not None
        return plan.logical.root

    @property
    def network(self) -> Network:
        """The running plan."""
        assert self._network is not None
        return self._network

    @property
    def answer_nbytes(self) -> int:
        """Bytes of the answers that wait to be fetched, with those that loops may be at in a folder, and of the rows
        kept for `snapshot`.
        """
        left = [] if self._folding is None else self._folding.left
        in_hand = 0 if self._hand is None else self._held(self._hand) * self._row_nbytes
        return self._pending.nbytes + in_hand + sum(len(b) * b.row_nbytes for b in left) + self._present.nbytes

    @property
    def nbytes(self) -> int:
        """Bytes the query holds: answers, the state of its operators, and its part of the input that waits."""
        network = self.network
        held: int = (
            self._waiting()[1] + self._present.nbytes + sum(s.nbytes for op in network.operators for s in op.synopses())
        )
        for source in network.sources:
            store = getattr(source, "store", None)
            if isinstance(store, StreamStore):
                held += source.waiting() * store.row_nbytes
        return held

    def figures(self) -> dict[str, int]:
        """Totals and sizes, cheap to read: results delivered, answers waiting to be fetched, elements of the input
        that wait, the closed instant and how many ticks it is behind the latest instant seen.
        """
        network = self.network
        latest = max((s.greatest_ts for s in network.streams if s.greatest_ts is not None), default=network.progress)
        return {
            "results": self.results,
            "waiting": self._waiting()[0],
            "input_waiting": sum(source.waiting() for source in network.sources),
            "closed_until": network.progress,
            "lag": max(0, latest - network.progress) if network.progress > MIN_INSTANT else 0,
            "failed": int(network.failure is not None),
            "shed": sum(self.shed.values()),
        }
