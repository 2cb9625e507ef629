"""How the windows of an n-way join stand in arrays, and how far a join over them is.

Every input is a ring of slots numbered by arrival, [lo, hi). A *key* is a column of an input that the condition speaks
of (or several columns' hash); `nodes` holds two words for each key and slot: the tag, which is the column's word, and
a word with the link to the older slot of its bucket (`kernels.links`). A probe walks a bucket from its newest slot and
ends at the first below `lo`, so deletion is lo += 1 and nothing else (docs/design, point 3). All inputs' nodes stand in
one flat array, all bucket heads in another. When a row came stands in its store alone, which the second word of its
first node leads to.

An input whose rows leave in any order is a *bag*: its slots are used again, and `places` has the slots of a batch's
elements in their order (`kernels.bag_window`). A slot is linked and unlinked as its element is processed; its node
also has the link to the newer slot of the bucket, so that unlinking needs no walk. So everything in a bucket is there.

Where the consumer is ISTREAM, deletions matter only if they cancel an insertion of their instant (docs/semantics S1).
`marks` of a slot hash the row's columns that the answer shows; where keys tell as much there are none (`join_stamps`).
"""

from __future__ import annotations

from typing import NamedTuple

from minidsms.machine_code import Int8s, Int16s, Int32s, Int64Cube, Int64s, Int64Table


class Windows(NamedTuple):
    """The windows of all inputs (`synopses.window_index`).

    inputs: (n, INPUT_WORDS).  keys: (k, KEY_WORDS).  nodes, heads: of all keys.  places: of the batches of bags.
    marks: of all slots, empty where there are none.  runs: (r, RUN_WORDS) what changes at which instants.
    """

    inputs: Int64Table
    keys: Int64Table
    nodes: Int64s
    heads: Int32s
    places: Int64s
    marks: Int16s
    runs: Int64Table


class JoinRun(NamedTuple):
    """How far a join is.

    state: (STATE_WORDS,).  stamps: (n, STAMPS) where netted, else empty.  stops: (n,), where the insertions of the
    instant stop.  walks: (WALKS, n), see TAG.  chosen: (n,) of each input a slot.  netted: the consumer
    is ISTREAM, and no input is a bag.  of_streams: rows leave by the instants at which they came, not by runs.
    """

    state: Int64s
    stamps: Int64Table
    stops: Int64s
    walks: Int64Table
    chosen: Int64s
    netted: int
    of_streams: int


class Pipelines(NamedTuple):
    """What elements visit. steps: (p most, STEP_WORDS), those of pipeline i from i * most on.  lengths: (p,) how many
    each has.  checks: (c, 4): input, key, input, key that are equal.
    """

    steps: Int64Table
    lengths: Int64s
    checks: Int64Table


class Blocks(NamedTuple):
    """What drop probing leaves of a block of elements of streams (`drop_probing`), up to c of each input.

    alive: (n + 1, c) slots of each input, and of a part of them.  firsts: (n, n - 1, c), the first slot that a step
    finds for each, at the last bits of its number: c is a power of two.  drops: DROP_WORDS of each step.  groups:
    (n - 1, GROUP_ROWS, GROUP), of the step at each depth.
    """

    alive: Int64Table
    firsts: Int64Cube
    drops: Int64Table
    groups: Int64Cube


class Path(NamedTuple):
    """A pipeline, maybe cut short, that is walked apart from the join.

    steps: (d, STEP_WORDS).  checks: as of `Pipelines`.  walks: (2, d), of each step its tag and the slot to look at
    next.  chosen: (n,) of each input a slot.
    """

    steps: Int64Table
    checks: Int64Table
    walks: Int64Table
    chosen: Int64s


class Output(NamedTuple):
    """Tuples found. out: (n, m) slots per input, with out_ts (m,) and out_sign (m,): in ts order, deletions first."""

    out: Int64Table
    out_ts: Int64s
    out_sign: Int8s


LO, HI, OLD_LO, OLD_HI, STOP, MASK, MARKS, RUN, RUNS_END, KEY, KEYS_END, HAS_NULLS, PROBE_LO, PROBE_HI = range(14)
"""Of an input: its slots now and before the instant, where its insertions of the instant stop, slot mask, where its
marks begin, its runs, its keys, whether there may be NULL keys, and the slots that a pipeline may join now."""
LENGTH, LEAVES, LINKED, SURVIVOR, SURVIVORS = range(14, 19)
"""Of an input that is a stream with a range: the range (NO_RANGE: none); when the row at LO leaves (MAX_INSTANT: never;
known between slices); up to where its slots are linked; and which of the elements that drop probing left comes next,
of how many."""
IS_BAG, ROWS = range(19, 21)
"""Of an input: its rows leave in any order; then LO, HI and the like are no slots, but positions in `places`. And where
the nodes of its first key begin."""
INSTANTS, STORE_MASK, INPUT_WORDS = range(21, 24)
"""Of an input that is a stream with a range: the address of the instants in the store of its rows, 0 before there is
one, and the mask of their numbers there (known while a kernel runs: `WindowIndex.bundle`)."""

NO_RANGE = -1
"""The window is unbounded: as an unsigned number, the longest of ranges."""

NODES, HEADS, SHIFT, IS_SHOWN, IS_LINKED, LAST_CELL, KEY_WORDS = range(7)
"""Of a key: where its nodes and bucket heads begin in the flat arrays; its bucket shift; whether it is a column that
the answer shows, or that is equal to one; whether slots stand in buckets of it: where rows are found by their bit
addresses, or by several columns' cells, the columns' nodes have the words alone; and of cells in order, the last
one."""

TARGET, PROBED, FROM, FROM_KEY, CHECK, CHECKS_END, ASKED, HASHED, REACH, REQUESTS, KEPT = range(11)
"""Of a step: the input and its key that are probed, the input and its key that give the tag, its further checks, and
the position in the pipeline of the input that gives the tag: 0 is the arriving element, d + 1 what step d chose; of how
many of its checks, the first ones, the tag is the hash, where several inputs give it (0: one does; negative: another
access method, see `access_methods.methods`); how far from that tag lies the other one that it asks for (0: there is
none); how often it has asked in such a way; and, of a tree, the subresult that takes the tuple it completes, or -1.
There, TARGET counts subresults after the inputs, PROBED is then a key of the subresult, and a step asks for keys no
earlier than the first step of its node: a row that it drops has completed the nodes below."""
TARGET_NODES, TARGET_MASK, TARGET_HEADS, TARGET_SHIFT, SOURCE_NODES, SOURCE_MASK, STEP_WORDS = range(11, 18)
"""And, so that a walk loads no layout on its way, where the index holds what it probes and what gives its tag: kernels
write these words as they begin (`chains.place_steps`), for the index may be laid out anew between two calls."""

TRIED, DROPPED, DROP_WORDS = range(3)
"""Of a step: of how many elements, or rows of a group, it has dropped how many that another step found."""

GROUP = 64
"""Rows of a step that are looked up together."""
SLOTS, TAGS, FIRSTS, OWNERS, GROUP_ROWS = range(5)
"""Of a group: rows, the tags that the step behind asks for with them, and the first slots that it finds, or where to
begin to look; and of pairs of rows, the place of the first row in its group."""

TAG, FOLLOWING, FOUND, REST, UP, WALKS = range(6)
"""Rows of `walks`, of each step: its tag, the slot to look at next, and the first that matches. With caches, where its
tuples come from an entry: the bucket, the chunk being read, and REST: how many are left in the bucket, -1 where they
come from no entry; and the depth to go back to. Of a group, REST and UP are its next row and its end. WALKS: how
many."""

PHASE, INPUT, SLOT, DEPTH, INSTANT, FIRST, MIDDLE, LEAVING, SERIAL, DELETED, INSPECTED, STATUS = range(12)
"""Of the whole: where a call stopped; FIRST, MIDDLE: the open instant's first tuple and, where netted, its first
deletion; LEAVING: slots that leave at the instant; SERIAL: of the instant's stamps; DELETED: deletions in `out`."""
SIZE, NEEDED, PASSED = range(12, 15)
"""Of a join of streams with ranges: elements of an input in a block, room that an instant needs, and rows that probes
of the block passed over because they come later."""
FILLED, BORN, MOST, IS_CHOSEN, IS_OUTER, CLOSED, STATE_WORDS = range(15, 22)
"""Of a join with subresults: the one that is filled from the windows, or -1, and how many rows of bags have come. MOST:
slots that a call inspects before it returns, whatever it has found; IS_CHOSEN: it has just chosen a slot; IS_OUTER:
rows of the first of two inputs without a match are put out, with slot -1; CLOSED: the instant up to which rows leave
whose deletion is put out, where no run says when."""

RUN_TS, RUN_DELETIONS, RUN_INSERTIONS, RUN_WORDS = range(4)
"""Of a run: an instant at which an input changes, and how many slots leave and enter."""

DONE, FULL, MISSING, CROWDED, PAUSED = range(5)
"""What waits is joined; `out` is full: call again; more slots leave than are held; scratch arrays have no room: call
again with more; a call has taken long enough: call again with what has been found."""

START, DELETE, INSERT, CANCEL, FILL, LOSE, GAIN = range(7)
"""Phases of an instant: its runs are taken; then deletions and insertions, or where netted insertions and those
deletions that may cancel one. FILL: a subresult is filled from the rows of state[INPUT]. LOSE,
GAIN: of an outer join (`pair_join`)."""

STAMPS = 1024
"""Places for marks, per input; a power of two."""

NO_LIMIT = 2**62
"""More than any slot."""
