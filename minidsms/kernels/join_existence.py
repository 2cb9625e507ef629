"""Does a row join with anything along a path of windows, and with how much? What the profilers of join plans ask.

Over the index of `kernels.mjoin`: a path is a pipeline cut short, whose steps are walked depth first, to ask for
existence until the first tuple that reaches its end. Rows that have left may be asked too, as long as their slots are
not taken again.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.mjoin import (
    CHECK,
    CHECKS_END,
    FROM,
    FROM_KEY,
    HEADS,
    IS_BAG,
    KEY,
    LO,
    MASK,
    NODES,
    PROBED,
    SHIFT,
    TARGET,
    UNLINKED,
)
from minidsms.machine_code import helper, int64, kernel, uint64


@helper(inline=True)
def _bucket(tag: int, shift: int) -> Any:
    h = uint64(tag)
    h ^= h >> uint64(32)
    return int64((h * uint64(0x9E3779B97F4A7C15)) >> uint64(shift))


@kernel(
    "int64(int64[::1], int64, int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[::1],"
    " int64[:, ::1], boolean[::1], int64)"
)
def join_existence(  # type: ignore[no-untyped-def]
    slots, i, steps, checks, inputs, keys, nodes, heads, walks, drops, most
):
    """Note for each slot of input i whether the path drops its row; returns the slots inspected.

    slots: (m,).  steps: (path length, STEP_WORDS), checks: (c, 4), walks: (3, n), as of `mjoin`.  drops: (m,), out: a
    row with a NULL key is dropped.  most: slots to inspect for one row; a row that takes more counts as passed, for
    then it costs what one that passes does.
    """
    last = steps.shape[0] - 1
    total = 0
    base_i = keys[inputs[i, KEY], NODES]
    for m in range(len(slots)):
        slot = slots[m]
        exists = False
        inspected = 0
        depth = 0
        if nodes[base_i + 2 * (slot & inputs[i, MASK]) + 1] == UNLINKED:
            depth = -1
        else:
            walks[2, i] = slot
            x = steps[0, PROBED]
            tag = nodes[keys[steps[0, FROM_KEY], NODES] + 2 * (slot & inputs[i, MASK])]
            walks[0, 0], walks[1, 0] = tag, heads[keys[x, HEADS] + _bucket(tag, keys[x, SHIFT])]
        while depth >= 0:
            j, x = steps[depth, TARGET], steps[depth, PROBED]
            base, jmask, low = keys[x, NODES], inputs[j, MASK], 0 if inputs[j, IS_BAG] != 0 else inputs[j, LO]
            tag, s = walks[0, depth], walks[1, depth]
            descends = False
            while s >= low and not descends:
                k = base + 2 * (s & jmask)
                inspected += 1
                if nodes[k] == tag:
                    walks[2, j] = s
                    descends = True
                    for c in range(steps[depth, CHECK], steps[depth, CHECKS_END]):
                        a, b = checks[c, 0], checks[c, 2]
                        at_a = keys[checks[c, 1], NODES] + 2 * (walks[2, a] & inputs[a, MASK])
                        at_b = keys[checks[c, 3], NODES] + 2 * (walks[2, b] & inputs[b, MASK])
                        descends &= nodes[at_a] == nodes[at_b]
                s = nodes[k + 1]
            walks[1, depth] = s
            if (descends and depth == last) or inspected > most:
                exists = True
                break
            depth = depth + 1 if descends else depth - 1
            if descends:
                f, x = steps[depth, FROM], steps[depth, PROBED]
                tag = nodes[keys[steps[depth, FROM_KEY], NODES] + 2 * (walks[2, f] & inputs[f, MASK])]
                walks[0, depth], walks[1, depth] = tag, heads[keys[x, HEADS] + _bucket(tag, keys[x, SHIFT])]
        drops[m] = not exists
        total += inspected
    return int64(total)


@kernel(
    "int64(int64[::1], int64, int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[::1],"
    " int64[:, ::1], int64[::1], int64)"
)
def join_counts(  # type: ignore[no-untyped-def]
    slots, i, steps, checks, inputs, keys, nodes, heads, walks, counts, most
):
    """Count, for rows of input i, the tuples that stand behind each step; returns how many rows were joined.

    counts: (path length,), out.  most: slots to inspect; what is begun then ends, and the last row counts with what was
    found.  Other arguments as of `join_existence`.
    """
    last = steps.shape[0] - 1
    base_i = keys[inputs[i, KEY], NODES]
    inspected = 0
    joined = 0
    for i in range(len(counts)):
        counts[i] = 0
    for m in range(len(slots)):
        if inspected > most:
            break
        slot = slots[m]
        joined += 1
        if nodes[base_i + 2 * (slot & inputs[i, MASK]) + 1] == UNLINKED:
            continue
        walks[2, i] = slot
        x = steps[0, PROBED]
        tag = nodes[keys[steps[0, FROM_KEY], NODES] + 2 * (slot & inputs[i, MASK])]
        walks[0, 0], walks[1, 0] = tag, heads[keys[x, HEADS] + _bucket(tag, keys[x, SHIFT])]
        depth = 0
        while depth >= 0 and inspected <= most:
            j, x = steps[depth, TARGET], steps[depth, PROBED]
            base, jmask, low = keys[x, NODES], inputs[j, MASK], inputs[j, LO]
            tag, s = walks[0, depth], walks[1, depth]
            matches = False
            while s >= low and not matches:
                k = base + 2 * (s & jmask)
                inspected += 1
                if nodes[k] == tag:
                    walks[2, j] = s
                    matches = True
                    for c in range(steps[depth, CHECK], steps[depth, CHECKS_END]):
                        a, b = checks[c, 0], checks[c, 2]
                        at_a = keys[checks[c, 1], NODES] + 2 * (walks[2, a] & inputs[a, MASK])
                        at_b = keys[checks[c, 3], NODES] + 2 * (walks[2, b] & inputs[b, MASK])
                        matches &= nodes[at_a] == nodes[at_b]
                s = nodes[k + 1]
            walks[1, depth] = s
            if matches:
                counts[depth] += 1
            if matches and depth < last:
                depth += 1
                f, x = steps[depth, FROM], steps[depth, PROBED]
                tag = nodes[keys[steps[depth, FROM_KEY], NODES] + 2 * (walks[2, f] & inputs[f, MASK])]
                walks[0, depth], walks[1, depth] = tag, heads[keys[x, HEADS] + _bucket(tag, keys[x, SHIFT])]
            elif not matches:
                depth -= 1
    return int64(joined)
