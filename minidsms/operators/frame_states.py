"""An aggregate of frames, as that of groups into which values come and out of which they leave.

Invariant: what it gives behind an element is the aggregate of the values that are then in the element's group.
docs/semantics R7.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minidsms.elements import Batch, Column, Int8Array, Int64Array, Type
from minidsms.kernels import grouping
from minidsms.kernels.aggregation import FAILED
from minidsms.kernels.frames import Moves
from minidsms.operators.aggregate import AggregateSpec, GroupStates
from minidsms.synopses.group_state import Argument, Run
from minidsms.synopses.object_states import Texts


class FrameStates:
    """spec: of the aggregate; without one groups have no states.  keys: there is a group for each partition, of these
    types, or one if there are none.  are_fifo: values leave each group in the order in which they came.
    is_append_only: none leaves.  claim: as `Operator.claim`.
    """

    reason = ""
    """Why there is no answer where one failed, of what Python computes."""

    def __init__(
        self, spec: AggregateSpec | None, keys: tuple[Type, ...], texts: Texts, claim: Callable[[int], None],
        are_fifo: bool = False, is_append_only: bool = False,
    ) -> None:  # fmt: skip
        self._claim = claim
        calls = [] if spec is None else [spec]
        self.groups = GroupStates(keys, calls, False, texts, is_append_only=is_append_only, are_fifo=are_fifo)

    def answers(self, moves: Moves) -> tuple[Int64Array, Int8Array]:
        """What the aggregate gives behind each element, and its status, as `kernels.aggregation` has it; behind one
        that failed nothing more is given.
        """
        groups = self.groups
        records = groups.records
        ids, stamps, numbers, sign, weight, words, valid = moves
        n = len(ids)
        results, status = np.empty((n, 1), np.int64), np.empty((n, 1), np.int8)
        floats = results.view(np.float64)
        run = Run(Batch(stamps, sign, (), numbers), stamps, sign, ids, results, floats, status)
        for _, objects, _ in groups.objects:
            column = Column.from_words(words, valid != 0, objects.arg_types[0])
            failed = objects.advance(run, [column], 0, self._claim)
            if failed is not None:
                self.reason = self.reason or failed[1]
                status[stamps >= failed[0]] = FAILED
            return results[:, 0], status[:, 0]
        for seen, _ in groups.distinct.values():
            seen.weigh(ids, Argument(words, valid, weight))
        for _, state, _ in groups.accumulators:
            state.advance(run, Argument(words, valid, weight), 0)
            return results[:, 0], status[:, 0]
        values, weights = words.reshape(1, n), weight.reshape(1, n)
        if records.sums:
            grouping.move_sums(ids, records.calls, values, weights, records.records, results, floats, status)
            return results[:, 0], status[:, 0]
        done = 0
        while True:
            held = records.records, records.nodes, records.pool
            done = grouping.move_extremes(done, ids, records.calls, values, weights, *held, results, status)
            if done == n:
                return results[:, 0], status[:, 0]
            records.grow_nodes()
