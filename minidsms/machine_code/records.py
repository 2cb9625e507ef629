"""What kernels take besides arrays of numbers: records of named words, arrays of them, and bundles of arrays.

A `Record` names words that change, those of one thing as `record.field`; `Rows[R]` is an array of such rows, in which
kernels read and write a word in place as `table[i].field`. A bundle is a NamedTuple of arrays, records and numbers:
what belongs together is one argument. All are known to mypy by their annotations, and kernels get their signatures
from them.

Invariant: a signature says of a record all that machine code depends on, its fields and their order.
docs/design, point 2.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

Int64s: TypeAlias = npt.NDArray[np.int64]
"""In annotations of kernels and bundles: one dimension, contiguous."""
Int64Table: TypeAlias = npt.NDArray[np.int64]
"""Two dimensions, contiguous."""
Int64Cube: TypeAlias = npt.NDArray[np.int64]
"""Three."""
Int32s: TypeAlias = npt.NDArray[np.int32]
Int32Table: TypeAlias = npt.NDArray[np.int32]
Int16s: TypeAlias = npt.NDArray[np.int16]
Int8Table: TypeAlias = npt.NDArray[np.int8]
Int8s: TypeAlias = npt.NDArray[np.int8]
Uint8s: TypeAlias = npt.NDArray[np.uint8]
Uint8Table: TypeAlias = npt.NDArray[np.uint8]
Uint64s: TypeAlias = npt.NDArray[np.uint64]
Float64s: TypeAlias = npt.NDArray[np.float64]
Float64Table: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Uint64Table: TypeAlias = npt.NDArray[np.uint64]
BoolTable: TypeAlias = npt.NDArray[np.bool_]

_WORDS = {
    "None": "void",
    "int": "int64",
    "bool": "boolean",
    "float": "float64",
    "Int64s": "int64[::1]",
    "Int64Table": "int64[:, ::1]",
    "Int64Cube": "int64[:, :, ::1]",
    "Int32s": "int32[::1]",
    "Int32Table": "int32[:, ::1]",
    "Int16s": "int16[::1]",
    "Int8s": "int8[::1]",
    "Int8Table": "int8[:, ::1]",
    "Uint8s": "uint8[::1]",
    "Uint8Table": "uint8[:, ::1]",
    "Uint64s": "uint64[::1]",
    "Float64s": "float64[::1]",
    "Float64Table": "float64[:, ::1]",
    "Bools": "boolean[::1]",
    "Uint64Table": "uint64[:, ::1]",
    "BoolTable": "boolean[:, ::1]",
}
"""Annotations, by their names, as numba writes the types."""

AnyArray: TypeAlias = np.ndarray[Any, Any]
R = TypeVar("R", bound="Record")


if TYPE_CHECKING:
    from _ctypes import _PyCStructType as _Structures
else:
    _Structures = type(ctypes.Structure)


class _Records(_Structures):
    """What makes the classes of records: ctypes wants the fields as a class begins."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        namespace["_fields_"] = [(field, ctypes.c_int64) for field in namespace.get("__annotations__", ())]
        return super().__new__(cls, name, bases, namespace)


class Record(ctypes.Structure, metaclass=_Records):
    """Named int64 words: a class with nothing but annotations. What it makes are zeros, unless given.

    >>> class Span(Record):
    ...     lo: int
    ...     hi: int
    >>> span = Span(hi=3)
    >>> span.lo -= 1
    >>> words_of(span).tolist()
    [-1, 3]
    >>> spans = rows_of(Span, 2)
    >>> record_in(Span, spans, 1).hi = 5
    >>> spans["hi"].tolist()
    [0, 5]
    """


class Rows(Generic[R]):
    """An array of records in one dimension; a name gives the column as a view.

    In kernels `rows[i]` is a record; in Python `record_in(R, rows, i)`.
    """

    nbytes: int
    shape: tuple[int, ...]

    def __len__(self) -> int:
        raise TypeError("a type for annotations: arrays are made by rows_of")

    @overload
    def __getitem__(self, at: str) -> Int64s: ...
    @overload
    def __getitem__(self, at: slice | AnyArray) -> Rows[R]: ...
    @overload
    def __getitem__(self, at: int | tuple[int, ...]) -> R: ...
    def __getitem__(self, at: Any) -> Any:
        raise TypeError("a type for annotations: arrays are made by rows_of")

    def __setitem__(self, at: Any, value: Any) -> None:
        raise TypeError("a type for annotations: arrays are made by rows_of")

    def copy(self) -> Rows[R]:
        """Of the array."""
        raise TypeError("a type for annotations: arrays are made by rows_of")


class Grid(Rows[R]):
    """An array of records in two dimensions."""


def row_type(record: type[Record]) -> np.dtype[Any]:
    """Of the elements of an array of such records."""
    return _row_type(_fields(record))


@cache
def _row_type(fields: tuple[str, ...]) -> np.dtype[Any]:
    return np.dtype([(name, np.int64) for name in fields], align=True)


def rows_of(record: type[R], n: int) -> Rows[R]:
    """n records of zeros."""
    return cast("Rows[R]", np.zeros(n, row_type(record)))


def grid_of(record: type[R], n: int, m: int) -> Grid[R]:
    """n by m records of zeros."""
    return cast("Grid[R]", np.zeros((n, m), row_type(record)))


def record_in(record: type[R], rows: Rows[R], i: int) -> R:
    """One of an array's records, over the same memory. It takes microseconds: who asks often keeps it."""
    array = cast("AnyArray", rows)
    return record.from_buffer(cast("Any", array), i * array.dtype.itemsize)


def words_of(rows: Rows[R] | Record) -> Int64s:
    """The same memory as words, with one dimension more: the fields, in their order."""
    if isinstance(rows, Record):
        return np.frombuffer(cast("Any", rows), np.int64)
    array = cast("AnyArray", rows)
    return array.view(np.int64).reshape(*array.shape, array.dtype.itemsize // 8)


def rows_from(record: type[R], words: Int64s) -> Rows[R]:
    """The inverse of `words_of`; without a copy where the words are contiguous."""
    array = np.ascontiguousarray(words, np.int64)
    return cast("Rows[R]", array.view(row_type(record)).reshape(array.shape[:-1]))


# ---------------------------------------------------------------------------------------------------- signatures


@dataclass(frozen=True)
class RecordArray:
    """An array of records: their fields, and the dimensions; of none it is one record."""

    fields: tuple[str, ...]
    dimensions: int


@dataclass(frozen=True)
class Bundle:
    """A NamedTuple: its fields and their types."""

    name: str
    fields: tuple[tuple[str, ArgumentType], ...]


ArgumentType: TypeAlias = "str | RecordArray | Bundle"
"""A type as numba writes it, or what is described."""


@dataclass(frozen=True)
class Signature:
    """What a kernel takes and gives."""

    arguments: tuple[ArgumentType, ...]
    result: ArgumentType


def signature_of(function: Callable[..., Any]) -> Signature:
    """By the annotations of a function. TypeError where one is none of those that kernels know."""
    known: Mapping[str, Any] = function.__annotations__
    named = function.__code__.co_varnames[: function.__code__.co_argcount]
    missing = [name for name in (*named, "return") if name not in known]
    if missing:
        raise TypeError(f"{function.__qualname__} says no type of {missing[0]}")
    names = function.__globals__
    return Signature(tuple(_type(known[name], names) for name in named), _type(known["return"], names))


def _type(annotation: Any, names: Mapping[str, Any]) -> ArgumentType:
    """names: of the module where the annotation stands."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__forward_arg__", "None")
    if text in _WORDS:
        return _WORDS[text]
    generic, bracket, inner = text.partition("[")
    if bracket and generic in ("Rows", "Grid"):
        record = names[inner.rstrip("]")]
        return RecordArray(_fields(record), 1 if generic == "Rows" else 2)
    found = names.get(text)
    if isinstance(found, type) and issubclass(found, Record):
        return RecordArray(_fields(found), 0)
    if isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields"):
        its = vars(sys.modules[found.__module__])
        return Bundle(found.__name__, tuple((name, _type(a, its)) for name, a in found.__annotations__.items()))
    raise TypeError(f"kernels know no type {text}")


def _fields(record: type[Record]) -> tuple[str, ...]:
    return tuple(record.__annotations__)
