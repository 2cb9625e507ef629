"""Arrays as kernels take them: their signatures name contiguous, aligned, writable arrays, and nothing else matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from minidsms.elements import AnyArray, BoolArray, Column, Int64Array, valid_in_all
from minidsms.kernels.addresses import PLACE_WORDS, write_places
from minidsms.machine_code.environment import is_supported

_Scalar = TypeVar("_Scalar", bound=np.generic)
_NO_MASK: BoolArray = np.zeros(0, np.bool_)


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


def places(columns: Sequence[Column]) -> tuple[Int64Array, Sequence[AnyArray]]:
    """A table of where columns stand (`kernels.addresses`), and the arrays that must live as long as it is used."""
    kept: tuple[AnyArray, ...] = ()
    for column in columns:
        kept += (column.values, _NO_MASK if column.valid is None else column.valid)
    table: Int64Array = np.empty((len(columns), PLACE_WORDS), np.int64)
    if not (is_supported() and write_places(id(kept), table)):
        kept = tuple(map(normal, kept))
        for row, values, valid in zip(table, kept[::2], kept[1::2]):
            row[:] = values.ctypes.data, valid.ctypes.data if len(valid) else 0, values.itemsize
    return table, kept
