"""What the system refuses, in place of a function: a full disk, one that fails, too many files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


def refusing(code: int) -> Callable[..., Any]:
    """Raises OSError of this code (`errno.ENOSPC`), whatever it is called with."""

    def refused(*_: object, **__: object) -> Any:
        raise OSError(code, os.strerror(code))

    return refused
