"""Does a row join with anything along a path of windows, and with how much? What the profilers of join plans ask.

Over the index of `kernels.join_layout`: a path is a pipeline cut short, whose steps are walked depth first, to ask for
existence until the first tuple that reaches its end. Rows that have left may be asked too, as long as their slots are
not taken again.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.join_layout import (
    CHECK,
    CHECKS_END,
    CHOSEN,
    FOLLOWING,
    FROM,
    FROM_KEY,
    HASHED,
    HEADS,
    IS_BAG,
    KEY,
    LO,
    MASK,
    NODES,
    PROBED,
    SHIFT,
    TAG,
    TARGET,
    UNLINKED,
    Windows,
)
from minidsms.kernels.mixing import bucket
from minidsms.kernels.window_index import checks_hold, hashed_tag
from minidsms.machine_code import Bools, Int64s, Int64Table, helper, int64, kernel


@helper(inline=True)
def _begin_path(slot: int, i: int, steps: Int64Table, checks: Int64Table, windows: Windows, walks: Int64Table) -> Any:
    """Choose a slot of input i and begin the path's first step; returns its depth, 0, or -1 where a key is NULL."""
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    depth = int64(-1)
    if nodes[keys[inputs[i, KEY], NODES] + 2 * (slot & inputs[i, MASK]) + 1] != UNLINKED:
        depth = int64(0)
        walks[CHOSEN, i] = slot
        _begin_step(steps, checks, depth, windows, walks)
    return depth


@helper(inline=True)
def _begin_step(steps: Int64Table, checks: Int64Table, depth: int, windows: Windows, walks: Int64Table) -> Any:
    """Where the walk of a step begins: its tag, and the newest slot of the bucket."""
    inputs, keys, nodes, heads = windows.inputs, windows.keys, windows.nodes, windows.heads
    f, x = steps[depth, FROM], steps[depth, PROBED]
    tag = nodes[keys[steps[depth, FROM_KEY], NODES] + 2 * (walks[CHOSEN, f] & inputs[f, MASK])]
    if steps[depth, HASHED] > 0:
        check = steps[depth, CHECK]
        tag = hashed_tag(windows, checks, walks[CHOSEN], 0, check, check + steps[depth, HASHED])
    walks[TAG, depth], walks[FOLLOWING, depth] = tag, heads[keys[x, HEADS] + bucket(tag, keys[x, SHIFT])]


@helper(inline=True)
def _next_match(steps: Int64Table, checks: Int64Table, depth: int, windows: Windows, walks: Int64Table) -> Any:
    """Go on with the walk of a step to its next match, which is chosen; (whether there is one, slots inspected)."""
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    j, x = steps[depth, TARGET], steps[depth, PROBED]
    base, mask = keys[x, NODES], inputs[j, MASK]
    # In the buckets of a bag stands only what is there.
    low = int64(0) if inputs[j, IS_BAG] != 0 else inputs[j, LO]
    tag, s = walks[TAG, depth], walks[FOLLOWING, depth]
    matches = False
    inspected = int64(0)
    while s >= low and not matches:
        k = base + 2 * (s & mask)
        inspected += 1
        if nodes[k] == tag:
            walks[CHOSEN, j] = s
            matches = checks_hold(windows, checks, walks[CHOSEN], steps[depth, CHECK], steps[depth, CHECKS_END])
        s = nodes[k + 1]
    walks[FOLLOWING, depth] = s
    return matches, inspected


@kernel
def join_existence(
    slots: Int64s,
    i: int,
    steps: Int64Table,
    checks: Int64Table,
    windows: Windows,
    walks: Int64Table,
    drops: Bools,
    most: int,
) -> int:
    """Note for each slot of input i whether the path drops its row; returns the slots inspected.

    slots: (m,).  steps: (path length, STEP_WORDS), checks: (c, 4), walks: (3, n), as of `mjoin`.  drops: (m,), out: a
    row with a NULL key is dropped.  most: slots to inspect for one row; a row that takes more counts as passed, for
    then it costs what one that passes does.
    """
    last = steps.shape[0] - 1
    total = int64(0)
    for m in range(len(slots)):
        exists = False
        inspected = int64(0)
        depth = _begin_path(slots[m], i, steps, checks, windows, walks)
        while depth >= 0 and not exists:
            matches, looked = _next_match(steps, checks, depth, windows, walks)
            inspected += looked
            exists = (matches and depth == last) or inspected > most
            if not matches:
                depth -= 1
            elif not exists:
                depth += 1
                _begin_step(steps, checks, depth, windows, walks)
        drops[m] = not exists
        total += inspected
    return total


@kernel
def join_counts(
    slots: Int64s,
    i: int,
    steps: Int64Table,
    checks: Int64Table,
    windows: Windows,
    walks: Int64Table,
    counts: Int64Table,
    most: int,
) -> int:
    """Count, for rows of input i, the tuples that stand behind each step; returns how many rows were joined.

    counts: (2, path length), out; the second row counts the slots that the steps inspect.  most: slots to inspect; what
    is begun then ends, and the last row counts with what was found.  Other arguments as of `join_existence`.
    """
    last = steps.shape[0] - 1
    inspected = int64(0)
    joined = int64(0)
    for d in range(counts.shape[1]):
        counts[0, d] = counts[1, d] = 0
    for m in range(len(slots)):
        if inspected > most:
            break
        joined += 1
        depth = _begin_path(slots[m], i, steps, checks, windows, walks)
        while depth >= 0 and inspected <= most:
            matches, looked = _next_match(steps, checks, depth, windows, walks)
            inspected += looked
            counts[1, depth] += looked
            if not matches:
                depth -= 1
            else:
                counts[0, depth] += 1
                if depth < last:
                    depth += 1
                    _begin_step(steps, checks, depth, windows, walks)
    return joined
