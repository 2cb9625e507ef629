"""What rows of an input would meet in their pipeline: tuples at each step, and the keys with which a cache is probed.

Over the index of `join_layout`; nothing in it is changed, and no result is made. A row is walked through its pipeline
depth first, as if it came now: where rows stay for a range, it joins those that had come and not left at its own
instant, else those that are held. Every match is walked: a pipeline that drops rows earlier does no more than this.
"""

from __future__ import annotations

from minidsms.kernels.join_layout import (
    CHECK,
    CHECKS_END,
    FROM,
    FROM_KEY,
    HASHED,
    HEADS,
    IS_BAG,
    KEY,
    LENGTH,
    LO,
    MARKS,
    MASK,
    NODES,
    PROBED,
    SHIFT,
    TARGET,
    UNLINKED,
    Windows,
)
from minidsms.kernels.mixing import bucket
from minidsms.kernels.window_index import checks_hold, hashed_tag
from minidsms.machine_code import Int64s, Int64Table, int64, kernel, uint64

ASKED, FOUND, INSPECTED, SAMPLE_WORDS = range(4)
"""Of a sample: slots that were walked whole, keys found, slots inspected."""


@kernel
def sample_pipeline(
    slots: Int64s,
    i: int,
    steps: Int64Table,
    checks: Int64Table,
    windows: Windows,
    walks: Int64Table,
    reached: Int64s,
    at: int,
    parts: Int64Table,
    found: Int64Table,
    most: int,
    told: Int64s,
) -> None:
    """Walk the rows in these slots of input i through its pipeline; told (SAMPLE_WORDS,) says how far.

    steps: (n - 1, STEP_WORDS), checks: (c, 4), walks: (3, n), as of `mjoin`.  instants: empty where rows have no range.
    reached: (n,) tuples that reached each position, and the results; they are added to.
    at: the position before which a cache would be probed, -1 for none.  parts: (words, 2) the input and its key that
    give each word of its key.  found: (m, words), out: the keys probed, in order; at position 0 nothing else is asked.
    most: slots to inspect; the walk ends after the row that goes beyond it, or when `found` may not hold another's.
    """
    inputs, keys, nodes, heads, instants = windows.inputs, windows.keys, windows.nodes, windows.heads, windows.instants
    last = steps.shape[0] - 1
    has_ranges = len(instants) > 0
    words = parts.shape[0]
    count, inspected, asked = 0, 0, 0
    own = keys[inputs[i, KEY], NODES]
    for slot in slots:
        if inspected > most or (at >= 0 and count == len(found)):
            break
        begin = count
        walks[2, i] = slot
        k = slot & inputs[i, MASK]
        now = instants[inputs[i, MARKS] + k] if has_ranges else int64(0)
        depth = 0
        reached[0] += 1
        enters = True
        if nodes[own + 2 * k + 1] == UNLINKED:
            depth = -1
        while depth >= 0:
            if enters:
                if depth == at:
                    if count == len(found):
                        break
                    for w in range(words):
                        a = parts[w, 0]
                        found[count, w] = nodes[keys[parts[w, 1], NODES] + 2 * (walks[2, a] & inputs[a, MASK])]
                    count += 1
                    if at == 0:
                        break
                f, x = steps[depth, FROM], steps[depth, PROBED]
                tag = nodes[keys[steps[depth, FROM_KEY], NODES] + 2 * (walks[2, f] & inputs[f, MASK])]
                if steps[depth, HASHED] > 0:
                    check = steps[depth, CHECK]
                    tag = hashed_tag(windows, checks, walks[2], 0, check, check + steps[depth, HASHED])
                walks[0, depth], walks[1, depth] = tag, heads[keys[x, HEADS] + bucket(tag, keys[x, SHIFT])]
            j, x = steps[depth, TARGET], steps[depth, PROBED]
            base, mask, low = keys[x, NODES], inputs[j, MASK], 0 if inputs[j, IS_BAG] != 0 else inputs[j, LO]
            tag, s = walks[0, depth], walks[1, depth]
            descends = False
            while s >= low and not descends:
                inspected += 1
                node = base + 2 * (s & mask)
                if nodes[node] == tag:
                    descends = True
                    if has_ranges:
                        came = instants[inputs[j, MARKS] + (s & mask)]
                        descends = came <= now and uint64(now) - uint64(came) < uint64(inputs[j, LENGTH])
                    walks[2, j] = s
                    if descends:
                        check, checks_end = steps[depth, CHECK], steps[depth, CHECKS_END]
                        descends = checks_hold(windows, checks, walks[2], check, checks_end)
                s = nodes[node + 1]
            walks[1, depth] = s
            enters = False
            if descends:
                reached[depth + 1] += 1
                if depth < last:
                    depth += 1
                    enters = True
            else:
                depth -= 1
            if inspected > 4 * most:
                break
        if depth >= 0 and at != 0 and count == len(found):
            count = begin
            break
        asked += 1
    told[ASKED], told[FOUND], told[INSPECTED] = asked, count, inspected
