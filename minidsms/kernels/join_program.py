"""What a join with caches does with a block of elements, in which order, as `kernels.block_mjoin` reads it.

A *program* is a list of operations, each on the *list* of a pipeline: rows of a turn and the slots chosen so far. Lists
begin with the elements of the block and grow by a step or by a cached segment at a time, as far as a cache needs it;
the rest of a pipeline is walked as the answer is put out. Babu 2005, section 5.4.
"""

from __future__ import annotations

from typing import NamedTuple

from minidsms.machine_code import Int64s, Int64Table


class Block(NamedTuple):
    """Room for a block of elements.

    work: (WORK_WORDS,), how far it is.  bounds: (BOUND_WORDS, n).  turns: (t * (T_BOUNDS + 2 n),).  lists: of both
    halves and n + 1 lists, (capacity, n + 1) each, flat.  rows: (n + 1, 3) of the lists.  firsts: (capacity,).
    entries: (n, capacity), flat.
    """

    work: Int64s
    bounds: Int64Table
    turns: Int64s
    lists: Int64s
    rows: Int64Table
    firsts: Int64s
    entries: Int64s


EXPAND, UPDATE, LOOKUP, COMPUTE, COMPLETE, SPREAD, PROBE = range(7)
"""EXPAND: the list of a pipeline, by a step. UPDATE: a cache's entries gain what is in the list (CacheUpdate). LOOKUP:
which entry each row of the list hits; a row that misses begins one, and goes to the list of misses (CacheLookup).
COMPUTE: the list of misses, by a step, whatever has come or gone when. COMPLETE: the entries begun get what is in the
list of misses. SPREAD: the list, by the tuples of the entries. PROBE: rows of the list for which the next step finds
nothing are dropped, and the first that it finds for the others is kept."""

KIND, PIPELINE, STEP, CACHE, PARTS, AFTER, OP_WORDS = range(7)
"""Of an operation: its pipeline, its step or the position of its lookup, its cache, where the parts of its key begin,
and the position behind its segment."""

LEVEL, ENTRY, FINAL_WORDS = range(3)
"""Of a pipeline: the position up to which its list goes, and the cache whose entries complete it, -1 for none: then
the steps from LEVEL on do."""

T_INPUT, T_BEGIN, T_END, T_KIND, T_TS, T_BOUNDS = range(6)
"""Of a turn: its input, its elements' slots, what they do, when; then for each input the first slot that they meet and
the one after the last."""

CANCELS, STAMPS_ALL, SETTLES = 2, 3, 4
"""Kinds of turns beside 1, insertions, and -1, deletions. Where the consumer is ISTREAM, insertions of an instant at
which rows leave are stamped, deletions that may cancel one are joined, and put in front."""

(
    IS_OPEN,
    OP,
    TURN,
    TURNS,
    IS_ACTIVE,
    BUCKET,
    NEXT,
    LEFT,
    AT_DEPTH,
    LEAVER,
    IS_STAMPED,
    ANSWERED,
    BLOCK,
    ROOM,
    EXPANDED,
    MADE,
    SPREAD_ROW,
    SPREAD_MADE,
    SPREAD_STEP,
    WORK_WORDS,
) = range(20)
"""Of the work at a block: whether one has been taken up; the operation that comes next; the turn being put out, of how
many; whether a row of it is being put out, from which bucket (-1: by steps), next tuple, inline tuples left, depth;
the slot that leaves next; whether insertions are stamped; the instant put out; the block's number, and how many
elements it may have. Of an EXPAND or COMPUTE that is PAUSED: rows that are done, and rows made of them; of a SPREAD:
the row at which it is, the rows made before, and one more than the step at which it is (0: before the first)."""

ROWS, SIDE, ROW = range(3)
"""Of a list: how many rows it has, in which half of its room, and the one that is put out next."""

FIRST_MET, ARRIVALS, LOWS, HIGHS, BOUND_WORDS = range(5)
"""Of a block, for each input: the first slot that an element may meet, the first that arrives; and as turns are taken,
the bounds of what the next one meets."""

LEAST_ROOM, FIRST_ROOM, MOST_ROOM = 8, 128, 512
"""Elements of a block."""
