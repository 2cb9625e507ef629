"""The rows of a relation by partition, each partition in an order, for the ranks of OVER and the first rows.

Invariant: a row stands in its partition as often as it is in the relation; a partition without rows has no id between
slices.  `kernels.sorted_partitions` draws the arrays.  docs/semantics R6, R7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minidsms.aggregates.aggregate import SortKey
from minidsms.aggregates.over import OverCall
from minidsms.elements import (
    AnyArray,
    Batch,
    Column,
    Int64Array,
    Schema,
    Type,
    columns_of_words,
    is_all_true,
    row_words,
    words_width,
)
from minidsms.kernels import sorted_partitions as kernels
from minidsms.kernels.arrays import normal
from minidsms.machine_code import rows_from, rows_of
from minidsms.synopses.key_table import KeyTable
from minidsms.synopses.object_states import Texts
from minidsms.synopses.text_bytes import TextBytes
from minidsms.values.coded import CODE_OF_ZERO, MOST_COMPUTED

_FIRST_ROOM = 64
_WORTH_SHRINKING = 4096
_LARGEST_OUTPUT = 1 << 14
SHOWN = "shown"
"""What is asked for of the first rows."""
BY_PLACE = ("row_number", SHOWN, "ntile", "rank", "dense_rank", "percent_rank", "cume_dist")
"""What rows have by their places alone, as kernels number it."""
FARTHEST = 1 << 62
_BY_VALUE = SortKey(nulls_first=True)
_NONE: Int64Array = np.zeros(0, np.int64)
NO_CHANGES = kernels.RowChanges(_NONE, np.zeros(0, np.int8), _NONE, _NONE.reshape(0, 1), _NONE, _NONE, _NONE)


def sorting_columns(call: OverCall, columns: int) -> list[tuple[int, SortKey]]:
    """The columns by which the rows of a partition are sorted: those of the call, then all others by value."""
    known = {*call.partition, *(column for column, _ in call.order)}
    return [*call.order, *((column, _BY_VALUE) for column in range(columns) if column not in known)]


class SortedPartitions:
    """Of rows of one schema what a call is computed from. at_most: ranks above are of no interest.  keeps: as
    `kernels.sorted_partitions` has it.
    """

    _fields = kernels.FIELDS
    """Of a partition; what stands behind those of all is what a subclass carries of rows that have passed."""

    def __init__(self, schema: Schema, call: OverCall, at_most: int | None, keeps: int, texts: Texts) -> None:
        self.schema, self._partition = schema, call.partition
        k = len(schema)
        sorting = sorting_columns(call, k)
        by = [(column, key.descending, key.nulls_first, kind_of(schema.types[column])) for column, key in sorting]
        compared = [*(column for column, _ in sorting), *self._compared(call)]
        self._coded = [column for column in compared if schema.types[column].is_coded]
        self._texts = TextBytes(texts)
        self._dictionary = texts
        self._sums_digits = call.sums_decimals
        self._asked = kernels.RankAsked(
            BY_PLACE.index(call.function) if call.function in BY_PLACE else kernels.FRAMED,
            min(call.distance or 0, FARTHEST),
            -1 if call.arg is None else call.arg,
            kernels.UNBOUNDED if at_most is None else min(max(0, at_most), FARTHEST),
            keeps,
            len(call.order),
            k,
            rows_from(kernels.SortKey, np.array(by, np.int64).reshape(len(by), 4)),
            self._texts.written,
        )
        self._undone: int | None = None
        """The first change that was not carried out, if there is one."""
        self.failed_at: int | None = None
        """An instant at which a sum did not fit."""
        self._width = words_width(k)
        text = [i for i, column in enumerate(call.partition) if schema.types[column].is_coded]
        self._table = KeyTable(words_width(len(call.partition)), text)
        self._spans = kernels.InstantSpans()
        self._clear(_FIRST_ROOM)
        self._reserve(_FIRST_ROOM)

    def _compared(self, call: OverCall) -> Sequence[int]:
        """Columns that are compared beside those by which rows are sorted."""
        return ()

    def _clear(self, slots: int) -> None:
        self._partitions: Int64Array = np.zeros((0, self._fields), np.int64)
        self._places: Int64Array = np.zeros(2 * slots, np.int64)
        self._rows: Int64Array = np.zeros((slots, self._width), np.int64)
        self._free: Int64Array = np.arange(slots - 1, -1, -1)
        self._figures = kernels.PartitionFigures(free=slots)

    def _reserve(self, n: int) -> None:
        """Room for so many rows put out in one go, and for what is computed of them."""
        results: Int64Array = np.empty((2, n), np.int64)
        high = n if self._sums_digits else 0
        self._beside = kernels.Beside(
            np.empty(n, np.int64), results, results.view(np.float64), np.empty((2, n), np.int8),
            np.empty((2, high), np.int64), np.empty((n, 4), np.int64), np.empty(n, np.int64),
            rows_of(kernels.Move, n),
        )  # fmt: skip
        self._out = kernels.RankedRows(
            np.empty(n, np.int64), np.empty(n, np.int8), np.empty((n, self._width), np.int64), np.empty(n, np.int64),
            np.empty(n, np.int8), np.empty(high, np.int64),
        )  # fmt: skip

    @property
    def held(self) -> int:
        """How many rows are in order."""
        return self._figures.held

    def __len__(self) -> int:
        """How many rows there are."""
        return self.held

    @property
    def _kept(self) -> Any:
        """`kernels.SortedArrays`, but a plain tuple, as all bundles made for a slice: a NamedTuple takes seven times as
        long.
        """
        return self._partitions, self._places, self._rows, self._free, self._figures

    def _work(self, changes: Sequence[AnyArray]) -> Any:
        """`kernels.Work` of `kernels.RowChanges`, in the same way."""
        return changes, self._kept, self._asked, self._beside, self._out, self._spans

    # ---------------------------------------------------------------------------------------------------- the changes

    def take(self, batch: Batch) -> Iterator[kernels.RankedRows]:
        """Take changes in; gives the rows that are taken back and put out, by instant, good until the next are asked
        for.
        """
        return self._carry_out(batch)

    def _carry_out(
        self, batch: Batch, least: int = 0, change: Callable[[kernels.Work, kernels.ChangeCursor], int] | None = None
    ) -> Iterator[kernels.RankedRows]:
        """The same, up to an instant after which fewer than `least` rows would be left; `_undone` tells which. change:
        in place of `_change`.
        """
        change = change or self._change
        n, cursor = len(batch), kernels.ChangeCursor(least=least)
        ids = self._acquire(batch)
        following, touched, emptied = np.empty((3, n), np.int64)
        words = row_words(batch.columns)
        if self._coded:
            self._texts.cover(self._codes(words), self._held_codes)
            self._asked = self._asked._replace(texts=self._texts.written)
        changes = normal(batch.ts), normal(batch.signs), ids, words, following, touched, emptied
        status = -1
        while status not in (kernels.DONE, kernels.ROWS_FEW, kernels.OVERFLOWS):
            status = change(self._work(changes), cursor)
            written, needed = cursor.written, cursor.needed
            told = self._written(written)
            if status == kernels.PLACES_FULL:
                self._pack(2 * needed)
            elif status == kernels.SLOTS_FULL and self._figures.free < needed:
                self._grow(needed)
            elif status == kernels.OUTPUT_FULL and (not written or len(self._out.ts) < min(4 * n, _LARGEST_OUTPUT)):
                self._reserve(max(2 * needed, min(4 * n, _LARGEST_OUTPUT)))
            if written:
                yield told
        if status == kernels.OVERFLOWS:
            self.failed_at = batch.ts.item(cursor.next)
            return
        undone = cursor.next if status == kernels.ROWS_FEW else None
        self._let_go(emptied[: cursor.emptied])
        self._undone = undone  # only now, for letting go may carry changes out

    def _change(self, work: kernels.Work, cursor: kernels.ChangeCursor) -> int:
        """Go on with the changes."""
        return kernels.change(work, cursor)

    def _tell(self, work: kernels.Work) -> int:
        """Put all rows out; how many."""
        return kernels.tell(work)

    def _codes(self, words: Int64Array) -> Int64Array:
        """Those by whose texts rows are sorted."""
        return words[:, self._coded].ravel()

    def _held_codes(self) -> Int64Array:
        return self._codes(self._words())

    def _carried(self) -> Int64Array:
        """What partitions have of rows that have passed, in their order."""
        return self._partitions[self._partitions[:, kernels.COUNT] > 0, kernels.FIELDS :]

    def _acquire(self, batch: Batch) -> Int64Array:
        if not self._partition:
            ids = np.zeros(len(batch), np.int64)
            capacity = 1
        else:
            ids = self._table.acquire_columns([batch.column(i) for i in self._partition])
            capacity = self._table.capacity
        missing = capacity - len(self._partitions)
        if missing > 0:
            self._partitions = np.concatenate([self._partitions, np.zeros((missing, self._fields), np.int64)])
        return ids

    def _written(self, n: int) -> kernels.RankedRows:
        ts, sign, words, results, told, high = self._out
        return kernels.RankedRows(ts[:n], sign[:n], words[:n], results[:n], told[:n], high[:n])

    def columns(self, told: kernels.RankedRows, type_: Type) -> list[Column]:
        """Of rows that `take` or `present` gives, in arrays of their own; the result has this type."""
        valid = None if is_all_true(told.told) else told.told.astype(np.bool_)
        results = self._codes_of(told) if self._sums_digits else told.results.copy()
        return [*columns_of_words(told.words, self.schema), Column.from_words(results, valid, type_)]

    def _codes_of(self, told: kernels.RankedRows) -> Int64Array:
        """Of results that are digits."""
        digits, high = told.results, told.high
        is_computed = (high == digits >> 63) & (digits <= MOST_COMPUTED) & (digits >= -MOST_COMPUTED)
        codes = digits + CODE_OF_ZERO
        codes[told.told == 0] = 0
        for i in np.flatnonzero(~is_computed & (told.told != 0)).tolist():
            codes[i] = self._dictionary.digits_column([(high.item(i) << 64) + digits.item(i) % (1 << 64)]).values[0]
        return codes

    def present(self) -> kernels.RankedRows:
        """The rows that are put out at present (ts of no meaning), as `take` gives them."""
        if len(self._out.ts) < self.held:
            self._reserve(self.held)
        return self._written(self._tell(self._work(NO_CHANGES)))

    # ---------------------------------------------------------------------------------------------------------- memory

    def _let_go(self, emptied: Int64Array) -> None:
        """Forget partitions that are empty, and give memory back where most of it is free."""
        if self._partition and len(emptied):
            counts = self._partitions.take(emptied * self._fields + kernels.COUNT)  # two indexes take 2 us more
            self._table.release(emptied[counts == 0])
            kept = self._table.compact()
            if kept is not None:
                partitions = np.zeros((self._table.capacity, self._fields), np.int64)
                partitions[: len(kept)] = self._partitions[kept]
                self._partitions = partitions
        if len(self._rows) > _WORTH_SHRINKING and 16 * self.held < len(self._rows):
            self._hold(self._words())

    def _grow(self, more: int) -> None:
        """Twice the slots, and so many more."""
        old, free = len(self._rows), self._figures.free
        added = old + more
        self._rows = np.concatenate([self._rows, np.zeros((added, self._width), np.int64)])
        self._free = np.concatenate(
            [self._free[:free], np.arange(old + added - 1, old - 1, -1), np.zeros(old - free, np.int64)]
        )
        self._figures.free = free + added

    def _pack(self, more: int) -> None:
        """The slots of all partitions anew, with room for so many more."""
        stretches = np.count_nonzero(self._partitions[:, kernels.SIZE])
        packed: Int64Array = np.zeros(2 * (3 * self.held + 4 * stretches + more), np.int64)
        self._figures.used = kernels.pack(self._kept, packed)
        self._places = packed

    @property
    def nbytes(self) -> int:
        arrays = (self._partitions, self._places, self._rows, self._free, self._texts)
        return self._table.nbytes + sum(array.nbytes for array in arrays)

    def _words(self) -> Int64Array:
        stretches = [
            self._places[offset : offset + count]
            for offset, count in self._partitions[:, : kernels.COUNT + 1].tolist()
            if count
        ]
        return self._rows[np.concatenate(stretches)] if stretches else self._rows[:0].copy()

    def live_codes(self) -> Iterator[Int64Array]:
        """The TEXT codes held (0 stands for NULL). Whoever asks may reuse all others."""
        self._texts.forget()
        words = self._words()
        for i in self.schema.coded:
            yield words[:, i]
        yield from self._table.live_codes()

    def arrays(self) -> dict[str, AnyArray]:
        """The state: rows as words, partition by partition, in order, and what partitions have of others."""
        return {"words": self._words(), "carried": self._carried()}

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        words = np.ascontiguousarray(state["words"], np.int64)
        self._hold(words)
        if self._fields > kernels.FIELDS and len(words):
            ids = self._acquire(self._insertions(words))
            begins = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
            self._partitions[ids[begins], kernels.FIELDS :] = state["carried"]
            self._texts.forget()  # it has not those that are carried

    def _hold(self, words: Int64Array) -> None:
        """These rows and no others: they come once more, and are not put out."""
        self._table = KeyTable(self._table.width, self._table.text)
        self._texts.forget()
        self._clear(max(_FIRST_ROOM, 1 << (2 * len(words)).bit_length()))
        if len(words):
            self._add(words)

    def _add(self, words: Int64Array) -> None:
        """Rows come, and are not put out. By place: frames may lack rows that have passed, and their sums overflow."""
        for _ in self._carry_out(self._insertions(words), change=kernels.change):
            pass

    def _cut(self, first: int) -> None:
        """Let go of the rows of the only partition from this place on."""
        of, figures = self._partitions[0], self._figures
        gone = self._places[of[kernels.OFFSET] + first : of[kernels.OFFSET] + of[kernels.COUNT]]
        free = figures.free
        self._free[free : free + len(gone)] = gone
        figures.free += len(gone)
        figures.held -= len(gone)
        of[kernels.COUNT] = first

    def _insertions(self, words: Int64Array) -> Batch:
        """Rows as a batch (ts of no meaning)."""
        return Batch(np.zeros(len(words), np.int64), None, columns_of_words(words, self.schema))


def kind_of(type_: Type) -> int:
    """How kernels compare the words of a type."""
    return kernels.TEXTS if type_.is_coded else kernels.FLOATS if type_ is Type.FLOAT else kernels.WORDS
