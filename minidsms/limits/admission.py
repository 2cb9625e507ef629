"""What happens to elements when they come faster than they can be kept: they are refused, or shed, and never silently.

What a query's time has not reached waits in the streams' stores. `memory_limit` bounds all that is held. With
`load_shedding` the elements that wait for a query on a stream are bounded by its queue_size and queue_bytes too:
  - 'drop oldest': what waits longest for a query is passed over by it; other queries are not concerned;
  - 'random': arriving elements are dropped with a chance that grows from 0, where the fullest query of the stream has
    half its bound waiting, to 1 where it is full (random early detection); no query of the stream sees them.
Invariants: when a public call returns, no more waits for a query than its bound, to the element; what is shed counts
for time as if it had been taken, and is counted by stream and by query; without shedding, nothing is changed by a call
that is refused.  Babu 2005, section 2.4; docs/overload.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from minidsms.counted import counted
from minidsms.cql.errors import MemoryLimitError, QueueFullError, one_line
from minidsms.elements import BoolArray, Int8Array
from minidsms.inputs.stream_input import StreamInput
from minidsms.limits.allowance import NO_MEMORY
from minidsms.operators.stream_source import StreamSource
from minidsms.synopses.relation_store import RelationStore
from minidsms.synopses.stream_store import StreamStore

if TYPE_CHECKING:
    from minidsms.engine.database import Database
    from minidsms.engine.group import Group
    from minidsms.engine.running_query import RunningQuery
    from minidsms.limits.memory import MemoryAccount

_EASY = 0.5
"""Share of its bound up to which a query's waiting elements cost nothing."""


class Admission:
    """Decides for one connection. is_open: everything is taken, and nobody need be asked.

    is_shedding: what cannot be kept is shed rather than refused.  keeps_all: what is admitted is stored.
    """

    def __init__(self, db: Database, account: MemoryAccount) -> None:
        self._db = db
        self._account = account
        self._random = np.random.default_rng(db.settings["seed"])
        self.is_open = self.keeps_all = True
        self.is_shedding = False
        self._repeated: BoolArray | None = None
        self.look()

    def look(self) -> None:
        """The settings have changed."""
        settings = self._db.settings
        holds = not self._db.is_replayed
        memory_limit = settings["memory_limit"] if holds else None
        self.is_shedding = holds and settings["load_shedding"] != "none"
        limited = holds and any(query.settings.memory_limit is not None for query in self._db.queries.values())
        self._account.bound(memory_limit)
        self._db.allowance.limit(memory_limit, settings.timeout_s if holds else None)
        if settings["answer_limit"] is not None:
            for query in self._db.queries.values():
                query.stand_alone()  # a screen does not count what waits for each
        self._account.has_limited_queries = limited
        self.keeps_all = not self.is_shedding and self._repeated is None
        self.is_open = self.keeps_all and not limited and memory_limit is None

    def repeat(self, kept: BoolArray | None) -> None:
        """Of the rows of the push that a log says, those that were kept when it came; what was decided then is not
        decided anew. None: there are no more.
        """
        self._repeated = kept
        self.look()

    # ------------------------------------------------------------------------------------------------- refusing

    def admit(self, stream: StreamInput, n: int) -> None:
        """Before anything is stored: MemoryLimitError where n elements do not fit and nothing is shed."""
        if self.is_shedding:
            return
        account, store = self._account, stream.store
        allowance = account.allowance
        left = allowance.left - n * store.row_nbytes
        if left >= 0 and not account.has_limited_queries and n <= store.room:
            allowance.left = left  # as `fits` would say
            return
        if not account.fits(store, n):
            name = one_line(stream.definition.name)
            raise MemoryLimitError(
                f"{account.nbytes:,} bytes are held and {counted(n, 'more element')} of {name} would pass the "
                f"memory_limit of {self._db.settings['memory_limit']:,}; push less at once, fetch answers, advance the "
                "streams that hold time back, close queries that have failed, or SET memory_limit or load_shedding"
            )
        for query in account.over_their_limit(store) if account.has_limited_queries else ():
            name = one_line(query.name)
            raise MemoryLimitError(
                f"query {name} holds {query.nbytes:,} bytes, and its memory_limit is {query.settings.memory_limit:,}; "
                f"fetch its answers, or ALTER QUERY {name} SET memory_limit"
            )

    def admit_changes(self, store: RelationStore, n: int, signs: Int8Array | None) -> None:
        """The same for n changes of a relation, which are never shed. signs: (n,) of them; None: all +1."""
        limit = self._account.limit
        if limit is None:
            return
        nbytes = store.growth(n, n if signs is None else int(np.count_nonzero(signs > 0)))
        if self._account.nbytes + nbytes <= limit:
            return
        self._account.shrink()
        if self._account.nbytes + nbytes > limit:
            raise MemoryLimitError(
                f"{self._account.nbytes:,} bytes are held and {nbytes:,} more would pass the memory_limit of "
                f"{limit:,}; push less at once, fetch answers, or SET memory_limit"
            )

    def refuse_full(self, stream: StreamInput, n: int) -> None:
        """For `push(.., block=False)`: QueueFullError where n more would wait than a query's bounds allow."""
        for source, bound, group in self._waiting([] if self._db.is_replayed else self._readers(stream)):
            if stream.store.feeds(source.store) and source.waiting() + n > bound:
                names = ", ".join(one_line(query.name) for query in self._queries(group))
                raise QueueFullError(
                    f"{source.waiting():,} elements of {one_line(stream.definition.name)} wait for query {names}, and "
                    f"{n:,} more would pass its bound of {bound:,}"
                )

    def fail_readers(self, stream: StreamInput) -> None:
        """The system has no memory for elements that the stream has taken: the queries that read it end before them."""
        for group in self._readers(stream):
            group.stop(NO_MEMORY)
        stream.store.free()

    # ------------------------------------------------------------------------------------------------- shedding

    def chunk(self, stream: StreamInput, batch_size: int) -> int:
        """How many elements of a push may be stored before the engine processes them."""
        if not self.is_shedding:
            return batch_size
        bounds = [
            bound for source, bound, _ in self._waiting(self._readers(stream)) if stream.store.feeds(source.store)
        ]
        return max(1, min([batch_size, *(int(bound * _EASY) for bound in bounds)]))

    def kept(self, stream: StreamInput, n: int, is_live: bool = True) -> BoolArray | None:
        """Which of the next n elements of a stream to store, (n,); None: all. The others are shed (`count_shed`).

        is_live: they come as they happen; a source that is read is rather read later.
        """
        if self._repeated is not None and stream.journal is not None:
            return self._repeated[stream.journal.next_rows(n)]
        keep = self._decided(stream, n, is_live) if self.is_shedding else None
        if stream.journal is not None:
            self._db.journal.note_shed(stream.journal.next_rows(n), keep)
        return keep

    def _decided(self, stream: StreamInput, n: int, is_live: bool) -> BoolArray | None:
        account, store = self._account, stream.store
        room = n
        is_random = self._db.settings["load_shedding"] == "random"
        if not account.fits(store, n):
            if not is_random:
                self._make_room(store, n)
            room = account.room(store, n)
        keep = np.ones(n, np.bool_)
        if is_random and is_live:
            for source, bound, _ in self._waiting(self._readers(stream)):
                if store.feeds(source.store):
                    waiting = source.waiting()
                    room = min(room, max(0, bound - waiting))
                    if waiting > bound * _EASY:
                        keep &= self._random.random(n) < (bound - waiting) / (bound - bound * _EASY)
        kept = np.flatnonzero(keep)
        if len(kept) > room:
            # The newest stay where the oldest go first.
            stay = np.sort(self._random.choice(kept, room, replace=False)) if is_random else kept[len(kept) - room :]
            keep[:] = False
            keep[stay] = True
        return None if keep.all() else keep

    def count_shed(self, stream: StreamInput, n: int) -> None:
        """So many elements of a stream have come and are not stored."""
        self._count(stream, n, (query for group in self._readers(stream) for query in self._queries(group)))

    def shed_waiting(self, groups: Iterable[Group]) -> None:
        """Let queries pass over what waits beyond their bounds, the oldest first. The engine is at rest."""
        if self._db.settings["load_shedding"] != "drop oldest":
            return
        for source, bound, _ in self._waiting(groups):
            waiting = source.waiting()
            if waiting > bound:
                self._pass_over(source, waiting - bound)
        for query in self._account.over_their_limit(None):
            alone = query.network.group
            for source, _, _ in self._waiting([alone] if alone is not None and len(alone.networks) == 1 else []):
                excess = -(-(query.nbytes - (query.settings.memory_limit or 0)) // source.store.row_nbytes)
                if excess > 0 and source.waiting():
                    self._pass_over(source, min(excess, source.waiting()))

    def _make_room(self, store: StreamStore, n: int) -> None:
        """Let queries pass over what waits longest until n elements fit, or nothing waits: those for which most bytes
        wait, by their memory_priority.
        """
        common = self._db.settings["memory_priority"]
        queries = self._db.queries.values()
        own = {id(q.network): q.settings["memory_priority"] for q in queries if "memory_priority" in q.settings.own}
        while not self._account.fits(store, n):
            most, longest = 0.0, None
            for source, _, reading in self._waiting(self._db.groups.all):
                weighed = (
                    source.waiting()
                    * source.store.row_nbytes
                    / max(own.get(id(each), common) for each in reading.networks)
                )
                if weighed > most:
                    most, longest = weighed, source
            if longest is None:
                return
            self._pass_over(longest, -(-longest.waiting() // 2))
            for each in self._db.inputs:
                each.store.free()
            self._account.shrink()

    def _pass_over(self, source: StreamSource, n: int) -> None:
        shed = source.shed(n)
        for stream in self._db.inputs:
            if isinstance(stream, StreamInput) and stream.store.feeds(source.store):
                # Where nothing is shared the queries of a group have sources of their own.
                self._count(stream, shed, (q for q in self._db.queries.values() if source in q.network.sources))

    def _count(self, stream: StreamInput, n: int, queries: Iterable[RunningQuery]) -> None:
        stream.counters.shed += n
        for query in queries:
            name = stream.definition.name
            query.shed[name] = query.shed.get(name, 0) + n

    # ------------------------------------------------------------------------------------------------- who waits

    def _readers(self, stream: StreamInput) -> list[Group]:
        return list(self._db.groups.reading(stream.definition.name.lower()))

    def _queries(self, group: Group) -> Iterator[RunningQuery]:
        members = {id(network) for network in group.networks}
        return (query for query in self._db.queries.values() if id(query.network) in members)

    def _waiting(self, groups: Iterable[Group]) -> Iterator[tuple[StreamSource, int, Group]]:
        """Every entrance of a stream, and how many elements may wait there."""
        settings = self._db.settings
        for group in groups:
            elements = group.queue_size or settings["queue_size"]
            nbytes = group.queue_bytes or settings["queue_bytes"]
            for source in group.sources:
                if isinstance(source, StreamSource):
                    bound = elements if nbytes is None else min(elements, nbytes // source.store.row_nbytes)
                    yield source, max(1, bound), group
