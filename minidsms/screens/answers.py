"""The answers of folded queries: rows of one batch, held once, and per query the numbers of its rows.

What a batch brings is a *delivery*: the columns that anybody shows, of the rows that anybody gets. A query's part of it
is a *portion*: a run of row numbers. The portions of equal boxes are one, and each names the one before it, so that a
query that is asked for its answers walks over its own and no others. Nothing is done per query when a batch comes.

Invariant: a delivery stays until every query has taken its portion of it, or most of them have: then what is left is
copied out for those that have not. So what is held never grows beyond four times what waits.  docs/sharing.md.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from minidsms.elements import Batch, Column, Int8Array, Int32Array, Int64Array, Schema
from minidsms.kernels.screening import AnswerSlot, add_portions, keep_rows
from minidsms.machine_code import Rows, rows_of
from minidsms.screens.tail import Definition

_SPARSE = 4
"""A delivery of which less than one row in so many waits is copied out."""
_LEAST = 4096
"""Rows below which deliveries are not looked at for that."""


def _new_slots(n: int) -> Rows[AnswerSlot]:
    slots = rows_of(AnswerSlot, n)
    slots["last"] = -1
    return slots


@dataclass(slots=True)
class _Delivery:
    """ts, sign, columns (by the producer's numbers): of the rows.  parts: row numbers, portion after portion.

    waiting: rows that queries have not taken.  end: the number of the portion behind its last.
    """

    ts: Int64Array
    sign: Int8Array | None
    columns: dict[int, Column]
    parts: Int32Array
    waiting: int
    end: int

    @property
    def nbytes(self) -> int:
        return int(self.ts.nbytes + self.parts.nbytes + sum(c.values.nbytes for c in self.columns.values()))


@dataclass(frozen=True, slots=True)
class Portion:
    """Rows of a delivery that wait for one query. batch: all of it, in the query's columns.  rows: their numbers."""

    batch: Batch
    rows: Int32Array

    def __len__(self) -> int:
        return len(self.rows)

    def copied(self) -> Batch:
        """The rows alone. Raises MemoryError, and nothing has changed."""
        return self.batch.take(self.rows)  # type: ignore[arg-type]


class Subscription:
    """One query's place among the answers of its box. columns: the producer's that it shows, in its order."""

    __slots__ = ("_answers", "_before", "_kept", "_taken", "columns", "of", "slot")

    def __init__(self, answers: SharedAnswers, slot: int, columns: tuple[int, ...], of: Definition) -> None:
        self._answers = answers
        self.of = of
        self.slot = slot
        self.columns = columns
        self._taken = answers.next_portion
        self._before = answers.total_of(slot)
        self._kept: list[Batch] | None = None

    @property
    def results(self) -> int:
        """Rows it has been given."""
        return self._answers.total_of(self.slot) - self._before

    @property
    def is_waiting(self) -> bool:
        """There are rows it has not taken."""
        return self._kept is not None or self._answers.last_of(self.slot) >= self._taken

    def take(self) -> list[Batch]:
        """The rows since the last time, oldest first."""
        found = self._answers.portions_since(self.slot, self._taken, self.columns)
        taken, self._kept = [*(self._kept or ()), *[portion.copied() for _, portion in found]], None
        self._let_go(found)
        return taken

    def leave(self) -> list[Batch | Portion]:
        """The same at the end: where there is no memory to copy them, with the deliveries that they stand in."""
        try:
            return [*self.take()]
        except MemoryError:
            found = self._answers.portions_since(self.slot, self._taken, self.columns)
            self._let_go(found)
            return [*(self._kept or ()), *[portion for _, portion in found]]

    def _let_go(self, found: Sequence[tuple[_Delivery, Portion]]) -> None:
        self._taken = self._answers.next_portion
        self._answers.note_taken(found)

    def waiting(self) -> tuple[int, int]:
        """(rows, bytes) that wait."""
        own = sum(len(b) for b in self._kept or ())
        n = own + self._answers.count_since(self.slot, self._taken)
        return n, 8 * n * (1 + len(self.columns))

    def set_aside(self) -> None:
        """Copy out what waits, so that others' rows beside it need not be held."""
        if self._answers.last_of(self.slot) >= self._taken:
            self._kept = self.take()

    @property
    def kept(self) -> Sequence[Batch]:
        """What has been copied out and waits."""
        return self._kept or ()


class SharedAnswers:
    """Those of one screen. A slot belongs to a box; `readers` of it have a `Subscription`."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._deliveries: deque[_Delivery] = deque()
        self._portions = np.zeros((1024, 4), np.int64)  # the portion of the slot before it, first row, rows, slot
        self._first = 0
        self.next_portion = 0
        self._slot = _new_slots(64)
        self._free: list[int] = []
        self._slots = 0
        self._held = self._waiting = 0
        self._shown: dict[int, int] = {}
        self.subscriptions: dict[int, Subscription] = {}
        self._of_slot: dict[int, list[Subscription]] = {}
        self._told = 0

    # ------------------------------------------------------------------------------------------------------ slots

    def add_slot(self) -> int:
        """A slot for one more box."""
        if self._free:
            slot = self._free.pop()
            self._slot["last"][slot] = -1
            return slot
        if self._slots == len(self._slot):
            slots = _new_slots(2 * self._slots)
            slots[: self._slots] = self._slot
            self._slot = slots
        self._slots += 1
        return self._slots - 1

    def free_slot(self, slot: int) -> None:
        """Nobody reads it any more."""
        self._free.append(slot)

    def subscribe(self, slot: int, columns: tuple[int, ...], of: Definition) -> Subscription:
        """One more reader of a slot, from the next batch on."""
        subscription = Subscription(self, slot, columns, of)
        self._of_slot.setdefault(slot, []).append(subscription)
        self._slot["readers"][slot] += 1
        for column in columns:
            self._shown[column] = self._shown.get(column, 0) + 1
        self.subscriptions[id(subscription)] = subscription
        return subscription

    def leave(self, subscription: Subscription) -> list[Batch | Portion]:
        """A reader goes; the rows it had not taken."""
        left = subscription.leave()
        del self.subscriptions[id(subscription)]
        self._of_slot[subscription.slot].remove(subscription)
        self._slot["readers"][subscription.slot] -= 1
        for column in subscription.columns:
            self._shown[column] -= 1
            if not self._shown[column]:
                del self._shown[column]
        return left

    def last_of(self, slot: int) -> int:
        """The number of the slot's last portion."""
        return int(self._slot["last"][slot])

    def total_of(self, slot: int) -> int:
        """Rows the slot has ever been given."""
        return int(self._slot["total"][slot])

    # ------------------------------------------------------------------------------------------------------- rows

    def deliver(
        self, batch: Batch, parts: Int32Array, firsts: Int64Array, counts: Int64Array, slots: Int64Array
    ) -> int:
        """Rows of a batch for slots: slots[i] gets parts[firsts[i]:firsts[i] + counts[i]]; the bytes then held.

        Every slot at most once. `parts` becomes the delivery's own.  O(rows + slots), whoever reads them.
        """
        n = len(slots)
        rows = np.empty(len(batch), np.int64)
        rows = rows[: keep_rows(parts, np.zeros(len(batch), np.int32), rows)]
        shown = list(self._shown)
        if len(rows) == len(batch):
            # In arrays of its own: what is delivered outlives the ring it may be a view of.
            ts, columns = batch.ts.copy(), [batch.column(c).copy() for c in shown]
            sign = None if batch.sign is None else batch.sign.copy()
        else:
            ts, columns = batch.ts[rows], batch.columns_at(shown, rows)
            sign = None if batch.sign is None else batch.sign[rows]
        portions = self._room(n)
        delivery = _Delivery(ts, sign, dict(zip(shown, columns)), parts, 0, self.next_portion + n)
        held = int(counts.sum())
        self._deliveries.append(delivery)
        # There is room for all of it; only now does anything change.
        delivery.waiting = add_portions(firsts, counts, slots, self._slot, portions, self.next_portion)
        self.next_portion += n
        self._held += held
        self._waiting += delivery.waiting
        if self._held > _LEAST and self._waiting * _SPARSE < self._held:
            with contextlib.suppress(MemoryError):  # then at another delivery
                self._set_aside()
        return delivery.nbytes

    def portions_since(self, slot: int, start: int, columns: Sequence[int]) -> list[tuple[_Delivery, Portion]]:
        """The slot's rows from portion `start` on, oldest first, in these columns."""
        chain = self._chain(slot, start)
        found = []
        deliveries = iter(self._deliveries)
        delivery: _Delivery | None = None
        for portion in reversed(chain):
            while delivery is None or delivery.end <= portion:
                delivery = next(deliveries)
            _, first, count, _ = self._portions[portion - self._first].tolist()
            batch = Batch(delivery.ts, delivery.sign, [delivery.columns[c] for c in columns])
            found.append((delivery, Portion(batch, delivery.parts[first : first + count])))
        return found

    def note_taken(self, portions: Sequence[tuple[_Delivery, Portion]]) -> None:
        """One reader has taken these."""
        for delivery, portion in portions:
            delivery.waiting -= len(portion)
            self._waiting -= len(portion)
        self._drop_taken()

    def news(self) -> list[Definition]:
        """The queries that have been given rows since this was asked last."""
        first, self._told = max(self._told, self._first), self.next_portion
        slots = np.unique(self._portions[first - self._first : self.next_portion - self._first, 3])
        return [s.of for slot in slots.tolist() for s in self._of_slot.get(slot, ())]

    def count_since(self, slot: int, start: int) -> int:
        """How many rows those are; they stay."""
        return sum(int(self._portions[p - self._first, 2]) for p in self._chain(slot, start))

    def _chain(self, slot: int, start: int) -> list[int]:
        """The slot's portions from `start` on, newest first."""
        found = []
        portion = self.last_of(slot)
        start = max(start, self._first)
        while portion >= start:
            found.append(portion)
            portion = int(self._portions[portion - self._first, 0])
        return found

    def _room(self, n: int) -> Int64Array:
        """Where the next n portions stand."""
        used = self.next_portion - self._first
        if used + n > len(self._portions):
            grown = np.zeros((2 * (used + n), 4), np.int64)
            grown[:used] = self._portions[:used]
            self._portions = grown
        return self._portions[used : used + n]

    def _drop_taken(self) -> None:
        """Forget the oldest deliveries that everybody has taken, and their portions."""
        end = self._first
        while self._deliveries and not self._deliveries[0].waiting:
            gone = self._deliveries.popleft()
            self._held -= len(gone.parts)
            end = gone.end
        if not self._deliveries:
            self._first = self.next_portion
        elif end - self._first > (self.next_portion - self._first) // 2:
            left = self.next_portion - end
            with contextlib.suppress(MemoryError):  # then with what is taken next
                kept = self._portions[end - self._first : self.next_portion - self._first].copy()
                self._portions[:left] = kept
                self._first = end

    def _set_aside(self) -> None:
        """Copy out what still waits: most of what is held has been taken."""
        for subscription in list(self.subscriptions.values()):
            subscription.set_aside()
        self._drop_taken()

    # --------------------------------------------------------------------------------------------------- a synopsis

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that wait, and of the tables."""
        tables = self._portions.nbytes + self._slot.nbytes
        kept = sum(len(b) * b.row_nbytes for s in self.subscriptions.values() for b in s.kept)
        return tables + kept + sum(d.nbytes for d in self._deliveries)

    def live_codes(self) -> Iterator[Int64Array]:
        """The TEXT codes of the rows that wait."""
        texts = set(self._schema.coded)
        for delivery in self._deliveries:
            for column in texts & delivery.columns.keys():
                yield delivery.columns[column].words()
        for subscription in self.subscriptions.values():
            for batch in subscription.kept:
                for i, column in enumerate(subscription.columns):
                    if column in texts:
                        yield batch.column(i).words()
