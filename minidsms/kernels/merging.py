"""Merging two runs of elements, each in the order of instants and, within one, deletions first; and exchanging two."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidsms.machine_code import helper, kernel


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


@helper
def exchange(values: Any, first: int, middle: int, end: int) -> None:
    """Exchange [first, middle) with [middle, end): each is reversed, and then both."""
    for a, b in ((first, middle), (middle, end), (first, end)):
        x, y = a, b - 1
        while x < y:
            values[x], values[y] = values[y], values[x]
            x += 1
            y -= 1
