"""Does a row join with anything along a path of windows, and with how much? What the profilers of join plans ask.

Over the index of `kernels.join_layout`: a path is a pipeline cut short, whose steps are walked depth first, to ask for
existence until the first tuple that reaches its end. Rows that have left may be asked too, as long as their slots are
not taken again.
"""

from __future__ import annotations

from typing import Any

from minidsms.elements import MIN_INSTANT
from minidsms.kernels.chains import (
    Chain,
    checks_hold,
    first_slot,
    further,
    is_linked,
    lowest_slot,
    next_slot,
    older,
    step_tag,
)
from minidsms.kernels.join_layout import (
    CHECK,
    CHECKS_END,
    FOLLOWING,
    INSTANTS,
    LENGTH,
    MASK,
    NO_LIMIT,
    NODES,
    PROBED,
    REACH,
    TAG,
    TARGET,
    Path,
    Windows,
)
from minidsms.kernels.links import arrivals_of, came_at
from minidsms.machine_code import Bools, Int64s, Int64Table, helper, int64, kernel, uint64

WHENEVER = MIN_INSTANT


@helper
def begin_step(windows: Windows, path: Path, depth: int) -> Any:
    """Begin the walk of a step: its tag, and the newest slot of the bucket."""
    tag = step_tag(windows, path.steps, depth, path.checks, path.chosen)
    path.walks[TAG, depth], path.walks[FOLLOWING, depth] = tag, first_slot(windows, path.steps, depth, tag)


@helper
def next_match(windows: Windows, path: Path, depth: int, now: int) -> Any:
    """Go on with the walk of a step to its next match, which is chosen; (whether there is one, slots inspected).

    now: where rows stay for a range, the instant at which they must be there; WHENEVER: all held are met.
    """
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    steps, walks, chosen = path.steps, path.walks, path.chosen
    j = steps[depth, TARGET]
    low = lowest_slot(windows, j)
    chain = Chain(keys[steps[depth, PROBED], NODES], int64(2), inputs[j, MASK], low, int64(NO_LIMIT))
    tag, s = walks[TAG, depth], walks[FOLLOWING, depth]
    matches = False
    inspected = int64(0)
    while not matches:
        s, looked = next_slot(nodes, chain, tag, s)
        inspected += looked
        if s < low and steps[depth, REACH] != 0:
            tag, s, looked = further(windows, steps, depth, path.checks, chosen, chain, tag)
            inspected += looked
        if s < low:
            break
        matches = True
        if now != WHENEVER and inputs[j, INSTANTS] != 0:
            came = came_at(nodes, arrivals_of(windows, j), s)
            matches = came <= now and uint64(now) - uint64(came) < uint64(inputs[j, LENGTH])
        chosen[j] = s
        matches = matches and checks_hold(windows, path.checks, chosen, steps[depth, CHECK], steps[depth, CHECKS_END])
        s = older(nodes, chain, s)
    walks[TAG, depth], walks[FOLLOWING, depth] = tag, s
    return matches, inspected


@helper
def _begin_path(windows: Windows, path: Path, i: int, slot: int) -> Any:
    """Choose a slot of input i and begin the path's first step; returns its depth, 0, or -1 where a key is NULL."""
    depth = int64(-1)
    if is_linked(windows, i, slot):
        depth = int64(0)
        path.chosen[i] = slot
        begin_step(windows, path, depth)
    return depth


@kernel
def join_existence(
    slots: Int64s,
    i: int,
    path: Path,
    windows: Windows,
    drops: Bools,
    most: int,
) -> int:
    """Note for each slot of input i whether the path drops its row; returns the slots inspected.

    slots: (m,).  drops: (m,), out: a row with a NULL key is dropped.  most: slots to inspect for one row; a row that
    takes more counts as passed, for then it costs what one that passes does.
    """
    last = path.steps.shape[0] - 1
    total = int64(0)
    for m in range(len(slots)):
        exists = False
        inspected = int64(0)
        depth = _begin_path(windows, path, i, slots[m])
        while depth >= 0 and not exists:
            matches, looked = next_match(windows, path, depth, WHENEVER)
            inspected += looked
            exists = (matches and depth == last) or inspected > most
            if not matches:
                depth -= 1
            elif not exists:
                depth += 1
                begin_step(windows, path, depth)
        drops[m] = not exists
        total += inspected
    return total


@kernel
def join_counts(
    slots: Int64s,
    i: int,
    path: Path,
    windows: Windows,
    counts: Int64Table,
    most: int,
) -> int:
    """Count, for rows of input i, the tuples that stand behind each step; returns how many rows were joined.

    counts: (2, path length), out; the second row counts the slots that the steps inspect.  most: slots to inspect; what
    is begun then ends, and the last row counts with what was found.  Other arguments as of `join_existence`.
    """
    last = path.steps.shape[0] - 1
    inspected = int64(0)
    joined = int64(0)
    for d in range(counts.shape[1]):
        counts[0, d] = counts[1, d] = 0
    for m in range(len(slots)):
        if inspected > most:
            break
        joined += 1
        depth = _begin_path(windows, path, i, slots[m])
        while depth >= 0 and inspected <= most:
            matches, looked = next_match(windows, path, depth, WHENEVER)
            inspected += looked
            counts[1, depth] += looked
            if not matches:
                depth -= 1
            else:
                counts[0, depth] += 1
                if depth < last:
                    depth += 1
                    begin_step(windows, path, depth)
    return joined
