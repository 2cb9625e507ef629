"""The table of access methods: which there are, and, for kernels, which tags their steps ask for.

To add one is to write its file and its rows here; when a step takes it says `joins.graph`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from minidsms.kernels.access_methods.bit_addresses import BY_ADDRESS, ByAddress, address_tag, next_address
from minidsms.kernels.access_methods.cells import (
    BY_CELLS,
    BY_ORDER,
    ByCells,
    cells_tag,
    next_beside,
    next_cells,
    next_in_order,
)
from minidsms.kernels.access_methods.contract import AccessMethod, Key
from minidsms.kernels.access_methods.hashes import ByHash
from minidsms.kernels.join_layout import JoinStep, Windows
from minidsms.machine_code import Int64s, Int64Table, helper

METHODS: tuple[AccessMethod, ...] = (ByAddress(), ByCells(), ByHash())


@cache
def method_of(key: Key) -> AccessMethod:
    """By which rows are found that have such a key."""
    return next(method for method in METHODS if method.is_of(key))


def words_and_others(keys: Sequence[Key]) -> tuple[list[int], list[int]]:
    """The numbers of the keys that are words of a column, and of the others."""
    words = [k for k, key in enumerate(keys) if len(key) == 1 and isinstance(method_of(key), ByHash)]
    return words, [k for k in range(len(keys)) if k not in words]


@helper
def first_tag(windows: Windows, step: JoinStep, checks: Int64Table, chosen: Int64s, tag: int) -> Any:
    """The tag that a step asks for first whose `hashed` is negative.

    tag: the word or cell of `source_key`.
    """
    if step.hashed == BY_ADDRESS:
        tag = address_tag(windows, checks, chosen, step.checks_end + 1)
    elif step.hashed == BY_CELLS:
        tag = cells_tag(windows, checks, chosen, step.checks_end, 0)
    return tag


@helper
def next_tag(windows: Windows, step: JoinStep, checks: Int64Table, chosen: Int64s, tag: int) -> Any:
    """The tag that a step of several asks for behind this one; the same where there is none."""
    if step.hashed == BY_ADDRESS:
        following = next_address(windows, step, checks, chosen, tag)
    elif step.hashed == BY_CELLS:
        following = next_cells(windows, checks, chosen, step.checks_end, tag)
    elif step.hashed == BY_ORDER:
        following = next_in_order(windows, step, tag)
    else:
        following = next_beside(windows, step, chosen, tag)
    return following
