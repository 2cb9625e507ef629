"""The values of every group in order, for MIN, MAX, FIRST and LAST, ARG_MIN and ARG_MAX, MEDIAN and other quantiles.

Invariant: a group's answer is the extreme of the values present, or the value at a share of the way through them. For
extremes under FIFO deletions only values that can still become the answer are kept (a monotone deque), without
deletions the answer alone; else all distinct ones (a treap).  docs/semantics R3; kernels.ordered_values draws the
structures. The kernels of quantiles are loaded with the first that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from minidsms.aggregates.ordered import Share, between
from minidsms.elements import AnyArray, BoolArray, Int64Array, Type
from minidsms.kernels import ordered_values as kernels
from minidsms.kernels.aggregation import NULL, VALUE
from minidsms.synopses.group_state import Argument, GroupArrays, Run
from minidsms.synopses.object_states import Texts
from minidsms.synopses.text_bytes import TextBytes

_FIRST_CAPACITY = 256
_WORTH_SHRINKING = 2048
_NOTHING: Int64Array = np.empty((0, 4), np.int64)


class OrderedValues(GroupArrays):
    """The extreme of each group's values, or the one at a share.

    largest: MAX, LAST and ARG_MAX.  by_type: of ARG_MIN and ARG_MAX, of what chooses the value.  by_arrival: FIRST and
    LAST.  texts: of codes, if there are any.  is_fifo: deletions come in
    the order of insertions.  is_append_only: and there are none.  ignores_nulls: of FIRST and LAST; all others do.
    share: of quantiles.
    """

    def __init__(
        self,
        arg_type: Type,
        largest: bool,
        by_arrival: bool,
        is_fifo: bool,
        texts: Texts | None,
        is_append_only: bool = False,
        ignores_nulls: bool = False,
        share: Share | None = None,
        by_type: Type | None = None,
    ) -> None:
        super().__init__(places=(4, np.int64))
        self._type = arg_type
        self._largest = largest
        self._by_arrival = by_arrival
        self._is_fifo = is_fifo
        self._is_append_only = is_append_only
        self._ignores_nulls = ignores_nulls or share is not None
        self._share = share
        self._texts = TextBytes(texts)
        self._by_type = arg_type if by_type is None else by_type
        self._is_text = self._by_type.is_ranked and not by_arrival
        self._ties = kernels.NO_TIES if by_type is None else _tied(arg_type)
        self._nodes: Int64Array = np.zeros((_FIRST_CAPACITY, 8), np.int64)
        self._meta: Int64Array = np.array([0, 1, 88172645463325252], np.int64)
        self._since_look = 0

    def __len__(self) -> int:
        """How many values are kept."""
        return int(np.count_nonzero(self._nodes[: self._meta[1], kernels.COUNT]))

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._nodes.nbytes + self._texts.nbytes

    def advance(self, run: Run, argument: Argument, j: int, by: Argument | None = None) -> None:
        """Take a batch in; answers go to column j of the run.  by: of ARG_MIN and ARG_MAX, what chooses the value.

        Quantiles are there at the last element of each group and instant.
        """
        words, valid, weight = argument
        if by is None:
            keys = self._keys(run, words)
        else:
            keys, valid = self._keys(run, by.words), valid & by.valid
        self.cover(words, keys, valid != 0)
        n = len(words)
        done = 0
        # NULL is a value to FIRST and LAST, unless they are told to pass over it.
        elements = kernels.Valued(run.ids, weight if self._ignores_nulls else run.sign, valid, keys, words)
        share = self._share
        order = self.order
        unknown = _NOTHING
        if share is not None:
            unknown = np.empty((n + 1, 4), np.int64)
            unknown[0, 0] = 0
        while True:
            ordered = self.ordered
            if share is not None:
                done = self._quantiles(share, done, run, elements, order, ordered, unknown, j)
            elif self._is_fifo:
                is_growing = self._is_append_only
                done = kernels.deque_extremes(done, elements, order, is_growing, ordered, run.results, run.status, j)
            else:
                done = kernels.treap_extremes(done, elements, order, ordered, run.results, run.status, j)
            if done == n:
                break
            self.grow()
        if share is not None and unknown.item(0, 0):
            self._find(share, run, unknown[1 : 1 + unknown[0, 0]], j)

    @property
    def order(self) -> kernels.OrderedBy:
        """What the kernels order by, of texts that are covered."""
        is_sized = self._share is not None
        return kernels.OrderedBy(
            self._texts.written, self._is_text, self._largest, self._by_arrival, is_sized, self._ties
        )

    @property
    def ordered(self) -> kernels.OrderedArrays:
        """The values, as kernels take them."""
        places: Any = self.tables["places"]
        return kernels.OrderedArrays(places, self._nodes, self._meta)

    @property
    def is_full(self) -> bool:
        """There is no room for another value."""
        return bool(self._meta[0] == 0 and self._meta[1] == len(self._nodes))

    def grow(self) -> None:
        """Twice the room for values."""
        self._nodes = np.concatenate([self._nodes, np.zeros_like(self._nodes)])

    def _quantiles(
        self, share: Share, done: int, run: Run, elements: kernels.Valued, by: kernels.OrderedBy,
        ordered: kernels.OrderedArrays, unknown: Int64Array, j: int,
    ) -> int:  # fmt: skip
        """How far the kernel came. unknown: takes the answers it leaves to `_find`."""
        from minidsms.kernels.quantiles import Place, Placed, treap_quantiles

        place = Place(*share, self._type is Type.FLOAT)
        to = Placed(run.results, run.floats, run.status, unknown, j)
        return treap_quantiles(done, run.ts, elements, by, ordered, ordered.nodes.view(np.float64), place, to)

    def _find(self, share: Share, run: Run, unknown: Int64Array, j: int) -> None:
        """The answers between two values that the kernel could not round."""
        ends = unknown[:, 1:3].copy().view(self._type.dtype).tolist()
        for (low, high), (i, _, _, part) in zip(ends, unknown.tolist()):
            found = between(low, high, Fraction(part, share.denominator))
            run.floats[i, j] = 0.0 if found is None else found + 0.0
            run.status[i, j] = NULL if found is None else VALUE

    def _keys(self, run: Run, words: Int64Array) -> Int64Array:
        """What the kernel orders by, as int64."""
        if self._by_arrival and not self._is_fifo:
            assert run.batch.seq is not None, "FIRST and LAST need arrival numbers unless deletions are FIFO"
            return run.batch.seq if run.batch.seq.flags.c_contiguous else run.batch.seq.copy()
        if self._by_type is Type.FLOAT:
            # Bits of floats in the order of the floats: those of negative ones run backwards.
            ordered: Int64Array = words ^ ((words >> 63) & 0x7FFFFFFFFFFFFFFF)
            return ordered
        return words

    # ---------------------------------------------------------------------------------------------------------- texts

    def _held(self, word: int) -> Int64Array:
        used = self._nodes[: self._meta[1]]
        held: Int64Array = used[(used[:, kernels.COUNT] > 0) & (used[:, kernels.VALID] != 0), word]
        return held

    def cover(self, words: Int64Array, keys: Int64Array, is_value: BoolArray) -> None:
        """See that the texts that may be compared are there."""
        if self._ties != kernels.TIED_TEXTS:
            if self._is_text:
                self._texts.cover(keys[is_value], self._held_codes)
        elif self._is_text:
            self._texts.cover(np.concatenate([keys[is_value], words[is_value]]), self._held_codes)
        else:
            self._texts.cover(words[is_value], self._held_codes)

    def _held_codes(self) -> Int64Array:
        held = [self._held(kernels.KEY)] if self._is_text else []
        if self._ties == kernels.TIED_TEXTS:
            held.append(self._held(kernels.WORD))
        return np.concatenate(held)

    def live_codes(self) -> Iterable[Int64Array]:
        """The TEXT codes held. Whoever asks may reuse all others."""
        self._texts.forget()
        if self._type.is_coded:
            yield self._held(kernels.WORD)
        if self._by_type.is_coded and self._ties != kernels.NO_TIES:
            yield self._held(kernels.KEY)

    # ---------------------------------------------------------------------------------------------------- memory

    def settle(self, n: int) -> None:
        """Give memory back if most nodes are free."""
        capacity = len(self._nodes)
        self._since_look += n
        # Counting nodes costs as much as the pool is large: enough elements must have paid for it.
        if capacity <= _WORTH_SHRINKING or self._since_look < capacity // 8:
            return
        self._since_look = 0
        if len(self) * 8 < capacity:
            self._pack()

    def _pack(self) -> None:
        packed = np.zeros((max(_FIRST_CAPACITY, 1 << (2 * len(self)).bit_length()), 8), np.int64)
        used = kernels.pack_nodes(self._nodes, self.tables["places"].view(np.int64), packed, int(self._meta[1]))
        self._nodes = packed
        self._meta[0] = 0
        self._meta[1] = used

    def arrays(self, live: Int64Array) -> dict[str, AnyArray]:
        self._pack()
        return {**super().arrays(live), "nodes": self._nodes[: self._meta[1]].copy(), "meta": self._meta.copy()}

    def restore(self, arrays: dict[str, AnyArray], capacity: int) -> None:
        super().restore(arrays, capacity)
        n = len(arrays["nodes"])
        self._nodes = np.zeros((max(_FIRST_CAPACITY, 1 << n.bit_length()), 8), np.int64)
        self._nodes[:n] = arrays["nodes"]
        self._meta = np.array(arrays["meta"], np.int64)
        self._texts.forget()


def _tied(type_: Type) -> int:
    """How kernels order the values of equal keys."""
    if type_.is_ranked:
        return kernels.TIED_TEXTS
    return kernels.TIED_FLOATS if type_ is Type.FLOAT else kernels.TIED_WORDS
