"""A window of a join: which rows of a store it holds, by slot.

Slots are numbered by arrival and stand in a ring of numbers of the store that has the rows; nothing else of a row is
copied but its key words, into the index (docs/design, points 3 and 4). Rows that come without a reference are first put
into a store of the window's own, and so are those of a window that would hold back much of a stream for few rows.

Invariant: the reader claims the row at lo and everything after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from minidsms.elements import (
    MIN_INSTANT,
    AnyArray,
    Batch,
    BoolArray,
    Column,
    Int64Array,
    Schema,
    Type,
    columns_of_words,
    row_words,
)
from minidsms.kernels import arrivals
from minidsms.kernels import window_index as kernels
from minidsms.kernels.access_methods.contract import Key, Slots
from minidsms.kernels.access_methods.methods import words_and_others
from minidsms.kernels.addresses import PLACE_WORDS, VALID, VALUES
from minidsms.kernels.arrays import normal
from minidsms.kernels.gathering import OF_INPUT, OF_MASK, SOURCE_WORDS, gather_rows
from minidsms.kernels.links import LOWER
from minidsms.synopses.bag_windows import NO_SIGNS, NO_TS
from minidsms.synopses.stream_store import Reader, StreamStore

if TYPE_CHECKING:
    from minidsms.synopses.window_index import WindowIndex

_NUMBER_BITS = 2**32 - 1
"""Of a row's number in its store the ring keeps these bits: no store holds as many rows at once."""
_FEW = 16
"""A window that holds less than one row in so many stands apart from the stream's store."""
_LEAST_SPAN = 1 << 14
"""As far as so many elements it holds the store back whatever it holds."""
_NO_MASKS: BoolArray = np.zeros((0, 0), np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What was asked for last of a window's store: rows are mostly asked for the same columns.

    numbers: of the columns in the store.  are_words: the values are words as they are, and none is NULL.
    """

    columns: Sequence[int]
    columns_of: Sequence[int]
    places: Int64Array
    mask: int
    numbers: Int64Array
    types: list[Type]
    has_mask: list[bool]
    are_words: bool

    @classmethod
    def of(
        cls, columns: Sequence[int], columns_of: Sequence[int], places: Int64Array, mask: int, schema: Schema
    ) -> Asked:
        """columns: of the window.  columns_of: their numbers in the store.  places, mask: see `StreamStore.places`."""
        numbers = np.array([columns_of[c] for c in columns], np.int64)
        types = [schema[c].type for c in columns]
        has_mask = [place != 0 for place in places[numbers, VALID].tolist()]
        are_words = True not in has_mask and all(t.dtype == np.int64 for t in types)
        return cls(columns, columns_of, places, mask, numbers, types, has_mask, are_words)


NOTHING_ASKED = Asked((), (), np.zeros((0, 0), np.int64), 0, NO_TS, [], [], False)


class IndexedWindow:
    """One input: its rows by slot.

    keys: those of no or one column first; a key of several columns is made of keys that stand before it.
    marked: columns whose hash the slots carry as marks.  needed: columns that `gather` will be asked for.
    """

    is_bag = False

    def __init__(
        self, index: WindowIndex, number: int, schema: Schema, keys: Sequence[Key], marked: Sequence[int] | None,
        needed: Iterable[int],
    ) -> None:  # fmt: skip
        self.schema = schema
        self.keys = tuple(keys)
        self.marked = marked
        self.kept = sorted(index.columns_of(number, keys) | set(marked or ()) | set(needed))
        self.figures = index.records[number]
        """The same for Python, which takes a word of an array in half of the time so."""
        self._index = index
        self._number = number
        self._store: StreamStore | None = None
        self._columns: Sequence[int] = ()
        self._is_own = False
        self._reader: Reader | None = None
        self._asked = NOTHING_ASKED
        self._placed: Int64Array | None = None
        self._words: Int64Array | None = None
        """The keys that are words of a column, with the column's number in the store; None where that is not known."""
        self._others: list[int] = []
        """The other keys, by their numbers."""
        self._settled = -1
        self._first_of_run: Int64Array = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return self.figures.hi - self.figures.lo

    @property
    def store(self) -> StreamStore | None:
        """Where the rows stand; None before there was one."""
        return self._store

    @property
    def reader(self) -> Reader | None:
        """Its claim on the store."""
        return self._reader

    def column_in_store(self, c: int) -> int:
        """The number of a column among those of the store."""
        return self._columns[c]

    @property
    def refers(self) -> bool:
        """Rows are references to a stream's store, not copies."""
        return self._store is not None and not self._is_own

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held; a store referred to is counted by its owner, the index once, by the first input."""
        own = self._store.nbytes if self._is_own and self._store is not None else 0
        return own + (self._index.nbytes if self._number == 0 else 0)

    def gather(self, columns: Sequence[int], slots: Int64Array) -> list[Column]:
        """The columns of the rows in these slots."""
        assert self._store is not None
        asked = self.asked(columns)
        places, mask = self._store.places()
        shape, are_words, of = (len(columns), len(slots)), asked.are_words, self.figures
        words: Int64Array = np.empty(shape, np.int64)
        present = np.empty(shape, np.bool_) if not are_words and True in asked.has_mask else _NO_MASKS
        gather_rows(places, mask, asked.numbers, self._index.nodes, of.nodes, of.mask, slots, words, present)
        if are_words:
            return [Column(row) for row in words]
        return [
            Column.from_words(words[i], present[i] if has_mask else None, type_)
            for i, (has_mask, type_) in enumerate(zip(asked.has_mask, asked.types))
        ]

    def asked(self, columns: Sequence[int]) -> Asked:
        """Where these columns of its rows stand; the same object as long as they do."""
        assert self._store is not None
        asked = self._asked
        if asked.columns is not columns or not self.stands_at(asked):
            asked = self._asked = Asked.of(columns, self._columns, *self._store.places(), self.schema)
        return asked

    def sources(self, columns: Sequence[int]) -> tuple[Asked | None, Int64Array]:
        """By what `stands_at` knows that these columns still stand where they do, and that, for `gather_tuples`."""
        sources = np.zeros((len(columns), SOURCE_WORDS), np.int64)
        sources[:, OF_INPUT] = self._number
        if self._store is None:
            return None, sources
        asked = self.asked(columns)
        sources[:, :PLACE_WORDS], sources[:, OF_MASK] = asked.places[asked.numbers], asked.mask
        return asked, sources

    def stands_at(self, mark: Asked | None) -> bool:
        """What was asked for stands where it did; see `sources`."""
        store = self._store
        return (
            mark is not None and store is not None and mark.places is store.table and mark.columns_of is self._columns
        )

    @property
    def lowest(self) -> int:
        """The first slot that may hold a row."""
        return self.figures.lo

    def present(self) -> Int64Array:
        """The slots of its rows, ascending."""
        return np.arange(self.figures.lo, self.figures.hi, dtype=np.int64)

    def held(self, waiting: Batch | None) -> tuple[Slots, Slots]:
        """The slots of its rows, and of the insertions of a batch that has been taken in and is not yet joined."""
        hi, sign = self.figures.hi, None if waiting is None else waiting.sign
        coming = 0 if waiting is None else len(waiting) if sign is None else int(np.count_nonzero(sign > 0))
        return range(self.figures.lo, hi), range(hi, hi + coming)

    def sample(self, most: int) -> Int64Array:
        """Slots of at most so many rows, evenly over all."""
        lo, hi = self.figures.lo, self.figures.hi
        return np.linspace(lo, hi - 1, min(hi - lo, most)).astype(np.int64)

    def recent(self, back: Int64Array) -> Int64Array:
        """Slots of rows that came last, counted back from the newest."""
        at: Int64Array = self.figures.hi - 1 - back
        return at

    def arrived(self, batch: Batch) -> Int64Array:
        """The slots of the batch that was admitted last, oldest first, as far as they still have their words."""
        count = len(batch) if batch.sign is None else int(np.count_nonzero(batch.sign > 0))
        return self.recent(np.arange(min(count, self.figures.mask) - 1, -1, -1))

    def rows(self) -> Batch:
        """The rows held of a stream with a range, as they came; of columns that are not kept, zeros."""
        slots = self.present()
        if self._store is None or not len(slots):
            return Batch.empty(self.schema)
        kept = dict(zip(self.kept, self.gather(self.kept, slots)))
        zeros = np.zeros(len(slots), np.int64)
        columns = [kept.get(c) or Column.from_words(zeros, None, t) for c, t in enumerate(self.schema.types)]
        numbers = self._numbers(slots)
        return Batch(self._instants(slots), None, columns, None if self._is_own else numbers)

    def _numbers(self, slots: Int64Array) -> Int64Array:
        """The numbers of rows held in their store."""
        assert self._store is not None
        at = self.figures.nodes + 1 + 2 * (slots & self.figures.mask)
        numbers: Int64Array = self._store.head - ((self._store.head - (self._index.nodes[at] >> 32)) & _NUMBER_BITS)
        return numbers

    def _put_numbers(self, slots: Int64Array, numbers: Int64Array) -> None:
        """Write them."""
        nodes, at = self._index.nodes, self.figures.nodes + 1 + 2 * (slots & self.figures.mask)
        nodes[at] = (nodes[at] & LOWER) | (numbers << 32)

    # -------------------------------------------------------------------------------------------------- arrivals

    def arriving(self, batch: Batch) -> tuple[Int64Array, Int64Array]:
        """The numbers and the instants of a stream's elements, which may `enter` then."""
        if not self._may_refer(batch):
            seq = self._copied(batch)
        elif batch.is_run:
            seq = self._first_of_run
            seq[0] = batch.first_seq
        else:
            assert batch.seq is not None
            seq = normal(batch.seq)
        store = self._store
        assert store is not None
        if store.table is None or store.table is not self._placed:
            self.place()
        if self._words is None:
            self._words = self._tell_words_apart()
        return seq, normal(batch.ts)

    @property
    def enters_in_ranges(self) -> bool:
        """Several threads may let ranges of elements `enter`, for all that is taken of rows are words of keys."""
        return not self._others and self.marked is None

    def enter(self, seq: Int64Array, ts: Int64Array, first: int, stop: int) -> int:
        """Write the elements [first, stop) of those arriving into the slots from hi on, for which there is room; gives
        about the most rows that the range holds at once. seq: as of `kernels.arrivals.take_arrivals`.
        """
        most = arrivals.take_arrivals(seq, ts, first, stop, *self._store_and_keys(self._words))
        if self._others or self.marked is not None:
            at = self.figures.hi
            self._take_others(at + first, at + stop)
        return most

    def admit(self, batch: Batch) -> int:
        """Write the batch's insertions into the slots from hi on, for which there is room: their numbers, their keys,
        their marks. Count the changes of each instant; gives the most rows held after any.
        """
        index, sign, seq = self._index, batch.sign, batch.seq
        if not self._may_refer(batch):
            seq = self._copied(batch if sign is None else batch.take(sign > 0))
        assert seq is not None and self._store is not None
        words = self._words
        if words is None:
            words = self._words = self._tell_words_apart()
        elements = normal(batch.ts), NO_SIGNS if sign is None else normal(sign), sign is not None, normal(seq)
        most = kernels.take_rows(*elements, *self._store_and_keys(words), index.runs)
        if self._others or self.marked is not None:
            hi = self.figures.hi
            self._take_others(hi, hi + (len(batch.ts) if sign is None else int(np.count_nonzero(sign > 0))))
        return most

    def place(self) -> None:
        """Note where the store has the instants: kernels are about to read them."""
        if self._store is not None:
            self._placed, mask = self._store.places()
            self.figures.instants, self.figures.store_mask = int(self._placed[-1, VALUES]), mask

    def _take(self, lo: int, hi: int) -> None:
        """Copy the words of the slots [lo, hi) into the index."""
        words = self._words
        if words is None:
            words = self._words = self._tell_words_apart()
        self._take_words(words, lo, hi)
        self._take_others(lo, hi)

    def _take_others(self, lo: int, hi: int) -> None:
        """Write what is made of the rows of the slots [lo, hi): keys that are no words, marks."""
        store, index, figures = self._store, self._index, self.figures
        assert store is not None
        if self._others:
            index.take_keys(self._number, range(lo, hi), self._others)
        if self.marked is not None:
            for n, c in enumerate(self.marked):
                values, _, mask = store.raw(self._columns[c])
                slots = figures.nodes, figures.mask, lo, hi
                kernels.take_marks(_words(values), mask, index.nodes, *slots, index.marks, figures.marks, n == 0)

    def _tell_words_apart(self) -> Int64Array:
        """Find out which keys are words of a column."""
        first = self.figures.key
        plain, self._others = words_and_others(self.keys)
        table: Int64Array = np.array([(first + k, self._columns[self.keys[k][0]]) for k in plain], np.int64)
        return table.reshape(-1, 2)

    def forget_keys(self) -> None:
        """They are others, or stand elsewhere in a store."""
        self._words = None

    def _take_words(self, columns: Int64Array, lo: int, hi: int) -> None:
        if kernels.take_words(*self._store_and_keys(columns), lo, hi):
            self.figures.has_nulls = 1

    def _store_and_keys(self, columns: Int64Array | None) -> tuple[Any, Any]:
        """As kernels take them; plain tuples, which take less time to make."""
        assert self._store is not None
        index = self._index
        return self._store.places(), (columns, self.figures, index.nodes, index.keys)

    def write_words(self, x: int, column: int, slots: Slots) -> None:
        """Write a column's words, and whether they are NULL, into key x of these slots, an ascending run."""
        self._take_words(np.array([(x, self._columns[column])], np.int64), int(slots[0]), int(slots[-1]) + 1)

    def _may_refer(self, batch: Batch) -> bool:
        """References where the batch has them and all rows held are of that store."""
        source, columns = batch.reference or (None, ())
        if isinstance(source, StreamStore) and (batch.is_run or batch.seq is not None):
            if self._store is source and (self._columns is columns or list(self._columns) == list(columns)):
                return True
            if self._store is None or not len(self):
                self.release()
                self.forget_keys()
                self._store, self._columns, self._is_own = source, columns, False
                self._reader = source.reader(batch.first_seq)
                return True
        return False

    def _copied(self, batch: Batch) -> Int64Array:
        """The rows' numbers in the own store, to which they, and first the rows held, are appended."""
        if not self._is_own:
            self._stand_apart()
        return self._append(batch.ts, [batch.column(c) for c in self.kept])

    def _stand_apart(self) -> None:
        """Put the rows held into a store of the window's own."""
        held = self.present()
        ts, rows = (self._instants(held), self.gather(self.kept, held)) if len(held) else (NO_TS, [])
        self._begin_own()
        if len(held):
            self._put_numbers(held, self._append(ts, rows))

    def _instants(self, slots: Int64Array) -> Int64Array:
        """When rows held came."""
        assert self._store is not None
        ring, mask = self._store.instants
        instants: Int64Array = ring[self._numbers(slots) & mask]
        return instants

    def _begin_own(self) -> None:
        self.release()
        self.forget_keys()
        self._store = StreamStore(Schema(tuple(self.schema[c] for c in self.kept)))
        places = {c: j for j, c in enumerate(self.kept)}
        self._columns = [places.get(c, -1) for c in range(len(self.schema))]
        self._is_own = True
        self._reader = self._store.reader()

    def _append(self, ts: Int64Array, columns: Sequence[Column]) -> Int64Array:
        assert self._store is not None
        first = self._store.append(ts, columns)
        return np.arange(first, first + len(ts), dtype=np.int64)

    def settle(self) -> None:
        """Claim of the store what is held. An empty window claims nothing: what is still to come, others claim."""
        reader, store, line = self._reader, self._store, self.figures
        if reader is None or store is None:
            return
        lo, hi, head = line.lo, line.hi, store.head
        if lo == hi:
            reader.lo, self._settled = head, -1
        elif lo != self._settled:
            at = line.nodes + 1 + 2 * (lo & line.mask)
            reader.lo, self._settled = head - ((head - (self._index.nodes.item(at) >> 32)) & _NUMBER_BITS), lo
        if self._is_own:
            store.free()
        elif head - reader.lo > _LEAST_SPAN and lo < hi:
            held_back = store.held_back_by(reader)
            if held_back > max(_LEAST_SPAN, _FEW * (hi - lo)):
                self._stand_apart()

    def release(self) -> None:
        """End the claim on the store."""
        if self._reader is not None and self._store is not None:
            self._store.release(self._reader)
        self._reader = self._store = self._placed = None
        self._settled = -1

    # ----------------------------------------------------------------------------------------------------- state

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The rows held, oldest first, as words of the columns kept; references are resolved."""
        slots = self.present()
        columns = self.gather(self.kept, slots) if len(slots) else []
        state: dict[str, np.ndarray[Any, Any]] = {
            "words": row_words(columns),
            "count": np.array([len(slots)], np.int64),
        }
        if self._index.has_ranges:
            state["instants"] = self._instants(slots) if len(slots) else NO_TS
        return state

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        n = int(arrays["count"][0])
        self._begin_own()
        self._index.clear(self._number)
        if n:
            self._index.reserve({self._number: n})
            rows = columns_of_words(arrays["words"][:n], Schema(tuple(self.schema[c] for c in self.kept)))
            self._index.fit({self._number: n})
            has_ranges = self._index.has_ranges
            ts = arrays["instants"].astype(np.int64) if has_ranges else np.zeros(n, np.int64)
            self._put_numbers(np.arange(n, dtype=np.int64), self._append(ts, rows))
            self._take(0, n)
            self.figures.hi = self.figures.stop = self.figures.linked = n
            self._index.relink(self._number)
            self._index.give_up_cells()
            if has_ranges:
                self._index.expire(MIN_INSTANT)

    def live_codes(self) -> Iterable[Int64Array]:
        """The codes of TEXT values held here; a store referred to answers for its own."""
        if self._is_own and len(self):
            texts = [c for c in self.kept if self.schema[c].type.is_coded]
            slots = self.present()
            for column in self.gather(texts, slots):
                yield column.words()


def _words(values: AnyArray) -> AnyArray:
    """A store's column as words, without a copy: BOOLEAN as bytes."""
    if values.dtype == np.float64:
        return values.view(np.int64)
    return values.view(np.int8) if values.dtype == np.bool_ else values
