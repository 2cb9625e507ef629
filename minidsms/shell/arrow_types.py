"""The types that hold what Arrow reads: of its types, and of what is nested in JSON lines.

Invariant: a type that is given holds all the values that were looked at.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from minidsms.elements import INT64_MAX, Type
from minidsms.values.types import MOST_DIGITS

_DEEPEST = 16
"""So many types in each other a declaration takes."""


def cql_type(type_: Any, values: Any = None) -> Type | None:
    """The CQL type that holds an Arrow type's values; None where there is none. values: some of them, where known."""
    from pyarrow import types

    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if types.is_dictionary(type_) or types.is_run_end_encoded(type_):
        return cql_type(type_.value_type)
    if types.is_uint64(type_) and values is not None and (pc.max(values).as_py() or 0) > INT64_MAX:
        return Type.decimal(20, 0)
    if types.is_integer(type_):
        return Type.INTEGER
    if types.is_decimal(type_) and 0 <= type_.scale <= type_.precision <= MOST_DIGITS:
        return Type.decimal(type_.precision, type_.scale)
    if types.is_floating(type_) or types.is_decimal(type_):
        return Type.FLOAT
    if types.is_boolean(type_):
        return Type.BOOLEAN
    if types.is_timestamp(type_) or types.is_date(type_):
        return Type.TIMESTAMP
    if types.is_time(type_):
        return Type.TIME
    if types.is_duration(type_):
        return Type.INTERVAL
    if any(each(type_) for each in (types.is_string, types.is_large_string, types.is_string_view, types.is_null)):
        return Type.TEXT
    return _of_parts(type_) if types.is_nested(type_) else None


def _of_parts(type_: Any) -> Type | None:
    from pyarrow import types

    if types.is_map(type_):
        key, value = cql_type(type_.key_type), cql_type(type_.item_type)
        return None if value is None or key not in (Type.TEXT, Type.INTEGER) else Type.map(key, value)
    if types.is_struct(type_):
        fields = [(field.name, cql_type(field.type)) for field in type_]
        names = {name.lower() for name, _ in fields if name}
        held = [(name, each) for name, each in fields if each is not None]
        return Type.struct(held) if len(held) == len(names) == len(fields) > 0 else None
    value = None if types.is_union(type_) else cql_type(type_.value_type)
    return None if value is None else value.list_type


def nested_type(values: Any) -> Type | None:
    """The type of what is nested in a column of JSON lines, where times are texts; None where the values tell none.

    values: an Arrow array.  Objects whose members are all of one type, and most of them missing, are a MAP.
    """
    found = _in_json(values)
    return found if found is not None and found.depth <= _DEEPEST else None


def _in_json(values: Any) -> Type | None:
    if pa.types.is_list(values.type):
        element = _in_json(values.flatten())
        return None if element is None else element.list_type
    if not pa.types.is_struct(values.type):
        found = None if pa.types.is_null(values.type) else cql_type(values.type)
        return Type.TEXT if found is Type.TIMESTAMP else found
    parts, names = values.flatten(), [field.name for field in values.type]
    types = [_in_json(part) for part in parts]
    known = [type_ for type_ in types if type_ is not None]
    if not types or len(known) < len(types) or len({name.lower() for name in names if name}) < len(names):
        return None
    there = sum(len(part) - part.null_count for part in parts)
    is_map = len(types) > 1 and 2 * there <= len(types) * (len(values) - values.null_count)
    if is_map and len(set(known)) == 1 and not known[0].is_nested:
        return Type.map(Type.TEXT, known[0])
    return Type.struct(list(zip(names, known)))
