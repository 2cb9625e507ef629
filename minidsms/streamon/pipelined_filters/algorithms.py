"""The ordering algorithms by name, as `SET filter_ordering = ..` gives them. They load when first used."""

from __future__ import annotations

import importlib
from typing import cast

from minidsms.cql.errors import Error
from minidsms.streamon.contracts import OrderingAlgorithm

_FOLDER = "minidsms.streamon.filter_ordering"
_CLASSES = {
    "a_greedy": "AGreedy",
    "sweep": "Sweep",
    "independent": "Independent",
    "local_swaps": "LocalSwaps",
    "static": "Static",
    "optimal": "Optimal",
}
_MOST_FOR_OPTIMAL = 16

NAMES = tuple(_CLASSES)


def check_size(name: str, n: int) -> None:
    """Error if the algorithm cannot order so many filters."""
    if name == "optimal" and n > _MOST_FOR_OPTIMAL:
        raise Error(
            f"filter_ordering = optimal searches all orders of at most {_MOST_FOR_OPTIMAL} filters, not of {n}; "
            "SET filter_ordering = a_greedy"
        )


def algorithm_named(name: str, n: int, window: int | None, alpha: float | None, seed: int) -> OrderingAlgorithm:
    """A new algorithm over n filters, which begins with the order written. None: the algorithm's default."""
    made = getattr(importlib.import_module(f"{_FOLDER}.{name}"), _CLASSES[name])
    return cast(OrderingAlgorithm, made(n, window=window, alpha=alpha, seed=seed))
