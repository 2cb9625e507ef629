"""Kernels with constants that are filled in while a query runs.

A *template* is a function written as a kernel is, in whose module some names stand for constants: how many inputs there
are, whether a column has NULLs. A *form* of it has values for them: the same instructions over a namespace in which the
names have these values, and so have the helpers of the module. The compiler folds them; no text is assembled.

    HAS_NULLS = True

    @template("HAS_NULLS", gain=0.5)
    def scan(words: Int64s, ..) -> int: ..

    form = scan.form(HAS_NULLS=False)   # the same object each time
    form.code()                         # what Python calls, where it is kept; None where it must be compiled first
    form.compile_beside()               # in the second process (`ahead`), which keeps it
    form.compiled()                     # here and now

A helper that is to do the same for each item of a tuple, with the item's values as constants, is a `series`: a loop
that is unrolled before anything is compiled, whose items need not be alike.

Invariant: a form is kept as kernels are, under its template's name, its constants and the digest of all that its code
depends on; a form that cannot be compiled is never asked for again. docs/design, point 9.
"""

from __future__ import annotations

import hashlib
import importlib
from ast import literal_eval
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from types import FunctionType
from typing import Any, TypeAlias, cast

from minidsms.machine_code import binding
from minidsms.machine_code.compile_time import COMPILED
from minidsms.machine_code.definition import Definition, as_helper, defined, definition_of
from minidsms.machine_code.records import signature_of

MOST_KNOWN = 1_000
"""Forms of a template that a process remembers without having their code."""
_LONG = 80
"""Constants that take more characters are left out where a form is named."""

Constant: TypeAlias = "bool | int | str | tuple[Constant, ...]"
"""What a template's names may stand for; what `repr` says of one, `literal_eval` reads."""


class Template:
    """gain: the share of an element's time that a form is expected to save before one has been measured.

    compile_s: how long the compiler takes for one, before any was timed.
    """

    def __init__(self, function: FunctionType, names: tuple[str, ...], gain: float, compile_s: float) -> None:
        unknown = [name for name in names if name not in function.__globals__]
        if unknown:
            raise TypeError(f"{function.__qualname__} is to have the constant {unknown[0]}, which its module has not")
        self.function = function
        self.names = names
        self.gain = gain
        self.compile_s = compile_s
        self.__doc__ = function.__doc__
        self._forms: dict[tuple[Constant, ...], Form] = {}

    def form(self, **constants: Constant) -> Form:
        """The one with these values, all of which must be given."""
        if constants.keys() != set(self.names):
            raise TypeError(f"{self.function.__qualname__} has the constants {', '.join(self.names)}")
        key = tuple(constants[name] for name in self.names)
        form = self._forms.get(key)
        if form is None:  # as for other threads, which may be adding one at the same time
            if len(self._forms) >= MOST_KNOWN:
                # Whoever wants one of these again begins to count its time anew.
                self._forms = {key: f for key, f in list(self._forms.items()) if f.is_loaded or f.is_awaited}
            form = self._forms.setdefault(key, Form(self, dict(zip(self.names, key))))
        return form


class Form:
    """A template with values for its constants.

    spent_ns: that operators have spent on elements for which this form was wanted, in this process.
    """

    def __init__(self, template: Template, constants: Mapping[str, Constant]) -> None:
        self.template = template
        self.constants = constants
        self.spent_ns = 0
        self._code: Callable[..., Any] | None = None
        self._definition: Definition | None = None
        self._is_awaited = False
        self._looked = False
        self._has_failed = False

    def __str__(self) -> str:
        told = {name: str(value) for name, value in self.constants.items()}
        known = ", ".join(f"{name.lower()} {text}" for name, text in told.items() if len(text) <= _LONG)
        return f"{self.template.function.__name__} ({known})"

    @cached_property
    def place(self) -> str:
        """Where another process finds it: module, function and constants."""
        function = self.template.function
        return f"{function.__module__}:{function.__name__}:{dict(self.constants)!r}"

    @property
    def definition(self) -> Definition:
        """As of a kernel."""
        if self._definition is None:
            self._definition = _defined(self.template.function, self.constants)
        return self._definition

    @property
    def is_loaded(self) -> bool:
        """Its code is in this process, and stays there."""
        return self._code is not None

    @property
    def is_awaited(self) -> bool:
        """The second process has been asked for it, and has not answered."""
        return self._is_awaited

    @property
    def has_failed(self) -> bool:
        """It cannot be compiled here."""
        return self._has_failed

    def code(self) -> Callable[..., Any] | None:
        """What Python calls; None where it is not known to be kept. Whoever looks again finds what has come since."""
        if self._code is None and not self._has_failed:
            from minidsms.machine_code import ahead

            answered = self._is_awaited and not ahead.is_under_way(self.place)
            if answered or not self._looked:
                with COMPILED.counted():
                    self._code = binding.kept(self.definition)
                self._looked = True
            if answered:
                self._is_awaited = False
                self._has_failed = self._code is None
        return self._code

    def compile_beside(self) -> None:
        """Ask the second process for it, once. Where there is none, it has failed."""
        if self._code is None and not self._is_awaited and not self._has_failed:
            from minidsms.machine_code import ahead

            self._is_awaited = ahead.ask(self.place)
            self._has_failed = not self._is_awaited

    def compiled(self) -> Callable[..., Any]:
        """What Python calls, compiled now where it is not kept."""
        if self._code is None:
            self._code = binding.bind(self.definition)
        return self._code


def template(*names: str, gain: float, compile_s: float = 3.0) -> Callable[[Callable[..., Any]], Template]:
    """Make a template of a function with the annotations of a kernel. names: the constants, with some value each in its
    module; gain, compile_s: see `Template`.
    """
    return lambda function: Template(cast(FunctionType, function), names, gain, compile_s)


def form_at(place: str) -> Form:
    """The inverse of `Form.place`."""
    module, name, constants = place.split(":", 2)
    found = getattr(importlib.import_module(module), name)
    assert isinstance(found, Template)
    return found.form(**literal_eval(constants))


@dataclass(frozen=True)
class _Series:
    function: FunctionType
    items: str
    names: tuple[str, ...]
    end: FunctionType


_series: dict[FunctionType, _Series] = {}
"""By what stands for it in its module."""


def series(function: Callable[..., Any], items: str, names: tuple[str, ...], end: Callable[..., Any]) -> Any:
    """What the helpers of a template call to do something for each item of the constant `items`, one after the other.

    function: a helper in whose module `names` stand for the values of an item; it calls the series again for the items
    behind its own.  end: a helper with the same parameters, which is called behind the last.
    """
    last = cast(FunctionType, end)
    stands_for = FunctionType(last.__code__, last.__globals__, last.__name__, last.__defaults__)
    stands_for.__module__ = last.__module__
    _series[stands_for] = _Series(cast(FunctionType, function), items, names, last)
    return as_helper(stands_for, (), inline=True)


def _defined(function: FunctionType, constants: Mapping[str, Constant]) -> Definition:
    name = hashlib.blake2b(repr(sorted(constants.items())).encode(), digest_size=6).hexdigest()
    filled = _filled(function, constants)
    return defined(filled, (signature_of(filled),), inline=False, form=f".{name}")


_helpers: dict[tuple[FunctionType, tuple[tuple[str, Constant], ...]], FunctionType] = {}
"""With values for the constants that they ask for: forms that agree in these share the helper, which is compiled once.
"""


def _filled(function: FunctionType, constants: Mapping[str, Constant]) -> FunctionType:
    """The function over a namespace with these constants."""
    namespace = {**function.__globals__, **constants}
    for name in function.__code__.co_names:
        definition, its = definition_of(function.__globals__.get(name)), constants
        if definition is None or definition.function is function:  # an attribute that is called as the function is
            continue
        callee = definition.function
        if callee in _series:
            callee, its = _next(_series[callee], constants)
        asked = its.keys() & _names(callee)
        if callee.__module__ == function.__module__ and (asked or its is not constants):
            namespace[name] = _helper(callee, {name: its[name] for name in sorted(asked)})
    filled = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__)
    filled.__module__, filled.__qualname__ = function.__module__, function.__qualname__
    filled.__annotations__, filled.__doc__ = function.__annotations__, function.__doc__
    return filled


def _next(one: _Series, constants: Mapping[str, Constant]) -> tuple[FunctionType, Mapping[str, Constant]]:
    """What is called for the first item of a series, and the constants there."""
    items = cast("tuple[tuple[Constant, ...], ...]", constants[one.items])
    if not items:
        return one.end, {**constants}
    return one.function, {**constants, **dict(zip(one.names, items[0], strict=True)), one.items: items[1:]}


def _helper(function: FunctionType, constants: Mapping[str, Constant]) -> FunctionType:
    key = function, tuple(constants.items())
    if key not in _helpers:
        definition = cast(Definition, definition_of(function))
        filled = _filled(function, constants)
        as_helper(filled, definition.signatures, definition.inline)
        _helpers.setdefault(key, filled)  # no other thread finds one that is not known as a helper
    return _helpers[key]


@cache
def _names(function: FunctionType) -> frozenset[str]:
    """All that a helper, or one that it calls, finds in its module."""
    found: set[str] = set()
    known, fresh = {function}, [function]
    while fresh:
        caller = fresh.pop()
        found.update(caller.__code__.co_names)
        for definition in map(definition_of, map(caller.__globals__.get, caller.__code__.co_names)):
            if definition is None:
                continue
            one = _series.get(definition.function)
            if one is not None:
                found.add(one.items)
            for callee in (definition.function,) if one is None else (one.function, one.end):
                if callee not in known:
                    known.add(callee)
                    fresh.append(callee)
    return frozenset(found)
