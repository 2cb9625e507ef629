"""Declarations of other systems in the words of this language, with the names that are written: hints for errors.

CREATE TABLE with columns is a RELATION, or with WATERMARK a STREAM; CREATE TABLE, STREAM or MATERIALIZED VIEW .. AS
SELECT is a VIEW.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from lark import Token

from minidsms.cql.foreign_joins import with_windows_within
from minidsms.cql.foreign_windows import with_windows_behind

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_LONGEST = 400
"""Characters of a statement that a hint shows whole."""
_BEFORE_KIND = frozenset({"OR", "REPLACE", "TEMP", "TEMPORARY", "MATERIALIZED", "EXTERNAL", "UNLOGGED", "LIVE"})
_BEHIND_TYPE = frozenset(
    {"PRIMARY", "NOT", "NULL", "DEFAULT", "UNIQUE", "CHECK", "REFERENCES", "CONSTRAINT", "GENERATED", "COLLATE", "KEY"}
)
_NO_COLUMN = frozenset({"PRIMARY", "CONSTRAINT", "FOREIGN", "UNIQUE", "CHECK", "WATERMARK", "LIKE", "INDEX"})
_TYPES = {
    **dict.fromkeys(("SERIAL", "BIGSERIAL"), "INTEGER"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "DATETIME"), "TIMESTAMP"),
    **dict.fromkeys(("UUID", "CLOB"), "TEXT"),
    "TIME": "TIME",
}
"""What types are called here whatever stands behind them: a number of digits, or WITH TIME ZONE."""
_BEGIN_QUERIES = frozenset({"SELECT", "WITH", "FROM"})


def declaration_here(tokens: Sequence[Token], text: str) -> str:
    """The statement that declares here what one of another system does there; "" where it is none of those above."""
    words = [token.upper() for token in tokens]
    kind_at = next((i for i in range(1, len(words)) if words[i] not in _BEFORE_KIND), len(words))
    kind = words[kind_at] if kind_at < len(words) else ""
    is_foreign = kind == "VIEW" and not {*words[1:kind_at]} <= {"OR", "REPLACE"}
    if kind not in ("TABLE", "STREAM") and not is_foreign:
        return ""
    at = kind_at + (4 if words[kind_at + 1 : kind_at + 4] == ["IF", "NOT", "EXISTS"] else 1)
    while words[at + 1 : at + 2] == ["."]:
        at += 2
    if at >= len(words):
        return ""
    name = _written(text, tokens[at : at + 1])
    behind = list(_at_depth_0(tokens[at + 1 :]))
    if is_foreign and behind and tokens[at + 1].type == "LPAR":
        name = _written(text, tokens[at : at + 2 + behind[0][0]])  # with the names of its columns
    query = next((i for i, token in behind if token.upper() == "AS"), None)
    if query is not None and _begins_query(words[at + 2 + query :]):
        created = "CREATE OR REPLACE VIEW" if "REPLACE" in words[:kind_at] else "CREATE VIEW"
        written = _written(text, tokens[at + 2 + query :])
        return _short(f"{created} {name} AS ", with_windows_behind(with_windows_within(written)))
    if kind != "TABLE" or words[at + 1 : at + 2] != ["("]:
        return ""
    return _of_table(name, list(_parts(tokens[at + 2 :])), text)


def _of_table(name: str, parts: Sequence[Sequence[Token]], text: str) -> str:
    columns, keys, ending = [], "", ""
    for part in parts:
        words = [token.upper() for token in part]
        if not part:
            continue
        if words[0] == "WATERMARK" and len(part) > 2:
            ending = f" TIMESTAMP BY {_written(text, part[2:3])}{_slack(part)}"
        key_at = next((i for i in range(len(words)) if words[i : i + 2] == ["PRIMARY", "KEY"]), None)
        if words[0] not in _NO_COLUMN:
            typed = list(takewhile(lambda token: token.upper() not in _BEHIND_TYPE, part[1:]))
            if not typed or typed[0].upper() == "AS":  # it is computed
                return ""
            type_ = _TYPES.get(typed[0].upper()) or _written(text, typed)
            columns.append(f"{_written(text, part[:1])} {type_}")
            if key_at is not None:
                keys = f" KEY ({_written(text, part[:1])})"
        elif key_at is not None:
            listed = list(takewhile(lambda token: token != ")", part[key_at + 2 :]))
            keys = f" KEY {_written(text, listed)})"
    if not columns:
        return ""
    kind = "STREAM" if ending else "RELATION"
    return _short(f"CREATE {kind} {name} (", f"{', '.join(columns)}){ending or keys}")


def _slack(part: Sequence[Token]) -> str:
    """SLACK for `WATERMARK FOR t AS t - INTERVAL '5' SECOND`."""
    if len(part) < 7 or part[-3].upper() != "INTERVAL" or part[-4] != "-":
        return ""
    number, unit = part[-2].strip("'"), part[-1].upper()
    return f" SLACK {number} {unit}" if _NUMBER.fullmatch(number) else ""


def _written(text: str, tokens: Sequence[Token]) -> str:
    """The tokens as they stand in the text, on one line, without comments."""
    ends = [token.end_pos or 0 for token in tokens]
    gaps = ["", *(" " * (end < (token.start_pos or 0)) for end, token in zip(ends, tokens[1:]))]
    return "".join(gap + text[token.start_pos : end] for gap, token, end in zip(gaps, tokens, ends))


def _short(beginning: str, rest: str) -> str:
    return beginning + (rest if len(rest) <= _LONGEST else "..")


def _begins_query(words: Sequence[str]) -> bool:
    return next((word for word in words if word != "("), "") in _BEGIN_QUERIES


def _at_depth_0(tokens: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    """The tokens outside parentheses, with their places."""
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.type == "LPAR") - (token.type == "RPAR")
        if depth == 0:
            yield i, token


def _parts(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """What stands between commas, as far as the parenthesis that closes them."""
    depth, first = 0, 0
    for i, token in enumerate(tokens):
        depth += (token.type == "LPAR") - (token.type == "RPAR")
        if depth < 0 or (depth == 0 and token.type == "COMMA"):
            yield tokens[first:i]
            first = i + 1
        if depth < 0:
            return
