"""What completion offers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from minidsms.cql.printer import print_name

_MOST_FILES = 200


@dataclass(frozen=True)
class Candidate:
    """text: what replaces the last `length` characters before the cursor.  meta: what it is, in a word or two."""

    text: str
    length: int
    meta: str = ""
    shown: str = ""


def matching(prefix: str, offered: Iterable[tuple[str, str]], quotes: bool = False) -> list[Candidate]:
    """The offered (name, meta) that begin with the prefix, in any case, each once. quotes: as names of CQL."""
    wanted = prefix.lower()
    found: dict[str, Candidate] = {}
    for name, meta in offered:
        if name.lower().startswith(wanted):
            text = print_name(name) if quotes else name
            found.setdefault(text, Candidate(text, len(prefix), meta))
    return list(found.values())


def words(prefix: str, offered: Iterable[tuple[str, str]]) -> list[Candidate]:
    """Keywords: in small letters where the prefix is."""
    is_small = prefix.islower()
    return matching(prefix, [(word.lower() if is_small else word, meta) for word, meta in offered])


def files(prefix: str, quote: str, allows: Callable[[str], bool]) -> list[Candidate]:
    """Files and folders whose path begins with the prefix. quote: what closes a file's name, or "".

    allows: whether a path may be looked at.
    """
    folder, name = os.path.split(prefix)
    place = os.path.expanduser(folder) or "."
    if not allows(place):
        return []
    try:
        with os.scandir(place) as entries:
            found = [
                (entry.name, entry.is_dir())
                for entry in entries
                if entry.name.startswith(name) and (name.startswith(".") or not entry.name.startswith("."))
            ]
    except OSError:
        return []
    found.sort(key=lambda entry: (not entry[1], entry[0]))
    made = []
    for each, is_folder in found[:_MOST_FILES]:
        if any(not c.isprintable() for c in each) or (quote and quote in each):
            continue
        end = "/" if is_folder else quote
        made.append(Candidate(each + end, len(name), "folder" if is_folder else "file", each))
    return made
