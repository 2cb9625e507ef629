"""An aggregate of frames, as that of groups into which values come and out of which they leave.

Invariant: what it gives behind an element is the aggregate of the values that are then in the element's group.
docs/semantics R7.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from minidsms.aggregates import AGGREGATES as TABLE
from minidsms.aggregates.ordered import share_of
from minidsms.aggregates.over import OverCall
from minidsms.elements import Batch, Int8Array, Int64Array, Type
from minidsms.kernels import grouping
from minidsms.kernels.frames import Moves
from minidsms.operators.aggregate import AggregateSpec, GroupStates
from minidsms.synopses.group_state import Argument, Run
from minidsms.synopses.object_states import Texts


class FrameStates:
    """groups: one for each partition, of these types, or one if there are none.  are_fifo: values leave each group in
    the order in which they came.  is_append_only: none leaves.  No groups have states where the call is no aggregate.
    """

    def __init__(
        self, call: OverCall, types: Sequence[Type], keys: tuple[Type, ...], texts: Texts, are_fifo: bool = False,
        is_append_only: bool = False,
    ) -> None:  # fmt: skip
        arg_type = Type.NULL if call.arg is None else types[call.arg]
        share = None if call.settings is None else share_of(TABLE[call.function].state, call.settings)
        spec = AggregateSpec(
            call.aggregate, call.arg or 0, call.type, arg_type, call.distinct, ignores_nulls=True, share=share
        )
        calls = [spec] if call.is_aggregate else []
        self.groups = GroupStates(keys, calls, False, texts, is_append_only=is_append_only, are_fifo=are_fifo)

    def answers(self, moves: Moves, numbers: Int64Array | None = None) -> tuple[Int64Array, Int8Array]:
        """What the aggregate gives behind each element, and its status, as `kernels.aggregation` has it. numbers: of
        the elements' rows, in the order of which those of a group stand, where they are not FIFO.
        """
        groups = self.groups
        records = groups.records
        ids, stamps, sign, weight, words, valid = moves
        n = len(ids)
        results, status = np.empty((n, 1), np.int64), np.empty((n, 1), np.int8)
        floats = results.view(np.float64)
        for seen, _ in groups.distinct.values():
            seen.weigh(ids, Argument(words, valid, weight))
        for _, state, _ in groups.accumulators:
            run = Run(Batch(stamps, sign, (), numbers), stamps, sign, ids, results, floats, status)
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
