"""What rows of an input meet along a path of windows: what the profilers of join plans and of caches ask.

Over the index of `kernels.join_layout`; nothing in it is changed, and no result is made. A path is a pipeline, maybe
cut short, that each row is walked through depth first. Every match is walked: a pipeline that drops rows earlier does
no more than this. Rows that have left may be asked too, as long as their slots are not taken again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minidsms.elements import MIN_INSTANT
from minidsms.kernels.chains import (
    chain_between,
    checks_hold,
    first_slot,
    further,
    is_linked,
    lowest_slot,
    next_slot,
    older,
    place_steps,
    step_tag,
)
from minidsms.kernels.join_layout import NO_LIMIT, Path, Windows
from minidsms.kernels.links import arrivals_of, came_at
from minidsms.machine_code import Bools, Int64s, Int64Table, helper, int64, kernel, uint64

_WHENEVER = MIN_INSTANT


class Sample(NamedTuple):
    """What rows tell; counts are added to.

    reached: (d + 1,) the rows walked, and the tuples behind each step of the path.  inspected: (d,) slots, by step.
    drops: (m,) whether each row joins with nothing; a walk then ends with its first tuple, or where it takes too many
    slots: what it costs is then what one that passes does. Empty where nobody asks.
    by_instant: a row joins what had come and not left at its own instant, where rows stay for a range; else all that is
    held.  found: (k, words) the keys with which a cache before step `at` is probed, in order; -1: there is none, at 0
    nothing else is asked.  parts: (words, 2) the input and its key that give each word.
    """

    reached: Int64s
    inspected: Int64s
    drops: Bools = np.zeros(0, np.bool_)
    by_instant: bool = False
    at: int = -1
    parts: Int64Table = np.zeros((0, 2), np.int64)
    found: Int64Table = np.zeros((0, 0), np.int64)


@helper(inline=True)
def _next_match(windows: Windows, path: Path, depth: int, now: int) -> Any:
    """Go on with the walk of a step to its next match, which is chosen; (whether there is one, slots inspected).

    now: where rows stay for a range, the instant at which they must be there; _WHENEVER: all held are met.
    """
    inputs, nodes = windows.inputs, windows.nodes
    steps, walks, chosen = path.steps, path.walks, path.chosen
    j = steps[depth].target
    low = lowest_slot(windows, j)
    chain = chain_between(steps, depth, low, int64(NO_LIMIT))
    tag, s = walks[depth].tag, walks[depth].following
    matches = False
    inspected = int64(0)
    while not matches:
        s, looked = next_slot(nodes, chain, tag, s)
        inspected += looked
        if s < low and steps[depth].reach != 0:
            tag, s, looked = further(windows, steps, depth, path.checks, chosen, chain, tag)
            inspected += looked
        if s < low:
            break
        matches = True
        if now != _WHENEVER and inputs[j].instants != 0:
            came = came_at(nodes, arrivals_of(windows, j), s)
            matches = came <= now and uint64(now) - uint64(came) < uint64(inputs[j].length)
        chosen[j] = s
        matches = matches and checks_hold(windows, path.checks, chosen, steps[depth].check, steps[depth].checks_end)
        s = older(nodes, chain, s)
    walks[depth].tag, walks[depth].following = tag, s
    return matches, inspected


@kernel
def sample_pipeline(
    slots: Int64s, i: int, path: Path, windows: Windows, sample: Sample, most: int, most_of_row: int
) -> int:
    """Walk the rows in these slots of input i along the path; returns how many keys are found.

    slots: (m,).  most: slots to inspect; it ends after the row that goes beyond it, or where `found` may not hold
    another's keys.  most_of_row: the walk of a row ends there.  A row with a NULL key joins with nothing.
    """
    inputs, keys, nodes, chosen = windows.inputs, windows.keys, windows.nodes, path.chosen
    reached, drops, at, parts, found = sample.reached, sample.drops, sample.at, sample.parts, sample.found
    last = path.steps.shape[0] - 1
    place_steps(windows, path.steps)
    count, inspected = int64(0), int64(0)
    for m in range(len(slots)):
        if inspected > most or (at >= 0 and count == len(found)):
            break
        begin, until = count, inspected + most_of_row
        chosen[i] = slots[m]
        has_instant = sample.by_instant and inputs[i].instants != 0
        now = came_at(nodes, arrivals_of(windows, i), slots[m]) if has_instant else int64(_WHENEVER)
        depth = int64(0) if is_linked(windows, i, slots[m]) else int64(-1)
        reached[0] += 1
        enters, passes = True, False
        while depth >= 0 and not passes:
            if enters:
                if depth == at:
                    if count == len(found):
                        break
                    for w in range(parts.shape[0]):
                        a = parts[w, 0]
                        found[count, w] = nodes[keys[parts[w, 1]].nodes + 2 * (chosen[a] & inputs[a].mask)]
                    count += 1
                    if at == 0:
                        break
                tag = step_tag(windows, path.steps, depth, path.checks, chosen)
                path.walks[depth].tag, path.walks[depth].following = tag, first_slot(windows, path.steps, depth, tag)
            matches, looked = _next_match(windows, path, depth, now)
            inspected += looked
            sample.inspected[depth] += looked
            reached[depth + 1] += int64(matches)
            passes = inspected > until or (matches and depth == last and len(drops) > 0)
            enters = matches and depth < last
            if not matches:
                depth -= 1
            elif enters:
                depth += 1
        if len(drops) > 0:
            drops[m] = not passes
        if depth >= 0 and at > 0 and count == len(found):
            count = begin
            break
    return count
