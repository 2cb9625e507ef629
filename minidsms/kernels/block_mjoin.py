"""Joining n windows with caches, a block of elements at a time.

Rows of an input leave in the order they came (no bags), and caches hold whole segments. The elements of a block, of all
inputs, are cut into *turns*: elements of one input at one instant, insertions or deletions. All that arrive are linked
at once; what a turn's elements meet are then the slots of each input between two bounds, and so it does not matter when
they are joined. Work goes operation by operation (`kernels.join_program`), each a loop over the rows of a list:
  1. pipelines run until every change of a cached segment is known, and entries that are there are updated;
  2. keys are looked up. An entry holds what joins over all rows of the block, those that are still to come among them:
     a hit leaves out what is beyond the bounds. So rows of one key that all miss compute its segment once;
  3. the answer is put out, turn by turn: from entries, or by the last steps of a pipeline, depth first.

Where caches pay (four of five lookups hit, and five rows are met) it takes 0.7 to 0.9 of the time of
`kernels.cached_mjoin`, the more so the larger the windows are; so both stay.

Invariant: between blocks the tuples of an entry whose slots are all there are its segment's join for its key; others
are swept when there are too many of them. Babu 2005, section 5.4; the index is that of `kernels.join_layout`.
"""

from __future__ import annotations

from minidsms.kernels.block_answer import put_out
from minidsms.kernels.block_turns import open_block
from minidsms.kernels.join_cache_layout import CacheArrays, PlacedPlan
from minidsms.kernels.join_layout import (
    CROWDED,
    DONE,
    HI,
    INSPECTED,
    LO,
    MOST,
    PASSED,
    PAUSED,
    STATUS,
    UNTIL,
    JoinRun,
    Output,
    Windows,
)
from minidsms.kernels.join_operations import operate
from minidsms.kernels.join_program import (
    ARRIVALS,
    FIRST_MET,
    IS_OPEN,
    LEAST_ROOM,
    MOST_ROOM,
    OP,
    OP_WORDS,
    ROOM,
    Block,
)
from minidsms.machine_code import helper, int64, kernel


@helper
def _adapt_room(bounds, inputs, state, work):  # type: ignore[no-untyped-def]
    """A block as large as pays: rows passed over because they come later are the price of linking them first."""
    total = int64(0)
    for j in range(len(inputs)):
        total += inputs[j, HI] - bounds[ARRIVALS, j] + inputs[j, LO] - bounds[FIRST_MET, j]
    if state[PASSED] > 4 * total:
        work[ROOM] = max(LEAST_ROOM, work[ROOM] // 2)
    elif state[PASSED] < 2 * total:
        work[ROOM] = min(MOST_ROOM, work[ROOM] * 2)


@kernel
def block_mjoin(
    windows: Windows, plan: PlacedPlan, run: JoinRun, blocks: Block, store: CacheArrays, output: Output, found: int
) -> int:
    """Join what waits, block by block; returns how many tuples stand in `out`.

    As `kernels.cached_mjoin.cached_mjoin`, but: levels: (2 n,).  work: (WORK_WORDS,), how far the block is.  program,
    finals: see `kernels.join_program`.  bounds: (BOUND_WORDS, n).  turns: (t * (T_BOUNDS + 2 n),).  lists: of both
    halves and n + 1 lists, (capacity, n + 1) each, flat; rows: (n + 1, 3).  firsts: (capacity,).  entries: (n,
    capacity), flat. state[STATUS] is FULL where `out` has no room, CROWDED where a list has none: call again with more.
    O(elements + tuples + slots inspected + tuples cached and swept).
    """
    inputs = windows.inputs
    state = run.state
    program = plan.program
    work, bounds = blocks.work, blocks.bounds
    state[STATUS], state[UNTIL] = DONE, state[INSPECTED] + state[MOST]
    while state[STATUS] == DONE:
        if work[IS_OPEN] == 0 and not open_block(windows, run, blocks):
            break
        while work[OP] < len(program) and state[STATUS] == DONE:
            if operate(work[OP], plan, blocks, windows, state, store):
                work[OP] += OP_WORDS
                if state[INSPECTED] >= state[UNTIL]:
                    state[STATUS] = PAUSED
            elif state[STATUS] == DONE:
                state[STATUS] = CROWDED
        if state[STATUS] == DONE:
            found = put_out(blocks, plan, windows, run, store, output, found)
            if state[STATUS] == DONE:
                work[IS_OPEN] = 0
                _adapt_room(bounds, inputs, state, work)
    return found
