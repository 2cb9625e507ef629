"""A registered query, as the application holds it: its answers, its plan, its figures."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from minidsms.answers.frames import AsFrames, Snapshot
from minidsms.answers.in_hand import Loop
from minidsms.answers.newest import Newest
from minidsms.answers.rows import Row
from minidsms.answers.shown_order import sorted_places
from minidsms.answers.waiting import parts_of
from minidsms.cql.errors import ClosedError, Error, QueryError
from minidsms.elements import Batch
from minidsms.engine.running_query import Change as Change
from minidsms.engine.running_query import RunningQuery
from minidsms.plan.plan_graph import readers_among
from minidsms.process.collecting import Uncollected
from minidsms.process.interrupts import let_through
from minidsms.screens.showing import standing_for
from minidsms.statements.arguments import path_of
from minidsms.streamon.loop import adaptations_of
from minidsms.streamon.plan_log import Decision

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.notebook.html import PlanView
    from minidsms.notebook.live_view import LiveView
    from minidsms.operators.operator import Operator
    from minidsms.plan.explain import Plan
    from minidsms.plan.operator_tree import OperatorNode
    from minidsms.process.interrupts import EngineLock
    from minidsms.sinks.sink import Sink

_log = logging.getLogger("minidsms.sinks")
_life = logging.getLogger("minidsms.queries")


PUBLIC = (
    "arrow close decisions df expanded explain failure fetch fetch_arrow into kind live name nbytes newest "
    "on_change pause pin_plan pl plan position resume schema set settings snapshot state stats text told unpin_plan "
    "written"
)
"""What `dir` shows of a query."""
_AT_ONCE = 65_536
"""Changes that `fetch` decodes between two looks for an interrupt."""


class Query(RunningQuery, AsFrames):
    """A continuous query. Made by `Connection.query` or `CREATE QUERY`; runs until `close`.

    Answers are kept until fetched, unless `on_change` takes them.
    """

    _connection: Connection
    _decided: Sequence[Decision] = ()
    """What `decisions` tells of it when its plan is gone."""

    def __dir__(self) -> list[str]:
        """What docs/python-api.md lists; the rest is the engine's."""
        return PUBLIC.split()

    # ------------------------------------------------------------------------------------- wiring, by connection

    def into(self, target: Any, format: str | None = None, **options: Any) -> Sink:
        """Write the answers somewhere instead of keeping them, as INTO does; those that wait go first.

        target: a path or address, or a function that is given a pyarrow table of each step's elements. format, options:
        as FORMAT and WITH (..). Error where the place cannot be written; then nothing has changed.
        """
        from minidsms.sinks.opening import function_sink, open_sink

        self._check()
        if not callable(target):
            self._connection.safety.check_place(path_of(target))
        connection = self._connection
        if callable(target):
            sink = function_sink(target, options)
        else:
            sink = open_sink(target, format, options, is_new=not connection.is_replayed)
        with connection.lock:
            mark = connection.first_mark(self, sink, options)
            if mark is None:
                connection.add_sink(self, sink)
                return sink
            told: dict[str, Any] = {"place": sink.path, "format": format, "options": options, "mark": mark}
            with connection.journal.entry("into", query=self.name, **told):
                connection.add_sink(self, sink)
            return self.sink or sink

    @property
    def written(self) -> dict[str, Any] | None:
        """What the query's sink, present or last, has written: to, state, rows, bytes, note; None without one."""
        if self._last_sink is None:
            return None
        sink, state = self._last_sink
        notes = getattr(sink, "notes", None)
        size = getattr(sink, "bytes", None)
        return {"to": sink.path, "state": state, "rows": sink.rows, "bytes": size, "note": notes[-1] if notes else None}

    # --------------------------------------------------------------------------------------------------- answers

    def _check(self) -> None:
        if self._closed:
            self._connection.check_process()
            raise ClosedError(f"query {self.name} has been closed")

    def _raise_failure(self) -> None:
        """A failed query says so once its last answers have been taken."""
        failure = self.failure
        if failure is not None:
            raise QueryError(failure[1], failure[0])

    @property
    def latest_seen(self) -> int | None:
        """The greatest instant its streams and relations have seen, or None; `closed_until` lags behind it."""
        seen = [i.greatest_ts for i in (*self.network.streams, *self.network.relations)]
        return max((ts for ts in seen if ts is not None), default=None)

    def fetch(self, ack: int | None = None) -> list[Change]:
        """The changes since the last fetch, of closed instants, in ts order.

        ack: the changes before this position have been dealt with, as `position` counts them; those from there on are
        given, and go on waiting until they are acknowledged in their turn: nobody who keeps the position with what he
        makes of them misses any, or takes one twice.
        Raises QueryError once a failed query's last answers have been fetched, Error where ack is no position of an
        answer that waits, or stands within an instant.
        """
        with self._connection.lock, Uncollected():
            changes: list[Change] = []
            for part in parts_of(self._fetched_batches(ack), _AT_ONCE):
                let_through()  # millions of rows take seconds; what has been taken is given back
                changes += self.codec.changes(part)
            return changes

    def fetch_arrow(self, ack: int | None = None) -> pa.Table:
        """The same as a table: _ts, _sign (int8), then the query's columns; TIMESTAMP and INTERVAL in the time unit."""
        with self._connection.lock:
            return self.codec.table(self._fetched_batches(ack))

    def _fetched_batches(self, ack: int | None) -> list[Batch]:
        """What a fetch gives; without ack, it waits no more."""
        self._check()
        if ack is not None:
            self._check_position(ack)
            if ack > self.position:
                self._connection.journal.note_taken(self, ack)
                self.acknowledge(ack)
        if not self.is_waiting:
            if self._is_given:
                self.note_given()
            self._raise_failure()
            return []
        if ack is not None:
            return self._collect()
        taken = self.taken_batches()
        try:
            unnote = self._connection.journal.note_taken(self, self.results)
        except BaseException:
            self.give_back(taken)
            raise
        self._connection.lock.undo_on_error(partial(self.give_back, taken, unnote))
        return taken

    def _check_position(self, ack: int) -> None:
        first, end = self.position, self.results
        if isinstance(ack, bool) or not isinstance(ack, int) or not first <= ack <= end:
            hint = "fetch() gives all changes that have come; a position says which of them need not be kept"
            raise Error(f"query {self.name}: ack is a position from {first} to {end}, not {ack!r}\nhelp: {hint}")
        if first < ack < end and not (self.network.group is not None and self.network.group.is_immediate):
            instants = np.concatenate([batch.ts for batch in self._collect()])
            if instants[ack - first - 1] == instants[ack - first]:
                raise Error(f"query {self.name}: ack {ack} stands within the instant {instants[ack - first]}")

    def snapshot(self) -> Snapshot:
        """The relation at the last closed instant, equal rows repeated, in the order of ORDER BY .. LIMIT if the query
        ends with one whose keys it shows, otherwise in no particular order. Not for streams.

        A list of rows, which is a table, too: `arrow()`, `df()`, `pl()`.

        Raises QueryError when the query has failed.
        """
        with self._connection.lock, Uncollected():
            return Snapshot(self.codec.rows(self._present_rows()), self.codec.table_of_rows)

    def _present_rows(self) -> Batch:
        """What `snapshot` shows. The caller holds the lock."""
        self._check()
        if self.kind != "relation":
            raise Error(
                f"query {self.name} yields a stream, which has no present content: fetch its elements; the answer is a "
                "relation where rows can leave it, as from S [RANGE 10 SECONDS], without ISTREAM, DSTREAM or RSTREAM"
            )
        self._raise_failure()
        self._collect()
        contents = self._contents
        present = self._present.rows() if contents is None else contents()
        if not self.order:
            return present
        return present.take(np.array(sorted_places(self.codec.rows(present), self.order), np.int64))

    def arrow(self) -> pa.Table:
        """The answer as a table: of a relation the present rows, of a stream `_ts` and the columns of what `fetch`
        would give.

        TIMESTAMP and INTERVAL are in the time unit. Raises QueryError when the query has failed.
        """
        return self._converted(lambda table: table)

    def _converted(self, convert: Callable[[pa.Table], Any]) -> Any:
        with self._connection.lock:
            if self.kind == "stream":
                return convert(self.codec.table(self._fetched_batches(None)).drop_columns("_sign"))
            return convert(self.codec.table([self._present_rows()]).drop_columns(["_ts", "_sign"]))

    def __iter__(self) -> Iterator[Change]:
        """The changes as they come: those waiting, then those that bounded sources still yield. Those that a loop has
        not come to go on waiting.
        """
        return chain.from_iterable(self._portions())

    def _portions(self) -> Iterator[Iterator[Change]]:
        loop, may_come = Loop(), True
        while True:
            portion = self._portion(loop)
            if portion is not None:
                yield portion
                may_come = True  # whoever was given it may have brought it about
            elif may_come and self.has_sources:
                may_come = self._connection.run_some()
            elif self.failure is None:
                return
            elif not self.is_waiting:  # asked after it has failed
                del loop  # the error may be held, with all that is here
                self._raise_failure()

    def hand_out(self, loop: Loop) -> Iterator[Change] | None:
        """The next changes that wait, for all loops; None where nothing waits. Raises QueryError as `fetch` does."""
        has_failed = self.failure is not None  # asked first: its last changes wait by then
        portion = self._portion(loop)
        if portion is None and has_failed:
            self._raise_failure()
        return portion

    def _portion(self, loop: Loop) -> Iterator[Change] | None:
        connection, hand = self._connection, self._hand
        # A hand that nothing is left in is let go of under the lock, which costs more than a small one holds.
        if not self.is_waiting and (hand is None or not (connection.journal.keeps_answers or hand.is_large)):
            self._check()
            return None
        with connection.lock:
            self._check()
            hand = self._take_in_hand(loop)
            if hand is None:
                return None
            with Uncollected():
                return hand.portion(self.codec)

    def __aiter__(self) -> AsyncIterator[Change]:
        """The changes as they come, for `async for`: those waiting, then what sources and pushes bring, until the query
        is closed or nothing more can come. What other tasks and threads push wakes it.
        """
        from minidsms.answers.async_changes import AsyncChanges

        return AsyncChanges(self)

    def run_sources(self) -> bool:
        """Read some more of the sources, as iteration does; False when there is nothing to read."""
        return self.has_sources and self._connection.run_some()

    @property
    def has_sources(self) -> bool:
        """The connection reads sources, or has."""
        return not self._closed and bool(self._connection.reading.sources)

    @property
    def has_ended(self) -> bool:
        """Every stream it reads has ended, and nothing waits to be fetched."""
        with self._connection.lock:
            return self._closed or (self.inputs_ended and not self.is_waiting and self.failure is None)

    def newest(self, n: int) -> list[Change]:
        """The last changes that wait to be fetched, at most n; they go on waiting."""
        with self._connection.lock:
            self._check()
            changes: list[Change] = []
            for batch in reversed(self._collect()):
                if len(changes) >= n:
                    break
                last = batch.slice(max(0, len(batch) - (n - len(changes))), len(batch))
                changes = [*self.codec.changes(last), *changes]
            return changes

    def look_on(self, n: int) -> list[Change]:
        """The last n changes, at most `newest.KEPT`, whoever has taken them; at first, those that wait.

        What comes is kept for it from the first call on.
        """
        with self._connection.lock:
            self._check()
            waiting = self._collect()
            if self._newest is None:
                self._newest = Newest()
                for batch in waiting:
                    self._newest.add(batch)
            return [change for batch in self._newest.last(n) for change in self.codec.changes(batch)]

    def present(self, n: int) -> tuple[int, list[Row]]:
        """How many rows the relation has now, and n of them; otherwise as `snapshot`."""
        with self._connection.lock:
            rows = self._present_rows()
            return len(rows), self.codec.rows(rows.slice(0, min(n, len(rows))))

    def on_change(self, fn: Callable[[Change], Any]) -> Callable[[Change], Any]:
        """Call fn with every change from now on, outside the engine's lock; what callbacks took is not fetched again.

        Usable as a decorator.
        """
        if not callable(fn):
            raise Error(f"on_change takes a function of one change, not {type(fn).__name__}")
        with self._connection.lock:
            self._check()
            self._connection.add_outward(self)
            self._callbacks.append(fn)
        return fn

    @property
    def told(self) -> int:
        """How many changes the callbacks of `on_change` have been told, the one they are being told among them. Who is
        told again after a crash goes on from a lower one.
        """
        return self.position - len(self.untold)

    # ------------------------------------------------------------------------------------------------- adjusting

    def _logged(self, method: str, *arguments: Any) -> contextlib.AbstractContextManager[None]:
        return self._connection.journal.entry("call", query=self.name, method=method, arguments=arguments)

    def set(self, name: str, value: Any) -> None:
        """Give the query a setting of its own, or 'default'; takes effect at once. `query_settings.ALTERABLE` has
        the names.
        """
        with self._connection.lock, self._logged("set", name, value):
            self._check()
            self.settings.set(name, value)
            if self.settings.own:
                self._connection.groups.part(self.network)
            self.apply_settings()
            self._connection.admission.look()

    def pause(self) -> None:
        """Let what comes wait until `resume`; nothing is lost. Pausing twice is no error."""
        with self._connection.lock, self._logged("pause"):
            self._check()
            self._connection.groups.part(self.network)
            self.network.is_paused = True

    def resume(self) -> None:
        """Go on, with what came meanwhile first. Resuming a query that runs is no error."""
        with self._connection.lock, self._logged("resume"):
            self._check()
            self.network.is_paused = False
        self._connection.process()

    def pin_plan(self) -> None:
        """Keep the running plan as it is, whatever the statistics say, until `unpin_plan`. Twice is no error."""
        with self._connection.lock, self._logged("pin_plan"):
            self._check()
            for adaptation in adaptations_of(self.network.working):
                adaptation.pin()

    def unpin_plan(self) -> None:
        """Let the plan adapt again; no error where it was not pinned."""
        with self._connection.lock, self._logged("unpin_plan"):
            self._check()
            for adaptation in adaptations_of(self.network.working):
                adaptation.unpin()

    @property
    def state(self) -> str:
        """'running', 'paused', 'failed' or 'closed'."""
        if self._closed:
            return "closed"
        return "failed" if self.failure is not None else "paused" if self.network.is_paused else "running"

    # ---------------------------------------------------------------------------------------------- introspection

    @property
    def nbytes(self) -> int:
        """Bytes the query holds: answers, the state of its operators, and its part of the input that waits."""
        with self._connection.lock:
            return super().nbytes

    def decisions(self) -> list[Decision]:
        """Every change of the running plan, oldest first: when, why, from what to what, and what it gained."""
        with self._connection.lock:
            taken = [d for a in adaptations_of(self.network.working) for d in a.decisions]
            return sorted([*self._decided, *taken], key=lambda d: d.number)

    def explain(self, analyze: bool = False, format: str = "text", rules: bool = False) -> str:
        """The logical and the physical plan; analyze adds live figures, rules the plan after each rewrite rule.

        format: "text", "json", "mermaid" or "svg"; the last two draw the physical plan.  "spark": how Spark would carry
        the query out over archives.
        """
        if format == "spark":
            from minidsms.spark.running import explain_connected

            return explain_connected(self._connection, self.expanded, analyze or rules)
        with self._connection.lock:
            self._check()
            running = [(query.name, query.network) for query in self._connection.queries.values()]
            readers = readers_among(running, self.name)
            with self._shown() as plan:
                return plan.render(format, analyze, rules, self.name, readers, self.shed)

    @contextlib.contextmanager
    def _shown(self) -> Iterator[Plan]:
        """The plan that EXPLAIN shows. Of a folded query it has the operators that the screen stands for."""
        folding = self._folding
        plan = self._plan
        if plan is None and folding is not None:
            plan = folding.tail.definition.plan()
        assert plan is not None
        if folding is None or folding.screen is None:
            plan.network = self.network
            yield plan
            return
        plan.network = standing_for(folding, self.network)
        try:
            yield plan
        finally:
            plan.network.close()

    def operator_tree(self) -> OperatorNode:
        """The operators that run it, from the output down, with their figures now."""
        from minidsms.plan.operator_tree import operator_tree

        with self._connection.lock:
            self._check()
            with self._shown() as plan:
                assert plan.network is not None
                return operator_tree(plan.network)

    def plan(self, analyze: bool = True) -> PlanView:
        """The plan as a notebook draws it; as a text it is that of `explain`."""
        from minidsms.notebook.html import PlanView

        return PlanView(self.explain(analyze), self.explain(analyze, "svg"))

    def live(self, interval_s: float = 0.5, rows: int = 20, show: Callable[[str], None] | None = None) -> LiveView:
        """A view in a notebook that follows the query until its `stop`, or until the query is closed.

        show: takes the HTML instead of a notebook, each time the query has changed.
        """
        from minidsms.notebook.live_view import LiveView

        if show is not None and not callable(show):
            raise Error(f"show is a function that takes the page's HTML, not {type(show).__name__}")
        return LiveView(self, interval_s, rows, show)

    def _repr_html_(self) -> str:
        from minidsms.notebook.html import query_html

        return query_html(self)

    @property
    def lock(self) -> EngineLock:
        """The connection's: what is read while it is held belongs together."""
        return self._connection.lock

    def stats(self) -> dict[str, Any]:
        """Figures: results delivered, closed instant, and per operator elements in and out, time and state."""
        with self._connection.lock:
            self._check()
            assert self._network is not None
            return {
                "results": self.results,
                "waiting": self._waiting()[0],
                "shed": dict(self.shed),
                "closed_until": self._network.progress,
                "failure": self.failure,
                "operators": [_figures(op) for op in self._network.operators],
            }

    def close(self) -> None:
        """Stop the query and free what only it used. Closing twice is no error."""
        if self._closed:
            return
        with self._connection.lock:
            if not self._closed:  # by another thread meanwhile
                self._close()

    def _close(self) -> None:
        with self._logged("close"):
            try:
                # Before the query is forgotten: from then on the texts of its answers may be reclaimed.
                self.close_sink()
            finally:
                self._connection.forget(self)
                self._closed = True
                _life.debug("query %s: closed", self.name)
            self._put_back()
            self._pending.take()
            self.untold.clear()
            self._present.clear()
            if self._network is not None:
                self._decided = self.decisions()
                self._network.release()

    def abandon(self) -> None:
        """In a child of fork(): the query is its parent's, and closed here."""
        self._closed = True
        self._sink = None

    def __repr__(self) -> str:
        return f"<Query {self.name} ({self.kind}, {self.state}): {self.schema}>"


def _figures(op: Operator) -> dict[str, Any]:
    """Of an operator, its elements in and out, time and state."""
    description = op.describe()
    return {
        "operator": description.name,
        "detail": description.detail,
        "elements_in": op.counters.elements_in,
        "elements_out": op.counters.elements_out,
        "time_s": op.counters.time_ns / 1e9,
        **description.figures,
    }
