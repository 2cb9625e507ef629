"""Joining n windows, instant by instant.

An element's *pipeline* visits the other inputs in a fixed order, depth first; each step probes one key with the tag of
a slot already chosen and compares further keys. So no intermediate result is ever kept (MJoin: Viglas, Naughton and
Burger 2003; Babu 2005, section 3.2). As soon as a slot is chosen, each step that asks for its keys looks for its first
match, in the order of the pipeline: without one the slot is dropped, and matches are gone through from there on
(drop probing and output generation: Babu 2005, section 5.2.2).

Which elements come when says `kernels.join_instants`, how windows stand in arrays `kernels.join_layout`.
"""

from __future__ import annotations

from minidsms.kernels.join_instants import next_element
from minidsms.kernels.join_layout import (
    ASKED,
    CANCEL,
    CHECK,
    CHECKS_END,
    CHOSEN,
    DEPTH,
    DONE,
    FOLLOWING,
    FOUND,
    FROM,
    FROM_KEY,
    FULL,
    HASHED,
    HEADS,
    INPUT,
    INSERT,
    INSPECTED,
    INSTANT,
    MASK,
    NODES,
    PHASE,
    PROBE_HI,
    PROBE_LO,
    PROBED,
    SHIFT,
    STATUS,
    TAG,
    TARGET,
    JoinRun,
    Output,
    Windows,
)
from minidsms.kernels.join_stamps import is_stamped
from minidsms.kernels.mixing import bucket
from minidsms.kernels.window_index import checks_hold, hashed_tag
from minidsms.machine_code import Int64Cube, Int64Table, int64, kernel


@kernel
def mjoin(windows: Windows, steps: Int64Cube, checks: Int64Table, run: JoinRun, output: Output, found: int) -> int:
    """Join what is left of the runs; returns how many tuples stand in `out`, state[STATUS] how the call ended.

    steps: (n, n - 1, STEP_WORDS), the pipeline of each input.  checks: (c, 4): input, key, input, key that are equal.
    walks: (4, n), see TAG.  stops: (n,), scratch.  instants: not read.
    netted: the consumer is ISTREAM, and no input is a bag; then the tuples of an instant stay in `out` until it is
    done: a caller that empties a full buffer leaves those from state[FIRST] on at its beginning.
    stamps: (n, STAMPS), where netted.
    out: (n, m) slots per input, with out_ts and out_sign: in ts order, deletions first; `found` are there already.
    O(elements + tuples + slots inspected).
    """
    inputs, keys, nodes, heads = windows.inputs, windows.keys, windows.nodes, windows.heads
    walks, state = run.walks, run.state
    out, out_ts, out_sign = output.out, output.out_ts, output.out_sign
    # One loop: parted into drop probing and output generation it took a tenth longer and more.
    n = len(inputs)
    last = n - 2
    limit = len(out_ts)
    depth, is_chosen = state[DEPTH], False
    inspected = 0
    state[STATUS] = DONE
    while True:
        # The pipeline of the element, as far as the buffer has room. `is_chosen`: a row has just been chosen, and the
        # steps that ask for its keys have not been.
        i, phase = state[INPUT], state[PHASE]
        while depth >= 0 or is_chosen:
            if is_chosen:
                position = depth + 1
                for d in range(position, n - 1):
                    if steps[i, d, ASKED] != position:
                        continue
                    f, x = steps[i, d, FROM], steps[i, d, PROBED]
                    tag = nodes[keys[steps[i, d, FROM_KEY], NODES] + 2 * (walks[CHOSEN, f] & inputs[f, MASK])]
                    if steps[i, d, HASHED] > 0:
                        check = steps[i, d, CHECK]
                        tag = hashed_tag(windows, checks, walks[CHOSEN], 0, check, check + steps[i, d, HASHED])
                    base, jmask = keys[x, NODES], inputs[steps[i, d, TARGET], MASK]
                    low, high = inputs[steps[i, d, TARGET], PROBE_LO], inputs[steps[i, d, TARGET], PROBE_HI]
                    s = heads[keys[x, HEADS] + bucket(tag, keys[x, SHIFT])]
                    while s >= low and (nodes[base + 2 * (s & jmask)] != tag or s >= high):
                        inspected += 1
                        s = nodes[base + 2 * (s & jmask) + 1]
                    if s < low:
                        is_chosen = False
                        break
                    walks[TAG, d], walks[FOUND, d] = tag, s
                if is_chosen:
                    depth = position
                    walks[FOLLOWING, depth] = walks[FOUND, depth]
                elif depth < 0:
                    break
            j, x = steps[i, depth, TARGET], steps[i, depth, PROBED]
            base, jmask = keys[x, NODES], inputs[j, MASK]
            low, high = inputs[j, PROBE_LO], inputs[j, PROBE_HI]
            tag, s = walks[TAG, depth], walks[FOLLOWING, depth]
            is_chosen = False
            while s >= low:
                k = base + 2 * (s & jmask)
                inspected += 1
                if nodes[k] == tag and s < high:
                    walks[CHOSEN, j] = s
                    check, checks_end = steps[i, depth, CHECK], steps[i, depth, CHECKS_END]
                    equal = check == checks_end or checks_hold(windows, checks, walks[CHOSEN], check, checks_end)
                    if equal and depth < last:
                        is_chosen = True
                        s = nodes[k + 1]
                        break
                    if equal and phase == CANCEL:
                        for m in range(n):
                            equal &= is_stamped(windows, run, m, walks[CHOSEN, m])
                    if equal:
                        if found == limit:
                            state[STATUS] = FULL
                            break
                        for m in range(n):
                            out[m, found] = walks[CHOSEN, m]
                        out_ts[found] = state[INSTANT]
                        out_sign[found] = 1 if phase == INSERT else -1
                        found += 1
                s = nodes[k + 1]
            walks[FOLLOWING, depth] = s
            if state[STATUS] == FULL:
                break
            if not is_chosen:
                depth -= 1
        if state[STATUS] == FULL:
            break
        own = next_element(windows, run, int64(0), output, found)  # fmt: skip
        if own < 0:
            break
        walks[CHOSEN, state[INPUT]] = own
        is_chosen = True
    state[DEPTH] = depth
    state[INSPECTED] += inspected
    return found
