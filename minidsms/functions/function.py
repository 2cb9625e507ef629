"""A row of the table of functions.

Invariant: a strict function sees no NULL, and each gives the same value for the same arguments, whenever and wherever
it is asked; `of_values` and `of_arrays` give a value, None (NULL) or FAILED, and never raise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from minidsms.elements import Type


class _Failed:
    def __repr__(self) -> str:
        return "FAILED"


FAILED = _Failed()
"""What a function gives for arguments on which it fails; None is NULL."""

MOST_CHARACTERS = 1_000_000
"""The longest text that LPAD, RPAD and REPEAT make; more is a failure."""


@dataclass(frozen=True)
class Signature:
    """The types the arguments are converted to, and the type of the result."""

    args: tuple[Type, ...]
    result: Type


@dataclass(slots=True)
class Arrays:
    """A vectorised result. bad: (n,) where the function fails, null: (n,) where it is NULL; None: nowhere."""

    values: Any
    bad: Any = None
    null: Any = None


Check = Callable[[Any], "str | None"]
"""What is wrong with the value of an argument that has to be a literal, or None."""


@dataclass(frozen=True)
class Function:
    """A built-in function.

    least, most: how many arguments (most None: any number).  resolve: the signature for argument types, None where it
    does not take them.  takes: the argument types in words.
    of_values: over Python values, once per distinct text or combination of arguments.  of_arrays: over whole columns,
    numpy arrays of one length or of one element; a FLOAT that comes out as NaN is NULL.  Operators have neither.
    literals: by position, the arguments that must be written as literals, each with its check; both forms see them as
    Python values.  strict: a NULL argument gives NULL and reaches neither form; else both see it as None.
    in_ticks: the function also takes `tick_ns`, the nanoseconds of an instant's tick.
    grain_ns: of an instant first, given the literals: the length of the steps from 1970 on within which all give the
    same, at most a day.
    summary, example: one line of documentation; an expression, and what it gives.
    """

    name: str
    least: int
    most: int | None
    resolve: Callable[[Sequence[Type]], Signature | None]
    takes: str
    summary: str = ""
    example: tuple[str, str] = ("", "")
    of_values: Callable[..., Any] | None = None
    of_arrays: Callable[..., Any] | None = None
    literals: Mapping[int, Check] = field(default_factory=dict)
    can_fail: bool = False
    in_ticks: bool = False
    grain_ns: Callable[..., int] | None = None
    strict: bool = True


def fixed(result: Type, *params: Type) -> Callable[[Sequence[Type]], Signature | None]:
    """Fixed parameter types (the last repeats as needed); an INTEGER or DECIMAL may stand where a FLOAT is wanted, a
    DATE where a TIMESTAMP is."""

    def resolve(types: Sequence[Type]) -> Signature | None:
        wanted = tuple(params[min(i, len(params) - 1)] for i in range(len(types)))
        fits = (
            have in (want, Type.NULL)
            or (want is Type.FLOAT and (have is Type.INTEGER or have.kind == "DECIMAL"))
            or (want is Type.TIMESTAMP and have is Type.DATE)
            for have, want in zip(types, wanted)
        )
        return Signature(wanted, result) if all(fits) else None

    return resolve


def one_of(words: Sequence[str], what: str) -> Check:
    """The check of a literal that is one of some words, in any case."""

    def check(value: Any) -> str | None:
        if isinstance(value, str) and value.lower() in words:
            return None
        return f"{what} is one of {', '.join(words)}"

    return check
