"""The decorators of kernels, and what is known of a function that carries one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, cast, overload

from minidsms.machine_code import binding
from minidsms.machine_code.fingerprint import digest_of
from minidsms.machine_code.intrinsics import Intrinsic

_Decorator = Callable[[Callable[..., Any]], Any]


@dataclass(frozen=True, eq=False)
class Definition:
    """A function as it was written, how it is to be compiled, and the digest of all that its code depends on."""

    function: FunctionType
    signatures: tuple[str, ...]
    """numba's words for the types; several where the first arrays are of several; empty where the callers' decide."""
    inline: bool
    digest: str

    @property
    def name(self) -> str:
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"

    @property
    def size(self) -> int:
        """Bytes of instructions, of the helpers too: how long it takes to compile, more or less."""
        callees = (definition_of(self.function.__globals__.get(name)) for name in self.function.__code__.co_names)
        return len(self.function.__code__.co_code) + sum(callee.size for callee in callees if callee is not None)


_defined: dict[object, Definition] = {}
"""What stands in the modules, bound or not, to its definition."""


def kernel(*signatures: str) -> _Decorator:
    """A function that Python calls: of C-contiguous, writable arrays, integers, floats and truth values.

    signatures: as numba writes them, such as "int64(int64[::1], boolean)"; several give variants by the arrays'
    types. What a kernel calls must be defined before it. It releases the interpreter's lock and makes no arrays.
    An argument of another type, order or number of dimensions raises TypeError.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        definition = _definition(function, signatures, inline=False)
        bound = binding.bind(definition)
        _defined[bound] = definition
        return bound

    return decorate


@overload
def helper(function: Callable[..., Any], /) -> Any: ...
@overload
def helper(*, inline: bool) -> _Decorator: ...
@overload
def helper(signature: str, /) -> _Decorator: ...
def helper(given: Any = None, /, *, inline: bool = False) -> Any:
    """A function that only kernels call. With a signature arguments are converted to it, without it goes by theirs.

    inline: written into its callers before they are compiled: costs compilation at every call, and gains where a
    caller's constants make branches of it go away.
    """
    signatures = (given,) if isinstance(given, str) else ()

    def decorate(function: Callable[..., Any]) -> Any:
        _defined[function] = _definition(function, signatures, inline)
        return function

    return decorate(given) if callable(given) else decorate


def definition_of(value: object) -> Definition | None:
    """Of a kernel or helper, as it stands in a module; None of anything else."""
    try:
        return _defined.get(value)
    except TypeError:  # It cannot even be looked up.
        return None


def definitions() -> list[Definition]:
    """All that have been made in this process, callees before their callers."""
    return list(_defined.values())


def _definition(function: Callable[..., Any], signatures: tuple[str, ...], inline: bool) -> Definition:
    function = cast(FunctionType, function)
    return Definition(function, signatures, inline, digest_of(function, (*signatures, str(inline)), _digest))


def _digest(value: object) -> str | None:
    if isinstance(value, Intrinsic):
        return value.name
    definition = definition_of(value)
    return None if definition is None else definition.digest
