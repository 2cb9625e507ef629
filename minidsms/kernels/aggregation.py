"""The loops of grouped aggregation: running sums per group, and the rows an instant changes.

A batch is `ids` (n,) int64, the group of each element, with `weight` (n,) int8: +1 where the element's value comes
to the group, -1 where it leaves, 0 where it does not count (NULL, or a duplicate under DISTINCT). Every aggregate
is one pass that moves its state, an array with a row per group, and writes what it would answer after each element:
results[i, j] (the word; `floats` is the same memory as float64) and status[i, j], one of NULL, VALUE, FAILED.
`emit` then takes, per instant and group, the answers after the group's last element. A state whose last value has
left is all zeros again, so a freed group needs no cleaning.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NULL, VALUE, FAILED = range(3)
ROWS, STAMP, LAST, SHOWN, FIRST_WORD = range(5)
"""Columns of `shown`, the state of `emit`; from FIRST_WORD on the words put out last, then whether each is not NULL."""

_TWO_64 = 18446744073709551616.0


@njit("void(int64[::1], int8[::1], int64[:,::1], int64[:,::1], int8[:,::1], int64)", cache=True, nogil=True)
def count_values(
    ids: np.ndarray, weight: np.ndarray, state: np.ndarray, results: np.ndarray, status: np.ndarray, j: int
) -> None:
    """COUNT(x). state: (cap, 1) the count."""
    for i in range(ids.shape[0]):
        group = ids[i]
        state[group, 0] += weight[i]
        results[i, j] = state[group, 0]
        status[i, j] = VALUE


@njit("void(int64[::1], int8[::1], int64[::1], int8[::1])", cache=True, nogil=True)
def weigh_distinct(pairs: np.ndarray, weight: np.ndarray, counts: np.ndarray, out: np.ndarray) -> None:
    """DISTINCT: of equal values the first that comes and the last that leaves weigh. pairs: ids of (group, value)."""
    for i in range(pairs.shape[0]):
        before = counts[pairs[i]]
        after = before + weight[i]
        counts[pairs[i]] = after
        out[i] = 1 if before == 0 and after > 0 else (-1 if before > 0 and after == 0 else 0)


@njit(
    "void(int64[::1], int8[::1], int64[::1], int64[:,::1], boolean, int64[:,::1], float64[:,::1], int8[:,::1], int64)",
    cache=True,
    nogil=True,
)
def sum_integers(
    ids: np.ndarray,
    weight: np.ndarray,
    values: np.ndarray,
    state: np.ndarray,
    average: bool,
    results: np.ndarray,
    floats: np.ndarray,
    status: np.ndarray,
    j: int,
) -> None:
    """SUM and AVG of INTEGER, exact. state: (cap, 3) [count, low, high word of a sum in 128 bits, two's complement]."""
    for i in range(ids.shape[0]):
        group = ids[i]
        if weight[i] != 0:
            state[group, 0] += weight[i]
            value = values[i]
            low = np.uint64(state[group, 1])
            part = np.uint64(value)
            extension = np.int64(-1) if value < 0 else np.int64(0)
            if weight[i] > 0:
                total = low + part
                carry = np.int64(1) if total < low else np.int64(0)
                state[group, 2] += extension + carry
            else:
                total = low - part
                carry = np.int64(1) if part > low else np.int64(0)
                state[group, 2] -= extension + carry
            state[group, 1] = np.int64(total)
        count = state[group, 0]
        low_word = state[group, 1]
        fits = state[group, 2] == (np.int64(-1) if low_word < 0 else np.int64(0))
        if count == 0:
            results[i, j] = 0
            status[i, j] = NULL
        elif average:
            exact = float(low_word) if fits else float(state[group, 2]) * _TWO_64 + float(np.uint64(low_word))
            floats[i, j] = exact / count
            status[i, j] = VALUE
        else:
            results[i, j] = low_word
            status[i, j] = VALUE if fits else FAILED


@njit(
    "int64(int64[::1], int8[::1], int64[::1], int64[:,::1], int8[:,::1], boolean[::1], int64[:,::1], boolean, int64,"
    " int64[::1], int64[::1], int64[::1], int8[::1], int64[::1], int64[:,::1], int8[:,::1])",
    cache=True,
    nogil=True,
)
def emit(
    ts: np.ndarray,
    sign: np.ndarray,
    ids: np.ndarray,
    results: np.ndarray,
    status: np.ndarray,
    is_star: np.ndarray,
    shown: np.ndarray,
    is_global: bool,
    start: int,
    meta: np.ndarray,
    touched: np.ndarray,
    out_ts: np.ndarray,
    out_sign: np.ndarray,
    out_ids: np.ndarray,
    out_words: np.ndarray,
    out_status: np.ndarray,
) -> int:
    """Close the batch's instants: -old row, +new row of each group whose row changed. Returns how many rows were
    written.

    is_star[j]: the aggregate is COUNT(*), the number of rows, which is kept here.  is_global: the one group exists from
    `start` on, rows or no rows; else a group exists while it has rows.  meta: (3,) [instants closed so far, and on a
    failure 1 + the aggregate, its position]; the output then ends before the failing instant.  The outputs hold 2 n
    rows.
    """
    n = ts.shape[0]
    k = is_star.shape[0]
    i = 0
    out = 0
    while i < n:
        now = ts[i]
        begin = out
        meta[0] += 1
        groups = 0
        while i < n and ts[i] == now:
            group = ids[i]
            shown[group, ROWS] += sign[i]
            shown[group, LAST] = i
            if shown[group, STAMP] != meta[0]:
                shown[group, STAMP] = meta[0]
                touched[groups] = group
                groups += 1
            i += 1
        changed = 0
        for t in range(groups):
            group = touched[t]
            at = shown[group, LAST]
            was_shown = shown[group, SHOWN] == 1
            exists = now >= start if is_global else shown[group, ROWS] > 0
            same = exists == was_shown
            if exists:
                for j in range(k):
                    if is_star[j]:
                        results[at, j] = shown[group, ROWS]
                        status[at, j] = VALUE
                    if status[at, j] == FAILED:
                        meta[1] = j + 1
                        meta[2] = at
                        return begin
                    word = shown[group, FIRST_WORD + j]
                    same = same and results[at, j] == word and status[at, j] == shown[group, FIRST_WORD + k + j]
            if same:
                continue
            touched[changed] = group
            changed += 1
            if was_shown:
                out_ts[out] = now
                out_sign[out] = -1
                out_ids[out] = group
                for j in range(k):
                    out_words[j, out] = shown[group, FIRST_WORD + j]
                    out_status[j, out] = shown[group, FIRST_WORD + k + j]
                out += 1
            shown[group, SHOWN] = 1 if exists else 0
            for j in range(k):
                shown[group, FIRST_WORD + j] = results[at, j] if exists else 0
                shown[group, FIRST_WORD + k + j] = status[at, j] if exists else 0
        for t in range(changed):
            group = touched[t]
            if shown[group, SHOWN] == 1:
                out_ts[out] = now
                out_sign[out] = 1
                out_ids[out] = group
                for j in range(k):
                    out_words[j, out] = shown[group, FIRST_WORD + j]
                    out_status[j, out] = shown[group, FIRST_WORD + k + j]
                out += 1
    return out
