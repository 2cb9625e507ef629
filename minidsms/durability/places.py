"""Functions and classes of the application by the place where they can be imported from, `module:name`."""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from typing import Any

from minidsms.cql.errors import Error


def found_at(place: str) -> Any:
    """What stands at a place. Raises ImportError, AttributeError and ValueError."""
    module, _, name = place.partition(":")  # no identifiers, always: 01-load is a module, too
    return attrgetter(name)(import_module(module))


def place_of(thing: Any, owner: str) -> str:
    """Where it can be found again. Error where it cannot: a lambda, or what is defined inside a function."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str) and "<" not in name:
        place = f"{module}:{name}"
        try:
            if found_at(place) is thing:
                return place
        except (ImportError, AttributeError, ValueError):
            pass
    raise Error(
        f"{owner} cannot be found again when the folder is opened: {thing!r}\n"
        "help: define it with def or class at the top of a module"
    )
