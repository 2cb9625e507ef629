"""`.help`"""

from __future__ import annotations

import difflib
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
        session.results.write(TOPICS[name][1])
    else:
        near = difflib.get_close_matches(name, [*COMMANDS, *TOPICS], 1)
        hint = f"did you mean .help {near[0]}?" if near else ".help lists what there is"
        raise Error(f'there is no help on "{name}"\nhelp: {hint}')


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
    lines += textwrap.wrap(command.help, 100, initial_indent="  ", subsequent_indent="  ")
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
