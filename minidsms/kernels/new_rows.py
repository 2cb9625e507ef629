"""Which rows of an instant were not there an instant before, where rows last an instant."""

from __future__ import annotations

from typing import Any

from minidsms.kernels.mixing import bucket_of_row
from minidsms.machine_code import Bools, Int64s, Int64Table, helper, int64, kernel

_FEW = 64
"""Pairs of rows of two instants that are compared one by one."""


@helper(inline=True)
def _are_equal(words: Int64Table, i: int, j: int) -> Any:
    equal = True
    for c in range(words.shape[1]):
        equal &= words[i, c] == words[j, c]
    return equal


@helper(typed=True)
def _tell_few(words: Int64Table, before: int, begin: int, end: int, links: Int64s, is_new: Bools) -> int:
    """As `_tell_many`."""
    for j in range(before, begin):
        links[j] = 1  # it may still be taken for an equal one
    for i in range(begin, end):
        is_new[i] = True
        for j in range(before, begin):
            if links[j] == 1 and _are_equal(words, i, j):
                links[j], is_new[i] = 0, False
                break
    return int64(end)


@helper(typed=True)
def _tell_many(
    words: Int64Table, before: int, begin: int, end: int, links: Int64s, heads: Int64s, is_new: Bools
) -> int:
    """Mark the rows [begin, end) that outnumber the equal ones among [before, begin)."""
    size = 1
    while size < 2 * (begin - before):
        size *= 2
    buckets = heads[:size]
    buckets[:] = -1
    for j in range(before, begin):
        b = bucket_of_row(words, j, buckets)
        links[j], buckets[b] = buckets[b], j
    for i in range(begin, end):
        b = bucket_of_row(words, i, buckets)
        newer, j = int64(-1), buckets[b]
        while j >= 0 and not _are_equal(words, i, j):
            newer, j = j, links[j]
        is_new[i] = j < 0
        if j >= 0 and newer >= 0:
            links[newer] = links[j]
        elif j >= 0:
            buckets[b] = links[j]
    return int64(end)


@kernel
def tell_new_rows(ts: Int64s, words: Int64Table, links: Int64s, heads: Int64s, is_new: Bools) -> int:
    """Mark the rows that were not there at the instant before theirs, as bags; returns how many instants there are.

    ts: (n,) nondecreasing.  words: (n, w) of the rows.  links: (n,), and heads: a power of two of at least 2 n, are
    room.  is_new: (n,), of the rows of the first instant True.
    """
    before, begin, instants = int64(-1), int64(0), 0
    while begin < len(ts):
        end = begin + 1
        while end < len(ts) and ts[end] == ts[begin]:
            end += 1
        if before < 0 or ts[before] + 1 != ts[begin]:
            is_new[begin:end] = True
        elif (begin - before) * (end - begin) <= _FEW:
            _tell_few(words, before, begin, end, links, is_new)
        else:
            _tell_many(words, before, begin, end, links, heads, is_new)
        before, begin = begin, end
        instants += 1
    return instants
