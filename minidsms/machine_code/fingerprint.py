"""What the machine code of a function depends on, as a digest.

It is exact where a file's time is not: the instructions and constants of the function, the constants it takes from
its module, wherever they were imported from, and in the same way all helpers it calls. Comments, documentation and
the lines above do not count; a constant defined three files away does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

import numpy as np

_BYTES = 16


def digest_of(function: FunctionType, also: tuple[str, ...], of_callee: Callable[[object], str | None]) -> str:
    """In hexadecimal. also: what else decides.  of_callee: the digest of a kernel or helper, None of anything else.

    Raises TypeError where the function uses something that cannot be told apart from another of its kind.
    """
    parts = [*also, *_code(function.__code__, function.__doc__)]
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            value = function.__globals__[name]
            described = of_callee(value) or _value(value)
            if described is None:
                raise TypeError(
                    f"{function.__module__}.{function.__qualname__} uses {name}, a {type(value).__name__}: kernels take"
                    " constants (numbers, texts, tuples of them), modules, types and other kernels from their module"
                )
            parts.append(f"{name}={described}")
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=_BYTES).hexdigest()


def _code(code: CodeType, documentation: str | None = None) -> Iterator[str]:
    """Instructions, names and constants, without what documents the function."""
    if code.co_freevars:
        raise TypeError(f"{code.co_qualname} uses {code.co_freevars[0]} of a function around it: kernels cannot")
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_argcount))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        elif documentation is None or constant != documentation:
            yield _value(constant) or repr(constant)


def _names(code: CodeType) -> set[str]:
    """Names of globals, and of attributes, which cannot be told from them."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _value(value: object) -> str | None:
    """A constant in words that no other constant has; None of what is no constant."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        return f"{type(value).__qualname__} {value!r}"
    if isinstance(value, tuple):
        parts = [_value(item) for item in value]
        return None if None in parts else f"{type(value).__qualname__}({', '.join(map(str, parts))})"
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, (type, BuiltinFunctionType, np.ufunc)):
        return f"name {getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"
    return None
