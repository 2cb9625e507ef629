"""Join plans that are written out: `SET join_plan = '((R, S), T)'`.

A plan is a tree over the names of the FROM items: two in parentheses are joined by an XJoin's join, whose result is
kept, more by an MJoin; what the outermost parentheses join is the answer, of which nothing is kept.

Invariant: what `written_tree` accepts is read the same by `tree_over`.  Babu 2005, section 5.3.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from minidsms.cql.errors import CqlError
from minidsms.cql.scope import listing

WrittenTree = str | tuple["WrittenTree", ...]
Tree = int | tuple["Tree", ...]

WORDS = ("mjoin", "xjoin", "auto")
_TOKEN = re.compile(r"\s*(?:([(),])|`([^`]+)`|([^\s(),`]+(?: \d+)?))")
_MOST_NESTED = 50


class WrittenPlanError(ValueError):
    """A text that is no plan. span: (start, end) of what is wrong in it."""

    def __init__(self, reason: str, span: tuple[int, int]) -> None:
        super().__init__(reason)
        self.span = span


@dataclass(frozen=True)
class _Token:
    """mark: a parenthesis or comma, or "" for a name.  start, end: where it stands."""

    mark: str
    name: str
    start: int
    end: int

    @property
    def place(self) -> int:
        """Of its first character, from 1."""
        return self.start + 1

    def error(self, reason: str) -> WrittenPlanError:
        """What is wrong with it."""
        return WrittenPlanError(reason, (self.start, self.end))


def checked_plan(value: object) -> str:
    """A value of the setting in its proper form; ValueError with the reason where it is none."""
    text = str(value).strip()
    if text.lower() in WORDS:
        return text.lower()
    if not text.startswith("("):
        raise ValueError(f"choose one of: {', '.join(WORDS)}; or write a plan out, such as '((R, S), T)'")
    written_tree(text)
    return text


def written_tree(text: str) -> WrittenTree:
    """The tree of names that a text means; WrittenPlanError where it is none."""
    tokens = _tokens(text)
    tree, end = _node(tokens, 0, text, 0)
    if end < len(tokens):
        raise tokens[end].error(f"nothing may follow the last parenthesis, at character {tokens[end].place}")
    return tree


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            reason = f"character {at + 1} begins no name and is neither a comma nor a parenthesis"
            raise WrittenPlanError(reason, (at, at + 1))
        mark, quoted, bare = found.groups()
        tokens.append(_Token(mark or "", quoted or bare or "", found.start(found.lastindex or 0), found.end()))
        at = found.end()
    return tokens


def _node(tokens: Sequence[_Token], at: int, text: str, depth: int) -> tuple[WrittenTree, int]:
    def missing(what: str) -> WrittenPlanError:
        return WrittenPlanError(f"{what} is missing at the end", (max(0, len(text) - 1), len(text)))

    if at >= len(tokens):
        raise missing("a name or a parenthesis")
    first = tokens[at]
    if depth > _MOST_NESTED:
        raise first.error(f"more than {_MOST_NESTED} parentheses stand within each other")
    if not first.mark:
        return first.name, at + 1
    if first.mark != "(":
        raise first.error(f"a name or ( should stand at character {first.place}, not {first.mark}")
    children: list[WrittenTree] = []
    while True:
        child, at = _node(tokens, at + 1, text, depth + 1)
        children.append(child)
        if at >= len(tokens):
            raise missing("a closing parenthesis")
        if tokens[at].mark == ")":
            break
        if tokens[at].mark != ",":
            raise tokens[at].error(f", or ) should stand at character {tokens[at].place}")
    if len(children) < 2:
        reason = f"the parentheses at character {first.place} join one input only"
        raise WrittenPlanError(reason, (first.start, tokens[at].end))
    return tuple(children), at + 1


def tree_over(text: str, names: Sequence[str]) -> Tree:
    """The plan over the inputs of these names; CqlError where it is not one of each."""
    numbers = {name.lower(): i for i, name in enumerate(names)}
    used: list[str] = []

    def numbered(tree: WrittenTree) -> Tree:
        if isinstance(tree, tuple):
            return tuple(map(numbered, tree))
        if tree.lower() not in numbers:
            raise _error(text, f'names "{tree}", which the join does not have', names, _spans(text, tree)[0])
        if tree.lower() in used:
            raise _error(text, f'has "{tree}" twice', names, _spans(text, tree)[1])
        used.append(tree.lower())
        return numbers[tree.lower()]

    tree = numbered(written_tree(text))
    missing = [name for name in names if name.lower() not in used]
    if missing:
        raise _error(text, f"lacks {listing(missing)}", names, (0, len(text)))
    return tree


def _spans(text: str, name: str) -> list[tuple[int, int]]:
    """Where a name stands in a plan."""
    return [(t.start, t.end) for t in _tokens(text) if not t.mark and t.name.lower() == name.lower()]


def _error(text: str, what: str, names: Sequence[str], span: tuple[int, int]) -> CqlError:
    return CqlError(
        f"join_plan {what}",
        text,
        span,
        note=f"this query joins: {listing(names)}",
        hint="write a plan over these, or SET join_plan = mjoin",
    )
