"""`.watch` and `.unwatch`"""

from __future__ import annotations

from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.modes.mode import read_mode
from minidsms.shell.session import Session


def _watch(session: Session, arguments: Arguments) -> None:
    if not arguments.words:
        names = session.watches.names()
        session.screen.note(f"watched: {', '.join(names)}" if names else "nothing is watched")
        return
    query = session.query_named(arguments.words[0].text)
    spec = read_mode(arguments.words[1:]) if len(arguments.words) > 1 else None
    session.watches.watch(query, session.mode, spec, session.look())


def _unwatch(session: Session, arguments: Arguments) -> None:
    arguments.at_most(1)
    names = [arguments.words[0].text] if arguments.words else session.watches.names()
    for name in names:
        session.watches.unwatch(name)
    if session.plan_shown is not None and not arguments.words:
        session.plan_shown = None


WATCH = Command(
    "watch",
    ".watch [query [mode]]",
    "show the answers of a query as they come",
    "It begins with the last changes nobody has seen. A mode behind the name holds for this query alone. A SELECT "
    "typed by itself is watched from the start. Ctrl-C stops watching; the query runs on.",
    _watch,
    ("query", "mode"),
    (".watch slow", ".watch slow table", ".watch slow top 3 BY mean"),
)

UNWATCH = Command(
    "unwatch",
    ".unwatch [query]",
    "stop showing a query, or all; they run on",
    "DROP QUERY ends a query.",
    _unwatch,
    ("query",),
    (".unwatch slow", ".unwatch"),
)
