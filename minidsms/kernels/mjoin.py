"""Joining n windows, instant by instant.

An element's *pipeline* visits the other inputs in a fixed order, depth first; each step probes one key with the tag of
a slot already chosen and compares further keys. So no intermediate result is ever kept (MJoin: Viglas, Naughton and
Burger 2003; Babu 2005, section 3.2). As soon as a slot is chosen, each step that asks for its keys looks for its first
match, in the order of the pipeline: without one the slot is dropped, and matches are gone through from there on
(drop probing and output generation: Babu 2005, section 5.2.2).

In a tree of joins, whose inner results are kept (`kernels.subresults`), the pipeline climbs: it visits its siblings,
windows or subresults, adds the tuples found to the subresult of their node, goes on with them to the node's siblings,
and so forth; depth first, so that what is not kept is not written anywhere (XJoins, and trees of MJoins: section 5.3,
figures 5.5 and 5.6). With caches (`kernels.cache_lookups`) rows are not dropped as soon as they are chosen: a step may
begin the walk through an entry, and what stands behind the entry's segment follows (section 5.4). Where streams with
ranges are joined below an ISTREAM, elements that find nothing are dropped before the walk, block by block
(`kernels.drop_probing`), and rows are looked up together where an index by several columns comes next
(`kernels.group_probing`). Of windows that hold only some of their rows (`kernels.k_mon_elements`), which may soon be
gone, words are put out (`kernels.k_mon_results`). One loop walks all five: the compiler leaves out what only the others
need.

Which elements come when says `kernels.join_instants`, how windows stand in arrays `kernels.join_layout`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minidsms.kernels.cache_lookups import Step, complete, enter, leave, next_of_entry, place_parts
from minidsms.kernels.chains import (
    chain_of,
    checks_hold,
    first_slot,
    further,
    next_held,
    next_slot,
    older,
    place_steps,
    step_tag,
    tag_at,
)
from minidsms.kernels.drop_probing import is_dropping, next_block
from minidsms.kernels.group_probing import is_grouping, next_of_group
from minidsms.kernels.join_cache_layout import Caching
from minidsms.kernels.join_instants import next_element
from minidsms.kernels.join_layout import (
    CANCEL,
    CROWDED,
    DONE,
    FILL,
    FIRSTS,
    FULL,
    INSERT,
    PAUSED,
    START,
    TAGS,
    Blocks,
    JoinRun,
    Output,
    Pipelines,
    Windows,
)
from minidsms.kernels.join_routes import Routes, pipeline_of
from minidsms.kernels.join_stamps import are_stamped, put_tuple
from minidsms.kernels.k_mon_elements import next_row
from minidsms.kernels.k_mon_keys import Reduced
from minidsms.kernels.k_mon_results import has_no_place, put_words
from minidsms.kernels.subresults import Kept, chain_of_cells, choose_cell, first_cell, keep, note_birth
from minidsms.machine_code import Int64s, helper, int64, kernel, uint64


class Joining(NamedTuple):
    """A join that runs. strides: where nodes stand in rows, the words of a row of each input."""

    windows: Windows
    pipelines: Pipelines
    run: JoinRun
    strides: Int64s | None


@helper(inline=True)
def _chain(join: Joining, subresults: Kept | None, r: int) -> Any:
    """Where step r walks."""
    windows, steps = join.windows, join.pipelines.steps
    if subresults is not None and steps[r].target >= len(windows.inputs):
        chain = chain_of_cells(subresults, steps[r].target - len(windows.inputs), steps[r].probed)
    else:
        chain = chain_of(windows, steps, r, join.strides)
    return chain


@helper(inline=True)
def _drop_probe(
    join: Joining, subresults: Kept | None, blocks: Blocks | None, begin: int, last: int, position: int
) -> Any:
    """Whether all steps, of those from `begin` on, that ask for the keys of what was chosen at a position find
    something, and how many slots were inspected. If so, the walk of the step at this position begins.
    """
    windows, steps, checks = join.windows, join.pipelines.steps, join.pipelines.checks
    walks, chosen, state = join.run.walks, join.run.chosen, join.run.state
    finds, inspected = True, int64(0)
    if blocks is not None:
        walks[position].rest = walks[position].up = 0
    for d in range(position, last + 1):
        r = begin + d
        if steps[r].asked != position:
            continue
        is_grouped, is_dropped = False, False
        if blocks is not None:
            is_grouped = d == position and position > 0 and is_grouping(steps, r - 1, position - 1, last)
            is_dropped = position == 0 and state.phase == INSERT and is_dropping(steps, r)
        if blocks is not None and is_grouped:
            at = uint64(walks[position - 1].rest - 1)
            tag, s = blocks.groups[position - 1, TAGS, at], blocks.groups[position - 1, FIRSTS, at]
        else:
            tag = step_tag(windows, steps, r, checks, chosen, join.strides)
            if blocks is not None and is_dropped:
                i = state.input
                s = blocks.firsts[i, d, chosen[i] & (blocks.firsts.shape[2] - 1)]
            elif subresults is not None and steps[r].target >= len(windows.inputs):
                s = first_cell(subresults, steps[r].probed, tag)
            else:
                s = first_slot(windows, steps, r, tag)
        if d == position and (d == last or steps[r].kept >= 0) and (join.strides is not None or steps[r].reach == 0):
            # No other step asks for it: the walk itself finds out.
            walks[d].tag, walks[d].following = tag, s
            return True, inspected
        chain = _chain(join, subresults, r)
        if subresults is not None and steps[r].target >= len(windows.inputs):
            s, looked = next_slot(subresults.cells, chain, tag, s)
        else:
            s, looked = next_slot(windows.nodes, chain, tag, s)
        inspected += looked
        if join.strides is None and s < chain.low and steps[r].reach != 0:
            tag, s, looked = further(windows, steps, r, checks, chosen, chain, tag)
            inspected += looked
        if s < chain.low:
            finds = False
            break
        walks[d].tag, walks[d].found = tag, s
    if finds:
        walks[position].following = walks[position].found
        if join.strides is None and steps[begin + position].reach != 0:
            # With the row chosen before, the walk may have gone on to another tag.
            chain = chain_of(windows, steps, begin + position)
            walks[position].tag = tag_at(windows.nodes, chain, walks[position].found)
    return finds, inspected


@helper(inline=True)
def _next_element(
    join: Joining, subresults: Kept | None, blocks: Blocks | None, reduced: Reduced | None, output: Output, found: int
) -> Any:
    """The slot of what is joined next, an element of input state.input or a row to fill a subresult from, -1 where
    nothing waits; and what stands in `out`.
    """
    windows, run, state = join.windows, join.run, join.run.state
    if reduced is not None:
        own, found = next_row(reduced, run, output, found)
    elif subresults is not None and state.phase == FILL:
        own = next_held(windows, state.input, state.slot)
        state.phase, state.slot = FILL if own >= 0 else START, own
    else:
        own = next_element(windows, run, blocks, output, found)
        if subresults is not None and own >= 0:
            note_birth(windows, run, subresults.births, own)
    return own, found


@helper(inline=True)
def _next_of_bucket(
    join: Joining, subresults: Kept | None, caching: Caching | None, reduced: Reduced | None, output: Output,
    step: Step, found: int,
) -> Any:  # fmt: skip
    """Go on to the next match of a step, which is chosen. (whether there is one, slots inspected, tuples in `out`: of a
    last step all are put there that fit)
    """
    windows, pipelines, run = join.windows, join.pipelines, join.run
    nodes, steps, checks = windows.nodes, pipelines.steps, pipelines.checks
    walks, chosen, state, r, d = run.walks, run.chosen, run.state, uint64(step.r), uint64(step.depth)
    n, limit, phase, instant = len(windows.inputs), len(output.out_ts), state.phase, state.instant
    chain = _chain(join, subresults, step.r)
    j, check, checks_end, is_last = steps[r].target, steps[r].check, steps[r].checks_end, step.depth == step.last
    tag, s = step.tag, step.s
    is_chosen, inspected = False, int64(0)
    while not is_chosen:
        if subresults is not None and j >= n:
            s, joins, looked = choose_cell(windows, pipelines, run, subresults, step.r, chain, tag, s)
            inspected += looked
            if s < chain.low:
                break
        else:
            s, looked = next_slot(nodes, chain, tag, s)
            inspected += looked
            if join.strides is None and s < chain.low and steps[r].reach != 0:
                tag, s, looked = further(windows, steps, step.r, checks, chosen, chain, tag)
                walks[d].tag = tag
                inspected += looked
            if s < chain.low:
                break
            chosen[j] = s
            joins = check == checks_end or checks_hold(windows, checks, chosen, check, checks_end, join.strides)
        if subresults is not None:
            v = steps[r].kept
            if joins and v >= 0 and (phase == INSERT or v == state.filled):
                if not keep(windows, subresults, run, v):
                    state.status, state.needed = CROWDED, v
                    break
                joins = v != state.filled
        if joins and is_last:
            joins = phase != CANCEL or are_stamped(windows, run)
            if joins and found == limit:
                state.status = FULL
                break
        if reduced is not None and joins and is_last and has_no_place(reduced):
            state.status = CROWDED
            break
        if caching is not None and joins:
            complete(windows, run, caching, step.r, True)
        if joins and is_last:
            if reduced is not None:
                put_words(reduced, run, output, found)
            else:
                put_tuple(output, chosen, found, instant, 1 if phase == INSERT else -1)
            found += 1
        is_chosen = joins and not is_last
        if subresults is not None and j >= n:
            s = older(subresults.cells, chain, s)
        else:
            s = older(nodes, chain, s)
    walks[d].following = s
    return is_chosen, inspected, found


@helper(inline=True)
def _go_on(
    join: Joining, subresults: Kept | None, caching: Caching | None, blocks: Blocks | None, reduced: Reduced | None,
    output: Output, step: Step, found: int,
) -> Any:  # fmt: skip
    """As `_next_of_bucket`, wherever the matches of the step stand; those read from an entry count apart, behind the
    slots inspected.
    """
    windows, pipelines, run = join.windows, join.pipelines, join.run
    inspected, turns = int64(0), int64(0)
    if caching is not None and run.walks[uint64(step.depth)].rest >= 0:
        is_chosen, turns, found = next_of_entry(windows, run, caching, output, step, found)
    elif blocks is not None and is_grouping(pipelines.steps, step.r, step.depth, step.last):
        is_chosen, inspected = next_of_group(windows, pipelines, run, blocks, step)
    else:
        is_chosen, inspected, found = _next_of_bucket(join, subresults, caching, reduced, output, step, found)
    return is_chosen, inspected, turns, found


@helper(inline=True)
def _join(
    join: Joining, routes: Routes | None, subresults: Kept | None, caching: Caching | None, blocks: Blocks | None,
    reduced: Reduced | None, output: Output, found: int,
) -> Any:  # fmt: skip
    """Of all kernels. What each does not ask for the compiler leaves out."""
    windows, pipelines, run = join.windows, join.pipelines, join.run
    steps, lengths, chosen, state, walks = pipelines.steps, pipelines.lengths, run.chosen, run.state, run.walks
    width, most = len(steps) // len(lengths), state.most
    depth, is_chosen = state.depth, state.is_chosen != 0
    inspected, turns, begin, last, tag, s = 0, 0, int64(0), int64(0), int64(0), int64(0)
    place_steps(windows, steps)
    state.status = DONE
    while state.status == DONE:
        # The pipeline of the element, as far as the buffer has room. `is_chosen`: a row has just been chosen, and the
        # steps that ask for its keys have not been.
        i = state.input
        if depth >= 0 or is_chosen:
            if routes is not None:
                i = pipeline_of(windows, routes, i, chosen[i])
            begin, last = i * width, lengths[i] - 1
        while depth >= 0 or is_chosen:
            if is_chosen:
                if caching is not None:
                    depth, tag, s = enter(windows, pipelines, run, caching, begin, depth)
                else:
                    is_chosen, looked = _drop_probe(join, subresults, blocks, begin, last, depth + 1)
                    inspected += looked
                    depth += int64(is_chosen)
                if depth < 0:
                    break
            if caching is None or not is_chosen:
                tag, s = walks[uint64(depth)].tag, walks[uint64(depth)].following
            step = Step(begin + depth, depth, last, tag, s)
            is_chosen, looked, more, found = _go_on(join, subresults, caching, blocks, reduced, output, step, found)
            inspected, turns = inspected + looked, turns + more
            if state.status != DONE:
                break
            if not is_chosen:
                depth = depth - 1 if caching is None else leave(run, caching, step.r, depth)
            if inspected + turns >= most:
                break
        if inspected + turns >= most and state.status == DONE:
            state.status = PAUSED
        if state.status != DONE:
            break
        own, found = _next_element(join, subresults, blocks, reduced, output, found)
        is_chosen = own >= 0
        if is_chosen:
            chosen[state.input] = own
        elif blocks is not None and routes is not None:
            before = state.inspected
            if not next_block(windows, pipelines, routes, blocks, state):
                break
            turns += state.inspected - before
        else:
            break
    state.depth, state.is_chosen = depth, int64(is_chosen)
    state.inspected += inspected
    return found


@kernel
def mjoin(windows: Windows, pipelines: Pipelines, routes: Routes, run: JoinRun, output: Output, found: int) -> int:
    """Join what is left of the runs; returns how many tuples stand in `out`, state.status how the call ended.

    pipelines: those of all inputs, and those that `routes` lead to.
    Where netted, the tuples of an instant stay in `out` until it is done: a caller that empties a full buffer leaves
    those from state.first on at its beginning. `found` are there already.
    O(elements + tuples + slots inspected).
    """
    return int64(_join(Joining(windows, pipelines, run, None), routes, None, None, None, None, output, found))


@kernel
def entering_mjoin(
    windows: Windows, pipelines: Pipelines, routes: Routes, run: JoinRun, blocks: Blocks, output: Output, found: int
) -> int:
    """As `mjoin`, netted, of streams with ranges, with drop probing block by block. Where state.status is CROWDED,
    `blocks` have no room for the state.needed elements of an instant.
    """
    join = Joining(windows, pipelines, run, None)
    return int64(_join(join, routes, None, None, blocks, None, output, found))


@kernel
def tree_join(
    windows: Windows, pipelines: Pipelines, run: JoinRun, subresults: Kept, output: Output, found: int
) -> int:
    """As `mjoin`, by a tree. Where state.status is CROWDED, subresult state.needed is full.

    subresults.births is empty where no input is a bag.  With state.phase = FILL the subresult state.filled gets the
    tuples of the windows' present rows, found from the rows of state.input, and nothing is put out.
    O(elements + tuples + tuples kept + slots and cells inspected).
    """
    return int64(_join(Joining(windows, pipelines, run, None), None, subresults, None, None, None, output, found))


@kernel
def cached_mjoin(
    windows: Windows, pipelines: Pipelines, run: JoinRun, caching: Caching, output: Output, found: int
) -> int:
    """As `mjoin`, with caches.

    pipelines: of n - 1 steps each, without bands and bits.
    O(elements + tuples + slots inspected + tuples cached and swept).
    """
    place_parts(windows, caching.plan.parts)
    return int64(_join(Joining(windows, pipelines, run, None), None, None, caching, None, None, output, found))


@kernel
def reduced_mjoin(reduced: Reduced, pipelines: Pipelines, run: JoinRun, output: Output, found: int) -> int:
    """As `mjoin`, of windows that hold only some of their rows, up to state.closed; `out` (m, w + 1) has their words.

    With state.phase = FILL the results of the rows held are put out, and kept, found from the rows of state.input.
    Where state.status is CROWDED, there is no place for a result to be kept; where it is VIOLATED, the row at
    state.slot of state.input has the key of that in progress.other.
    O(elements + results + slots inspected), and the logarithm of the results kept for each of them.
    """
    join = Joining(reduced.rows.windows, pipelines, run, reduced.rows.strides)
    return int64(_join(join, None, None, None, None, reduced, output, found))
