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
from minidsms.kernels.screening import BLOCK, Lists, set_bits, set_packed, span_blocks, turn_to_rows
from minidsms.screens.asc import bitmap
from minidsms.screens.box import Box
from minidsms.screens.domains import Domains
from minidsms.screens.sequence import Homes

GROUPED_BYTES = 1 << 14
"""Bytes that a block of all groups' bitmaps may have: half of a first-level cache."""
_GROUPS = 16
"""Groups that a column has at least, if it has so many regions."""


class HomeLists:
    """What boxes ask of columns, and where each is at home (`homes`): at first by the regions that it asks.

    places: by box, its bit in the bitmaps.  size: bits.  arrays: for the kernel,

        homes    (p, 3): of those at home in a column the first block of BLOCK words, their blocks, and the words that
                 all groups have in a block of `bits`
        blocks   (number + 1, 2): the first region that admits some of a block's filters, its first word in `packed`
        packed   block by block, region by region, from the first that admits some of the block's filters to the last,
                 BLOCK words
        bits     home by home, block by block, group by group, a word for 64 filters at home
        tests    (size, 3 t): of each bit, for t columns other than its home, the column, the first and the last region
                 that it admits there
        starts   (size + 1,): of each bit, which lines of `asked` are its own
        asked    (m, 4): another column, of which it admits several runs of regions: the first and last region of one,
                 and how many such lines there are from here on
    """

    def __init__(self, boxes: Sequence[Box], domains: Domains) -> None:
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
        self.homes = self.best(np.ones(domains.size))
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
        blocks, packed = self._packed(self._asked[is_home])
        bits, lines = self._grouped()
        homes = np.full((len(self.columns), 3), BLOCK * lines, np.int64)
        homes[:, 0], homes[:, 1] = self._first_words // BLOCK, self._words // BLOCK
        self.arrays = Lists(homes, blocks, packed, bits, *self._compared(self._asked[~is_home]))

    def by_row(self, regions: Int32Array) -> tuple[Int32Array, Int32Array]:
        """(n, p) the regions, and the groups of regions by their first word in a block of `bits`. regions: (p, n)."""
        p, n = regions.shape
        found: tuple[Int32Array, Int32Array] = np.empty((n, p), np.int32), np.empty((n, p), np.int32)
        turn_to_rows(regions, self._groups, *found)
        return found

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
        lines, n = _lines(asked)
        first, last = (np.ascontiguousarray(self._runs[lines, i], np.int64) for i in (0, 1))
        return np.repeat(self.places[asked[:, 0]] - 64 * first_word, n), first, last, np.repeat(asked[:, 1], n)

    def _packed(self, home: Int64Array) -> tuple[Int64Array, np.ndarray]:
        """(blocks, packed): see `arrays`."""
        bits, first, last, _ = self._bits(home, np.zeros(len(home), np.int64))
        spans = np.tile(np.array([self.domains.size, -1], np.int64), (self.size // (64 * BLOCK), 1))
        span_blocks(spans, bits, first, last)
        blocks = np.zeros((len(spans) + 1, 2), np.int64)
        blocks[:-1, 0] = spans[:, 0]
        blocks[1:, 1] = BLOCK * np.cumsum(np.maximum(0, 1 + spans[:, 1] - spans[:, 0]))
        packed = np.zeros(max(1, int(blocks[-1, 1])), np.uint64)
        set_packed(blocks, packed, bits, first, last)
        return blocks, packed

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

    def _compared(self, asked: Int64Array) -> tuple[Int32Array, Int32Array, Int32Array]:
        """(tests, starts, asked) of what is not asked of homes; who admits nothing has a run that has no region."""
        asked = asked[np.argsort(self.places[asked[:, 0]], kind="stable")]
        bits, n = self.places[asked[:, 0]], asked[:, 3] - asked[:, 2]
        single = n < 2
        of = bits[single]
        which = np.arange(len(of)) - np.searchsorted(of, of)
        most = int(which.max(initial=-1)) + 1
        tests: Int32Array = np.tile(np.array([0, 0, self.domains.size], np.int32), (self.size, most, 1))
        tests[of, which] = 0, 1, 0
        tests[of, which, 0] = asked[single, 1]
        some = n[single] > 0
        tests[of[some], which[some], 1:] = self._runs[asked[single, 2][some]]
        several = asked[~single]
        lines, n = _lines(several)
        starts: Int32Array = np.zeros(self.size + 1, np.int32)
        np.cumsum(np.bincount(np.repeat(bits[~single], n), minlength=self.size), out=starts[1:])
        compared: Int32Array = np.empty((max(1, len(lines)), 4), np.int32)
        compared[: len(lines), 0] = np.repeat(several[:, 1], n)
        compared[: len(lines), 1:3] = self._runs[lines]
        compared[: len(lines), 3] = np.repeat(several[:, 3], n) - lines
        return tests.reshape(self.size, 3 * most), starts, compared


def _lines(asked: Int64Array) -> tuple[Int64Array, Int64Array]:
    """(the numbers of all runs that lines of what is asked are made of, how many each line has)."""
    n = asked[:, 3] - asked[:, 2]
    return np.repeat(asked[:, 2] - np.cumsum(n) + n, n) + np.arange(int(n.sum())), n
