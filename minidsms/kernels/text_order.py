"""The order of codes: that of their texts. `synopses.text_bytes` writes these."""

from __future__ import annotations

from typing import NamedTuple

from minidsms.machine_code import Int64s, Uint8s, helper

_ONE = 49
"""The first byte of a DECIMAL above those whose codes are computed; of one below them it is another."""


class WrittenTexts(NamedTuple):
    """starts: by code, where a text begins in `written`, which it does up to a byte 0."""

    starts: Int64s
    written: Uint8s


@helper(typed=True)
def compare_texts(one: int, other: int, texts: WrittenTexts) -> int:
    """-1 where the text of a code stands before that of another one, else 1. The codes differ, and none is 0.

    Computed codes, which are negative, are in the order of their DECIMALs; the dictionary has those of more digits.
    """
    starts, written = texts
    if one < 0 and other < 0:
        return -1 if one < other else 1
    if one < 0 or other < 0:
        is_above = written[starts[max(one, other)]] == _ONE
        return 1 if is_above == (one > other) else -1
    i, j = starts[one], starts[other]
    while written[i] == written[j]:
        i, j = i + 1, j + 1
    return -1 if written[i] < written[j] else 1
