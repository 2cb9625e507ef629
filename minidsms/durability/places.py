"""Functions and classes of the application by the place where they can be imported from, `module:name`."""

from __future__ import annotations

import pkgutil
from typing import Any

from minidsms.cql.errors import Error


def place_of(thing: Any, owner: str) -> str:
    """Where it can be found again. Error where it cannot: a lambda, or what is defined inside a function."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str) and "<" not in name:
        place = f"{module}:{name}"
        try:
            if pkgutil.resolve_name(place) is thing:
                return place
        except (ImportError, AttributeError, ValueError):
            pass
    raise Error(
        f"{owner} cannot be found again when the folder is opened: {thing!r}\n"
        "help: define it with def or class at the top of a module"
    )
