"""The columns by which a row of a reduced join is found, as one word: the key, and the bucket that it leads to.

Invariant: rows that agree in the columns have one key; of one column the key is its word itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.join_layout import Windows
from minidsms.kernels.mixing import mixed
from minidsms.machine_code import Int32s, Int32Table, Int64s, Int64Table, Record, Rows, helper, kernel


class StreamFigures(Record):
    """Of a stream of a reduced join, beside what is said of every input (`kernels.join_layout`).

    begins_at: its rows.  clock, length: what its window goes by, and how much of it.  number: the place of the arrival
    number in a row (-1: none).  heap: its heap of results.  total: arrivals so far.  bound: the least number in its
    window.  sides_end: the key after those that are sides.  count: rows inserted so far.  leaves_at_once: a row that
    yields a result is not kept.  mask_at: the place of the mask of its NULLs (-1: none).  end: the slot after its last
    row, inserted or not.  words_at: the place of the first of the words that are no tags.
    """

    begins_at: int
    clock: int
    length: int
    number: int
    heap: int
    total: int
    bound: int
    sides_end: int
    count: int
    leaves_at_once: int
    mask_at: int
    end: int
    words_at: int


class Side(Record):
    """A side of an edge.

    stream: whose it is.  key: its number among the keys.  tag_at: the place of its tag in a row, before the link.
    part, parts_end: its columns in `parts`.  unique: no two rows of the stream agree in them (so declared).  cluster:
    the place of the counter C_v of the other stream's rows (-1: none).
    """

    stream: int
    key: int
    tag_at: int
    part: int
    parts_end: int
    unique: int
    cluster: int


class DeadFigures(Record):
    """Of the dead keys of a side. words_at: where they stand in `no_keys`.  count: how many there are.  capacity: and
    fit.  heads, shift: their buckets.  first: where they stand in `no_marks`.
    """

    words_at: int
    count: int
    capacity: int
    heads: int
    shift: int
    first: int


class Limit(Record):
    """Of a side, what is known of the neighbour's rows to come: none joins a row older than `before` (RIDS); none has a
    word below `below` (OAP, OAC), in this order; none is of a cluster whose counter lies below `clustered` (CA).
    """

    before: int
    below: int
    order: int
    clustered: int


class Progress(Record):
    """How far a reduced join is, beside what its `JoinState` says.

    waiting: a row to be linked when its pipeline is done.  produced: it has yielded a result.  top: free places for
    results.  other: the row whose key a row has, too.
    """

    waiting: int
    produced: int
    top: int
    other: int


class RowArrays(NamedTuple):
    """The rows of a reduced join (`synopses.k_mon_rows`).

    windows: their index; its nodes are the rows.  strides: the words of a row of each stream.  streams: more of each.
    sides: of the edges.  of_key: the side that each key is, -1 where it is none.  parts: the words of the sides' keys.
    """

    windows: Windows
    strides: Int64s
    streams: Rows[StreamFigures]
    sides: Rows[Side]
    of_key: Int64s
    parts: Int64s


class DeadKeyArrays(NamedTuple):
    """Keys of which no row comes any more (`synopses.k_mon_dead_keys`).

    no: of each side.  no_keys: their words.  no_marks: (3, m).  no_heads: of all buckets.
    """

    no: Rows[DeadFigures]
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


class Reduced(NamedTuple):
    """A reduced join. runs: (r, 3), an instant, a stream's arrivals up to it, and the slot after its rows.

    outs: (w, 4), stream, word, place of its mask and bit in it of each column put out.  kept: the results kept.
    deletions: as `kernels.k_mon_results` has them.  later: they are probed after what comes, if at all.
    """

    rows: RowArrays
    runs: Int64Table
    outs: Int64Table
    kept: ResultArrays
    progress: Progress
    deletions: int
    later: bool


@helper(inline=True)
def key_of(cells: Int64s, at: int, places: Int64s, begin: int, end: int) -> Any:
    """The key of the row at `at` by the words at places[begin:end]."""
    h = cells[at + places[begin]]
    if end - begin > 1:
        h = mixed(0, h)  # lest words that are exchanged give the same
        for p in range(begin + 1, end):
            h = mixed(h, cells[at + places[p]])
    return h


@helper(inline=True)
def key_of_words(words: Int64s, at: int, n: int) -> Any:
    """The same of n words that stand side by side from `at` on."""
    h = words[at]
    if n > 1:
        h = mixed(0, h)
        for p in range(1, n):
            h = mixed(h, words[at + p])
    return h


@kernel
def keys_of_rows(cells: Int64s, at: int, stride: int, places: Int64s, keys: Int64s) -> None:
    """Write the keys of rows that stand side by side, the first at `at`."""
    for i in range(len(keys)):
        keys[i] = key_of(cells, at + i * stride, places, 0, len(places))
