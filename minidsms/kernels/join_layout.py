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

from minidsms.machine_code import Int8s, Int16s, Int32s, Int64Cube, Int64s, Int64Table, Record, Rows


class JoinInput(Record):
    """An input.

    lo, hi: its slots now; old_lo, old_hi: before the instant.  stop: where its insertions of the instant stop.  mask:
    of slots.  marks: where they begin.  run, runs_end: its runs.  key, keys_end: its keys; has_nulls: these may be
    NULL.  probe_lo, probe_hi: the slots that a pipeline may join now.

    Of a stream with a range, length: the range (NO_RANGE: none).  leaves: when the row at `lo` does (MAX_INSTANT:
    never; known between slices).  linked: up to where its slots are.  survivor, survivors: which of the elements that
    drop probing left comes next, of how many.  instants: their address in the store of its rows, 0 before there is one;
    store_mask: of their numbers there (known while a kernel runs: `WindowIndex.bundle`).

    is_bag: its rows leave in any order; then lo, hi and the like are no slots, but positions in `places`.  nodes: where
    those of its first key begin.
    """

    lo: int
    hi: int
    old_lo: int
    old_hi: int
    stop: int
    mask: int
    marks: int
    run: int
    runs_end: int
    key: int
    keys_end: int
    has_nulls: int
    probe_lo: int
    probe_hi: int
    length: int
    leaves: int
    linked: int
    survivor: int
    survivors: int
    is_bag: int
    nodes: int
    instants: int
    store_mask: int


class JoinKey(Record):
    """A key. nodes, heads: where they begin in the flat arrays.  shift: of its buckets.  is_shown: it is a column that
    the answer shows, or that is equal to one.  is_linked: slots stand in buckets of it; where rows are found by their
    bit addresses, or by several columns' cells, the columns' nodes have the words alone.  last_cell: of cells in order.
    """

    nodes: int
    heads: int
    shift: int
    is_shown: int
    is_linked: int
    last_cell: int


class JoinStep(Record):
    """A step of a pipeline.

    target, probed: the input and its key that are probed.  source, source_key: the input and its key that give the tag.
    check, checks_end: its further checks.  asked: the position in the pipeline of the input that gives the tag: 0 is
    the arriving element, d + 1 what step d chose.  hashed: of how many of its checks, the first ones, the tag is the
    hash, where several inputs give it (0: one does; negative: another access method, see `access_methods.methods`).
    reach: how far from that tag lies the other one that it asks for (0: there is none).  requests: how often it has
    asked in such a way.

    Of a tree, kept: the subresult that takes the tuple it completes, or -1.  There, `target` counts subresults after
    the inputs, `probed` is then a key of the subresult, and a step asks for keys no earlier than the first step of its
    node: a row that it drops has completed the nodes below.

    So that a walk loads no layout on its way, target_nodes, target_mask, target_heads, target_shift: where the index
    holds what it probes; source_nodes, source_mask: and what gives its tag. Kernels write these words as they begin
    (`chains.place_steps`), for the index may be laid out anew between two calls.
    """

    target: int
    probed: int
    source: int
    source_key: int
    check: int
    checks_end: int
    asked: int
    hashed: int
    reach: int
    requests: int
    kept: int
    target_nodes: int
    target_mask: int
    target_heads: int
    target_shift: int
    source_nodes: int
    source_mask: int


class InstantRun(Record):
    """An instant at which an input changes, and how many slots leave and enter."""

    ts: int
    deletions: int
    insertions: int


class JoinState(Record):
    """Where a join is: phase to depth, where a call stopped.

    instant: the open one.  first, middle: its first tuple and, where netted, its first deletion.  leaving: slots that
    leave at it.  serial: of its stamps.  deleted: deletions in `out`.  inspected: slots so far.  status: how a call
    ended.

    Of a join of streams with ranges, size: elements of an input in a block.  needed: room that an instant needs.
    passed: rows that probes of the block passed over because they come later.

    Of a join with subresults, filled: the one that is filled from the windows, or -1.  born: how many rows of bags have
    come.

    most: slots that a call inspects before it returns, whatever it has found.  is_chosen: it has just chosen a slot.
    is_outer: rows of the first of two inputs without a match are put out, with slot -1.  closed: the instant up to
    which rows leave whose deletion is put out, where no run says when.
    """

    phase: int
    input: int
    slot: int
    depth: int
    instant: int
    first: int
    middle: int
    leaving: int
    serial: int
    deleted: int
    inspected: int
    status: int
    size: int
    needed: int
    passed: int
    filled: int
    born: int
    most: int
    is_chosen: int
    is_outer: int
    closed: int


class Windows(NamedTuple):
    """The windows of all inputs (`synopses.window_index`).

    inputs: (n,).  keys: (k,).  nodes, heads: of all keys.  places: of the batches of bags.
    marks: of all slots, empty where there are none.  runs: (r,) what changes at which instants.
    """

    inputs: Rows[JoinInput]
    keys: Rows[JoinKey]
    nodes: Int64s
    heads: Int32s
    places: Int64s
    marks: Int16s
    runs: Rows[InstantRun]


class Walk(Record):
    """Of a step: its tag, the slot to look at next (following), and the first that matches (found).

    With caches, where its tuples come from an entry, `tag` is the bucket and `following` the chunk being read; rest:
    how many are left in the bucket, -1 where they come from no entry.  up: the depth to go back to.  Of a group, rest
    and up are its next row and its end.
    """

    tag: int
    following: int
    found: int
    rest: int
    up: int


class JoinRun(NamedTuple):
    """How far a join is.

    stamps: (n, STAMPS) where netted, else empty.  stops: (n,), where the insertions of the
    instant stop.  walks: (n,).  chosen: (n,) of each input a slot.  netted: the consumer
    is ISTREAM, and no input is a bag.  of_streams: rows leave by the instants at which they came, not by runs.
    """

    state: JoinState
    stamps: Int64Table
    stops: Int64s
    walks: Rows[Walk]
    chosen: Int64s
    netted: int
    of_streams: int


class Pipelines(NamedTuple):
    """What elements visit. steps: (p most,), those of pipeline i from i * most on.  lengths: (p,) how many each has.
    checks: (c, 4): input, key, input, key that are equal.
    """

    steps: Rows[JoinStep]
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

    steps: (d,).  checks: as of `Pipelines`.  walks: (d,).
    chosen: (n,) of each input a slot.
    """

    steps: Rows[JoinStep]
    checks: Int64Table
    walks: Rows[Walk]
    chosen: Int64s


class Output(NamedTuple):
    """Tuples found. out: (n, m) slots per input, with out_ts (m,) and out_sign (m,): in ts order, deletions first."""

    out: Int64Table
    out_ts: Int64s
    out_sign: Int8s


NO_RANGE = -1
"""The window is unbounded: as an unsigned number, the longest of ranges."""

TRIED, DROPPED, DROP_WORDS = range(3)
"""Of a step: of how many elements, or rows of a group, it has dropped how many that another step found."""

GROUP = 64
"""Rows of a step that are looked up together."""
SLOTS, TAGS, FIRSTS, OWNERS, GROUP_ROWS = range(5)
"""Of a group: rows, the tags that the step behind asks for with them, and the first slots that it finds, or where to
begin to look; and of pairs of rows, the place of the first row in its group."""

DONE, FULL, MISSING, CROWDED, PAUSED = range(5)
"""What waits is joined; `out` is full: call again; more slots leave than are held; scratch arrays have no room: call
again with more; a call has taken long enough: call again with what has been found."""

START, DELETE, INSERT, CANCEL, FILL, LOSE, GAIN = range(7)
"""Phases of an instant: its runs are taken; then deletions and insertions, or where netted insertions and those
deletions that may cancel one. FILL: a subresult is filled from the rows of state.input. LOSE,
GAIN: of an outer join (`pair_join`)."""

STAMPS = 1024
"""Places for marks, per input; a power of two."""

NO_LIMIT = 2**62
"""More than any slot."""
