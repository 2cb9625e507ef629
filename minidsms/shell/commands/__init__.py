"""The commands of the shell, a file for each or for a few that belong together. The order is that of `.help`."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from minidsms.cql.errors import Error
from minidsms.shell.commands import (
    decisions,
    demo,
    explain,
    feed,
    files,
    help,
    inputs,
    mode,
    plan,
    queries,
    schema,
    set,
    shell,
    stats,
    watch,
)
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.words import words_of

if TYPE_CHECKING:
    from minidsms.shell.session import Session

COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        help.HELP,
        demo.DEMO,
        inputs.STREAMS,
        queries.QUERIES,
        schema.SCHEMA,
        feed.FEED,
        feed.ADVANCE,
        watch.WATCH,
        watch.UNWATCH,
        mode.MODE,
        mode.LIMIT,
        plan.PLAN,
        explain.EXPLAIN,
        stats.STATS,
        decisions.DECISIONS,
        shell.UI,
        set.SET,
        shell.TIMER,
        files.OUTPUT,
        files.READ,
        files.SAVE,
        files.OPEN,
        shell.QUIT,
    )
}

ALIASES = {"exit": "quit", "q": "quit", "h": "help", "?": "help", "tables": "streams", "run": "feed"}


def run_command(session: Session, line: str) -> None:
    """Run a command's line. Error where there is no such command, or it cannot be done."""
    if "\0" in line:
        raise Error("a command has no character 0")
    name, _, rest = line[1:].strip().partition(" ")
    key = name.lower().rstrip(";")
    rest = rest.strip().removesuffix(";").rstrip()
    command = COMMANDS.get(ALIASES.get(key, key))
    if command is None:
        near = difflib.get_close_matches(key, [*COMMANDS, *ALIASES], 1)
        hint = f"did you mean .{near[0]}?" if near else ".help lists the commands"
        raise Error(f"unknown command .{name}\nhelp: {hint}")
    command.run(session, Arguments(words_of(rest), rest, command))
