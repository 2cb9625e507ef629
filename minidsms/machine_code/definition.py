"""The decorators of kernels, and what is known of a function that carries one."""

from __future__ import annotations

import dis
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeVar, cast, overload

from minidsms.machine_code import binding
from minidsms.machine_code.fingerprint import digest_of
from minidsms.machine_code.intrinsics import Intrinsic
from minidsms.machine_code.records import Signature, signature_of

_Decorator = Callable[[Callable[..., Any]], Any]


@dataclass(frozen=True, eq=False)
class Definition:
    """A function as it was written, how it is to be compiled, and the digest of all that its code depends on."""

    function: FunctionType
    signatures: tuple[str | Signature, ...]
    """numba's words for the types, or what annotations say; several where the first arrays are of
    several; empty where the callers' decide."""
    inline: bool
    digest: str
    form: str = ""
    """Of a template (`templates`), what tells this one from others of the same name."""

    @property
    def name(self) -> str:
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}{self.form}"

    @property
    def size(self) -> int:
        """Bytes of instructions, of the helpers too: how long it takes to compile, more or less."""
        callees = map(definition_of, self.globals().values())
        return len(self.function.__code__.co_code) + sum(callee.size for callee in callees if callee is not None)

    def globals(self) -> dict[str, object]:
        """What the function uses of its module, by name; names of attributes may be the same."""
        used = (step.argval for step in dis.get_instructions(self.function) if step.opname == "LOAD_GLOBAL")
        return {name: self.function.__globals__[name] for name in used if name in self.function.__globals__}


_defined: dict[object, Definition] = {}
"""What stands in the modules, bound or not, to its definition."""


F = TypeVar("F", bound=Callable[..., Any])


@overload
def kernel(function: F, /) -> F: ...
@overload
def kernel(*signatures: str) -> _Decorator: ...
def kernel(*given: Any) -> Any:
    """A function that Python calls: of C-contiguous, writable arrays, integers, floats, truth values, and bundles.

    The signature is that of the annotations (`records`), or given as numba writes it, such as
    "int64(int64[::1], boolean)"; several give variants by the arrays' types. What a kernel calls must be defined
    before it. It releases the interpreter's lock and makes no arrays. An argument of another type, order or number of
    dimensions raises TypeError.
    """

    if given and callable(given[0]):
        return _bound(given[0], (signature_of(given[0]),))
    return lambda function: _bound(function, given)


def defined(
    function: FunctionType, signatures: tuple[str | Signature, ...], inline: bool, form: str = ""
) -> Definition:
    """With the digest of what it is now.  form: see `Definition`."""
    digest = digest_of(function, (*map(str, signatures), str(inline)), _digest)
    return Definition(function, signatures, inline, digest, form)


def _bound(function: Callable[..., Any], signatures: tuple[str | Signature, ...]) -> Callable[..., Any]:
    definition = defined(cast(FunctionType, function), signatures, inline=False)
    bound = binding.bind(definition)
    _defined[bound] = definition
    return bound


@overload
def helper(function: Callable[..., Any], /) -> Any: ...
@overload
def helper(*, inline: bool = ..., typed: bool = ...) -> _Decorator: ...
@overload
def helper(signature: str, /) -> _Decorator: ...
def helper(given: Any = None, /, *, inline: bool = False, typed: bool = False) -> Any:
    """A function that only kernels call. With a signature arguments are converted to it, without it goes by theirs.

    typed: the signature is that of the annotations.

    inline: written into its callers however long it is: gains where a caller's constants make branches of it go away.
    """
    written = (given,) if isinstance(given, str) else ()

    def decorate(function: Callable[..., Any]) -> Any:
        signatures = (signature_of(function),) if typed else written
        return as_helper(function, signatures, inline)

    return decorate(given) if callable(given) else decorate


def as_helper(
    function: Callable[..., Any], signatures: tuple[str | Signature, ...], inline: bool
) -> Callable[..., Any]:
    """The function, known from now on as one that kernels call."""
    _defined[function] = defined(cast(FunctionType, function), signatures, inline)
    return function


def definition_of(value: object) -> Definition | None:
    """Of a kernel or helper, as it stands in a module; None of anything else."""
    try:
        return _defined.get(value)
    except TypeError:  # It cannot even be looked up.
        return None


def definitions() -> list[Definition]:
    """All that have been made in this process, callees before their callers."""
    return list(_defined.values())


def _digest(value: object) -> str | None:
    if isinstance(value, Intrinsic):
        return value.name
    definition = definition_of(value)
    return None if definition is None else definition.digest
