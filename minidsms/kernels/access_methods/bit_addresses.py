"""Rows found by bit addresses: the first bits of the hashes of their columns, side by side, in place of keys.

A *configuration* says how many bits each column has; rows stored under different ones stand side by side, told apart by
a number in the address. A step that knows some of the columns visits one bucket for each value of the bits it does not
know. Works, Rundensteiner and Agu 2012 (AMRI), section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from minidsms.kernels.access_methods.contract import Asked, Indexed, Key, Known, Part, Slots, array_of
from minidsms.kernels.join_layout import JoinStep, Windows
from minidsms.kernels.links import WAITING, set_link
from minidsms.kernels.mixing import address_part
from minidsms.machine_code import Int64s, Int64Table, helper, int64, kernel

BY_ADDRESS = -1
"""As a step's `hashed`: its tags are bit addresses. Behind its checks, where `checks_end` points to, stand the
configurations under which rows are stored: a row (how many there are, 0, 0, 0), and for each of them a row (tag, wild,
p, 0) and p rows (input, key, place, shift). The tag has the configuration's number, from bit CONFIGURATION on; wild are
the bits of the address that the step does not know; the others are the hash of a key, shifted right by `shift` and left
by `place`. `reach` is 1 where there is more than one tag."""
CONFIGURATION = 48

ADDRESS: Key = (-(2**31),)
"""Among the keys of an input: the bit address of the row. No column, and no band, has this number."""
NUMBERS = 1 << 14
"""Of configurations: they are given out in turn."""
MOST_CONFIGURATIONS = 8
"""Under which rows of an input are stored at a time: a step goes through all."""
MOST_BITS = 16
"""Of an address: a step that knows none of them visits 2^16 buckets."""


@dataclass(frozen=True)
class Bits:
    """A configuration.  of: how many bits of the address each column gives, in the order of the keys of one column."""

    of: tuple[int, ...]

    @property
    def total(self) -> int:
        """Of the address."""
        return sum(self.of)

    def places(self) -> list[tuple[int, int, int]]:
        """Of each column that has bits its number, where they stand in the address, and how many they are."""
        placed, place = [], 0
        for column, count in enumerate(self.of):
            if count:
                placed.append((column, place, count))
            place += count
        return placed


class ByAddress:
    """See `AccessMethod`. A step asks for every address that has the bits it knows, under each configuration."""

    def is_of(self, key: Key) -> bool:
        """See `AccessMethod`."""
        return key == ADDRESS

    def fill(self, index: Indexed, i: int, x: int, key: Key, slots: Slots) -> None:
        """See `AccessMethod`: under the newest configuration."""
        number, parts = index.newest_configuration(i)
        take_addresses(index.nodes, *index.place_of(i, x), parts, array_of(slots), number)

    def ask(self, known: Known) -> Asked:
        """See `AccessMethod`."""
        ways = [_way(number, bits, known.of, known.columns) for number, bits in known.configurations]
        has_more = len(ways) > 1 or any(way[0][1] for way in ways)
        return Asked(BY_ADDRESS, int(has_more), [(len(ways), 0, 0, 0), *(row for way in ways for row in way)])


def _way(number: int, bits: Bits, columns: Sequence[int], known: Mapping[int, Part]) -> list[tuple[int, int, int, int]]:
    """How a step finds what is stored under a configuration, as rows (see BY_ADDRESS)."""
    wild = 0
    parts: list[tuple[int, int, int, int]] = []
    for at, place, count in bits.places():
        if columns[at] in known:
            parts.append((known[columns[at]].input, known[columns[at]].key, place, 64 - count))
        else:
            wild |= (2**count - 1) << place
    return [(number << CONFIGURATION, wild, len(parts), 0), *parts]


@helper
def address_tag(windows: Windows, checks: Int64Table, chosen: Int64s, way: int) -> Any:
    """The first address that the slots chosen ask for under the configuration at checks[way] (see BY_ADDRESS)."""
    inputs, keys, nodes = windows.inputs, windows.keys, windows.nodes
    tag = checks[way, 0]
    for p in range(way + 1, way + 1 + checks[way, 2]):
        f = checks[p, 0]
        word = nodes[keys[checks[p, 1]].nodes + 2 * (chosen[f] & inputs[f].mask)]
        tag |= address_part(word, checks[p, 3], checks[p, 2])
    return tag


@helper
def next_address(windows: Windows, step: JoinStep, checks: Int64Table, chosen: Int64s, tag: int) -> Any:
    """The address that a step asks for behind this one; the same where there is none."""
    way, left = step.checks_end + 1, checks[step.checks_end, 0]
    while checks[way, 0] >> CONFIGURATION != tag >> CONFIGURATION:
        way += 1 + checks[way, 2]
        left -= 1
    wild = checks[way, 1]
    rest = ((tag | ~wild) + 1) & wild
    following = tag
    if rest != 0:
        following = (tag & ~wild) | rest
    elif left > 1:
        following = address_tag(windows, checks, chosen, way + 1 + checks[way, 2])
    return following


@kernel
def take_addresses(nodes: Int64s, base: int, mask: int, parts: Int64Table, slots: Int64s, number: int) -> None:
    """Give these slots the bit addresses of their rows, under the configuration of this number.

    parts: (p, 3), of each column with bits where its nodes begin, and shift and place (`kernels.mixing.address_part`).
    """
    for slot in slots:
        k = 2 * (slot & mask)
        tag = int64(number << CONFIGURATION)
        for p in range(len(parts)):
            tag |= address_part(nodes[parts[p, 0] + k], parts[p, 1], parts[p, 2])
        nodes[base + k] = tag
        set_link(nodes, base + k, WAITING)
