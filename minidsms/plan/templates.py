"""Registration of queries that differ from earlier ones in constants only.

Parsing, binding and planning a text takes milliseconds, and thousands of rules are mostly one text with other numbers
in it. So texts are compared without their numbers and quoted texts; of the first of a kind a *template* is made, and
for the others only the box of their condition is computed. All else is done when somebody asks for it.

How a template is made: the literals are replaced by values that occur nowhere else, the text is planned, and the
template holds if each of these values has become one constant of the filter's condition, or its negative.

Invariant: what is registered by a template answers, prints and plans as if it had been planned from its text.
docs/sharing.md.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

from minidsms.cql import bound
from minidsms.cql.binder import bind
from minidsms.cql.bound import Expr
from minidsms.cql.errors import CqlError
from minidsms.cql.parser import parse_query
from minidsms.elements import Schema
from minidsms.plan.constants import FEWEST, Families, FamilyShape
from minidsms.plan.logical import replace_children
from minidsms.plan.planner import plan
from minidsms.plan.screening import box_of
from minidsms.plan.tails import filter_and_columns
from minidsms.screens.box import Box

if TYPE_CHECKING:
    from minidsms.cql.catalog import Catalog

_LITERAL = re.compile(
    r"\[[^\]]*\]|'(?:[^']|'')*'|(?<![\w.])(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.])"
)
_UNREADABLE = re.compile(r'["`#]|--|\x00')
_MOST = 2**53
"""Whole numbers up to here are the same as FLOATs."""
_LONGEST = 4096
"""Characters of a text that is compared with others."""
_REMEMBERED = 4096
"""Kinds of texts that are remembered: those that were met last."""

_SECOND, _LATER = 2, 2 + FEWEST
"""Queries of a kind with which its template is tried: at once, and when there may be a family."""

Value = int | float | str
T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A text without its literals, and these. shape: with a mark for each, by its type."""

    shape: str
    values: tuple[Value, ...]


def kind_of(text: str) -> Kind | None:
    """What is compared; None of a text that is long, not read so simply, or has a number too large.

    >>> kind_of("SELECT k FROM S WHERE v > 1.5 AND t = 'it''s'").values
    (1.5, "it's")
    """
    if len(text) > _LONGEST or _UNREADABLE.search(text):
        return None
    values: list[Value] = []

    def lifted(match: re.Match[str]) -> str:
        if match.group()[0] == "[":
            return match.group()  # what a window says is no constant of a filter
        value = _value(match.group())
        values.append(value)
        return f"\x00{type(value).__name__} "

    shape = _LITERAL.sub(lifted, text)
    fits = all(abs(v) < _MOST for v in values if not isinstance(v, str))
    return Kind(shape, tuple(values)) if fits and values else None


def _value(lexeme: str) -> Value:
    if lexeme[0] == "'":
        return lexeme[1:-1].replace("''", "'")
    return int(lexeme) if lexeme.isdigit() else float(lexeme)


@dataclasses.dataclass(frozen=True)
class Template:
    """stream: the one read.  kind, schema: of the answer.  columns: of the stream that are shown.

    condition: the filter's, with marked values.  places: of each marked value the literal that it is, and its sign.
    family: where the queries keep state, their family (`plan.constants`).
    """

    stream: str
    kind: str
    schema: Schema
    columns: tuple[int, ...]
    condition: Expr
    places: dict[Value, tuple[int, int]]
    family: FamilyShape | None = None

    def box(self, values: Sequence[Value]) -> Box | None:
        """The box of a query with these literals."""

        def filled(expr: Expr) -> Expr:
            if isinstance(expr, bound.Literal):
                place = self.places.get(expr.value) if type(expr.value) in (int, float, str) else None  # type: ignore[arg-type]
                if place is None:
                    return expr
                value = values[place[0]]
                if not isinstance(value, str):
                    value = place[1] * value
                return bound.Literal(expr.type, float(value) if isinstance(expr.value, float) else value)
            if isinstance(expr, bound.Call):
                return bound.Call(expr.type, expr.function, tuple(map(filled, expr.args)))
            return replace_children(expr, filled)

        return box_of(filled(self.condition))


def template_of(kind: Kind, catalog: Catalog, families: Families) -> Template | None:
    """The template for texts of a kind; None where their constants decide about more than a box."""
    marks = [_mark(i, value) for i, value in enumerate(kind.values)]
    rest = iter(marks)
    text = re.sub("\x00[a-z]+ ", lambda match: _written(next(rest)), kind.shape)
    if any(re.search(rf"\b{re.escape(view)}\b", kind.shape, re.IGNORECASE) for view in catalog.views):
        return None  # a view may be dropped
    try:
        node = bind(parse_query(text), catalog, text).node
        root = plan(node, text).root
    except CqlError:
        return None
    found = filter_and_columns(root)
    shared = families.shape(root) if found is None else None
    if found is None and shared is None:
        return None
    target, columns = found if shared is None else (shared[0], shared[1].columns)  # type: ignore[misc]
    if not isinstance(target.input, bound.BaseStream):
        return None
    stream = catalog.streams[target.input.name.lower()]
    box = box_of(target.condition)
    places = _places(target.condition, marks)
    if stream.is_system or box is None or not box.is_all or places is None:
        return None
    family = None if shared is None else shared[1]
    return Template(stream.name.lower(), node.kind, node.schema, columns, target.condition, places, family)


def _mark(number: int, value: Value) -> Value:
    """A value of the same type that occurs nowhere else."""
    if isinstance(value, str):
        return f"mark of literal {number}"
    whole = 7_000_000_019 + 10_007 * number
    return whole if isinstance(value, int) else whole + 0.5


def _written(mark: Value) -> str:
    return f"'{mark}'" if isinstance(mark, str) else repr(mark)


def _places(condition: Expr, marks: Sequence[Value]) -> dict[Value, tuple[int, int]] | None:
    """Where each mark stands, as a literal of the condition; None if one does not stand there exactly once."""
    number = {mark: (i, 1) for i, mark in enumerate(marks)}
    number |= {-mark: (i, -1) for i, mark in enumerate(marks) if not isinstance(mark, str)}
    found: dict[Value, tuple[int, int]] = {}
    for expr in bound.walk(condition):
        if isinstance(expr, bound.Call) and expr.function == "like":
            return None  # what a pattern says depends on its characters
        if isinstance(expr, bound.Lambda) or (isinstance(expr, bound.Literal) and isinstance(expr.value, Decimal)):
            return None  # its digits are its type
        if isinstance(expr, bound.Literal) and not isinstance(expr.value, Decimal) and expr.value in number:
            if expr.value in found:
                return None
            found[expr.value] = number[expr.value]
    return found if {i for i, _ in found.values()} == set(range(len(marks))) and len(found) == len(marks) else None


class Templates:
    """The templates of a connection, by the shape of their texts. They are forgotten when declarations change.

    Invariant: as many kinds are known as _REMEMBERED, at most, however many are met.
    """

    def __init__(self, catalog: Catalog, families: Families) -> None:
        self._catalog = catalog
        self._families = families
        self._known: dict[str, Template | None] = {}
        self._met: dict[str, int] = {}

    def find(self, kind: Kind) -> Template | None:
        """The template of a kind that was met before; the first of a kind is planned."""
        shape = kind.shape
        if shape in self._known:
            _remember(self._known, shape, self._known.pop(shape))
            return self._known[shape]
        met = self._met.pop(shape, 0) + 1
        template = template_of(kind, self._catalog, self._families) if met in (_SECOND, _LATER) else None
        if template is not None or met == _LATER:
            _remember(self._known, shape, template)
        else:
            _remember(self._met, shape, met)
        return template

    def forget(self) -> None:
        """Names may mean something else from now on."""
        self._known.clear()
        self._met.clear()


def _remember(kinds: dict[str, T], shape: str, what: T) -> None:
    """As the last of so many that are remembered."""
    kinds[shape] = what
    if len(kinds) > _REMEMBERED:
        del kinds[next(iter(kinds))]
