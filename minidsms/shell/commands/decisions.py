"""`.decisions`: what the adaptive parts of the engine have decided about a query, and why."""

from __future__ import annotations

from minidsms.cql.errors import Error
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.session import Session
from minidsms.shell.showing import harmless


def _decisions(session: Session, arguments: Arguments) -> None:
    arguments.at_most(1)
    queries = [session.query_named(arguments.words[0].text)] if arguments.words else list(session.db.queries.values())
    for query in queries:
        tell = getattr(query, "decisions", None)
        if tell is None:
            raise Error("this version takes no decisions while queries run; .explain shows the plan, which stands")
        for decision in tell():
            session.results.write(harmless(f"{query.name}  {decision}") + "\n")


DECISIONS = Command(
    "decisions",
    ".decisions [query]",
    "what was decided about the plan while it ran, and why",
    "A line for each change of a plan: the instant, what was measured, what was changed, and what it gained.",
    _decisions,
    ("query",),
    (".decisions", ".decisions slow"),
)
