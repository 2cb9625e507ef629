"""Cases through archives: a part of the feed is archived, replayed into a new connection, and the rest follows live."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from minidsms.cql.errors import QueryError
from minidsms.testing.compare import Answer
from minidsms.testing.feeds import Push, Step
from minidsms.testing.generators import Case
from minidsms.testing.grammar import RELATIONS
from minidsms.testing.user_definitions import create_all


def archive_feed(case: Case, steps: Sequence[Step], folder: str, partition: int, flush_every: int) -> None:
    """Feed a connection whose streams and relations are archived; flush after every so many calls."""
    from minidsms.connection import connect

    with connect() as db:
        declare(db, case, folder, partition)
        for i, step in enumerate(steps):
            feed(db, step)
            if i % flush_every == 0:
                db.flush()


def run_replayed(
    case: Case,
    folder: str,
    rest: Sequence[Step],
    archives_on: bool = False,
    replay: dict[str, Any] | None = None,
    **options: Any,
) -> Answer:
    """The engine's answer when a connection replays the folder, then takes the rest of the feed.

    archives_on: the rest is archived where the first part is.  replay: arguments of `Connection.replay`.
    """
    from minidsms.connection import connect

    with connect(**options) as db:
        declare(db, case, folder if archives_on else None, 1)
        query = db.query(case.query)
        db.replay(folder, **(replay or {}))
        for step in rest:
            feed(db, step)
        return answer_of(query)


def answer_of(query: Any) -> Answer:
    """Everything a query says."""
    changes: list[Any] = []
    try:
        while fetched := query.fetch():
            changes += [(c.ts, c.sign, tuple(c.row)) for c in fetched]
    except QueryError as error:
        return Answer(tuple(changes), error.ts, error.reason)
    return Answer(tuple(changes), snapshot=tuple(query.snapshot()) if query.kind == "relation" else None)


def feed(db: Any, step: Step) -> None:
    """One call."""
    if not isinstance(step, Push):
        db.advance(step.ts, step.stream)
        return
    rows, ts = [row for _, _, row in step.rows], [ts for ts, _, _ in step.rows]
    signs: dict[str, Any] = {"sign": [sign for _, sign, _ in step.rows]} if step.name in RELATIONS else {}
    db.push(step.name, rows, ts=ts, **signs)


def declare(db: Any, case: Case, folder: str | None, partition: int) -> None:
    """The declarations of a case; folder: where everything is archived."""
    create_all(db)
    for declaration in case.declarations:
        db.execute(declaration)
    if folder is not None:
        for name in _names(case.declarations):
            db.archive(name, folder, partition=partition)


def _names(declarations: Iterable[str]) -> list[str]:
    return [d.split()[2] for d in declarations if d.startswith(("CREATE STREAM", "CREATE RELATION"))]
