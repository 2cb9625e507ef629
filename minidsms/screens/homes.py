"""Home lists: thousands of boxes, each standing by one of its columns, its home, with those that ask nearly the same.

Bitmaps of thousands of filters by every region would not stay in the cache, and no row is dropped early. So a region's
bitmap has only the words of those who are at home in its column and whom it admits: those are few, for boxes stand in
the order of their home's regions. In all other columns regions are put together into groups, so few that the bitmaps
of all stay in the cache: a group admits whom one of its regions admits. Whoever is left after all columns is compared
with what it asks of each.

Invariant: a row is found with the boxes that it lies in, wherever these are at home.  docs/sharing.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minidsms.elements import Int32Array, Int64Array
from minidsms.kernels.screening import BLOCK, set_bits, set_packed, span_blocks
from minidsms.screens.asc import bitmap
from minidsms.screens.box import Box
from minidsms.screens.domains import Domains
from minidsms.screens.sequence import Homes

GROUPED_BYTES = 1 << 14
"""Bytes that a block of all groups' bitmaps may have: half of a first-level cache."""
_GROUPS = 16
"""Groups that a column has at least, if it has so many regions."""


class HomeLists:
    """What boxes ask of columns, and where each is at home. homes: of each box; None: by the regions that it asks.

    places: by box, its bit in the bitmaps.  size: bits.  arrays: for the kernel,

        homes    (p, 3): of those at home in a column the first block of BLOCK words, their blocks, and the words that
                 all groups have in a block of `bits`
        blocks   (number + 1, 2): the first region that admits some of a block's filters, its first word in `packed`
        near     (regions, 2): which blocks of the home have filters that the region may admit: the first, and behind
                 the last one
        bits     home by home, block by block, group by group, a word for 64 filters at home
        starts   (size + 1,): of each bit, which lines of `asked` are its own
        asked    (m, 4): a column that is not its home, the first and last region of a run of what it admits there, and
                 how many such lines there are from here on
    """

    def __init__(self, boxes: Sequence[Box], domains: Domains, homes: Homes | None = None) -> None:
        self.domains = domains
        self.columns = domains.columns
        number = {column: i for i, column in enumerate(self.columns)}
        asked: list[tuple[int, int, int, int]] = []
        runs: list[tuple[int, int]] = []
        for j, box in enumerate(boxes):
            for column, values in box.columns:
                c = number[column]
                at = int(domains.first[c])
                found = [(at + first, at + last) for first, last in domains.regions[c].runs(values)]
                asked.append((j, c, len(runs), len(runs) + len(found)))
                runs += found
        self._asked = np.array(asked, np.int64).reshape(-1, 4)
        self._runs = np.array(runs, np.int32).reshape(-1, 2)
        self._boxes = len(boxes)
        self.homes = self.best(np.ones(domains.size)) if homes is None else homes
        self._settle()

    @property
    def nbytes(self) -> int:
        """Bytes of tables and bitmaps."""
        return self.domains.nbytes + sum(array.nbytes for array in self.arrays) + self._asked.nbytes

    # ------------------------------------------------------------------------------------------------------- homes

    def _shares(self, weights: np.ndarray) -> np.ndarray:
        """By what a box asks of a column: the share of the column's weight that it admits."""
        total = np.concatenate([[0.0], np.cumsum(weights)])
        of_run = total[self._runs[:, 1].astype(np.int64) + 1] - total[self._runs[:, 0]]
        admitted = np.concatenate([[0.0], np.cumsum(of_run)])
        first, column = self.domains.first, self._asked[:, 1]
        whole = total[first[1:]] - total[first[:-1]]
        shares: np.ndarray = (admitted[self._asked[:, 3]] - admitted[self._asked[:, 2]]) / whole[column]
        return shares

    def best(self, weights: np.ndarray) -> Homes:
        """Every box by the column of which it admits least. weights: of regions, more where more rows are."""
        order = np.lexsort((self._shares(weights), self._asked[:, 0]))
        _, least = np.unique(self._asked[order, 0], return_index=True)
        return Homes(tuple(self._asked[order[least], 1].tolist()))

    def candidates(self, homes: Homes, weights: np.ndarray) -> float:
        """Boxes that a row meets at their homes, on average over rows that lie in regions as their weights say."""
        return float(self._shares(weights)[self._at_home(homes)].sum())

    def is_legal(self, homes: object) -> bool:
        """Every box asks something of its home."""
        return isinstance(homes, Homes) and len(homes.of) == self._boxes == int(self._at_home(homes).sum())

    def columns_of(self, box: int) -> list[int]:
        """Where a box can be at home."""
        found: list[int] = self._asked[self._asked[:, 0] == box, 1].tolist()
        return found

    def _at_home(self, homes: Homes) -> np.ndarray:
        """Which lines of what is asked are those of homes."""
        found: np.ndarray = np.array(homes.of, np.int64)[self._asked[:, 0]] == self._asked[:, 1]
        return found

    def settle(self, homes: Homes) -> None:
        """Let boxes stand by these homes."""
        self.homes = homes
        self._settle()

    # ------------------------------------------------------------------------------------------------------ tables

    def _settle(self) -> None:
        is_home = self._at_home(self.homes)
        self._place(self._asked[is_home])
        blocks, near, packed = self._packed(self._asked[is_home])
        bits, lines = self._grouped()
        homes = np.full((len(self.columns), 3), BLOCK * lines, np.int64)
        homes[:, 0], homes[:, 1] = self._first_words // BLOCK, self._words // BLOCK
        self.arrays = homes, blocks, near, packed, bits, *self._compared(self._asked[~is_home])

    def groups_of(self, regions: Int32Array) -> Int32Array:
        """(p, n) the groups of regions."""
        first, shift, region = self._groups.T[:, :, None]
        groups: Int32Array = first + ((regions - region) >> shift)
        return groups

    def _place(self, home: Int64Array) -> None:
        """Give every box its bit: by column of its home, there by the first region it admits."""
        firsts = np.zeros(len(home), np.int64)
        some = home[:, 2] < home[:, 3]
        firsts[some] = self._runs[home[some, 2], 0]
        order = np.lexsort((firsts, home[:, 1]))
        members = np.bincount(home[:, 1], minlength=len(self.columns))
        self._words = (members + 64 * BLOCK - 1) // (64 * BLOCK) * BLOCK
        self._first_words = np.cumsum(self._words) - self._words
        column = home[order, 1]
        self.places = np.empty(self._boxes, np.int64)
        self.places[home[order, 0]] = (
            np.arange(len(home)) + (64 * self._first_words - np.cumsum(members) + members)[column]
        )
        self.size = 64 * int(self._words.sum())

    def _bits(self, asked: Int64Array, first_word: Int64Array) -> tuple[Int64Array, ...]:
        """(bit, first region, last region, column), a run of what is asked each. first_word: by what is asked, the one
        that bits are counted from.
        """
        n = asked[:, 3] - asked[:, 2]
        lines = np.repeat(asked[:, 2] - np.cumsum(n) + n, n) + np.arange(int(n.sum()))
        first, last = (np.ascontiguousarray(self._runs[lines, i], np.int64) for i in (0, 1))
        return np.repeat(self.places[asked[:, 0]] - 64 * first_word, n), first, last, np.repeat(asked[:, 1], n)

    def _packed(self, home: Int64Array) -> tuple[Int64Array, Int32Array, np.ndarray]:
        """(blocks, near, packed): see `arrays`."""
        bits, first, last, _ = self._bits(home, np.zeros(len(home), np.int64))
        column = np.repeat(np.arange(len(self.columns)), self._words // BLOCK)
        spans = np.tile(np.array([self.domains.size, -1], np.int64), (len(column), 1))
        span_blocks(spans, bits, first, last)
        number = np.arange(len(column)) - (self._first_words // BLOCK)[column]
        near: Int32Array = np.zeros((self.domains.size, 2), np.int32)
        near[:, 0] = len(column)
        for block, (low, high) in enumerate(spans.tolist()):
            near[low : high + 1, 0] = np.minimum(near[low : high + 1, 0], number[block])
            near[low : high + 1, 1] = np.maximum(near[low : high + 1, 1], number[block] + 1)
        blocks = np.zeros((len(column) + 1, 2), np.int64)
        for block, c in enumerate(column.tolist()):
            start, end = self.domains.first[c : c + 2]
            met = start + np.flatnonzero((near[start:end, 0] <= number[block]) & (near[start:end, 1] > number[block]))
            blocks[block, 0] = met[0] if len(met) else start
            blocks[block + 1, 1] = blocks[block, 1] + (BLOCK * (1 + met[-1] - met[0]) if len(met) else 0)
        packed = np.zeros(max(1, int(blocks[-1, 1])), np.uint64)
        set_packed(blocks, packed, bits, first, last)
        return blocks, near, packed

    def _grouped(self) -> tuple[np.ndarray, int]:
        """(bits, how many groups all columns have); sets of a column its first group, the shift that makes a region's
        number that of its group, and its first region.
        """
        most = max(_GROUPS, GROUPED_BYTES // (8 * BLOCK * len(self.columns)))
        groups = self._groups = np.zeros((len(self.columns), 3), np.int32)
        groups[:, 2] = self.domains.first[:-1]
        lines = 0
        for c, regions in enumerate(self.domains.regions):
            groups[c, :2] = lines, ((len(regions) - 1) // most).bit_length()
            lines += 1 + ((len(regions) - 1) >> int(groups[c, 1]))
        ends = [*groups[1:, 0].tolist(), lines]
        begins = lines * (np.cumsum(self._words) - self._words)
        all_bits = np.zeros(lines * int(self._words.sum()), np.uint64)
        home_of = np.array(self.homes.of, np.int64)[self._asked[:, 0]]
        for home, words in enumerate(self._words.tolist()):
            asked = self._asked[home_of == home]
            first_word = self._first_words[home]
            grouped = np.zeros((lines, words), np.uint64)
            everybody = bitmap(np.unique(self.places[asked[:, 0]] - 64 * first_word).tolist(), 64 * words)
            for c, end in enumerate(ends):
                users = self.places[asked[asked[:, 1] == c, 0]] - 64 * first_word
                grouped[groups[c, 0] : end] = everybody & ~bitmap(users.tolist(), 64 * words)
            bits, first, last, column = self._bits(asked, np.full(len(asked), first_word))
            base, shift, at = groups[column].astype(np.int64).T
            set_bits(grouped, bits, base + ((first - at) >> shift), base + ((last - at) >> shift))
            by_block = grouped.reshape(lines, -1, BLOCK).transpose(1, 0, 2)
            all_bits[begins[home] : begins[home] + lines * words] = by_block.ravel()
        return all_bits, lines

    def _compared(self, asked: Int64Array) -> tuple[np.ndarray, np.ndarray]:
        """(starts, asked) of what is not asked of homes, by bit; who admits nothing has a run that has no region."""
        asked = asked[np.argsort(self.places[asked[:, 0]], kind="stable")]
        n = asked[:, 3] - asked[:, 2]
        lines = np.maximum(n, 1)
        ends = np.cumsum(lines)
        which = np.arange(int(lines.sum())) - np.repeat(ends - lines, lines)
        compared = np.zeros((max(1, len(which)), 4), np.int32)
        compared[: len(which), 0] = np.repeat(asked[:, 1], lines)
        compared[: len(which), 1:3] = 1, 0
        some = np.flatnonzero(np.repeat(n > 0, lines))
        compared[some, 1:3] = self._runs[(np.repeat(asked[:, 2], lines) + which)[some]]
        compared[: len(which), 3] = np.repeat(lines, lines) - which
        counts = np.bincount(np.repeat(self.places[asked[:, 0]], lines), minlength=self.size)
        starts: np.ndarray = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return starts, compared
