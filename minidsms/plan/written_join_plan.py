"""Join plans that are written out: `SET join_plan = '((R, S), T)'`.

A plan is a tree over the names of the FROM items: two in parentheses are joined by an XJoin's join, whose result is
kept, more by an MJoin; what the outermost parentheses join is the answer, of which nothing is kept.

Invariant: what `written_tree` accepts is read the same by `tree_over`.  Babu 2005, section 5.3.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from minidsms.cql.errors import CqlError
from minidsms.cql.scope import listing

WrittenTree = str | tuple["WrittenTree", ...]
Tree = int | tuple["Tree", ...]

WORDS = ("mjoin", "xjoin", "auto")
_TOKEN = re.compile(r"\s*(?:([(),])|`([^`]+)`|([^\s(),`]+(?: \d+)?))")
_MOST_NESTED = 50


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
    """The tree of names that a text means; ValueError with the place where it is none."""
    tokens: list[tuple[str, str, int]] = []
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"character {at + 1} begins no name and is neither a comma nor a parenthesis")
        mark, quoted, bare = found.groups()
        tokens.append((mark or "", quoted or bare or "", found.start(found.lastindex or 0) + 1))
        at = found.end()
    tree, end = _node(tokens, 0, text, 0)
    if end < len(tokens):
        raise ValueError(f"nothing may follow the last parenthesis, at character {tokens[end][2]}")
    return tree


def _node(tokens: Sequence[tuple[str, str, int]], at: int, text: str, depth: int) -> tuple[WrittenTree, int]:
    if depth > _MOST_NESTED:
        raise ValueError(f"more than {_MOST_NESTED} parentheses stand within each other")
    if at >= len(tokens):
        raise ValueError("a name or a parenthesis is missing at the end")
    mark, name, place = tokens[at]
    if not mark:
        return name, at + 1
    if mark != "(":
        raise ValueError(f"a name or ( should stand at character {place}, not {mark}")
    children: list[WrittenTree] = []
    while True:
        child, at = _node(tokens, at + 1, text, depth + 1)
        children.append(child)
        if at >= len(tokens):
            raise ValueError("a closing parenthesis is missing at the end")
        mark, _, end = tokens[at]
        if mark == ")":
            break
        if mark != ",":
            raise ValueError(f", or ) should stand at character {end}")
    if len(children) < 2:
        raise ValueError(f"the parentheses at character {place} join one input only")
    return tuple(children), at + 1


def tree_over(text: str, names: Sequence[str]) -> Tree:
    """The plan over the inputs of these names; CqlError where it is not one of each."""
    numbers = {name.lower(): i for i, name in enumerate(names)}
    used: list[str] = []

    def numbered(tree: WrittenTree) -> Tree:
        if isinstance(tree, tuple):
            return tuple(map(numbered, tree))
        if tree.lower() not in numbers:
            raise _error(text, f'names "{tree}", which the join does not have', names)
        if tree.lower() in used:
            raise _error(text, f'has "{tree}" twice', names)
        used.append(tree.lower())
        return numbers[tree.lower()]

    tree = numbered(written_tree(text))
    missing = [name for name in names if name.lower() not in used]
    if missing:
        raise _error(text, f"lacks {listing(missing)}", names)
    return tree


def _error(text: str, what: str, names: Sequence[str]) -> CqlError:
    return CqlError(
        f"join_plan {text} {what}",
        note=f"this query joins: {listing(names)}",
        hint="write a plan over these, or SET join_plan = mjoin",
    )
