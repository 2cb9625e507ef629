"""Whole columns of pushed data, as lists, numpy or Arrow arrays, to columns of elements.

Invariant: the same value gives the same stored word whichever container it came in, and is refused in all of them or in
none (`values` defines both). An int64 or float64 array without NULLs is handed on as it is: no copy, no Python per row.
docs/design, decision 1; docs/semantics R4.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from minidsms.cql.errors import DataError
from minidsms.elements import INT64_MAX, INT64_MIN, AnyArray, BoolArray, Column, Int64Array, Type
from minidsms.inputs.alike import Unknown, different
from minidsms.inputs.foreign import check_bounds, raised
from minidsms.inputs.nested_arrays import texts_of_nested
from minidsms.inputs.values import UNIT_NS, ValueRefused, show, value_reader
from minidsms.values.arrow_types import (
    FEW_TEXTS,
    codes_of_decimal_texts,
    codes_of_decimals,
    floats_of_decimals,
    plain_decimal,
)
from minidsms.values.coded import FIRST_DAY, LAST_DAY
from minidsms.values.dictionary import TextDictionary
from minidsms.values.types import MOST_DIGITS

_NEGATIVE_ZERO = -(2**63)
"""Its word as an integer: no other word is as small."""
_PLAIN_TYPES: dict[Type, frozenset[type]] = {
    Type.INTEGER: frozenset((int,)),
    Type.TIMESTAMP: frozenset((int,)),
    Type.INTERVAL: frozenset((int,)),
    Type.FLOAT: frozenset((int, float)),
    Type.BOOLEAN: frozenset((bool,)),
    Type.TEXT: frozenset((str,)),
}
"""Python types numpy may convert without a look at each value."""
_LIKE_PYTHONS = {
    pa.int64(): Type.INTEGER,
    pa.float64(): Type.FLOAT,
    pa.bool_(): Type.BOOLEAN,
    pa.string(): Type.TEXT,
    pa.large_string(): Type.TEXT,
}
"""Arrow types whose values Python has as they are."""
_COUNTED = (Type.INTEGER, Type.TIMESTAMP, Type.INTERVAL)
"""Whole numbers are read as they are."""
_DAY_MS = 86_400_000
_PLAIN_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|\+00:00)?$"
_FEW = 16
"""Values of an array that are read as a list: a call of Arrow costs more than all of them."""


class ColumnReader:
    """Reads columns of one connection: its dictionary codes TEXT, its tick measures time."""

    def __init__(self, dictionary: TextDictionary, tick_ns: int) -> None:
        self.dictionary = dictionary
        self.tick_ns = tick_ns

    def read(self, data: Any, type_: Type) -> Column:
        """One column of n values. ValueRefused (with the row, where one is to blame) for what does not fit the type.

        data: a list or other sequence, a numpy or masked array, an Arrow array, or anything that gives one of them.
        """
        data = as_array(data)
        if isinstance(data, pa.Array | pa.ChunkedArray):
            return self._read_arrow(data, type_)
        if isinstance(data, np.ndarray):
            return self._read_numpy(data, type_)
        return self._read_list(data, type_)

    # --------------------------------------------------------------------------------------------------- lists

    def _read_list(self, values: Sequence[Any], type_: Type) -> Column:
        kinds = set(map(type, values))
        if len(values) > FEW_TEXTS and (column := self._read_many(values, kinds - {type(None)}, type_)) is not None:
            return column
        if kinds - {type(None)} <= _PLAIN_TYPES.get(type_, frozenset()):
            if type_ is Type.TEXT:
                return self._encode(values)
            valid = None
            if type(None) in kinds:
                valid = np.fromiter((v is not None for v in values), np.bool_, len(values))
                values = [0 if v is None else v for v in values]
            try:
                array = np.array(values, type_.dtype)
            except OverflowError:
                return self._read_each(values, type_)
            return self._clean_floats(array, valid) if type_ is Type.FLOAT else Column(array, valid)
        return self._read_each(values, type_)

    def _read_many(self, values: Sequence[Any], kinds: set[type], type_: Type) -> Column | None:
        """A long list for DECIMAL or TIMESTAMP, by Arrow; None where a value is to be looked at, or to blame."""
        if type_.kind == "DECIMAL":
            return _decimals(values, kinds, type_)
        if type_ is Type.TIMESTAMP and (instants := _instants(values, kinds)) is not None:
            with suppress(ValueRefused):
                return self._scale(_int64_view(instants), _validity(instants), UNIT_NS["us"])
        return None

    def _read_each(self, values: Sequence[Any], type_: Type) -> Column:
        """Value by value: for odd types, and to find the row to blame."""
        reader = value_reader(type_, self.tick_ns)
        stored: list[Any] = []
        for row, value in enumerate(values):
            try:
                stored.append(reader(value))
            except ValueRefused as refused:
                refused.row = row
                raise
        if type_.is_coded:
            return self._encode(stored) if type_.kind != "DECIMAL" else self.dictionary.encode_as(stored, type_)
        valid = np.fromiter((v is not None for v in stored), np.bool_, len(stored))
        array = np.array([0 if v is None else v for v in stored], type_.dtype)
        return Column(array, None if valid.all() else valid)

    def _encode(self, values: Any) -> Column:
        """TEXT as codes; lone surrogates and broken UTF-8 are no TEXT."""
        try:
            return self.dictionary.encode(values)
        except (DataError, UnicodeError, pa.ArrowException) as error:
            if isinstance(values, list | tuple):
                for row, value in enumerate(values):
                    try:
                        if value is not None:
                            value.encode("utf-8")
                    except UnicodeEncodeError:
                        raise ValueRefused(f"{show(value)} is not valid Unicode", row) from None
            raise ValueRefused(f"a TEXT that is not valid Unicode ({error})") from None

    # --------------------------------------------------------------------------------------------------- numpy

    def _read_numpy(self, array: AnyArray, type_: Type) -> Column:
        if array.ndim != 1:
            hint = "give one array per column: {name: array[:, i]}"
            raise ValueRefused(f"an array of {array.ndim} dimensions where a column has one", hint=hint)
        valid: BoolArray | None = None
        if isinstance(array, np.ma.MaskedArray):
            mask = np.ma.getmaskarray(array)
            valid = ~mask if mask.any() else None
            array = array.data
        kind = array.dtype.kind
        if kind in "OTUSV" or type_ is Type.NULL:
            return self._read_list(_as_list(array, valid), type_)
        if kind in "iu" and type_.kind == "DECIMAL":
            return self._read_arrow(pa.array(array, mask=None if valid is None else ~valid), type_)
        if kind in "iu" and type_ in (Type.INTEGER, Type.TIMESTAMP, Type.INTERVAL):
            return _zero_nulls(_to_int64(array, valid), valid)
        if kind in "fiu" and type_ is Type.FLOAT:
            return self._clean_floats(array.astype(np.float64, copy=False), valid)
        if kind == "b" and type_ is Type.BOOLEAN:
            return _zero_nulls(array, valid)
        if (kind == "M" and type_ is Type.TIMESTAMP) or (kind == "m" and type_ is Type.INTERVAL):
            unit, step = np.datetime_data(cast(Any, array.dtype))
            if unit in UNIT_NS:
                native = array.astype(array.dtype.newbyteorder("="), copy=False)
                given = ~np.isnat(native) if valid is None else valid & ~np.isnat(native)
                valid = None if given.all() else given
                numerator, denominator = UNIT_NS[unit]
                return self._scale(native.view(np.int64), valid, (numerator * step, denominator))
        return self._read_list(_as_list(array, valid), type_)

    def _clean_floats(self, array: AnyArray, valid: BoolArray | None) -> Column:
        """NaN becomes NULL and -0.0 becomes 0.0; an array with neither is handed on as it is."""
        floats: npt.NDArray[np.float64] = np.ascontiguousarray(array, np.float64)
        nan = np.isnan(floats)
        if nan.any():
            valid = ~nan if valid is None else valid & ~nan
        if valid is not None:
            floats = np.where(valid, floats, 0.0)
        if len(floats) and np.minimum.reduce(floats.view(np.int64)) == _NEGATIVE_ZERO:
            floats = floats + 0.0
        return Column(floats, valid)

    def _scale(self, values: Int64Array, valid: BoolArray | None, unit: tuple[int, int]) -> Column:
        """Units to ticks, floored; refuses what leaves int64."""
        numerator, denominator = unit[0], unit[1] * self.tick_ns
        divisor = int(np.gcd(numerator, denominator))
        numerator, denominator = numerator // divisor, denominator // divisor
        if valid is not None:
            values = np.where(valid, values, 0)
        if numerator != 1 and len(values):
            low, high = int(values.min()) * numerator, int(values.max()) * numerator
            if denominator == 1 and not (low >= INT64_MIN and high <= INT64_MAX):
                limit = INT64_MAX // numerator
                row = int(np.flatnonzero((values > limit) | (values < -limit))[0])
                raise ValueRefused("a time outside the range of 64-bit ticks", row, "connect with a coarser time_unit")
            if not (low >= INT64_MIN and high <= INT64_MAX):
                exact = [v * numerator // denominator for v in values.tolist()]
                return self._read_list(
                    [v if k else None for v, k in zip(exact, _written(valid, len(exact)))], Type.INTEGER
                )
            values = values * numerator
        if denominator != 1:
            values = values // denominator
        return Column(values, valid)

    # --------------------------------------------------------------------------------------------------- Arrow

    def _read_arrow(self, data: Any, type_: Type) -> Column:
        if isinstance(data, pa.ChunkedArray):
            if data.num_chunks != 1:
                if data.num_chunks == 0:
                    return self._read_arrow(pa.array([], data.type), type_)
                columns, start = [], 0
                for chunk in data.chunks:
                    try:
                        columns.append(self._read_arrow(chunk, type_))
                    except ValueRefused as refused:
                        if refused.row is not None:
                            refused.row += start
                        raise
                    start += len(chunk)
                return Column.concat(columns)
            data = data.chunk(0)
        try:
            check_bounds(data)
            return self._read_arrow_array(_storage(data, type_), type_)
        except (pa.ArrowException, UnicodeError) as error:
            raise ValueRefused(f"an Arrow column that cannot be read: {str(error)[:200]}") from None

    def _read_arrow_array(self, array: Any, type_: Type) -> Column:
        kind, types = array.type, pa.types
        n = len(array)
        if n <= _FEW and _LIKE_PYTHONS.get(kind) is type_:
            return self._read_list(array.to_pylist(), type_)
        if types.is_null(kind):
            return Column.nulls(n, type_)
        if type_ is Type.TEXT:
            if _is_text(kind) or (types.is_dictionary(kind) and _is_text(kind.value_type)):
                return self._encode(array)
        elif type_ is Type.BOOLEAN and types.is_boolean(kind):
            values = (array if not array.null_count else array.fill_null(False)).to_numpy(zero_copy_only=False)
            return Column(values, _validity(array))
        elif type_ is Type.FLOAT and types.is_decimal(kind):
            return floats_of_decimals(array)
        elif type_ is Type.FLOAT and (types.is_floating(kind) or types.is_integer(kind)):
            if not types.is_float64(kind):
                array = array.cast(pa.float64(), safe=False)
            values = (array if not array.null_count else array.fill_null(0.0)).to_numpy(zero_copy_only=False)
            return self._clean_floats(values, _validity(array))
        elif not type_.is_basic:
            if type_ is Type.DATE and types.is_date(kind):
                return self._read_days(array)
            is_exact = type_.kind == "DECIMAL" and (types.is_integer(kind) or types.is_decimal(kind))
            if is_exact and (decimals := codes_of_decimals(array, type_)) is not None:
                return decimals
            is_spelt = type_.kind == "DECIMAL" and (types.is_string(kind) or types.is_large_string(kind))
            if n > FEW_TEXTS and is_spelt and (decimals := codes_of_decimal_texts(array, type_)) is not None:
                return decimals
            if _can_hold(kind, type_):
                return self._read_different(array, type_)
        elif type_ in _COUNTED and (types.is_integer(kind) or (types.is_decimal(kind) and kind.scale <= 0)):
            if types.is_decimal(kind):
                return self._read_each([None if v is None else int(v) for v in array.to_pylist()], type_)
            valid = _validity(array)
            values = (array if valid is None else array.fill_null(0)).to_numpy(zero_copy_only=False)
            return Column(_to_int64(values, valid), valid)
        elif type_ is Type.TIMESTAMP and (types.is_timestamp(kind) or types.is_date(kind)):
            unit = kind.unit if types.is_timestamp(kind) else "D" if types.is_date32(kind) else "ms"
            if types.is_date32(kind):
                array = array.cast(pa.int32()).cast(pa.int64())
            return self._scale(_int64_view(array), _validity(array), UNIT_NS[unit])
        elif type_ is Type.INTERVAL and types.is_duration(kind):
            return self._scale(_int64_view(array), _validity(array), UNIT_NS[kind.unit])
        elif type_ is Type.TIMESTAMP and _is_text(kind):
            return self._read_list(array.to_pylist(), type_)
        if array.null_count == n:
            return Column.nulls(n, type_)
        hint = ""
        if type_ is Type.INTEGER and types.is_floating(kind):
            hint = "cast it to int64 (pandas: astype('Int64'), which keeps missing values), or declare the column FLOAT"
        elif type_ is Type.BOOLEAN and types.is_integer(kind):
            hint = "cast it to bool, or declare the column INTEGER"
        elif type_ in (Type.INTEGER, Type.FLOAT) and _is_text(kind):
            hint = "make numbers of it (pandas: pandas.to_numeric(column)), or declare the column TEXT"
        elif type_ is Type.TEXT and (types.is_integer(kind) or types.is_floating(kind)):
            hint = "make texts of it (pandas: astype('string'), which keeps missing values), or declare numbers"
        elif type_ is Type.TEXT and types.is_nested(kind):
            hint = "declare what is nested: STRUCT(a INTEGER, b TEXT), TEXT[]; or make JSON of it, json.dumps(value)"
        raise ValueRefused(f"an Arrow column of {kind} cannot be read as {type_}", hint=hint)

    def _read_days(self, array: Any) -> Column:
        valid = _validity(array)
        if pa.types.is_date64(array.type):
            days = _int64_view(array) // _DAY_MS
        else:
            days = array.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        outside = (days < FIRST_DAY) | (days > LAST_DAY)
        if outside.any():
            raise ValueRefused("a day outside the years 1 to 9999 cannot be read as DATE", int(np.argmax(outside)))
        return Column(days, valid)

    def _read_different(self, array: Any, type_: Type) -> Column:
        """Each different value once."""
        try:
            first, which = different(array)
        except Unknown:
            return self._read_list(list(map(python_value, array)), type_)
        if len(first) > _FEW and (texts := texts_of_nested(array, first, type_)) is not None:
            return self._encode(texts).take(which)
        try:
            column = self._read_list([python_value(array[row]) for row in first.tolist()], type_)
        except ValueRefused as refused:
            if refused.row is not None:
                refused.row = int(first[refused.row])
            raise
        return column.take(which)


def python_value(scalar: Any) -> Any:
    """A value of an Arrow array, in which times that `datetime` does not reach are numpy's."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        kind = scalar.type
    if pa.types.is_timestamp(kind):
        return np.datetime64(scalar.value, kind.unit)
    if pa.types.is_struct(kind):
        return {kind.field(i).name: python_value(scalar[i]) for i in range(kind.num_fields)}
    if not pa.types.is_nested(kind):
        return scalar.as_py()
    parts = list(map(python_value, scalar.values))
    return [tuple(part.values()) for part in parts] if pa.types.is_map(kind) else parts


def as_array(data: Any) -> Any:
    """What the caller gave for a column, as a list, a numpy array or an Arrow array."""
    if isinstance(data, np.ndarray | pa.Array | pa.ChunkedArray | list):
        return data
    if isinstance(data, tuple | range):
        return list(data)
    if isinstance(data, str | bytes | dict):
        raise ValueRefused(f"{show(data)} where a column of values is wanted")
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.chunked_array(data)
        if hasattr(data, "__arrow_c_array__"):
            return pa.array(data)
        if hasattr(data, "__array__"):
            return np.asarray(data)
        return list(data)
    except Exception as error:
        raise ValueRefused(f"{type(data).__name__} cannot be read as a column: {raised(error)}") from error


def _instants(values: Sequence[Any], kinds: set[type]) -> Any:
    """A list of datetimes or ISO texts, all in UTC, and None, as Arrow has them in microseconds; None where one is to
    be looked at.
    """
    try:
        if kinds == {datetime} and all(v is None or v.tzinfo is None or v.tzinfo is UTC for v in values):
            return pa.array(values, pa.timestamp("us"))
        if kinds == {str}:
            import pyarrow.compute as pc  # seldom needed, and a tenth of the time until a first answer

            texts = pa.array(values, pa.string())
            if pc.all(pc.match_substring_regex(texts, _PLAIN_TIME)).as_py():
                return pc.replace_substring_regex(texts, r"(Z|\+00:00)$", "").cast(pa.timestamp("us"))
    except (pa.ArrowException, UnicodeError):
        pass
    return None


def _decimals(values: Sequence[Any], kinds: set[type], type_: Type) -> Column | None:
    """A list of values of one of these kinds, and None, as DECIMAL; None where one is to be looked at."""
    try:
        if kinds <= {Decimal}:
            return codes_of_decimals(pa.array(values, pa.decimal128(MOST_DIGITS, type_.scale)), type_)
        if kinds == {int}:
            return codes_of_decimals(pa.array(values, pa.int64()), type_)
        if kinds not in ({float}, {str}):
            return None
        first = next(value for value in values if value is not None)
        if plain_decimal(type_).fullmatch(str(first)) is None:
            return None
        if kinds == {float}:
            values = [None if value is None else repr(value) for value in values]
        return codes_of_decimal_texts(pa.array(values, pa.string()), type_)
    except (pa.ArrowException, UnicodeError, OverflowError):
        return None


def _as_list(array: AnyArray, valid: BoolArray | None) -> list[Any]:
    """Values as Python sees them, None where masked. Times stay numpy's, which do not lose nanoseconds."""
    values = list(array) if array.dtype.kind in "mM" else array.tolist()
    return values if valid is None else [v if known else None for v, known in zip(values, valid.tolist())]


def _to_int64(array: AnyArray, valid: BoolArray | None) -> Int64Array:
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and len(array):
        beyond: BoolArray = np.asarray(array > np.uint64(INT64_MAX))
        if valid is not None:
            beyond = beyond & valid
        if beyond.any():
            row = int(np.argmax(beyond))
            raise ValueRefused(f"{int(array[row])} is outside the range of INTEGER (64 bits)", row)
    return cast(Int64Array, np.ascontiguousarray(array.astype(np.int64, copy=False)))


def _zero_nulls(array: AnyArray, valid: BoolArray | None) -> Column:
    return Column(array if valid is None else np.where(valid, array, array.dtype.type(0)), valid)


def _validity(array: Any) -> BoolArray | None:
    return cast(BoolArray, array.is_valid().to_numpy(zero_copy_only=False)) if array.null_count else None


def _int64_view(array: Any) -> Int64Array:
    words = array if pa.types.is_int64(array.type) else array.view(pa.int64())
    return cast(Int64Array, words.fill_null(0).to_numpy(zero_copy_only=False))


def _written(valid: BoolArray | None, n: int) -> list[bool]:
    return [True] * n if valid is None else cast("list[bool]", valid.tolist())


def _can_hold(kind: Any, type_: Type) -> bool:
    """Whether values of a type that is not basic may come in an Arrow column."""
    types = pa.types
    if _is_text(kind) or type_.is_nested:
        return _is_text(kind) or bool(types.is_nested(kind))
    if type_.kind == "DECIMAL":
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
    return bool(types.is_integer(kind) or (types.is_date(kind) if type_ is Type.DATE else types.is_time(kind)))


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _storage(array: Any, type_: Type) -> Any:
    """The array without wrappings: extension types, run-end encoding, and dictionaries of what is no text."""
    if isinstance(array, pa.ExtensionArray):
        if array.type.extension_name.startswith("pandas."):
            # Periods and intervals of pandas: their storage counts in units of its own.
            raise ValueRefused(f"an Arrow column of {array.type.extension_name} cannot be read as {type_}")
        array = array.storage
    if pa.types.is_run_end_encoded(array.type):
        import pyarrow.compute as pc

        array = pc.run_end_decode(array)
    if pa.types.is_dictionary(array.type) and not (type_ is Type.TEXT and _is_text(array.type.value_type)):
        array = array.dictionary_decode()
    return array
