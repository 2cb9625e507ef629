"""What lies in the folder of a durable connection, and the settings it was made with.

    folder/
        minidsms.json   format, version, and the settings that were not the defaults
        lock            held while a connection is open; the number of its process
        log/            the inputs, in segments (`segments.py`)

Invariant: a folder with `minidsms.json` is whole; without it, nothing has been promised of it.
"""

from __future__ import annotations

import json
import os
from typing import Any

from minidsms.archive.atomic import sync_folder, write_bytes
from minidsms.cql.errors import Error

FORMAT = "minidsms"
VERSION = 1
_METADATA = "minidsms.json"


def log_of(folder: str) -> str:
    """Where the log is."""
    return os.path.join(folder, "log")


def prepare(folder: str) -> None:
    """Make the folder, where it is not there. Error where that cannot be, or something else is there."""
    try:
        os.makedirs(folder, exist_ok=True)
        if not os.path.exists(os.path.join(folder, _METADATA)) and set(os.listdir(folder)) - {"lock", "log"}:
            there = [name for name in os.listdir(folder) if not name.startswith(f".{_METADATA}")]
            if set(there) - {"lock", "log"}:
                raise Error(f"{folder!r} holds other files and is no minidsms folder\nhelp: name a new or empty folder")
    except OSError as error:
        raise Error(f"the folder {folder!r} cannot be made: {error.strerror or error}") from None


def settings_of(folder: str) -> dict[str, Any] | None:
    """The settings a folder was made with, or None of a new one. Error where they cannot be read."""
    path = os.path.join(folder, _METADATA)
    try:
        with open(path, "rb") as file:
            data = json.loads(file.read())
        if data["format"] != FORMAT:
            raise ValueError(f"the format is {data['format']!r}")
        if data["version"] != VERSION:
            raise Error(f"{path!r}: version {data['version']} of the format; this minidsms reads {VERSION}")
        return {str(name): value for name, value in data["settings"].items()}
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Error(f"{path!r} cannot be read: {error.strerror or error}") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Error(f"{path!r}: not what a minidsms folder holds ({str(error)[:200]})") from None


def create(folder: str, settings: dict[str, Any]) -> None:
    """A new folder with an empty log. Error where it cannot be written."""
    try:
        os.makedirs(log_of(folder), exist_ok=True)
        sync_folder(os.path.dirname(os.path.abspath(folder)))
        text = json.dumps({"format": FORMAT, "version": VERSION, "settings": settings}, indent=1)
        write_bytes(os.path.join(folder, _METADATA), text.encode())
    except OSError as error:
        raise Error(f"the folder {folder!r} cannot be written: {error.strerror or error}") from None
