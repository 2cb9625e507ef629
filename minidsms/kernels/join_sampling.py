"""What rows of an input would meet in their pipeline: tuples at each step, and the keys with which a cache is probed.

Over the index of `join_layout`; nothing in it is changed, and no result is made. A row is walked through its pipeline
depth first, as if it came now: where rows stay for a range, it joins those that had come and not left at its own
instant, else those that are held. Every match is walked: a pipeline that drops rows earlier does no more than this.
"""

from __future__ import annotations

from minidsms.kernels.chains import is_linked
from minidsms.kernels.join_existence import begin_step, next_match
from minidsms.kernels.join_layout import INSTANTS, MASK, NODES, Path, Windows
from minidsms.kernels.links import arrivals_of, came_at
from minidsms.machine_code import Int64s, Int64Table, int64, kernel

ASKED, FOUND, INSPECTED, SAMPLE_WORDS = range(4)
"""Of a sample: slots that were walked whole, keys found, slots inspected."""


@kernel
def sample_pipeline(
    slots: Int64s,
    i: int,
    path: Path,
    windows: Windows,
    reached: Int64s,
    at: int,
    parts: Int64Table,
    found: Int64Table,
    most: int,
    told: Int64s,
) -> None:
    """Walk the rows in these slots of input i through its pipeline; told (SAMPLE_WORDS,) says how far.

    reached: (n,) tuples that reached each position, and the results; they are added to.
    at: the position before which a cache would be probed, -1 for none.  parts: (words, 2) the input and its key that
    give each word of its key.  found: (m, words), out: the keys probed, in order; at position 0 nothing else is asked.
    most: slots to inspect; the walk ends after the row that goes beyond it, or when `found` may not hold another's.
    """
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    chosen = path.chosen
    last = path.steps.shape[0] - 1
    words = parts.shape[0]
    count, inspected, asked = int64(0), int64(0), int64(0)
    for slot in slots:
        if inspected > most or (at >= 0 and count == len(found)):
            break
        begin = count
        chosen[i] = slot
        now = came_at(nodes, arrivals_of(windows, i), slot) if inputs[i, INSTANTS] != 0 else int64(0)
        depth = int64(0) if is_linked(windows, i, slot) else int64(-1)
        reached[0] += 1
        enters = True
        while depth >= 0:
            if enters:
                if depth == at:
                    if count == len(found):
                        break
                    for w in range(words):
                        a = parts[w, 0]
                        found[count, w] = nodes[keys[parts[w, 1], NODES] + 2 * (chosen[a] & inputs[a, MASK])]
                    count += 1
                    if at == 0:
                        break
                begin_step(windows, path, depth)
            descends, looked = next_match(windows, path, depth, now)
            inspected += looked
            enters = descends and depth < last
            if descends:
                reached[depth + 1] += 1
                depth += int64(enters)
            else:
                depth -= 1
            if inspected > 4 * most:
                break
        if depth >= 0 and at != 0 and count == len(found):
            count = begin
            break
        asked += 1
    told[ASKED], told[FOUND], told[INSPECTED] = asked, count, inspected
