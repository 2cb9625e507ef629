"""Rows of words to dense ids and back: the loops of `synopses.key_table`.

The structure walked:
  slots   (2^m,) int32   open addressing with linear probing: an id, or -1
  keys    (cap, w) int64 the words of id i stand in row i
  links   (cap,) int64   -1 for an id in use, else the next free id (cap ends the list)
  meta    (3,) int64     [ids in use, first free id, ids ever used]
At most half of the slots are taken. Removal shifts the followers back, so there are no tombstones and no growth
with time. Nothing raises: `acquire` returns how far it came, and is called again after the arrays have grown.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minidsms.machine_code import Int8s, Int32s, Int64s, Int64Table, helper, kernel

_IN_USE = -1


class Table(NamedTuple):
    """The structure walked."""

    slots: Int32s
    keys: Int64Table
    links: Int64s
    meta: Int64s


@helper(typed=True)
def _hash(words: Int64Table, row: int) -> int:
    """A non-negative hash of one row."""
    h = np.uint64(0x9E3779B97F4A7C15)
    for j in range(words.shape[1]):
        h = (h ^ np.uint64(words[row, j])) * np.uint64(0xD6E8FEB86659FD93)
        h ^= h >> np.uint64(32)
    return int(h >> np.uint64(1))


@helper(inline=True)
def _enter(slots: np.ndarray, at: int, keys: np.ndarray, links: np.ndarray, meta: np.ndarray) -> Any:
    """An id that is free, or the next, into a slot; the caller has looked for room, and writes the words."""
    if meta[1] < keys.shape[0]:
        entered = meta[1]
        meta[1] = links[entered]
    else:
        entered = meta[2]
        meta[2] += 1
    links[entered] = _IN_USE
    slots[at] = entered
    meta[0] += 1
    return entered


@helper(inline=True)
def find(words: np.ndarray, row: int, slots: np.ndarray, keys: np.ndarray) -> Any:
    """The id of a row, -1 where it has none; and the slot in which it stands, or would."""
    mask = slots.shape[0] - 1
    at = _hash(words, row) & mask
    found = np.int64(-1)
    while found < 0 and slots[at] >= 0:
        candidate = np.int64(slots[at])
        equal = True
        for j in range(keys.shape[1]):
            if keys[candidate, j] != words[row, j]:
                equal = False
                break
        if equal:
            found = candidate
        else:
            at = (at + 1) & mask
    return found, at


@kernel
def acquire(
    words: Int64Table, slots: Int32s, keys: Int64Table, links: Int64s, meta: Int64s, ids: Int64s, start: int,
    insert: bool,
) -> int:  # fmt: skip
    """ids[i] = the id of words[i] for i >= start; a new id where the row is new and `insert`, else -1.

    Returns the first row not done: len(words), or a row for which the arrays are too small.
    """
    for i in range(start, words.shape[0]):
        found, at = find(words, i, slots, keys)
        if found < 0 and insert:
            if meta[0] == keys.shape[0]:
                return i
            found = _enter(slots, at, keys, links, meta)
            for j in range(keys.shape[1]):
                keys[found, j] = words[i, j]
        ids[i] = found
    return len(words)


@helper(inline=True)
def acquire_pair(
    word: int, other: int, slots: np.ndarray, keys: np.ndarray, links: np.ndarray, meta: np.ndarray
) -> Any:
    """The id of a row of two words, a new one where it is new; -1 where the arrays are too small for that."""
    mask = slots.shape[0] - 1
    h = (np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(word)) * np.uint64(0xD6E8FEB86659FD93)
    h = (h ^ (h >> np.uint64(32)) ^ np.uint64(other)) * np.uint64(0xD6E8FEB86659FD93)
    at = (h ^ (h >> np.uint64(32))) >> np.uint64(1) & np.uint64(mask)
    found = np.int64(slots[at])
    while found >= 0 and (keys[np.uint64(found), 0] != word or keys[np.uint64(found), 1] != other):
        at = (at + np.uint64(1)) & np.uint64(mask)
        found = np.int64(slots[at])
    if found < 0 and meta[0] < keys.shape[0]:
        found = _enter(slots, at, keys, links, meta)
        keys[found, 0] = word
        keys[found, 1] = other
    return found


@kernel
def acquire_words(
    words: Int64s, slots: Int32s, keys: Int64Table, links: Int64s, meta: Int64s, ids: Int64s, start: int
) -> int:
    """`acquire` of rows of one column without NULLs, the most common key."""
    for i in range(start, words.shape[0]):
        found = acquire_pair(words[i], np.int64(0), slots, keys, links, meta)
        if found < 0:
            return i
        ids[i] = found
    return len(words)


@kernel
def recall(sign: Int8s, arrived: Int64s, ring: Int32s, ends: Int64s, ids: Int64s) -> None:
    """The ids of elements whose k-th deletion takes back the k-th insertion. arrived: of the insertions.

    ring (2^m,) holds the ids of what is there between ends (2,) = [oldest, next], and has room for what comes.
    """
    mask = ring.shape[0] - 1
    oldest = ends[0]
    following = ends[1]
    taken = 0
    for i in range(sign.shape[0]):
        if sign[i] > 0:
            ids[i] = arrived[taken]
            ring[following & mask] = arrived[taken]
            taken += 1
            following += 1
        else:
            ids[i] = ring[oldest & mask]
            oldest += 1
    ends[0] = oldest
    ends[1] = following


@helper(typed=True)
def give_up(dead: int, slots: Int32s, keys: Int64Table, links: Int64s, meta: Int64s) -> None:
    """Give an id in use back."""
    mask = slots.shape[0] - 1
    hole = _hash(keys, dead) & mask
    while slots[hole] != dead:
        hole = (hole + 1) & mask
    at = (hole + 1) & mask
    while slots[at] >= 0:
        home = _hash(keys, slots[at]) & mask
        # The follower may fill the hole unless its home lies cyclically in (hole, at].
        if ((at - home) & mask) >= ((at - hole) & mask):
            slots[hole] = slots[at]
            hole = at
        at = (at + 1) & mask
    slots[hole] = -1
    links[dead] = meta[1]
    meta[1] = dead
    meta[0] -= 1


@kernel
def release(ids: Int64s, slots: Int32s, keys: Int64Table, links: Int64s, meta: Int64s) -> None:
    """Give ids back; one that is free already (it may be named twice) is passed over."""
    for i in range(ids.shape[0]):
        if ids[i] >= 0 and links[ids[i]] == _IN_USE:
            give_up(ids[i], slots, keys, links, meta)


@kernel
def rehash(slots: Int32s, keys: Int64Table, links: Int64s, used: int) -> None:
    """Enter the ids in use below `used` into slots (all -1)."""
    mask = slots.shape[0] - 1
    for i in range(used):
        if links[i] == _IN_USE:
            at = _hash(keys, i) & mask
            while slots[at] >= 0:
                at = (at + 1) & mask
            slots[at] = i
