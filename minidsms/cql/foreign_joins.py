"""Joins of other systems as the query that they mean here: hints for errors.

Flink: FOR SYSTEM_TIME AS OF.  PostgreSQL: LATERAL.  Flink, Oracle, Trino: MATCH_RECOGNIZE. What is shown has the
names that are written; where a text is more than these forms, "" is.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from minidsms.aggregates import AGGREGATES, SYNONYMS

_NAME = r'(?:[^\W\d]\w*|"[^"]+"|`[^`]+`)'
_COLUMN = rf"{_NAME}(?:\.{_NAME})?"
_NO_ALIAS = r"(?!(?:LEFT|INNER|JOIN|ON|USING|FOR)\b)"
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
_LATERAL = re.compile(
    rf"(?:,|\b(?P<kind>CROSS|INNER|LEFT)?\s*(?:OUTER\s+)?JOIN|\b(?P<apply>CROSS|OUTER)\s+APPLY)\s+(?:LATERAL\s*)?"
    rf"\(\s*SELECT\s+(?P<items>[^;]*?)\s+FROM\s+(?P<inner>{_NAME}(?:\s*\[[^]]*\])?)(?:\s+(?:AS\s+)?"
    rf"(?P<inner_as>(?!WHERE\b){_NAME}))?\s+WHERE\s+(?P<a>{_COLUMN})\s*=\s*(?P<b>{_COLUMN})"
    rf"(?:\s+ORDER\s+BY\s+(?P<order>[^;()]*?)\s+LIMIT\s+(?P<limit>\d+))?\s*\)\s*(?:AS\s+)?(?P<name>(?!ON\b){_NAME})",
    _FLAGS,
)
_PATTERN = re.compile(
    rf"\bFROM\s+(?P<stream>{_NAME})\s+MATCH_RECOGNIZE\s*\((?:\s*PARTITION\s+BY\s+(?P<key>{_NAME}))?.*?"
    r"\bPATTERN\s*\((?P<pattern>[^()]*)\)",
    _FLAGS,
)
_NEAR = re.compile(r"\b(?:SYSTEM_TIME|LATERAL|APPLY|MATCH_RECOGNIZE)\b", re.IGNORECASE)
_LONGEST = 2000
"""Characters of a statement that are looked at."""
_AGGREGATED = re.compile(rf"\b(?:{'|'.join((*AGGREGATES, *SYNONYMS))})\s*\(", re.IGNORECASE)
_GROUPED = re.compile(rf"\b(?:GROUP\s+BY|OVER\s*\(|DISTINCT)|{_AGGREGATED.pattern}", re.IGNORECASE)
_SELECTED = re.compile(r"(?P<distinct>DISTINCT )?(?P<items>(?!.*\bOVER\b).*)$", re.IGNORECASE)
_COUNTED = re.compile(rf"\bCOUNT(?:_IF)?\s*\([^()]*\)(?:\s+AS\s+(?P<name>{_NAME}))?", re.IGNORECASE)
_OF_STREAMS = re.compile(r"(?P<operator>[IDR]STREAM)\s*\((?P<items>.*)\)$", _FLAGS)


def join_here(text: str, place: int) -> str:
    """What to write instead of the join at a place of the text; "" for any other."""
    if not _NEAR.search(text[max(0, place - 30) : place + 20]):
        return ""
    first = text.rfind(";", 0, place) + 1
    statement = " ".join(text[first : first + _LONGEST].partition(";")[0].split())
    forms: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
        (_AT_TIME, _at_time), (_LATERAL, _lateral), (_PATTERN, _pattern),
    )  # fmt: skip
    found = ((form.search(statement), written) for form, written in forms)
    return next((written(match) for match, written in found if match is not None), "")


def _at_time(found: re.Match[str]) -> str:
    """A relation as it is when the row comes."""
    write = _looked_up(found, f"ON {' '.join(found['on'].split())}")
    return f"write {write}; a stream {found['right']} stands with its window, [PARTITION BY key ROWS 1]"


def _looked_up(found: re.Match[str], condition: str) -> str:
    """The query that looks the rows of the left side up in the right one as they come."""
    left = f"{found['left']} [NOW]" + (f" AS {found['left_as']}" if found["left_as"] else "")
    right = found["right"] + (f" AS {found['right_as']}" if found["right_as"] else "")
    join = "LEFT JOIN" if (found["kind"] or "").upper().startswith("LEFT") else "JOIN"
    items, rest = " ".join(found["items"].split()), " ".join((found["rest"] or "").split())
    behind = f"FROM {left} {join} {right} {condition}{f' {rest}' if rest else ''}"
    if _GROUPED.search(f"{items} {rest}"):
        behind = behind.partition(" GROUP BY ")[0]
        return f"FROM (SELECT RSTREAM(..) {behind})"
    of_stream = _OF_STREAMS.match(items)
    return f"SELECT RSTREAM({of_stream['items'] if of_stream else items}) {behind}"


def _lateral(found: re.Match[str]) -> str:
    """A query that is grouped or ranked by the key that it is joined by."""
    inner = found["inner_as"] or re.split(r"[\s\[]", found["inner"])[0]
    key, other = (found["a"], found["b"]) if _is_of(found["a"], inner) else (found["b"], found["a"])
    select = _SELECTED.match(" ".join(found["items"].split()))
    if select is None or not _is_of(key, inner) or _is_of(other, inner):
        return ""
    distinct, items = select["distinct"] or "", select["items"]
    of_rows = _AGGREGATED.search(items) is not None
    if found["limit"] and (of_rows or distinct):
        return ""
    bare, name = key.rpartition(".")[2], found["name"]
    kind = (found["kind"] or found["apply"] or "").upper()
    join = "LEFT JOIN" if kind in ("LEFT", "OUTER") else "JOIN"
    if of_rows:  # one row for each of those outside
        join = "LEFT JOIN"
    source = found["inner"] + (f" AS {inner}" if found["inner_as"] else "")
    if found["limit"]:
        ranked = (
            f"ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {' '.join(found['order'].split())}) <= {found['limit']}"
        )
        query = f"SELECT {key} AS {name}_{bare}, {items} FROM {source} QUALIFY {ranked}"
    else:
        grouped = f" GROUP BY {key}" if of_rows else ""
        query = f"SELECT {distinct}{key} AS {name}_{bare}, {items} FROM {source}{grouped}"
    counted = _COUNTED.search(items)
    of_none = f"; COALESCE({name}.{counted['name'] or 'n'}, 0) is the count, 0 of no rows" if counted else ""
    return f"join a query that shows its key: {join} ({query}) AS {name} ON {name}.{name}_{bare} = {other}{of_none}"


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


def _is_of(column: str, table: str) -> bool:
    return column.lower().startswith(f"{table.lower()}.")
