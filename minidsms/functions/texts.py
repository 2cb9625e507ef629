"""Functions of TEXT beyond the first ones of SQL: search, parts, padding, case (as PostgreSQL and DuckDB have them).

Characters are code points, counted from 1.
"""

from __future__ import annotations

import re
from typing import Any

from minidsms.elements import Type
from minidsms.functions.function import FAILED, MOST_CHARACTERS, Function, fixed

_TEXT, _INTEGER, _BOOLEAN = Type.TEXT, Type.INTEGER, Type.BOOLEAN
_WORD = re.compile(r"[^\W_]+")


def _initcap(text: str) -> str:
    """The first letter of each run of letters and digits in upper case, the others in lower case."""
    return _WORD.sub(lambda word: word[0][0].upper() + word[0][1:].lower(), text)


def _padding(missing: int, fill: str) -> str:
    return (fill * (missing // len(fill) + 1))[:missing] if fill and missing > 0 else ""


def _lpad(text: str, length: int, fill: str = " ") -> Any:
    if length > MOST_CHARACTERS:
        return FAILED
    return _padding(length - len(text), fill) + text[: max(length, 0)]


def _rpad(text: str, length: int, fill: str = " ") -> Any:
    if length > MOST_CHARACTERS:
        return FAILED
    return text[: max(length, 0)] + _padding(length - len(text), fill)


def _repeat(text: str, times: int) -> Any:
    return FAILED if len(text) * times > MOST_CHARACTERS else text * max(times, 0)


def _split_part(text: str, separator: str, number: int) -> str:
    """The parts count from 1, from the end where the number is negative; an empty separator parts the characters."""
    parts = text.split(separator) if separator else list(text)
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if number and 0 <= place < len(parts) else ""


def _chr(code: int) -> Any:
    return chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else FAILED


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str] = {}
    for i, character in enumerate(old):
        table.setdefault(ord(character), new[i] if i < len(new) else "")
    return text.translate(table)


def _right(text: str, count: int) -> str:
    if count < 0:
        return text[-count:]
    return text[max(len(text) - count, 0) :]


FUNCTIONS = (
    Function(
        "instr",
        2,
        2,
        fixed(_INTEGER, _TEXT),
        "two TEXT",
        "the position of the second text in the first, 0 where it is not in it",
        ("INSTR('stream', 're')", "3"),
        lambda text, part: text.find(part) + 1,
    ),
    Function(
        "contains",
        2,
        2,
        fixed(_BOOLEAN, _TEXT),
        "two TEXT",
        "whether the second text is in the first",
        ("CONTAINS('stream', 're')", "true"),
        lambda text, part: part in text,
    ),
    Function(
        "ends_with",
        2,
        2,
        fixed(_BOOLEAN, _TEXT),
        "two TEXT",
        "whether the first text ends with the second",
        ("ENDS_WITH('stream', 'am')", "true"),
        str.endswith,
    ),
    Function(
        "initcap",
        1,
        1,
        fixed(_TEXT, _TEXT),
        "TEXT",
        "each word with its first letter in upper case and the others in lower case",
        ("INITCAP('new york, NEW')", "'New York, New'"),
        _initcap,
    ),
    Function(
        "lpad",
        2,
        3,
        fixed(_TEXT, _TEXT, _INTEGER, _TEXT),
        "TEXT, INTEGER and perhaps TEXT",
        "filled up on the left to a length, with spaces or a given text; a longer one is cut on the right",
        ("LPAD('7', 3, '0')", "'007'"),
        _lpad,
        can_fail=True,
    ),
    Function(
        "rpad",
        2,
        3,
        fixed(_TEXT, _TEXT, _INTEGER, _TEXT),
        "TEXT, INTEGER and perhaps TEXT",
        "filled up on the right to a length, with spaces or a given text; a longer one is cut",
        ("RPAD('ab', 5, '.-')", "'ab.-.'"),
        _rpad,
        can_fail=True,
    ),
    Function(
        "repeat",
        2,
        2,
        fixed(_TEXT, _TEXT, _INTEGER),
        "TEXT and INTEGER",
        f"the text so many times; fails above {MOST_CHARACTERS:,} characters",
        ("REPEAT('ab', 3)", "'ababab'"),
        _repeat,
        can_fail=True,
    ),
    Function(
        "reverse",
        1,
        1,
        fixed(_TEXT, _TEXT),
        "TEXT",
        "the characters from last to first",
        ("REVERSE('stream')", "'maerts'"),
        lambda text: text[::-1],
    ),
    Function(
        "left",
        2,
        2,
        fixed(_TEXT, _TEXT, _INTEGER),
        "TEXT and INTEGER",
        "the first characters; with a negative number, all but the last",
        ("LEFT('stream', 3)", "'str'"),
        lambda text, count: text[:count],
    ),
    Function(
        "right",
        2,
        2,
        fixed(_TEXT, _TEXT, _INTEGER),
        "TEXT and INTEGER",
        "the last characters; with a negative number, all but the first",
        ("RIGHT('stream', 3)", "'eam'"),
        _right,
    ),
    Function(
        "split_part",
        3,
        3,
        fixed(_TEXT, _TEXT, _TEXT, _INTEGER),
        "two TEXT and INTEGER",
        "a part between separators, counted from 1, or from the end by negative numbers; '' where there is none",
        ("SPLIT_PART('2013-05-31', '-', 2)", "'05'"),
        _split_part,
    ),
    Function(
        "translate",
        3,
        3,
        fixed(_TEXT, _TEXT),
        "three TEXT",
        "each character of the second text replaced by the one at its place in the third, or removed where it has none",
        ("TRANSLATE('12,5', ',', '.')", "'12.5'"),
        _translate,
    ),
    Function(
        "chr",
        1,
        1,
        fixed(_TEXT, _INTEGER),
        "INTEGER",
        "the character of a code point; fails where there is none",
        ("CHR(233)", "'é'"),
        _chr,
        can_fail=True,
    ),
    Function(
        "ascii",
        1,
        1,
        fixed(_INTEGER, _TEXT),
        "TEXT",
        "the code point of the first character, 0 for ''",
        ("ASCII('A')", "65"),
        lambda text: ord(text[0]) if text else 0,
    ),
)
