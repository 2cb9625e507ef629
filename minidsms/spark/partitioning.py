"""Whether a query can be cut into parts that separate engines answer: by a key, or by slices of time; or not at all.

By a key: every join, group, partition and set operation compares a column that leads back to the same column of every
input, and the answer carries it; then rows of different keys never meet. By time: every window is a RANGE, so that the
answer at an instant depends on a known length of time before it; a slice is run with that much before it, and with
the first element of each stream, from which aggregates over all and sliding windows count (docs/semantics R3, S2;
`own_slices`).
"""

from __future__ import annotations

from dataclasses import dataclass

from minidsms.cql import bound
from minidsms.cql.origins import Origins
from minidsms.plan.logical import Stop, nodes


@dataclass(frozen=True)
class ByKey:
    """columns: of each input, by lower-case name, the column that holds the key."""

    columns: dict[str, int]

    def __str__(self) -> str:
        return "by key"


@dataclass(frozen=True)
class BySlices:
    """lookback: how many ticks before an instant its answer depends on."""

    lookback: int

    def __str__(self) -> str:
        return f"by slices of time that they read from the archives themselves, with the {self.lookback} ticks before"


@dataclass(frozen=True)
class Alone:
    """It is not cut: one engine replays what the archives hold."""

    def __str__(self) -> str:
        return "one in one task that replays the archives"


@dataclass(frozen=True)
class Whole:
    """It cannot be cut; the reasons."""

    no_key: str
    no_time: str


def partitioning(root: Stop) -> BySlices | ByKey | Whole:
    """How the plan can be cut; by time where both ways are open, for then nothing is sent from task to task."""
    obstacle, lookback = lookback_of(root)
    if obstacle is None:
        return BySlices(lookback)
    found = by_key(root)
    return Whole(found, obstacle) if isinstance(found, str) else found


def by_key(root: Stop) -> ByKey | str:
    """How the plan can be cut by a key, or why it cannot."""
    inputs = {name.lower() for name in bound.names_read(root)}
    obstacle = "no column of the answer is compared wherever rows of the inputs meet"
    origins: dict[int, Origins] = {}
    for node in nodes(root):
        obstacle = node.mixes or obstacle
        origins[id(node)] = node.origins([origins[id(child)] for child in node.inputs])
    for origin in origins[id(root)]:
        if origin is not None and {name for name, _ in origin} == inputs:
            return ByKey(dict(origin))
    return obstacle


def lookback_of(root: Stop) -> tuple[str | None, int]:
    """What keeps the plan from being cut by time, or how long ago an answer begins."""
    depth: dict[int, int] = {}
    for node in nodes(root):
        reach = node.lookback
        if isinstance(reach, str):
            return reach, 0
        depth[id(node)] = max((depth[id(child)] for child in node.inputs), default=0) + reach
    return None, depth[id(root)] + 1
