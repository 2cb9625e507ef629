"""Merging two runs of elements, each in the order of instants and, within one, deletions first; and exchanging two."""

from __future__ import annotations

from typing import Any

from minidsms.machine_code import Int8s, Int64s, helper, kernel


@kernel
def merge_runs(
    left_ts: Int64s, left_sign: Int8s, right_ts: Int64s, right_sign: Int8s, to_left: Int64s, to_right: Int64s
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
