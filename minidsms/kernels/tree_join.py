"""Joining n windows by a tree of joins whose inner results are kept: XJoins, and trees of MJoins.

The windows are those of `join_layout`. Every inner node of the tree but its root has a *subresult*: a ring of cells
numbered by creation, [lo, hi), each the slots of a tuple's rows, and before them (tag, next) for each key that the
subresult is probed by. A cell dies when one of its rows leaves, and nothing is done then: probes pass over cells with a
row that is not in its window, `sweep` moves lo past dead cells and `compact` squeezes the others out of a full ring.

The slots of an input that is a bag (see `join_layout`) are used again, so that a slot alone does not tell a row. The
rows of bags are counted as they come: `births` has the number of the row that each slot holds, NEVER where it holds
none, and a cell with rows of bags ends with how many had come when it was made. The cell is dead if a row in one of its
slots came later. births[i] is where those of input i begin.

An element's pipeline climbs the tree: it probes its siblings, windows or subresults, adds the tuples found to the
subresult of their node, goes on with them to the node's siblings, and so forth; depth first, so that what is not kept
is not written anywhere. Babu 2005, section 5.3, figures 5.5 and 5.6.

Invariant: between two elements a subresult holds every tuple of its inputs' present rows, once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.chains import Chain, chain_of, checks_hold, first_slot, next_held, next_slot, older, step_tag
from minidsms.kernels.join_instants import next_element
from minidsms.kernels.join_layout import (
    BORN,
    CHECK,
    CHECKS_END,
    CROWDED,
    DEPTH,
    DONE,
    FILLED,
    FOLLOWING,
    FULL,
    INPUT,
    INSPECTED,
    INSTANT,
    IS_BAG,
    LO,
    MASK,
    MOST,
    NEEDED,
    NO_LIMIT,
    NODES,
    OLD_LO,
    PAUSED,
    PHASE,
    PROBE_HI,
    PROBE_LO,
    PROBED,
    SLOT,
    STATUS,
    STEP_WORDS,
    TAG,
    TARGET,
    JoinRun,
    Output,
    Windows,
)
from minidsms.kernels.join_stamps import is_stamped, put_tuple
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import Int64s, Int64Table, helper, int64, kernel

KEPT = STEP_WORDS
TREE_STEP_WORDS = STEP_WORDS + 1
"""Of a step, beyond those of `join_layout`: the subresult that takes the tuple it completes, or -1. TARGET counts
subresults after the inputs; then PROBED is a key of the subresult.
"""

VIEW_LO, VIEW_HI, VIEW_MASK, CELLS, WIDTH, MEMBER, BAG, MEMBERS_END, VIEW_KEY, VIEW_KEYS_END, VIEW_WORDS = range(11)
"""Of a subresult: its cells, ring mask, where they begin and how many words each has, its inputs, of which those from
BAG on are bags, its keys."""


class TreePlan(NamedTuple):
    """steps: (n * most, TREE_STEP_WORDS), the pipeline of each input, lengths[i] steps long.  checks: (c, 4)."""

    steps: Int64Table
    lengths: Int64s
    checks: Int64Table


class Kept(NamedTuple):
    """The subresults (`synopses.subresults`).

    views: (v, VIEW_WORDS).  view_keys: (k, VIEW_KEY_WORDS).  members: their inputs.  cells: of all, with the tags.
    view_heads: of the buckets of all keys.  births: of the slots of bags, when the row in each came.
    """

    views: Int64Table
    view_keys: Int64Table
    members: Int64s
    cells: Int64s
    view_heads: Int64s
    births: Int64s


LEAF, LEAF_KEY, VIEW_HEADS, VIEW_SHIFT, VIEW_KEY_WORDS = range(5)
"""Of a subresult's key: the input and its key that give the tag, where its bucket heads begin, and their shift."""

NEVER = 2**62
"""The birth of a slot that holds no row that joins."""

START, DELETE, INSERT, CANCEL, FILL = range(5)
"""Phases: those of `join_layout`, and that of filling a subresult from the rows of state[INPUT]."""


@helper(typed=True)
def _link_cell(subresults: Kept, v: int, number: int) -> None:
    """Put a cell whose tags are written at the head of its buckets."""
    views, view_keys = subresults.views, subresults.view_keys
    cells, view_heads = subresults.cells, subresults.view_heads
    first = views[v, VIEW_KEY]
    at = views[v, CELLS] + views[v, WIDTH] * (number & views[v, VIEW_MASK])
    for y in range(first, views[v, VIEW_KEYS_END]):
        k = at + 2 * (y - first)
        b = view_keys[y, VIEW_HEADS] + bucket(cells[k], view_keys[y, VIEW_SHIFT])
        # A cell further back than a link can tell is gone.
        cells[k + 1] = min(number - view_heads[b], int64(2**31 - 1))
        view_heads[b] = number


@kernel
def relink(subresults: Kept, v: int) -> None:
    """Fill the empty buckets of a subresult."""
    views = subresults.views
    for number in range(views[v, VIEW_LO], views[v, VIEW_HI]):
        _link_cell(subresults, v, number)


@helper(typed=True)
def _is_live(inputs: Int64Table, subresults: Kept, v: int, number: int, bound: int) -> bool:
    """All rows of a cell are in their windows. bound: the word of an input where its window begins."""
    views, members, cells, births = subresults.views, subresults.members, subresults.cells, subresults.births
    at = views[v, CELLS] + views[v, WIDTH] * (number & views[v, VIEW_MASK])
    at += 2 * (views[v, VIEW_KEYS_END] - views[v, VIEW_KEY]) - views[v, MEMBER]
    live = True
    for r in range(views[v, MEMBER], views[v, BAG]):
        live &= cells[at + r] >= inputs[members[r], bound]
    for r in range(views[v, BAG], views[v, MEMBERS_END]):
        live &= births[births[members[r]] + cells[at + r]] <= cells[at + views[v, MEMBERS_END]]
    return live


@kernel
def live_cells(inputs: Int64Table, subresults: Kept, v: int, live: Int64s) -> int:
    """Write the numbers of a subresult's tuples of present rows into `live`, ascending; returns how many there are."""
    views = subresults.views
    count = int64(0)
    for number in range(views[v, VIEW_LO], views[v, VIEW_HI]):
        if _is_live(inputs, subresults, v, number, LO):
            live[count] = number
            count += 1
    return count


@kernel
def sweep(inputs: Int64Table, subresults: Kept, v: int) -> None:
    """Move a subresult's lo past cells that are dead. What left at the present instant may still be probed."""
    views = subresults.views
    lo, hi = views[v, VIEW_LO], views[v, VIEW_HI]
    while lo < hi and not _is_live(inputs, subresults, v, lo, OLD_LO):
        lo += 1
    views[v, VIEW_LO] = lo


@kernel
def compact(inputs: Int64Table, subresults: Kept, v: int) -> None:
    """Squeeze dead cells out of a subresult: the live ones get the numbers from lo on, in their order."""
    views, view_keys = subresults.views, subresults.view_keys
    cells, view_heads = subresults.cells, subresults.view_heads
    base, width, mask = views[v, CELLS], views[v, WIDTH], views[v, VIEW_MASK]
    for y in range(views[v, VIEW_KEY], views[v, VIEW_KEYS_END]):
        heads = view_keys[y, VIEW_HEADS]
        view_heads[heads : heads + (int64(1) << (int64(64) - view_keys[y, VIEW_SHIFT]))] = -1
    new = views[v, VIEW_LO]
    for number in range(new, views[v, VIEW_HI]):
        if _is_live(inputs, subresults, v, number, OLD_LO):
            source, target = base + width * (number & mask), base + width * (new & mask)
            if source != target:
                for w in range(width):
                    cells[target + w] = cells[source + w]
            _link_cell(subresults, v, new)
            new += 1
    views[v, VIEW_HI] = new


@helper(inline=True)
def _begin_step(windows: Windows, subresults: Kept, tree: TreePlan, run: JoinRun, r: int, depth: int) -> Any:
    """Where the walk of step r begins: its tag, and the newest slot or cell of the bucket."""
    view_keys, steps = subresults.view_keys, tree.steps
    tag = step_tag(windows, steps, r, tree.checks, run.chosen)
    run.walks[TAG, depth] = tag
    if steps[r, TARGET] < len(windows.inputs):
        run.walks[FOLLOWING, depth] = first_slot(windows, steps, r, tag)
    else:
        x = steps[r, PROBED]
        cell = subresults.view_heads[view_keys[x, VIEW_HEADS] + bucket(tag, view_keys[x, VIEW_SHIFT])]
        run.walks[FOLLOWING, depth] = cell


@helper(inline=True)
def _next_row(windows: Windows, tree: TreePlan, run: JoinRun, r: int, tag: int, slot: int) -> Any:
    """From this slot on the first that step r, of a window, joins, which is chosen; (it, the one behind, whether there
    is one, how many were inspected).
    """
    nodes, steps = windows.nodes, tree.steps
    chain, check, checks_end = chain_of(windows, steps, r), steps[r, CHECK], steps[r, CHECKS_END]
    following, matches, inspected = int64(-1), False, int64(0)
    while not matches:
        slot, looked = next_slot(nodes, chain, tag, slot)
        inspected += looked
        if slot < chain.low:
            break
        run.chosen[steps[r, TARGET]] = slot
        matches = check == checks_end or checks_hold(windows, tree.checks, run.chosen, check, checks_end)
        following = older(nodes, chain, slot)
        slot = slot if matches else following
    return slot, following, matches, inspected


@helper(inline=True)
def _next_kept(windows: Windows, tree: TreePlan, subresults: Kept, run: JoinRun, r: int, tag: int, slot: int) -> Any:
    """As `_next_row`, of a step that joins the tuples of a subresult."""
    inputs, chosen, steps = windows.inputs, run.chosen, tree.steps
    views, cells, members, births = subresults.views, subresults.cells, subresults.members, subresults.births
    v, x = steps[r, TARGET] - len(inputs), steps[r, PROBED]
    check, checks_end = steps[r, CHECK], steps[r, CHECKS_END]
    base = views[v, CELLS] + 2 * (x - views[v, VIEW_KEY])
    links = Chain(base, views[v, WIDTH], views[v, VIEW_MASK], views[v, VIEW_LO], int64(NO_LIMIT))
    member, bag, end = views[v, MEMBER], views[v, BAG], views[v, MEMBERS_END]
    rows = 2 * (views[v, VIEW_KEYS_END] - x) - member
    following, matches, inspected = int64(-1), False, int64(0)
    while not matches:
        slot, looked = next_slot(cells, links, tag, slot)
        inspected += looked
        if slot < links.low:
            break
        at = links.base + links.width * (slot & links.mask) + rows
        matches = True
        for k in range(member, end):
            row, m = cells[at + k], members[k]
            chosen[m] = row
            matches &= row >= inputs[m, PROBE_LO] and row < inputs[m, PROBE_HI]
        for k in range(bag, end):
            matches &= births[births[members[k]] + cells[at + k]] <= cells[at + end]
        if matches and check < checks_end:
            matches = checks_hold(windows, tree.checks, chosen, check, checks_end)
        following = older(cells, links, slot)
        slot = slot if matches else following
    return slot, following, matches, inspected


@helper(inline=True)
def _keep(windows: Windows, subresults: Kept, run: JoinRun, v: int) -> Any:
    """Put the tuple of the slots chosen into subresult v, where there is room."""
    inputs, keys, chosen = windows.inputs, windows.keys, run.chosen
    views, view_keys, cells = subresults.views, subresults.view_keys, subresults.cells
    number = views[v, VIEW_HI]
    at = views[v, CELLS] + views[v, WIDTH] * (number & views[v, VIEW_MASK])
    for y in range(views[v, VIEW_KEY], views[v, VIEW_KEYS_END]):
        f = view_keys[y, LEAF]
        cells[at] = windows.nodes[keys[view_keys[y, LEAF_KEY], NODES] + 2 * (chosen[f] & inputs[f, MASK])]
        at += 2
    for k in range(views[v, MEMBER], views[v, MEMBERS_END]):
        cells[at] = chosen[subresults.members[k]]
        at += 1
    if views[v, BAG] < views[v, MEMBERS_END]:
        cells[at] = run.state[BORN]
    views[v, VIEW_HI] = number + 1
    _link_cell(subresults, v, number)


@kernel
def tree_join(
    windows: Windows, run: JoinRun, tree: TreePlan, subresults: Kept, by_instants: int, output: Output, found: int
) -> int:
    """Join what waits; returns how many tuples stand in `out`, state[STATUS] how the call ended.

    Where it is CROWDED, subresult state[NEEDED] is full.  Arguments as of `kernels.mjoin.mjoin`, and by_instants: the
    inputs are streams with ranges, whose slots [HI, STOP) wait; else the runs tell.  births: empty where no input is a
    bag.  With state[PHASE] = FILL the subresult state[FILLED] gets the tuples of the windows' present rows, found from
    the rows of state[INPUT], and nothing is put out.
    O(elements + tuples + tuples kept + slots and cells inspected).
    """
    inputs, walks, chosen, state = windows.inputs, run.walks, run.chosen, run.state
    steps, lengths, views, births = tree.steps, tree.lengths, subresults.views, subresults.births
    n = len(inputs)
    most = len(steps) // n
    limit, most_inspected = len(output.out_ts), state[MOST]
    phase, i, slot, depth = state[PHASE], state[INPUT], state[SLOT], state[DEPTH]
    filled = state[FILLED]
    inspected = 0
    own = int64(0)
    state[STATUS] = DONE
    while True:
        while depth >= 0 and inspected < most_inspected:
            step = i * most + depth
            kept, tag, s = steps[step, KEPT], walks[TAG, depth], walks[FOLLOWING, depth]
            if steps[step, TARGET] < n:
                s, following, matches, looked = _next_row(windows, tree, run, step, tag, s)
            else:
                s, following, matches, looked = _next_kept(windows, tree, subresults, run, step, tag, s)
            inspected += looked
            if not matches:
                depth -= 1
                continue
            if kept >= 0 and (phase == INSERT or kept == filled):
                number = views[kept, VIEW_HI]
                if number - views[kept, VIEW_LO] > views[kept, VIEW_MASK]:
                    walks[FOLLOWING, depth] = s
                    state[STATUS], state[NEEDED] = CROWDED, kept
                    break
                _keep(windows, subresults, run, kept)
            if kept >= 0 and kept == filled:
                walks[FOLLOWING, depth] = following
            elif depth + 1 < lengths[i]:
                walks[FOLLOWING, depth] = following
                depth += 1
                _begin_step(windows, subresults, tree, run, i * most + depth, depth)
            else:
                is_wanted = True
                if phase == CANCEL:
                    for m in range(n):
                        is_wanted &= is_stamped(windows, run, m, chosen[m])
                if is_wanted:
                    if found == limit:
                        walks[FOLLOWING, depth] = s
                        state[STATUS] = FULL
                        break
                    put_tuple(output, chosen, found, state[INSTANT], 1 if phase == INSERT else -1)
                    found += 1
                walks[FOLLOWING, depth] = following
        if inspected >= most_inspected and state[STATUS] == DONE:
            state[STATUS] = PAUSED
        if state[STATUS] != DONE:
            break
        if phase == FILL:
            own = next_held(windows, i, slot)
            if own < 0:
                phase = int64(START)
            slot = own
        else:
            state[PHASE], state[INPUT], state[SLOT] = phase, i, slot
            own = next_element(windows, run, by_instants, output, found)
            phase, i, slot = state[PHASE], state[INPUT], state[SLOT]
            if own >= 0 and inputs[i, IS_BAG] != 0:
                if phase == INSERT:
                    state[BORN] += 1
                births[births[i] + own] = state[BORN] if phase == INSERT else NEVER
        if own < 0:
            break
        chosen[i] = own
        depth = int64(0)
        _begin_step(windows, subresults, tree, run, i * most, depth)
    state[PHASE], state[INPUT], state[SLOT], state[DEPTH] = phase, i, slot, depth
    state[INSPECTED] += inspected
    return found
