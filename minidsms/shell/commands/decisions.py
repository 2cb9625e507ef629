"""`.decisions`: what the adaptive parts of the engine have decided about a query, and why."""

from __future__ import annotations

from minidsms.answers.table import Table
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.session import Session


def _decisions(session: Session, arguments: Arguments) -> None:
    arguments.at_most(1)
    queries = [session.query_named(arguments.words[0].text)] if arguments.words else list(session.db.queries.values())
    decisions = sorted((d for query in queries for d in query.decisions()), key=lambda d: d.number)
    if not decisions:
        adaptive = session.db.settings["adaptive"]
        session.screen.note("no plan has changed" + ("" if adaptive == "on" else " (adaptive is off)"))
        return
    rows = tuple(
        (
            decision.number,
            decision.query,
            session.instants.show(decision.instant),
            decision.technique,
            f"{decision.old_plan} -> {decision.new_plan}",
            decision.reason,
            _share(decision.expected_gain),
            _share(decision.measured_gain),
        )
        for decision in decisions
    )
    columns = ("#", "query", "at", "technique", "plan", "reason", "expected", "measured")
    session.results.table(Table(columns, rows), session.mode)


def _share(gain: float | None) -> str | None:
    return None if gain is None else f"{100 * gain:.0f} %"


DECISIONS = Command(
    "decisions",
    ".decisions [query]",
    "what was decided about the plan while it ran, and why",
    "A line for each change of a plan: when and by what, from which plan to which, why, and the share of the cost it "
    "was expected to save, and did. SET adaptive = off; keeps plans as they are.",
    _decisions,
    ("query",),
    (".decisions", ".decisions slow"),
)
