"""Completion of commands: their names, and what each says may stand behind it."""

from __future__ import annotations

import re
from collections.abc import Callable

from minidsms.cql.errors import Error
from minidsms.settings import SETTINGS
from minidsms.shell.candidates import Candidate, files, matching, words
from minidsms.shell.clauses import begun_quote
from minidsms.shell.commands import ALIASES, COMMANDS
from minidsms.shell.help_topics import TOPICS
from minidsms.shell.modes.mode import MODES
from minidsms.shell.names import Names
from minidsms.shell.words import words_of

_LAST = re.compile(r"[^\s,]*$")


def complete_command(before: str, names: Names, allows: Callable[[str], bool]) -> list[Candidate]:
    """What may stand at the cursor of a command. before: the line up to the cursor."""
    if " " not in before:
        prefix = before[1:]
        return [
            Candidate(f".{c.text}", len(before), c.meta)
            for c in matching(prefix, [(command.name, command.summary) for command in COMMANDS.values()])
        ]
    name, _, rest = before[1:].partition(" ")
    command = COMMANDS.get(ALIASES.get(name.lower(), name.lower()))
    if command is None:
        return []
    quote = begun_quote(rest)
    prefix = rest[quote + 1 :] if quote is not None else _LAST.search(rest).group()  # type: ignore[union-attr]
    mark = rest[quote] if quote is not None else ""
    done = rest[:quote] if quote is not None else rest[: len(rest) - len(prefix)]
    try:
        said = [word.text for word in words_of(done)]
    except Error:
        return []
    kind = _kind(command.name, command.completes, said)
    if kind == "file":
        return files(prefix, mark, allows)
    if mark:
        return files(prefix, mark, allows) if command.name == "schema" else []
    return _of_kind(kind, prefix, said, names)


def _kind(command: str, completes: tuple[str, ...] | list[str] | object, said: list[str]) -> str:
    """What the next word is."""
    kinds = list(completes) if isinstance(completes, tuple | list) else []
    if command == "feed":
        # The clauses of each file, over and over.
        last = max((i for i, word in enumerate(said) if word == ","), default=-1)
        clause = said[last + 1 :]
        upper = [word.upper() for word in clause]
        if upper[-1:] == ["FORMAT"]:
            return "format"
        if upper[-1:] == ["SPEED"]:
            return ""
        if len(clause) >= 3:
            return "more of feed"
        return ("input", "FROM", "file")[len(clause)]
    if not kinds:
        return ""
    if command in ("watch", "mode") and len(said) >= (1 if command == "watch" else 0):
        return "mode" if len(said) == (1 if command == "watch" else 0) else "top"
    if command == "set" and len(said) == 1:
        return "value"
    return str(kinds[len(said)]) if len(said) < len(kinds) and command not in ("timer",) else " ".join(kinds)


def _of_kind(kind: str, prefix: str, said: list[str], names: Names) -> list[Candidate]:
    match kind:
        case "query":
            return matching(prefix, names.queries())
        case "stream" | "input":
            return matching(prefix, names.inputs())
        case "any":
            return matching(prefix, [*names.tables(), *names.queries()])
        case "mode":
            return matching(prefix, list(MODES.items()))
        case "top":
            return words(prefix, [("BY", ""), ("ASC", "the least")]) if "top" in [w.lower() for w in said] else []
        case "setting":
            return matching(prefix, [(s.name, s.meaning) for s in SETTINGS.values()])
        case "value":
            return matching(prefix, [(word, "value") for word in names.values_of(said[0])])
        case "command":
            topics = [(name, text) for name, (text, _) in TOPICS.items()]
            return matching(prefix, [*topics, *[(c.name, c.summary) for c in COMMANDS.values()]])
        case "format":
            return matching(prefix, [(f, "format") for f in ("csv", "json", "parquet", "arrow", "stream")])
        case "more of feed":
            return words(prefix, [("SPEED", "times real time"), ("FORMAT", "of the file")])
        case "":
            return []
        case _:
            return words(prefix, [(word, "") for word in kind.split() if word.isupper()])
