"""Windows as other systems write them, as the window behind the stream that they mean: hints for errors.

Flink: TABLE(TUMBLE(TABLE S, DESCRIPTOR(ts), INTERVAL '1' HOUR)), GROUP BY TUMBLE(ts, INTERVAL '1' HOUR).  RisingWave:
TUMBLE(S, ts, INTERVAL '1 hour').  ksqlDB: S WINDOW TUMBLING (SIZE 1 HOUR).  Azure: TumblingWindow(hour, 1).
Spark: window(ts, '1 hour').  Esper: S#time(1 hour), S.win:time(1 hour).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAME = r'(?:[^\W\d]\w*|"[^"]+"|`[^`]+`)'
_LENGTH = re.compile(
    r"INTERVAL\s*'\s*(?P<n>\d+)\s*'?\s*(?P<unit>[a-z]+)|\b(?P<n2>\d+)\s+(?P<unit2>[a-z]+)", re.IGNORECASE
)
_FROM = re.compile(rf"\b(?:FROM|JOIN)\s+(?P<stream>{_NAME})", re.IGNORECASE)
_GROUPED = re.compile(
    r"\bGROUP\s+BY\s+(?P<keys>.*?)(?:\b(?:HAVING|QUALIFY|EMIT|ORDER|LIMIT|UNION|INTO|INTERSECT|EXCEPT)\b|;|$)",
    re.IGNORECASE | re.DOTALL,
)
_KEY = re.compile(rf"(?:^|,)\s*(?P<key>{_NAME}(?:\.{_NAME})?)\s*(?=,|$)")
_PARTITIONED = re.compile(rf"\bPARTITION\s+BY\s+(?P<key>{_NAME})", re.IGNORECASE)
_FORMS = (
    re.compile(
        r"(?:\b(?P<before>FROM|JOIN)\s+)?\bTABLE\s*\(\s*(?P<kind>TUMBLE|HOP|SESSION)\s*\(\s*"
        rf"(?:DATA\s*=>\s*)?TABLE\s+(?P<stream>{_NAME})(?P<rest>[^()]*(?:\([^()]*\)[^()]*)*)\)\s*\)",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?P<before>FROM|JOIN)\s+(?P<kind>TUMBLE|HOP|SESSION)\s*\(\s*(?P<stream>{_NAME})\s*,(?P<rest>[^()]*)\)",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?P<before>FROM|JOIN)\s+(?P<stream>{_NAME})(?P<alias>\s+(?:AS\s+)?{_NAME})??\s+WINDOW\s+"
        r"(?P<kind>TUMBLING|HOPPING|SESSION)\s*\((?P<rest>[^()]*)\)",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?P<kind>TUMBLE|HOP|SESSION_WINDOW|SESSION|WINDOW)\s*\(\s*[\w.]+\s*,(?P<rest>[^()]*)\)", re.IGNORECASE
    ),
    re.compile(r"\b(?P<kind>TUMBLING|HOPPING|SESSION|SLIDING)WINDOW\s*\((?P<rest>[^()]*)\)", re.IGNORECASE),
)
_BOUNDS = re.compile(
    r"\bWINDOW(START|END)\b|\b(?:TUMBLE|HOP|SESSION)_(START|END)\s*\([^()]*\)"
    r"|\b(?:SESSION_)?WINDOW(?:\s*\([^()]*\))?\.(START|END)\b",
    re.IGNORECASE,
)
"""In ksqlDB, Flink and Spark."""
EMIT = re.compile(r"\s*\bEMIT\s+(?:CHANGES|FINAL)(?:\s+LIMIT\s+\d+)?\s*$", re.IGNORECASE)
_BETWEEN = re.compile(r"""('[^']*'|"[^"]*"|`[^`]*`)|(?:\s|--[^\n]*|#[^\n]*|/\*.*?\*/)+""", re.DOTALL)
LOOKED_AT = 2000
"""Characters of a statement that are looked at: to seek in it takes as many steps as their square."""
_LONGEST = 400
"""Characters of a statement that a hint shows whole."""
NAMES = frozenset(
    {"tumble", "hop", "session", "tumblingwindow", "hoppingwindow", "sessionwindow", "slidingwindow", "window"}
    | {"session_window"}
)
"""Functions that elsewhere make windows."""


VIEW_OF_ESPER = r"(?:\w+(?:[.:]\w+)?\(|(?i:lastevent|keepall|firstevent)\b)"
"""What behind a name and `#` is a view, and no comment."""
_ESPER = re.compile(
    rf"(?P<stream>{_NAME})(?P<views>(?:(?:#(?:window[.:])?|\.(?:win|std)\s*:)\s*\w+\b\s*(?:\([^()]*\))?)+)",
    re.IGNORECASE,
)
_NAMED_WINDOW = re.compile(r"\bCREATE\s+WINDOW\s+\Z", re.IGNORECASE)
_READ_INTO_WINDOW = re.compile(rf"\s*\bAS\s+(?:SELECT\s+\*\s+FROM\s+)?(?P<stream>{_NAME})", re.IGNORECASE)
_VIEW = re.compile(r"[#.:]\s*(?P<view>\w+)\b\s*(?:\((?P<rest>[^()]*)\)|(?![\w(.:]))")
_ESPER_LENGTH = re.compile(r"(?P<n>\d+(?:\.\d+)?)(?:\s*(?P<unit>[a-z]+))?$", re.IGNORECASE)
_ESPER_UNITS = {
    word: unit
    for unit, words in {
        "MILLISECONDS": "msec milliseconds millisecond",
        "SECONDS": "s sec second seconds",
        "MINUTES": "min minute minutes",
        "HOURS": "hour hours",
        "DAYS": "day days",
    }.items()
    for word in words.split()
}


def esper_window(text: str, place: int) -> str:
    """The stream with the window that Esper writes by a view, at a place of the text; "" for anything else."""
    for found in _ESPER.finditer(text, max(0, place - 100), place + 100):
        if found.start() <= place <= found.end():
            views = [(view["view"].lower(), (view["rest"] or "").strip()) for view in _VIEW.finditer(found["views"])]
            window = _of_views(views)
            named = _NAMED_WINDOW.search(text, 0, found.start())
            read = _READ_INTO_WINDOW.match(text, found.end())
            if named is not None and read is not None and window[0] == "[":
                return f"CREATE VIEW {found['stream']} AS SELECT * FROM {read['stream']} {window}"
            return f"{found['stream']} {window}"
    return ""


def _of_views(views: Sequence[tuple[str, str]]) -> str:
    """The window of views with what stands in their parentheses."""
    match views:
        case [("time" | "timebatch" | "time_batch" as view, length)] if meant := _of_esper(length):
            return f"[{'RANGE' if view == 'time' else 'TUMBLE'} {meant}]"
        case [("ext_timed" | "externaltime", arguments)] if meant := _of_esper(arguments.rpartition(",")[2].strip()):
            return f"[RANGE {meant}]"
        case [("length", rows)] if rows.isdecimal():
            return f"[ROWS {rows}]"
        case [("lengthbatch" | "length_batch", rows)] if rows.isdecimal():
            return f"[ROWS {rows} SLIDE {rows}]"
        case [("lastevent", _)]:
            return "[ROWS 1]"
        case [("unique", keys)] if keys:
            return f"[PARTITION BY {keys} ROWS 1]"
        case [("groupwin", keys), ("length", rows)] if keys and rows.isdecimal():
            return f"[PARTITION BY {keys} ROWS {rows}]"
        case [("keepall", _)]:
            return "[RANGE UNBOUNDED]"
    return "with its window in brackets: [RANGE 30 SECONDS], [TUMBLE 30 SECONDS], [ROWS 10], [PARTITION BY k ROWS 1]"


def _of_esper(length: str) -> str:
    """A length of time, in seconds where it has no unit; "" for any other text."""
    found = _ESPER_LENGTH.match(length)
    unit = None if found is None else _ESPER_UNITS.get((found["unit"] or "s").lower())
    return "" if found is None or unit is None else f"{found['n']} {unit}"


def window_here(text: str, place: int) -> str:
    """The statement, or its FROM, with the window that is meant by the text at a place, which is of another system; ""
    for any other.
    """
    for form in _FORMS:
        for found in form.finditer(text):
            if found.start() <= place <= found.end() and (behind := _written(text, found)):
                statement = statement_at(text, found.start())
                whole = with_windows_behind(on_one_line(statement)) if len(statement) <= LOOKED_AT else ""
                return whole if len(whole) <= _LONGEST and behind in whole else behind
    return ""


def with_windows_behind(statement: str) -> str:
    """The statement with windows behind their streams, and their bounds by name, which are keys of groups. Of several
    SELECTs the windows that stand in FROM alone.
    """
    if len(statement) > LOOKED_AT:
        return statement
    statement = EMIT.sub("", statement)
    for form in _FORMS:
        if "before" in form.groupindex:
            statement = form.sub(lambda found: _written(found.string, found) or found[0], statement)
    if len(re.findall(r"\bSELECT\b", statement, re.IGNORECASE)) > 1:
        return statement
    statement = _BOUNDS.sub(lambda found: f"window_{next(filter(None, found.groups())).lower()}", statement)
    call = next((found for form in _FORMS if (found := form.search(statement)) is not None), None)
    read = list(_FROM.finditer(statement))
    if call is not None and len(read) == 1 and (behind := _written(statement, call)) and "[RANGE" not in behind:
        before, after = statement[: read[0].start()], statement[read[0].end() :]
        statement = before + (read[0][0] if after.lstrip().startswith("[") else behind) + after
        statement = statement.replace(call[0], "window_start")
    grouped = _GROUPED.search(statement)
    if grouped is None:
        return statement
    bounds = [
        f"window_{end}" for end in ("start", "end") if re.search(rf"\bwindow_{end}\b", statement[: grouped.start()])
    ]
    keys = ", ".join([grouped["keys"].strip(), *(b for b in bounds if b not in grouped["keys"])])
    rest = statement[grouped.end("keys") :]
    return f"{statement[: grouped.start('keys')]}{keys}{f' {rest}' if rest else ''}"


def statement_at(text: str, place: int) -> str:
    """The one that stands there."""
    return text[text.rfind(";", 0, place) + 1 :].partition(";")[0]


def on_one_line(statement: str) -> str:
    """The same without comments, on one line but for what stands in quotes."""
    return _BETWEEN.sub(lambda found: found[1] or " ", statement).strip()


def _written(text: str, found: re.Match[str]) -> str:
    groups = found.groupdict("")
    kind = groups["kind"].upper()
    statement = statement_at(text, found.start())
    streams = {groups["stream"]} if groups.get("stream") else {m["stream"] for m in _FROM.finditer(statement)}
    lengths = _azure_lengths(groups["rest"]) or _lengths(groups["rest"])
    if len(streams) != 1 or not lengths:
        return ""
    window = ""
    if kind in ("HOPPING", "WINDOW") and len(lengths) > 1:  # ksqlDB, Azure and Spark have the size first ..
        window = f"HOP {lengths[0]} EVERY {lengths[1]}"
    elif kind == "HOP" and len(lengths) == 2:  # .. and Flink and RisingWave the step
        window = f"HOP {lengths[1]} EVERY {lengths[0]}"
    elif kind == "SLIDING":
        window = f"RANGE {lengths[0]}"
    elif kind.startswith("SESSION"):
        keys = _keys(statement, groups["rest"])
        window = f"SESSION {lengths[0]}{f' PARTITION BY {keys}' if keys else ''}"
    elif kind.startswith("TUMBL") or kind == "WINDOW":
        window = f"TUMBLE {lengths[0]}"
    before = groups.get("before") or "FROM"
    return f"{before} {streams.pop()} [{window}]{groups.get('alias', '')}" if window else ""


def _lengths(rest: str) -> Sequence[str]:
    return [f"{m['n'] or m['n2']} {(m['unit'] or m['unit2']).upper()}" for m in _LENGTH.finditer(rest)]


def _azure_lengths(rest: str) -> Sequence[str]:
    """`minute, 5` and `second, 10, 5`."""
    unit, *numbers = (part.strip() for part in rest.split(","))
    return [f"{n} {unit.upper()}" for n in numbers] if unit.isalpha() and all(n.isdecimal() for n in numbers) else []


def _keys(statement: str, rest: str) -> str:
    """The keys of sessions: those of PARTITION BY, or the names behind GROUP BY."""
    partitioned = _PARTITIONED.search(rest)
    if partitioned is not None:
        return partitioned["key"]
    grouped = _GROUPED.search(statement)
    return ", ".join(m["key"] for m in _KEY.finditer(grouped["keys"].strip())) if grouped is not None else ""
