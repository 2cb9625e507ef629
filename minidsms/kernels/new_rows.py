"""Which rows of an instant were not there an instant before, where rows last an instant."""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.mixing import bucket
from minidsms.machine_code import Bools, Int64s, Int64Table, helper, int64, kernel

_ODD = -7046029254386353131
_FEW = 256
"""Pairs of rows of two instants that are compared one by one."""


class Compared(NamedTuple):
    """Rows. words: (n, w).  tags: (n,) of the words, which rows that are equal share.  links: (n,).  heads: a power of
    two of at least 2 n.
    """

    words: Int64Table
    tags: Int64s
    links: Int64s
    heads: Int64s


@helper(inline=True)
def _are_equal(rows: Compared, i: int, j: int) -> Any:
    equal = rows.tags[i] == rows.tags[j]
    if equal:
        for c in range(rows.words.shape[1]):
            equal &= rows.words[i, c] == rows.words[j, c]
    return equal


@helper(inline=True)
def _tell_few(rows: Compared, before: int, begin: int, end: int, is_new: Bools) -> None:
    """As `_tell_many`."""
    links = rows.links
    for j in range(before, begin):
        links[j] = 1  # it may still be taken for an equal one
    for i in range(begin, end):
        is_new[i] = True
        for j in range(before, begin):
            if _are_equal(rows, i, j) and links[j] == 1:
                links[j], is_new[i] = 0, False
                break


@helper(typed=True)
def _tell_many(rows: Compared, before: int, begin: int, end: int, is_new: Bools) -> int:
    """Mark the rows [begin, end) that outnumber the equal ones among [before, begin)."""
    tags, links, heads = rows.tags, rows.links, rows.heads
    shift = 63
    while (1 << (64 - shift)) < 2 * (begin - before):
        shift -= 1
    for b in range(1 << (64 - shift)):
        heads[b] = -1
    for j in range(before, begin):
        b = bucket(tags[j], shift)
        links[j], heads[b] = heads[b], j
    for i in range(begin, end):
        b = bucket(tags[i], shift)
        newer, j = int64(-1), heads[b]
        while j >= 0 and not _are_equal(rows, i, j):
            newer, j = j, links[j]
        is_new[i] = j < 0
        if j >= 0 and newer >= 0:
            links[newer] = links[j]
        elif j >= 0:
            heads[b] = links[j]
    return int64(end)


@kernel
def tell_new_rows(ts: Int64s, rows: Compared, is_new: Bools) -> int:
    """Mark the rows that were not there at the instant before theirs, as bags; returns how many instants there are.

    ts: (n,) nondecreasing.  rows: tags, links and heads are room.  is_new: (n,), of the rows of the first instant True.
    """
    for i in range(len(ts)):
        tag = int64(1)
        for c in range(rows.words.shape[1]):
            tag = (tag ^ rows.words[i, c]) * _ODD
        rows.tags[i] = tag
    before, begin, instants = int64(-1), int64(0), 0
    while begin < len(ts):
        end = begin + 1
        while end < len(ts) and ts[end] == ts[begin]:
            end += 1
        if before < 0 or ts[before] + 1 != ts[begin]:
            is_new[begin:end] = True
        elif (begin - before) * (end - begin) <= _FEW:
            _tell_few(rows, before, begin, end, is_new)
        else:
            _tell_many(rows, before, begin, end, is_new)
        before, begin = begin, end
        instants += 1
    return instants
