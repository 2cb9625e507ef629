"""What every node of a query tells of itself, from the bound query to the plan that becomes operators.

A node is a frozen record. Its fields, in their order and inside tuples and `Part`s, hold the nodes it reads and the
expressions it computes; inputs, expressions, the node over others and its shape follow from them. What else a plan
needs to know a class says in methods: which columns it reads, how EXPLAIN writes it, what holds of its rows.

Invariant: what a class does not say is not so: a relation is taken to have no key, and its rows to leave in any order.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property
from operator import is_not
from typing import TYPE_CHECKING, Any, Self, dataclass_transform

from minidsms.cql.functions import can_fail
from minidsms.cql.scalar import ColumnRef, Expr, Part, kept, renumbered, walk
from minidsms.elements import Schema, Type

if TYPE_CHECKING:
    from minidsms.cql.bound import Narrowed
    from minidsms.cql.catalog import Catalog
    from minidsms.cql.keys import Key
    from minidsms.cql.origins import Origins
    from minidsms.cql.window_spec import WindowSpec

_PLAIN = frozenset((bool, int, float, str, type(None), Type))
"""Types of fields' values in which nothing stands: to ask of each whether it is a node takes longer."""
AS_WRITTEN = {"as written": True}
"""Metadata of a field whose nodes are spoken of and not read."""


def _note_what_is_abstract(kind: Any) -> None:
    """That no instance is made of a class that says too little; of an abc.ABC, isinstance takes four times as long."""
    kind.__abstractmethods__ = frozenset()
    abc.update_abstractmethods(kind)


class Memory(enum.Enum):
    """Of what a node's changes behind an instant depend on, beside the changes of its inputs then.

    FIRST: whether anything has come.  ROWS: the rows that its inputs give at the instant.  OWN: what it has counted or
    kept of these by itself.  ALL: all that has come.
    """

    NOTHING = enum.auto()
    FIRST = enum.auto()
    ROWS = enum.auto()
    OWN = enum.auto()
    ALL = enum.auto()


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
@dataclass(frozen=True, eq=False)
class Node:
    """A stream or a relation; what is derived from it is a frozen dataclass, too, and compares by identity.

    `schema` gives its columns. Fields that only name things have compare=False.
    """

    schema: Schema

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False)(cls)
        _note_what_is_abstract(cls)

    # ------------------------------------------------------------------------------------- what follows from the fields

    @cached_property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes read directly (subqueries inside expressions are not among them)."""
        return tuple(part for part in self._parts if not isinstance(part, Expr))

    @cached_property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions a node evaluates itself."""
        return tuple(part for part in self._parts if isinstance(part, Expr))

    @cached_property
    def all_below(self) -> tuple[Node, ...]:
        """What is read directly and by what is read: every node once, inputs before their readers."""
        order: list[Node] = []
        seen: set[int] = set()
        stack = [(child, False) for child in reversed(self.inputs)]
        while stack:
            node, ready = stack.pop()
            if ready:
                order.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                stack.extend([(child, False) for child in reversed(node.inputs)])
        return tuple(order)

    def over(self, inputs: Sequence[Node]) -> Self:
        """The node over other inputs; the node itself when they are the same objects."""
        if all(a is b for a, b in zip(self.inputs, inputs)):
            return self
        rest = iter(inputs)
        return self._changed(lambda node: next(rest), lambda expr: expr)

    def rewritten(self, change: Callable[[Expr], Expr]) -> Self:
        """The node with `change` applied to each of its expressions."""
        changed = [change(e) for e in self.expressions]
        if all(a is b for a, b in zip(self.expressions, changed)):
            return self
        rest = iter(changed)
        return self._changed(lambda node: node, lambda expr: next(rest))

    @property
    def shape(self) -> Hashable | None:
        """What the node does with its inputs, to be compared with other nodes'; None where it is like no other.

        Expressions that can fail count with the names they show in the reason of a failure.
        """
        compared = (f.name for f in dataclasses.fields(self) if f.compare and f.name in self._looked_through)
        return type(self).__name__, *(_shape(getattr(self, name)) for name in compared)

    @property
    def _looked_through(self) -> tuple[str, ...]:
        kind: Any = type(self)
        return _looked_through(kind)

    @cached_property
    def _parts(self) -> list[Node | Expr]:
        found: list[Node | Expr] = []
        for name in self._looked_through:
            _find(getattr(self, name), found)
        return found

    def _changed(self, node: Callable[[Node], Node], expr: Callable[[Expr], Expr]) -> Self:
        fields = {name: _mapped(getattr(self, name), node, expr) for name in self._looked_through}
        return dataclasses.replace(self, **fields)

    # ------------------------------------------------------------------------------------------------ what a class says

    @abc.abstractmethod
    def text(self) -> str:
        """One line of EXPLAIN."""

    @abc.abstractmethod
    def needs(self, mine: Set[int]) -> Sequence[Set[int]]:
        """The columns of each input that the node reads, when `mine` of its own are read."""

    def narrowed(self, mine: Set[int], inputs: Sequence[Narrowed]) -> Narrowed:
        """The node over inputs that kept only what `needs` names. Of whole rows: all columns stay."""
        from minidsms.cql.bound import Narrowed

        wanted = self.needs(mine)
        assert all(not w or len(w) == len(i.old) for w, i in zip(wanted, inputs)), "it reads whole rows, or none"
        new = [i.exactly(range(len(i.old))) if w else i.node for w, i in zip(wanted, inputs)]
        return Narrowed(self.schema, self.over(new), {i: i for i in range(len(self.schema))})

    @property
    def kind(self) -> str:
        """ "stream" or "relation"."""
        return "relation"

    def known_keys(self, catalog: Catalog) -> list[Key]:
        """Keys of what the node gives, those first that hold by construction (`cql.keys`)."""
        return []

    def pushed(self, condition: Expr) -> Sequence[Expr | None]:
        """What a condition on the node's rows, which cannot fail, asks of the rows of each input, where it can be asked
        there instead; None: nothing of that input.  () where it stays above.
        """
        return ()

    def grows_with(self) -> Sequence[Node] | None:
        """The relations that must never lose a row for this one not to; None where it may lose rows all the same."""
        return None

    def carrying(self, inputs: Sequence[Carried]) -> Carried | None:
        """The node over inputs that carry further columns, which it carries on: for all that agree in them it gives the
        rows that it would give of theirs alone.  None where it does not keep apart what differs in them.
        """
        return None

    def origins(self, below: Sequence[Origins]) -> Origins:
        """The origins of its columns (`cql.origins`), from those of its inputs' columns."""
        return [None] * len(self.schema)

    def is_momentary(self, lasting: Sequence[bool]) -> bool:
        """No row outlives the instant at which it came. lasting: of each input, whether some row may."""
        return False

    @property
    def mixes(self) -> str | None:
        """Why rows meet in it that agree in no column, in words; None where nothing is to be said."""
        return None

    @property
    def lookback(self) -> int | str:
        """How many ticks before an instant its rows depend on those below; or why on all, in words."""
        return 0

    @property
    def memory(self) -> Memory:
        """What of the past its changes behind an instant depend on."""
        return Memory.ALL

    @property
    def own_windows(self) -> Sequence[tuple[WindowSpec, Node]]:
        """The windows of which it holds all rows by itself, each with the stream that it is over."""
        return ()

    @property
    def is_by_arrival(self) -> bool:
        """It matters to it which of two rows of one instant below came first (docs/semantics T3)."""
        return False

    @property
    def has_arrival_order(self) -> bool:
        """Its rows are the elements of one window, and it is known which of two came first."""
        return False

    @property
    def has_one_row(self) -> bool:
        """It never has more rows than one."""
        return False

    @property
    def is_empty_with_input(self) -> bool:
        """It has no row while its first input has none."""
        return False

    @property
    def is_fifo(self) -> bool:
        """Deletions come in the order of the insertions."""
        return False

    @property
    def fifo_by(self) -> frozenset[int] | None:
        """Columns such that rows with the same values in all of them leave in the order in which they came; None where
        there are none.
        """
        return frozenset() if self.is_fifo else None

    @property
    def is_append_only(self) -> bool:
        """There are no deletions."""
        return False

    @property
    def is_netted(self) -> bool:
        """No row is both deleted and inserted at one instant."""
        return False

    @property
    def refers_to_store(self) -> bool:
        """Its batches are references into a stream's store, and so carry arrival numbers."""
        return False


_note_what_is_abstract(Node)


@dataclass(frozen=True)
class Carried:
    """A node whose rows carry further columns. place: where each column of the node that it stands for is.

    extra: where the further ones are; none: it is that node.
    """

    node: Node
    place: Mapping[int, int]
    extra: Sequence[int] = ()

    @classmethod
    def beside(cls, node: Node, width: int) -> Carried:
        """A node whose further columns stand behind its first `width`."""
        return cls(node, {i: i for i in range(width)}, range(width, len(node.schema)))

    def over(self, node: Node) -> Carried:
        """The same of a node with more columns behind these, of which expressions may be."""
        return Carried(node, {i: i for i in range(len(node.schema))}, self.extra)

    def moved(self, expr: Expr) -> Expr:
        """An expression over the old row, over the new one."""
        return renumbered(expr, self.place.__getitem__)

    def column(self, place: int) -> ColumnRef:
        """A column of the new row."""
        found = self.node.schema[place]
        return ColumnRef(found.type, place, found.name)

    @property
    def carried(self) -> list[ColumnRef]:
        """The further columns."""
        return [self.column(i) for i in self.extra]

    @property
    def all_columns(self) -> list[ColumnRef]:
        """The columns of the node that it stands for, then the further ones."""
        return [*(self.column(self.place[i]) for i in range(len(self.place))), *self.carried]


@cache
def _looked_through(node: type[Node]) -> tuple[str, ...]:
    """The fields of a class that may hold inputs and expressions."""
    return tuple(f.name for f in dataclasses.fields(node) if f.name != "schema" and "as written" not in f.metadata)


@cache
def _fields_of(part: Any) -> tuple[str, ...]:
    """Of a class of parts."""
    return tuple(f.name for f in dataclasses.fields(part))


def _find(value: object, found: list[Node | Expr]) -> None:
    """Append the nodes and expressions in the value of a field."""
    if type(value) in _PLAIN:
        return
    if isinstance(value, tuple):
        for each in value:
            _find(each, found)
    elif isinstance(value, Part):
        found += _inside(value)
    elif isinstance(value, Expr | Node):  # a Node last: to ask an abstract class takes longer
        found.append(value)


@kept
def _inside(part: Part) -> list[Node | Expr]:
    found: list[Node | Expr] = []
    for name in _fields_of(type(part)):  # type: ignore[arg-type]
        _find(getattr(part, name), found)
    return found


def _mapped(value: Any, node: Callable[[Node], Node], expr: Callable[[Expr], Expr]) -> Any:
    """The value of a field with its nodes and expressions changed; the same object where none is."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, tuple):
        new = tuple([_mapped(each, node, expr) for each in value])
        return new if any(map(is_not, new, value)) else value
    if isinstance(value, Part):
        fields = {name: getattr(value, name) for name in _fields_of(type(value))}  # type: ignore[arg-type]
        changed = {name: _mapped(old, node, expr) for name, old in fields.items()}
        is_changed = any(map(is_not, changed.values(), fields.values()))
        return dataclasses.replace(value, **changed) if is_changed else value
    if isinstance(value, Expr):
        return expr(value)
    return node(value) if isinstance(value, Node) else value


def _shape(value: Any) -> Hashable:
    match value:
        case Node():
            return "input"
        case Expr():
            return value, _names(value) if can_fail(value) else ()
        case tuple():
            return tuple(map(_shape, value))
        case Part():
            return value, tuple(_names(e) for e in _inside(value) if isinstance(e, Expr))
        case _:
            return value  # type: ignore[no-any-return]


def _names(expr: Expr) -> tuple[str, ...]:
    return tuple(e.name for e in walk(expr) if isinstance(e, ColumnRef))
