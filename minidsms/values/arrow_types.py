"""Types in Arrow, and values between Arrow and the texts by which the dictionary codes them.

A column has three forms there: as people read it (`arrow_type`), as archives hold it (`stored_type`), and as the
engine's own columns have it (`word_type`), where DECIMAL and what is nested are the dictionary's texts
(`minidsms.values.coded`).
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from minidsms.elements import BoolArray, Column, Int64Array, is_all_true
from minidsms.values.coded import CODE_OF_ZERO, MOST_COMPUTED, shown, values_of
from minidsms.values.types import MOST_DIGITS, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLAIN = {
    "FLOAT": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TEXT": pa.string(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
}
_EXACT_DIGITS = 15
"""A whole number of no more, and 10 to the power of no more, are floats: their quotient is rounded once."""


def arrow_type(type_: Type, unit: str | None, time: pa.DataType = _PLAIN["TIME"]) -> pa.DataType:
    """The Arrow type of a column. unit: of TIMESTAMP and INTERVAL, whose ticks are int64 without one."""
    if type_.element is not None:
        return pa.list_(arrow_type(type_.element, unit, time))
    inside = [(name, arrow_type(t, unit, time)) for name, t in type_.fields]
    match type_.kind:
        case "STRUCT":
            return pa.struct(inside)
        case "MAP":
            return pa.map_(inside[0][1], inside[1][1])
        case "DECIMAL":
            return pa.decimal128(type_.digits, type_.scale)
        case "TIMESTAMP" if unit is not None:
            return pa.timestamp(unit, "UTC")
        case "INTERVAL" if unit is not None:
            return pa.duration(unit)
        case "TIME":
            return time
    return _PLAIN.get(type_.kind, pa.int64())


def stored_type(type_: Type) -> pa.DataType:
    """The Arrow type of a column of an archive: ticks and microseconds of the day are int64."""
    return arrow_type(type_, None, pa.int64())


def word_type(type_: Type) -> pa.DataType:
    """The Arrow type of a column in the engine's own form: texts for what is coded, days and ticks as int64."""
    if type_.is_coded:
        return pa.string()
    return pa.int64() if type_ is Type.DATE else stored_type(type_)


def decimals_of_codes(column: Column, type_: Type) -> pa.Array | None:
    """A column of DECIMAL as Arrow's decimals; None where a code is not computed."""
    codes: Int64Array = column.values  # type: ignore[assignment]
    if len(codes) and codes.max() > 0:
        return None
    valid = codes != 0
    words = np.empty((len(codes), 2), np.int64)
    words[:, 0] = (codes - CODE_OF_ZERO) * valid
    words[:, 1] = words[:, 0] >> 63
    bits = None if is_all_true(valid) else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(arrow_type(type_, None), len(codes), [bits, pa.py_buffer(words)])


def codes_of_decimals(array: pa.Array, type_: Type) -> Column | None:
    """The inverse, of any numbers but floats; None where one has no computed code, or does not fit the type."""
    try:
        array = array.cast(pa.decimal128(MOST_DIGITS, type_.scale))
    except pa.ArrowException:
        return None
    n = len(array)
    if not n:
        return Column(np.empty(0, np.int64))  # a cast of no values has no buffer to stand in
    words = np.frombuffer(array.buffers()[1], np.int64, 2 * n, 16 * array.offset).reshape(n, 2)
    digits, above = words[:, 0].copy(), words[:, 1]
    valid = None
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        digits *= valid
        above = above * valid
    most = min(10**type_.digits - 1, MOST_COMPUTED)
    if digits.min() < -most or digits.max() > most or not np.array_equal(above, digits >> 63):
        return None
    digits += CODE_OF_ZERO
    if valid is not None:
        digits *= valid
    return Column(digits, valid)


FEW_TEXTS = 32
"""So many are read one by one: patterns and casts of Arrow cost more than all of them."""


@cache
def plain_decimal(type_: Type) -> re.Pattern[str]:
    """A DECIMAL in plain digits, as Python and Arrow match it."""
    whole = type_.digits - type_.scale
    before = f"[0-9]{{1,{whole}}}" if whole else "0"
    return re.compile(rf"[+-]?{before}(\.[0-9]{{1,{type_.scale}}})?" if type_.scale else f"[+-]?{before}")


def are_plain_decimals(texts: pa.Array, type_: Type) -> BoolArray:
    """Which texts are NULL or surely spell a value of a DECIMAL: no more digits than it has, a sign, a point.

    >>> are_plain_decimals(pa.array(["1.5", "-07", None, "1.555", " 1", "1e1"]), Type.decimal(4, 2)).tolist()
    [True, True, True, False, False, False]
    """
    import pyarrow.compute as pc  # as in array_of_words

    plain = pc.match_substring_regex(texts, f"^{plain_decimal(type_).pattern}$")
    return np.asarray(pc.fill_null(plain, True).to_numpy(zero_copy_only=False))


def codes_of_decimal_texts(texts: pa.Array, type_: Type) -> Column | None:
    """As `codes_of_decimals`; None also where a text is to be looked at."""
    return codes_of_decimals(texts, type_) if are_plain_decimals(texts, type_).all() else None


def floats_of_decimals(array: pa.Array) -> Column:
    """Decimals as FLOAT, each the float that is nearest to it: Arrow's own cast often misses that by one place.

    >>> floats_of_decimals(pa.array(["2543.86", None]).cast(pa.decimal128(9, 2))).values.tolist()
    [2543.86, 0.0]
    """
    digits, scale = array.type.precision, array.type.scale
    if 0 <= scale <= digits <= _EXACT_DIGITS:
        codes = codes_of_decimals(array, Type.decimal(digits, scale))
        assert codes is not None, "so few digits have computed codes"
        floats = (codes.values - CODE_OF_ZERO) / 10.0**scale
        return Column(floats if codes.valid is None else np.where(codes.valid, floats, 0.0), codes.valid)
    read = array.cast(pa.string()).cast(pa.float64())
    valid = read.is_valid().to_numpy(zero_copy_only=False) if read.null_count else None
    return Column(read.fill_null(0.0).to_numpy(zero_copy_only=False), valid)


def array_of_texts(texts: Sequence[str | None], type_: Type, wanted: pa.DataType) -> pa.Array:
    """The values of texts of the dictionary, under their `arrow_type`.

    >>> array_of_texts(["[1, null]", None], Type.INTEGER.list_type, pa.list_(pa.int64())).to_pylist()
    [[1, None], None]
    """
    values = [shown(value, type_) for value in values_of(texts, type_)]
    return pa.array(values, arrow_type(type_, None)).cast(wanted)  # Python counts ticks


def array_of_words(array: Any, type_: Type, wanted: pa.DataType) -> Any:
    """A column as `word_type` has it, or as codes of texts, under its `arrow_type`; each distinct text is read once.
    TEXT stays as it is.
    """
    if type_ is Type.DATE:
        return array.cast(pa.int32()).cast(wanted)
    if not type_.is_coded or type_ is Type.TEXT or array.type == wanted:
        return array if type_ is Type.TEXT or array.type == wanted else array.cast(wanted)
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array([array_of_words(chunk, type_, wanted) for chunk in array.chunks], wanted)
    coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    import pyarrow.compute as pc  # a tenth of the time until a first answer, which seldom needs it

    used = pc.unique(coded.indices.drop_null())
    return array_of_texts(coded.dictionary.take(used).to_pylist(), type_, wanted).take(pc.index_in(coded.indices, used))


def words_of_array(array: Any, type_: Type) -> Any:
    """The inverse of `array_of_words`, of a column that an archive holds."""
    if type_ is Type.DATE:
        return array.cast(pa.int32()).cast(pa.int64())
    if not type_.is_coded or type_ is Type.TEXT:
        return array
    from minidsms.inputs.arrays import ColumnReader
    from minidsms.values.dictionary import TextDictionary

    dictionary = TextDictionary()
    return dictionary.decode_arrow(ColumnReader(dictionary, 1).read(array, type_))
