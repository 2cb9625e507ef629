"""Expressions as programs: one call of a kernel computes them, block by block, in place of numpy's one for each.

A program is written (`program_writer`) when enough rows have come to load the kernel. Whatever computes expressions
tries the whole as one; what is more than a program can do is computed by numpy, and its parts are tried in turn.

Invariant: a program gives what numpy's functions give, value, NULL or failure (docs/semantics R4); these serve until
the kernel's code is there, which the second process compiles, and with `SET compilation = 'off'`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from minidsms.cql import bound
from minidsms.elements import Int8Array, Int64Array, Type
from minidsms.expressions.value import KERNELS_FROM, Frame, Value
from minidsms.machine_code.compile_time import COMPILED
from minidsms.values.dictionary import TextDictionary

if TYPE_CHECKING:
    from minidsms.machine_code.templates import Form

BLOCK = 512
"""Rows computed at a time: 4 KB a register."""

LINE = 8
"""Words of a line of the cache."""

CALL_ROWS = 16
"""Rows that take numpy as long as what each of its calls takes beside."""

BESIDE: Callable[[], object] = partial(str, "auto")
"""`compilation` where nobody sets it."""

MOST_FAR = 16
"""Calls that met integers of more than 32 bits, from which on all are taken to."""

NO_STATES = np.zeros((0, 0), np.int8)
_NO_ROWS = np.zeros(0, np.int64)
_NO_MASK = np.zeros(0, np.bool_)
_ONLY = np.zeros(1, np.int64)
"""The order of one filter."""


@dataclass(frozen=True, eq=False)
class Program:
    """steps, filters: as the kernel reads them.  columns: that it reads, by their numbers in it.  held: what keeps the
    codes of its texts from being given away.
    """

    steps: Int64Array
    filters: Int64Array
    registers: int
    columns: tuple[int, ...]
    held: tuple[object, ...]


class Runner:
    """The kernel of programs, for one who waits for it: it is loaded when enough rows have come, and compiled beside.

    compilation: gives what is set now.
    """

    def __init__(self, compilation: Callable[[], object]) -> None:
        self._compilation = compilation
        self._rows = 0
        self._form: Form | None = None
        self._run: Callable[..., int] | None = None
        self.kernels: Any = None
        """Their module, once it is loaded: to import it in each call takes longer than to read it here."""
        self._rooms: list[tuple[Any, Any, Int64Array]] = []
        """Registers, the same memory as floats, and what is reached, that no thread is using."""

    def is_ready(self, n: int, use_kernels: bool = False) -> bool:
        """Whether the rows until now, with n more, are worth loading the kernel, and its code is there.  use_kernels:
        kernels are loaded, whatever has come here.
        """
        asked = self._compilation()
        if asked == "off":
            return False
        if self._run is not None:
            return True
        if self._form is None:
            self._rows += max(n, CALL_ROWS)
            is_loaded = use_kernels or asked == "at once" or "minidsms.kernels.expressions" in sys.modules
            if self._rows < KERNELS_FROM and not is_loaded:
                return False
            with COMPILED.counted():
                from minidsms.kernels import expressions
            self.kernels, self._form = expressions, expressions.run_program.form()
        elif self._form.has_failed and asked != "at once":
            return False
        self._run = self._form.compiled() if asked == "at once" else self._form.code()
        if self._run is None:
            # Until the code is there, nobody needs the program: numpy asks for one of each part of the expression, too.
            self._form.compile_beside()
        return self._run is not None

    def run(
        self,
        program: Program,
        order: Int64Array,
        frame: Frame,
        rows: Int64Array | None,
        out: Int64Array,
        states: Int8Array,
    ) -> tuple[int, list[int]]:
        """What the kernel says, which is there, and what it writes to `reached`."""
        run = self._run
        assert run is not None
        arrays: tuple[Any, ...] = ()
        for column in map(frame.reader(), program.columns):
            arrays += (column.values, _NO_MASK if column.valid is None else column.valid)
        height, width = 2 * program.registers + 1, min(out.shape[1], BLOCK)
        try:
            words, floats, reached = self._rooms.pop()
        except IndexError:  # the first time, or another thread is at work
            words = floats = NO_STATES
            reached = _NO_ROWS
        if len(words) != height or words.shape[1] < width:
            words = _room(height, min(BLOCK, 1 << (width - 1).bit_length()))
            floats = words.view(np.float64)
        if len(reached) != len(order) + 1:
            reached = np.empty(len(order) + 1, np.int64)
        rows = _NO_ROWS if rows is None else rows
        done = run(
            program.filters, order, program.steps, id(arrays), frame.n, rows, words, floats, out, states, reached
        )
        told = reached.tolist()
        self._rooms.append((words, floats, reached))
        return done, told


class Programmed:
    """Expressions with a program of those that can have one, once it is written.  is_condition: the only one is a
    condition, and its rows are kept.  compilation: gives what is set now.
    """

    def __init__(
        self,
        exprs: Sequence[bound.Expr],
        dictionary: TextDictionary,
        is_condition: bool = False,
        compilation: Callable[[], object] = BESIDE,
    ) -> None:
        self.compilation = compilation
        self._exprs = tuple(exprs)
        self._dictionary = dictionary
        self._is_condition = is_condition
        self._runner = Runner(compilation)
        self._is_impossible = False
        self._program: Program | None = None
        self._exact: Program | None = None
        """For any integers, once it was wanted."""
        self._far = 0
        self._places: tuple[int, ...] = ()
        """Which expressions the program computes, ..."""
        self._types: tuple[Type, ...] = ()
        """... and their types."""

    def keep(
        self, frame: Frame, rows: Int64Array | None, use_kernels: bool = True
    ) -> tuple[Int64Array, Int64Array | None] | None:
        """(the rows on which the condition is TRUE or fails, those on which it fails or None), both ascending; None
        where numpy must say.  rows: those in question, None for all.  use_kernels: kernels are loaded, whatever has
        come here.
        """
        n = frame.n if rows is None else len(rows)
        if not self._can_run(n, use_kernels):
            return None
        out = np.empty((1, n), np.int64)
        count = self._call(frame, rows, out, NO_STATES)
        if count is None:
            return None
        return (out[0, :count], None) if count >= 0 else failed_among(out[0, : -1 - count])

    def values(self, frame: Frame) -> Sequence[Value | None] | None:
        """Of each expression, of n rows; None where numpy must say."""
        if not self._can_run(frame.n):
            return None
        shape = len(self._types), frame.n
        out, states = np.empty(shape, np.int64), np.empty(shape, np.int8)
        has_states = self._call(frame, None, out, states)
        if has_states is None:
            return None
        values = [Value(_typed(words, type_)) for words, type_ in zip(out, self._types)]
        if has_states:
            for value, its in zip(values, states):
                self._set_states(value, its)
        if len(values) == len(self._exprs):
            return values
        found: list[Value | None] = [None] * len(self._exprs)
        for place, value in zip(self._places, values):
            found[place] = value
        return found

    def value(self, frame: Frame) -> Value | None:
        """Of the only expression."""
        found = None if self._is_impossible else self.values(frame)
        return None if found is None else found[0]

    def program(self) -> Program | None:
        """What is run first; None where there is none."""
        if self._program is None and not self._is_impossible:
            self._write()
        return self._program

    def _call(self, frame: Frame, rows: Int64Array | None, out: Int64Array, states: Int8Array) -> int | None:
        """What the kernel says; None where columns do not lie as it reads them, or no rows are in question."""
        least = -1 - out.shape[1]
        program: Program | None = self._program
        if least == -1 or program is None:
            return None
        run = self._runner.run
        found = run(program, _ONLY, frame, rows, out, states)[1][0]
        if found < least and found == self._runner.kernels.FAR:
            program = self._for_far()
            if program is None:
                return None
            found = run(program, _ONLY, frame, rows, out, states)[1][0]
        return None if found < least else found

    def _set_states(self, value: Value, states: Int8Array) -> None:
        kernels, told = self._runner.kernels, states.tobytes()
        has_failed = kernels.FAILED in told
        if has_failed or kernels.NULL in told:
            value.valid = np.logical_not(states)  # FINE is 0
            value.failed = states == kernels.FAILED if has_failed else None

    def _for_far(self) -> Program | None:
        """The program for any integers, which takes the place of one for narrow ones that was called in vain; None
        where it needs too many registers.
        """
        from minidsms.expressions.program_writer import written

        if self._exact is None:
            self._exact, _ = written(self._exprs, self._is_condition, self._dictionary)
        self._far += 1
        if self._far >= MOST_FAR:  # two threads may have counted
            self._program, self._is_impossible = self._exact, self._exact is None
        return self._exact

    def _can_run(self, n: int, use_kernels: bool = False) -> bool:
        """Whether there is a program, and the kernel."""
        if self._is_impossible or not self._runner.is_ready(n, use_kernels):
            return False
        return self._program is not None or self.program() is not None

    def _write(self) -> None:
        """Write the program, if there is one."""
        with COMPILED.counted():
            from minidsms.expressions.program_writer import written
        program, self._places = written(self._exprs, self._is_condition, self._dictionary, is_near=True)
        if program is None:  # it may need fewer registers
            program, self._places = written(self._exprs, self._is_condition, self._dictionary)
        self._types = tuple(self._exprs[place].type for place in self._places)
        # Another thread calls it as soon as it stands here.
        self._program, self._is_impossible = program, program is None


def failed_among(kept: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Rows as a program keeps them where some have failed, and those."""
    has_failed = kept < 0
    kept[has_failed] = ~kept[has_failed]
    return kept, kept[has_failed]


def _room(height: int, width: int) -> Int64Array:
    """A table that begins with a line of the cache: vectors of a line's length are read and written in one."""
    room = np.empty(height * width + LINE, np.int64)
    start = -(room.ctypes.data // room.itemsize) % LINE
    return room[start : start + height * width].reshape(height, width)


def _typed(words: Int64Array, type_: Type) -> Any:
    if type_ is Type.FLOAT:
        return words.view(np.float64)
    return words.astype(np.bool_) if type_ is Type.BOOLEAN else words
