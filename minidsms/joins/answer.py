"""The tuples that a join finds, as slots, until they are rows: what all its programs write into.

Invariant: a tuple stands in the buffers until its instant is complete; then it is put out once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from minidsms.elements import Batch, Column, Int64Array
from minidsms.joins.spec import JoinSpec
from minidsms.kernels.join_layout import CROWDED, DONE, MISSING, PAUSED, STAMPS, JoinRun, JoinState, Output, Walk
from minidsms.machine_code import rows_of
from minidsms.synopses.shown_tuples import ShownTuples, signs_of
from minidsms.synopses.window_index import WindowIndex

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
        self.state = JoinState(depth=-1, filled=-1, most=MOST_INSPECTED, is_outer=spec.outer)
        self.run = JoinRun(
            self.state,
            stamps=np.zeros((n if self.netted else 0, STAMPS), np.int64),
            stops=np.zeros(n, np.int64),
            walks=rows_of(Walk, n),
            chosen=np.zeros(n, np.int64),
            netted=int(self.netted),
            of_streams=int(self.of_streams),
        )
        self.output = _room(n, _FIRST_TUPLES)
        self._index = index
        self._shown = ShownTuples(index, spec.columns, spec.schema, 1 if spec.outer else None)

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
            status = state.status
            if status == CROWDED and make_room is not None:
                make_room()
                continue
            if status == PAUSED:
                self.claim(0)  # the call may have taken too long
                continue
            assert status != MISSING, "every deletion cancels an earlier insertion (docs/semantics T2)"
            complete = state.first if status != DONE and self.netted else found
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
        self.state.first -= first
        self.state.middle -= first
        return kept

    # ------------------------------------------------------------------------------------------------ being read

    def rows(self, found: int) -> Batch:
        """The rows of the first tuples found."""
        slots, ts, sign = self.output
        signs = None
        if not self.netted:
            signs = signs_of(sign, found)
        elif self.state.deleted:
            signs, self.state.deleted = sign, 0
        return self._shown.rows(slots, ts, signs, found)

    def whole(self, found: int) -> Batch:
        """The first tuples found as rows of all columns of all inputs, gathered when somebody reads them."""
        slots, ts, sign = self.output
        tuples = _Tuples(self._index, slots[:, :found])
        return Batch.referring(ts[:found], sign[:found], np.arange(found), tuples, range(len(tuples.places)))

    def choose_entering(self, found: int) -> int:
        """Keep of the tuples found the insertions alone; returns how many they are."""
        at = (self.output.out_sign[:found] > 0).nonzero()[0]
        return found if len(at) == found else self.choose(at)

    def choose(self, at: Int64Array) -> int:
        """Keep of the tuples found those at these places alone; returns how many they are."""
        kept = len(at)
        for buffer in self.output if kept else ():
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

    def gather(self, column: int, seq: Int64Array) -> Column:
        """The column of these tuples."""
        i, c = self.places[column]
        slots = self._slots[i]
        return self._index.windows[i].gather([c], slots if len(seq) == len(slots) else slots[seq])[0]


def _room(n: int, capacity: int) -> Output:
    return Output(np.empty((n, capacity), np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int8))
