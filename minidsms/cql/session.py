"""What one `bind` carries around: the catalog, the text under an error's caret, and the objects every use shares.

Invariant: a stream, a relation and a view have one node each per session, however often they are named, so that a bound
query is a DAG whose size is that of the texts it came from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import UnionType
from typing import Any, TypeAlias, TypeVar, cast

from minidsms.cql import bound, syntax
from minidsms.cql.catalog import Catalog
from minidsms.cql.errors import CqlError

S = TypeVar("S", bound=syntax.Syntax)

MAX_COLUMNS = 10_000
"""How many columns a row may have."""
_SNIPPET = 60
"""Characters of the text that are shown of a place."""


@dataclass(frozen=True)
class Piece:
    """A bound query and its syntax tree with the defaults written out."""

    node: bound.Node
    tree: syntax.Query


@dataclass
class Session:
    """The state of one bind.

    derived: by identity of a monotonic relation, its ISTREAM.  tables: what the queries in FROM mean; one written twice
    is one node.  common: the tables of the WITH around.  expanded: by identity of the tree of a subquery, or of a
    name in WHERE that the select list gives, what it became.
    counted: inputs and literals met so far.
    """

    catalog: Catalog
    text: str
    streams: dict[str, bound.BaseStream] = field(default_factory=dict)
    relations: dict[str, bound.BaseRelation] = field(default_factory=dict)
    views: dict[str, Piece] = field(default_factory=dict)
    derived: dict[int, bound.Node] = field(default_factory=dict)
    tables: dict[syntax.Query, Piece] = field(default_factory=dict)
    common: dict[str, Piece] = field(default_factory=dict)
    expanded: dict[int, syntax.Query | syntax.Expr] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)

    def count(self, what: str, n: int, span: tuple[int, int]) -> None:
        """So many more inputs, literals or columns have been met; CqlError beyond the connection's limit."""
        self.counted[what] += n
        limit = self.catalog.limits.get(what)
        if limit is not None and self.counted[what] > limit:
            raise self.error(
                f"a query may have {limit:,} {what}, and here is one more",
                span,
                "",
                f"SET {what.removesuffix('s')}_limit = .. allows more",
            )

    def check_width(self, width: int, span: tuple[int, int]) -> None:
        """CqlError for a row of too many columns."""
        if width > MAX_COLUMNS:
            reason = f"a row has {width:,} columns, and at most {MAX_COLUMNS:,} are possible"
            raise self.error(reason, span, "", "name the columns that are needed")

    def with_text(self, text: str) -> Session:
        """The same session for another text: a view's."""
        return replace(self, text=text)

    def within(self) -> Session:
        """The same session inside a WITH, where names may mean other tables and so texts other nodes."""
        return replace(self, common=dict(self.common), tables={})

    def error(self, reason: str, span: tuple[int, int], note: str = "", hint: str = "") -> CqlError:
        """An error at a place of the text; a tree that was never written has no place."""
        return CqlError(reason, self.text, span if span != (0, 0) else None, note, hint)

    def snippet(self, span: tuple[int, int]) -> str:
        """The text at a place, on one line, cut."""
        # A huge text is not split only to be cut.
        return cut(self.text[span[0] : min(span[1], span[0] + 4 * _SNIPPET)])

    def stream(self, key: str) -> bound.BaseStream:
        """The node of a declared stream."""
        if key not in self.streams:
            declared = self.catalog.streams[key]
            self.streams[key] = bound.BaseStream(declared.schema, declared.name)
        return self.streams[key]

    def relation(self, key: str) -> bound.BaseRelation:
        """The node of a declared relation."""
        if key not in self.relations:
            declared = self.catalog.relations[key]
            self.relations[key] = bound.BaseRelation(declared.schema, declared.name)
        return self.relations[key]

    def expand(self, node: S) -> S:
        """The tree with what has an expanded form replaced by it."""
        if not self.expanded:
            return node
        done = self.expanded.get(id(node))
        if done is not None:
            return cast(S, done)
        changes: dict[str, object] = {}
        for f in fields(node):
            old = getattr(node, f.name)
            new = self._expand_value(old)
            if new is not old:
                changes[f.name] = new
        return replace(node, **changes) if changes else node  # type: ignore[arg-type]

    def _expand_value(self, value: object) -> object:
        if isinstance(value, syntax.Syntax):
            return self.expand(value)
        if isinstance(value, tuple) and value and not isinstance(value[0], int | str):
            new = tuple(self._expand_value(v) for v in value)
            return new if any(a is not b for a, b in zip(new, value)) else value
        return value


def cut(text: str) -> str:
    """A text on one line, as far as names and errors show it."""
    written = " ".join(text.split())
    return written if len(written) <= _SNIPPET else written[: _SNIPPET - 2] + ".."


def tables_named(root: syntax.Syntax, but_unread: bool = False) -> list[str]:
    """The streams, relations and views that a statement names, lower-case, each once: no common tables of its WITHs.

    but_unread: without those that only common tables name which nothing reads.
    """
    found: dict[str, None] = {}
    pending: list[tuple[syntax.Syntax, _Common]] = [(root, {})]
    read: set[int] = set()
    while pending:
        node, common = pending.pop()
        for part in parts(node, syntax.With):
            if isinstance(part, syntax.TableRef):
                known = common.get(part.name.lower())
                if known is None:
                    found.setdefault(part.name.lower())
                elif but_unread and id(known[0]) not in read:
                    read.add(id(known[0]))
                    pending.append(known)
            if isinstance(part, syntax.With):
                inner = common
                for table in part.tables:
                    if not but_unread:
                        pending.append((table.query, inner))
                    inner = {**inner, table.name.lower(): (table.query, inner)}
                pending.append((part.query, inner))
    return list(found)


_Common: TypeAlias = dict[str, tuple[syntax.Query, "_Common"]]
"""Common tables by name, each with those that its query sees."""


def parts(root: syntax.Syntax, but_in: type[syntax.Syntax] | UnionType | None = None) -> Iterator[syntax.Syntax]:
    """The node and everything inside it, in the order of the text, but what is inside queries of a kind."""
    pending: list[object] = [root]
    while pending:
        value = pending.pop()
        if isinstance(value, tuple):
            pending.extend(reversed(value))
        elif isinstance(value, syntax.Syntax):
            yield value
            if isinstance(value, syntax.LiteralList):
                continue  # nothing of the tree is inside
            if but_in is None or not isinstance(value, but_in):
                pending.extend(map(value.__dict__.get, _last_first(type(value))))  # type: ignore[arg-type]


@cache
def _last_first(node: Any) -> tuple[str, ...]:
    """The fields of a class of nodes but where it stands in the text, from the last to the first."""
    return tuple(f.name for f in reversed(fields(node)) if f.name not in ("span", "name_span"))
