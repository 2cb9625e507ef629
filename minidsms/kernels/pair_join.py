"""Joining two windows, instant by instant, where every deletion is put out: `kernels.mjoin` for one step.

The elements of a run are taken in one loop whose figures stay in registers, which the loop over pipelines of any length
cannot do: rows that last an instant, joined with a relation, take 8 ns an element so, and 30 in `mjoin`; windows of
which an element comes at an instant 0.8 of the time where rows meet, and the same where few do.

Invariant: as of `kernels.mjoin`; the two leave the same windows and put out the same pairs.
"""

from __future__ import annotations

from minidsms.kernels.access_methods.methods import first_tag
from minidsms.kernels.chains import (
    chain_of,
    checks_hold,
    further,
    link_slot,
    link_slots,
    lowest_slot,
    next_slot,
    older,
    unlink_slot,
)
from minidsms.kernels.join_instants import next_runs
from minidsms.kernels.join_layout import (
    CHECK,
    CHECKS_END,
    DELETE,
    DEPTH,
    DONE,
    FOLLOWING,
    FROM_KEY,
    FULL,
    HAS_NULLS,
    HASHED,
    HEADS,
    HI,
    INPUT,
    INSERT,
    INSPECTED,
    INSTANT,
    IS_BAG,
    LO,
    MASK,
    MISSING,
    MOST,
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
from minidsms.machine_code import int64, kernel, uint64


@kernel
def pair_join(windows: Windows, pipelines: Pipelines, run: JoinRun, output: Output, found: int) -> int:
    """As `kernels.mjoin.mjoin` of two inputs, not netted.  O(elements + pairs + slots inspected)."""
    inputs, keys, nodes, heads, places = windows.inputs, windows.keys, windows.nodes, windows.heads, windows.places
    steps, checks = pipelines.steps, pipelines.checks
    walks, chosen, state, stops = run.walks, run.chosen, run.state, run.stops
    out, out_ts, out_sign = output.out, output.out_ts, output.out_sign
    limit, most = len(out_ts), state[MOST]
    phase, i, at = state[PHASE], state[INPUT], state[SLOT]
    s = walks[FOLLOWING, 0] if state[DEPTH] >= 0 else int64(-1)
    inspected = 0
    state[STATUS], state[DEPTH] = DONE, -1
    while True:
        end = inputs[i, LO] if phase == DELETE else stops[i]
        if phase != START and (at < end or s >= 0):
            j, x, source, reach = 1 - i, steps[i, PROBED], steps[i, FROM_KEY], steps[i, REACH]
            check, checks_end = steps[i, CHECK], steps[i, CHECKS_END]
            chain, buckets, shift = chain_of(windows, steps, i), keys[x, HEADS], keys[x, SHIFT]
            low, near = chain.low, inputs[j, LO]
            own_base, own_mask, first_key = keys[source, NODES], inputs[i, MASK], inputs[i, ROWS]
            is_bag, has_nulls = inputs[i, IS_BAG] != 0, inputs[i, HAS_NULLS] != 0
            instant, sign = state[INSTANT], 1 if phase == INSERT else -1
            own, tag = chosen[i], walks[TAG, 0]
            while True:
                while s >= low:
                    chosen[j] = s
                    if check == checks_end or checks_hold(windows, checks, chosen, check, checks_end):
                        if found == limit:
                            state[STATUS] = FULL
                            break
                        out[i, uint64(found)], out[j, uint64(found)] = own, s
                        out_ts[uint64(found)], out_sign[uint64(found)] = instant, sign
                        found += 1
                    s, looked = next_slot(nodes, chain, tag, older(nodes, chain, s))
                    inspected += looked
                    if s < low and reach != 0:
                        tag, s, looked = further(windows, steps, i, checks, chosen, chain, tag)
                        inspected += looked
                if state[STATUS] == FULL or at == end or inspected >= most:
                    break
                own = places[uint64(at)] if is_bag else at
                at += 1
                joins = True
                if is_bag and phase == INSERT:
                    joins = link_slot(windows, i, own)
                elif has_nulls:
                    joins = has_link(nodes, first_key + 2 * (own & own_mask))
                if is_bag and phase == DELETE and joins:
                    unlink_slot(windows, i, own)
                s = int64(-1)
                chosen[i] = own
                if joins:
                    tag = nodes[uint64(own_base + 2 * (own & own_mask))]
                    if steps[i, HASHED] < 0:
                        tag = first_tag(windows, steps[i], checks, chosen, tag)
                    first = head_slot(heads, buckets + bucket(tag, shift), near)
                    s, looked = next_slot(nodes, chain, tag, first)
                    inspected += looked
                    if s < low and reach != 0:
                        tag, s, looked = further(windows, steps, i, checks, chosen, chain, tag)
                        inspected += looked
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
            phase, i = (phase, 1) if i == 0 else (int64(INSERT), 0)
        elif phase == INSERT:
            inputs[i, HI] = stops[i]
            phase, i = (phase, 1) if i == 0 else (int64(START), 0)
        if phase == START:
            phase, i = next_runs(windows, run), 0
            if phase == START or state[STATUS] == MISSING:
                break
        at = inputs[i, OLD_LO] if phase == DELETE else inputs[i, HI]
        if phase == INSERT and inputs[i, IS_BAG] == 0:
            link_slots(windows, i, at, stops[i])
    state[PHASE], state[INPUT], state[SLOT] = phase, i, at
    state[INSPECTED] += inspected
    return found
