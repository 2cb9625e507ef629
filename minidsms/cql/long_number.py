"""Numbers that are written with more digits than a FLOAT has."""

from __future__ import annotations

import math
from decimal import Decimal

MOST_SAFE = 15
"""A number of so many digits is the shortest decimal that reads back equal: its FLOAT tells all of them."""


class LongNumber(float):
    """A FLOAT that remembers the digits written, for a DECIMAL beside it takes those (docs/semantics R4).

    >>> LongNumber("0.1000000000000000000001")
    0.1000000000000000000001
    """

    text: str

    def __new__(cls, text: str) -> LongNumber:
        """text: as `float` and `Decimal` read it."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LongNumber) and self.exact == other.exact

    def __hash__(self) -> int:
        return hash(self.exact)

    @property
    def exact(self) -> Decimal:
        """All digits."""
        return Decimal(self.text)


def number_of(text: str) -> float:
    """The FLOAT that a text spells; a LongNumber where it does not tell all digits."""
    value = float(text)
    if len(text) <= MOST_SAFE or not math.isfinite(value) or Decimal(repr(value)) == Decimal(text):
        return value
    return LongNumber(text)
