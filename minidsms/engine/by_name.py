"""The queries of a connection, whose names are found whatever their case."""

from __future__ import annotations

from typing import Any, TypeVar

V = TypeVar("V")


class ByName(dict[str, V]):
    """Values by lower-case name, which are found by the name in any case.

    >>> ByName(high=1)["High"], "HIGH" in ByName(high=1), ByName().get("high")
    (1, True, None)
    """

    def __missing__(self, name: str) -> V:
        lower = name.lower()
        if lower == name:
            raise KeyError(name)
        return self[lower]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(name.lower())

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name.lower(), default)
