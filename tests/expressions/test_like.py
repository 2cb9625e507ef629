"""LIKE matches what the regular expression of its pattern matches, without its worst cases."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from minidsms.expressions.like import matcher

short = st.text("ab%_\\.\n", max_size=7)


def by_regex(pattern: str, escape: str) -> re.Pattern[str]:
    parts, i = [], 0
    while i < len(pattern):
        c = pattern[i]
        if escape and c == escape and i + 1 < len(pattern):
            i += 1
            parts.append(re.escape(pattern[i]))
        else:
            parts.append({"%": ".*", "_": "."}.get(c, re.escape(c)))
        i += 1
    return re.compile("".join(parts), re.DOTALL)


@settings(max_examples=1000, deadline=None)
@given(short, short, st.sampled_from(["", "\\", "a", "%"]))
def test_like_is_its_regular_expression(text: str, pattern: str, escape: str) -> None:
    assert matcher(pattern, escape)(text) == (by_regex(pattern, escape).fullmatch(text) is not None)


def test_a_hostile_pattern_takes_no_exponential_time() -> None:
    """An exponential one would not end."""
    assert not matcher("%a" * 30 + "%b")("a" * 2000)
