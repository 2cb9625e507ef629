"""Steps of pipelines beside the places of what they read, so that a walk loads no layout of an index on its way.

A *placed step* has the words of a step (`join_layout`), then where the nodes and bucket heads of what it probes and of
what gives its tag begin, then what its kernel adds; `placed` has all steps, one after the other.

Invariant: places hold until the index is laid out anew.
"""

from __future__ import annotations

from typing import Any

from minidsms.kernels.access_methods.hashes import hashed_tag
from minidsms.kernels.chains import Chain
from minidsms.kernels.join_layout import (
    CHECK,
    FROM,
    FROM_KEY,
    HASHED,
    HEADS,
    MASK,
    NODES,
    PROBED,
    SHIFT,
    STEP_WORDS,
    TARGET,
    Windows,
)
from minidsms.kernels.links import head_slot
from minidsms.kernels.mixing import bucket
from minidsms.machine_code import Int64s, Int64Table, helper, int64, uint64

(
    TARGET_NODES, TARGET_MASK, TARGET_HEADS, TARGET_SHIFT, SOURCE_NODES, SOURCE_MASK, PLACES_END,
) = range(STEP_WORDS, STEP_WORDS + 7)  # fmt: skip
"""Where the index holds what a step reads. From PLACES_END on a kernel has its own words."""


@helper
def place_step(step: Int64s, inputs: Int64Table, keys: Int64Table, placed: Int64s) -> None:
    """Write a step with its places."""
    x, y, j = step[PROBED], step[FROM_KEY], step[TARGET]
    for w in range(STEP_WORDS):
        placed[w] = step[w]
    placed[TARGET_NODES], placed[TARGET_HEADS], placed[TARGET_SHIFT] = keys[x, NODES], keys[x, HEADS], keys[x, SHIFT]
    placed[TARGET_MASK] = inputs[j, MASK]
    placed[SOURCE_NODES], placed[SOURCE_MASK] = keys[y, NODES], inputs[step[FROM], MASK]


@helper(inline=True)
def placed_tag(windows: Windows, placed: Int64s, p: int, checks: Int64Table, chosen: Int64s) -> Any:
    """The tag of the step at placed[p]: of a slot chosen, or hashed of several inputs'."""
    q = uint64(p)
    source = chosen[uint64(placed[q + uint64(FROM)])]
    tag = windows.nodes[uint64(placed[q + uint64(SOURCE_NODES)] + 2 * (source & placed[q + uint64(SOURCE_MASK)]))]
    if placed[q + uint64(HASHED)] > 0:
        check = placed[q + uint64(CHECK)]
        tag = hashed_tag(windows, checks, chosen, check, check + placed[q + uint64(HASHED)])
    return tag


@helper(inline=True)
def placed_first(windows: Windows, placed: Int64s, p: int, tag: int, near: int) -> Any:
    """The newest slot of the bucket in which the step at placed[p] finds the tag. near: any slot of the window."""
    q = uint64(p)
    return head_slot(
        windows.heads, placed[q + uint64(TARGET_HEADS)] + bucket(tag, placed[q + uint64(TARGET_SHIFT)]), near
    )


@helper(inline=True)
def placed_chain(placed: Int64s, p: int, low: int, high: int) -> Any:
    """Where the step at placed[p] walks, among the slots [low, high)."""
    q = uint64(p)
    return Chain(placed[q + uint64(TARGET_NODES)], int64(2), placed[q + uint64(TARGET_MASK)], low, high)
