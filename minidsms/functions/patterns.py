"""Regular expressions, in time linear in the text, by RE2 (https://github.com/google/re2/wiki/Syntax).

A pattern is a literal: it is read once, when the query is, and an error in it is an error of the query. No pattern and
no text can make one run for longer than their lengths say.
"""

from __future__ import annotations

import functools
from typing import Any

from minidsms.elements import Type
from minidsms.functions.function import Function, fixed

_TEXT = Type.TEXT
_MOST_GROUPS = 9
_OPTIONS = "cimsg"


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str, options: str = "c") -> Any:
    """options: c and i, case counts or does not; m, ^ and $ at lines; s, a dot is any character (as in DuckDB)."""
    import re2  # loads a library that most queries never need

    flags = "".join(flag for flag in "ims" if flag in options)
    settings = re2.Options()
    settings.log_errors = False
    return re2.compile(f"(?{flags}){pattern}" if flags else pattern, settings)


def pattern_problem(value: Any) -> str | None:
    import re2

    try:
        _compiled(value)
    except re2.error as problem:
        told = problem.args[0] if problem.args else ""
        return f"the regular expression is wrong: {told.decode() if isinstance(told, bytes) else told}"
    return None


def _options(value: Any) -> str | None:
    if all(option in _OPTIONS for option in value):
        return None
    return "options are c, i (case counts or not), m (lines), s (a dot is any character), g (replace all)"


def _group(value: Any) -> str | None:
    return None if 0 <= value <= _MOST_GROUPS else f"a group is a number from 0 to {_MOST_GROUPS}"


def matches(text: str, pattern: str, options: str = "c") -> bool:
    return _compiled(pattern, options).search(text) is not None


def _matches_whole(text: str, pattern: str, options: str = "c") -> bool:
    return _compiled(pattern, options).fullmatch(text) is not None


def _extract(text: str, pattern: str, group: int = 0, options: str = "c") -> str:
    expression = _compiled(pattern, options)
    found = expression.search(text)
    if found is None or group > expression.groups:
        return ""
    return found[group] or ""


def _replace(text: str, pattern: str, new: str, options: str = "c") -> str:
    r"""`\0` to `\9` in the new text are the groups of the match, `\\` is a backslash."""
    expression = _compiled(pattern, options)

    def written(match: Any) -> str:
        return _filled(new, match, expression.groups)

    result: str = expression.sub(written, text, 0 if "g" in options else 1)
    return result


def _filled(new: str, match: Any, groups: int) -> str:
    parts, i = [], 0
    while i < len(new):
        follows = new[i + 1] if new[i] == "\\" and i + 1 < len(new) else ""
        if follows in tuple("0123456789"):
            parts.append((match[int(follows)] or "") if int(follows) <= groups else "")
        else:
            parts.append(follows or new[i])
        i += 2 if follows else 1
    return "".join(parts)


def _extract_all(text: str, pattern: str, group: int = 0, options: str = "c") -> tuple[str, ...]:
    expression = _compiled(pattern, options)
    if group > expression.groups:
        return ()
    return tuple(found[group] or "" for found in expression.finditer(text))


def _split(text: str, pattern: str, options: str = "c") -> tuple[str, ...]:
    """The parts between matches; one of no characters is none."""
    parts, at = [], 0
    for found in _compiled(pattern, options).finditer(text):
        if found.end() > found.start():
            parts.append(text[at : found.start()])
            at = found.end()
    return (*parts, text[at:])


_CHECKS = {1: pattern_problem, 2: _options}

FUNCTIONS = (
    Function(
        "regexp_matches",
        2,
        3,
        fixed(Type.BOOLEAN, _TEXT),
        "TEXT, a pattern and optionally options",
        "whether the pattern is somewhere in the text; options 'i' (case does not count), 'm', 's'",
        ("REGEXP_MATCHES('error 404', '[0-9]{3}')", "true"),
        matches,
        literals=_CHECKS,
    ),
    Function(
        "regexp_full_match",
        2,
        3,
        fixed(Type.BOOLEAN, _TEXT),
        "TEXT, a pattern and optionally options",
        "whether the whole text matches the pattern",
        ("REGEXP_FULL_MATCH('error 404', '[0-9]{3}')", "false"),
        _matches_whole,
        literals=_CHECKS,
    ),
    Function(
        "regexp_extract",
        2,
        4,
        fixed(_TEXT, _TEXT, _TEXT, Type.INTEGER, _TEXT),
        "TEXT, a pattern and optionally a group and options",
        "the first match, or a group of it; '' if there is none",
        ("REGEXP_EXTRACT('GET /a 200', '([A-Z]+) ([^ ]+)', 2)", "'/a'"),
        _extract,
        literals={1: pattern_problem, 2: _group, 3: _options},
    ),
    Function(
        "regexp_replace",
        3,
        4,
        fixed(_TEXT, _TEXT),
        "TEXT, a pattern, a new text and optionally options",
        r"the first match replaced, with option 'g' all of them; \1 in the new text is what the first group holds",
        (r"REGEXP_REPLACE('a-b-c', '-(.)', '+\1', 'g')", "'a+b+c'"),
        _replace,
        literals={1: pattern_problem, 3: _options},
    ),
    Function(
        "regexp_extract_all", 2, 4, fixed(_TEXT.list_type, _TEXT, _TEXT, Type.INTEGER, _TEXT),
        "TEXT, a pattern and optionally a group and options", "the list of all matches, or of a group of each",
        ("REGEXP_EXTRACT_ALL('a1 b22', '[0-9]+')", "['1', '22']"), _extract_all,
        literals={1: pattern_problem, 2: _group, 3: _options},
    ),
    Function(
        "regexp_split_to_array", 2, 3, fixed(_TEXT.list_type, _TEXT), "TEXT, a pattern and optionally options",
        "the parts between matches of the pattern",
        ("REGEXP_SPLIT_TO_ARRAY('a, b;c', '[,;] ?')", "['a', 'b', 'c']"), _split, literals=_CHECKS,
    ),
    Function(
        "regexp_count", 2, 3, fixed(Type.INTEGER, _TEXT), "TEXT, a pattern and optionally options",
        "the number of matches of the pattern", ("REGEXP_COUNT('a1 b22', '[0-9]')", "3"),
        lambda text, pattern, options="c": sum(1 for _ in _compiled(pattern, options).finditer(text)), literals=_CHECKS,
    ),
)  # fmt: skip
