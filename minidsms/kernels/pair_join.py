"""Joining two windows, instant by instant, where every deletion is put out: `kernels.mjoin` for one step.

The elements of a run are taken in one loop whose figures stay in registers, which the loop over pipelines of any length
cannot do: rows that last an instant, joined with a relation, take 8 ns an element so, and 30 in `mjoin`; windows of
which an element comes at an instant 0.8 of the time where rows meet, and the same where few do.

Of a left outer join, rows of input 0 without a match are put out, too, with slot -1 of input 1. No count of matches is
kept: rows of input 1 that one row of input 0 meets have the same key, so that the first such row says whether there are
others. An instant goes so, deletions first: rows of input 0 leave, with their matches or none; rows of input 1 are
linked as they come, and the first of a key that had none takes the NULLs from the rows of input 0 (LOSE); rows of input
1 leave their matches; those that have come meet theirs; the last that has left a key which has none now gives the NULLs
back (GAIN); rows of input 0 come. Of a bag the last to leave a key is told as it is unlinked: its place is negative
until then.

Invariant: as of `kernels.mjoin`; the two leave the same windows and put out the same pairs.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.access_methods.methods import first_tag
from minidsms.kernels.chains import (
    Chain,
    chain_of,
    checks_hold,
    first_slot,
    further,
    link_slot,
    link_slots,
    lowest_slot,
    next_slot,
    older,
    step_tag,
    unlink_slot,
)
from minidsms.kernels.join_instants import next_changes, next_runs
from minidsms.kernels.join_layout import (
    CHECK,
    CHECKS_END,
    DELETE,
    DEPTH,
    DONE,
    FOLLOWING,
    FROM_KEY,
    FULL,
    GAIN,
    HAS_NULLS,
    HASHED,
    HEADS,
    HI,
    INPUT,
    INSERT,
    INSPECTED,
    INSTANT,
    IS_BAG,
    IS_OUTER,
    LO,
    LOSE,
    MASK,
    MISSING,
    MOST,
    NO_LIMIT,
    NODES,
    OLD_LO,
    PAUSED,
    PHASE,
    PROBE_LO,
    PROBED,
    REACH,
    ROWS,
    SHIFT,
    SLOT,
    START,
    STATUS,
    TAG,
    JoinRun,
    Output,
    Pipelines,
    Windows,
)
from minidsms.kernels.links import has_link, head_slot
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import Int64s, Int64Table, helper, int64, kernel, uint64


@helper
def _has_match(
    windows: Windows, steps: Int64Table, checks: Int64Table, chosen: Int64s, low: int, other_than: int
) -> Any:
    """Whether the row chosen of input 0 has a match in a slot of input 1 from `low` on, other than one; and how many
    were inspected.
    """
    base, width, mask, _, _ = chain_of(windows, steps, 0)
    chain = Chain(base, width, mask, low, int64(NO_LIMIT))
    kept, begin, end = chosen[1], steps[0, CHECK], steps[0, CHECKS_END]
    tag = step_tag(windows, steps, 0, checks, chosen)
    s = first_slot(windows, steps, 0, tag)
    is_found, goes_on = False, True
    inspected = int64(0)
    while goes_on:
        s, looked = next_slot(windows.nodes, chain, tag, s)
        inspected += looked
        if s < low and steps[0, REACH] != 0:
            tag, s, looked = further(windows, steps, 0, checks, chosen, chain, tag)
            inspected += looked
        chosen[1] = s
        is_found = s >= low and s != other_than and checks_hold(windows, checks, chosen, begin, end)
        goes_on = s >= low and not is_found
        if goes_on:
            s = older(windows.nodes, chain, s)
    chosen[1] = kept
    return is_found, inspected


@helper(inline=True)
def _has_like(windows: Windows, own: Chain, first: int, tag: int, other_than: int) -> Any:
    """Whether a slot of a chain, other than one, has the tag; and how many were inspected."""
    s, inspected = next_slot(windows.nodes, own, tag, first)
    if s == other_than:
        s, looked = next_slot(windows.nodes, own, tag, older(windows.nodes, own, s))
        inspected += looked
    return s >= own.low, inspected


@helper(inline=True)
def _next_like(
    windows: Windows, steps: Int64Table, i: int, checks: Int64Table, chosen: Int64s, chain: Chain, reach: int,
    tag: int, slot: int,
) -> Any:  # fmt: skip
    """From a slot on the first that has the tag, or a further one that the step asks for, with that tag, below
    chain.low where there is none; and how many were inspected.
    """
    s, inspected = next_slot(windows.nodes, chain, tag, slot)
    if s < chain.low and reach != 0:
        tag, s, looked = further(windows, steps, i, checks, chosen, chain, tag)
        inspected += looked
    return tag, s, inspected


@helper(inline=True)
def _oldest_other(windows: Windows, own: int, phase: int, is_bag: bool) -> Any:
    """From which slot of input 1 on another row may have the key of a row that comes or leaves."""
    return own + 1 if phase == GAIN else lowest_slot(windows, 1) if is_bag else windows.inputs[1, PROBE_LO]


@helper(inline=True)
def _first_phase(phase: int, outer: bool) -> Any:
    """The phase and the input with which an instant begins."""
    return (int64(LOSE), int64(1)) if outer and phase == INSERT else (int64(phase), int64(0))


@helper(inline=True)
def _next_phase(phase: int, i: int, outer: bool) -> Any:
    """Which phase of an instant, of which input, follows; START behind the last."""
    if not outer:
        following = (int64(phase), int64(1)) if i == 0 else (int64(INSERT if phase == DELETE else START), int64(0))
    elif phase == DELETE:
        following = (int64(LOSE), int64(1)) if i == 0 else (int64(INSERT), int64(1))
    elif phase == LOSE:
        following = int64(DELETE), int64(1)
    elif phase == GAIN:
        following = int64(INSERT), int64(0)
    else:
        following = (int64(START), int64(0)) if i == 0 else (int64(GAIN), int64(1))
    return following


@kernel
def pair_join(windows: Windows, pipelines: Pipelines, run: JoinRun, output: Output, found: int) -> int:
    """As `kernels.mjoin.mjoin` of two inputs, not netted; with state[IS_OUTER] a left outer join.

    O(elements + pairs + slots inspected).
    """
    inputs, keys, nodes, heads, places = windows.inputs, windows.keys, windows.nodes, windows.heads, windows.places
    steps, checks = pipelines.steps, pipelines.checks
    walks, chosen, state, stops = run.walks, run.chosen, run.state, run.stops
    out, out_ts, out_sign = output.out, output.out_ts, output.out_sign
    limit, most, outer = len(out_ts), state[MOST], state[IS_OUTER] != 0
    phase, i, at = state[PHASE], state[INPUT], state[SLOT]
    s = walks[FOLLOWING, 0] if state[DEPTH] >= 0 else int64(-1)
    inspected = 0
    state[STATUS], state[DEPTH] = DONE, -1
    while True:
        end = inputs[i, LO] if phase in (DELETE, GAIN) else stops[i]
        if phase != START and (at < end or s >= 0):
            j, x, source, reach = 1 - i, steps[i, PROBED], steps[i, FROM_KEY], steps[i, REACH]
            check, checks_end = steps[i, CHECK], steps[i, CHECKS_END]
            chain, buckets, shift = chain_of(windows, steps, i), keys[x, HEADS], keys[x, SHIFT]
            low, near = chain.low, inputs[j, LO]
            own_base, own_mask, first_key = keys[source, NODES], inputs[i, MASK], inputs[i, ROWS]
            is_bag, has_nulls = inputs[i, IS_BAG] != 0, inputs[i, HAS_NULLS] != 0
            instant, sign = state[INSTANT], 1 if phase in (INSERT, GAIN) else -1
            own, tag = chosen[i], walks[TAG, 0]
            is_new = phase == LOSE or (phase == INSERT and not (outer and i == 1))
            tells = check == checks_end and reach == 0 and steps[i, HASHED] == 0  # equal tags are equal keys
            own_heads, own_shift = keys[source, HEADS], keys[source, SHIFT]
            pads, asks = phase in (LOSE, GAIN), outer and (i == 0 or (phase != INSERT and (is_bag or phase != DELETE)))
            while True:
                while s >= low:
                    chosen[j] = s
                    if check == checks_end or checks_hold(windows, checks, chosen, check, checks_end):
                        if found == limit:
                            state[STATUS] = FULL
                            break
                        out[i, uint64(found)], out[j, uint64(found)] = -1 if pads else own, s
                        out_ts[uint64(found)], out_sign[uint64(found)] = instant, sign
                        found += 1
                    at_next = older(nodes, chain, s)
                    tag, s, looked = _next_like(windows, steps, i, checks, chosen, chain, reach, tag, at_next)
                    inspected += looked
                if asks and found == limit:
                    state[STATUS] = FULL
                if state[STATUS] == FULL or at == end or inspected >= most:
                    break
                own = places[uint64(at)] if is_bag else at
                is_last = own < 0
                if is_last:
                    own = ~own
                    places[uint64(at)] = own
                at += 1
                joins = True
                if is_new and (is_bag or phase == LOSE):
                    joins = link_slot(windows, i, own)
                elif has_nulls:
                    joins = has_link(nodes, first_key + 2 * (own & own_mask))
                if is_bag and phase == DELETE and joins:
                    unlink_slot(windows, i, own)
                s = int64(-1)
                chosen[i] = own
                has_others = False
                if joins and asks and tells and i == 1 and not (is_bag and phase == GAIN):
                    tag = nodes[uint64(own_base + 2 * (own & own_mask))]
                    since = _oldest_other(windows, own, phase, is_bag)
                    first = head_slot(heads, own_heads + bucket(tag, own_shift), inputs[1, LO])
                    likes = Chain(own_base, int64(2), own_mask, since, int64(NO_LIMIT))
                    has_others, looked = _has_like(windows, likes, first, tag, own)
                    inspected += looked
                    joins = phase == DELETE or not has_others
                if joins:
                    tag = nodes[uint64(own_base + 2 * (own & own_mask))]
                    if steps[i, HASHED] < 0:
                        tag = first_tag(windows, steps[i], checks, chosen, tag)
                    first = head_slot(heads, buckets + bucket(tag, shift), near)
                    tag, s, looked = _next_like(windows, steps, i, checks, chosen, chain, reach, tag, first)
                    inspected += looked
                if asks:
                    # The first match, if there is one.
                    chosen[j] = s
                    while s >= low and not checks_hold(windows, checks, chosen, check, checks_end):
                        at_next = older(nodes, chain, s)
                        tag, s, looked = _next_like(windows, steps, i, checks, chosen, chain, reach, tag, at_next)
                        inspected += looked
                        chosen[j] = s
                    if i == 0 and s < low:
                        out[0, uint64(found)], out[1, uint64(found)] = own, -1
                        out_ts[uint64(found)], out_sign[uint64(found)] = instant, sign
                        found += 1
                    elif i == 1 and phase == GAIN and is_bag:
                        s = s if is_last else int64(-1)
                    elif i == 1 and tells:
                        if phase == DELETE and joins and not has_others:
                            places[uint64(at - 1)] = ~own
                    elif i == 1 and s >= low:
                        since = _oldest_other(windows, own, phase, is_bag)
                        has_others, looked = _has_match(windows, steps, checks, chosen, since, own)
                        inspected += looked
                        if phase != DELETE:
                            s = int64(-1) if has_others else s
                        elif not has_others:
                            places[uint64(at - 1)] = ~own
            walks[TAG, 0] = tag
            if state[STATUS] == FULL:
                walks[FOLLOWING, 0], state[DEPTH] = s, 0
                break
            if at < end:
                state[STATUS] = PAUSED
                break
        s = int64(-1)
        if phase == DELETE:
            inputs[i, PROBE_LO] = lowest_slot(windows, i)
        elif phase == INSERT:
            inputs[i, HI] = stops[i]
        if phase != START:
            phase, i = _next_phase(phase, i, outer)
        if phase == START:
            phase = next_changes(windows, run) if run.of_streams != 0 else next_runs(windows, run)
            phase, i = _first_phase(phase, outer)
            if phase == START or state[STATUS] == MISSING:
                break
        at = inputs[i, OLD_LO] if phase in (DELETE, GAIN) else inputs[i, HI]
        if phase == INSERT and inputs[i, IS_BAG] == 0 and not (outer and i == 1):
            link_slots(windows, i, at, stops[i])
    state[PHASE], state[INPUT], state[SLOT] = phase, i, at
    state[INSPECTED] += inspected
    return found
