"""Group probing: the rows of a step are looked up together where the step behind asks an index by several columns.

Of such rows there are many, and for few of them that index has something. The tags and heads of a group are computed
first, so that no row waits for what the last one finds, and only rows for which the step behind finds something are
gone on with. Where the third step asks such an index, too, it is asked for the pairs of rows, while that drops a
quarter of them. Group prefetching: Chen, Ailamaki, Gibbons and Mowry 2004.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.access_methods.hashes import hashed_tag
from minidsms.kernels.cache_lookups import Step
from minidsms.kernels.chains import chain_of, checks_hold, next_slot, older
from minidsms.kernels.drop_probing import pays
from minidsms.kernels.join_layout import (
    DROPPED,
    FIRSTS,
    GROUP,
    OWNERS,
    SLOTS,
    TAGS,
    TRIED,
    Blocks,
    JoinRun,
    JoinStep,
    Pipelines,
    Windows,
)
from minidsms.kernels.links import head_slot
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import Int64Table, Rows, helper, int64, uint64


@helper(inline=True)
def is_grouping(steps: Rows[JoinStep], r: int, depth: int, last: int) -> Any:
    """Rows of step r, at this depth of a pipeline, are looked up in groups."""
    q = uint64(r)
    grouping = depth < last and steps[q].reach == 0
    return grouping and steps[q + uint64(1)].hashed > 0 and steps[q + uint64(1)].asked == depth + 1


@helper(inline=True)
def _gather(
    windows: Windows, pipelines: Pipelines, run: JoinRun, group: Int64Table, r: int, tag: int, s: int, count: int
) -> Any:
    """Put rows of step r, from slot s on, which has the tag, behind `count` others of a group, with what the step
    behind asks for. Rows of equal hashes are compared when one is taken.

    Returns the slot to go on at, how many the group has, and how many slots were inspected.
    """
    nodes, heads, chosen, checks = windows.nodes, windows.heads, run.chosen, pipelines.checks
    step, behind = pipelines.steps[r], pipelines.steps[r + 1]
    chain, j, check, checks_end = chain_of(windows, pipelines.steps, r), step.target, step.check, step.checks_end
    buckets, shift, near = behind.target_heads, behind.target_shift, windows.inputs[behind.target].lo
    hashed, hashed_end = behind.check, behind.check + behind.hashed
    slots, tags, firsts = group[SLOTS], group[TAGS], group[FIRSTS]
    inspected, is_compared = int64(0), check < checks_end and step.hashed == 0
    while s >= chain.low and count < GROUP:
        chosen[j] = s
        if not is_compared or checks_hold(windows, checks, chosen, check, checks_end):
            asked, at = hashed_tag(windows, checks, chosen, hashed, hashed_end), uint64(count)
            slots[at], tags[at] = s, asked
            firsts[at] = head_slot(heads, buckets + bucket(asked, shift), near)
            count += 1
        s, looked = next_slot(nodes, chain, tag, older(nodes, chain, s))
        inspected += looked
    return int64(s), int64(count), inspected


@helper(inline=True)
def _next_group(
    windows: Windows, pipelines: Pipelines, run: JoinRun, blocks: Blocks, step: Step, s: int, inspected: int
) -> Any:
    """Fill the group of a step with rows from slot s on. Where enough has been inspected, rows are kept unasked.

    Returns the slot to go on at, and how many have been inspected.
    """
    nodes, walks, chosen, steps, r, d = windows.nodes, run.walks, run.chosen, pipelines.steps, step.r, step.depth
    group = blocks.groups[d]
    slots, tags, firsts, most = group[SLOTS], group[TAGS], group[FIRSTS], run.state.most
    s, looked = next_slot(nodes, chain_of(windows, steps, r), step.tag, s)
    inspected += looked
    s, count, looked = _gather(windows, pipelines, run, group, r, step.tag, s, int64(0))
    inspected += looked
    chain, kept = chain_of(windows, steps, r + 1), int64(0)
    for a in range(count):
        at, to = uint64(a), uint64(kept)
        first, looked = next_slot(nodes, chain, tags[at], firsts[at])
        inspected += looked
        slots[to], tags[to], firsts[to] = slots[at], tags[at], first
        kept += int64(first >= chain.low or inspected >= most)
    if is_grouping(steps, r + 1, d + 1, step.last) and pays(blocks.drops[r + 2]) and inspected < most:
        # Pairs of rows of both steps; the rows before the place `tried` have all theirs among them.
        pairs, drops, j, count, size, tried = blocks.groups[d + 1], blocks.drops[r + 2], steps[r].target, kept, 0, 0
        while tried < count and size < GROUP:
            chosen[j], begin = slots[tried], size
            first, size, looked = _gather(
                windows, pipelines, run, pairs, r + 1, tags[tried], firsts[tried], int64(size)
            )
            inspected += looked
            pairs[OWNERS, begin:size] = tried
            tried += int64(first < chain.low)
        chain, kept = chain_of(windows, steps, r + 2), int64(0)
        for a in range(size):
            first, looked = next_slot(nodes, chain, pairs[TAGS, a], pairs[FIRSTS, a])
            inspected += looked
            at = pairs[OWNERS, a]
            if first >= chain.low and at < tried and (kept == 0 or slots[kept - 1] != slots[at]):
                slots[kept], tags[kept], firsts[kept] = slots[at], tags[at], pairs[SLOTS, a]
                kept += 1
        drops[TRIED] += tried
        drops[DROPPED] += tried - kept
        for a in range(tried, count):
            slots[kept], tags[kept], firsts[kept] = slots[a], tags[a], firsts[a]
            kept += 1
    walks[d].rest, walks[d].up = 0, kept
    return s, inspected


@helper(inline=True)
def next_of_group(windows: Windows, pipelines: Pipelines, run: JoinRun, blocks: Blocks, step: Step) -> Any:
    """Go on to the next row of a step for which the step behind finds something; (whether there is one, which is
    chosen, and how many slots were inspected).
    """
    walks, chosen, d, s, inspected = run.walks, run.chosen, uint64(step.depth), step.s, int64(0)
    steps, checks, r = pipelines.steps, pipelines.checks, uint64(step.r)
    low, j, check, checks_end = chain_of(windows, steps, r).low, steps[r].target, steps[r].check, steps[r].checks_end
    is_chosen = False
    while not is_chosen and (walks[d].rest < walks[d].up or s >= low):
        at = walks[d].rest
        if at == walks[d].up:
            s, inspected = _next_group(windows, pipelines, run, blocks, step, s, inspected)
        else:
            chosen[j], walks[d].rest = blocks.groups[step.depth, SLOTS, at], at + 1
            is_chosen = check == checks_end or checks_hold(windows, checks, chosen, check, checks_end)
    walks[d].following = s
    return is_chosen, inspected
