"""`.plan`: the plan of a query, drawn."""

from __future__ import annotations

from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.plan_drawing import PlanDrawing
from minidsms.shell.session import Session


def _plan(session: Session, arguments: Arguments) -> None:
    words = list(arguments.words)
    once = len(words) == 2 and words[1].says("ONCE")
    if once:
        del words[1]
    if not words and len(session.db.queries) == 1:
        query = next(iter(session.db.queries.values()))
    elif len(words) == 1:
        query = session.query_named(words[0].text)
    else:
        raise arguments.wrong("name a query")
    drawing = PlanDrawing(query, session.instants, session.clock)
    if session.is_interactive and not once and session.results.path is None:
        session.plan_shown = (query, drawing)
    else:
        session.results.lines(drawing.draw())


PLAN = Command(
    "plan",
    ".plan [query] [once]",
    "draw the plan of a query with live figures",
    "The operators as a tree, the output above, with the elements that went in and came out, per second now, and the "
    "share of time. It stands above the prompt and is redrawn in place until Ctrl-C; with `once` it is printed. "
    "Without a name, the only query there is.",
    _plan,
    ("query",),
    (".plan slow", ".plan slow once"),
)
