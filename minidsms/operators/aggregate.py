"""GROUP BY: a row per group, the keys' values and the aggregates' results.

Invariant: between instants every group that has rows (without GROUP BY: the one group, from the first arrival on)
stands in the output once, with the results of the rows present; a group whose row did not change at an instant is
not put out again. docs/semantics R3, R4; Babu 2005, table 2.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minidsms.cql.catalog import AggregateDef
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
    row_words,
)
from minidsms.kernels import aggregation as kernels
from minidsms.kernels.arrays import normal
from minidsms.operators.operator import Description, Operator
from minidsms.queues import Queue
from minidsms.synopses.group_state import (
    CountState,
    DistinctValues,
    FloatSumState,
    IntegerSumState,
    Run,
    Shown,
    VariationState,
    Workspace,
)
from minidsms.synopses.key_table import KeyTable, words_width
from minidsms.synopses.ordered_values import OrderedValues
from minidsms.synopses.user_states import Texts, UserStates


@dataclass(frozen=True)
class AggregateSpec:
    """One aggregate over the operator's input columns.

    function: as in `bound.AggregateCall`.  arg: an input column, None for COUNT(*).  label: its text, for failures
    and EXPLAIN. user: the definition of a user aggregate, whose arguments are the input columns `args`.
    """

    function: str
    arg: int | None
    result_type: Type
    arg_type: Type = Type.NULL
    distinct: bool = False
    label: str = ""
    user: AggregateDef | None = None
    args: tuple[int, ...] = ()

    def __str__(self) -> str:
        inside = "*" if self.arg is None else f"{'DISTINCT ' if self.distinct else ''}#{self.arg}"
        return self.label or f"{self.function.upper()}({inside})"


_SAME_IF_DISTINCT = ("min", "max", "first", "last")

Accumulator = CountState | IntegerSumState | FloatSumState | VariationState | OrderedValues
State = Accumulator | DistinctValues | UserStates | Shown


def accumulator(spec: AggregateSpec, is_fifo: bool, texts: Texts | None) -> Accumulator:
    """The state a built-in aggregate with an argument keeps per group."""
    is_float = spec.arg_type is Type.FLOAT
    match spec.function:
        case "count":
            return CountState()
        case "sum" | "avg":
            return FloatSumState(spec.function == "avg") if is_float else IntegerSumState(spec.function == "avg")
        case "variance" | "stddev":
            return VariationState(spec.function == "stddev", spec.arg_type)
        case "min" | "max" | "first" | "last":
            by_arrival = spec.function in ("first", "last")
            largest = spec.function in ("max", "last")
            return OrderedValues(
                spec.arg_type, largest, by_arrival, is_fifo, texts.ranks if texts is not None else None
            )
    raise AssertionError(f"no aggregate {spec.function!r}")


class GroupStates:
    """The synopsis of an aggregation: the groups' keys, the rows put out last, and every aggregate's state.

    key_types: empty for the one group of a query without GROUP BY.  start: the instant from which that group exists,
    MAX_INSTANT as long as it is not known.
    """

    def __init__(
        self,
        key_types: tuple[Type, ...],
        calls: Sequence[AggregateSpec],
        is_fifo: bool,
        texts: Texts | None,
        start: int = MIN_INSTANT,
    ) -> None:
        text = [i for i, t in enumerate(key_types) if t is Type.TEXT]
        self.table = KeyTable(words_width(len(key_types)), text) if key_types else None
        self.shown = Shown(tuple(c.result_type for c in calls))
        self.accumulators: list[Accumulator | None] = [
            None if c.user is not None or c.arg is None else accumulator(c, is_fifo, texts) for c in calls
        ]
        self.distinct = [
            DistinctValues(c.arg_type) if c.distinct and c.function not in _SAME_IF_DISTINCT else None for c in calls
        ]
        self.user = [None if c.user is None else UserStates(c.user, texts) for c in calls]
        self.start = start
        self._resize()

    def __len__(self) -> int:
        return 1 if self.table is None else len(self.table)

    @property
    def capacity(self) -> int:
        """Every group's id is below it."""
        return 1 if self.table is None else self.table.capacity

    def states(self) -> Iterator[tuple[str, State]]:
        """All per-group states, each under its own name."""
        yield "shown", self.shown
        for kind, states in (("state", self.accumulators), ("distinct", self.distinct), ("user", self.user)):
            for j, state in enumerate(states):
                if state is not None:
                    yield f"{kind}{j}", state

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held."""
        return sum(state.nbytes for _, state in self.states()) + (0 if self.table is None else self.table.nbytes)

    def acquire(self, keys: Sequence[Column], n: int) -> Int64Array:
        """The group of each of n elements."""
        if self.table is None:
            return np.zeros(n, np.int64)
        ids = self.table.acquire(row_words(keys))
        self._resize()
        return ids

    def forget(self, ids: Int64Array) -> None:
        """Free those of these groups that have no rows, and memory if most of it is free."""
        for values in self.accumulators:
            if isinstance(values, OrderedValues):
                values.settle(len(ids))
        if self.table is None:
            return
        self.table.release(ids[self.shown.words[ids, kernels.ROWS] == 0])
        kept = self.table.compact()
        if kept is not None:
            for _, state in self.states():
                state.renumber(kept, self.capacity)

    def _resize(self) -> None:
        if len(self.shown.words) < self.capacity:
            for _, state in self.states():
                state.resize(self.capacity)

    def arrays(self) -> dict[str, AnyArray]:
        """The state, groups in the order of their ids."""
        live = np.zeros(1, np.int64) if self.table is None else self.table.live()
        result: dict[str, AnyArray] = {"start": np.array([self.start], np.int64)}
        if self.table is not None:
            result |= self.table.arrays()
        for name, state in self.states():
            result |= {f"{name}.{key}": array for key, array in state.arrays(live).items()}
        return result

    def restore(self, arrays: dict[str, Any]) -> None:
        """Take a state back."""
        self.start = int(arrays["start"][0])
        if self.table is not None:
            self.table.restore({"keys": arrays["keys"]})
        for name, state in self.states():
            prefix = f"{name}."
            own = {key[len(prefix) :]: array for key, array in arrays.items() if key.startswith(prefix)}
            state.restore(own, self.capacity)

    def live_codes(self) -> Iterable[Int64Array]:
        """The TEXT codes held."""
        if self.table is not None:
            yield from self.table.live_codes()
        for _, state in self.states():
            yield from state.live_codes()


class Aggregate(Operator):
    """Groups by the input columns `keys` and computes `calls`; output: the keys, then the results.

    is_global: no GROUP BY; one row from the instant of `start`'s single element on (R3), rows or no rows, and none
    before; without a start queue, from the first element on.  input_fifo: deletions come in the order of
    insertions.  texts: the dictionary, for MIN and MAX of TEXT and for user aggregates over TEXT.
    """

    name = "Aggregate"

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
    ) -> None:
        assert not (is_global and keys), "the one group has no keys"
        self._key_schema = Schema(tuple(input.schema[i] for i in keys))
        results = Schema(tuple(Field(str(c), c.result_type) for c in calls))
        super().__init__([input] if start is None else [input, start], schema or self._key_schema + results)
        self._keys = tuple(keys)
        self._calls = tuple(calls)
        self._is_global = is_global
        self._is_star = np.array([c.arg is None and c.user is None for c in calls], np.bool_)
        begin = MAX_INSTANT if start is not None and is_global else MIN_INSTANT
        self.groups = GroupStates(self._key_schema.types, calls, input_fifo, texts, begin)
        self._meta = np.zeros(3, np.int64)
        self._workspace = Workspace(len(calls))

    # -------------------------------------------------------------------------------------------------- the work

    def process(self, batches: Sequence[Batch | None], until: int) -> Iterator[Batch]:
        batch = batches[0]
        opening = batches[1] if len(batches) > 1 else None
        if opening is not None and self.groups.start == MAX_INSTANT:
            self.groups.start = int(opening.ts[0])
            batch = self._with_opening(batch)
        if batch is None:
            return
        n = len(batch)
        ids = self.groups.acquire([batch.column(i) for i in self._keys], n)
        sign = normal(batch.signs)
        run = self._workspace.run(batch, normal(batch.ts), sign, ids)
        for j in range(len(self._calls)):
            self._advance(run, j)
        result = self._close(run)
        self.groups.forget(ids)
        if result is not None:
            yield result

    def _with_opening(self, batch: Batch | None) -> Batch:
        """The batch with an element that counts nowhere (sign 0) at the instant the one row begins to exist."""
        schema = self.inputs[0].schema
        columns = [Column.nulls(1, t) for t in schema.types]
        opening = Batch(np.array([self.groups.start], np.int64), np.zeros(1, np.int8), columns, np.zeros(1, np.int64))
        if batch is None:
            return opening
        at = int(np.searchsorted(batch.ts, self.groups.start))
        whole = [Batch(b.ts, b.signs, b.columns, b.seq) for b in (batch.slice(0, at), batch.slice(at, len(batch)))]
        if batch.seq is None:
            opening.seq = None
        return Batch.concat([b for b in (whole[0], opening, whole[1]) if len(b)])

    def _advance(self, run: Run, j: int) -> None:
        """Move aggregate j's state through the batch."""
        call = self._calls[j]
        user = self.groups.user[j]
        if user is not None:
            failed = user.advance(run, [run.batch.column(i) for i in call.args], j)
            if failed is not None:
                self.fail(*failed)
            return
        state = self.groups.accumulators[j]
        if state is None:
            return
        assert call.arg is not None
        column = run.batch.column(call.arg)
        weight = _weight(run.sign, column)
        distinct = self.groups.distinct[j]
        if distinct is not None:
            weight = distinct.weigh(run, weight, column)
        state.advance(run, weight, column, j)

    def _close(self, run: Run) -> Batch | None:
        """The rows the batch's instants change."""
        work = self._workspace
        m = kernels.emit(
            run.ts,
            run.sign,
            run.ids,
            run.results,
            run.status,
            self._is_star,
            self.groups.shown.words,
            self._is_global,
            self.groups.start,
            self._meta,
            work.touched,
            work.out_ts,
            work.out_sign,
            work.out_ids,
            work.out_words,
            work.out_status,
        )
        if self._meta[1]:
            call = self._calls[int(self._meta[1]) - 1]
            self.fail(int(run.ts[self._meta[2]]), f"{call} overflows {call.result_type}")
        if not m:
            return None
        columns: list[Column] = []
        if self.groups.table is not None:
            columns = self.groups.table.columns(work.out_ids[:m], self._key_schema)
        for j, call in enumerate(self._calls):
            status = work.out_status[j, :m]
            valid = None if status.all() else status != kernels.NULL
            columns.append(Column.from_words(work.out_words[j, :m].copy(), valid, call.result_type))
        return Batch(work.out_ts[:m].copy(), work.out_sign[:m].copy(), columns)

    # ------------------------------------------------------------------------------------------------- for others

    def describe(self) -> Description:
        keys = ", ".join(field.name for field in self._key_schema)
        calls = ", ".join(str(call) for call in self._calls)
        detail = f"by {keys}: {calls}" if keys else calls
        return Description(self.name, detail, {"groups": len(self.groups), "bytes": self.groups.nbytes})

    def synopses(self) -> tuple[Any, ...]:
        return (self.groups,)


def _weight(sign: Int8Array, column: Column) -> Int8Array:
    """The signs where the value is not NULL, else 0."""
    if column.valid is None:
        return sign
    return sign * column.valid.astype(np.int8)
