"""Looks at a connection now and then, and keeps what it was: every figure of SysStream over time, every plan that ran.

A look is taken as a call begins, where one is due: at figures a second after the one before (sooner while the
connection is young), at plans when one has changed, and as a query is registered; but only while looking has at most
SHARE of the time. There is no thread and no clock of its own: while nobody calls, nothing changes.  The page looks on
its own.
Invariant: it changes nothing of the connection, and ends no call; what it keeps is bounded.  docs/visualizer.md.
"""

from __future__ import annotations

import functools
import logging
import math
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

from minidsms.past.series import AllSeries
from minidsms.system_streams.figures import Memory, Rows
from minidsms.system_streams.sys_stream import gather

if TYPE_CHECKING:
    from minidsms.engine.database import Database
    from minidsms.engine.running_query import RunningQuery
    from minidsms.past.pictures import Drawn, Picture

_log = logging.getLogger("minidsms.past")
SHARE = 0.003
CREDIT_S = 0.05
"""What looking may take beyond its share: the first looks take longer."""
MOST_QUERIES = 200
"""The newest queries are looked at."""
MOST_PICTURES = 1000
_INTERVAL_S = 1.0
_LEAST_S = 0.25
"""Of a connection that does not live as long, no figures are kept."""
_MOST_ENTITIES = 3000
"""Of a kind."""

Told = dict[str, dict[str, dict[str, float | int | None]]]
"""kind, entity, property: value."""


class Past:
    """Of a connection. The caller of every method holds its lock.

    series: of every property.  pictures: of the plans, in the order of time.  told: the last figures, at_s seconds
    after the connection began.  due_s, figures_due_s: when the next look is, and the next at figures, by
    `time.monotonic`.
    """

    def __init__(self, db: Database) -> None:
        self.series = AllSeries()
        self.pictures: deque[Picture] = deque(maxlen=MOST_PICTURES)
        self.told: Told = {}
        self.at_s = 0.0
        self.due_s = self.figures_due_s = math.inf
        self._db = db
        self._soonest_s = self._last_s = self._looked_s = db.began_s
        self._debt_s = 0.0
        self._since: Memory = WeakKeyDictionary()
        self._plans: object = None
        self._written = ""
        self._has_failed = False
        db.streamon.plan_log.subscribe(lambda decision: self.hasten())

    def hasten(self) -> None:
        """A plan has gone or changed: look as the next call begins, or as soon as may be."""
        now_s = time.monotonic()
        if self.figures_due_s == math.inf:
            self.figures_due_s = now_s + _LEAST_S
        self.due_s = min(self.due_s, max(self._soonest_s, now_s))

    def begin(self) -> None:
        """A plan has come: keep it before a decision changes it."""
        self.hasten()
        if time.monotonic() >= self.due_s:
            self.look()

    def look(self, drawn: Drawn | None = None) -> None:
        """Look, and keep what is seen: the plan, and the figures where they are due.

        drawn: the plan of now, of who has drawn it already, and shows the figures too.
        """
        began, now_s = time.thread_time(), time.monotonic()
        self._debt_s = max(0.0, self._debt_s - SHARE * (now_s - self._looked_s))
        self._looked_s = now_s
        queries = self.queries()
        try:
            if drawn is not None or now_s >= self.figures_due_s:
                self._remember(queries, now_s)
                age_s = now_s - self._db.began_s
                # Who shows them looks once in an interval: in between a rate would be of what happens to have come.
                after_s = 2 * _INTERVAL_S if drawn is not None else min(_INTERVAL_S, max(_LEAST_S, age_s / 20))
                self.figures_due_s = now_s + after_s
            # Not by identities, which objects that come later may have again.
            running = tuple((ref(query), *map(ref, query.network.working)) for query in queries)
            plans = (self._db.streamon.plan_log.taken, len(self._db.queries), running)
            if drawn is not None or plans != self._plans:
                self._remember_plan(drawn or self.draw(queries), now_s)
            self._plans = plans
        except Exception:  # the call that is under way goes on without it
            if not self._has_failed:
                _log.exception("what the connection was could not be kept; told once")
            self._has_failed = True
            self.figures_due_s = now_s + _INTERVAL_S
        self._debt_s += time.thread_time() - began
        self._soonest_s = now_s + max(0.0, (self._debt_s - CREDIT_S) / SHARE)
        self.due_s = max(self._soonest_s, self.figures_due_s)

    def queries(self) -> list[RunningQuery]:
        """Those that are looked at."""
        return list(self._db.queries.values())[-MOST_QUERIES:]

    def draw(self, queries: Sequence[RunningQuery]) -> Drawn:
        """The plan of now, as far as there is room in a picture."""
        from minidsms.past.pictures import draw, queries_drawn

        return draw(queries_drawn(queries), len(self._db.queries))

    def _remember(self, queries: Sequence[RunningQuery], now_s: float) -> None:
        db = self._db
        rows = Rows()
        gather(db, queries, rows, self._since, now_s - self._last_s, resets_peaks=False)
        self._last_s, self.at_s = now_s, round(now_s - db.began_s, 6)
        self.told = _told(rows)
        began = {query.name: round(query.began_s - db.began_s, 6) for query in queries}

        @functools.cache
        def began_at(entity: str) -> float:
            """When the query began to which an entity belongs, as `cars.2 Select` does to cars; else 0."""
            names = (entity, *(entity[:i] for i, c in enumerate(entity) if c == "."))
            return max((began[name] for name in names if name in began), default=0.0)

        self.series.add(
            self.at_s,
            (
                ((kind, entity, name), math.nan if value is None else float(value))
                for kind, entities in self.told.items()
                for entity, properties in entities.items()
                for name, value in properties.items()
            ),
            began_at,
        )

    def _remember_plan(self, drawn: Drawn, now_s: float) -> None:
        from minidsms.past.pictures import Picture, compressed, written

        text = written(drawn)
        if text != self._written:
            self._written = text
            self.pictures.append(Picture(round(now_s - self._db.began_s, 6), compressed(text)))


def _told(rows: Rows) -> Told:
    told: Told = {}
    for kind, entity, name, ival, fval in rows.told:
        entities = told.setdefault(kind, {})
        if entity in entities or len(entities) < _MOST_ENTITIES:
            entities.setdefault(entity, {})[name] = ival if fval is None else fval
    return told
