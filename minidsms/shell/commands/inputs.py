"""`.streams`: streams and relations with what has come in."""

from __future__ import annotations

from minidsms.activity import measure
from minidsms.answers.table import Table
from minidsms.cql.masking import masked
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.session import Session


def _streams(session: Session, arguments: Arguments) -> None:
    arguments.none()
    catalog = session.db.catalog
    rows: list[tuple[object, ...]] = []
    for key, activity in measure(session.db).inputs.items():
        declared = catalog.streams.get(key) or catalog.relations[key]
        until = "" if activity.latest is None else session.instants.show(activity.latest)
        source = "" if declared.source is None else masked(str(getattr(declared.source, "path", declared.source)))
        ended = " (ended)" if activity.has_ended else ""
        rows.append(
            (
                activity.name,
                activity.kind,
                str(declared.schema),
                activity.accepted,
                activity.rejected,
                until,
                source + ended,
            )
        )
    rows += [(view.name, "view", " ".join(view.text.split()), "", "", "", "") for view in catalog.views.values()]
    if not rows:
        session.screen.note("nothing is declared; .help start shows how to begin")
        return
    columns = ("name", "kind", "columns", "rows", "left out", "latest", "from")
    session.results.table(Table(columns, tuple(rows)), session.mode)


STREAMS = Command(
    "streams",
    ".streams",
    "streams, relations and views, and what has come in",
    "rows: taken so far. left out: malformed and late rows. latest: the greatest instant seen.",
    _streams,
    (),
    (".streams",),
)
