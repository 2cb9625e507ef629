"""The columns by which a row of a reduced join is found, as one word: the key, and the bucket that it leads to.

Invariant: rows that agree in the columns have one key; of one column the key is its word itself.
"""

from __future__ import annotations

from typing import NamedTuple

from minidsms.kernels.mixing import mixed
from minidsms.machine_code import Int32s, Int32Table, Int64s, Int64Table, helper, kernel


class RowArrays(NamedTuple):
    """The rows of a reduced join (`synopses.k_mon_rows`).

    figures: of each stream.  of_stream: the sides, stream by stream.  sides: of the edges.  parts: the words of the
    sides' keys.  cells: the rows of all streams.  heads: of all buckets.
    """

    figures: Int64Table
    of_stream: Int64s
    sides: Int64Table
    parts: Int64s
    cells: Int64s
    heads: Int32s


class DeadKeyArrays(NamedTuple):
    """Keys of which no row comes any more (`synopses.k_mon_dead_keys`).

    no: of each side.  no_keys: their words.  no_marks: (3, m).  no_heads: of all buckets.
    """

    no: Int64Table
    no_keys: Int64s
    no_marks: Int32Table
    no_heads: Int32s


class ResultArrays(NamedTuple):
    """Results kept (`synopses.k_mon_results`): their rows, the free places, and heaps by when they end."""

    results: Int64Table
    free: Int64s
    heap_keys: Int64Table
    heap_slots: Int64Table
    sizes: Int64s


class KMonPlan(NamedTuple):
    """steps: (n, n - 1), the side by which each step of a stream's pipeline leaves for the other side's stream.

    outs: (w, 4), stream, word, place of its mask and bit in it of each column put out.
    """

    steps: Int64Table
    outs: Int64Table


class KMonRun(NamedTuple):
    """walks: (2, n), slot to look at next per depth, and the slot chosen of each stream.  state: how far the join is.

    deletions: PROBED, KEPT or as the kernel's module has them.  is_netted: the consumer is ISTREAM: deletions count
    only where something is inserted; they are looked for then.
    """

    walks: Int64Table
    state: Int64s
    deletions: int
    is_netted: bool


@helper(inline=True)
def key_of(cells, at, places, begin, end):  # type: ignore[no-untyped-def]
    """The key of the row at `at` by the words at places[begin:end]."""
    h = cells[at + places[begin]]
    if end - begin > 1:
        h = mixed(0, h)  # lest words that are exchanged give the same
        for p in range(begin + 1, end):
            h = mixed(h, cells[at + places[p]])
    return h


@helper(inline=True)
def key_of_words(words, at, n):  # type: ignore[no-untyped-def]
    """The same of n words that stand side by side from `at` on."""
    h = words[at]
    if n > 1:
        h = mixed(0, h)
        for p in range(1, n):
            h = mixed(h, words[at + p])
    return h


@kernel("void(int64[::1], int64, int64, int64[::1], int64[::1])")
def keys_of_rows(cells, at, stride, places, keys):  # type: ignore[no-untyped-def]
    """Write the keys of rows that stand side by side, the first at `at`."""
    for i in range(len(keys)):
        keys[i] = key_of(cells, at + i * stride, places, 0, len(places))
