"""The kernel of a relation's bag of rows: changes are counted and logged, or refused, one after the other."""

from __future__ import annotations

from minidsms.machine_code import Int8s, Int64s, kernel


@kernel
def change(
    ts: Int64s, sign: Int8s, ids: Int64s, counts: Int64s, log_ts: Int64s, log_ids: Int64s, logged: int, gone: Int64s
) -> int:  # fmt: skip
    """Count changes of the rows `ids` into `counts`, by id, and log the insertions behind the first `logged`, for which
    there is room; returns -1, or the first change after which its row would be there fewer than 0 times, and then
    nothing has changed.

    gone: (n + 2,) gets the ids whose rows are not there, by the change, then how many of these and of insertions there
    are.
    """
    n, bad, has_deletions = len(ids), -1, False
    m, end = 0, logged
    for k in range(n):
        counts[ids[k]] += sign[k]
        if sign[k] > 0:
            log_ts[end], log_ids[end] = ts[k], ids[k]
            end += 1
            continue
        has_deletions = True
        if counts[ids[k]] < 0:
            for j in range(k + 1):
                counts[ids[j]] -= sign[j]
            bad, end = k, logged
            break
    if has_deletions:
        for k in range(n):
            if counts[ids[k]] == 0:
                gone[m] = ids[k]
                m += 1
    gone[n], gone[n + 1] = m, end - logged
    return bad
