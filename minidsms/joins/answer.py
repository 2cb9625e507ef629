"""The tuples that a join finds, as slots, until they are rows: what all its programs write into.

Invariant: a tuple stands in the buffers until its instant is complete; then it is put out once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import numpy as np

from minidsms.elements import Batch, Column, Int64Array
from minidsms.joins.spec import JoinSpec
from minidsms.kernels.addresses import PLACE_WORDS, VALID
from minidsms.kernels.gathering import OF_INPUT, OF_MASK, SOURCE_WORDS, gather_tuples
from minidsms.kernels.join_cache_layout import LEVEL_WORDS
from minidsms.kernels.join_layout import (
    CROWDED,
    DELETED,
    DEPTH,
    DONE,
    FILLED,
    FIRST,
    IS_OUTER,
    MIDDLE,
    MISSING,
    MOST,
    PAUSED,
    STAMPS,
    STATE_WORDS,
    STATUS,
    WALKS,
    JoinRun,
    Output,
)
from minidsms.synopses.bag_windows import BagWindow
from minidsms.synopses.indexed_windows import NOTHING_ASKED, IndexedWindow, WindowIndex

_INT64 = np.dtype(np.int64)
_NO_MASKS = np.empty((0, 0), np.bool_)
_TUPLES = 1 << 14
"""Tuples found before their rows are gathered: their slots stay in the cache until then."""

MOST_INSPECTED = 1 << 22
"""Slots that a kernel inspects, some 10 to 400 ms, before it is asked whether the call has taken too long."""

_FIRST_TUPLES = 64
"""Room for tuples before a part needs more."""


class Answer:
    """index: the windows of the slots.

    run, output: as the kernels take them; state: of the run.  netted: see `JoinSpec.leaves_out`.
    """

    def __init__(self, spec: JoinSpec, index: WindowIndex, claim: Callable[[int], None]) -> None:
        """claim: told of the bytes that are about to be taken for more room; it may raise (`Operator.claim`)."""
        self.claim = claim
        n = len(index.windows)
        self.netted = spec.leaves_out
        self.of_streams = spec.ranges is not None
        self.state = np.zeros(STATE_WORDS, np.int64)
        self.state[[DEPTH, FILLED]] = -1
        self.state[MOST] = MOST_INSPECTED
        self.state[IS_OUTER] = spec.outer
        self._figures = memoryview(self.state)  # type: ignore[arg-type]
        self.run = JoinRun(
            self.state,
            stamps=np.zeros((n if self.netted else 0, STAMPS), np.int64),
            stops=np.zeros(n, np.int64),
            walks=np.zeros((WALKS, n), np.int64),
            chosen=np.zeros(n, np.int64),
            levels=np.zeros(n * LEVEL_WORDS, np.int64),
            netted=int(self.netted),
            of_streams=int(self.of_streams),
        )
        self.output = _room(n, _FIRST_TUPLES)
        self._spec = spec
        self._index = index
        # By input: the output columns it gives, and which of its own they are.
        gives = [[(j, c) for j, (k, c) in enumerate(spec.columns) if k == i] for i in range(n)]
        self._gives = [([j for j, _ in each], [c for _, c in each]) for each in gives]
        windows, giving = index.windows, [i for i in range(n) if gives[i]]
        self._is_of_rings = not any(window.is_bag for window in windows)
        # Where it is: the inputs that give something, what is asked of them, and where that stands.
        self._giving = [(i, cast(IndexedWindow, windows[i]), *self._gives[i]) for i in giving]
        self._looked = [(window, NOTHING_ASKED) for _, window, _, _ in self._giving]
        self._sources: Int64Array = np.zeros((0, SOURCE_WORDS), np.int64)
        self._has_masks = self._are_words = False

    # -------------------------------------------------------------------------------------------------- finding

    def fill(self, step: Callable[[int], int], make_room: Callable[[], None] | None = None) -> Iterator[int]:
        """Take steps until what waits is joined; gives how many tuples stand complete, to be read before the next.

        step: runs a kernel behind so many tuples found; returns how many there are.  make_room: gives it larger scratch
        arrays, where they may be too small.
        """
        state = self.state
        found, status = 0, -1
        while status != DONE:
            found = step(found)
            status = int(state[STATUS])
            if status == CROWDED and make_room is not None:
                make_room()
                continue
            if status == PAUSED:
                self.claim(0)  # the call may have taken too long
                continue
            assert status != MISSING, "every deletion cancels an earlier insertion (docs/semantics T2)"
            complete = int(state[FIRST]) if status != DONE and self.netted else found
            if complete:
                yield complete
            found = self._keep(complete, found) if status != DONE else 0

    def grow(self) -> None:
        """Twice the room, with nothing in it."""
        slots, ts, sign = self.output
        if not self.is_small:
            self.claim(2 * (slots.nbytes + ts.nbytes + sign.nbytes))
        self.output = _room(len(slots), max(_TUPLES, len(ts) * 2))

    @property
    def is_small(self) -> bool:
        """There is less room than for what is gathered at once."""
        return len(self.output.out_ts) < _TUPLES

    def _keep(self, first: int, found: int) -> int:
        """Make room in the buffer: the tuples of the open instant move to its beginning, or it grows."""
        slots, ts, sign = self.output
        kept = found - first
        if kept * 2 > len(ts) or self.is_small:
            self.grow()
        new_slots, new_ts, new_sign = self.output
        new_slots[:, :kept] = slots[:, first:found].copy()
        new_ts[:kept] = ts[first:found].copy()
        new_sign[:kept] = sign[first:found].copy()
        self.state[FIRST] -= first
        self.state[MIDDLE] -= first
        return kept

    # ------------------------------------------------------------------------------------------------ being read

    def rows(self, found: int) -> Batch:
        """The rows of the first tuples found."""
        slots, ts, sign = self.output
        if self.netted:
            has_deletions = self._figures[DELETED] > 0
        elif found <= _FIRST_TUPLES:
            has_deletions = -1 in sign[:found].tolist()
        else:
            has_deletions = bool((sign[:found] < 0).any())
        self._figures[DELETED] = 0
        signs = sign[:found].copy() if has_deletions else None
        is_met = slots[1, :found] >= 0 if self._spec.outer else None
        if not self._is_of_rings or (is_met is not None and not is_met.all()):
            columns: list[Column | None] = [None] * len(self._spec.columns)
            for i, (window, (places, gives)) in enumerate(zip(self._index.windows, self._gives)):
                of_input = slots[i, :found]
                is_padded = i == 1 and is_met is not None
                gathered = _padded(window, gives, of_input) if is_padded else window.gather(gives, of_input)
                for j, column in zip(places, gathered):
                    columns[j] = column
            return Batch(ts[:found].copy(), signs, columns, is_own=True)  # type: ignore[arg-type]
        for window, asked in self._looked:
            if not window.still_has(asked):
                self._look()
                break
        k = len(self._sources)
        words = np.empty((1 + k, found), _INT64)
        present = np.empty((k, found), np.bool_) if self._has_masks else _NO_MASKS
        gather_tuples(self._sources, self._index.nodes, self._index.inputs, slots, ts, found, words, present)
        # By numbers: going through the rows of an array takes longer.
        if self._are_words:
            return Batch(words[0], signs, [Column(words[1 + c]) for c in range(k)], is_own=True)
        masks = [present[c] if place else None for c, place in enumerate(self._sources[:, VALID].tolist())]
        types = self._spec.schema.types
        return Batch(words[0], signs, list(map(Column.from_words, words[1:], masks, types)), is_own=True)

    def _look(self) -> None:
        """See where the columns that are shown stand now."""
        self._sources = sources = np.zeros((len(self._spec.columns), SOURCE_WORDS), np.int64)
        self._looked = [(window, window.asked(gives)) for _, window, _, gives in self._giving]
        for (i, _, places, _), (_, asked) in zip(self._giving, self._looked):
            sources[places, :PLACE_WORDS] = asked.places[asked.numbers]
            sources[places, OF_INPUT], sources[places, OF_MASK] = i, asked.mask
        self._has_masks = any(True in asked.has_mask for _, asked in self._looked)
        self._are_words = all(asked.are_words for _, asked in self._looked)

    def whole(self, found: int) -> Batch:
        """The first tuples found as rows of all columns of all inputs, gathered when somebody reads them."""
        slots, ts, sign = self.output
        tuples = _Tuples(self._index, slots[:, :found])
        return Batch.referring(ts[:found], sign[:found], np.arange(found), tuples, range(len(tuples.places)))

    def choose(self, at: Int64Array) -> int:
        """Keep of the tuples found those at these places alone; returns how many they are."""
        kept = len(at)
        for buffer in self.output:
            buffer[..., :kept] = buffer[..., at]
        return kept


class _Tuples:
    """Tuples of slots as a source columns are gathered from; their numbers take the place of seq.

    places: the (input, column) of every column.
    """

    def __init__(self, index: WindowIndex, slots: Int64Array) -> None:
        self._index = index
        self._slots = slots
        self.places: Sequence[tuple[int, int]] = [
            (i, c) for i, window in enumerate(index.windows) for c in range(len(window.schema))
        ]

    def gather(self, column: int, seq: Int64Array, is_run: bool = False) -> Column:
        """The column of these tuples."""
        i, c = self.places[column]
        slots = self._slots[i]
        return self._index.windows[i].gather([c], slots if len(seq) == len(slots) else slots[seq])[0]


def _padded(window: IndexedWindow | BagWindow, columns: Sequence[int], slots: Int64Array) -> list[Column]:
    """The columns of the rows in these slots, NULL where a slot is -1."""
    is_there = slots >= 0
    if not is_there.any():
        return [Column.nulls(len(slots), window.schema[c].type) for c in columns]
    padded = []
    for column in window.gather(columns, np.maximum(slots, 0)):
        values = column.values.copy()
        values[~is_there] = 0
        padded.append(Column(values, is_there if column.valid is None else column.valid & is_there))
    return padded


def _room(n: int, capacity: int) -> Output:
    return Output(np.empty((n, capacity), np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int8))
