"""What a durable connection does not keep yet is refused, with a word on what to do instead.

Invariant: what is not refused comes back when the folder is opened again.
"""

from __future__ import annotations

from typing import Any

from minidsms.cql.errors import Error

_NO_FOLDER = "connect() without a folder"
_SETTINGS = {
    "load_shedding": ("none", "random"),
    "k_mon": ("exact",),
}
"""The values that are kept, of settings by which an answer may depend on the memory or the time it took."""


def check_setting(name: str, value: Any) -> None:
    """Error where answers would depend on what is not kept. value: in its proper form."""
    kept = _SETTINGS.get(name.lower())
    if kept is not None and value not in kept:
        raise Error(
            f"{name} = {value!r}: a connection with a folder does not keep answers that depend on memory or time yet\n"
            f"help: leave it at {kept[0] or 'none'!r}, or use {_NO_FOLDER}"
        )
