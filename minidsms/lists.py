"""Values of LIST types as texts, which the dictionary codes: equal lists have equal texts.

A list is a tuple of None, bool, int, float and str in Python, and JSON in the dictionary; infinities are `Infinity`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

List = tuple[Any, ...]


def list_text(values: Iterable[Any]) -> str:
    """The text of a list.

    >>> list_text((1.0, None, "é"))
    '[1.0, null, "é"]'
    """
    return json.dumps(tuple(values), ensure_ascii=False)


@lru_cache(maxsize=4096)
def list_of(text: str) -> List:
    """The list of a text that `list_text` wrote."""
    return tuple(json.loads(text))
