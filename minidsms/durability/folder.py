"""What lies in the folder of a durable connection, and the settings it was made with.

    folder/
        minidsms.json   format, version, the settings that were not the defaults, and which log counts
        lock            held while a connection is open; the number of its process
        log-1/          the inputs, in segments (`segments.py`); log-2 and so on after a checkpoint, and beside it the
                        log it was made of, until the next one; what both hold may be one file (`blocks.py`)
        checkpoint/     a checkpoint that is being made, a folder like this one

Invariant: a folder with `minidsms.json` is whole; without it, nothing has been promised of it. What else lies there is
of a process that ended, and is removed when the folder is opened.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from operator import index
from typing import Any

from minidsms.archive.atomic import sync_folder, write_temporary
from minidsms.cql.errors import Error, saying

FORMAT = "minidsms"
VERSION = 5
"""Of what lies in a folder. An older minidsms cannot read all that this one writes: 1 had no kept state, 2 no history
of queries, nor what a limit made fail, and other checksums, 3 no blocks, 4 no past of
queries with BACKFILL.
"""
CHECKPOINT = "checkpoint"
FIRST_LOG = "log-1"
METADATA = "minidsms.json"
LOG_NAME = re.compile(r"log-\d+")
_SETTINGS = {
    "load_shedding": ("none", "random"),
    "k_mon": ("exact",),
}
"""The values that are kept, of settings by which an answer may depend on the memory or the time it took."""


@dataclass(frozen=True)
class Metadata:
    """What `minidsms.json` says. log: the name of the folder of the log that counts.  checkpoints: the last ones made,
    as `checkpoints.py` tells of them.  before: of the log that the last one was made of the name, and how many of its
    entries are in those of this log before its segment `begin` (log, entries, begin); empty where there is none.
    version: of the format.
    """

    settings: dict[str, Any]
    log: str = FIRST_LOG
    checkpoints: tuple[dict[str, Any], ...] = ()
    before: dict[str, Any] = field(default_factory=dict)
    version: int = VERSION


def no_folder(folder: str) -> Error:
    """What is at a place that is no folder of a connection, and what to do instead."""
    if not os.path.exists(folder):
        return Error(f"{folder!r}: there is no such folder")
    if not os.path.isdir(folder):
        return Error(f"{folder!r} is a file, not a folder\nhelp: db.feed(.., {folder!r}) reads a file")
    if any(os.path.exists(os.path.join(folder, name, "_archive.json")) for name in (".", *os.listdir(folder))):
        return Error(f"{folder!r} holds archives, not a connection\nhelp: db.replay({folder!r}) reads archives")
    hint = f"name the folder of one, in which {METADATA} stands, or for a new one an empty folder"
    return Error(f"{folder!r} holds other files, not a connection\nhelp: {hint}")


def check_outside(place: str) -> None:
    """Error where a place lies in the folder of a connection, which may remove it."""
    below, above = "", os.path.dirname(os.path.realpath(place))
    while above != below:
        if os.path.exists(os.path.join(above, METADATA)):
            raise Error(f"{place!r} lies in {above!r}, the folder of a connection\nhelp: name a place outside of it")
        below, above = above, os.path.dirname(above)


def metadata_of(folder: str) -> Metadata | None:
    """What a folder says of itself, or None of a new one. Error where it cannot be read, or is gone."""
    path = os.path.join(folder, METADATA)
    try:
        with open(path, "rb") as file:
            data = json.loads(file.read())
        if data["format"] != FORMAT:
            raise ValueError(f"the format is {data['format']!r}")
        if data["version"] not in range(1, VERSION + 1):
            raise Error(f"{path!r}: version {data['version']} of the format; this minidsms reads up to {VERSION}")
        before = dict(data.get("before", {}))
        if before:
            before = {"log": before["log"], "entries": index(before["entries"]), "begin": index(before["begin"])}
        for name in (data["log"], *([before["log"]] if before else [])):
            if not LOG_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no log")
        settings = {str(name): value for name, value in data["settings"].items()}
        checkpoints = tuple(map(dict, data.get("checkpoints", ())))
        return Metadata(settings, data["log"], checkpoints, before, data["version"])
    except FileNotFoundError:
        # It is there before the first entry of a log, and in a copy only after the last.
        if os.path.isdir(log := os.path.join(folder, FIRST_LOG)) and os.listdir(log):
            raise Error(
                f"{path!r} is missing: it tells what the log is, and a copy that was not completed has none\n"
                "help: open another copy that db.backup(..) has made"
            ) from None
        return None
    except OSError as error:
        raise Error(f"{path!r} cannot be read: {error.strerror or error}") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Error(f"{path!r}: not what a minidsms folder holds ({str(error)[:200]})") from None


def create(folder: str, settings: dict[str, Any]) -> None:
    """A new folder with an empty log. Error where it cannot be written."""
    with saying(f"the folder {folder!r} cannot be written"):
        os.makedirs(os.path.join(folder, FIRST_LOG), exist_ok=True)
        sync_folder(os.path.dirname(os.path.abspath(folder)))
        save(folder, Metadata(settings))


def save(folder: str, metadata: Metadata) -> None:
    """Let the folder say this of itself from now on. Raises OSError; then it may say either."""
    fields = {"format": FORMAT, **vars(metadata)}
    path, text = os.path.join(folder, METADATA), json.dumps(fields, indent=1).encode()
    os.replace(write_temporary(path, lambda file: file.write(text)), path)
    sync_folder(folder)


def log_after(log: str) -> str:
    """The name of the next log."""
    return f"log-{int(log.removeprefix('log-')) + 1}"


def check_setting(name: str, value: Any) -> None:
    """Error where answers would depend on what is not kept. value: in its proper form."""
    kept = _SETTINGS.get(name.lower())
    if kept is not None and value not in kept:
        raise Error(
            f"{name} = {value!r}: a connection with a folder does not keep answers that depend on memory or time yet\n"
            f"help: leave it at {kept[0] or 'none'!r}, or use connect() without a folder"
        )
