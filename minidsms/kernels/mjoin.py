"""Joining n windows, instant by instant.

An element's *pipeline* visits the other inputs in a fixed order, depth first; each step probes one key with the tag of
a slot already chosen and compares further keys. So no intermediate result is ever kept (MJoin: Viglas, Naughton and
Burger 2003; Babu 2005, section 3.2). As soon as a slot is chosen, each step that asks for its keys looks for its first
match, in the order of the pipeline: without one the slot is dropped, and matches are gone through from there on
(drop probing and output generation: Babu 2005, section 5.2.2).

Which elements come when says `kernels.join_instants`, how windows stand in arrays `kernels.join_layout`.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.chains import chain_of, checks_hold, first_slot, further, next_slot, older, step_tag, tag_at
from minidsms.kernels.join_instants import next_element
from minidsms.kernels.join_layout import (
    ASKED,
    CANCEL,
    CHECK,
    CHECKS_END,
    DEPTH,
    DONE,
    FOLLOWING,
    FOUND,
    FULL,
    INPUT,
    INSERT,
    INSPECTED,
    INSTANT,
    IS_CHOSEN,
    MOST,
    PAUSED,
    PHASE,
    REACH,
    STATUS,
    TAG,
    TARGET,
    JoinRun,
    Output,
    Windows,
)
from minidsms.kernels.join_routes import Routes, pipeline_of
from minidsms.kernels.join_stamps import is_stamped, put_tuple
from minidsms.machine_code import Int64Table, helper, int64, kernel


@helper(inline=True)
def _drop_probe(windows: Windows, steps: Int64Table, checks: Int64Table, run: JoinRun, i: int, position: int) -> Any:
    """Whether all steps of pipeline i that ask for the keys of the slot chosen at a position find one, and how many
    slots were inspected.
    """
    walks, chosen, n = run.walks, run.chosen, len(windows.inputs)
    finds, inspected = True, int64(0)
    for d in range(position, n - 1):
        r = i * (n - 1) + d
        if steps[r, ASKED] != position:
            continue
        chain = chain_of(windows, steps, r)
        tag = step_tag(windows, steps, r, checks, chosen)
        s, looked = next_slot(windows.nodes, chain, tag, first_slot(windows, steps, r, tag))
        inspected += looked
        if s < chain.low and steps[r, REACH] != 0:
            tag, s, looked = further(windows, steps, r, checks, chosen, chain, tag)
            inspected += looked
        if s < chain.low:
            finds = False
            break
        walks[TAG, d], walks[FOUND, d] = tag, s
    return finds, inspected


@kernel
def mjoin(
    windows: Windows, steps: Int64Table, checks: Int64Table, routes: Routes, run: JoinRun, output: Output, found: int
) -> int:
    """Join what is left of the runs; returns how many tuples stand in `out`, state[STATUS] how the call ended.

    steps: (pipelines (n - 1), STEP_WORDS), those of all inputs, and those that `routes` lead to.  checks: (c, 4):
    input, key, input, key that are equal.
    walks: (4, n), see TAG.  stops: (n,), scratch.  of_streams, netted: rows leave by the instants they came at.
    netted: the consumer is ISTREAM, and no input is a bag; then the tuples of an instant stay in `out` until it is
    done: a caller that empties a full buffer leaves those from state[FIRST] on at its beginning.
    stamps: (n, STAMPS), where netted.
    out: (n, m) slots per input, with out_ts and out_sign: in ts order, deletions first; `found` are there already.
    O(elements + tuples + slots inspected).
    """
    inputs, nodes = windows.inputs, windows.nodes
    walks, chosen, state = run.walks, run.chosen, run.state
    # One loop: parted into functions that are called, for drop probing and output generation, it took a tenth longer.
    n = len(inputs)
    last = n - 2
    limit = len(output.out_ts)
    depth, is_chosen, most = state[DEPTH], state[IS_CHOSEN] != 0, state[MOST]
    inspected = 0
    state[STATUS], state[IS_CHOSEN] = DONE, 0
    while True:
        # The pipeline of the element, as far as the buffer has room. `is_chosen`: a row has just been chosen, and the
        # steps that ask for its keys have not been.
        i, phase = state[INPUT], state[PHASE]
        if i < n and (depth >= 0 or is_chosen):
            i = pipeline_of(windows, routes, i, chosen[i])
        while depth >= 0 or is_chosen:
            if is_chosen:
                is_chosen, looked = _drop_probe(windows, steps, checks, run, i, depth + 1)
                inspected += looked
                if is_chosen:
                    depth += 1
                    walks[FOLLOWING, depth] = walks[FOUND, depth]
                elif depth < 0:
                    break
            r = i * (n - 1) + depth
            if is_chosen and steps[r, REACH] != 0:
                # With the row chosen before, the walk may have gone on to another tag.
                walks[TAG, depth] = tag_at(nodes, chain_of(windows, steps, r), walks[FOUND, depth])
            j, check, checks_end = steps[r, TARGET], steps[r, CHECK], steps[r, CHECKS_END]
            chain = chain_of(windows, steps, r)
            tag, s = walks[TAG, depth], walks[FOLLOWING, depth]
            is_chosen = False
            while not is_chosen:
                s, looked = next_slot(nodes, chain, tag, s)
                inspected += looked
                if s < chain.low and steps[r, REACH] != 0:
                    tag, s, looked = further(windows, steps, r, checks, chosen, chain, tag)
                    walks[TAG, depth] = tag
                    inspected += looked
                if s < chain.low:
                    break
                chosen[j] = s
                equal = check == checks_end or checks_hold(windows, checks, chosen, check, checks_end)
                if equal and depth == last:
                    if phase == CANCEL:
                        for m in range(n):
                            equal &= is_stamped(windows, run, m, chosen[m])
                    if equal:
                        if found == limit:
                            state[STATUS] = FULL
                            break
                        put_tuple(output, chosen, found, state[INSTANT], 1 if phase == INSERT else -1)
                        found += 1
                else:
                    is_chosen = equal
                s = older(nodes, chain, s)
            walks[FOLLOWING, depth] = s
            if state[STATUS] == FULL:
                break
            if not is_chosen:
                depth -= 1
            if inspected >= most:
                break
        if inspected >= most and state[STATUS] == DONE:
            state[STATUS], state[IS_CHOSEN] = PAUSED, int64(is_chosen)
        if state[STATUS] != DONE:
            break
        own = next_element(windows, run, run.of_streams, output, found)
        if own < 0:
            break
        chosen[state[INPUT]] = own
        is_chosen = True
    state[DEPTH] = depth
    state[INSPECTED] += inspected
    return found
