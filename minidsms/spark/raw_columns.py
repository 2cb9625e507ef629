"""Raw columns to the types of a declaration, as Spark expressions, and which values cannot be read.

Texts are read as the engine's own sources read files (`sources.text_columns`); columns that have a type already, as in
Parquet, as a push reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from minidsms.cql.errors import Error
from minidsms.elements import Type
from minidsms.spark.batches import read_values
from minidsms.values.types import FALSE_WORDS, TRUE_WORDS

if TYPE_CHECKING:
    from pyspark.sql import Column

_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_INFINITE = r"^[+-]?(?i:inf|infinity)$"
_TICKS = r"^[+-]?\d+$"
_ISO = r"^\d{4}-\d{1,2}-\d{1,2}([T ]\d{1,2}(:\d{2}(:\d{2}(\.\d{1,9})?)?)?(Z|[+-]\d{2}(:?\d{2})?)?)?$"

_SHORT = r"^(\S+[T ]\d{1,2}(?::\d{2})?)(Z|[+-].*)?$"
"""One without minutes or seconds, which Spark does not read before a zone."""


def read_column(raw: Column, kind: T.DataType, type_: Type, tick_ns: int, name: str) -> Column:
    """A raw column as the type; NULL where a value cannot be read. Error where the kind of column is no such type."""
    if isinstance(kind, T.StringType):
        if type_ is Type.TEXT:
            return raw
        return _READERS[type_](F.trim(raw), tick_ns) if type_.is_basic else read_values(raw, type_, tick_ns)
    if not type_.is_basic and isinstance(kind, _KINDS[type_.kind]):
        return read_values(raw, type_, tick_ns)
    whole = isinstance(kind, T.IntegralType)
    if type_ is Type.FLOAT and isinstance(kind, T.NumericType):
        return _finite(raw.cast("double"))
    if type_ is Type.BOOLEAN and isinstance(kind, T.BooleanType):
        return raw
    if type_ in (Type.INTEGER, Type.TIMESTAMP, Type.INTERVAL) and whole:
        return raw.cast("bigint")
    if type_ is Type.TIMESTAMP and isinstance(kind, T.TimestampType | T.TimestampNTZType | T.DateType):
        return _ticks_of_micros(F.unix_micros(raw.cast("timestamp_ltz")), F.lit(0), tick_ns)
    raise Error(f"column {name} is {kind.simpleString()} in the raw data, and is declared {type_}")


def _finite(value: Column) -> Column:
    """NaN is NULL and -0.0 is 0.0 (docs/semantics R4)."""
    return F.when(F.isnan(value), F.lit(None)).when(value == F.lit(0.0), F.lit(0.0)).otherwise(value)


def _integer(text: Column, tick_ns: int) -> Column:
    return F.when(text.rlike(_TICKS), text.try_cast("bigint"))


def _float(text: Column, tick_ns: int) -> Column:
    infinite = F.when(text.startswith("-"), F.lit(float("-inf"))).otherwise(F.lit(float("inf")))
    return F.when(text.rlike(_INFINITE), infinite).when(text.rlike(_NUMBER), _finite(text.try_cast("double")))


def _boolean(text: Column, tick_ns: int) -> Column:
    word = F.lower(text)
    return F.when(word.isin(*TRUE_WORDS), F.lit(True)).when(word.isin(*FALSE_WORDS), F.lit(False))


def _timestamp(text: Column, tick_ns: int) -> Column:
    # Spark's times end at microseconds; what follows is added.
    further = F.rpad(F.regexp_extract(text, r"\.\d{6}(\d{1,3})", 1), 3, "0").cast("bigint")
    to_the_second = F.regexp_replace(F.regexp_replace(text, _SHORT, "$1:00$2"), _SHORT, "$1:00$2")
    micros = F.unix_micros(to_the_second.try_cast("timestamp_ltz"))
    iso = F.when(text.rlike(_ISO), _ticks_of_micros(micros, further, tick_ns))
    return F.when(text.rlike(_TICKS), text.try_cast("bigint")).otherwise(iso)


def _ticks_of_micros(micros: Column, nanos: Column, tick_ns: int) -> Column:
    """Microseconds, and nanoseconds below one, as ticks, floored; NULL beyond int64."""
    if tick_ns >= 1000:
        step = F.lit(tick_ns // 1000).cast("bigint")
        return F.call_function("div", micros - F.pmod(micros, step), step)
    return F.try_add(F.try_multiply(micros, F.lit(1000 // tick_ns).cast("bigint")), nanos)


_KINDS: dict[str, tuple[type[T.DataType], ...]] = {
    "LIST": (T.ArrayType,),
    "STRUCT": (T.StructType, T.MapType),
    "MAP": (T.MapType, T.StructType),
    "DECIMAL": (T.NumericType,),
    "DATE": (T.DateType,),
    "TIME": (),
}

_READERS: dict[Type, Callable[[Column, int], Column]] = {
    Type.INTEGER: _integer,
    Type.INTERVAL: _integer,
    Type.FLOAT: _float,
    Type.BOOLEAN: _boolean,
    Type.TIMESTAMP: _timestamp,
}
