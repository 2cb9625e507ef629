"""Which deletions of an instant may cancel an insertion of it, where the consumer is ISTREAM.

The slots of the tuples that an instant inserts are *stamped*; only what leaves at that instant and stands at a stamp
can show the same (docs/semantics S1). Rows that show the same have the same place, by their mark, or where there are no
marks by the keys that the answer shows or that are equal to what it shows.
"""

from __future__ import annotations

from typing import Any

from minidsms.elements import Int8Array, Int64Array
from minidsms.kernels.join_layout import STAMPS, JoinRun, Output, Windows
from minidsms.kernels.merging import exchange
from minidsms.machine_code import Int64s, Int64Table, helper, int64, uint64


@helper(inline=True)
def stamp_of(windows: Windows, j: int, slot: int) -> Any:
    """Where a slot of input j is stamped."""
    inputs, keys, nodes, marks = windows.inputs, windows.keys, windows.nodes, windows.marks
    at = slot & inputs[j].mask
    h = uint64(1)
    if len(marks) > 0:
        h = uint64(marks[inputs[j].marks + at])
    else:
        for x in range(inputs[j].key, inputs[j].keys_end):
            if keys[x].is_shown != 0:
                h = (h ^ uint64(nodes[uint64(keys[x].nodes + 2 * at)])) * uint64(0x9E3779B97F4A7C15)
                h ^= h >> uint64(32)
    return int64(h & uint64(STAMPS - 1))


@helper(inline=True)
def is_stamped(windows: Windows, run: JoinRun, j: int, slot: int) -> Any:
    """A tuple inserted at this instant has at input j what this slot shows, or seems to."""
    stamps, state = run.stamps, run.state
    return stamps[j, stamp_of(windows, j, slot)] == state.serial


@helper(inline=True)
def are_stamped(windows: Windows, run: JoinRun) -> Any:
    """The slots chosen of all inputs are."""
    are = True
    for m in range(len(windows.inputs)):
        are &= is_stamped(windows, run, m, run.chosen[m])
    return are


@helper
def stamp(windows: Windows, run: JoinRun, out: Int64Table, first: Any, found: int) -> Any:
    """Stamp the slots of the instant's insertions, out[:, first:found]."""
    inputs = windows.inputs
    stamps, state = run.stamps, run.state
    state.serial += 1
    for j in range(len(inputs)):
        for p in range(first, found):
            stamps[j, stamp_of(windows, j, out[j, p])] = state.serial


@helper(inline=True)
def put_tuple(output: Output, chosen: Int64s, found: int, instant: int, sign: int) -> Any:
    """Write the slots chosen as the tuple behind so many."""
    out, at = output.out, uint64(found)
    for m in range(len(out)):
        out[uint64(m), at] = chosen[uint64(m)]
    output.out_ts[at], output.out_sign[at] = instant, sign


@helper("void(int64[:, ::1], int8[::1], int64, int64, int64)")
def deletions_first(out: Int64Array, sign: Int8Array, first: int, middle: int, end: int) -> None:
    """Exchange [first, middle), insertions, with [middle, end), deletions."""
    for j in range(len(out)):
        exchange(out[j], first, middle, end)
    for p in range(first, end):
        sign[p] = -1 if p < first + end - middle else 1
