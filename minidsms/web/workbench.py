"""What the page may do: run statements, complete them, pin and force plans.

Everything that has a statement is done by one, so that the page can do what a shell can, and nothing else. A query that
the page registers is the page's: its answers go nowhere else.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from minidsms.cql.errors import CqlError, Error
from minidsms.cql.masking import masked
from minidsms.shell.showing import cell
from minidsms.streamon.loop import adaptations_of
from minidsms.system_streams.sys_stream import operator_names
from minidsms.web.answers import Nowhere, query_named

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.streamon.loop import Loop

FILTER_ORDERING = "filter ordering"
"""The technique whose plans are orders of filters by number."""
_MOST_ROWS = 2000
_MOST_CANDIDATES = 60


class Workbench:
    """The page's hands on a connection."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._random = random.Random()

    def run(self, text: str) -> dict[str, Any]:
        """Carry out statements: what they gave, in order, and the error that ended them, if one did."""
        from minidsms.cql.parser import parse

        results: list[dict[str, Any]] = []
        try:
            for statement in parse(text):
                start, end = statement.span
                # As many lines before it as in the whole: an error names the line the reader sees.
                results.append(self._carry_out("\n" * text.count("\n", 0, start) + text[start:end]))
        except Error as error:
            return {"results": results, "error": _error(error)}
        return {"results": results, "error": None}

    def _carry_out(self, text: str) -> dict[str, Any]:
        from minidsms.answers.table import Table

        db = self._db
        with db.lock:
            known, warned = set(db.queries), len(db.warnings)
            result = db.execute(text)
            new = [query for key, query in db.queries.items() if key not in known]
            for query in new:
                if query.sink is None:
                    query.look_on(1)  # from now on its answers are kept for the page
                    db.add_sink(query, Nowhere())
            warnings = db.warnings[warned:]
        told: dict[str, Any] = {
            "text": masked(text.strip()),
            "queries": [query.name for query in new],
            "warnings": warnings,
        }
        if isinstance(result, Table):
            rows = [[cell(value) for value in row] for row in result.rows[:_MOST_ROWS]]
            told["table"] = {"columns": list(result.columns), "rows": rows}
        return told

    def complete(self, before: str, after: str) -> list[dict[str, Any]]:
        """What may stand at the cursor: text, which replaces the last `length` characters before it, and what it is."""
        from minidsms.shell.completion import complete
        from minidsms.shell.names import Names
        from minidsms.shell.splitting import split

        start = 0
        for each in split(before):
            start = len(before) if each.is_complete else each.start
        found = complete(before[start:], after.split(";")[0], Names(self._db), self._db.safety.allows, is_asked=True)
        return [
            {"text": c.text, "length": c.length, "meta": c.meta, "shown": c.shown} for c in found[:_MOST_CANDIDATES]
        ]

    # ------------------------------------------------------------------------------------------------------- plans

    def change_plan(self, entity: str, number: int, action: str, plan: Any = None) -> dict[str, Any]:
        """Pin, unpin, or force a plan at a place where it can change.

        entity: of an operator.  number: among its places.  action: 'pin' the present plan, 'unpin', 'force' `plan`,
        an order of filters, or 'another', any legal plan.  Error where it is none.
        """
        with self._db.lock:
            place = self._place(entity, number)
            executor = place.executor
            if action == "unpin":
                place.unpin()
            elif action == "pin":
                place.pin()
            elif action == "force":
                self._force(place, _as_plan(plan))
            elif action == "another":
                for _ in range(20):
                    drawn = executor.random_plan(self._random)
                    if drawn != executor.plan and executor.is_legal(drawn):
                        self._force(place, drawn)
                        break
            else:
                raise Error(f"a plan can be pinned, unpinned or forced, not {action!r}")
            return {"plan": executor.plan_text(executor.plan), "pinned": place.is_pinned}

    def compare(self, name: str) -> dict[str, Any]:
        """Run a query a second time, on operators of its own whose plan stays: filters in the order in which they were
        written, joins as they are now.

        The copy's name, and of both the operators whose plans can change: what they take can be compared.
        """
        db = self._db
        with db.lock:
            query = query_named(db, name)
            copy = db.query(query.text, self._free_name(f"{query.name}_pinned"))
            try:
                db.add_sink(copy, Nowhere())
                copy.pause()  # which gives it operators of its own
                copy.resume()
                for place in adaptations_of(copy.network.working):
                    written = tuple(range(len(place.executor.plan))) if place.technique == FILTER_ORDERING else None
                    place.pin(written)
            except BaseException:
                copy.close()
                raise
            named = operator_names(db.queries.values())
            own = [id(op) for q in (query, copy) for op in q.network.working]
            return {"query": copy.name, "entities": [n for n, op in named if id(op) in own and adaptations_of((op,))]}

    def _free_name(self, wanted: str) -> str:
        number, name = 1, wanted
        while name.lower() in self._db.queries:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def _force(self, place: Loop[Any], plan: Any) -> None:
        try:
            is_legal = place.executor.is_legal(plan)
        except TypeError:  # its parts are not even comparable
            is_legal = False
        if not is_legal:
            raise Error(f"{plan!r} is no plan for {place.technique} of {place.operator}")
        place.pin(plan)

    def _place(self, entity: str, number: int) -> Loop[Any]:
        for name, operator in operator_names(self._db.queries.values()):
            places = adaptations_of((operator,)) if name == entity else []
            if 0 <= number < len(places):
                return places[number]
        raise Error(f"no plan can change at {entity!r}")


def _as_plan(value: Any) -> Any:
    """Lists as the tuples that plans are."""
    return tuple(_as_plan(each) for each in value) if isinstance(value, list) else value


def _error(error: Error) -> dict[str, Any]:
    text = str(error)
    told: dict[str, Any] = {"text": text if text.startswith("error:") else f"error: {text}", "position": None}
    if isinstance(error, CqlError) and error.position is not None:
        told["position"] = list(error.position)
    return told
