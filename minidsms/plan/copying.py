"""Copies of running operators, state and all: how queries that shared operators come to have their own.

A copy puts out from now on what its original does. Arrays that are views of one array are views of one array in the
copy. Functions, programs, declarations, the dictionary and the texts held in it are the same in both, stores of base
relations too; so are stores of streams, unless the caller gives others in their place. Made while the engine rests: no
queue holds anything.

Invariant: nothing that changes while a plan runs is reached from both the original and the copy, but what is named
above.  docs/design, point 10.
"""

from __future__ import annotations

import copy
import ctypes
import enum
from collections import deque
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from random import Random
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sortedcontainers import SortedList

from minidsms.aggregates.sorting import Few
from minidsms.cql.bound import Expr, Node
from minidsms.cql.catalog import AggregateDef, FunctionDef
from minidsms.cql.window_spec import WindowSpec
from minidsms.elements import Schema, Type
from minidsms.expressions import Context
from minidsms.expressions.joint_program import JointProgram
from minidsms.expressions.programs import Programmed
from minidsms.limits.allowance import OPEN
from minidsms.machine_code import Record
from minidsms.machine_code.templates import Form
from minidsms.operators.adaptivity import SharedByCopies
from minidsms.operators.operator import Operator
from minidsms.operators.select import Select
from minidsms.operators.stream_source import StreamSource
from minidsms.queues import Queue
from minidsms.screens.box import Box
from minidsms.screens.screening import Screening
from minidsms.synopses.relation_store import RelationStore
from minidsms.synopses.row_layout import Standing
from minidsms.synopses.stream_store import Reader, StreamStore
from minidsms.values.dictionary import HeldText, TextDictionary

_OTHERS_OWN = {
    Operator: ("outputs", "failures", "shown", "allowance"),
    Select: ("screen",),
    StreamSource: ("store", "reader", "_kept"),
    StreamStore: ("_readers", "table"),
}
"""Attributes that are not copied with an object of the class."""

_SAME = (
    int, float, complex, str, bytes, bool, Decimal, type(None), range, type, enum.Enum, Type, np.generic, np.dtype,
    FunctionType, BuiltinFunctionType, partial, ModuleType, Schema, Expr, Node, WindowSpec, AggregateDef, FunctionDef,
    Context, TextDictionary, HeldText, Programmed, JointProgram, RelationStore, SharedByCopies, Box, Screening, Form,
    Standing,
)  # fmt: skip


class CannotCopy(Exception):
    """An operator holds something of which there is no copy."""


@runtime_checkable
class InFiles(Protocol):
    """Something that is not in memory alone."""

    def in_other_files(self) -> Any:
        """Another that holds the same, in files of its own. Raises OSError where there is no room for them."""


@runtime_checkable
class Registered(Protocol):
    """Something that others outside the plan know of."""

    def register(self) -> None:
        """A copy begins to be used: make it known to those who know the original."""


def copied(
    operators: Sequence[Operator], stores: Mapping[int, StreamStore], known: Mapping[int, Operator]
) -> dict[int, Operator]:
    """Copies of operators by the id of the original, joined as those are; raises CannotCopy, and nothing has changed.

    operators: producers before consumers.  stores: by the id of a store that holds rows of a stream, the store that
    takes its place.  known: the operators that take the place of producers that are not copied.
    """
    memory = _Memory(operators, stores)
    try:
        copies: dict[int, Operator] = {id(operator): memory.copy(operator) for operator in operators}
    except CannotCopy:
        memory.forget()
        raise
    memory.register()
    copies.update(known)
    for operator in operators:
        for before, queue in zip(operator.inputs, copies[id(operator)].inputs):
            producer = queue.producer = copies[id(before.producer)]
            producer.outputs.append(queue)
    return copies


class _Memory:
    """What has been copied: by the id of the original, the original (so that it stays) and the copy."""

    def __init__(self, operators: Sequence[Operator], stores: Mapping[int, StreamStore]) -> None:
        self._stores = dict(stores)
        for operator in operators:
            reader = getattr(operator, "reader", None)
            if not operator.inputs and isinstance(reader, Reader):
                # What the inputs' own stores hold is not the plan's.
                self._stores.setdefault(id(reader.store), reader.store)
        self._known: dict[int, tuple[Any, Any]] = {}
        self._claims: list[Reader] = []
        self._registered: list[Registered] = []

    def register(self) -> None:
        """The copies are going to be used."""
        for made in self._registered:
            made.register()

    def forget(self) -> None:
        """Nothing will come of the copies: give up their claims."""
        for claim in self._claims:
            claim.store.release(claim)

    def copy(self, value: Any) -> Any:
        """The copy of anything an operator holds."""
        if isinstance(value, _SAME):
            return value
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        match value:
            case StreamStore() if id(value) in self._stores:
                return self._stores[id(value)]
            case np.ndarray():
                return self._array(value)
            case Record():
                return self._note(value, self._record(value))
            case memoryview():
                return self._note(value, memoryview(self.copy(value.obj)))
            case tuple():
                items = [self.copy(v) for v in value]
                return self._note(value, type(value)(*items) if hasattr(value, "_fields") else tuple(items))
            case frozenset():
                return self._note(value, frozenset(map(self.copy, value)))
            case SortedList() | Few():
                return self._note(value, type(value)(value))  # of tuples of values, which nobody changes
            case list() | set() | deque() | dict():
                return self._container(value)
            case MethodType():
                return self._note(value, MethodType(value.__func__, self.copy(value.__self__)))
            case Queue():
                queue = self._note(value, Queue(value.schema, value.bound, value.name, value.byte_bound))
                queue.progress = value.progress
                return queue
            case Reader():
                return self._reader(value, self.copy(value.store))
            case Random() | np.random.Generator():
                return self._note(value, copy.deepcopy(value))
        if not type(value).__module__.startswith("minidsms."):
            raise CannotCopy(f"there is no copy of {type(value).__name__}")
        if issubclass(type(value), InFiles):  # which is remembered of a class; isinstance looks each time
            try:
                return self._note(value, value.in_other_files())
            except OSError as error:
                raise CannotCopy(f"its files cannot be copied: {error}") from error
        return self._object(value)

    def _note(self, original: Any, made: Any) -> Any:
        self._known[id(original)] = original, made
        return made

    def _array(self, array: np.ndarray) -> np.ndarray:
        if not array.size:
            return array  # nothing can be written into it, and some are known by identity
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        if root is array or not (root.flags.c_contiguous or root.flags.f_contiguous):
            return self._note(array, array.copy(order="K"))  # type: ignore[no-any-return]
        flat = self.copy(root).ravel(order="K")
        offset = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        view: np.ndarray = np.ndarray(array.shape, array.dtype, flat, offset, array.strides)
        view.flags.writeable = array.flags.writeable
        return self._note(array, view)  # type: ignore[no-any-return]

    def _record(self, record: Any) -> Any:
        if record._objects is None:
            return type(record).from_buffer_copy(record)
        (array,) = (held.obj for held in record._objects.values())
        offset = ctypes.addressof(record) - array.__array_interface__["data"][0]
        return type(record).from_buffer(self.copy(array), offset)

    def _container(self, value: Any) -> Any:
        made = copy.copy(value)  # of the same kind, whatever it was made with
        made.clear()
        self._note(value, made)
        if isinstance(value, dict):
            for key, held in value.items():
                made[self.copy(key)] = self.copy(held)
        elif isinstance(value, set):
            made.update(self.copy(v) for v in value)
        else:
            made.extend(self.copy(v) for v in value)
        return made

    def _reader(self, reader: Reader, store: StreamStore) -> Reader:
        """A claim on the store that takes the place of the original's, at the same element."""
        claim = store.reader()
        claim.lo = min(reader.lo, store.head)
        self._claims.append(claim)
        return self._note(reader, claim)  # type: ignore[no-any-return]

    def _object(self, value: Any) -> Any:
        made = self._note(value, object.__new__(type(value)))
        left_out = {name for kind, names in _OTHERS_OWN.items() if isinstance(value, kind) for name in names}
        for name, held in _attributes(value).items():
            if name not in left_out:
                object.__setattr__(made, name, self._users(held) if _is_users(value, name) else self.copy(held))
        if isinstance(value, Operator):
            made.outputs, made.failures, made.shown, made.allowance = [], None, 0, OPEN
        if isinstance(value, Select):
            made.screen = None
        if issubclass(type(value), Registered):
            self._registered.append(made)
        if isinstance(value, StreamStore):
            made._readers = []
        if isinstance(value, StreamSource):
            made.store = value.store
            made.reader = self._reader(value.reader, value.store)
            own = self._stores.get(id(value.store)) if value.own is None else self.copy(value.own)
            made.keep_in(None if own is value.store else own)
        return made

    @staticmethod
    def _users(states: Any) -> Any:
        """Objects of classes that the application has defined."""
        try:
            return copy.deepcopy(states)
        except Exception as error:
            raise CannotCopy(f"an aggregate of yours cannot be copied: {type(error).__name__}: {error}") from error


def _is_users(value: Any, name: str) -> bool:
    if name != "_states":
        return False
    from minidsms.synopses.object_states import ObjectStates  # loads kernels, which whoever has such states has loaded

    return isinstance(value, ObjectStates)


def _attributes(value: Any) -> dict[str, Any]:
    """What an object holds, in its dictionary and its slots."""
    held = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                held[name] = getattr(value, name)
    return held
