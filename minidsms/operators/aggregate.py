"""GROUP BY: a row per group, the keys' values and the aggregates' results.

Invariant: between instants every group that has rows (without GROUP BY: the one group, from the first arrival on)
stands in the output once, with the results of the rows present; a group whose row did not change at an instant is
not put out again. docs/semantics R3, R4; Babu 2005, table 2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from minidsms.elements import (
    MAX_INSTANT,
    MIN_INSTANT,
    AnyArray,
    Batch,
    Column,
    Field,
    Int8Array,
    Int64Array,
    Schema,
    Type,
    words_width,
)
from minidsms.kernels import grouping
from minidsms.machine_code.templates import Form
from minidsms.operators.operator import Description
from minidsms.operators.resuming import Resuming
from minidsms.queues import Queue
from minidsms.synopses.group_records import Call, GroupRecords
from minidsms.synopses.group_slices import GroupSlices
from minidsms.synopses.group_state import Argument, DistinctValues, Run
from minidsms.synopses.key_table import ArrivalRing, KeyTable
from minidsms.synopses.object_states import ObjectAggregate, ObjectStates, Texts

if TYPE_CHECKING:
    from minidsms.aggregates.ordered import Share
    from minidsms.synopses.bit_counts import BitCounts
    from minidsms.synopses.decimal_sums import DecimalSums
    from minidsms.synopses.exact_sums import FloatSumState, VariationState
    from minidsms.synopses.frequencies import Frequencies
    from minidsms.synopses.moments import MomentSums
    from minidsms.synopses.ordered_values import OrderedValues

    Accumulator = BitCounts | DecimalSums | FloatSumState | VariationState | Frequencies | MomentSums | OrderedValues
    State = Accumulator | DistinctValues | ObjectStates | GroupRecords


@dataclass(frozen=True)
class AggregateSpec:
    """One aggregate over the operator's input columns.

    function: as in `bound.AggregateCall`.  arg: an input column, None for COUNT(*).  label: its text, for failures
    and EXPLAIN.  objects: what keeps its states where those are objects, of the input columns `args`.  ignores_nulls:
    of FIRST and LAST.  times: of COUNT and AVG, the input column that says for how many values an element stands; None:
    for one.  share: of a quantile that kernels keep.  by, by_type: the second argument's input column: of ARG_MIN and
    ARG_MAX that which chooses the value, of pairs that of x.  is_descending: of MODE, the greatest of several.
    """

    function: str
    arg: int | None
    result_type: Type
    arg_type: Type = Type.NULL
    distinct: bool = False
    label: str = ""
    objects: ObjectAggregate | None = None
    args: tuple[int, ...] = ()
    ignores_nulls: bool = False
    times: int | None = None
    share: Share | None = None
    by: int | None = None
    by_type: Type | None = None
    is_descending: bool = False

    def __str__(self) -> str:
        inside = "*" if self.arg is None else f"{'DISTINCT ' if self.distinct else ''}#{self.arg}"
        return self.label or f"{self.function.upper()}({inside})"


_EXTREMES = ("min", "max", "first", "last", "arg_min", "arg_max")
_SAME_IF_DISTINCT = ("min", "max", "first", "last", "bit_and", "bit_or")


def kind_of(spec: AggregateSpec, is_fifo: bool, is_append_only: bool, has_ring: bool = False) -> int:
    """How the records keep an aggregate; EXTERNAL where a state of its own does. has_ring: there is one of all rows."""
    if spec.objects is not None:
        return grouping.EXTERNAL
    if spec.arg is None:
        return grouping.STAR
    match spec.function:
        case "count":
            return grouping.COUNT
        case "sum" if spec.arg_type is not Type.FLOAT:
            return grouping.SUM
        case "avg" if spec.arg_type is not Type.FLOAT:
            return grouping.AVG
        case "min" | "max" if not spec.arg_type.is_ranked and (is_fifo or is_append_only):
            return grouping.TOP if is_append_only else grouping.STACKED if has_ring else grouping.EXTREME
    return grouping.EXTERNAL


def accumulator(spec: AggregateSpec, is_fifo: bool, is_append_only: bool, texts: Texts | None) -> Accumulator:
    """The state of its own that a built-in aggregate keeps per group where the records do not.

    Their kernels are loaded with the first query that needs them.
    """
    match spec.function:
        case "sum" | "avg":
            from minidsms.synopses.exact_sums import FloatSumState

            return FloatSumState(spec.function == "avg")
        case "sum_decimal":
            from minidsms.synopses.decimal_sums import DecimalSums

            assert texts is not None, "long sums have codes of the dictionary"
            return DecimalSums(spec.result_type, texts)
        case "variance" | "stddev":
            from minidsms.synopses.exact_sums import VariationState

            return VariationState(spec.function == "stddev", spec.arg_type)
        case "bit_and" | "bit_or" | "bit_xor":
            from minidsms.synopses.bit_counts import BitCounts

            return BitCounts(spec.function)
        case "mode":
            from minidsms.synopses.frequencies import Frequencies

            return Frequencies(spec.arg_type, spec.is_descending, texts)
        case function if spec.share is not None or function in _EXTREMES:
            by_arrival = spec.function in ("first", "last")
            largest = spec.function in ("max", "last", "arg_max")
            from minidsms.synopses.ordered_values import OrderedValues

            grows = is_fifo and is_append_only
            return OrderedValues(
                spec.arg_type, largest, by_arrival, is_fifo, texts, grows, spec.ignores_nulls, spec.share, spec.by_type
            )
    from minidsms.synopses.moments import MomentSums

    return MomentSums(spec.function, spec.arg_type, spec.by_type)


class GroupStates:
    """The synopsis of an aggregation: the groups' keys, their records, and the states that stand outside them.

    key_types: empty for the one group of a query without GROUP BY.  is_fifo: deletions come in the order of insertions;
    are_fifo: in each group they do.  start: the instant from which that group exists, MAX_INSTANT as long as it is not
    known.
    """

    def __init__(
        self,
        key_types: tuple[Type, ...],
        calls: Sequence[AggregateSpec],
        is_fifo: bool,
        texts: Texts | None,
        start: int = MIN_INSTANT,
        is_append_only: bool = False,
        are_fifo: bool = False,
    ) -> None:
        text = [i for i, t in enumerate(key_types) if t.is_coded]
        self.table = KeyTable(words_width(len(key_types)), text) if key_types else None
        # Where nothing is deleted nothing is taken back.
        has_ring = bool(key_types) and is_fifo and not is_append_only
        kinds = [kind_of(c, are_fifo, is_append_only, has_ring) for c in calls]
        self.arrivals = ArrivalRing(kinds.count(grouping.STACKED)) if has_ring else None
        self.is_plain = grouping.EXTERNAL not in kinds and not any(is_distinct(c) for c in calls)
        """All states stand in the records."""
        self.arguments: dict[tuple[int, bool], int] = {}
        """Columns that aggregates read, and whether equal values count once: equal ones share a row of words."""
        made = [self._call(c, kind) for c, kind in zip(calls, kinds)]
        self.records = GroupRecords(made)
        self.accumulators: list[tuple[int, Accumulator, tuple[int, ...]]] = [
            (j, accumulator(c, are_fifo, is_append_only, texts), self._rows_of(c, one))
            for j, (c, one) in enumerate(zip(calls, made))
            if one.kind == grouping.EXTERNAL and c.objects is None
        ]
        """Each with the aggregate whose state it is, and the rows of its arguments."""
        self.objects = [
            (j, ObjectStates(c.objects, texts, is_fifo), c.args) for j, c in enumerate(calls) if c.objects is not None
        ]
        """Each with the aggregate whose state it is, and the columns of its arguments."""
        types = {c.arg: c.arg_type for c in calls}
        self.distinct = {
            arg: (DistinctValues(types[arg], is_fifo and not is_append_only), row)
            for (arg, is_distinct), row in self.arguments.items()
            if is_distinct
        }
        """By column, with its row."""
        self.start = start
        self._resize()

    def _call(self, spec: AggregateSpec, kind: int) -> Call:
        """The aggregate with the rows of weights and values it reads."""
        argument, times = 0, -1
        if spec.arg is not None and spec.objects is None:
            argument = self._row_of(spec.arg, is_distinct(spec))
        if spec.times is not None:
            times = self._row_of(spec.times)
        is_largest, is_float = spec.function == "max", spec.arg_type is Type.FLOAT
        is_fallible = kind == grouping.SUM or spec.function == "sum_decimal"
        return Call(kind, argument, is_largest, is_float, spec.result_type.is_coded, times, is_fallible)

    def _rows_of(self, spec: AggregateSpec, call: Call) -> tuple[int, ...]:
        return (call.argument,) if spec.by is None else (call.argument, self._row_of(spec.by))

    def _row_of(self, column: int, is_distinct: bool = False) -> int:
        return self.arguments.setdefault((column, is_distinct), len(self.arguments))

    def __len__(self) -> int:
        return 1 if self.table is None else len(self.table)

    @property
    def capacity(self) -> int:
        """Every group's id is below it."""
        return 1 if self.table is None else self.table.capacity

    def states(self) -> Iterator[tuple[str, State]]:
        """All per-group states, each under its own name."""
        yield "group", self.records
        yield from ((f"state{j}", state) for j, state, _ in self.accumulators)
        yield from ((f"distinct{arg}", values) for arg, (values, _) in self.distinct.items())
        yield from ((f"objects{j}", states) for j, states, _ in self.objects)

    @property
    def nbytes(self) -> int:
        held = sum(state.nbytes for _, state in self.states())
        held += 0 if self.table is None else self.table.nbytes
        return held + (0 if self.arrivals is None else self.arrivals.nbytes)

    def slices(
        self, keys: Sequence[int], outside: Callable[[Run, Sequence[Argument]], int], claim: Callable[[int], None],
        is_global: bool = False,
    ) -> GroupSlices:  # fmt: skip
        """The way of slices. keys: the columns groups are found by.  outside: moves what stands outside the records."""
        return GroupSlices(
            self.table, self.arrivals, self.records, keys, [arg for arg, _ in self.arguments], self._resize,
            None if self.is_plain else outside, claim, is_global,
        )  # fmt: skip

    def acquire(self, keys: Sequence[Column], n: int) -> Int64Array:
        """The groups of n rows with these keys, new ones where there are none."""
        if self.table is None:
            return np.zeros(n, np.int64)
        ids = self.table.acquire_columns(keys)
        self._resize()
        return ids

    def settle(self, n: int) -> None:
        """Free memory if most of it is free. n: elements taken in."""
        self.records.settle()
        for _, values, _ in self.accumulators:
            values.settle(n)
        table = self.table
        kept = None if table is None or not table.is_sparse else table.compact()
        if kept is not None:
            if self.arrivals is not None:
                self.arrivals.renumber(kept)
            for _, state in self.states():
                state.renumber(kept, self.capacity)

    def _resize(self) -> None:
        if len(self.records.records) < self.capacity:
            for _, state in self.states():
                state.resize(self.capacity)

    def arrays(self) -> dict[str, AnyArray]:
        """The state, groups in the order of their ids."""
        live = np.zeros(1, np.int64) if self.table is None else self.table.live()
        result: dict[str, AnyArray] = {"start": np.array([self.start], np.int64)}
        if self.table is not None:
            result |= self.table.arrays()
        if self.arrivals is not None:
            result |= self.arrivals.arrays(live)
        for name, state in self.states():
            result |= {f"{name}.{key}": array for key, array in state.arrays(live).items()}
        return result

    def restore(self, arrays: dict[str, Any]) -> None:
        self.start = int(arrays["start"][0])
        if self.table is not None:
            self.table.restore({"keys": arrays["keys"]})
        if self.arrivals is not None:
            if "stacks" not in arrays:
                self.keep_deques()
            self.arrivals.restore(arrays)
        for name, state in self.states():
            prefix = f"{name}."
            own = {key[len(prefix) :]: array for key, array in arrays.items() if key.startswith(prefix)}
            state.restore(own, self.capacity)

    def keep_deques(self) -> None:
        """Have MIN and MAX as they were up to version 8 of `durability.kept_state`, before any element has come."""
        if self.arrivals is not None:
            self.records.keep_deques()
            self.arrivals.stacks = np.zeros((len(self.arrivals.stacks), 0), np.int64)

    def live_codes(self) -> Iterable[Int64Array]:
        if self.table is not None:
            yield from self.table.live_codes()
        for _, state in self.states():
            yield from state.live_codes()


class Aggregate(Resuming):
    """Groups by the input columns `keys` and computes `calls`; output: the keys, then the results.

    is_global: no GROUP BY; one row from the instant of `start`'s single element on (R3), rows or no rows, and none
    before; without a start queue, from the first element on.  input_fifo: deletions come in the order of insertions;
    groups_fifo: within each group they do.  input_append_only: there are none.  texts: the dictionary, for MIN and MAX
    of TEXT and for user aggregates over TEXT.  See `operators.forms.TwoForms`.
    """

    name = "Aggregate"
    acts_on_time = False

    def __init__(
        self,
        input: Queue,
        keys: Sequence[int],
        calls: Sequence[AggregateSpec],
        is_global: bool = False,
        input_fifo: bool = False,
        start: Queue | None = None,
        texts: Texts | None = None,
        schema: Schema | None = None,
        input_append_only: bool = False,
        groups_fifo: bool = False,
    ) -> None:
        assert not (is_global and keys), "the one group has no keys"
        self._key_schema = Schema(tuple(input.schema[i] for i in keys))
        results = Schema(tuple(Field(str(c), c.result_type) for c in calls))
        super().__init__([input] if start is None else [input, start], schema or self._key_schema + results)
        self._keys = tuple(keys)
        self._calls = tuple(calls)
        begin = MAX_INSTANT if start is not None and is_global else MIN_INSTANT
        of_groups = input_fifo or groups_fifo
        self.groups = GroupStates(
            self._key_schema.types, calls, input_fifo, texts, begin, input_append_only, are_fifo=of_groups
        )
        groups = self.groups
        self._types = *self._key_schema.types, *results.types
        self._are_words = all(t.dtype == np.int64 for t in self._types)
        """Values of the output are their words."""
        # Functions of the user and the order of texts belong to the connection.
        coded = (c.arg_type.is_coded or (c.by_type is not None and c.by_type.is_coded) for c in calls)
        self.is_self_contained = not any(coded) and not groups.objects
        self._slices = groups.slices(self._keys, self._move_outside, self.claim, is_global)
        self.form: Form | None = None

    # -------------------------------------------------------------------------------------------------- the work

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterable[Batch]:
        batch = batches[0]
        if self.counted_until != MIN_INSTANT:
            batch = self.uncounted(batch)
        opening = batches[1] if len(batches) > 1 else None
        if opening is not None and self.groups.start == MAX_INSTANT:
            self.groups.start = int(opening.ts[0])
            batch = self._with_opening(batch)
        if batch is None:
            return ()
        groups, slices = self.groups, self._slices
        until = MAX_INSTANT if self.failure is None else self.failure.ts
        code = None if self.form is None else self.form.code()
        rows, failure = slices.take(batch, groups.start, until, code)
        if failure is not None:
            j, at = failure
            self.fail(int(batch.ts[at]), f"{self._calls[j]} overflows {self._calls[j].result_type}")
        result = tuple(starmap(self._batch, rows))
        if self.failure is None:
            groups.settle(len(batch.ts))
        return result

    def _with_opening(self, batch: Batch | None) -> Batch:
        """The batch with an element that counts nowhere (sign 0) at the instant the one row begins to exist."""
        schema = self.inputs[0].schema
        columns = [Column.nulls(1, t) for t in schema.types]
        number = np.zeros(1, np.int64) if batch is None or batch.seq is not None else None
        opening = Batch(np.array([self.groups.start], np.int64), np.zeros(1, np.int8), columns, number)
        if batch is None:
            return opening
        at = int(np.searchsorted(batch.ts, self.groups.start))
        whole = [Batch(b.ts, b.signs, b.columns, b.seq) for b in (batch.slice(0, at), batch.slice(at, len(batch)))]
        return Batch.concat([b for b in (whole[0], opening, whole[1]) if len(b)])

    def _move_outside(self, run: Run, arguments: Sequence[Argument]) -> int:
        """Move the states outside the records through the batch; the instant from which there is no answer."""
        groups = self.groups
        for values, i in groups.distinct.values():
            values.weigh(run.ids, arguments[i])
        for j, state, (i, *by) in groups.accumulators:
            self.claim(0)  # the one before may have taken too long
            state.advance(run, arguments[i], j, *(arguments[k] for k in by))
        for j, objects, columns in groups.objects:
            failed = objects.advance(run, [run.batch.column(i) for i in columns], j, self.claim)
            if failed is not None:
                self.fail(*failed)
        return MAX_INSTANT if self.failure is None else self.failure.ts

    def _batch(self, words: Int64Array, sign: Int8Array, status: Int8Array | None, is_own: bool) -> Batch:
        """Rows that are put out: see `changed_rows.Rows`."""
        if status is None:
            if self._are_words:
                return Batch.of_words(words, sign, is_own)
            columns = [Column.from_words(words[1 + i], None, type_) for i, type_ in enumerate(self._types)]
        else:
            valid = status != 0
            columns = [
                Column.from_words(words[1 + i], None if valid[i].all() else valid[i], type_)
                for i, type_ in enumerate(self._types)
            ]
        return Batch(words[0], sign, columns, None, is_own)

    def contents(self) -> Batch:
        shown = self.groups.records.shown()
        table = self.groups.table
        columns = [] if table is None else table.columns(shown, self._key_schema)
        for j, call in enumerate(self._calls):
            words, valid = self.groups.records.result(j, shown)
            columns.append(Column.from_words(words, None if valid.all() else valid, call.result_type))
        return Batch(np.zeros(len(shown), np.int64), None, columns)

    @property
    def has_arrays(self) -> bool:
        return not self.groups.objects

    # ------------------------------------------------------------------------------------------------------ forms

    @property
    def title(self) -> str:
        return f"{self.name} {self._detail}"

    def fitting(self) -> Form | None:
        return self._slices.form()

    def take_form(self, form: Form | None) -> None:
        self.form = form

    # ------------------------------------------------------------------------------------------------- for others

    @property
    def _detail(self) -> str:
        keys = ", ".join(field.name for field in self._key_schema)
        calls = ", ".join(str(call) for call in self._calls)
        return f"by {keys}: {calls}" if keys else calls

    def describe(self) -> Description:
        return Description(self.name, self._detail, {"groups": len(self.groups), "bytes": self.groups.nbytes})

    def synopses(self) -> tuple[Any, ...]:
        return (self.groups,)


def is_distinct(spec: AggregateSpec) -> bool:
    """Equal values count once, and it matters."""
    return spec.distinct and spec.function not in _SAME_IF_DISTINCT
