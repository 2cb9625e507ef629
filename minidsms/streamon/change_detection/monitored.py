"""The monitoring phase around an ordering algorithm: A-Greedy*, and so Sweep*, Independent* and LocalSwaps*.

Profile tuples are counted into blocks, and every conditional drop rate that is known of a block goes to a change
detector of its own. When one tells a change, profile tuples older than the changepoint are discarded, from the
algorithm's window too, and detection begins again, with what is left as feedback. Behind another order the detectors
begin again as well, for drop rates by place are others then.

As published, orders are analysed only after a change (`analyses_always` False): from `least` profile tuples on, again
whenever twice as many have come, and then, with a full window, no more until the next change. With `analyses_always`
the algorithm sees every profile tuple at once, as it does alone.

Invariant: detectors that never tell a change leave the orders of an algorithm that analyses always as they are without
detectors, bit by bit. What the algorithm keeps are the last profile tuples, none of them older than the last
changepoint. Tsamoura, Gounaris and Manolopoulos 2016, sections 4 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from minidsms.elements import BoolArray, Int64Array
from minidsms.expressions.attributes import UInt8Array
from minidsms.expressions.routes import Order
from minidsms.streamon.change_detection.blocks import Blocks
from minidsms.streamon.change_detection.contracts import ChangeDetectors
from minidsms.streamon.contracts import Change, Evaluate, Float64Array, OrderingAlgorithm, OrderStatistics, Wanted

LEAST = 100
"""Profile tuples from which an order is analysed after a change, where windows are longer."""


class Monitored:
    """See `OrderingAlgorithm`.

    detectors: makes those over so many streams.  window: profile tuples that the algorithm
    keeps.  block: profile tuples that make an item.  observed: profile tuples seen so far; they are numbered from 0.
    changes, analyses: how often a change was told, or noticed by others, and how often the algorithm was asked.
    """

    def __init__(
        self,
        algorithm: OrderingAlgorithm,
        detectors: Callable[[int], ChangeDetectors],
        window: int,
        block: int = 20,
        analyses_always: bool = False,
    ) -> None:
        self._inner = algorithm
        n = len(algorithm.order)
        self._takes_all = self._inner.wanted().evaluate is Evaluate.ALL
        self._blocks = Blocks(n, max(min(block, window), 1), Evaluate.ALL if self._takes_all else Evaluate.NEXT)
        self.detectors = detectors(len(self._blocks.places))
        self.window = window
        self.default_rate, self.default_window = algorithm.default_rate, algorithm.default_window
        self.default_alpha = algorithm.default_alpha
        self.observed = 0
        self.changes = 0
        self.analyses = 0
        self.last_change: Change | None = None
        self._analyses_always = analyses_always
        self._recent: UInt8Array = np.zeros((0, n), np.uint8)
        """The last profile tuples, up to a window, none older than the last changepoint."""
        self._shown = 0
        """Of all profile tuples, those that the algorithm was shown."""
        self._analyse_at: int | None = min(LEAST, window)
        """Profile tuples since the last change at which the order is analysed next; None until there is a change."""
        self._began = 0
        """Number of the first profile tuple since the last change."""
        self._partial: UInt8Array = np.zeros((0, n), np.uint8)

    @property
    def order(self) -> Order:
        return self._inner.order

    def wanted(self) -> Wanted:
        return self._inner.wanted()

    def observe(self, drops: BoolArray, costs: Float64Array) -> Order | None:
        before = self.order
        bits = np.array(drops, np.uint8, order="C", ndmin=2)
        self.observed += len(bits)
        self._recent = np.concatenate((self._recent, bits))[-self.window :]
        self._detect(bits)
        self._show(bits, costs)
        if self.order == before:
            return None
        self._begin_detection()
        return self.order

    def notice(self) -> None:
        """Others have found that the streams have changed: all profile tuples are out of date."""
        self.changes += 1
        self.last_change = None
        self._discard(self.observed)
        self._begin_detection()

    # ------------------------------------------------------------------------------------------------ detection

    def _detect(self, bits: UInt8Array) -> None:
        """Count profile tuples into blocks; on a change, discard what is older."""
        size = self._blocks.size
        rows = np.concatenate((self._partial, bits))
        number = self.observed - len(rows)
        whole = len(rows) - len(rows) % size
        self._partial = rows[whole:]
        if not whole:
            return
        told = self.detectors.observe(*self._blocks.items(rows[:whole], self.order, number))
        changed = np.flatnonzero(told.max(axis=1) >= 0)
        if not len(changed):
            return
        if self.detectors.is_amnesic:
            changed = changed[:1]
        self.changes += len(changed)
        # The most recent changepoint counts; behind the first one that an amnesic detector tells all begins again.
        at = int(changed[-1])
        stream = int(told[at].argmax())
        self._note(stream, int(told[at, stream]), number + (at + 1) * size)
        self._discard(int(told[changed].max()))
        if self.detectors.is_amnesic:
            self._begin_detection()

    def _note(self, stream: int, changepoint: int, end: int) -> None:
        """Keep what changed, in words that people understand."""
        first = self.observed - len(self._recent)
        old = self._recent[: max(0, changepoint - first)]
        # A changepoint of now leaves nothing behind it: then what is after is the block that told it.
        new = self._recent[max(0, min(changepoint, end - self._blocks.size) - first) :]
        i, j = self._blocks.places[stream]
        before, after = (_rate(bits, self.order, i, j) for bits in (old, new))
        self.last_change = Change(self._blocks.name(stream), self.order[j], before, after, changepoint, end)

    def _begin_detection(self) -> None:
        """Drop rates by place have another meaning, or have changed: what is kept is the detectors' feedback."""
        self.detectors.initialize()
        kept = self._recent if self._takes_all else self._recent[:0]
        size = self._blocks.size
        number = self.observed - len(kept)
        self._blocks.clear(number)
        whole = len(kept) - len(kept) % size
        if whole:
            self.detectors.observe(*self._blocks.items(kept[:whole], self.order, number))
        self._partial = kept[whole:]

    # ------------------------------------------------------------------------------------------------ the algorithm

    def _discard(self, changepoint: int) -> None:
        """Profile tuples before this number are out of date."""
        kept = max(0, min(self.observed - changepoint, len(self._recent)))
        self._recent = self._recent[len(self._recent) - kept :]
        self._inner.keep_last(max(0, self._shown - changepoint))
        self._shown = max(self._shown, changepoint)
        self._began = self.observed - kept
        self._analyse_at = min(LEAST, self.window)

    def _show(self, bits: UInt8Array, costs: Float64Array) -> None:
        """Let the algorithm see what it has not seen, if it is time to."""
        behind = self.observed - self._shown
        if self._analyses_always or not self._takes_all:
            if self._analyses_always or self._analyse_at is not None:
                self._ask(bits[len(bits) - min(behind, len(bits)) :], costs)
            self._rest_when_settled()
            return
        since = self.observed - self._began
        if self._analyse_at is None or since < self._analyse_at:
            return
        self._ask(self._recent[len(self._recent) - min(behind, len(self._recent)) :], costs)
        full = max(self.window, LEAST)
        self._analyse_at = None if since >= full else min(max(2 * self._analyse_at, since + 1), full)

    def _ask(self, rows: UInt8Array, costs: Float64Array) -> None:
        self._shown = self.observed
        if len(rows):
            self.analyses += 1
            self._inner.observe(rows != 0, costs)

    def _rest_when_settled(self) -> None:
        """An algorithm that does not look at all filters has gone round once, a window for each."""
        rounds = len(self.order) - 1 if self.wanted().evaluate is Evaluate.ONE else 1
        if not self._analyses_always and self.observed - self._began >= rounds * self.window:
            self._analyse_at = None

    def adopt(self, order: Sequence[int]) -> None:
        """See `OrderingAlgorithm`. Drop rates by place are others."""
        self._inner.adopt(order)
        self._begin_detection()

    def keep_last(self, profiled: int) -> None:
        self._discard(max(0, self.observed - profiled))
        self._begin_detection()

    def expected_cost(self, order: Sequence[int]) -> float | None:
        return self._inner.expected_cost(order)

    def describe(self) -> OrderStatistics:
        return self._inner.describe()


def _rate(bits: UInt8Array, order: Order, i: int, j: int) -> float | None:
    """d(j | i) of profile tuples; None of too few."""
    reaching: Int64Array = np.flatnonzero(~bits[:, list(order[:i])].any(axis=1))
    return float(bits[reaching, order[j]].mean()) if len(reaching) else None
