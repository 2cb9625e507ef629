"""One index over the keys of all windows of a join, by which its kernels find rows.

Invariants: [lo, hi) is present; a row with a NULL key has a slot, so that deletions stay in step, but stands in no
bucket; with a NULL of which there were cells, in those that all rows share once cells have been given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from minidsms.elements import MAX_INSTANT, AnyArray, Batch, Int16Array, Int32Array, Int64Array, Schema
from minidsms.kernels import arrivals
from minidsms.kernels import window_index as kernels
from minidsms.kernels.access_methods.bit_addresses import ADDRESS, CONFIGURATION, MOST_CONFIGURATIONS, NUMBERS, Bits
from minidsms.kernels.access_methods.cells import (
    LEAST_DIVIDED,
    SAMPLED,
    Cells,
    CellsInOrder,
    elements_until_fit,
    with_cells,
)
from minidsms.kernels.access_methods.contract import Key, Slots, array_of
from minidsms.kernels.access_methods.methods import method_of
from minidsms.kernels.join_layout import NO_RANGE, InstantRun, JoinInput, JoinKey, Windows
from minidsms.kernels.links import LOWER, UNLINKED, WAITING
from minidsms.machine_code import Rows, record_in, rows_of
from minidsms.process.side_by_side import side_by_side
from minidsms.synopses.bag_windows import BagWindow
from minidsms.synopses.indexed_window import IndexedWindow
from minidsms.synopses.stream_store import Reader, StreamStore

_LEAST_CAPACITY = 64
_PARTS_BEFORE_SHRINKING = 8
_MANY_RUNS = 4_096
"""Fewer are not given up."""
_FEW_ROWS = 1 << 13
"""Up to so many rows held an input has four buckets for each, beyond as many in all, and at last one for each: their
heads would fill the cache.
"""
_MOST_UNCHECKED = 2**20
_MOST_ARRIVALS = 2**30
"""Rows that come into an input before its buckets are emptied: heads of 32 bits then still tell old slots from new."""


class WindowIndex:
    """The index over the keys of all inputs, as the kernel takes it.

    keys: of each input, see `IndexedWindow`.  marked: of each input, or None where no marks are wanted.
    ranges: of each input, where the inputs are streams whose elements leave after so many ticks (None: never).
    bags: of each input, whether its rows leave in any order. Then there are neither marks nor ranges.
    rooms: of each input, how many patterns may be indexed beside its keys (`index`).
    cells: by input and negative column of a key, the cells that it stands for.
    configurations: of each input that has bits, number and bits of those under which rows are stored; first that of the
    rows to come.
    renumberings: how often rows of a bag have got other slots; whoever holds slots begins anew then.
    """

    def __init__(
        self, schemas: Sequence[Schema], keys: Sequence[Sequence[Key]], marked: Sequence[Sequence[int]] | None,
        needed: Sequence[Iterable[int]], ranges: Sequence[int | None] | None = None,
        bags: Sequence[bool] | None = None, rooms: Sequence[int] | None = None,
        cells: Mapping[tuple[int, int], Cells | CellsInOrder] | None = None,
    ) -> None:  # fmt: skip
        n = len(schemas)
        bags, rooms = bags or [False] * n, rooms or [0] * n
        self.inputs = rows_of(JoinInput, n)
        self.records = [record_in(JoinInput, self.inputs, i) for i in range(n)]
        """The same, to be read and written one by one."""
        self.keys = rows_of(JoinKey, sum(map(len, keys)) + sum(rooms))
        at = 0
        for i in range(n):
            self.records[i].key, self.records[i].keys_end = at, at + len(keys[i])
            at += len(keys[i]) + rooms[i]
        self._linked = [tuple(each) for each in keys]
        self.configurations: list[list[tuple[int, Bits]]] = [[] for _ in range(n)]
        self._next_number = 0
        self._cells = cells or {}
        self._in_order = {place: each for place, each in self._cells.items() if isinstance(each, CellsInOrder)}
        self._came = self._fits_at = 0
        self._has_wild = False
        self.has_cells = bool(cells)
        self._has_marks = marked is not None
        self.has_ranges = ranges is not None
        if ranges is not None:
            # NOW is a range of one tick.
            self.inputs["length"] = [NO_RANGE if length is None else max(length, 1) for length in ranges]
        self.inputs["leaves"] = MAX_INSTANT
        self.inputs["is_bag"] = bags
        self._has_bags = any(bags)
        self._capacities = [_LEAST_CAPACITY] * n
        self._roomy = [0] * n
        self._buckets = [_LEAST_CAPACITY] * n
        self._emptied = [0] * n
        self._spare = [0] * n
        self.runs = rows_of(InstantRun, _LEAST_CAPACITY)
        self.places: Int64Array = np.zeros(0, np.int64)
        self.pipelines: np.ndarray = np.zeros(0, np.uint8)
        """Of rows that are told apart (`joins.row_routes`)."""
        self._note_linked(self._linked)
        self._place()
        self.windows: list[IndexedWindow | BagWindow] = [
            BagWindow(self, i, schemas[i], keys[i], needed[i])
            if bags[i]
            else IndexedWindow(self, i, schemas[i], keys[i], None if marked is None else marked[i], needed[i])
            for i in range(n)
        ]
        self._rings = [window for window in self.windows if isinstance(window, IndexedWindow)]
        self.renumberings = 0

    @classmethod
    def by_columns(cls, schema: Schema, columns: Sequence[int], needed: Iterable[int], is_bag: bool) -> WindowIndex:
        """Of one input whose rows are found by these columns together: its last key, where they are several behind
        one of each, which no bucket has (`kernels.key_probing`).
        """
        keys: list[Key] = [(c,) for c in columns]
        index = cls([schema], [keys if len(keys) == 1 else [*keys, tuple(columns)]], None, [needed], bags=[is_bag])
        index.keys["is_linked"][:-1] = 0
        return index

    @property
    def nbytes(self) -> int:
        """Bytes of the index."""
        arrays = (self.nodes, self.heads, self.marks, self.runs, self.places, self.pipelines)
        return sum(array.nbytes for array in arrays)

    @property
    def bundle(self) -> Windows:
        """All of it, as the kernels take it, which are called before anything of it or of a store is replaced."""
        if self.has_ranges:
            self._place_instants()
        return self._bundled

    def _place_instants(self) -> None:
        for window in self._rings:
            store = window._store
            if store is not None and (store.table is None or store.table is not window._placed):
                window.place()

    @property
    def claimed_nbytes(self) -> int:
        """Bytes of streams' stores that would be given up without these windows."""
        claims: dict[int, tuple[StreamStore, list[Reader]]] = {}
        for window in self.windows:
            if isinstance(window, IndexedWindow) and window.refers:
                assert window.store is not None and window.reader is not None
                claims.setdefault(id(window.store), (window.store, []))[1].append(window.reader)
        return sum(store.claimed_by(readers) * store.row_nbytes for store, readers in claims.values())

    def admit(self, batches: Sequence[Batch | None]) -> None:
        """Take in the inputs' elements: rows into slots, and when they enter and leave into runs."""
        if self._in_order:
            self._fit_cells(batches)
        total = sum([len(batch.ts) for batch in batches if batch is not None])
        if total > len(self.runs) or len(self.runs) > max(_MANY_RUNS, total * 16):
            self.runs = rows_of(InstantRun, max(_LEAST_CAPACITY, total))
            self.places = self.places[:0]
            self._bundle()
        if self._has_bags and len(self.places) < len(self.runs):
            self.places = np.zeros(len(self.runs), np.int64)
            self._bundle()
        rows = self._crowded(batches)
        at = first = 0
        for i, (window, batch, line) in enumerate(zip(self.windows, batches, self.records)):
            line.run = line.runs_end = at
            n = 0 if batch is None else len(batch.ts)
            if isinstance(window, BagWindow):
                if batch is not None:
                    window.admit(batch, first)
                line.hi = first  # after it has been admitted: a bag that shrinks forgets its figures
                first += n
            elif batch is not None:
                most = window.admit(batch)
                if i in rows:
                    rows[i] = most
            at = line.runs_end
        if rows:
            self._fit_crowded(rows)
            for i in rows:
                self._spare[i] -= len(batches[i])  # type: ignore[arg-type]  # they wait behind the slots of the input
        if self._has_wild:
            self.give_up_cells(batches)

    def arrive(self, batches: Sequence[Batch | None], ways: int = 1) -> None:
        """Take in the elements of streams with ranges, in so many threads where nothing but words is taken of them."""
        if self._in_order:
            self._fit_cells(batches)
        rows = self._crowded(batches)
        if ways > 1:
            self._enter_in_ranges(batches, ways, rows)
        else:
            for i, batch in enumerate(batches):
                if batch is not None:
                    window = self._rings[i]
                    most = window.enter(*window.arriving(batch), 0, len(batch.ts))
                    if rows and i in rows:
                        rows[i] = most
        if rows:
            self._fit_crowded(rows)
        if self._has_wild:
            self.give_up_cells(batches)

    def _crowded(self, batches: Sequence[Batch | None]) -> dict[int, int]:
        """The inputs, but bags, that may have to `fit` what comes, for which there is room now."""
        rows: dict[int, int] = {}
        for i, batch in enumerate(batches):
            if batch is not None and not self.windows[i].is_bag:
                self._spare[i] -= len(batch.ts)
                if self._spare[i] < 0:
                    rows[i] = len(batch.ts) if batch.sign is None else int(np.count_nonzero(batch.sign > 0))
        if rows:
            self.reserve(rows)
        return rows

    def _fit_crowded(self, rows: Mapping[int, int]) -> None:
        """`fit` these inputs, and note how many rows may come before they are crowded again."""
        self.fit(rows)
        for i in rows:
            self._spare[i] = self._unchecked(i)

    def _enter_in_ranges(self, batches: Sequence[Batch | None], ways: int, rows: dict[int, int]) -> None:
        """Let them come, and note the most rows that each of the inputs in `rows` holds at once."""
        coming = [(i, self._rings[i], *self._rings[i].arriving(b)) for i, b in enumerate(batches) if b is not None]
        if not all(window.enters_in_ranges for _, window, _, _ in coming):
            ways = 1

        def enter(k: int) -> list[int]:
            return [
                window.enter(seq, ts, len(ts) * k // ways, len(ts) * (k + 1) // ways) for _, window, seq, ts in coming
            ]

        most = [max(each) for each in zip(*side_by_side(enter, ways))]
        rows.update((i, count) for (i, *_), count in zip(coming, most) if i in rows)

    # ------------------------------------------------------------------------------------------------------ keys

    def take_keys(self, i: int, slots: Slots, which: Iterable[int]) -> None:
        """Write these of the keys of input i, by their numbers, into the slots, from the rows that stand in them."""
        keys, first = self.windows[i].keys, self.records[i].key
        for k in which if len(slots) else ():
            method_of(keys[k]).fill(self, i, first + k, keys[k], slots)

    def write_words(self, i: int, x: int, column: int, slots: Slots) -> None:
        self.windows[i].write_words(x, self.column_of(i, column), slots)

    def place_of(self, i: int, x: int) -> tuple[int, int]:
        return self.keys["nodes"].item(x), self.records[i].mask

    def parts_of(self, i: int, key: Key) -> Int64Array:
        first, keys = self.records[i].key, self.windows[i].keys
        return np.array([self.keys["nodes"][first + keys.index((c,))] for c in key], np.int64)

    # ----------------------------------------------------------------------------------------------------- cells

    def column_of(self, i: int, c: int) -> int:
        """The column of input i that a key's column stands for: of a negative one, that of its cells."""
        return c if c >= 0 else self._cells[i, c].column

    def columns_of(self, i: int, keys: Sequence[Key]) -> set[int]:
        """The columns of input i that its keys are made of."""
        return {self.column_of(i, c) for key in keys for c in key}

    def take_cells(self, i: int, x: int, c: int, slots: Int64Array) -> None:
        base, mask = self.place_of(i, x)
        if not self.has_cells:
            at = base + 2 * (slots & mask)
            self.nodes[at], self.nodes[at + 1] = 0, (self.nodes[at + 1] & ~LOWER) | WAITING
        elif self._cells[i, c].take(self.nodes, base, mask, slots):
            self._has_wild = True

    def give_up_cells(self, waiting: Sequence[Batch | None] = ()) -> None:
        """Put all rows into one cell, for good, once there was a value that cells do not know: all pairs are met, those
        with NULLs too, beside which a sum may fail.  waiting: of each input what has been taken in, and not joined.
        """
        if not self._has_wild:
            return
        self._has_wild = self.has_cells = False
        self.keys["last_cell"] = 0
        self._place_buckets()
        for i, (window, batch) in enumerate(zip(self.windows, waiting or [None] * len(self.windows))):
            held, coming = window.held(batch)
            for slots in (held, coming):
                self.take_keys(i, slots, range(len(window.keys)))
            self.relink(i, held)

    def _relink_all(self) -> None:
        self._place_buckets()
        for j in range(len(self.windows)):
            self.relink(j)

    def _fit_cells(self, batches: Sequence[Batch | None]) -> None:
        """Let cells in order follow the rows held, and those that come, once as many came as were held before. Nothing
        waits.  O(rows).
        """
        self._came += sum(len(batch) for batch in batches if batch is not None)
        if self._came < self._fits_at or not self.has_cells:
            return
        values: dict[int, list[AnyArray]] = {}
        rows: dict[int, int] = {}
        for (i, _), cells in self._in_order.items():
            rows[id(cells.order)] = rows.get(id(cells.order), 0) + self._held_with(i, batches[i])
        if not any(cells.order.last or rows[id(cells.order)] >= LEAST_DIVIDED for cells in self._in_order.values()):
            # They are one cell, and stay it.
            self._fits_at = self._came + elements_until_fit(sum(map(len, self.windows)))
            return
        for (i, _), cells in self._in_order.items():
            slots, batch, of = self.windows[i].sample(SAMPLED), batches[i], values.setdefault(id(cells.order), [])
            if len(slots):
                of.append(cells.values(self.windows[i].gather([cells.column], slots)[0]))
            if batch is not None:
                of.append(cells.values(batch.column(cells.column)))
        for (i, c), cells in self._in_order.items():
            if id(cells.order) in values:
                cells.order.fit(values.pop(id(cells.order)), rows[id(cells.order)])
            k = self.windows[i].keys.index((c,))
            self.keys["last_cell"][self.records[i].key + k] = cells.order.last
            self.take_keys(i, self.windows[i].present(), range(k, k + 1))
        self._fits_at = self._came + elements_until_fit(sum(map(len, self.windows)))
        self._relink_all()

    def _held_with(self, i: int, batch: Batch | None) -> int:
        """About how many rows an input holds at a time while a batch comes into it."""
        held = len(self.windows[i])
        if batch is None:
            return held
        came, length = len(batch), self.records[i].length
        if batch.sign is not None:
            came = int(batch.sign.sum(dtype=np.int64))
        elif self.has_ranges and length != NO_RANGE:
            came -= int(batch.ts.searchsorted(batch.ts[-1] - min(length, int(batch.ts[-1] - batch.ts[0]) + 1), "right"))
        return max(held, held + came)

    # -------------------------------------------------------------------------------------------------- arrivals

    def show(self, shown: Iterable[tuple[int, int]]) -> None:
        """Note which columns, by (input, column), are those that the answer shows, or equal to one."""
        for i, c in shown:
            first = self.records[i].key
            if (c,) in self.windows[i].keys:
                self.keys["is_shown"][first + self.windows[i].keys.index((c,))] = 1

    def expire(self, until: int, is_placed: bool = False) -> None:
        """Let go the rows whose range has passed at `until`. is_placed: stores are as when the bundle was asked for."""
        if not is_placed:
            self._place_instants()
        arrivals.expire(self.nodes, self.inputs, until)

    def reserve(self, counts: Mapping[int, int]) -> None:
        """Room for more slots of these inputs, in an index neither crowded nor mostly empty."""
        changed: dict[int, int] = {}
        for i, count in counts.items():
            hi = self.records[i].hi
            if hi + count - self._emptied[i] > _MOST_ARRIVALS:
                self._empty_buckets(i)
                self.relink(i)
            needed = hi - self.records[i].lo + count
            capacity = self._capacities[i]
            # Only what has been too large for a while shrinks: the last part of a large push may be small.
            self._roomy[i] = self._roomy[i] + 1 if capacity > 1024 and needed * 8 < capacity else 0
            if needed > capacity or self._roomy[i] > _PARTS_BEFORE_SHRINKING:
                changed[i] = max(_LEAST_CAPACITY, 1 << (needed - 1).bit_length())
        if changed:
            self._resize(changed)

    def room(self, i: int) -> int:
        """Slots of an input that hold no row: more may not come before there is a larger ring."""
        return self._capacities[i] - len(self.windows[i])

    def _unchecked(self, i: int) -> int:
        """Rows that may come into an input, however many leave, before there is anything to `reserve` or to `fit`."""
        capacity, buckets = self._capacities[i], self._buckets[i]
        held = max(self.records[i].hi, self.records[i].stop) - self.records[i].lo
        may_shrink = held * 8 < max(capacity, buckets) > 1024
        most = 3 * buckets // (8 if buckets < 4 * _FEW_ROWS else 2)
        return 0 if may_shrink else min(capacity - held, most - 1 - held, _MOST_UNCHECKED)

    def fit(self, rows: Mapping[int, int]) -> None:
        """Buckets for as many rows of these inputs as are held at once: fewer than slots, so that they stay in the
        cache.
        """
        has_changed = False
        for i, count in rows.items():
            wanted, buckets = 4 * count if count < _FEW_ROWS else max(count, 4 * _FEW_ROWS), self._buckets[i]
            if 2 * wanted // 3 >= buckets or (buckets > 1024 and wanted * 8 < buckets):
                self._buckets[i] = max(_LEAST_CAPACITY, 1 << (2 * wanted // 3).bit_length())  # 2/3 to 4/3 of it
                has_changed = True
        if has_changed:
            self._relink_all()

    def link_patterns(self, patterns: Sequence[Sequence[Key] | Bits]) -> None:
        """Index these patterns of each input beside its keys, or its bits instead, and no others, from now on; () for
        none of any. Where there are bits already, rows keep the addresses they have.

        Nothing waits: the slots of all elements are joined.  O(rows).
        """
        old_keys, nodes = self.keys.copy(), self.nodes
        had_bits = [bool(each) for each in self.configurations]
        for i, window in enumerate(self.windows):
            wanted = patterns[i] if patterns else ()
            self._configure(i, wanted if isinstance(wanted, Bits) else None)
            window.keys = (*self._linked[i], *((ADDRESS,) if isinstance(wanted, Bits) else with_cells(wanted)))
            window.forget_keys()
            self.records[i].keys_end = self.records[i].key + len(window.keys)
        self._note_linked([window.keys for window in self.windows])
        self._place(keeps_rows=True)
        for i, window in enumerate(self.windows):
            capacity, first = self._capacities[i], self.records[i].key
            keeps_addresses = had_bits[i] and window.keys[-1:] == (ADDRESS,)
            for x in range(first, first + len(self._linked[i]) + keeps_addresses):
                at, before = self.keys["nodes"][x], old_keys["nodes"][x]
                self.nodes[at : at + 2 * capacity] = nodes[before : before + 2 * capacity]
            # Of a row that a NULL kept out of cells no link tells which key it was.
            held, first_new = (window.held(None)[0], 0) if self._cells else (window.present(), len(self._linked[i]))
            if not keeps_addresses:
                self.take_keys(i, held, range(first_new, len(window.keys)))
            self.relink(i, held)
            if len(self.configurations[i]) > MOST_CONFIGURATIONS:
                self.migrate(i, [number for number, _ in self.configurations[i]])
        self.give_up_cells()

    def _note_linked(self, keys: Sequence[Sequence[Key]]) -> None:
        """Which of these keys have buckets: beside an address none, and no cells that others are made of."""
        for i, each in enumerate(keys):
            parts = {(c,) for key in each if len(key) > 1 for c in key if c < 0}
            for x, key in enumerate(each, self.records[i].key):
                self.keys["is_linked"][x] = key == ADDRESS or (ADDRESS not in each and key not in parts)

    # ------------------------------------------------------------------------------------------------- addresses

    def _configure(self, i: int, bits: Bits | None) -> None:
        """Store the rows of input i that come from now on under this configuration."""
        known = self.configurations[i]
        if bits is None:
            known.clear()
        elif not known or known[0][1] != bits:
            known.insert(0, (self._next_number, bits))
            self._next_number = (self._next_number + 1) % NUMBERS

    def newest_configuration(self, i: int) -> tuple[int, Int64Array]:
        (number, bits), first = self.configurations[i][0], self.records[i].key
        columns = [x for x, key in enumerate(self.windows[i].keys, first) if len(key) == 1 and key != ADDRESS]
        parts = [(self.keys["nodes"][columns[c]], 64 - count, place) for c, place, count in bits.places()]
        return number, np.array(parts, np.int64).reshape(-1, 3)

    def partitions(self, i: int) -> dict[int, int]:
        """Of an input that has bits, how many rows each configuration has, by its number."""
        slots = self.windows[i].present()
        base = int(self.keys["nodes"][self.records[i].keys_end - 1])
        numbers, counts = np.unique(
            self.nodes[base + 2 * (slots & self.records[i].mask)] >> CONFIGURATION, return_counts=True
        )
        return dict(zip(numbers.tolist(), counts.tolist()))

    def migrate(self, i: int, numbers: Iterable[int]) -> None:
        """Store the rows of these configurations under the newest, and forget those that no row has.

        Nothing waits.  O(rows).
        """
        slots = self.windows[i].present()
        at = int(self.keys["nodes"][self.records[i].keys_end - 1]) + 2 * (slots & self.records[i].mask)
        own = self.nodes[at] >> CONFIGURATION
        newest = self.configurations[i][0][0]
        moved = slots[np.isin(own, list(numbers)) & (own != newest)]
        left = (set(own.tolist()) - set(numbers)) | {newest}
        self.configurations[i] = [each for each in self.configurations[i] if each[0] in left]
        if len(moved):
            self._empty_buckets(i)
            self.take_keys(i, moved, [len(self.windows[i].keys) - 1])
            self.relink(i)

    def _empty_buckets(self, i: int) -> None:
        for x in range(self.records[i].key, self.records[i].keys_end):
            if self.keys["is_linked"][x]:
                self.heads[self.keys["heads"][x] : self.keys["heads"][x] + self._buckets[i]] = self._below(i)
        self._emptied[i] = self.records[i].hi
        self._spare[i] = 0

    def _below(self, i: int) -> int:
        """What an empty bucket of input i has for a head: the slot below all that may be met, as far as 32 bits go."""
        lo = 0 if self.records[i].is_bag else self.records[i].lo
        return (lo - 1 + 2**31) % 2**32 - 2**31

    # ---------------------------------------------------------------------------------------------------- layout

    def set_capacity(self, i: int, slots: int) -> None:
        """Room for so many slots of a bag, and buckets for as many rows."""
        self._buckets[i] = slots
        self._resize({i: slots})
        self._relink_all()

    def link_bag(self, i: int, slots: Int64Array) -> None:
        """Put slots of a bag, whose keys are written, into its buckets."""
        kernels.relink_bag(self.bundle, i, slots)

    def clear(self, i: int) -> None:
        """Forget an input's slots."""
        of = self.records[i]
        of.lo = of.hi = of.stop = of.linked = of.has_nulls = 0
        of.leaves = MAX_INSTANT
        if self.windows[i].is_bag:
            for x in range(self.records[i].key, self.records[i].keys_end):
                at = self.keys["nodes"][x]
                self.nodes[at : at + 2 * self._capacities[i]] = UNLINKED
        self._empty_buckets(i)

    def relink(self, i: int, slots: Slots | None = None) -> None:
        """Fill an input's buckets, which are empty. slots: of a bag, where others are to stand there."""
        if self.windows[i].is_bag:
            self.link_bag(i, self.windows[i].present() if slots is None else array_of(slots))
        else:
            kernels.link(self.bundle, i, self.records[i].lo)

    def _place(self, keeps_rows: bool = False) -> None:
        """Lay out empty arrays for the capacities and the buckets. keeps_rows: marks stay."""
        self._place_nodes(keeps_rows)
        self._place_buckets()

    def _place_nodes(self, keeps_rows: bool = False) -> None:
        nodes = marks = 0
        for i, capacity in enumerate(self._capacities):
            self.records[i].mask = capacity - 1
            self.records[i].marks, self.records[i].nodes = marks, nodes
            marks += capacity if self._has_marks else 0
            for x in range(self.records[i].key, self.records[i].keys_end):
                self.keys["nodes"][x] = nodes
                nodes += 2 * capacity
        self.nodes: Int64Array = np.zeros(nodes, np.int64)
        if not keeps_rows:
            self.marks: Int16Array = np.zeros(marks, np.int16)

    def _place_buckets(self) -> None:
        heads = 0
        for i, buckets in enumerate(self._buckets):
            for x in range(self.records[i].key, self.records[i].keys_end):
                self.keys["heads"][x] = heads
                self.keys["shift"][x] = 65 - buckets.bit_length()
                heads += buckets if self.keys["is_linked"][x] else 0
        self.heads: Int32Array = np.empty(heads, np.int32)
        for i in range(len(self._buckets)):
            self._empty_buckets(i)
        self._bundle()

    def _bundle(self) -> None:
        """Some arrays are others."""
        chains = self.inputs, self.keys, self.nodes, self.heads
        self._bundled = Windows(*chains, self.places, self.marks, self.runs)

    def go_on(self, inputs: Rows[JoinInput], heads: Int32Array) -> None:
        """Be where somebody has come with inputs and heads of his own, and keep these heads."""
        self.inputs[:] = inputs
        self.heads = heads
        self._bundle()

    def _resize(self, capacities: Mapping[int, int]) -> None:
        """Give these inputs' slots other capacities; each keeps its number, so heads and links stay as they are."""
        old_inputs, old_keys, nodes = self.inputs.copy(), self.keys.copy(), self.nodes
        marks = self.marks
        for i, capacity in capacities.items():
            self._capacities[i] = capacity
        self._place_nodes()
        self._bundle()
        for j, window in enumerate(self.windows):
            # What other inputs have written for the slots to come moves too.
            mask, new_mask = int(old_inputs["mask"][j]), self.records[j].mask
            if window.is_bag:
                first, end = 0, min(mask, new_mask) + 1
            else:
                first = self.records[j].lo
                end = self.records[j].hi if j in capacities else first + mask + 1
            pieces = [(slot & mask, slot & new_mask, n) for slot, n in _pieces(first, end, min(mask, new_mask))]
            if self._has_marks:
                _move(self.marks, self.records[j].marks, marks, old_inputs["marks"][j], pieces)
            for x in range(self.records[j].key, self.records[j].keys_end):
                pairs = [(2 * old, 2 * new, 2 * n) for old, new, n in pieces]
                _move(self.nodes, self.keys["nodes"][x], nodes, old_keys["nodes"][x], pairs)


def _pieces(first: int, end: int, mask: int) -> Iterator[tuple[int, int]]:
    """The slots [first, end), cut where a ring of that mask begins anew: the first of each piece, and how many."""
    while first < end:
        stop = min(end, (first | mask) + 1)
        yield first, stop - first
        first = stop


def _move(target: AnyArray, to: int, source: AnyArray, of: int, pieces: Sequence[tuple[int, int, int]]) -> None:
    """Copy pieces, (old place, new place, how many) each, from behind `of` to behind `to`."""
    for old, new, n in pieces:
        target[to + new : to + new + n] = source[of + old : of + old + n]
