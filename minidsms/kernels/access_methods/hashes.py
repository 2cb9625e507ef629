"""Rows found by the words of a column, or by a hash of several columns' words."""

from __future__ import annotations

from typing import Any

from minidsms.kernels.access_methods.contract import Asked, Indexed, Key, Known, Slots, array_of
from minidsms.kernels.join_layout import Windows
from minidsms.kernels.links import UNLINKED, WAITING, has_link, set_link
from minidsms.kernels.mixing import mixed
from minidsms.machine_code import Int64s, Int64Table, helper, int64, kernel, uint64


class ByHash:
    """See `AccessMethod`. Equal words are equal values; equal hashes prove nothing."""

    def is_of(self, key: Key) -> bool:
        """See `AccessMethod`: any that no other method has."""
        return True

    def fill(self, index: Indexed, i: int, x: int, key: Key, slots: Slots) -> None:
        """See `AccessMethod`."""
        if len(key) == 1:
            index.write_words(i, x, key[0], slots)
        else:
            combine(index, i, x, key, slots)

    def ask(self, known: Known) -> Asked:
        """See `AccessMethod`."""
        return Asked(len(known.parts), 0)


def combine(index: Indexed, i: int, x: int, key: Key, slots: Slots) -> None:
    """Write the hashes of several columns, or of none, into key x of these slots."""
    combine_keys(index.nodes, *index.place_of(i, x), index.parts_of(i, key), array_of(slots))


@helper(inline=True)
def hashed_tag(windows: Windows, checks: Int64Table, chosen: Int64s, begin: int, end: int) -> Any:
    """The tag that the slots chosen give for the keys that checks[begin:end] compare, hashed as one."""
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    tag = int64(1)
    for c in range(begin, end):
        q = uint64(c)
        f, x = uint64(checks[q, 0]), uint64(checks[q, 1])
        tag = mixed(tag, nodes[uint64(keys[x].nodes + 2 * (chosen[f] & inputs[f].mask))])
    return tag


@helper(inline=True)
def tag_of_words(words: Int64Table, row: int) -> Any:
    """By what the last key of a window finds a row of key words: the word, or the hash of several."""
    width = words.shape[1]
    tag = words[row, 0] if width == 1 else int64(1)
    for j in range(width if width != 1 else 0):
        tag = mixed(tag, words[row, j])
    return tag


@helper(inline=True)
def has_words(windows: Windows, slot: int, words: Int64Table, row: int) -> Any:
    """A slot of input 0 that has the tag of these key words has the words."""
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    equal = True
    for j in range(words.shape[1] if words.shape[1] > 1 else 0):
        equal &= nodes[keys[inputs[0].key + j].nodes + 2 * (slot & inputs[0].mask)] == words[row, j]
    return equal


@kernel
def combine_keys(nodes: Int64s, base: int, mask: int, parts: Int64s, slots: Int64s) -> None:
    """Give a key the hash of its parts, whose nodes begin at `parts`; NULL where any part is."""
    for slot in slots:
        k = 2 * (slot & mask)
        h, link = int64(1), int64(WAITING)
        for p in parts:
            h = mixed(h, nodes[p + k])
            if not has_link(nodes, p + k):
                link = int64(UNLINKED)
        nodes[base + k] = h
        set_link(nodes, base + k, link)
