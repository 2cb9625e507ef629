"""Expressions over columns as programs, run over blocks of rows: what `minidsms.expressions.programs` compiles.

A program is a table of steps. A register is a row of `words`, as wide as a block: one value of each of its rows, an
integer, a truth value (0 or 1) or the bits of a float. A step fills one register from others, in a loop that the
compiler does with vectors; with some hundred rows the registers stay in the first-level cache. Loops read all that they
may need before they choose, without which there are no vectors.

    steps      CONSTANT 0 <- 3    COLUMN 1 <- a    MULTIPLY 2 <- 1, 0    LESS 3 <- 0, 2    KEEP 3
    words      register 0 .. 3, then a row with the states of each, FINE, NULL or FAILED; then one of FINE
    out        KEEP: the rows whose truth is 1.  STORE: a row of words per result

Most registers have neither NULLs nor failures: of these no states are written, and the last row, of FINE, is read in
their place. A value missing in a column, or a result that does not fit, gives a register states, and those computed
from it.

Invariant: a value that is not FINE has the word 0, and `to` is none of the registers that a step reads.
docs/semantics R4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minidsms.kernels.addresses import ITEMS, address_of, length_of
from minidsms.kernels.filtering import (
    AT,
    DENSE,
    EXACT,
    GATHERED,
    keep_float_range,
    keep_in_range,
    keep_members,
    mask_floats,
    mask_integers,
    range_of,
    write_rows,
)
from minidsms.machine_code import (
    Float64Table,
    Int8Table,
    Int64s,
    Int64Table,
    bits_set,
    byte_at,
    float64,
    floats_behind,
    helper,
    int32,
    int64,
    multiply_add,
    truths_behind,
    uint64,
    word_at,
    words_behind,
)
from minidsms.machine_code.templates import template

OPERATION, TO, LEFT, RIGHT, THIRD, FOURTH, FIFTH = range(7)
FINE, NULL, FAILED = range(3)
(
    CONSTANT, COLUMN, TRUTHS, NOTHING,
    ADD, SUBTRACT, MULTIPLY, DIVIDE, REMAINDER, NEGATE, ABSOLUTE, EQUAL, LESS, LESS_EQUAL,
    FLOAT_ADD, FLOAT_SUBTRACT, FLOAT_MULTIPLY, FLOAT_DIVIDE, FLOAT_NEGATE, FLOAT_ABSOLUTE, FLOAT_LESS,
    FLOAT_LESS_EQUAL, TO_FLOAT, NEAR, NEAR_LINEAR, NEAR_DIVIDE, NEAR_REMAINDER, WHOLE, NOT,
    AND, OR, IS_NULL, IS_DISTINCT, CHOOSE, FIRST_KNOWN, KEEP, STORE,
) = range(37)  # fmt: skip
"""Operations. LEFT of a CONSTANT is its word, of COLUMN (8 bytes a value) and TRUTHS (one) the number of the column; of
NOTHING all are NULL. From ADD to NOT a result is NULL or failed where an operand is; from AND on each has rules of its
own. CHOOSE takes RIGHT where LEFT is TRUE, else THIRD; FIRST_KNOWN RIGHT where LEFT is NULL.

NEAR takes an integer of 32 bits to a float, WHOLE a near one back. What lies between computes with floats that are
whole and at most 2**50, so exact, in vectors that processors have no such integers for: FLOAT_ADD and its like;
NEAR_LINEAR, LEFT times RIGHT plus THIRD; NEAR_DIVIDE and NEAR_REMAINDER, this by FOURTH, above 0, with its inverse in
FIFTH. All but LEFT are constants there. None of these gives -0.0, whose bits are not those of 0.
"""

KIND, COLUMN_OF, FIRST, AGAIN, STOP, NEGATED, FILTER_WORDS = range(7)
"""Columns of a table of filters."""
PROGRAM, INTEGERS, FLOATS, MEMBERS = range(4)
"""Kinds of filters."""
REFUSED = -(1 << 62)
"""A column is not a contiguous array with a value for each row, as wide as those of its type."""
FAR = REFUSED - 1
"""An integer does not have 32 bits where NEAR asks for one."""
SPAN = 1 << 31
"""NEAR takes integers from -SPAN up to SPAN."""
_TURNS, _TURNED = float(3 << 51), 0x4338000000000000
"""Added to a near float64, the first leaves the number in the bits behind the second."""
_BELOW_0 = 1 << 62
"""A bit of what `_compute` gives."""
_WORD = 64
_SPARSE = 16
"""One row in so many is few: reading all in order takes more."""


@helper
def _exact(operation: int, x: Any, y: Any) -> Any:
    """(value, state) of any two integers that are FINE."""
    value, is_bad = int64(0), False
    if operation == ADD:
        value = x + y
        is_bad = ((x ^ value) & (y ^ value)) < 0
    elif operation == SUBTRACT:
        value = x - y
        is_bad = ((x ^ y) & (x ^ value)) < 0
    elif operation == MULTIPLY:
        value = x * y
        is_bad = _is_off(value, x, y)
    elif operation in (NEGATE, ABSOLUTE):
        value = -x if operation == NEGATE or x < 0 else x
        is_bad = x == -x and x != 0
    elif y == 0:
        return int64(0), NULL
    elif operation == DIVIDE:
        value = -x if y == -1 else x // y
        is_bad = y == -1 and x == -x and x != 0
        if y != -1 and value < 0 and value * y != x:
            value += 1
    elif y != -1:
        value = x % y
        if value != 0 and (value ^ x) < 0:
            value -= y
    return (int64(0), FAILED) if is_bad else (value, FINE)


@helper(inline=True)
def _is_off(product: Any, x: Any, y: Any) -> Any:
    """Whether the product of two integers wrapped: then it is off by 2**64 and more, and floats by far less."""
    return abs(np.float64(product) - np.float64(x) * np.float64(y)) > 4e18


class _Block(NamedTuple):
    """n rows at a time.  base: the first of consecutive ones, -1 where there are those in question only.  rows: these;
    `asked` of them, from `first` on, are in the block.
    """

    rows: Int64s
    first: int
    base: int
    n: int
    asked: int


class _Operands(NamedTuple):
    """Registers that a step reads, and the rows with their states; of those behind the third there are no states."""

    a: int
    b: int
    c: int
    of_a: int
    of_b: int
    of_c: int
    d: int
    e: int


@helper
def _judge(words: Int64Table, floats: Float64Table, operation: int, to: int, read: Any, n: int, is_odd: bool) -> None:
    """The states of a step's results, and 0 for those that are not FINE.  is_odd: `_compute` gave less than 0."""
    a, b, _, left, right, third, _, _ = read
    its = (len(words) >> 1) + to
    if operation < AND:
        for i in range(n):
            words[its, i] = max(words[left, i], words[right, i])
        if is_odd and operation <= ABSOLUTE:
            for i in range(n):
                if words[its, i] == FINE:
                    words[to, i], words[its, i] = _exact(operation, words[a, i], words[b, i])
        elif is_odd:
            for i in range(n):
                if floats[to, i] != floats[to, i]:
                    words[its, i] = max(words[its, i], NULL)
    elif operation in (AND, OR):
        for i in range(n):
            x, y, of_x, of_y = words[a, i], words[b, i], words[left, i], words[right, i]
            is_known = ((x & y) != 0) | (of_x + x == FINE) | (of_y + y == FINE) if operation == AND else (x | y) != 0
            unknown = NULL if (of_x == NULL) | (of_y == NULL) else max(of_x, of_y)
            words[its, i] = FINE if is_known else unknown
    elif operation == IS_NULL:
        for i in range(n):
            words[to, i] = words[left, i] == NULL
            words[its, i] = FAILED if words[left, i] == FAILED else FINE
    elif operation == IS_DISTINCT:
        for i in range(n):
            words[to, i] |= words[left, i] != words[right, i]
            words[its, i] = FAILED if max(words[left, i], words[right, i]) == FAILED else FINE
    elif operation == CHOOSE:
        for i in range(n):
            x, y = words[right, i], words[third, i]
            chosen = x if words[a, i] != 0 else y
            words[its, i] = FAILED if words[left, i] == FAILED else chosen
    else:
        for i in range(n):
            x, y, of_x, of_y = words[a, i], words[b, i], words[left, i], words[right, i]
            words[to, i] = y if of_x == NULL else x
            words[its, i] = of_y if of_x == NULL else of_x
    for i in range(n):
        x = words[to, i]
        words[to, i] = x if words[its, i] == FINE else 0


@helper
def _read(
    words: Int64Table,
    operation: int,
    to: int,
    word: int,
    values: int,
    valid: int,
    block: _Block,
) -> Any:
    """Values and states of a source; negative where some are NULL.  word: of a CONSTANT.  values, valid: addresses,
    that of valid 0 where no value is NULL.
    """
    rows, first, base, n, _ = block
    states = (len(words) >> 1) + to
    if operation in (CONSTANT, NOTHING):
        for i in range(n):
            words[to, i] = word if operation == CONSTANT else 0
            words[states, i] = NULL
        return int64(0) if operation == CONSTANT else int64(-1)
    if operation == TRUTHS:
        for i in range(n):
            words[to, i] = byte_at(values, base + i if base >= 0 else rows[uint64(first + i)])
    elif base >= 0:
        for i in range(n):
            words[to, i] = word_at(values, base + i)
    else:
        for i in range(n):
            words[to, i] = word_at(values, rows[uint64(first + i)])
    odd = int64(0)
    if valid != 0:
        for i in range(n):
            state = int64(1) - byte_at(valid, base + i if base >= 0 else rows[uint64(first + i)])
            words[states, i] = state
            odd |= -state
    return odd


@helper
def _of_integers(words: Int64Table, operation: int, to: int, a: int, b: int, n: int) -> Any:
    """See `_compute`."""
    odd = int64(0)
    if operation == ADD:
        for i in range(n):
            x, y = words[a, i], words[b, i]
            words[to, i] = x + y
            odd |= (x ^ (x + y)) & (y ^ (x + y))
    elif operation == SUBTRACT:
        for i in range(n):
            x, y = words[a, i], words[b, i]
            words[to, i] = x - y
            odd |= (x ^ y) & (x ^ (x - y))
    elif operation == MULTIPLY:
        for i in range(n):
            x, y = words[a, i], words[b, i]
            words[to, i] = x * y
            odd |= -int64(_is_off(x * y, x, y))
    elif operation in (DIVIDE, REMAINDER):
        for i in range(n):
            x, y = words[a, i], words[b, i]
            value = int64(np.divide(np.float64(x), np.float64(y)))
            words[to, i] = value if operation == DIVIDE else x - value * y
            odd |= (x + EXACT) | (EXACT - 1 - x) | ((y - 1) & ~y)
    elif operation == NEGATE:
        for i in range(n):
            words[to, i] = -words[a, i]
            odd |= words[a, i] & -words[a, i]
    elif operation == ABSOLUTE:
        for i in range(n):
            words[to, i] = abs(words[a, i])
            odd |= abs(words[a, i])
    elif operation == EQUAL:
        for i in range(n):
            words[to, i] = words[a, i] == words[b, i]
    elif operation == LESS:
        for i in range(n):
            words[to, i] = words[a, i] < words[b, i]
    elif operation == LESS_EQUAL:
        for i in range(n):
            words[to, i] = words[a, i] <= words[b, i]
    return odd


@helper
def _of_floats(words: Int64Table, floats: Float64Table, operation: int, to: int, a: int, b: int, n: int) -> Any:
    """See `_compute`."""
    odd = int64(0)
    if operation == FLOAT_ADD:
        for i in range(n):
            x = floats[a, i] + floats[b, i] + 0.0
            floats[to, i] = x
            odd |= -int64(x != x)
    elif operation == FLOAT_SUBTRACT:
        for i in range(n):
            x = floats[a, i] - floats[b, i] + 0.0
            floats[to, i] = x
            odd |= -int64(x != x)
    elif operation == FLOAT_MULTIPLY:
        for i in range(n):
            x = floats[a, i] * floats[b, i] + 0.0
            floats[to, i] = x
            odd |= -int64(x != x)
    elif operation == FLOAT_DIVIDE:
        for i in range(n):
            x = np.divide(floats[a, i], floats[b, i]) + 0.0
            if floats[b, i] == 0.0:
                x = np.nan
            floats[to, i] = x
            odd |= -int64(x != x)
    elif operation == FLOAT_NEGATE:
        for i in range(n):
            floats[to, i] = 0.0 - floats[a, i]
    elif operation == FLOAT_ABSOLUTE:
        for i in range(n):
            floats[to, i] = abs(floats[a, i])
    elif operation == FLOAT_LESS:
        for i in range(n):
            words[to, i] = floats[a, i] < floats[b, i]
    elif operation == FLOAT_LESS_EQUAL:
        for i in range(n):
            words[to, i] = floats[a, i] <= floats[b, i]
    elif operation == TO_FLOAT:
        for i in range(n):
            floats[to, i] = words[a, i]
    return odd


@helper
def _of_near(
    words: Int64Table, floats: Float64Table, operation: int, to: int, read: Any, n: int, is_natural: bool
) -> Any:
    """See `_compute`.  is_natural: LEFT is nowhere below 0."""
    a, b, c, _, _, _, d, e = read
    odd = below = int64(0)
    if operation == NEAR:
        for i in range(n):
            x = words[a, i]
            floats[to, i] = float64(int32(x))
            odd |= (x + SPAN) | (SPAN - 1 - x)
            below |= x
        if below < 0:
            odd |= _BELOW_0
    elif operation == WHOLE:
        for i in range(n):
            floats[to, i] = floats[a, i] + _TURNS
        for i in range(n):
            words[to, i] = words[to, i] - _TURNED
    else:
        scale, shift = floats[b, 0], floats[c, 0]
        divisor, inverse = floats[d, 0], floats[e, 0]
        if not is_natural or scale < 0.0 or shift < 0.0:
            odd = _BELOW_0
        if operation == NEAR_LINEAR:
            for i in range(n):
                floats[to, i] = multiply_add(floats[a, i], scale, shift)
        elif odd == 0:
            for i in range(n):
                x = multiply_add(floats[a, i], scale, shift)
                # The nearest quotient leaves less than 0 where it is one too far from 0.
                quotient = multiply_add(x, inverse, _TURNS) - _TURNS
                rest = multiply_add(-quotient, divisor, x)
                if operation == NEAR_REMAINDER:
                    floats[to, i] = rest + divisor if rest < 0.0 else rest
                else:
                    floats[to, i] = quotient - 1.0 if rest < 0.0 else quotient
        else:
            for i in range(n):
                x = multiply_add(floats[a, i], scale, shift)
                quotient = multiply_add(x, inverse, _TURNS) - _TURNS
                rest = multiply_add(-quotient, divisor, x)
                is_over = rest * x < 0.0
                if operation == NEAR_REMAINDER:
                    step = divisor if x >= 0.0 else -divisor
                    floats[to, i] = rest + step if is_over else rest
                else:
                    step = -1.0 if x >= 0.0 else 1.0
                    floats[to, i] = quotient + step if is_over else quotient
    return odd


@helper
def _of_any(words: Int64Table, operation: int, to: int, a: int, b: int, c: int, n: int) -> None:
    """See `_compute`."""
    if operation == NOT:
        for i in range(n):
            words[to, i] = words[a, i] ^ 1
    elif operation == AND:
        for i in range(n):
            words[to, i] = words[a, i] & words[b, i]
    elif operation == OR:
        for i in range(n):
            words[to, i] = words[a, i] | words[b, i]
    elif operation == IS_DISTINCT:
        for i in range(n):
            words[to, i] = words[a, i] != words[b, i]
    elif operation == IS_NULL:
        for i in range(n):
            words[to, i] = 0
    elif operation == CHOOSE:
        for i in range(n):
            x, y = words[b, i], words[c, i]
            words[to, i] = x if words[a, i] != 0 else y
    elif operation == FIRST_KNOWN:
        for i in range(n):
            words[to, i] = words[a, i]


@helper
def _compute(
    words: Int64Table, floats: Float64Table, operation: int, to: int, read: Any, n: int, is_natural: bool
) -> Any:
    """A step's results as if all operands were FINE; negative where one is not what it should be, or may not be; with
    the bit _BELOW_0 from NEAR to NEAR_REMAINDER where one may be that.
    """
    a, b, c = read[:3]
    odd = int64(0)
    if operation < FLOAT_ADD:
        odd = _of_integers(words, operation, to, a, b, n)
    elif operation < NEAR:
        odd = _of_floats(words, floats, operation, to, a, b, n)
    elif operation < NOT:
        odd = _of_near(words, floats, operation, to, read, n, is_natural)
    else:
        _of_any(words, operation, to, a, b, c, n)
    return odd


@helper
def _keep(
    words: Int64Table,
    truths: int,
    states: int,
    block: _Block,
    out: Int64s,
    k: int,
) -> Any:
    """(rows written with those of a block, whether some have failed).  states: the row with those of the truths."""
    rows, first, base, n, count = block
    worst = FINE
    for i in range(n if states < len(words) - 1 else 0):
        worst = max(worst, words[states, i])
    if worst == FAILED:
        has_failed = False
        for i in range(count):
            row = first + i if len(rows) == 0 else rows[first + i]
            at = i if base < 0 else row - base
            failed = words[states, at] == FAILED
            out[k] = ~row if failed else row
            k += failed or words[truths, at] != 0
            has_failed |= failed
        return k, has_failed
    if base >= 0 and len(rows) != 0:
        for i in range(count):
            out[k] = rows[first + i]
            k += words[truths, uint64(rows[first + i] - base)]
        return k, False
    done = 0
    while done + _WORD <= n:
        word = uint64(0)
        for j in range(_WORD):
            word |= uint64(words[truths, done + j] != 0) << uint64(j)
        k = write_rows(word, rows, DENSE if base >= 0 else GATHERED, first + done, out, k)
        done += _WORD
    for i in range(done, n):
        out[k] = first + i if base >= 0 else rows[first + i]
        k += words[truths, i]
    return k, False


@helper
def _block(rows: Int64s, first: int, size: int, height: int) -> Any:
    """(base, n, count) of the next block: n consecutive rows from `base` on, `count` of which are in question, where
    these are about half of them or more: reading all in order costs less than reading some; else -1 and as many of
    those in question.
    """
    if len(rows) == 0:
        n = min(size, height - first)
        return first, n, n
    n = min(size, len(rows) - first)
    base = rows[first]
    if rows[first + (n >> 1)] - base >= n:
        return int64(-1), n, n
    count = n >> 1
    n = min(size, height - base)
    while first + count < len(rows) and rows[first + count] < base + n:
        count += 1
    return base, n, count


@helper
def _run_steps(
    steps: Int64Table,
    its: Int64s,
    arrays: int,
    height: int,
    rows: Int64s,
    words: Int64Table,
    floats: Float64Table,
    kept: Int64s,
    out: Int64Table,
    states: Int8Table,
) -> Any:
    """Run a program over all rows of the arrays, or some. its: of `run_program`'s filters.  Of KEEP how many rows were
    written to `kept`; -1 less that if some have failed, which are written as their complements. Of STORE whether states
    were written.
    """
    registers, fine = len(words) >> 1, len(words) - 1
    total = height if len(rows) == 0 else len(rows)
    k = first = 0
    has_failed = has_states = False
    words[fine] = FINE
    while first < total:
        base, n, count = _block(rows, first, words.shape[1], height)
        block = _Block(rows, first, base, n, count)
        stated = natural = int64(0)
        for s in range(its[FIRST] if first == 0 else its[AGAIN], its[STOP]):
            is_natural = False
            operation, to, a, b, c = steps[s, OPERATION], steps[s, TO], steps[s, LEFT], steps[s, RIGHT], steps[s, THIRD]
            if operation <= NOTHING:
                values = valid = int64(0)
                if operation in (COLUMN, TRUTHS):
                    values, valid = _column_of(arrays, a, height, 1 if operation == TRUTHS else 8)
                    if values == 0:
                        return REFUSED
                is_stated = _read(words, operation, to, a, values, valid, block) < 0
            else:
                of_a = registers + a if stated >> a & 1 else fine
                of_b = registers + b if stated >> b & 1 else fine
                of_c = registers + c if stated >> c & 1 else fine
                if operation == KEEP:
                    k, failed = _keep(words, a, of_a, block, kept, k)
                    has_failed |= failed
                    continue
                if operation == STORE:
                    for i in range(n):
                        out[to, first + i] = words[a, i]
                    if of_a != fine and not has_states:
                        has_states = True
                        states[:, : first + n] = FINE
                    if has_states:
                        for i in range(n):
                            states[to, first + i] = words[of_a, i]
                    continue
                read = _Operands(a, b, c, of_a, of_b, of_c, steps[s, FOURTH], steps[s, FIFTH])
                odd = _compute(words, floats, operation, to, read, n, (natural >> a & 1) != 0)
                is_natural = operation >= NEAR and operation <= NEAR_REMAINDER and odd & _BELOW_0 == 0
                if operation == NEAR and odd < 0:
                    return FAR
                is_stated = odd < 0 or min(of_a, of_b, of_c) < fine
                if is_stated:
                    _judge(words, floats, operation, to, read, n, odd < 0)
            stated = stated & ~(1 << to) | int64(is_stated) << to
            natural = natural & ~(1 << to) | int64(is_natural) << to
        first += count
    return -1 - k if has_failed else k + int64(has_states)


@helper
def _column_of(arrays: int, number: int, height: int, width: int) -> Any:
    """Where the values of a column stand, 0 where they are not to be read; and their bytes of validity, 0 where none is
    NULL.
    """
    values = address_of(word_at(arrays, ITEMS + 2 * number), height, width)
    known = word_at(arrays, ITEMS + 2 * number + 1)
    if length_of(known) == 0:
        return values, int64(0)
    valid = address_of(known, height, 1)
    return values if valid != 0 else int64(0), valid


@helper
def _keep_known(valid: int, height: int, rows: Int64s, out: Int64s) -> Any:
    """How many rows in question, written to `out`, are valid."""
    n = height if len(rows) == 0 else len(rows)
    k = 0
    for i in range(n):
        row = i if len(rows) == 0 else rows[uint64(i)]
        out[uint64(k)] = row
        k += byte_at(valid, row)
    return k


@helper
def _keep_by_test(its: Int64s, arrays: int, height: int, rows: Int64s, kept: Int64s) -> Any:
    """How many rows, written to `kept`, pass a test of a column. its: of `run_program`'s filters."""
    values, valid = _column_of(arrays, its[COLUMN_OF], height, 8)
    if values == 0:
        return REFUSED
    kind, a, b, c, negated = its[KIND], its[FIRST], its[AGAIN], its[STOP], its[NEGATED] != 0
    if valid != 0:
        # A test may write where it reads: never in front of the row that it reads.
        rows = kept[: _keep_known(valid, height, rows, kept)]
        if len(rows) == 0:
            return int64(0)
    if kind == INTEGERS:
        words, wanted = words_behind(values, height), range_of(a, b, c, negated)
        if a > 0:
            return keep_in_range(words, rows, AT, True, wanted, kept)
        return keep_in_range(words, rows, AT, False, wanted, kept)
    if kind == FLOATS:
        ends = its.view(np.float64)
        return keep_float_range(floats_behind(values, height), rows, AT, ends[AGAIN], ends[STOP], negated, kept)
    slots, filled = words_behind(a, 1 << (64 - c)), truths_behind(b, 1 << (64 - c))
    layout = DENSE if len(rows) == 0 else AT
    return keep_members(words_behind(values, height), rows, layout, slots, filled, c, negated, kept)


@helper
def _mask_by_test(its: Int64s, arrays: int, height: int, mask: Int64s) -> Any:
    """How many rows of a mask pass a test of integers or floats; it is left with these."""
    values, valid = _column_of(arrays, its[COLUMN_OF], height, 8)
    if values == 0:
        return REFUSED
    a, b, c, negated = its[FIRST], its[AGAIN], its[STOP], its[NEGATED] != 0
    if valid != 0:
        for first in range(0, height, _WORD):
            known = uint64(0)
            for j in range(min(_WORD, height - first)):
                known |= uint64(byte_at(valid, first + j)) << uint64(j)
            mask[first // _WORD] &= int64(known)
    if its[KIND] == FLOATS:
        ends = its.view(np.float64)
        mask_floats(floats_behind(values, height), ends[AGAIN], ends[STOP], negated, mask)
    elif a > 0:
        mask_integers(words_behind(values, height), True, range_of(a, b, c, negated), mask)
    else:
        mask_integers(words_behind(values, height), False, range_of(a, b, c, negated), mask)
    k = 0
    for w in range(len(mask)):
        k += bits_set(uint64(mask[w]))
    return k


@helper
def _unmask(mask: Int64s, rows: Int64s) -> Any:
    """Write the rows of a mask; how many there are."""
    k = 0
    for w in range(len(mask)):
        k = write_rows(uint64(mask[w]), rows, DENSE, w * _WORD, rows, k)
    return k


@template(gain=0.2, compile_s=7.5)
def run_program(
    filters: Int64Table,
    order: Int64s,
    steps: Int64Table,
    arrays: int,
    height: int,
    rows: Int64s,
    words: Int64Table,
    floats: Float64Table,
    out: Int64Table,
    states: Int8Table,
    reached: Int64s,
) -> int:
    """Run filters in an order, each on the rows that those before it keep, until none is left; or the only program that
    stores values. Returns how many were run, and writes what came of each to `reached`: see `_run_steps`; and behind
    these in which row of `out` the rows stand.

    The last one may have given FAR, where an integer is none of NEAR's, or REFUSED, where arrays are not to be read;
    or rows that have failed: no filter is run behind these.

    filters: a row for each: KIND PROGRAM, then its steps, and from where they are run again for a block that is not the
    first; or a kind of test, then its column and what it asks (`expressions.filter_tests`).  arrays: the address of a
    tuple of arrays, of a column its values, then its validity or an empty array where no value is NULL.  height: of
    these arrays.  rows: (m,) those in question; empty for all.  words, floats: (2 * registers + 1, size of a block),
    the same memory.  out: (2, m) for rows, which filters fill by turns, and states (0, 0); else both (results, m).

    As long as many of all rows are in question and columns are tested, they are the bits of a mask: what a test reads
    in the order of memory takes less than what it reads here and there, and rows are written once.
    """
    done, k, source, at = 0, height if len(rows) == 0 else len(rows), rows, 1
    mask, is_masked, is_dense = out[len(out) - 1][: (height + _WORD - 1) // _WORD], False, len(rows) == 0
    while done < len(order) and k > 0:
        its = filters[order[done]]
        is_dense &= (its[KIND] == INTEGERS or its[KIND] == FLOATS) and k * _SPARSE >= height
        if is_dense:
            if not is_masked:
                is_masked = True
                mask[:] = -1
                if height % _WORD != 0:
                    mask[-1] = (1 << (height % _WORD)) - 1
            k = _mask_by_test(its, arrays, height, mask)
        else:
            if is_masked:
                is_masked, at = False, 0
                source = out[0][: _unmask(mask, out[0])]
            if its[KIND] == PROGRAM:
                k = _run_steps(steps, its, arrays, height, source, words, floats, out[1 - at], out, states)
            else:
                k = _keep_by_test(its, arrays, height, source, out[1 - at])
            if k > REFUSED:
                at = 1 - at
                source = out[at][:k]
        reached[done] = k
        done += 1
    if is_masked:
        at = 0
        _unmask(mask, out[0])
    reached[len(order)] = at
    return done
