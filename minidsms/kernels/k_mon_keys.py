"""The columns by which a row of a reduced join is found, as one word: the key, and the bucket that it leads to.

Invariant: rows that agree in the columns have one key; of one column the key is its word itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.mixing import mixed
from minidsms.machine_code import Int32s, Int32Table, Int64s, Int64Table, Record, Rows, helper, kernel


class StreamFigures(Record):
    """Of a stream of a reduced join.

    begins_at, stride: its rows.  lo, hi: slots in its window.  stop: where its insertions of the instant stop.  clock,
    length: what its window goes by, and how much of it.  number: the place of the arrival number in a row (-1: none).
    heap: its heap of results.  total: arrivals so far.  bound: the least number in its window.  run, runs_end: its
    runs.  side, sides_end: its sides in `of_stream`.  count: rows inserted so far.  leaves_at_once: a row that yields a
    result is not kept.  mask_at: the place of the mask of its NULLs (-1: none).  end: the slot after its last row,
    inserted or not.  words_at: the place of the first of its words.  equal: where its rows leave as changes say, the
    place of the next older slot of those that may be equal (else -1); equal_heads, equal_shift: their buckets.
    leaving: the first slot that leaves at the instant.  before: the end of its rows before the instant's insertions.
    cap: walks see slots below it.
    """

    begins_at: int
    stride: int
    lo: int
    hi: int
    stop: int
    clock: int
    length: int
    number: int
    heap: int
    total: int
    bound: int
    run: int
    runs_end: int
    side: int
    sides_end: int
    count: int
    leaves_at_once: int
    mask_at: int
    end: int
    words_at: int
    equal: int
    equal_heads: int
    equal_shift: int
    leaving: int
    before: int
    cap: int


class Side(Record):
    """A side of an edge.

    stream: whose it is.  next: the place in its rows of the next older slot.  heads, shift: its buckets.  part,
    parts_end: its columns in `parts`.  unique: no two rows of the stream agree in them (so declared).  cluster: the
    place of the counter C_v of the other stream's rows (-1: none).  previous: that of the next younger slot of the
    bucket, where rows leave from its middle (else -1).
    """

    stream: int
    next: int
    heads: int
    shift: int
    part: int
    parts_end: int
    unique: int
    cluster: int
    previous: int


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
    """How far a reduced join is.

    phase to until: where a call stopped, and up to when it is to join.  first, middle: where the instant and its
    insertions begin in `out`.  waiting: a row to be linked when its pipeline is done.  produced: it has yielded a
    result.  top: free places for results.  inspected: slots so far.  status: how the call ended.  other: the row whose
    key a row has, too.  leaves_later: what leaves at the instant is probed after what comes, if at all; `middle` is
    where its deletions begin.  most: slots that a call may inspect; until_inspected: where `inspected` stands then.
    """

    phase: int
    input: int
    slot: int
    depth: int
    instant: int
    until: int
    first: int
    middle: int
    waiting: int
    produced: int
    top: int
    inspected: int
    status: int
    other: int
    leaves_later: int
    most: int
    until_inspected: int


class RowArrays(NamedTuple):
    """The rows of a reduced join (`synopses.k_mon_rows`).

    figures: of each stream.  of_stream: the sides, stream by stream.  sides: of the edges.  parts: the words of the
    sides' keys.  cells: the rows of all streams.  heads: of all buckets.
    """

    figures: Rows[StreamFigures]
    of_stream: Int64s
    sides: Rows[Side]
    parts: Int64s
    cells: Int64s
    heads: Int32s


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
    state: Progress
    deletions: int
    is_netted: bool


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
