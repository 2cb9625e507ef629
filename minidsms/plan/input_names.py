"""What plans in words call the inputs of an n-way join.

Invariant: names differ, so that a plan that is written out means one thing.
"""

from __future__ import annotations

from collections.abc import Sequence


def input_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names of FROM; one that has none is "input 2", by its place, one of several alike "R#2".

    >>> input_names(["R", "", "r"])
    ('R', 'input 2', 'r#2')
    """
    given: list[str] = []
    known: dict[str, int] = {}
    for place, name in enumerate(names, 1):
        key = name.lower()
        known[key] = known.get(key, 0) + 1
        given.append(f"input {place}" if not name else name if known[key] == 1 else f"{name}#{known[key]}")
    return tuple(given)
