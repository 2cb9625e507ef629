"""What the monitors must compute, said slowly: distances by their definitions, and k from distances.

Babu 2005, section 6.2 (distances), definitions 6.6.1, 6.7.1 and 6.8.1, section 6.6.3 (k).
"""

from __future__ import annotations

from collections.abc import Sequence

Event = tuple[str, int | None]
"""'parent' or 'child', and the key; None for NULL. In the order of arrival."""


def join_distances(events: Sequence[Event]) -> list[int]:
    """Of each child arrival the greatest distance from a parent whose child it is: the first to come after it."""
    found = []
    children = 0
    waiting: list[tuple[int | None, int]] = []
    for side, key in events:
        if side == "parent":
            waiting.append((key, children))
            continue
        children += 1
        found.append(max((children - before for own, before in waiting if key is not None and own == key), default=0))
        waiting = [(own, before) for own, before in waiting if own != key]
    return found


def clustering_distances(values: Sequence[int | None]) -> list[int]:
    """Of each arrival the greatest distance from an earlier row of its value: the others between them."""
    return [
        max(
            (sum(between != own for between in values[j + 1 : i]) for j in range(i) if values[j] == own),
            default=0,
        )
        if own is not None
        else 0
        for i, own in enumerate(values)
    ]


def scrambling_distances(values: Sequence[float | None]) -> list[int]:
    """Of each arrival the greatest distance from an earlier row of greater value."""
    return [
        max(
            (i - j for j in range(i) if own is not None and (other := values[j]) is not None and other > own), default=0
        )
        for i, own in enumerate(values)
    ]


def estimates(distances: Sequence[int], window: int, threshold: int, blocks: int = 8) -> list[int | None]:
    """k_u after each arrival, where every distance is seen, and dormancy does not come into it."""
    block = max(1, window // blocks)
    window = -(-window // block) * block
    found: list[int | None] = []
    k: int | None = None
    since = 0
    for n, distance in enumerate(distances, 1):
        if k is not None and distance > k:
            k, since = None, n
        if n % block == 0 and n - since >= window:
            greatest = max(distances[n - window : n])
            if greatest <= threshold and (k is None or greatest < k):
                k = greatest
        found.append(k)
    return found
