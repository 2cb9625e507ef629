"""`.queries`: the running queries."""

from __future__ import annotations

from minidsms.activity import measure
from minidsms.answers.table import Table
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.session import Session


def _queries(session: Session, arguments: Arguments) -> None:
    arguments.none()
    rows = []
    for key, activity in measure(session.db).queries.items():
        query = session.db.queries[key]
        rows.append(
            (
                activity.name,
                activity.kind,
                activity.state,
                activity.results,
                session.instants.show(activity.closed_until),
                "" if activity.lag is None else session.instants.length(activity.lag),
                "*" if key in session.watches else "",
                " ".join(query.text.split()),
            )
        )
    if not rows:
        session.screen.note("no query runs; write a SELECT .. ; or see .help start")
        return
    columns = ("query", "kind", "state", "changes", "answered until", "lag", "watched", "text")
    session.results.table(Table(columns, tuple(rows)), session.mode)


QUERIES = Command(
    "queries",
    ".queries",
    "running queries: state, changes, how far time is",
    "changes: delivered so far. answered until: the last closed instant. lag: event time from there to the newest "
    "instant its inputs have seen; a great one says that another stream holds time back.",
    _queries,
    (),
    (".queries",),
)
