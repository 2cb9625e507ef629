"""What has come since the last multiple of a slide, a row per group: the state of pre-aggregation by panes.

Invariant: between two slices the rows are those of one pane, which is not over; what it holds is bounded by the groups
of a pane, however many elements come.  `kernels.panes` draws the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minidsms.elements import MIN_INSTANT, AnyArray, Batch, Column, Int64Array, Schema, Type
from minidsms.kernels import panes as kernels
from minidsms.kernels.addresses import VALID
from minidsms.kernels.arrays import normal, places
from minidsms.machine_code import rows_from
from minidsms.machine_code.templates import Form
from minidsms.synopses.measure import Measure
from minidsms.synopses.stream_store import StreamStore

_FIRST_ROWS = 64
_WORTH_SHRINKING = 4096
_BLOCK = 256
_MOST_IN_A_FORM = 8
"""Keys and measures."""
_FEW = 512
"""Rows for which there is always room, and elements that are copied where they stand in two pieces."""
_NO_INSTANTS: Int64Array = np.zeros(0, np.int64)
_NO_PLACES: Int64Array = np.zeros((1, 3), np.int64)
_KINDS = {
    "sum": kernels.SUM,
    "rows": kernels.ROWS,
    "count": kernels.COUNT,
    "min": kernels.LEAST,
    "max": kernels.GREATEST,
}


class PaneGroups:
    """schema: of the elements.  keys: columns.  measures: sums first.  slide, lag: of the window; see
    `operators.range_window`.  claim: told of the bytes that are about to be taken for more room.
    """

    def __init__(
        self, schema: Schema, keys: Sequence[int], measures: Sequence[Measure], slide: int, lag: int,
        claim: Callable[[int], None],
    ) -> None:  # fmt: skip
        columns = list(dict.fromkeys(measure.column for measure in measures if measure.column >= 0))
        self._read = [*keys, *columns]
        self._types = tuple(schema[i].type for i in keys) + tuple(measure.type_over(schema) for measure in measures)
        self._counts = [measure.kind in ("rows", "count") for measure in measures]
        self._claim = claim
        k, m = len(keys), len(measures)
        rows = [
            (_KINDS[one.kind], 0, False)
            if one.column < 0
            else (_KINDS[one.kind], k + columns.index(one.column), schema[one.column].type is Type.FLOAT)
            for one in measures
        ]
        table = rows_from(kernels.Measured, np.array(rows, np.int64).reshape(m, 3))
        self._constants = (
            tuple(schema[i].type.dtype.itemsize for i in keys),
            tuple(
                (kind, place, is_float, 8 if one.column < 0 else schema[one.column].type.dtype.itemsize)
                for one, (kind, place, is_float) in zip(measures, rows)
            ),
        )
        self._has_nulls = False
        self._whole = sum(1 << k + j for j, is_count in enumerate(self._counts) if not is_count)
        """The bits of a row without NULLs."""
        self._is_whole = True
        """All rows of the pane are known to be such."""
        sums = sum(measure.kind == "sum" for measure in measures)
        self._asked = kernels.Asked(k, table, sums, slide, lag)
        self._state = kernels.PaneState(end=MIN_INSTANT)
        self._keys: Int64Array = np.zeros((kernels.WORDS + k, _BLOCK), np.int64)
        self._few = kernels.Finished(np.empty(_FEW, np.int64), np.empty((k + m + 1, _FEW), np.int64))
        self._make(np.zeros((_FIRST_ROWS, k + m + 1), np.int64))

    def __len__(self) -> int:
        return self._state.used

    @property
    def end(self) -> int | None:
        """The instant at which the pane is over; None where nothing is in it."""
        return self._state.end if len(self) else None

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + self._slots.nbytes

    def form(self) -> Form | None:
        """The kernel for these keys and measures (`kernels.panes_form`); None where there are none, or many, and while
        elements have NULLs.
        """
        keys, measures = self._constants
        if self._has_nulls or not keys or not measures or len(self._types) > _MOST_IN_A_FORM:
            return None
        from minidsms.kernels.panes_form import take_plain_elements

        return take_plain_elements.form(KEYS=keys, MEASURES=measures)

    def take(self, batch: Batch | None, until: int, form: Callable[..., Any] | None = None) -> Batch | None:
        """Take elements in; the rows of the panes that are over at `until`, each at its pane's end.  form: a kernel for
        elements without NULLs.
        """
        state = self._state
        room, width = (0 if batch is None else len(batch.ts)) + len(self), self._rows.shape[1]
        finished = self._few
        if room > _FEW:
            self._claim(8 * room * (width + 1))
            finished = kernels.Finished(np.empty(room, np.int64), np.empty((width, room), np.int64))
        state.out = 0
        first, *others = (None,) if batch is None else _pieces(batch)
        is_whole = self._take_piece(first, MIN_INSTANT if others else until, form, finished)
        for i, piece in enumerate(others, 1):
            is_whole &= self._take_piece(piece, until if i == len(others) else MIN_INSTANT, form, finished)
        m = state.out
        if len(self._rows) > _WORTH_SHRINKING and not len(self) and m * 8 < len(self._rows):
            self._make(self._rows[: len(self._rows) // 4].copy())
        if not m:
            return None
        ts, words = finished.ts[:m], finished.words[:, :m]
        if finished is self._few:
            ts, words = ts.copy(), words.copy()
        return Batch(ts, None, self._columns(words, is_whole))

    def _take_piece(
        self, piece: Batch | None, until: int, form: Callable[..., Any] | None, finished: kernels.Finished
    ) -> bool:
        """Take elements in; whether the rows put out are known to be without NULLs."""
        # What the places lead to is held until the kernel has read it.
        ts = _NO_INSTANTS if piece is None else normal(piece.ts)
        columns = [] if piece is None else [piece.column(i) for i in self._read]
        table, held = places(columns) if columns else (_NO_PLACES, [])
        self._has_nulls = bool(table[:, VALID].any())
        self._is_whole = not self._has_nulls and self._can_be_plain(form)
        kernel = form if self._is_whole and form is not None else kernels.take_elements
        self._state.at = 0
        while not kernel(ts, table, self._asked, self._pane, until, self._keys, self._state, finished):
            self._claim(self.nbytes)
            self._make(np.concatenate([self._rows, np.zeros_like(self._rows)]))
        del held
        return self._is_whole

    def _can_be_plain(self, form: Callable[..., Any] | None) -> bool:
        """There is a form, and the pane has no row with a NULL."""
        if form is None or self._is_whole or not len(self):
            return form is not None
        return bool((self._rows[: len(self), self._asked.k] == self._whole).all())

    def _columns(self, words: Int64Array, is_whole: bool) -> list[Column]:
        k = self._asked.k
        bits = words[k]
        is_whole = is_whole or bool((bits == self._whole).all())
        columns = []
        for i, type_ in enumerate(self._types):
            valid = None
            if not is_whole and i < k:
                valid = bits >> i & 1 == 0
            elif not is_whole and not self._counts[i - k]:
                valid = bits >> i & 1 == 1
            if valid is not None and valid.all():
                valid = None
            columns.append(Column.from_words(words[i if i < k else i + 1], valid, type_))
        return columns

    def _make(self, rows: Int64Array) -> None:
        self._rows = rows
        self._slots = np.full(4 * len(rows), -1, np.int32)
        self._pane = kernels.Pane(self._slots, self._rows, 65 - len(self._slots).bit_length())
        self._state.base = 0
        kernels.enter_rows(self._asked.k, self._pane, len(self))

    def arrays(self) -> dict[str, AnyArray]:
        """The pane's rows, the bits of their keys and of their measures apart, and its end."""
        k, rows = self._asked.k, self._rows[: len(self)]
        bits = rows[:, k]
        rows = np.column_stack([rows[:, :k], bits & (1 << k) - 1, rows[:, k + 1 :], bits >> k])
        return {"rows": rows, "end": np.array([self._state.end])}

    def restore(self, arrays: Mapping[str, AnyArray]) -> None:
        held: Int64Array = arrays["rows"].astype(np.int64)
        n = len(held)
        rows = np.zeros((max(_FIRST_ROWS, 1 << n.bit_length()), self._rows.shape[1]), np.int64)
        rows[:n] = held[:, :-1]
        k, measures, *_ = self._asked
        rows[:n, k] |= held[:, -1] << k
        for j in np.flatnonzero(measures["kind"] >= kernels.LEAST):
            is_absent = held[:, -1] >> j & 1 == 0  # earlier versions left 0 there
            rows[:n, k + 1 + j][is_absent] = kernels.NO_EXTREME
        self._state.end = int(arrays["end"][0])
        self._state.used = n
        self._is_whole = False
        self._make(rows)

    def live_codes(self) -> Iterator[Int64Array]:
        """The TEXT codes held: those of keys."""
        for i, type_ in enumerate(self._types[: self._asked.k]):
            if type_.is_coded:
                yield self._rows[: len(self), i].copy()


def _pieces(batch: Batch) -> Sequence[Batch]:
    """The batch, in two where its elements are taken from the end of a ring and from its beginning: as views."""
    reference, n = batch.reference, len(batch.ts)
    if n < _FEW or not batch.is_run or reference is None:
        return (batch,)
    first, store = batch.first_seq, reference[0]
    cut = store.stop_of_piece(first, first + n) - first if isinstance(store, StreamStore) else n
    return (batch,) if cut == n else (batch.slice(0, cut), batch.slice(cut, n))
