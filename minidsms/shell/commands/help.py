"""`.help`"""

from __future__ import annotations

import difflib
import re
import textwrap

from minidsms.cql.errors import Error
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.help_topics import TOPICS
from minidsms.shell.session import Session


def _help(session: Session, arguments: Arguments) -> None:
    from minidsms.shell.commands import ALIASES, COMMANDS

    if not arguments.words:
        session.results.write(_overview(session, list(COMMANDS.values())))
        return
    name = arguments.one("a command or topic").text.lower().removeprefix(".")
    name = ALIASES.get(name, name)
    if name in COMMANDS:
        session.results.write(_command_help(session, COMMANDS[name]))
    elif name in TOPICS:
        session.results.write(fitted_to(session.screen.width, TOPICS[name][1]))
    else:
        near = difflib.get_close_matches(name, [*COMMANDS, *TOPICS], 1)
        hint = f"did you mean .help {near[0]}?" if near else ".help lists what there is"
        raise Error(f'there is no help on "{name}"\nhelp: {hint}')


def fitted_to(width: int | None, text: str) -> str:
    """The text with its long lines broken at blanks; what follows stands below a list's words, or a table's second
    column.

    >>> print(fitted_to(24, "1. What is declared stays\\n  ROWS 5   the last five rows"))
    1. What is declared
       stays
      ROWS 5   the last five
               rows
    """
    lines = []
    for line in text.split("\n"):
        if width is None or len(line) <= width:
            lines.append(line)
            continue
        begin = re.match(r"\s*\S+(?: \S+)*\s{3,}|\s*(?:\d\. |- )?", line)
        indent = " " * (begin.end() if begin is not None else 0)
        lines += textwrap.wrap(line, width, subsequent_indent=indent, drop_whitespace=True, break_on_hyphens=False)
    return "\n".join(lines)


def _overview(session: Session, commands: list[Command]) -> str:
    bold = session.screen.styles
    width = max(len(c.name) for c in commands) + 3
    lines = ["Statements of CQL end with a semicolon; commands begin with a dot."]
    lines += [f"  {bold('bold', f'.{c.name}'.ljust(width))}{c.summary}" for c in commands]
    lines.append("More on each: .help command. And on:")
    lines += [f"  {bold('bold', f'.help {name}'.ljust(18))}{said}" for name, (said, _) in TOPICS.items()]
    return "\n".join(lines) + "\n"


def _command_help(session: Session, command: Command) -> str:
    lines = [session.screen.styles("bold", command.usage), f"  {command.summary}"]
    room = min(100, session.screen.width or 100)
    lines += textwrap.wrap(command.help, room, initial_indent="  ", subsequent_indent="  ")
    if command.examples:
        lines.append("Examples:")
        lines += [f"  {example}" for example in command.examples]
    return "\n".join(lines) + "\n"


HELP = Command(
    "help",
    ".help [command | topic]",
    "this list, or more on a command or topic",
    "Topics are start, windows, instants, keys and statements.",
    _help,
    ("command",),
    (".help start", ".help feed", ".help windows"),
)
