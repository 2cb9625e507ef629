"""What every synopsis of an operator can do, whatever it keeps.

Invariant: `restore(arrays())` changes nothing that a probe could see; what `live_codes` names is not taken from the
dictionary.  docs/design, points 5 and 11.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from minidsms.elements import Int64Array


@runtime_checkable
class Synopsis(Protocol):
    """State of an operator between two slices."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held; what others hold for it, they count."""

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The state, in no more than what is there."""

    def restore(self, arrays: dict[str, np.ndarray[Any, Any]], /) -> None:
        """Hold what `arrays` gave, and nothing else."""

    def live_codes(self) -> Iterable[Int64Array]:
        """The codes of TEXT values held here."""


@runtime_checkable
class NumbersRows(Protocol):
    """A synopsis whose rows have numbers that rise, and that they keep as long as they are there: by them arrays are
    cut into pieces that stay what they are while older rows leave.
    """

    def numbers(self, state: Mapping[str, np.ndarray[Any, Any]], /) -> Int64Array:
        """Of the rows in what `arrays` gave."""
