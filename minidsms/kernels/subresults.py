"""The subresults of a join tree as arrays: what is kept of its inner joins, which pipelines probe as they do windows.

The windows are those of `join_layout`. Every inner node of the tree but its root has a *subresult*: a ring of cells
numbered by creation, [lo, hi), each the slots of a tuple's rows, and before them (tag, next) for each key that the
subresult is probed by. A cell dies when one of its rows leaves, and nothing is done then: probes pass over cells with a
row that is not in its window, `sweep` moves lo past dead cells and `compact` squeezes the others out of a full ring.

The slots of an input that is a bag (see `join_layout`) are used again, so that a slot alone does not tell a row. The
rows of bags are counted as they come: `births` has the number of the row that each slot holds, NEVER where it holds
none, and a cell with rows of bags ends with how many had come when it was made. The cell is dead if a row in one of its
slots came later. births[i] is where those of input i begin.

Invariant: between two elements a subresult holds every tuple of its inputs' present rows, once.  Babu 2005, section
5.3.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.chains import Chain, checks_hold, next_slot
from minidsms.kernels.join_layout import (
    INSERT,
    NO_LIMIT,
    JoinInput,
    JoinRun,
    Pipelines,
    Windows,
)
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import Int64s, Record, Rows, helper, int64, kernel


class View(Record):
    """Of a subresult: its cells [lo, hi), ring mask, where they begin and how many words each has, its inputs, of which
    those from `bag` on are bags, its keys.
    """

    lo: int
    hi: int
    mask: int
    cells: int
    width: int
    member: int
    bag: int
    members_end: int
    key: int
    keys_end: int


class ViewKey(Record):
    """Of a subresult's key: the input and its key that give the tag, where its bucket heads begin, and their shift."""

    leaf: int
    leaf_key: int
    heads: int
    shift: int


class Kept(NamedTuple):
    """The subresults (`synopses.subresults`).

    members: their inputs.  cells: of all, with the tags.  view_heads: of the buckets of all keys.  births: of the
    slots of bags, when the row in each came.
    """

    views: Rows[View]
    view_keys: Rows[ViewKey]
    members: Int64s
    cells: Int64s
    view_heads: Int64s
    births: Int64s


NEVER = 2**62
"""The birth of a slot that holds no row that joins."""


@helper(typed=True)
def _link_cell(subresults: Kept, v: int, number: int) -> None:
    """Put a cell whose tags are written at the head of its buckets."""
    views, view_keys = subresults.views, subresults.view_keys
    cells, view_heads = subresults.cells, subresults.view_heads
    first = views[v].key
    at = views[v].cells + views[v].width * (number & views[v].mask)
    for y in range(first, views[v].keys_end):
        k = at + 2 * (y - first)
        b = view_keys[y].heads + bucket(cells[k], view_keys[y].shift)
        # A cell further back than a link can tell is gone.
        cells[k + 1] = min(number - view_heads[b], int64(2**31 - 1))
        view_heads[b] = number


@kernel
def relink(subresults: Kept, v: int) -> None:
    """Fill the empty buckets of a subresult."""
    views = subresults.views
    for number in range(views[v].lo, views[v].hi):
        _link_cell(subresults, v, number)


@helper(typed=True)
def _is_live(inputs: Rows[JoinInput], subresults: Kept, v: int, number: int, old: bool) -> bool:
    """All rows of a cell are in their windows. old: in those before the instant."""
    views, members, cells, births = subresults.views, subresults.members, subresults.cells, subresults.births
    at = views[v].cells + views[v].width * (number & views[v].mask)
    at += 2 * (views[v].keys_end - views[v].key) - views[v].member
    live = True
    for r in range(views[v].member, views[v].bag):
        of = inputs[members[r]]
        live &= cells[at + r] >= (of.old_lo if old else of.lo)
    for r in range(views[v].bag, views[v].members_end):
        live &= births[births[members[r]] + cells[at + r]] <= cells[at + views[v].members_end]
    return live


@kernel
def live_cells(inputs: Rows[JoinInput], subresults: Kept, v: int, live: Int64s) -> int:
    """Write the numbers of a subresult's tuples of present rows into `live`, ascending; returns how many there are."""
    views = subresults.views
    count = int64(0)
    for number in range(views[v].lo, views[v].hi):
        if _is_live(inputs, subresults, v, number, False):
            live[count] = number
            count += 1
    return count


@kernel
def sweep(inputs: Rows[JoinInput], subresults: Kept, v: int) -> None:
    """Move a subresult's lo past cells that are dead. What left at the present instant may still be probed."""
    views = subresults.views
    lo, hi = views[v].lo, views[v].hi
    while lo < hi and not _is_live(inputs, subresults, v, lo, True):
        lo += 1
    views[v].lo = lo


@kernel
def compact(inputs: Rows[JoinInput], subresults: Kept, v: int) -> None:
    """Squeeze dead cells out of a subresult: the live ones get the numbers from lo on, in their order."""
    views, view_keys = subresults.views, subresults.view_keys
    cells, view_heads = subresults.cells, subresults.view_heads
    base, width, mask = views[v].cells, views[v].width, views[v].mask
    for y in range(views[v].key, views[v].keys_end):
        heads = view_keys[y].heads
        view_heads[heads : heads + (int64(1) << (int64(64) - view_keys[y].shift))] = -1
    new = views[v].lo
    for number in range(new, views[v].hi):
        if _is_live(inputs, subresults, v, number, True):
            source, target = base + width * (number & mask), base + width * (new & mask)
            if source != target:
                for w in range(width):
                    cells[target + w] = cells[source + w]
            _link_cell(subresults, v, new)
            new += 1
    views[v].hi = new


@helper(inline=True)
def chain_of_cells(subresults: Kept, v: int, x: int) -> Any:
    """Where a step walks that probes subresult v by its key x."""
    views = subresults.views
    base = views[v].cells + 2 * (x - views[v].key)
    return Chain(base, views[v].width, views[v].mask, views[v].lo, int64(NO_LIMIT))


@helper(inline=True)
def first_cell(subresults: Kept, x: int, tag: int) -> Any:
    """The newest cell of the bucket in which key x has the tag."""
    view_keys = subresults.view_keys
    return subresults.view_heads[view_keys[x].heads + bucket(tag, view_keys[x].shift)]


@helper(inline=True)
def choose_cell(
    windows: Windows, pipelines: Pipelines, run: JoinRun, subresults: Kept, r: int, chain: Chain, tag: int, number: int
) -> Any:
    """From this cell on the first with the tag that step r asks for, whose slots are chosen; (its number, below
    chain.low where there is none, whether it joins, how many were inspected).
    """
    inputs, chosen, steps = windows.inputs, run.chosen, pipelines.steps
    views, cells, members, births = subresults.views, subresults.cells, subresults.members, subresults.births
    v = steps[r].target - len(inputs)
    number, inspected = next_slot(cells, chain, tag, number)
    joins = number >= chain.low
    if joins:
        member, bag, end = views[v].member, views[v].bag, views[v].members_end
        at = chain.base + chain.width * (number & chain.mask) + 2 * (views[v].keys_end - steps[r].probed) - member
        for k in range(member, end):
            row, m = cells[at + k], members[k]
            chosen[m] = row
            joins &= row >= inputs[m].probe_lo and row < inputs[m].probe_hi
        for k in range(bag, end):
            joins &= births[births[members[k]] + cells[at + k]] <= cells[at + end]
        if joins and steps[r].check < steps[r].checks_end:
            joins = checks_hold(windows, pipelines.checks, chosen, steps[r].check, steps[r].checks_end)
    return number, joins, inspected


@helper(inline=True)
def keep(windows: Windows, subresults: Kept, run: JoinRun, v: int) -> Any:
    """Put the tuple of the slots chosen into subresult v; False where there is no room."""
    inputs, keys, chosen = windows.inputs, windows.keys, run.chosen
    views, view_keys, cells = subresults.views, subresults.view_keys, subresults.cells
    number = views[v].hi
    fits = number - views[v].lo <= views[v].mask
    if fits:
        at = views[v].cells + views[v].width * (number & views[v].mask)
        for y in range(views[v].key, views[v].keys_end):
            f = view_keys[y].leaf
            cells[at] = windows.nodes[keys[view_keys[y].leaf_key].nodes + 2 * (chosen[f] & inputs[f].mask)]
            at += 2
        for k in range(views[v].member, views[v].members_end):
            cells[at] = chosen[subresults.members[k]]
            at += 1
        if views[v].bag < views[v].members_end:
            cells[at] = run.state.born
        views[v].hi = number + 1
        _link_cell(subresults, v, number)
    return fits


@helper(inline=True)
def note_birth(windows: Windows, run: JoinRun, births: Int64s, slot: int) -> None:
    """The element of state.input that comes or leaves is the row in this slot."""
    state, i = run.state, run.state.input
    if windows.inputs[i].is_bag != 0:
        if state.phase == INSERT:
            state.born += 1
        births[births[i] + slot] = state.born if state.phase == INSERT else NEVER
