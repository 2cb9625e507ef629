"""The kernel of a relation's bag of rows: changes are counted, or refused, one after the other."""

from __future__ import annotations

from minidsms.machine_code import Int8s, Int64s, kernel


@kernel
def count_in(ids: Int64s, sign: Int8s, counts: Int64s) -> int:
    """Count changes of the rows `ids` into `counts`, by id; returns -1, or the first change after which its row would
    be there fewer than 0 times, and then nothing has changed.
    """
    for k in range(len(ids)):
        counts[ids[k]] += sign[k]
        if counts[ids[k]] < 0:
            for j in range(k + 1):
                counts[ids[j]] -= sign[j]
            return k
    return -1
