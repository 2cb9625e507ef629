"""The domains of columns: per column the regions into which the constants of boxes divide it.

Of m cuts between a column's values there are m + 1 regions, and one more, the first, for NULL. The paper gives a
constant a region of its own even where both its neighbours admit the same; here regions are divided only where a
filter asks for it. Regions are numbered over all columns.  Lee and Lee 2012, section 4.1.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from minidsms.elements import Batch, BoolArray, Column, Int32Array, Int64Array, Type
from minidsms.kernels.screening import DIRECT, GIVEN, SEARCHED, ScreenedColumn, Tables, regions_of
from minidsms.machine_code import record_in, rows_of
from minidsms.screens.box import Box, Cut, Values, float_keys
from minidsms.values.dictionary import TextDictionary

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
        """The regions that make up a set of values, as (first, last), counted from the column's first; ascending."""
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


class Domains:
    """Those of the columns that some box asks something of, in ascending order; here they are numbered from 0.

    first: the number of each column's first region, and of all regions.  tables: as kernels find regions.
    """

    def __init__(self, boxes: Sequence[Box], types: Sequence[Type]) -> None:
        used: dict[int, list[Values]] = {}
        for box in boxes:
            for column, values in box.columns:
                used.setdefault(column, []).append(values)
        self.columns = sorted(used)
        self.regions = [Regions(c, types[c], _cuts(used[c])) for c in self.columns]
        self.first = np.concatenate([[0], np.cumsum([len(r) for r in self.regions])]).astype(np.int64)
        self.tables = self._tables()

    @property
    def size(self) -> int:
        """Regions of all columns."""
        return int(self.first[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of tables."""
        return sum(array.nbytes for array in self.tables)

    def _tables(self) -> Tables:
        columns = rows_of(ScreenedColumn, len(self.columns))
        tables: list[np.ndarray] = []
        edges: list[np.ndarray] = []
        table_at = edge_at = 0
        for number, regions in enumerate(self.regions):
            line = record_in(ScreenedColumn, columns, number)
            line.region = self.first[number]
            if regions.type is Type.TEXT or not regions.cuts:
                line.kind = GIVEN
                continue
            cuts = np.array(regions.cuts, np.int64)
            span = int(cuts[-1]) - int(cuts[0]) + 1
            if span < DENSE and int(cuts[0]) > -_MOST:
                line.kind, line.least, line.span, line.place = DIRECT, int(cuts[0]) - 1, span, table_at
                tables.append(1 + np.searchsorted(cuts - line.least, np.arange(span + 1), side="right"))
                table_at += span + 1
            else:
                line.kind, line.place, line.count = SEARCHED, edge_at, len(cuts)
                edges.append(cuts)
                edge_at += len(cuts)
        direct = np.concatenate(tables).astype(np.int32) if tables else np.zeros(1, np.int32)
        return Tables(columns, direct, np.concatenate(edges) if edges else np.zeros(1, np.int64))

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

    def regions_of(self, keys: Int64Array, present: BoolArray) -> Int32Array:
        """(p, n) the regions of rows, numbered over all columns. keys, present: see `keys`."""
        found: Int32Array = np.empty(keys.shape, np.int32)
        regions_of(np.ascontiguousarray(keys), np.ascontiguousarray(present), self.tables, found)
        return found


def _cuts(sets: Sequence[Values]) -> list[Cut]:
    """Where sets of values begin and end, ascending; no value is behind a cut above all 64-bit numbers."""
    found = {cut for values in sets for run in values.runs for cut in run if cut is not None}
    return sorted(cut for cut in found if not isinstance(cut, int) or cut <= _MOST)
