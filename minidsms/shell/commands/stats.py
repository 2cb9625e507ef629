"""`.stats`: what the operators of a query have done."""

from __future__ import annotations

from minidsms.activity import measure
from minidsms.answers.table import Table
from minidsms.plan.explain import figure
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.session import Session


def _stats(session: Session, arguments: Arguments) -> None:
    arguments.at_most(1)
    if not arguments.words:
        activity = measure(session.db)
        taken = sum(i.accepted for i in activity.inputs.values())
        left_out = sum(i.rejected for i in activity.inputs.values())
        rows: tuple[tuple[object, ...], ...] = (
            ("rows taken", taken),
            ("rows left out", left_out),
            ("changes delivered", sum(q.results for q in activity.queries.values())),
            ("bytes held", activity.nbytes),
            ("greatest lag", session.instants.length(activity.lag)),
        )
        session.results.table(Table(("figure", "value"), rows), session.mode)
        return
    query = session.query_named(arguments.words[0].text)
    stats = query.stats()
    total = sum(op["time_s"] for op in stats["operators"]) or 1.0
    known = {"operator", "detail", "elements_in", "elements_out", "time_s"}
    operators = tuple(
        (
            f"{op['operator']} {op['detail']}".strip(),
            op["elements_in"],
            op["elements_out"],
            f"{op['time_s'] * 1000:.1f} ms",
            f"{100 * op['time_s'] / total:.0f} %",
            ", ".join(f"{k.replace('_', ' ')} {figure(v)}" for k, v in op.items() if k not in known and v is not None),
        )
        for op in stats["operators"]
    )
    session.results.table(Table(("operator", "in", "out", "time", "share", "state"), operators), session.mode)


STATS = Command(
    "stats",
    ".stats [query]",
    "figures of everything, or of a query's operators",
    "in and out: elements an operator has taken and given. time: spent in it, and its share of the query's.",
    _stats,
    ("query",),
    (".stats", ".stats slow"),
)
