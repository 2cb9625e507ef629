"""Compiled loops over arrays, by topic.

Their first run on a machine compiles them, for seconds; later ones load them from numba's cache. Whoever sits at a
terminal is told once what the wait is for.
"""

from __future__ import annotations

import sys
from pathlib import Path

from numba.core import event

from minidsms.kernels.stale_code import drop_stale_code

_COMPILING = "numba:compile"
"""What numba tells when it compiles, and not when it finds a function in the cache."""


class _Announcement(event.Listener):
    """Says on stderr, if that is a terminal, that kernels of this package are being compiled."""

    def __init__(self) -> None:
        self._is_made = False

    def on_start(self, event: event.Event) -> None:
        dispatcher = (event.data or {}).get("dispatcher")
        module = getattr(getattr(dispatcher, "py_func", None), "__module__", None) or ""
        if self._is_made or not module.startswith(f"{__name__}."):
            return
        self._is_made = True
        if sys.stderr is not None and sys.stderr.isatty():
            print("compiling kernels (first run on this machine) ..", file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        """Nothing to say."""


event.register(_COMPILING, _Announcement())  # type: ignore[no-untyped-call]

# Before any kernel is loaded.
drop_stale_code(Path(__file__).parent, [Path(__file__).parent.parent / "elements.py"])
