"""Macro-sequences and hybrid-sequences, from rows seen lately.

A window has the regions in which rows lie, (p, rows), numbered over all columns; of a window everything is counted that
the paper's monitoring module counts in a period: evaluation instances that a sequence lets pass, and tuples that it
drops. The paper measures each step on other tuples; so a sequence is arranged from a series of windows, of which the
last serves all steps that are left.

Invariant: the same windows give the same sequence.  Lee and Lee 2012, sections 4.2 and 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence as Listed
from dataclasses import dataclass

import numpy as np

from minidsms.elements import BoolArray, Int32Array, Int64Array
from minidsms.screens.asc import Constructs
from minidsms.screens.sequence import Sequence

Window = Int32Array
Words = np.ndarray
"""(rows, words) uint64, a bitmap of filters per row."""


@dataclass(frozen=True)
class _Filters:
    """What arranging asks of constructs. qub: (p, words).  bits: (regions, words).  all: every filter's bit."""

    qub: Words
    bits: Words
    all: np.ndarray

    @classmethod
    def of(cls, constructs: Constructs) -> _Filters:
        return cls(constructs.qub, constructs.bits, constructs.everybody)

    def covers(self, columns: Listed[int]) -> bool:
        """The columns are a cover set: every filter uses one of them (definition 2)."""
        return bool((np.bitwise_or.reduce(self.qub[list(columns)], axis=0) == self.all).all()) if columns else False

    def alive(self, columns: Listed[int], window: Window) -> Words:
        """The GRB of every row after these columns."""
        grb = np.tile(self.all, (window.shape[1], 1))
        for column in columns:
            grb &= self.bits[window[column]]
        return grb


def ones(words: Words) -> Int64Array:
    """Bits set in each row."""
    counts: Int64Array = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return counts


def conditional_selectivity(constructs: Constructs, before: Listed[int], column: int, window: Window) -> float:
    """s(before -> column | before): of the filters that no column before uses, and the rows, the share of pairs that
    pass (definition 3).
    """
    filters = _Filters.of(constructs)
    covered = np.bitwise_or.reduce(filters.qub[list(before)], axis=0) if before else np.zeros_like(filters.all)
    uncovered = filters.all & ~covered
    passed = ones(filters.alive([*before, column], window) & uncovered).sum()
    pairs = int(np.bitwise_count(uncovered).sum()) * window.shape[1]
    return float(passed) / pairs if pairs else 1.0


def dropping_ratio(constructs: Constructs, columns: Listed[int], window: Window) -> float:
    """d(columns): the share of the rows that no filter wants (definition 4)."""
    wanted = _Filters.of(constructs).alive(columns, window).any(axis=1)
    return float(1 - np.mean(wanted)) if window.shape[1] else 0.0


def macro_sequence(constructs: Constructs, windows: Listed[Window]) -> Sequence:
    """The columns in one order for all rows: the least conditional selectivity first until they are a cover set, then
    the greatest dropping ratio, of equal ones the least selectivity (section 4.2.2).
    """
    filters = _Filters.of(constructs)
    order: list[int] = []
    left = list(range(len(constructs.columns)))
    own: dict[int, float] = {}
    period = 0
    while len(left) > 1:
        window = windows[min(period, len(windows) - 1)]
        period += 1
        if not filters.covers(order):
            measured = {c: conditional_selectivity(constructs, order, c, window) for c in left}
            own = own or measured
            best = min(left, key=lambda c: (measured[c], c))
        else:
            ratios = {c: dropping_ratio(constructs, [*order, c], window) for c in left}
            best = min(left, key=lambda c: (-ratios[c], own[c], c))
        order.append(best)
        left.remove(best)
    return Sequence((*order, *left))


def hybrid_sequence(constructs: Constructs, macro: Sequence, windows: Listed[Window], least: int = 1) -> Sequence:
    """A macro-sequence with arrows by region: after a region, the column that is better than the next of the macro
    for the rows that come there (section 4.3). least: rows on which an arrow must rest.
    """
    walk = _Walk(constructs, macro)
    for period in range(len(constructs.columns) - 1):
        walk.step(windows[min(period, len(windows) - 1)], period, least)
    return Sequence(macro.order, tuple(sorted(walk.arrows.items())))


class _Walk:
    """Rows on their way through a hybrid-sequence that is being found. arrows: by region."""

    def __init__(self, constructs: Constructs, macro: Sequence) -> None:
        self._constructs = constructs
        self._filters = _Filters.of(constructs)
        self._macro = macro
        self.arrows: dict[int, int] = {}
        self._decided: set[int] = set()

    def step(self, window: Window, length: int, least: int) -> None:
        """Decide on the arrows of the regions in which rows end that have passed length + 1 columns."""
        rows = np.arange(window.shape[1])
        column, looked, grb = self._after(window, length)
        there = grb.any(axis=1)
        rows, column, looked, grb = rows[there], column[there], looked[there], grb[there]
        if not len(rows):
            return
        at = window[column, rows]
        regions = len(self._filters.bits)
        following = self._following(looked)
        covered = self._covered(looked)
        n = np.bincount(at, minlength=regions)
        alive = np.bincount(at, ones(grb), regions)
        in_cover = np.bincount(at, covered, regions) > 0
        score = np.full((len(self._constructs.columns), regions), np.inf)
        of_macro = np.zeros(regions)
        for c in range(len(self._constructs.columns)):
            new = ~looked[:, c]
            left = grb & self._filters.bits[window[c, rows]]
            passed, dropped = ones(left), ~left.any(axis=1)
            possible = (np.bincount(at, new, regions) == n) & (n >= least) & self._may_follow(c)
            value = np.where(in_cover, -_share_of(at, dropped, n), _share_of(at, passed, alive))
            score[c] = np.where(possible, value, np.inf)
            is_macro = following == c
            by_selectivity = np.bincount(at, np.where(is_macro, passed, 0), regions)
            by_drops = np.bincount(at, is_macro & dropped, regions)
            of_macro += np.where(in_cover, -by_drops / np.maximum(n, 1), by_selectivity / np.maximum(alive, 1))
        best = score.argmin(axis=0)
        for region in np.unique(at).tolist():
            if region not in self._decided:
                self._decided.add(region)
                if score[best[region], region] < of_macro[region] - 1e-12:
                    self.arrows[region] = int(best[region])

    def _may_follow(self, column: int) -> BoolArray:
        """cab: regions behind which the column can refute a filter that is left (section 4.1)."""
        found: BoolArray = (self._filters.bits & self._filters.qub[column]).any(axis=1)
        return found

    def _covered(self, looked: BoolArray) -> BoolArray:
        """The columns that a row has passed are a cover set."""
        qub = np.where(looked[:, :, None], self._filters.qub[None], np.uint64(0))
        found: BoolArray = (np.bitwise_or.reduce(qub, axis=1) == self._filters.all).all(axis=1)
        return found

    def _following(self, looked: BoolArray) -> Int64Array:
        """The first column of the macro-sequence that a row has not passed, -1 for none."""
        order = np.array(self._macro.order)
        new = ~looked[:, order]
        return np.where(new.any(axis=1), order[new.argmax(axis=1)], -1)

    def _after(self, window: Window, length: int) -> tuple[Int64Array, BoolArray, Words]:
        """(the column last looked at, those looked at, GRB) of every row after so many steps by what is decided."""
        table = np.full(len(self._filters.bits), -1, np.int64)
        for region, to in self.arrows.items():
            table[region] = to
        n = window.shape[1]
        column = np.full(n, self._macro.order[0], np.int64)
        looked = np.zeros((n, len(self._constructs.columns)), np.bool_)
        rows = np.arange(n)
        looked[rows, column] = True
        grb = self._filters.all & self._filters.bits[window[column, rows]]
        for _ in range(length):
            arrow = table[window[column, rows]]
            usable = (arrow >= 0) & ~looked[rows, np.maximum(arrow, 0)]
            following = np.where(usable, arrow, self._following(looked))
            goes = (following >= 0) & grb.any(axis=1)
            column = np.where(goes, following, column)
            looked[rows, column] = True
            grb = grb & self._filters.bits[window[column, rows]]
        return column, looked, grb


def _share_of(at: Int32Array, values: np.ndarray, of: np.ndarray) -> np.ndarray:
    """By region the sum of values over what they are shares of."""
    shares: np.ndarray = np.bincount(at, values, len(of)) / np.maximum(of, 1)
    return shares


def looked_at(constructs: Constructs, sequence: Sequence, window: Window) -> float:
    """Columns that a row costs under a sequence, on average: the paper's cost (section 6)."""
    walk = _Walk(constructs, sequence)
    walk.arrows = dict(sequence.arrows)
    _, looked, _ = walk._after(window, len(constructs.columns) - 1)
    return float(looked.sum(axis=1).mean()) if window.shape[1] else 0.0
