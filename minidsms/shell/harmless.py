"""Text that cannot drive the terminal. Apart from the rest of `showing.py`, since it needs nothing of the engine."""

from __future__ import annotations

import re

from minidsms.cql.errors import in_words

# C0 and C1 controls but the newline, line separators, marks of direction, lone surrogates.
_HARMFUL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """The text with control characters written out; newlines stay.

    >>> harmless("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    return _HARMFUL.sub(lambda m: _escape(m[0]), text)


def error_line(error: BaseException) -> str:
    """What is shown of an error, harmless; one in CQL says itself that it is one."""
    text = in_words(error)
    return harmless(text if text.startswith("error:") else f"error: {text}")


def _escape(character: str) -> str:
    code = ord(character)
    return {"\t": "\\t", "\r": "\\r"}.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
