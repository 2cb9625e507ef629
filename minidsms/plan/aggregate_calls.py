"""How operators compute the aggregates of a query: by kernels, or by objects that keep the states of groups and frames.

A call of the bound query says what is meant; its `AggregateSpec` names the columns that its arguments have become, and
of an aggregate whose states are objects what makes and feeds these. Operators and states are imported when first
needed, for kernels are slow to load.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from minidsms.aggregates import AGGREGATES
from minidsms.aggregates.aggregate import kept_by_kernel
from minidsms.aggregates.moments import OF_PAIRS
from minidsms.aggregates.ordered import share_of
from minidsms.cql import bound
from minidsms.cql.bound import AggregateCall, ColumnRef, Expr
from minidsms.cql.catalog import Catalog
from minidsms.cql.scalar_text import print_aggregate, print_expression
from minidsms.elements import Type
from minidsms.inputs.values import inner_reader
from minidsms.plan.logical import column_refs
from minidsms.plan.rules.aggregate_partitions import as_aggregate
from minidsms.values.coded import has_shape

if TYPE_CHECKING:
    from minidsms.operators.aggregate import AggregateSpec
    from minidsms.synopses.object_states import ObjectAggregate

_ROWS_OF_SUMS = 10
"""As many rows take as much as the six sums of pairs."""


@dataclass(frozen=True)
class AggregateCalls:
    """catalog: has the aggregates of the user.  tick_ns: the length of a tick."""

    catalog: Catalog
    tick_ns: int

    def spec(self, call: AggregateCall, place: Callable[[Expr], int], is_append_only: bool) -> AggregateSpec:
        """Of a call over groups. place: of an expression among the columns of the operator's input.  is_append_only: no
        row leaves a group.
        """
        from minidsms.operators.aggregate import AggregateSpec

        settings = call.settings
        state = None if settings is None else AGGREGATES[call.function].state
        share = None if settings is None else share_of(state, settings)
        has_objects = call.has_objects and share is None and state is not kept_by_kernel
        by = call.args[1] if state is kept_by_kernel and len(call.args) > 1 else None
        value = call.args[0] if call.has_objects and not has_objects else call.arg
        label = f"{call.function.upper()}({'*' if call.arg is None else print_expression(call.arg)})"
        return AggregateSpec(
            function=call.function,
            arg=None if value is None else place(value),
            distinct=call.distinct,
            arg_type=Type.NULL if value is None else value.type,
            result_type=call.type,
            label=print_aggregate(call) if call.has_objects else label,
            objects=self._objects(call, is_append_only) if has_objects else None,
            args=tuple(place(a) for a in call.args) if has_objects else (),
            ignores_nulls=call.ignores_nulls,
            share=share,
            by=None if by is None else place(by),
            by_type=None if by is None else by.type,
            is_descending=settings is not None and any(key.descending for key in settings.keys),
        )

    def of_frames(self, node: bound.Over) -> AggregateSpec | None:
        """Of a call with OVER; None where it is no aggregate, or one whose frames slide by themselves."""
        call = node.call
        if not call.is_aggregate or not (node.is_append_only or not call.slides):
            return None
        refs = column_refs(node.input.schema)
        meant = as_aggregate(call, refs[call.arg or 0])
        only_comes = node.is_append_only and call.frame.start is None
        if call.values > 1:
            assert call.arg is not None
            return self._of_several(meant, refs[call.arg], only_comes)
        return self.spec(meant, refs.index, only_comes)

    def _of_several(self, call: AggregateCall, together: ColumnRef, is_append_only: bool) -> AggregateSpec:
        """Of a call whose arguments stand together in a column."""
        from minidsms.aggregates.several import Apart
        from minidsms.operators.aggregate import AggregateSpec

        apart, column = self._objects(call, is_append_only), together.index
        factory = functools.partial(Apart, apart.factory)
        objects = dataclasses.replace(apart, factory=factory, arg_types=(together.type,), values=1)
        return AggregateSpec(call.function, column, call.type, together.type, objects=objects, args=(column,))

    def _objects(self, call: AggregateCall, is_append_only: bool) -> ObjectAggregate:
        """What keeps the states of an aggregate whose states are objects."""
        from minidsms.synopses.object_states import ROW_BYTES, ObjectAggregate, ShownRows

        types = tuple(a.type for a in call.args)
        if call.settings is None:
            user = self.catalog.aggregates[call.function.lower()]
            factory = user.factory
            if any(map(has_shape, (*user.arg_types, user.type))):
                read = inner_reader(user.type, self.tick_ns) if has_shape(user.type) else None
                factory = functools.partial(ShownRows, user.factory, user.arg_types, read)
            return ObjectAggregate(user.name, factory, user.arg_types, user.type, len(user.arg_types))
        settings = dataclasses.replace(call.settings, is_append_only=is_append_only)
        state = AGGREGATES[call.function].state
        if state is kept_by_kernel:
            from minidsms.aggregates.several import STATES

            state = STATES[call.function]
        assert state is not None, "what a kernel keeps has no settings"
        return ObjectAggregate(
            call.function,
            functools.partial(state, settings),
            types,
            call.type,
            settings.values if settings.passes_nulls else 0,
            call.distinct,
            settings.by_arrival,
            ROW_BYTES,
            _most_rows(call, is_append_only),
        )


def _most_rows(call: AggregateCall, is_append_only: bool) -> int | None:
    """How many rows a state of the table keeps at most; None where it is all."""
    if call.function in OF_PAIRS:
        return _ROWS_OF_SUMS
    if not (is_append_only and AGGREGATES[call.function].keeps_wanted) or call.distinct or call.settings is None:
        return None
    most: int = (call.settings.parameters or (1,))[0]
    return most
