"""Kernels of NULLs: what stands in a column where a value is missing (docs/semantics R4)."""

from __future__ import annotations

from minidsms.machine_code import Bools, Float64s, kernel


@kernel
def clear_floats(values: Float64s, valid: Bools) -> bool:
    """Write 0.0 where not valid and for -0.0, in one pass. (n,) each. Whether a valid one is NaN."""
    has_nan = False
    for i in range(len(values)):
        value = values[i] + 0.0 if valid[i] else 0.0
        has_nan |= value != value
        values[i] = value
    return has_nan
