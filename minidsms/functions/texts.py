"""Functions of TEXT beyond the first ones of SQL: search, parts, padding, case (as PostgreSQL and DuckDB have them).

Characters are code points, counted from 1.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
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


def _instr(text: str, part: str, start: int = 1, occurrence: int = 1) -> int:
    """From a position on; where it is negative, backward from that place before the end."""
    found = -1
    if -len(text) <= start < 0 < occurrence:
        found = text.rfind(part, 0, max(len(text) + start + len(part), 0))
        while found >= 0 and (occurrence := occurrence - 1):
            found = text.rfind(part, 0, found + len(part) - 1)
    elif start > 0 and occurrence > 0:
        found = text.find(part, start - 1)
        while found >= 0 and (occurrence := occurrence - 1):
            found = text.find(part, found + 1)
    return found + 1


def _overlay(text: str, new: str, start: int, count: int | None = None) -> Any:
    if start < 1:
        return FAILED
    return text[: start - 1] + new + text[max(start - 1 + (len(new) if count is None else count), 0) :]


def _mask(text: str, upper: str = "X", lower: str = "x", digit: str = "n", other: str = "-") -> str:
    return "".join(upper if c.isupper() else lower if c.islower() else digit if c.isdigit() else other for c in text)


def _masked(keeps: bool, is_left: bool) -> Callable[[str, int], Any]:
    """Masks so many characters at one end, or all but these."""

    def function(text: str, count: int) -> Any:
        if count < 0:
            return FAILED
        cut = min(count, len(text)) if is_left else max(len(text) - count, 0)
        left, right = text[:cut], text[cut:]
        return _mask(left) + right if keeps is not is_left else left + _mask(right)

    return function


def _from_bytes(read: Callable[[str], bytes]) -> Callable[[str], Any]:
    """The text whose UTF-8 these are; fails where they are none."""

    def function(text: str) -> Any:
        try:
            return read(text).decode()
        except ValueError:
            return FAILED

    return function


def _coded(name: str, takes: str, summary: str, example: str, value: str, function: Callable[..., Any]) -> Function:
    result, arg = (_INTEGER, _TEXT) if name == "octet_length" else (_TEXT, _TEXT if takes == "TEXT" else _INTEGER)
    call = f"{name.upper()}({example})"
    can_fail = name.startswith(("un", "from"))
    return Function(name, 1, 1, fixed(result, arg), takes, summary, (call, value), function, can_fail=can_fail)


def _right(text: str, count: int) -> str:
    if count < 0:
        return text[-count:]
    return text[max(len(text) - count, 0) :]


FUNCTIONS = (
    Function(
        "instr",
        2,
        4,
        fixed(_INTEGER, _TEXT, _TEXT, _INTEGER),
        "two TEXT, and optionally where to begin and which one",
        "the position of the second text in the first, or 0; optionally searched from a position on, backward if "
        "negative, for the n-th occurrence",
        ("INSTR('stream', 're')", "3"),
        _instr,
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
        "the first letter of each word in upper case, the others in lower case",
        ("INITCAP('new york, NEW')", "'New York, New'"),
        _initcap,
    ),
    Function(
        "lpad",
        2,
        3,
        fixed(_TEXT, _TEXT, _INTEGER, _TEXT),
        "TEXT, INTEGER and optionally TEXT",
        "filled up on the left to a length, with spaces or a given text; a longer one is cut on the right; fails like"
        " REPEAT",
        ("LPAD('7', 3, '0')", "'007'"),
        _lpad,
        can_fail=True,
    ),
    Function(
        "rpad",
        2,
        3,
        fixed(_TEXT, _TEXT, _INTEGER, _TEXT),
        "TEXT, INTEGER and optionally TEXT",
        "filled up on the right to a length, with spaces or a given text; a longer one is cut; fails like REPEAT",
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
        f"the text repeated this many times; fails above {MOST_CHARACTERS:,} characters",
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
    Function(
        "overlay", 3, 4, fixed(_TEXT, _TEXT, _TEXT, _INTEGER), "two TEXT, a position and optionally INTEGER",
        "the first text with the second in place of as many characters, or a given number, from a position on; fails"
        " below 1",
        ("OVERLAY('stream', 'XX', 2)", "'sXXeam'"), _overlay, can_fail=True,
    ),
    Function(
        "mask", 1, 5, fixed(_TEXT, _TEXT), "TEXT, and optionally four TEXT",
        "upper-case letters, lower-case letters, digits and all else replaced, by X, x, n and - or what is given",
        ("MASK('Ada 7')", "'Xxx-n'"), _mask,
    ),
    *(
        Function(
            f"mask_{'keep_' * keeps}{side}", 2, 2, fixed(_TEXT, _TEXT, _INTEGER), "TEXT and INTEGER",
            f"{'all but ' * keeps}this many characters at the {side} replaced, as in MASK; fails below 0",
            (f"MASK_{'KEEP_' * keeps}{side.upper()}('Ada 7', 2)", value), _masked(keeps, side == "left"), can_fail=True,
        )
        for keeps, side, value in (
            (False, "left", "'Xxa 7'"), (False, "right", "'Ada-n'"),
            (True, "left", "'Adx-n'"), (True, "right", "'Xxx 7'"),
        )
    ),
    Function(
        "elt", 2, None, fixed(_TEXT, _INTEGER, _TEXT), "INTEGER and TEXT",
        "the text at this position among those that follow", ("ELT(2, 'a', 'b')", "'b'"),
        lambda n, *texts: texts[n - 1] if 0 < n <= len(texts) else None,
    ),
    Function(
        "field", 2, None, fixed(_INTEGER, _TEXT), "TEXT",
        "the position of the first text among the others, 0 if it is not there",
        ("FIELD('b', 'a', 'b')", "2"),
        lambda text, *others: others.index(text) + 1 if text in others else 0,
    ),
    _coded(
        "hex", "TEXT", "the bytes of its UTF-8 in hexadecimal digits", "'né'", "'6EC3A9'",
        lambda text: text.encode().hex().upper(),
    ),
    _coded(
        "unhex", "TEXT", "the inverse of HEX; fails for any other text", "'6EC3A9'", "'né'",
        _from_bytes(lambda text: bytes.fromhex(text) if text.isalnum() or not text else b"\xff"),
    ),
    _coded(
        "to_base64", "TEXT", "its UTF-8 in base 64", "'né'", "'bsOp'",
        lambda text: base64.b64encode(text.encode()).decode(),
    ),
    _coded(
        "from_base64", "TEXT", "the inverse of TO_BASE64; fails for any other text", "'bsOp'", "'né'",
        _from_bytes(lambda text: base64.b64decode(text.encode(), validate=True)),
    ),
    _coded(
        "to_hex", "INTEGER", "its hexadecimal digits; for a negative number, those of its 64 bits", "255", "'ff'",
        lambda number: f"{number % 2**64:x}",
    ),
    _coded(
        "octet_length", "TEXT", "the number of bytes of its UTF-8", "'né'", "3", lambda text: len(text.encode()),
    ),
)  # fmt: skip
