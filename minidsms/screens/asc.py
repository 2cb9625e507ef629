"""Attribute selection constructs: per column the regions into which constants divide it, and whom each admits.

Of m cuts between a column's values there are m + 1 regions, and one more, the first, for NULL. Each has a bitmap of the
filters that it cannot refute; a filter that does not use the column stands in all of them. The paper gives a constant a
region of its own even where both its neighbours admit the same; here regions are divided only where a filter asks
for it.

Invariant: bit j of a region's bitmap is set exactly if the values of the region are in filter j's box.
Lee and Lee 2012, definition 1 and section 4.1.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from minidsms.dictionary import TextDictionary
from minidsms.elements import Batch, BoolArray, Column, Int64Array, Type
from minidsms.kernels.screening import BASE, COUNT, DIRECT, GIVEN, KIND, PLACE, REGION, SEARCHED, SPAN, set_bits
from minidsms.screens.box import Box, Cut, Run, Values, float_keys

DENSE = 2**16
"""Values between the first and the last cut of a column for which there is a table."""
_MOST = 2**63 - 1


class Regions:
    """The regions of one column. cuts: ascending, without those that no value can pass."""

    def __init__(self, column: int, type_: Type, cuts: Sequence[Cut]) -> None:
        self.column = column
        self.type = type_
        self.cuts = list(cuts)
        self._number = {cut: i for i, cut in enumerate(self.cuts)}
        self._of_code = np.zeros(0, np.int64)
        self._generation = -1

    def __len__(self) -> int:
        return len(self.cuts) + 2

    def runs(self, values: Values) -> list[tuple[int, int]]:
        """The regions that make up a set of values, as (first, last)."""
        found = [(0, 0)] if values.has_null else []
        for low, high in values.runs:
            first = 1 if low is None else self._number.get(low, len(self.cuts)) + 2
            last = len(self) - 1 if high is None or high not in self._number else self._number[high] + 1
            if first <= last:
                found.append((first, last))
        return found

    def keys(self, column: Column, dictionary: TextDictionary) -> Int64Array:
        """What the kernel is given for a column's values: numbers in the order of the cuts; of TEXT the regions."""
        if self.type is Type.FLOAT:
            return float_keys(np.ascontiguousarray(column.values, np.float64))
        if self.type is not Type.TEXT:
            return column.values.astype(np.int64, copy=False)
        codes: Int64Array = column.values  # type: ignore[assignment]
        if self._generation != dictionary.generation or dictionary.capacity > len(self._of_code):
            known = self._of_code if self._generation == dictionary.generation else self._of_code[:0]
            self._of_code = np.full(dictionary.capacity + dictionary.capacity // 8, -1, np.int64)
            self._of_code[: len(known)] = known
            self._of_code[0] = 0
            self._generation = dictionary.generation
        regions = self._of_code[codes]
        if len(regions) and regions.min() < 0:
            for code in np.unique(codes[regions < 0]).tolist():
                self._of_code[code] = 1 + bisect_right(self.cuts, (dictionary.text(code), False))
            regions = self._of_code[codes]
        return regions


class Constructs:
    """The ASCs of a set of boxes, as arrays for the kernel. places: by box, its bit in the bitmaps.

    columns: of the producer, those that some box asks something of, in ascending order; here they are numbered from 0.
    qub: (p, words) uint64, which filters use a column.  bits: (regions, words), all columns one after the other.
    has_homes: the boxes stand by the column that admits least of each, their home, and there in the order of its
    regions, so that those which a region of the home column admits stand together. near: (regions, 2) then, the words
    from and up to which they do, of the boxes at home in the region's column.
    """

    def __init__(self, boxes: Sequence[Box], types: Sequence[Type], has_homes: bool = False) -> None:
        used: dict[int, list[tuple[int, Values]]] = {}
        for j, box in enumerate(boxes):
            for column, values in box.columns:
                used.setdefault(column, []).append((j, values))
        self.columns = sorted(used)
        self.regions = [Regions(c, types[c], _cuts([values for _, values in used[c]])) for c in self.columns]
        self.first = np.concatenate([[0], np.cumsum([len(r) for r in self.regions])]).astype(np.int64)
        self.places = np.arange(len(boxes), dtype=np.int64)
        homes = self._settle(boxes) if has_homes else []
        words = int(self.places.max()) // 64 + 1
        self.everybody = bitmap(self.places.tolist(), 64 * words)
        self.qub = np.zeros((len(self.columns), words), np.uint64)
        self.bits = np.zeros((int(self.first[-1]), words), np.uint64)
        for number, column in enumerate(self.columns):
            self._fill(number, used[column])
        self.near = self._near(homes)
        self.arrays = (*self._places(), self.bits)

    @property
    def nbytes(self) -> int:
        """Bytes of tables and bitmaps."""
        return sum(array.nbytes for array in self.arrays) + self.qub.nbytes + self.near.nbytes

    def _fill(self, number: int, asked: Sequence[tuple[int, Values]]) -> None:
        """The bitmaps of a column."""
        regions = self.regions[number]
        users = self.places[[j for j, _ in asked]]
        self.qub[number] = bitmap(users.tolist(), 64 * len(self.everybody))
        bits = self.bits[self.first[number] : self.first[number + 1]]
        bits[:] = self.everybody & ~self.qub[number]
        runs = [(self.places[j], first, last) for j, values in asked for first, last in regions.runs(values)]
        if runs:
            table = np.ascontiguousarray(np.array(runs, np.int64).T)
            set_bits(bits, table[0], table[1], table[2])

    def _settle(self, boxes: Sequence[Box]) -> list[tuple[int, int]]:
        """Give every box its place by its home; of each column the words of those at home there, (from, up to)."""
        number = {column: i for i, column in enumerate(self.columns)}
        at_home: list[list[tuple[int, int]]] = [[] for _ in self.columns]
        for j, box in enumerate(boxes):
            runs = {number[column]: self.regions[number[column]].runs(values) for column, values in box.columns}
            home = min(runs, key=lambda c: sum(1 + b - a for a, b in runs[c]) / len(self.regions[c]))
            at_home[home].append((runs[home][0][0] if runs[home] else 0, j))
        homes = []
        word = 0
        for found in at_home:
            found.sort()
            self.places[[j for _, j in found]] = 64 * word + np.arange(len(found))
            homes.append((word, word + (len(found) + 63) // 64))
            word = homes[-1][1]
        return homes

    def _near(self, homes: Sequence[tuple[int, int]]) -> Int64Array:
        near = np.zeros((len(self.bits), 2), np.int64)
        for number, (first, last) in enumerate(homes):
            regions = slice(int(self.first[number]), int(self.first[number + 1]))
            some = self.bits[regions, first:last] != 0
            if last > first:
                there = some.any(axis=1)
                near[regions, 0] = np.where(there, first + some.argmax(axis=1), 0)
                near[regions, 1] = np.where(there, last - some[:, ::-1].argmax(axis=1), 0)
        return near

    def _places(self) -> tuple[Int64Array, np.ndarray, Int64Array]:
        columns = np.zeros((len(self.columns), 6), np.int64)
        tables: list[np.ndarray] = []
        edges: list[np.ndarray] = []
        table_at = edge_at = 0
        for number, regions in enumerate(self.regions):
            line = columns[number]
            line[REGION] = self.first[number]
            if regions.type is Type.TEXT or not regions.cuts:
                line[KIND] = GIVEN
                continue
            cuts = np.array(regions.cuts, np.int64)
            span = int(cuts[-1]) - int(cuts[0]) + 1
            if span < DENSE and int(cuts[0]) > -_MOST:
                line[KIND], line[BASE], line[SPAN], line[PLACE] = DIRECT, cuts[0] - 1, span, table_at
                tables.append(1 + np.searchsorted(cuts - line[BASE], np.arange(span + 1), side="right"))
                table_at += span + 1
            else:
                line[KIND], line[PLACE], line[COUNT] = SEARCHED, edge_at, len(cuts)
                edges.append(cuts)
                edge_at += len(cuts)
        direct = np.concatenate(tables).astype(np.int32) if tables else np.zeros(1, np.int32)
        return columns, direct, np.concatenate(edges) if edges else np.zeros(1, np.int64)

    def keys(self, batch: Batch, dictionary: TextDictionary) -> tuple[Int64Array, BoolArray]:
        """(keys, whether they are not NULL), both (p, n), of a batch of the producer's."""
        n = len(batch)
        keys = np.empty((len(self.columns), n), np.int64)
        present = np.ones((len(self.columns), n), np.bool_)
        for number, regions in enumerate(self.regions):
            values = batch.column(regions.column)
            if regions.cuts or regions.type is Type.TEXT:
                keys[number] = regions.keys(values, dictionary)
            else:
                keys[number] = 1
            if values.valid is not None:
                present[number] = values.valid
        return keys, present


def bitmap(filters: Sequence[int], size: int) -> np.ndarray:
    """(words,) uint64 with the bits of these filters set."""
    flags = np.zeros((size + 63) // 64 * 64, np.bool_)
    flags[list(filters)] = True
    return np.packbits(flags, bitorder="little").view(np.uint64)


def _cuts(sets: Sequence[Values]) -> list[Cut]:
    """Where sets of values begin and end, ascending; no value is behind a cut above all 64-bit numbers."""
    found = {cut for values in sets for run in values.runs for cut in run if cut is not None}
    return sorted(cut for cut in found if not isinstance(cut, int) or cut <= _MOST)


__all__ = ["Constructs", "Regions", "Run", "bitmap"]
