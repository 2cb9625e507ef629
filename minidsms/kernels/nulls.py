"""Kernels of NULLs: what stands in a column where a value is missing (docs/semantics R4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from minidsms.elements import BoolArray
from minidsms.machine_code import kernel


@kernel("boolean(float64[::1], boolean[::1])")
def clear_floats(values: npt.NDArray[np.float64], valid: BoolArray) -> bool:
    """Write 0.0 where not valid and for -0.0, in one pass. (n,) each. Whether a valid one is NaN."""
    has_nan = False
    for i in range(len(values)):
        value = values[i] + 0.0 if valid[i] else 0.0
        has_nan |= value != value
        values[i] = value
    return has_nan
