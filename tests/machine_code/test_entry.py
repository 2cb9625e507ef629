"""What Python hands to a kernel arrives, and what does not fit is refused before anything runs."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from minidsms.machine_code import (
    Grid,
    Int64s,
    Record,
    Rows,
    binding,
    compile_time,
    compiling,
    grid_of,
    helper,
    int64,
    kernel,
    record_in,
    rows_from,
    rows_of,
    words_of,
)
from minidsms.machine_code.definition import definition_of

_WEIGHT = 1000


@helper("int64(int64)")
def _weighed(x: Any) -> Any:
    return x * _WEIGHT


@kernel("int64(int64[::1], int64[:, ::1], float64, boolean, Tuple((int64[::1], int8[::1])))")
def total(row, table, number, counts, pair):  # type: ignore[no-untyped-def]
    """All there is in the arguments, so that none can go astray."""
    s = int64(0)
    for x in row:
        s += _weighed(x)
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            s += table[i, j] * (i + 1)
    words, bytes_ = pair
    for k in range(len(words)):
        s += words[k] * bytes_[k]
    return s + int64(number) if counts else s


@kernel("void(int64[::1], int64)", "void(int8[::1], int64)")
def fill(array, value):  # type: ignore[no-untyped-def]
    for i in range(len(array)):
        array[i] = value


@kernel("float64(uint64[::1], int32[::1], float64[::1], boolean[::1], int64[:, :, ::1])")
def mixed(a, b, c, d, e):  # type: ignore[no-untyped-def]
    return a[0] + b[0] + c[0] + (1 if d[0] else 0) + e[0, 0, 0]


@kernel("boolean(int64, int64)")
def divides(a, b):  # type: ignore[no-untyped-def]
    return b % a == 0


@kernel("int64(int64)")
def wander(steps):  # type: ignore[no-untyped-def]
    """So many steps, each of which must wait for the one before."""
    x = int64(1)
    for _ in range(steps):
        x = (x * 6364136223846793005 + 1442695040888963407) ^ (x >> 29)
    return x


def test_every_kind_of_argument_arrives() -> None:
    row, table = np.arange(4), np.arange(6).reshape(2, 3)
    pair = (np.array([5, 6]), np.array([1, -1], np.int8))
    assert total(row, table, 2.5, True, pair) == 6000 + 3 + 2 * 12 - 1 + 2
    assert total(row[:0], table, np.float64(2.5), np.bool_(False), pair) == 26
    assert (
        mixed(*(np.array([2], dtype) for dtype in ("u8", "i4", "f8")), np.array([True]), np.ones((1, 1, 1), int)) == 8
    )


def test_numbers_may_be_numpys() -> None:
    array = np.zeros(3, np.int64)
    assert fill(array, np.int8(-3)) is None
    assert array.tolist() == [-3] * 3
    assert divides(np.int64(3), True) is False and divides(3, 9) is True


def test_the_variant_of_the_arrays_types_runs() -> None:
    words, signs = np.zeros(2, np.int64), np.zeros(2, np.int8)
    fill(words, 300)
    fill(signs, -1)
    assert words.tolist() == [300, 300] and signs.tolist() == [-1, -1]


def test_both_of_numpys_names_of_one_type_are_taken() -> None:
    for name in ("long", "longlong"):
        array = np.zeros(2, getattr(np, name))
        fill(array, 4)
        assert array.tolist() == [4, 4]


_FIXED = np.zeros(3, np.int64)
_FIXED.flags.writeable = False


@pytest.mark.parametrize(
    "array",
    [
        [1, 2],
        None,
        "text",
        np.zeros(3),
        np.zeros(3, np.uint64),
        np.zeros(3, np.int32),
        np.zeros(3, "datetime64[s]"),
        np.zeros(3, ">i8"),
        np.zeros((2, 2), np.int64),
        np.array(1),
        np.zeros(6, np.int64)[::2],
        np.zeros(16, np.int8)[1:9].view(np.int64),
        _FIXED,
        np.ma.masked_array([1, 2], [True, False]),
    ],
)
def test_what_is_no_array_as_the_signature_has_it_is_refused(array: object) -> None:
    with pytest.raises(TypeError, match=r"argument 1 of fill\(\) is no contiguous, writable array of int8 in 1 dim"):
        fill(array, 7)


def test_a_table_in_the_order_of_columns_is_refused() -> None:
    table = np.zeros((2, 3), np.int64, order="F")
    pair = (np.zeros(1, np.int64), np.zeros(1, np.int8))
    with pytest.raises(TypeError, match=r"argument 2 of total\(\)"):
        total(np.zeros(1, np.int64), table, 1.0, True, pair)


@pytest.mark.parametrize(
    "pair",
    [(), (np.zeros(1, np.int64),), [np.zeros(1, np.int64)] * 2, (np.zeros(1, np.int64),) * 2, (1, 2), None],
)
def test_a_tuple_is_looked_into(pair: object) -> None:
    with pytest.raises(TypeError, match=r"argument 5 of total\(\)"):
        total(np.zeros(1, np.int64), np.zeros((1, 1), np.int64), 1.0, True, pair)


def test_numbers_that_are_none_or_too_large_are_refused() -> None:
    array = np.zeros(1, np.int64)
    with pytest.raises(TypeError):
        fill(array, 1.5)
    with pytest.raises(OverflowError):
        fill(array, 2**63)
    with pytest.raises(TypeError, match="takes 2 arguments"):
        fill(array)
    with pytest.raises(TypeError, match="takes 2 arguments"):
        fill(array, 1, 2)
    with pytest.raises(TypeError):
        total(array, np.zeros((1, 1), np.int64), "1.0", True, (array, np.zeros(1, np.int8)))
    assert array[0] == 0


def test_the_least_and_the_value_that_marks_errors_are_numbers_like_others() -> None:
    array = np.zeros(1, np.int64)
    for number in (-1, -(2**63), 2**63 - 1):
        fill(array, number)
        assert array[0] == number


def test_a_function_that_breaks_off_raises() -> None:
    with pytest.raises(RuntimeError, match=r"divides\(\) broke off"):
        divides(0, 4)


def test_others_run_while_a_kernel_does() -> None:
    wander(1)
    thread = threading.Thread(target=wander, args=(200_000_000,))
    thread.start()
    turns = 0
    while thread.is_alive():
        time.sleep(0.0001)
        turns += 1
    assert turns > 20, "each turn gives the interpreter's lock away, and gets it back before the kernel has ended"


def test_the_time_that_a_kernel_takes_to_be_compiled_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(self: binding._Waiting) -> Any:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return lambda x: x

    monkeypatch.setattr(binding._Waiting, "_compiled", slowly)
    known = definition_of(total)
    assert known is not None
    waiting = binding._Waiting(known)
    thread, wall, compiled = compile_time.thread_ns(), compile_time.wall_ns(), compile_time.COMPILED.thread_ns
    assert waiting(7) == waiting(7) == 7
    assert compile_time.COMPILED.thread_ns - compiled >= 20_000_000
    assert compile_time.thread_ns() - thread < 20_000_000 and compile_time.wall_ns() - wall < 20_000_000


class Span(Record):
    """A stretch."""

    lo: int
    hi: int


class Tally(Record):
    """What is counted of stretches."""

    longest: int
    calls: int


class Spans(NamedTuple):
    """Stretches, and what is counted of them."""

    rows: Rows[Span]
    table: Grid[Span]
    tally: Tally
    counts: Int64s
    most: int


class Counts(NamedTuple):
    """A bundle whose arrays are of one type."""

    those: Int64s
    these: Int64s


@helper(typed=True)
def _count(tally: Tally, length: int) -> None:
    tally.calls += 1
    tally.longest = max(tally.longest, length)


@helper(inline=True)
def _longer(spans: Spans, i: int) -> Any:
    spans.rows[i].hi += 1
    return spans.rows[i].hi - spans.rows[i].lo


@kernel
def lengths(spans: Spans, factor: int) -> int:
    """Write each stretch's length, made longer; returns the longest."""
    for i in range(len(spans.rows)):
        length = _longer(spans, i) * factor
        spans.counts[i] = min(length, spans.most)
        spans.table[0, i].lo = length
        _count(spans.tally, length)
    return spans.tally.longest


@kernel
def longest(counts: Counts, tally: Tally) -> int:
    """Of all pairs of counts together; a field has the kernel's name."""
    for i in range(len(counts.those)):
        tally.longest += counts.those[i] + counts.these[i]
    return tally.longest


def _spans(n: int = 3) -> Spans:
    spans = Spans(rows_of(Span, n), grid_of(Span, 2, n), Tally(), np.zeros(n, np.int64), 25)
    spans.rows["lo"][:] = [0, 1, 2]
    spans.rows["hi"][:] = [4, 9, 5]
    return spans


def _plain(bound: Callable[..., Any]) -> Callable[..., Any]:
    known = definition_of(bound)
    assert known is not None
    return compiling.plain(known)


@pytest.mark.parametrize("entered", [lambda bound: bound, _plain], ids=["our entry", "numba's entry"])
def test_bundles_of_records_are_read_and_written_by_the_names_of_their_fields(entered: Callable[..., Any]) -> None:
    spans = _spans()
    assert entered(lengths)(spans, 3) == 27
    assert spans.counts.tolist() == [15, 25, 12]
    assert (spans.rows["lo"][1], spans.rows["hi"][1]) == (1, 10)
    assert words_of(spans.table)[0, :, 0].tolist() == [15, 27, 12]
    assert (spans.tally.longest, spans.tally.calls) == (27, 3)
    assert entered(longest)(Counts(np.arange(3), np.arange(3)), spans.tally) == spans.tally.longest == 33


def test_records_of_another_length_and_bundles_of_other_fields_are_refused():
    class Longer(Record):
        lo: int
        hi: int
        mark: int

    spans = _spans()
    with pytest.raises(TypeError, match=r"argument 1 of lengths\(\)"):
        lengths(spans._replace(rows=rows_of(Longer, 3)), 1)
    with pytest.raises(TypeError, match=r"argument 1 of lengths\(\)"):
        lengths(spans[:3], 1)
    with pytest.raises(TypeError, match=r"argument 1 of lengths\(\)"):
        lengths(list(spans), 1)
    counts = Counts(np.arange(3), np.arange(3))
    for other in (words_of(spans.tally), Longer(), ctypes.c_int64(3)):
        with pytest.raises(TypeError, match=r"argument 2 of longest\(\) is no record of longest, calls"):
            longest(counts, other)


def test_a_kernel_without_annotations_says_which_it_lacks():
    def nameless(spans: Spans, factor) -> int:  # type: ignore[no-untyped-def]
        return 0

    with pytest.raises(TypeError, match="says no type of factor"):
        kernel(nameless)


def test_words_and_records_are_the_same_memory():
    spans = rows_of(Span, 2)
    words_of(spans)[1, 0] = 7
    assert record_in(Span, spans, 1).lo == 7
    record_in(Span, spans, 1).hi = 8
    assert spans["hi"].tolist() == [0, 8]
    assert rows_from(Span, words_of(spans))["lo"].tolist() == [0, 7]
    span = Span(hi=9)
    words_of(span)[0] = 7
    assert (span.lo, words_of(span).tolist()) == (7, [7, 9])
