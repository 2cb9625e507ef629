"""The kept results of a join tree's inner nodes, each a tuple of slots of the windows, indexed by the next join's key.

Rows are not copied: a cell is the slots of its rows, and a tag for each key. What leaves the windows is not deleted
here: a cell that has such a row is passed over, and squeezed out when room is needed (see `kernels.subresults`).

Invariants: between slices a subresult has every tuple of its inputs' present rows once; less than half of the cells of
a ring that has just grown are dead; dead cells are squeezed out after about as many elements, and rings shrink after a
burst.  Babu 2005, section 5.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minidsms.elements import Int64Array
from minidsms.kernels import subresults as kernels
from minidsms.kernels.subresults import NEVER, Kept, View, ViewKey
from minidsms.machine_code import record_in, rows_of
from minidsms.synopses.window_index import WindowIndex

_LEAST_CAPACITY = 64
_ROOMY = 8
"""How many times the cells held a ring is that shrinks."""


class Subresults:
    """Of one join tree. members: of each, its inputs, bags last.  keys: of each, the (input, key) that give tags.

    births: see `kernels.subresults`; rows that are there already were born at 0.
    """

    def __init__(
        self, windows: WindowIndex, members: Sequence[Sequence[int]], keys: Sequence[Sequence[tuple[int, int]]]
    ) -> None:
        self.windows = windows
        self._rows = rows_of(View, len(members))
        self.views = [record_in(View, self._rows, v) for v in range(len(members))]
        self.keys = rows_of(ViewKey, sum(map(len, keys)))
        self.members: Int64Array = np.array([i for each in members for i in each], np.int64)
        at = first = 0
        for v, view in enumerate(self.views):
            bags = sum(windows.windows[i].is_bag for i in members[v])
            view.member, view.members_end = at, at + len(members[v])
            view.bag = at + len(members[v]) - bags
            view.key, view.keys_end = first, first + len(keys[v])
            for place, (leaf, key) in enumerate(keys[v], first):
                self.keys["leaf"][place], self.keys["leaf_key"][place] = leaf, key
            view.width = 2 * len(keys[v]) + len(members[v]) + bool(bags)
            at, first = at + len(members[v]), first + len(keys[v])
        self._capacities = [_LEAST_CAPACITY] * len(members)
        self._unseen = [0] * len(members)
        self._place()
        self._bags = [i for i, window in enumerate(windows.windows) if window.is_bag]
        self.births: Int64Array = np.zeros(0, np.int64)
        self._born_in: list[int] = []
        self.begin_births()
        self.parts = tuple(Subresult(self, v) for v in range(len(members)))

    @property
    def bundle(self) -> Kept:
        """As the kernels take them; other arrays after a change of size."""
        return Kept(self._rows, self.keys, self.members, self.cells, self.heads, self.births)

    def make_room(self, v: int) -> None:
        """Let subresult v take more cells: dead ones go, and where half of them live the ring is doubled."""
        self._sweep(v)
        if self._held(v) * 2 > self._capacities[v]:
            self._compact(v)
        if self._held(v) * 2 > self._capacities[v]:
            self._resize(v, 2 * self._capacities[v])

    def settle(self, elements: int) -> None:
        """So many elements are joined: dead cells that came first go, others after as many elements as there are cells;
        rings that are much too large shrink.
        """
        inputs = self.windows.inputs
        inputs["old_lo"] = inputs["lo"]
        for v, capacity in enumerate(self._capacities):
            self._sweep(v)
            self._unseen[v] += elements
            if self._unseen[v] > self._held(v) + _LEAST_CAPACITY:
                self._unseen[v] = 0
                if len(self.parts[v]) * 2 < self._held(v):
                    self._compact(v)
            if capacity > 16 * _LEAST_CAPACITY and self._held(v) * _ROOMY < capacity:
                self._resize(v, max(_LEAST_CAPACITY, 1 << (2 * self._held(v)).bit_length()))

    def reserve(self, v: int, count: int) -> None:
        """Empty a subresult, and make room for so many cells."""
        self.views[v].lo = self.views[v].hi = 0
        self._resize(v, max(_LEAST_CAPACITY, 1 << (2 * count).bit_length()))

    def begin_births(self) -> None:
        """The rows that bags hold now were there before any cell that is made from now on."""
        self._born_in = []
        self.births = np.zeros(0, np.int64)
        self.follow_bags()
        for i in self._bags:
            self.births[self.births[i] + self.windows.windows[i].present()] = 0

    def follow_bags(self) -> None:
        """Room for a birth in each slot of the bags, which have as many slots as their windows now."""
        slots = (self.windows.inputs["mask"][self._bags] + 1).tolist()
        if slots == self._born_in:
            return
        old, n = self.births, len(self.windows.inputs)
        self.births = np.full(n + sum(slots), NEVER, np.int64)
        at = n
        for i, count, before in zip(self._bags, slots, self._born_in or [0] * len(slots)):
            kept = min(count, before)
            self.births[i] = at
            if kept:
                self.births[at : at + kept] = old[old[i] : old[i] + kept]
            at += count
        self._born_in = slots

    @property
    def nbytes(self) -> int:
        """Bytes of the cells and their buckets."""
        return self.cells.nbytes + self.heads.nbytes + self.births.nbytes

    def _held(self, v: int) -> int:
        return self.views[v].hi - self.views[v].lo

    def _sweep(self, v: int) -> None:
        kernels.sweep(self.windows.inputs, self.bundle, v)

    def _compact(self, v: int) -> None:
        kernels.compact(self.windows.inputs, self.bundle, v)

    def _resize(self, v: int, capacity: int) -> None:
        """Give a subresult another capacity; every cell keeps its number."""
        self._capacities[v] = capacity
        views, cells = [View.from_buffer_copy(view) for view in self.views], self.cells
        self._place()
        for old, new in zip(views, self.views):
            numbers = np.arange(old.lo, old.hi, dtype=np.int64)
            if len(numbers):
                words = np.arange(old.width, dtype=np.int64)
                source = old.cells + old.width * (numbers & old.mask)
                target = new.cells + new.width * (numbers & new.mask)
                self.cells[target[:, None] + words] = cells[source[:, None] + words]
        for w in range(len(self.views)):
            kernels.relink(self.bundle, w)

    def _place(self) -> None:
        """Lay out empty arrays for the capacities."""
        cells = heads = 0
        for view, capacity in zip(self.views, self._capacities):
            view.mask, view.cells = capacity - 1, cells
            cells += capacity * view.width
            for k in range(view.key, view.keys_end):
                self.keys["heads"][k], self.keys["shift"][k] = heads, 65 - capacity.bit_length()
                heads += capacity
        self.cells: Int64Array = np.zeros(cells, np.int64)
        self.heads: Int64Array = np.full(heads, -1, np.int64)


class Subresult:
    """One of them, as a synopsis."""

    def __init__(self, of: Subresults, number: int) -> None:
        self._of = of
        self._number = number

    def __len__(self) -> int:
        """Tuples of present rows.  O(cells held)."""
        return len(self._live())

    def _live(self) -> Int64Array:
        """The numbers of the cells whose rows are all there."""
        of, v = self._of, self._number
        live: Int64Array = np.empty(of.views[v].hi - of.views[v].lo, np.int64)
        count = kernels.live_cells(of.windows.inputs, of.bundle, v, live)
        return live[:count]

    @property
    def nbytes(self) -> int:
        """Bytes of its cells and buckets."""
        view = self._of.views[self._number]
        words = view.width + view.keys_end - view.key
        return 8 * words * (view.mask + 1)

    def live_codes(self) -> Iterable[Int64Array]:
        """The windows answer for the rows."""
        return ()

    def tuples(self) -> Int64Array:
        """(m, inputs): the slots of the tuples of present rows, oldest first; inputs as `members`, bags last."""
        of, view = self._of, self._of.views[self._number]
        at = view.cells + view.width * (self._live() & view.mask)
        at += 2 * (view.keys_end - view.key)
        return np.asarray(of.cells[at[:, None] + np.arange(view.members_end - view.member)])

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """rows (m, inputs): of each tuple, the places of its rows among those that their windows hold."""
        view = self._of.views[self._number]
        rows = self.tuples()
        for k, i in enumerate(self._of.members[view.member : view.members_end].tolist()):
            rows[:, k] = np.searchsorted(self._of.windows.windows[i].present(), rows[:, k])
        return {"rows": rows}

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        """Hold what `arrays` gave, and nothing else; the windows have been restored."""
        of, v = self._of, self._number
        windows = of.windows
        rows = arrays["rows"]
        of.begin_births()
        of.reserve(v, len(rows))
        view = of.views[v]
        members = of.members[view.member : view.members_end]
        slots = rows.copy()
        for k, i in enumerate(members.tolist()):
            slots[:, k] = windows.windows[i].present()[rows[:, k]]
        at = view.cells + view.width * np.arange(len(rows), dtype=np.int64)
        for place, k in enumerate(range(view.key, view.keys_end)):
            leaf, key = int(of.keys["leaf"][k]), int(of.keys["leaf_key"][k])
            own = slots[:, members.tolist().index(leaf)] & windows.inputs["mask"][leaf]
            of.cells[at + 2 * place] = windows.nodes[windows.keys["nodes"][key] + 2 * own]
        first = at + 2 * (view.keys_end - view.key)
        of.cells[first[:, None] + np.arange(len(members))] = slots
        if view.bag < view.members_end:
            of.cells[first + len(members)] = 0
        view.hi = len(rows)
        kernels.relink(of.bundle, v)
