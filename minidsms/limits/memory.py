"""What a connection holds, in bytes, and the limit it keeps to. docs/design, point 10.

Invariants: what would pass `memory_limit` is told before anything is changed (`admission.py` acts on it); the
dictionary never holds more than twice the texts that were in use when it was last swept, or 100,000, nor twice their
bytes, or 64 MB.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from minidsms.elements import Int64Array
from minidsms.limits.allowance import Allowance
from minidsms.synopses.stream_store import StreamStore

if TYPE_CHECKING:
    from minidsms.engine.database import Database
    from minidsms.engine.running_query import RunningQuery


_SWEEP_AT = 100_000
_SWEEP_BYTES = 2**26
NEAR = 0.5
"""Share of the limit from which memory is short: who can do with less looks for what it can do without, and needs room
to look.
"""
_STATE_PER_INPUT = 16
"""Bytes of state that a byte of input or of an answer is taken to bring at most, until it is measured."""


class MemoryAccount:
    """The account of one connection. limit: memory_limit, or None.  has_limited_queries: some have one of their own.

    allowance: its `left` counts what is stored, taken and answered, from what may be until the limit might be near.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self.allowance = Allowance(self)
        self._sweep_at = _SWEEP_AT
        self._texts_left = 0
        self._sweep_bytes = _SWEEP_BYTES
        self._measured = self._granted = 0
        """Bytes held when they were last added up, and those that might be taken then before they need be again."""
        self.limit: int | None = None
        self.spare: Callable[[], bool] = lambda: False
        """Called when memory is short: whether somebody holds less from now on."""
        self.has_limited_queries = False

    def bound(self, limit: int | None) -> None:
        """Take another memory_limit."""
        is_other = limit != self.limit
        self.limit = limit
        if is_other and self._db.queries:
            self._measure()
        else:
            self._note(self._measured, self._since)

    @property
    def nbytes(self) -> int:
        """Bytes held by streams, relations, operators, monitors of constraints, and answers that have not been
        fetched."""
        held = sum(each.nbytes for each in self._db.inputs) + self._db.streamon.constraints.nbytes
        held += self._db.dictionary.nbytes + sum(group.nbytes for group in self._db.groups.all)
        return held + sum(query.answer_nbytes for query in self._db.queries.values())

    @property
    def known(self) -> int:
        """Bytes held when they were last added up, and stored or answered since; at no cost."""
        return self.known_with(self.allowance.left)

    def known_with(self, left: int) -> int:
        """The same when so much was left."""
        return self._measured + self._granted - left

    @property
    def _since(self) -> int:
        return self._granted - self.allowance.left

    @property
    def is_short(self) -> bool:
        """As far as is known, what is held comes near the limit."""
        return self.limit is not None and self.known > NEAR * self.limit

    def expect(self, nbytes: int, most: int) -> int:
        """What is held with so many bytes more, counted already, which may bring state with them; exact where that may
        be above `most`.

        The engine may be at work.
        """
        held = self._measured + _STATE_PER_INPUT * self._since
        if held <= most:
            return held
        self._measure()
        return self._measured + nbytes

    def grow(self, nbytes: int) -> None:
        """Answers have been delivered."""
        self.allowance.left -= nbytes

    def fits(self, store: StreamStore, n: int) -> bool:
        """Whether n more elements of a stream may be stored; then there is room in its ring for them.

        All that is held is added up only when what has been stored and answered since may have brought the limit near.
        """
        limit = self.limit
        if limit is None:
            return True
        self.allowance.left -= n * store.row_nbytes
        grown = store.growth(n)
        if self._measured + _STATE_PER_INPUT * self._since + grown <= limit:
            # What the ring grows by is part of what comes with the elements stored.
            return True
        self._measure()
        if self.is_short and self.spare():
            for each in self._db.inputs:
                each.store.free()
            self._measure()
        grown = store.growth(n)
        if self._measured + grown > limit:
            # Rings keep their size for a while after what filled them has gone; now it is needed.
            self.shrink()
            grown = store.growth(n)
            self._measure()
        if self._measured + grown > limit:
            return False
        self._note(self._measured + grown, 0)
        return True

    def room(self, store: StreamStore, n: int) -> int:
        """How many of n elements fit, at least so many as the ring has room for."""
        limit = self.limit
        if limit is None:
            return n
        while n > store.room and self.nbytes + store.growth(n) > limit:
            n = max(store.room, n // 2)
        if self.nbytes > limit:
            return 0
        store.reserve(n)
        return n

    def shrink(self) -> None:
        """Let the rings give up room that nothing stands in."""
        for each in self._db.inputs:
            shrink: Callable[[], None] | None = getattr(each.store, "shrink", None)
            if shrink is not None:
                shrink()

    def over_their_limit(self, store: StreamStore | None) -> list[RunningQuery]:
        """The queries that hold more than a memory_limit of their own; store: only those that read it."""
        over = []
        for query in self._db.queries.values() if self.has_limited_queries else ():
            limit = query.settings.memory_limit
            reads = store is None or any(getattr(s, "store", None) is store for s in query.network.sources)
            if limit is not None and reads and query.nbytes > limit:
                over.append(query)
        return over

    def _measure(self) -> None:
        self._note(self.nbytes, 0)

    def _note(self, measured: int, since: int) -> None:
        """So many bytes were held, and so many have been stored, taken and answered since."""
        allowance, limit = self.allowance, self.limit
        began = self.known_with(allowance.began)
        self._measured = measured
        self._granted = 0 if limit is None else (limit - measured) // _STATE_PER_INPUT
        allowance.left = self._granted - since
        allowance.began = measured + self._granted - began
        least = _SWEEP_BYTES if limit is None else min(_SWEEP_BYTES, limit // 8)
        self._sweep_bytes = max(least, 2 * self._texts_left)

    def sweep(self) -> None:
        """Let the dictionary drop the codes nobody holds, when it has grown enough. Called while the engine rests."""
        dictionary = self._db.dictionary
        if dictionary.nbytes > self._sweep_bytes or len(dictionary) > self._sweep_at:
            with contextlib.suppress(MemoryError):  # then it is swept after the next call
                self.reclaim()

    def forget_refused(self) -> None:
        """A push has been refused: the texts that only it had stand for nothing. Called while the engine rests."""
        if self._db.dictionary.nbytes > self._texts_left:
            self.reclaim()

    def reclaim(self) -> None:
        """Let the dictionary drop the codes nobody holds. Called while the engine rests."""
        if self._db.lock.undoable:
            return  # answers that a fetch has taken may wait again
        dictionary = self._db.dictionary
        dictionary.sweep(self._live_codes())
        self._sweep_at = max(_SWEEP_AT, 2 * len(dictionary))
        self._texts_left = dictionary.nbytes
        self._measure()

    def _live_codes(self) -> Iterator[Int64Array]:
        """Every array of TEXT codes that something still holds."""
        for each in self._db.inputs:
            yield from each.live_codes()
        for group in self._db.groups.all:
            yield from group.live_codes()
        for query in self._db.queries.values():
            for batch in query.live_batches():
                for i in query.schema.coded:
                    yield batch.column(i).values  # type: ignore[misc]
