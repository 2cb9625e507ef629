"""What the kernels of grouped aggregation share, and DISTINCT.

A batch is `ids` (n,) int64, the group of each element, with `weight` (n,) int8: +1 where the element's value comes
to the group, -1 where it leaves, 0 where it does not count (NULL, or a duplicate under DISTINCT). Every aggregate
is one pass that moves its state, an array with a row per group, and writes what it would answer after each element:
results[i, j] (the word; `floats` is the same memory as float64) and status[i, j], one of NULL, VALUE, FAILED.
`grouping.close_instants` then takes, per instant and group, the answers after the group's last element. A state whose
last value has left is all zeros again, so a freed group needs no cleaning.
"""

from __future__ import annotations

import numpy as np

from minidsms.machine_code import kernel

NULL, VALUE, FAILED = range(3)


@kernel("int64(int64[::1], int8[::1], int64[::1], int8[::1], int64[::1])")
def weigh_distinct(pairs: np.ndarray, weight: np.ndarray, counts: np.ndarray, out: np.ndarray, gone: np.ndarray) -> int:
    """DISTINCT: of equal values the first that comes and the last that leaves weigh.

    pairs: ids of (group, value).  Writes into `gone` those whose last value left (it may have come again since);
    returns how many.
    """
    n_gone = 0
    for i in range(pairs.shape[0]):
        before = counts[pairs[i]]
        after = before + weight[i]
        counts[pairs[i]] = after
        out[i] = 1 if before == 0 and after > 0 else (-1 if before > 0 and after == 0 else 0)
        if after == 0:
            gone[n_gone] = pairs[i]
            n_gone += 1
    return n_gone
