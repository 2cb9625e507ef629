"""Looks at a connection now and then, and keeps what the page shows of it: figures, the plan, decisions.

One thread, beside the engine's, which rests while no page is open. What it reads under the engine's lock belongs
together; what it makes of it, it makes after. The time between two looks grows with what a look takes, so that looking
has at most SHARE of the time.
Invariant: it changes nothing of the connection.  docs/visualizer.md.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minidsms.elements import MIN_INSTANT
from minidsms.past.past import MOST_QUERIES
from minidsms.process.threads import begin
from minidsms.settings import SETTINGS
from minidsms.statements.query_settings import ALTERABLE
from minidsms.streamon.loop import adaptations_of
from minidsms.system_streams.sys_stream import operator_names
from minidsms.web import plan_view
from minidsms.web.wire import text_of
from minidsms.web.workbench import FILTER_ORDERING

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.past.pictures import Picture
    from minidsms.query import Query
    from minidsms.streamon.plan_log import Decision

_log = logging.getLogger("minidsms.web")
SHARE = 0.01
_MOST_DECISIONS = 500
"""Told at a time; those before them are asked for."""
_MOST_STATISTICS = 60


@dataclass(frozen=True)
class Part:
    """A part of what is shown, as JSON. version: counts its changes.

    items: of a list that is told by what has changed in it, the version and the text of each.
    """

    version: int
    text: str = ""
    items: tuple[tuple[int, str], ...] | None = None

    def since(self, version: int) -> str:
        """What to tell one who was told the part in this version, 0 for none."""
        if self.items is None:
            return self.text
        return f"[{','.join(text for changed, text in self.items if changed > version)}]"


class Observer:
    """interval_s: the least time between two looks.  feeds: tells of the feeds the page runs."""

    def __init__(self, db: Connection, interval_s: float, feeds: Callable[[], Any]) -> None:
        self.parts: dict[str, Part] = {}
        self.changed: Callable[[], None] = lambda: None
        self.is_watched: Callable[[], bool] = lambda: True
        self._db = db
        self._interval_s = interval_s
        self._feeds = feeds
        self._shown: Picture | None = None
        self._decided: dict[int, tuple[float | None, int, str]] | None = None
        """By number: the gain it was told with, the version of the part since then, and what is told."""
        self._wake = threading.Event()
        self._is_over = self._has_failed = False
        self._look = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="minidsms-web-observer", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._try_to_look()
        begin(self._thread)

    def stop(self) -> None:
        """Look no more. Stopping twice is no error."""
        if not self._is_over:
            self._is_over = True
            self._wake.set()
            if self._thread.is_alive() and self._thread is not threading.current_thread():
                self._thread.join(timeout=2)

    def wake(self) -> None:
        """Something has changed that somebody waits to see."""
        self._wake.set()

    def _run(self) -> None:
        rest = self._interval_s
        while not self._is_over:
            self._wake.wait(rest if self.is_watched() else None)
            self._wake.clear()
            if self._is_over or self._db.is_closed:
                return
            began = time.thread_time()
            self._try_to_look()
            rest = max(self._interval_s, (time.thread_time() - began) / SHARE)

    def _try_to_look(self) -> None:
        try:
            self.look()
        except Exception:  # the next look may see more
            if not self._has_failed:
                _log.exception("the page could not be told what runs; told once")
            self._has_failed = True

    # ------------------------------------------------------------------------------------------------------- a look

    def look(self) -> None:
        """Read everything, and tell who listens."""
        with self._look:
            db, past = self._db, self._db.past
            with db.lock:
                if db.is_closed:
                    return
                drawn = past.draw(past.queries())
                past.look(drawn)
                at_s, told, pictures = past.at_s, past.told, list(past.pictures)
                described = self._describe(list(db.queries.values())[-MOST_QUERIES:], len(db.queries))
                decisions = list(db.streamon.plan_log)[-_MOST_DECISIONS:]
            self._set("catalog", described)
            if pictures and pictures[-1] is not self._shown:
                self._shown = pictures[-1]
                self._set("graph", {"at": at_s, **plan_view.picture(drawn)})
                self._set("pictures", [each.at_s for each in pictures])
            self._set("now", {"at": at_s, "told": told, **plan_view.figures(drawn.graph)})
            self._set_decisions(decisions)
            self._set("feeds", self._feeds())
        self.changed()

    def picture(self, at_s: float) -> Any:
        """The plan drawn at this time, one of `pictures`, as long as it is kept."""
        with self._db.lock:
            found = next((each for each in self._db.past.pictures if each.at_s == at_s), None)
        return None if found is None else plan_view.picture(found.drawn())

    def series(self, kind: str, entity: str, name: str) -> tuple[list[float], list[float]]:
        """A property over time: seconds since the connection began, and values."""
        with self._db.lock:
            series = self._db.past.series.of((kind, entity, name))
            return list(series.times), list(series.values)

    def decisions_before(self, number: int) -> list[dict[str, Any]]:
        """Those that were taken before one, as many as are told at a time."""
        with self._db.lock:
            before = [each for each in self._db.streamon.plan_log if each.number < number]
        return [self.decision(each) for each in before[-_MOST_DECISIONS:]]

    def _set(self, name: str, value: Any) -> None:
        text = text_of(value)
        before = self.parts.get(name)
        if before is None or before.text != text:
            self.parts[name] = Part(1 if before is None else before.version + 1, text)

    def _set_decisions(self, decisions: Sequence[Decision]) -> None:
        """Nothing of a decision changes but the gain that is measured."""
        before = self._decided
        version = 1 + (self.parts["decisions"].version if before is not None else 0)
        told = {}
        for each in decisions:
            known = (before or {}).get(each.number)
            if known is None or known[0] != each.measured_gain:
                known = each.measured_gain, version, text_of(self.decision(each))
            told[each.number] = known
        if told != before:
            self._decided = told
            self.parts["decisions"] = Part(version, items=tuple((v, text) for _, v, text in told.values()))

    def decision(self, decision: Decision) -> dict[str, Any]:
        """What is told of one."""
        return {
            "number": decision.number,
            "at": round(decision.decided_s - self._db.began_s, 6),
            "instant": None if decision.instant == MIN_INSTANT else decision.instant,
            "query": decision.query,
            "operator": decision.operator,
            "technique": decision.technique,
            "reason": decision.reason,
            "statistics": {name: _statistic(value) for name, value in decision.statistics.items()},
            "old": decision.old_plan,
            "new": decision.new_plan,
            "expected": decision.expected_gain,
            "measured": decision.measured_gain,
        }

    def _describe(self, queries: list[Query], n: int) -> dict[str, Any]:
        """What is declared. The caller holds the lock."""
        db = self._db
        inputs = [
            {
                "name": each.definition.name,
                "kind": "relation" if each.definition.name.lower() in db.catalog.relations else "stream",
                "columns": [[f.name, str(f.type)] for f in each.definition.schema],
                "has_source": bool(db.reading.of(each)),
            }
            for each in db.inputs
        ]
        return {
            "inputs": inputs,
            "queries": [_query(query) for query in queries],
            "more_queries": n - len(queries),
            "places": _places(queries),
            "settings": [[name, _shown(db.settings[name]), s.meaning, s.live] for name, s in SETTINGS.items()],
            "is_safe": db.safety.is_safe,
            "tick_ns": db.tick_ns,
        }


def _query(query: Query) -> dict[str, Any]:
    failure = query.failure
    return {
        "name": query.name,
        "kind": query.kind,
        "state": query.state,
        "text": query.text[:4000],
        "columns": [[f.name, str(f.type)] for f in query.schema],
        "settings": [[name, _shown(query.settings[name]), name in query.settings.own] for name in ALTERABLE],
        "failure": None if failure is None else f"at {failure[0]}: {failure[1]}",
    }


def _places(queries: list[Query]) -> list[dict[str, Any]]:
    """Where plans can change."""
    found = []
    for name, operator in operator_names(queries):
        for number, place in enumerate(adaptations_of((operator,))):
            plan = place.executor.plan
            is_order = place.technique == FILTER_ORDERING and isinstance(plan, tuple)
            found.append(
                {
                    "entity": name,
                    "number": number,
                    "technique": place.technique,
                    "plan": place.executor.plan_text(plan),
                    "order": list(plan) if is_order else None,
                    "pinned": place.is_pinned,
                }
            )
    return found


def _statistic(value: Any, depth: int = 2) -> Any:
    """What a decision rested on, as lists and objects; of long ones the beginning."""
    if depth and isinstance(value, Mapping):
        return {str(name): _statistic(each, depth - 1) for name, each in list(value.items())[:_MOST_STATISTICS]}
    if depth and isinstance(value, list | tuple):
        return [_statistic(each, depth - 1) for each in value[:_MOST_STATISTICS]]
    return value if value is None or isinstance(value, int | float) else str(value)[:300]


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
