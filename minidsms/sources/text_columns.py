"""Columns of texts from a file to typed Arrow arrays, and which of their values cannot be read.

Invariant: a text is read the same whether its neighbours are good or bad: whole columns are tried first, and where one
does not pass, its texts are told apart by patterns, and the few that remain one by one.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from minidsms.elements import BoolArray, Int64Array, Type
from minidsms.inputs.values import ValueRefused, timestamp_value, value_reader
from minidsms.sources.csv_form import TICKS_OR_ISO, Times
from minidsms.values.arrow_types import FEW_TEXTS, are_plain_decimals
from minidsms.values.types import FALSE_WORDS, TRUE_WORDS

TRUE_TEXTS, FALSE_TEXTS = (
    tuple(dict.fromkeys(text for word in words for text in (word, word.capitalize(), word.upper())))
    for words in (TRUE_WORDS, FALSE_WORDS)
)
"""Those that are read in whole columns."""

_NUMBERS = {Type.INTEGER: pa.int64(), Type.INTERVAL: pa.int64(), Type.FLOAT: pa.float64()}
_ARROW_TYPES = {**_NUMBERS, Type.BOOLEAN: pa.bool_(), Type.NULL: pa.null()}
_STRING = pa.string()
_PLAIN = {
    Type.INTEGER: r"^-?[0-9]{1,18}$",
    Type.INTERVAL: r"^-?[0-9]{1,18}$",
    Type.FLOAT: r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$",
}
"""Texts Arrow certainly reads; others are tried one by one."""
_DIGITS = {"s": 9, "ms": 6, "us": 3, "ns": 0}
"""Behind the point of such a unit stand so many digits of nanoseconds."""
_ZONED = r"(?i)^.{10}.*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_YEAR_1000_US = -30_610_224_000_000_000
_LIKE_A_TIME = r"^[0-9]{4}-[0-9]{2}"


def is_whole(type_: Type) -> bool:
    """Values of the type are read as whole numbers."""
    return type_ in (Type.INTEGER, Type.INTERVAL)


def may_hold_hexadecimals(data: bytes) -> bool:
    """Arrow may take a text of this block for a whole number, and it is none: 0x10."""
    return any(letter in data and b"0" + letter in data for letter in (b"x", b"X"))


def arrow_type(type_: Type) -> Any:
    """The Arrow type a text reader is asked for. TIMESTAMP is read as text first: it may be ticks or ISO times."""
    return _ARROW_TYPES.get(type_, _STRING)


def are_ticks(texts: Any, may_have_fractions: bool = False) -> bool | None:
    """Whether a column of times is ticks (True) or ISO times (False): its first value says; None where all are NULL.

    A file keeps to one of them: a value of the other kind is malformed.
    """
    form = r"[+-]?[0-9]+(\.[0-9]*)?" if may_have_fractions else r"[+-]?[0-9]+"
    for scalar in texts:
        value = scalar.as_py() or ""
        text = (value.decode("utf-8", "replace") if isinstance(value, bytes) else value).strip()
        if text:
            return re.fullmatch(form, text) is not None
    return None


def read_iso_times(texts: Any) -> Any:
    """ISO texts, with or without a zone, as an Arrow timestamp; ArrowInvalid where one of them is something else."""
    texts = pc.utf8_trim_whitespace(texts)
    # With the wrong zone every value fails, which costs far more than one that is no time.
    first = next((text.as_py() for text in texts if text.is_valid), "")
    zone = "UTC" if re.match(_ZONED, first) else None
    for unit in ("us", "ns"):
        times = _cast(texts, pa.timestamp(unit, zone))
        if times is not None:
            return times
    raise pa.ArrowInvalid("no ISO times")


def by_format(texts: Any, format: str) -> Any:
    """Texts as times, as Python's strptime reads them; NULL where one is none. It reads them itself where there are
    fractions of a second, and years that Arrow takes for the first thousand, since a year of two digits is none of %Y.
    """
    if "%f" not in format:
        times = pc.strptime(texts, format, "us", error_is_null=True)
        if not pc.any(pc.less(pc.cast(times, pa.int64()), _YEAR_1000_US)).as_py():
            return times
    different = texts.dictionary_encode()
    found: list[datetime | None] = []
    for text in different.dictionary.to_pylist():
        try:
            time = datetime.strptime(text, format)
            found.append(time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC))
        except (ValueError, OverflowError):
            found.append(None)
    return pa.array(found, pa.timestamp("us", "UTC")).take(different.indices)


def _too_far(numbers: Any, epoch: str) -> BoolArray:
    """Which instants do not fit an Arrow timestamp of microseconds."""
    values = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False)
    far: BoolArray = np.abs(values.astype(np.float64)) >= 2.0**62 / 10**6 * 10 ** (9 - _DIGITS[epoch])
    return far


def _read_fractions(texts: Any, epoch: str, bad: BoolArray) -> Any:
    """Numbers since 1970 of which some have fractions, as Arrow times; sets bad where a text is none.

    Microseconds, rounded down, where nanoseconds are not needed or do not reach.
    """
    texts = _without(pc.utf8_trim_whitespace(texts), bad)
    parts = pc.extract_regex(texts, r"^(?P<sign>[+-]?)(?P<whole>[0-9]{1,18})(?:\.(?P<part>[0-9]*))?$")
    bad |= pc.and_(pc.is_valid(texts), pc.is_null(parts)).to_numpy(zero_copy_only=False)
    sign, whole, part = (pc.fill_null(pc.struct_field(parts, name), "0") for name in ("sign", "whole", "part"))
    bad |= _too_far(pc.cast(whole, pa.int64()), epoch)
    digits = _DIGITS[epoch]
    read = pc.utf8_slice_codeunits(pc.utf8_rpad(part, digits, "0"), 0, digits)
    is_more = pc.match_substring_regex(part, rf"^[0-9]{{{digits}}}.*[1-9]").to_numpy(zero_copy_only=False)
    units, ns = (pc.cast(each, pa.int64()).to_numpy(zero_copy_only=False).copy() for each in (whole, read))
    is_below = pc.equal(sign, "-").to_numpy(zero_copy_only=False)
    units[bad] = 0
    units, ns = np.where(is_below, -units, units), np.where(is_below, -ns - is_more, ns)
    us = units * 10 ** (digits - 3) + ns // 1000
    nulls = pc.is_null(parts).to_numpy(zero_copy_only=False) | bad
    if not (ns % 1000).any() or (np.abs(us) >= 2**63 // 1000 - 1).any():
        return pa.array(us, pa.timestamp("us"), mask=nulls)
    return pa.array(us * 1000 + ns % 1000, pa.timestamp("ns"), mask=nulls)


def read_texts(
    values: Any, type_: Type, ticks: bool | None, times: Times = TICKS_OR_ISO, decimal_point: str = "."
) -> tuple[Any, BoolArray]:
    """(array, bad): a column of texts, or of bytes, as the type, NULL where `bad`. ticks: of a TIMESTAMP column."""
    texts, bad = _decode(values)
    if type_ is Type.TIMESTAMP and times.format is not None:
        read = by_format(pc.utf8_trim_whitespace(texts), times.format)
        bad |= (pc.is_valid(texts).to_numpy(zero_copy_only=False)) & (pc.is_null(read).to_numpy(zero_copy_only=False))
        return read, bad
    if type_ is Type.TIMESTAMP and ticks is not False and times.epoch is not None:
        if times.epoch != "ns" and pc.any(pc.match_substring(texts, ".")).as_py():
            return _read_fractions(texts, times.epoch, bad), bad
        numbers, bad = read_texts(values, Type.INTEGER, None)
        bad |= _too_far(numbers, times.epoch)
        return pc.cast(_without(numbers, bad), pa.timestamp(times.epoch)), bad
    if type_.kind in ("FLOAT", "DECIMAL") and decimal_point != ".":
        bad |= pc.fill_null(pc.match_substring(texts, "."), False).to_numpy(zero_copy_only=False)
        texts = pc.replace_substring(_without(texts, bad), decimal_point, ".")
    if type_ is Type.TIMESTAMP and ticks is not False:
        type_ = Type.INTEGER
    if type_ is Type.TEXT:
        return texts, bad
    if not type_.is_basic:
        return _checked(texts, type_, bad), bad
    texts = pc.utf8_trim_whitespace(texts)
    if type_ in _NUMBERS:
        if type_ is not Type.FLOAT:
            texts = _whole_numbers(texts, bad)
        kind, texts = _NUMBERS[type_], _without(texts, bad)
        numbers = _cast(texts, kind)
        if numbers is None:
            plain = pc.fill_null(pc.match_substring_regex(texts, _PLAIN[type_]), True)
            for row in np.flatnonzero(~plain.to_numpy(zero_copy_only=False)).tolist():
                bad[row] |= _cast(texts[row], kind) is None
            numbers = pc.cast(_without(texts, bad), kind)
        return numbers, bad
    if type_ is Type.BOOLEAN:
        texts = pc.utf8_lower(texts)
        true, false = (pc.is_in(texts, pa.array(words)) for words in (TRUE_WORDS, FALSE_WORDS))
        known = pc.or_(pc.or_(true, false), pc.is_null(texts)).to_numpy(zero_copy_only=False)
        bad |= ~known
        return _without(pc.if_else(pc.is_null(texts), pa.scalar(None, pa.bool_()), true), bad), bad
    if type_ is Type.TIMESTAMP:
        return _read_iso_times(texts, bad), bad
    bad |= pc.is_valid(texts).to_numpy(zero_copy_only=False)
    return pa.nulls(len(texts)), bad


def _whole_numbers(texts: Any, bad: BoolArray) -> Any:
    """Texts of whole numbers as Arrow reads them, without a plus; sets bad where one is hexadecimal."""
    bad |= pc.fill_null(pc.match_substring(texts, "x", ignore_case=True), False).to_numpy(zero_copy_only=False)
    return pc.replace_substring_regex(texts, r"^\+([0-9])", r"\1")


def _checked(texts: Any, type_: Type, bad: BoolArray) -> Any:
    """Texts that spell values of the type, which whoever takes the rows reads; sets bad where one spells none."""
    reader = value_reader(type_, 1000)  # as times that are no part of a value
    is_tested = type_.kind == "DECIMAL" and len(texts) > FEW_TEXTS
    rows = np.flatnonzero(~are_plain_decimals(texts, type_)) if is_tested else np.arange(len(texts))
    spelt = texts.to_pylist() if len(rows) else []
    for row in rows.tolist():
        try:
            reader(spelt[row])
        except ValueRefused:
            bad[row] = True
    return _without(texts, bad)


def _read_iso_times(texts: Any, bad: BoolArray) -> Any:
    """ISO texts, in UTC; sets bad where a text is none."""
    with suppress(pa.ArrowInvalid):
        return read_iso_times(_without(texts, bad))
    n = len(texts)
    is_wanted = pc.is_valid(texts).to_numpy(zero_copy_only=False) & ~bad
    ticks, is_exact = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    pending = is_wanted.copy()

    def keep(rows: Int64Array, times: Any) -> None:
        read = rows[times.is_valid().to_numpy(zero_copy_only=False)]
        ticks[read] = pc.cast(times.drop_null(), pa.int64()).to_numpy()
        is_exact[read] = times.type.unit == "ns"
        pending[read] = False

    lengths = pc.fill_null(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False)
    if is_wanted.any():
        # Times of one file are mostly of one length, and what is none of another.
        alike = np.flatnonzero(is_wanted & (lengths == np.bincount(lengths[is_wanted]).argmax()))
        with suppress(pa.ArrowInvalid):
            keep(alike, read_iso_times(texts.take(pa.array(alike))))
    left = np.flatnonzero(pending)
    is_zoned = np.zeros(n, np.bool_)
    is_zoned[left] = pc.match_substring_regex(texts.take(pa.array(left)), _ZONED).to_numpy(zero_copy_only=False)
    for unit in ("us", "ns"):
        for zone in (None, "UTC"):
            rows = np.flatnonzero(pending & (is_zoned == (zone is not None)))
            keep(rows, _cast_where_possible(texts.take(pa.array(rows)), pa.timestamp(unit, zone)))
    for row in np.flatnonzero(pending).tolist():
        with suppress(ValueRefused):
            # Of a year, or in a form, that Arrow does not read.
            text = texts[row].as_py()
            ticks[row], pending[row] = timestamp_value(text, 1000) or 0, False
            nanos = timestamp_value(text, 1) or 0  # refused where they do not reach
            if nanos % 1000:
                ticks[row], is_exact[row] = nanos, True
    bad |= pending
    nulls = pa.array(~is_wanted | pending)
    # Nanoseconds only where they are needed: they reach from 1678 to 2261 only.
    if not is_exact.any():
        return pa.array(ticks, pa.timestamp("us", "UTC"), mask=nulls.to_numpy(zero_copy_only=False))
    if (is_exact | (np.abs(ticks) < 2**63 // 1000)).all():
        ticks = np.where(is_exact, ticks, ticks * 1000)
        return pa.array(ticks, pa.timestamp("ns", "UTC"), mask=nulls.to_numpy(zero_copy_only=False))
    ticks = np.where(is_exact, ticks // 1000, ticks)
    return pa.array(ticks, pa.timestamp("us", "UTC"), mask=nulls.to_numpy(zero_copy_only=False))


def _cast_where_possible(texts: Any, kind: Any) -> Any:
    """The texts as times, NULL where one is none. What looks like a time and is none costs a search for it."""
    texts = pc.if_else(pc.match_substring_regex(texts, _LIKE_A_TIME), texts, pa.scalar(None, texts.type))
    times = _cast(texts, kind)
    if times is not None:
        return times
    if len(texts) == 1:
        return pa.nulls(1, kind)
    half = len(texts) // 2
    return pa.concat_arrays([_cast_where_possible(texts[:half], kind), _cast_where_possible(texts[half:], kind)])


def _cast(texts: Any, kind: Any) -> Any | None:
    """The text or texts as this type; None where one of them is none."""
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return None


def _without(values: Any, bad: BoolArray) -> Any:
    return pc.if_else(pa.array(bad), pa.scalar(None, values.type), values) if bad.any() else values


def _decode(values: Any) -> tuple[Any, BoolArray]:
    """A binary array as text; bad where it is no UTF-8."""
    bad = np.zeros(len(values), np.bool_)
    try:
        return values.cast(pa.string()), bad
    except pa.ArrowInvalid:
        texts: list[str | None] = []
        for row, value in enumerate(values.to_pylist()):
            try:
                texts.append(None if value is None else value.decode("utf-8"))
            except UnicodeDecodeError:
                texts.append(None)
                bad[row] = True
        return pa.array(texts, pa.string()), bad
