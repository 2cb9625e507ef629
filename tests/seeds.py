"""Seeds of generated cases: every run of the default tests takes some, half where nothing else is said, and `make long`
all of them.
"""

from __future__ import annotations

import os

IN_ALL = "MINIDSMS_SEEDS"
"""`all` in this variable of the environment: no seed is left out."""


def seeds(*bounds: int, share: int = 2) -> range:
    """The range of these bounds, or the first of so many shares of it."""
    whole = range(*bounds)
    return whole if os.environ.get(IN_ALL) == "all" else first_share(whole, share)


def first_share(whole: range, share: int) -> range:
    """The first of so many shares, the largest one.

    >>> list(first_share(range(0, 100, 50), 2)), list(first_share(range(5), 2)), list(first_share(range(60), 20))
    ([0], [0, 1, 2], [0, 1, 2])
    """
    return whole[: -(-len(whole) // share)]
