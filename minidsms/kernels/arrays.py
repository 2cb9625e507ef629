"""Arrays as kernels take them: their signatures name contiguous, aligned, writable arrays, and nothing else matches."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

_Scalar = TypeVar("_Scalar", bound=np.generic)


def normal(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """The array itself if a kernel can take it, else a copy."""
    return array if array.flags.carray else array.copy(order="C")
