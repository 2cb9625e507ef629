"""Joins of other systems as the query that they mean here: hints for errors.

Flink: FOR SYSTEM_TIME AS OF.  SQL Server: APPLY.  Flink, Oracle, Trino: MATCH_RECOGNIZE. What is shown has the
names that are written; where a text is more than these forms, "" is.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from minidsms.aggregates import AGGREGATES, SYNONYMS
from minidsms.cql.foreign_windows import EMIT, LOOKED_AT, on_one_line, statement_at

_NAME = r'(?:[^\W\d]\w*|"[^"]+"|`[^`]+`)'
_COLUMN = rf"{_NAME}(?:\.{_NAME})?"
_NO_ALIAS = r"(?!(?:LEFT|INNER|JOIN|ON|USING|FOR|WITHIN)\b)"
_SIDE = rf"(?P<{{0}}>{_NAME})(?:\s+(?:AS\s+)?(?P<{{0}}_as>{_NO_ALIAS}{_NAME}))?"
_KIND = r"(?P<kind>LEFT\s+(?:OUTER\s+)?|INNER\s+)?"
_HEAD = rf"\bSELECT\s+(?P<items>[^;]*?)\s+FROM\s+{_SIDE.format('left')}\s+"
_TAIL = r"(?P<rest>\s+(?:WHERE|GROUP|HAVING|QUALIFY|ORDER|EMIT)\b[^;]*?)?\s*(?:;|$)"
_FLAGS = re.IGNORECASE | re.DOTALL

_AT_TIME = re.compile(
    rf"{_HEAD}{_KIND}JOIN\s+(?P<right>{_NAME})\s+FOR\s+SYSTEM_TIME\s+AS\s+OF\s+(?:{_COLUMN}|PROCTIME\s*\(\s*\))"
    rf"(?:\s+(?:AS\s+)?(?P<right_as>(?!ON\b){_NAME}))?\s+ON\s+(?P<on>[^;()]*?){_TAIL}",
    _FLAGS,
)
_WITHIN = re.compile(
    rf"{_HEAD}{_KIND}JOIN\s+{_SIDE.format('right')}\s+WITHIN\s+(?P<length>\d+\s+\w+)"
    rf"(?:\s+GRACE\s+PERIOD\s+\d+\s+\w+)?\s+ON\s+(?P<on>[^;()]*?){_TAIL}",
    _FLAGS,
)
_APPLY = re.compile(r"\b(?P<kind>CROSS|OUTER)\s+APPLY\b", _FLAGS)
_PATTERN = re.compile(
    rf"\bFROM\s+(?P<stream>{_NAME})\s+MATCH_RECOGNIZE\s*\((?:\s*PARTITION\s+BY\s+(?P<key>{_NAME}))?.*?"
    r"\bPATTERN\s*\((?P<pattern>[^()]*)\)",
    _FLAGS,
)
_NEAR = re.compile(r"\b(?:SYSTEM_TIME|APPLY|MATCH_RECOGNIZE|WITHIN)\b", re.IGNORECASE)
_AGGREGATED = re.compile(rf"\b(?:{'|'.join((*AGGREGATES, *SYNONYMS))})\s*\(", re.IGNORECASE)
_GROUPED = re.compile(rf"\b(?:GROUP\s+BY|OVER\s*\(|DISTINCT)|{_AGGREGATED.pattern}", re.IGNORECASE)
_OF_STREAMS = re.compile(r"(?P<operator>[IDR]STREAM)\s*\((?P<items>.*)\)$", _FLAGS)


def join_here(text: str, place: int) -> str:
    """What to write instead of the join at a place of the text; "" for any other."""
    if not _NEAR.search(text[max(0, place - 30) : place + 20]):
        return ""
    statement = statement_at(text, place)
    forms: list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]] = [(_APPLY, _apply), (_PATTERN, _pattern)]
    if len(statement) <= LOOKED_AT:  # they are of all that it says
        forms[:0] = [(_AT_TIME, _at_time), (_WITHIN, _within)]
    looked_at = on_one_line(statement[:LOOKED_AT])
    found = ((form.search(looked_at), written) for form, written in forms)
    return next((written(match) for match, written in found if match is not None), "")


def _at_time(found: re.Match[str]) -> str:
    """A relation as it is when the row comes."""
    write = _looked_up(found, f"ON {found['on']}")
    return f"write {write}; a stream {found['right']} stands with its window, [PARTITION BY key ROWS 1]"


def with_windows_within(query: str) -> str:
    """The query with windows for WITHIN."""
    found = _WITHIN.match(query) if len(query) <= LOOKED_AT else None
    written = "" if found is None else _of_windows(found)
    return written if written.startswith("SELECT") else query


def _within(found: re.Match[str]) -> str:
    return f"a join holds rows by windows: {_of_windows(found)}"


def _of_windows(found: re.Match[str]) -> str:
    window = f" [RANGE {found['length']}]"
    return _joined(found, f"ON {found['on']}", window, window, "ISTREAM")


def _looked_up(found: re.Match[str], condition: str) -> str:
    """The query that looks the rows of the left side up in the right one as they come."""
    return _joined(found, condition, " [NOW]", "", "RSTREAM")


def _joined(found: re.Match[str], condition: str, left_window: str, right_window: str, operator: str) -> str:
    """The query with these windows and operator, or what is behind its FROM."""
    left = f"{found['left']}{left_window}" + (f" AS {found['left_as']}" if found["left_as"] else "")
    right = f"{found['right']}{right_window}" + (f" AS {found['right_as']}" if found["right_as"] else "")
    join = "LEFT JOIN" if (found["kind"] or "").upper().startswith("LEFT") else "JOIN"
    items, rest = found["items"], EMIT.sub("", found["rest"] or "").strip()
    behind = f"FROM {left} {join} {right} {condition}{f' {rest}' if rest else ''}"
    if _GROUPED.search(f"{items} {rest}"):
        behind = behind.partition(" GROUP BY ")[0]
        return f"FROM (SELECT {operator}(..) {behind})"
    of_stream = _OF_STREAMS.match(items)
    return f"SELECT {operator}({of_stream['items'] if of_stream else items}) {behind}"


def _apply(found: re.Match[str]) -> str:
    """The standard's words."""
    is_inner = found["kind"].upper() == "CROSS"
    return f"write {'CROSS JOIN LATERAL (..) AS x' if is_inner else 'LEFT JOIN LATERAL (..) AS x ON TRUE'}"


def _pattern(found: re.Match[str]) -> str:
    """Joins of the stream with itself, in the order of time, by the variables of the pattern."""
    names = re.findall(_NAME, found["pattern"])
    stream, key = found["stream"], found["key"]
    if len(names) < 2 or len({name.lower() for name in names}) < len(names):
        return ""
    *before, last = names
    text = f"FROM {stream} [RANGE 10 MINUTES] AS {before[0]}"
    for earlier, later in itertools.pairwise(names):
        window = "[NOW]" if later == last else "[RANGE 10 MINUTES]"
        same = f"{earlier}.{key} = {later}.{key} AND " if key else ""
        text += f" JOIN {stream} {window} AS {later} ON {same}{earlier}.ts < {later}.ts"
    by = f"PARTITION BY {key} " if key else ""
    return (
        f"rows in the order of time are joins: SELECT RSTREAM(..) {text}; of rows that follow one another directly "
        f"LAG(x) OVER ({by}ORDER BY ts) is the one before"
    )
