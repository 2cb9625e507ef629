"""Merging two runs of elements, each in the order of instants and, within one, deletions first."""

from __future__ import annotations

import numpy as np

from minidsms.machine_code import kernel


@kernel("void(int64[::1], int8[::1], int64[::1], int8[::1], int64[::1], int64[::1])")
def merge_runs(
    left_ts: np.ndarray,
    left_sign: np.ndarray,
    right_ts: np.ndarray,
    right_sign: np.ndarray,
    to_left: np.ndarray,
    to_right: np.ndarray,
) -> None:
    """Where each element of left and of right goes; of the same instant and sign those of left stand before."""
    n, m = len(left_ts), len(right_ts)
    i = j = 0
    while i < n and j < m:
        is_before = left_ts[i] < right_ts[j] or (left_ts[i] == right_ts[j] and left_sign[i] <= right_sign[j])
        if is_before:
            to_left[i] = i + j
            i += 1
        else:
            to_right[j] = i + j
            j += 1
    while i < n:
        to_left[i] = i + j
        i += 1
    while j < m:
        to_right[j] = i + j
        j += 1
