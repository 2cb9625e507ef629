"""States that are Python objects, one per group, with add, remove and result: user aggregates, and those of the table
that no kernel keeps.

Invariant: an object exists for every group that has a row whose values are not NULL, and has seen exactly the rows
present come. An exception of its methods, or a result that is not of the declared type, ends the query at that
instant (docs/semantics R4).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice, repeat
from operator import ne
from typing import Any, Protocol

import numpy as np

from minidsms.aggregates.aggregate import State
from minidsms.cql.errors import MemoryLimitError, TimeLimitError
from minidsms.elements import AnyArray, Column, Int64Array, Type
from minidsms.expressions.failures import told
from minidsms.kernels.aggregation import NULL, VALUE
from minidsms.process.interrupts import breakable, let_handlers_exit
from minidsms.synopses.group_state import Run
from minidsms.values.coded import fitted, shown


class Texts(Protocol):
    """What aggregation asks of the dictionary (`dictionary.TextDictionary`)."""

    def ranks(self, codes: Int64Array) -> Int64Array: ...

    def encode_as(self, texts: Sequence[str | None], type_: Type) -> Column: ...

    def digits_column(self, digits: Sequence[int | None]) -> Column: ...

    def decode(self, column: Column) -> list[str | None]: ...

    def column(self, values: Sequence[Any], type_: Type) -> Column: ...

    def values(self, column: Column, type_: Type) -> list[Any]: ...


_PART = 256
"""Answers that are objects at a time: lists may take more memory than the texts they become."""
_LOOKS = 7
"""Answers between two looks at the clock, less one."""
ROW_BYTES = 100
"""About what a state of the table takes for a row: a tuple of values and its place in an order."""


@dataclass(frozen=True)
class ObjectAggregate:
    """An aggregate whose states are objects.

    values: a row counts where the first `values` of its arguments are not NULL.  distinct: equal rows count once.
    by_arrival: the last thing a state is given of a row is its arrival number.  row_nbytes: what a state keeps of a
    row, as far as it is known.  most_rows: so many rows, at most, are kept for a group, or what takes as much.
    """

    name: str
    factory: Callable[[], State]
    arg_types: tuple[Type, ...]
    type: Type
    values: int
    distinct: bool = False
    by_arrival: bool = False
    row_nbytes: int = 0
    most_rows: int | None = None


class DistinctRows:
    """A state that is given equal rows once."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._counts: Counter[tuple[Any, ...]] = Counter()

    def add(self, *row: Any) -> None:
        self._counts[row] += 1
        if self._counts[row] == 1:
            self._state.add(*row)

    def remove(self, *row: Any) -> None:
        self._counts[row] -= 1
        if not self._counts[row]:
            del self._counts[row]
            self._state.remove(*row)

    def result(self) -> Any:
        return self._state.result()


class ShownRows:
    """A user's state that is given values as rows show them, and gives such a result. read: to one as it is stored."""

    def __init__(self, factory: Callable[[], State], types: Sequence[Type], read: Callable[[Any], Any] | None) -> None:
        self._state = factory()
        self._types = types
        self._read = read

    def add(self, *row: Any) -> None:
        self._state.add(*map(shown, row, self._types))

    def remove(self, *row: Any) -> None:
        self._state.remove(*map(shown, row, self._types))

    def result(self) -> Any:
        result = self._state.result()
        return result if result is None or self._read is None else self._read(result)


class ObjectStates:
    """The state objects of one aggregate by group, with the number of rows each has seen.

    is_fifo: deletions come in the order of insertions, so that arrivals can be numbered here.
    """

    def __init__(self, definition: ObjectAggregate, texts: Texts | None, is_fifo: bool = False) -> None:
        self._definition = definition
        self._texts = texts
        self._states: dict[int, list[Any]] = {}
        self._is_fifo = is_fifo
        self._rows = 0
        self._come = self._gone = 0
        type_ = definition.type
        self._exact = {Type.TEXT: str, Type.BOOLEAN: bool}.get(type_, tuple if type_.is_nested else None)
        """The class of results that are taken as they are; None where each is looked at."""

    @property
    def arg_types(self) -> tuple[Type, ...]:
        return self._definition.arg_types

    @property
    def nbytes(self) -> int:
        """About what the rows kept take; of a user's objects nothing is known."""
        most = self._definition.most_rows
        rows = self._rows if most is None else min(self._rows, most * len(self._states))
        return rows * self._definition.row_nbytes

    def __len__(self) -> int:
        return len(self._states)

    def advance(
        self, run: Run, columns: Sequence[Column], j: int, claim: Callable[[int], None]
    ) -> tuple[int, str] | None:
        """Take a batch in; answers go to column j of the run at the last element of each group and instant.

        Returns (instant, reason) if there is no answer from an instant on.  claim: as `Operator.claim`; asked before
        every answer whether there is time for it.
        """
        values = [self._python_values(c, t) for c, t in zip(columns, self._definition.arg_types)]
        if self._definition.by_arrival:
            values.append(self._arrivals(run))
        n, sign = len(run.ids), run.sign
        results, status = run.results[:, j], run.status[:, j]
        for column in columns[: self._definition.values]:
            if column.valid is not None:
                sign = np.where(column.valid, sign, 0)
        rows = zip(*values) if values else repeat((), n)
        results[:], status[:] = 0, NULL
        ts = run.ts.tolist()
        elements = zip(rows, run.ids.tolist(), sign.tolist(), [*map(ne, ts, ts[1:]), True])
        last: dict[int, int] = {}
        for begin in range(0, n, _PART):
            claim(0)
            at, answers, failed = self._answers(islice(elements, _PART), begin, last, claim)
            if len(answers) == n:  # at each element, in their order
                results[:], status[:] = self._column(answers).words(), VALUE
            elif answers:
                results[at], status[at] = self._column(answers).words(), VALUE
            if failed is not None:
                i, error = failed
                return ts[i], f"{self._definition.name}: {told(error)}"
        return None

    def _answers(
        self,
        elements: Iterable[tuple[tuple[Any, ...], int, int, bool]],
        begin: int,
        last: dict[int, int],
        claim: Callable[[int], None],
    ) -> tuple[list[int], list[Any], tuple[int, BaseException] | None]:
        """Take elements in, (values, group, sign, whether they close their instant), the first of which is number
        begin of the batch: numbers of elements, and the answers at them; (element, exception) that ended it.

        last: by group, the last element of the instant that is not closed.
        """
        states, exact = self._states, self._exact
        at: list[int] = []
        answers: list[Any] = []
        i = begin
        with breakable:
            try:
                for i, (row, group, sign, closes) in enumerate(elements, begin):
                    if sign:
                        self._move(group, sign, row)
                    last[group] = i
                    if not closes:
                        continue
                    for group, place in last.items():
                        if not len(answers) & _LOOKS:
                            claim(0)
                        entry = states.get(group)
                        answer = None if entry is None else entry[0].result()
                        if answer is not None and type(answer) is not exact:
                            answer = self._fitted(answer)
                        if answer is not None:
                            at.append(place)
                            answers.append(answer)
                    last.clear()
            except (MemoryLimitError, TimeLimitError):
                raise
            except (Exception, SystemExit) as error:
                let_handlers_exit(error)
                return at, answers, (i, error)
        return at, answers, None

    def _move(self, group: int, sign: int, row: tuple[Any, ...]) -> None:
        entry = self._states.get(group)
        if entry is None:
            made = self._definition.factory()
            entry = self._states[group] = [DistinctRows(made) if self._definition.distinct else made, 0]
        entry[1] += sign
        self._rows += sign
        if entry[1] == 0:
            del self._states[group]
        elif sign > 0:
            entry[0].add(*row)
        else:
            entry[0].remove(*row)

    def _arrivals(self, run: Run) -> list[int]:
        """The arrival numbers of a batch's rows."""
        if run.batch.seq is not None:
            numbers: list[int] = run.batch.seq.tolist()
            return numbers
        assert self._is_fifo, "the order of arrival needs arrival numbers unless deletions are FIFO"
        come, gone = np.cumsum(run.sign > 0), np.cumsum(run.sign < 0)
        numbers = np.where(run.sign > 0, self._come + come, self._gone + gone).tolist()
        self._come, self._gone = self._come + int(come[-1]), self._gone + int(gone[-1])
        return numbers

    def _fitted(self, result: Any) -> Any:
        """The result, not None, as one of the declared type; None for NULL."""
        match self._definition.type:
            case Type.BOOLEAN if isinstance(result, np.bool_):
                return bool(result)
            case Type.FLOAT if isinstance(result, int | float | np.integer | np.floating):
                return None if math.isnan(result) else float(result) + 0.0
            case Type.TEXT if isinstance(result, str):
                return result
            case nested if nested.is_nested and isinstance(result, tuple):
                return result
            case decimal if decimal.kind == "DECIMAL" and isinstance(result, Decimal):
                found = fitted(result, decimal)
                if found is None:
                    raise OverflowError(f"{result} is not of type {decimal}")
                return found
            case type_ if type_.dtype == np.int64 and not type_.is_coded and isinstance(result, int | np.integer):
                if isinstance(result, bool) or not -(2**63) <= result < 2**63:
                    raise OverflowError(f"{result!r} is not of type {self._definition.type}")
                return int(result)
        raise TypeError(f"{result!r} is not of type {self._definition.type}")

    def _column(self, answers: list[Any]) -> Column:
        if self._definition.type.is_coded:
            assert self._texts is not None
            return self._texts.column(answers, self._definition.type)
        return Column(np.array(answers, self._definition.type.dtype))

    def _python_values(self, column: Column, type_: Type) -> list[Any]:
        assert self._texts is not None
        return self._texts.values(column, type_)

    def resize(self, capacity: int) -> None:
        """A dict needs no room made."""

    def renumber(self, kept: Int64Array, capacity: int) -> None:
        """Group kept[i] is group i from now on."""
        self._states = {i: self._states[old] for i, old in enumerate(kept.tolist()) if old in self._states}

    def arrays(self, live: Int64Array) -> dict[str, AnyArray]:
        """Nothing: a user's objects have no form as arrays, and queries with them cannot be checkpointed."""
        return {}

    def restore(self, arrays: dict[str, AnyArray], capacity: int) -> None:
        """No groups."""
        self._states = {}

    def live_codes(self) -> Iterable[Int64Array]:
        """None: the objects were given texts, not codes."""
        return ()
