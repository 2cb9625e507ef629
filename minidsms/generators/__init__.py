"""Streams made from a seed: `FROM GENERATOR nexmark('bid', events = 100000, seed = 7)`. docs/sources.md.

Invariant: the same arguments give the same rows, on every machine and however they are read.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from minidsms.cql.errors import Error
from minidsms.elements import Schema
from minidsms.generators.generator import Generator, GeneratorSource, Parameters, parameters

NAMES = ("experiments", "linear_road", "network", "nexmark", "sensors", "stocks")
"""The generators there are; each is a module of this folder."""


def generator_named(name: str) -> Generator:
    """The generator of a name, in any case. Error with the names there are."""
    key = name.lower()
    if key not in NAMES:
        near = difflib.get_close_matches(key, NAMES, 1)
        hint = f'did you mean "{near[0]}"?' if near else f"there are: {', '.join(NAMES)}"
        raise Error(f'there is no generator "{name}"\nhelp: {hint}')
    found: Generator = import_module(f"minidsms.generators.{key}").GENERATOR
    return found


def open_generator(name: str, args: Sequence[Any], schema: Schema, tick_ns: int) -> GeneratorSource:
    """The source for FROM GENERATOR name(args). args: values, then (name, value) pairs.

    Error where an argument or a column does not exist.
    """
    generator = generator_named(name)
    return GeneratorSource(generator, parameters(generator, args, tick_ns), schema)


__all__ = ["NAMES", "Generator", "GeneratorSource", "Parameters", "generator_named", "open_generator"]
