"""Filters of a condition that one call of a kernel runs one after the other.

A call costs some microseconds of Python, and behind each a thread waits for the interpreter's lock. What a program
computes and what tests a column are run together, in any order that is asked for; what is neither, such as a function
of the user, or a comparison of texts, is called between them.

Invariant: what comes out, and how many rows reach each place, is what the filters give one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from minidsms.elements import Int64Array
from minidsms.expressions.programs import NO_STATES, Program, Programmed, Runner, failed_among
from minidsms.expressions.value import Frame

if TYPE_CHECKING:
    from minidsms.expressions.filter_tests import ValueTest

FROM = 32
"""Rows for which one call takes less than some that may end early."""
MOST_ORDERS = 64
"""Orders that are remembered."""


class Part(NamedTuple):
    """What a filter asks: a test of a column, or else what is programmed."""

    programmed: Programmed
    column: int | None
    test: ValueTest


Runs = Sequence["Int64Array | None"]
"""By place of an order, the filters from there on that are run together; None where one is called by itself."""


@dataclass(frozen=True)
class Table:
    """The filters as the kernel reads them. programs: of each, None of a test, and of what is called by itself.
    together: what is not.
    """

    program: Program
    programs: tuple[Program | None, ...]
    together: tuple[bool, ...]
    known: dict[tuple[int, ...], Runs]
    """By order."""

    def runs(self, order: Sequence[int]) -> Runs:
        """What to run together of an order."""
        order = tuple(order)
        runs = self.known.get(order)
        if runs is None:
            if len(self.known) >= MOST_ORDERS:
                self.known.clear()
            runs = self.known[order] = _runs(order, self.together)
        return runs


class JointProgram:
    """parts: by number of the filter, None of one that must be called by itself."""

    def __init__(self, parts: Sequence[Part | None]) -> None:
        self._parts = tuple(parts)
        self._runner = Runner(next(part.programmed.compilation for part in parts if part is not None))
        self._table: Table | None = None

    @classmethod
    def of(cls, parts: Sequence[Part | None]) -> JointProgram | None:
        """None where there are no two to be run together."""
        return cls(parts) if len(parts) - parts.count(None) > 1 else None

    def table(self, n: int, use_kernels: bool) -> Table | None:
        """The filters, to be run on n rows; None where the kernel is not there."""
        if not self._runner.is_ready(n, use_kernels):
            return None
        return self._table or self._written()

    def narrow(
        self, table: Table, run: Int64Array, frame: Frame, rows: Int64Array | None
    ) -> tuple[list[int], Int64Array | None, Int64Array | None]:
        """(how many rows each of the filters keeps, what the last one does, those on which that fails or None). It ends
        where no row is left or one has failed; and before a filter that must be called by itself on these rows.
        """
        n = frame.n if rows is None else len(rows)
        out = np.empty((2, n), np.int64)
        done, (*counts, at) = self._runner.run(table.program, run, frame, rows, out, NO_STATES)
        del counts[done:]
        last = counts[-1]
        if last >= 0:
            return counts, out[at, :last], None
        if last >= -1 - n:
            kept, failed = failed_among(out[at, : -1 - last])
            return [*counts[:-1], len(kept)], kept, failed
        del counts[-1]
        return counts, out[at, : counts[-1]] if counts else rows, None

    def called(self, number: int) -> None:
        """A filter that is one of several in a run was called by itself: its program may be another one since."""
        table, part = self._table, self._parts[number]
        if table is not None and part is not None and table.programs[number] not in (None, part.programmed.program()):
            self._table = None

    def _written(self) -> Table:
        from minidsms.kernels.expressions import COLUMN, FILTER_WORDS, FIRST, LEFT, OPERATION, STOP, TRUTHS

        filters = np.zeros((len(self._parts), FILTER_WORDS), np.int64)
        columns: dict[int, int] = {}
        steps: list[Int64Array] = []
        programs: list[Program | None] = []
        together = []
        at = registers = 0
        held: list[object] = []

        for row, part in zip(filters, self._parts):
            words = None if part is None or part.column is None else part.test.words()
            program = None if part is None or words is not None else part.programmed.program()
            programs.append(program)
            together.append(words is not None or program is not None)
            if words is not None:
                assert part is not None and part.column is not None
                kind, *asked = words
                row[:] = kind, columns.setdefault(part.column, len(columns)), *asked
            elif program is not None:
                its = program.steps.copy()
                reads = (its[:, OPERATION] == COLUMN) | (its[:, OPERATION] == TRUTHS)
                places = [columns.setdefault(column, len(columns)) for column in program.columns]
                its[reads, LEFT] = np.array(places, np.int64)[its[reads, LEFT]]
                row[:] = program.filters[0]
                row[FIRST : STOP + 1] += at
                steps.append(its)
                held += program.held
                at, registers = at + len(its), max(registers, program.registers)
        joined = np.concatenate(steps) if steps else np.zeros((0, 0), np.int64)
        whole = Program(joined, filters, registers, tuple(columns), tuple(held))
        table = self._table = Table(whole, tuple(programs), tuple(together), {})
        return table


def _runs(order: Sequence[int], together: Sequence[bool]) -> Runs:
    runs: list[Any] = [None] * len(order)
    stop = len(order)
    for place in reversed(range(len(order))):
        if not together[order[place]]:
            stop = place
        elif stop - place > 1:
            runs[place] = np.array(order[place:stop], np.int64)
    return runs
