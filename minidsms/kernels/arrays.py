"""Arrays as kernels take them: their signatures name contiguous, aligned, writable arrays, and nothing else matches."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof, c_char
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from minidsms.elements import AnyArray, BoolArray, Column, Int64Array, valid_in_all
from minidsms.kernels.addresses import PLACE_WORDS

_Scalar = TypeVar("_Scalar", bound=np.generic)


def normal(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """The array itself if a kernel can take it, else a copy."""
    return array if array.flags.carray else array.copy(order="C")


def key_words(columns: Sequence[Column], n: int) -> tuple[Int64Array, BoolArray | None]:
    """The words (n, k) of a key's columns, and where none of them is NULL; None: everywhere."""
    if len(columns) == 1:
        words = normal(columns[0].words()).reshape(-1, 1)
    else:
        words = np.empty((n, len(columns)), np.int64)
        for j, column in enumerate(columns):
            words[:, j] = column.words()
    return words, valid_in_all([column.valid for column in columns])


def places(columns: Sequence[Column]) -> tuple[Int64Array, list[AnyArray]]:
    """A table of where columns stand (`kernels.addresses`), and the arrays that must live as long as it is used."""
    values = [np.ascontiguousarray(column.values) for column in columns]
    valid = [None if column.valid is None else np.ascontiguousarray(column.valid) for column in columns]
    table = [(_address(v), 0 if m is None else _address(m), v.itemsize) for v, m in zip(values, valid)]
    kept: list[AnyArray] = [*values, *(each for each in valid if each is not None)]
    return np.array(table, np.int64).reshape(len(table), PLACE_WORDS), kept


def _address(array: AnyArray) -> int:
    if len(array) and array.flags.writeable:
        return addressof(c_char.from_buffer(array))  # type: ignore[arg-type]  # a fourth of the time
    return array.__array_interface__["data"][0]
