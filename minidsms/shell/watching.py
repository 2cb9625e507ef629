"""Watches: which queries are shown, each in its mode.

Invariant: every query without a sink of its own has a tap (`tap.py`) from the moment it is registered, so a watch that
begins with the query misses nothing.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from minidsms.cql.errors import Error
from minidsms.shell.harmless import harmless
from minidsms.shell.modes.changelog import Changelog
from minidsms.shell.modes.count import CountMode
from minidsms.shell.modes.lines import LinesMode
from minidsms.shell.modes.mode import Look, Mode, ModeSpec
from minidsms.shell.modes.table import TableMode
from minidsms.shell.modes.top import TopMode
from minidsms.shell.results import Results
from minidsms.shell.tap import Tap

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.query import Query


@dataclass
class Watch:
    """A query that is watched. spec: the mode asked for this watch alone, or None for the session's.

    told_failure: it has been said that the query failed.
    """

    query: Query
    mode: Mode
    spec: ModeSpec | None
    told_failure: bool = field(default=False)


class Watches:
    """The watches of one connection.

    one_by_one: lines of csv and jsonl of the second query and later ones wait until `finish`, so that each query's
    lines stand together.
    """

    def __init__(self, db: Connection, results: Results, one_by_one: bool) -> None:
        self._db = db
        self._results = results
        self._taps: dict[str, tuple[Query, Tap]] = {}
        self._watches: dict[str, Watch] = {}
        self._one_by_one = one_by_one
        self._spools: dict[str, IO[bytes]] = {}
        self._first_lines: str | None = None

    def __len__(self) -> int:
        return len(self._watches)

    def all(self) -> list[Watch]:
        """The watches themselves."""
        return list(self._watches.values())

    def names(self) -> list[str]:
        """The names of the watched queries."""
        return [watch.query.name for watch in self._watches.values()]

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._watches

    # -------------------------------------------------------------------------------------------------- beginning

    def adopt(self, query: Query, watched: tuple[ModeSpec, Look] | None = None) -> bool:
        """Put a tap on a query; False where its answers go elsewhere. watched: how it is shown from its first waiting
        answer on. Error where the mode does not fit.
        """
        if query.sink is not None:
            return False
        tap = Tap()
        if watched is not None:
            tap.mode = _mode(watched[0], query, watched[1])
            self._watches[query.name.lower()] = Watch(query, tap.mode, None)
        self._db.add_sink(query, tap)
        self._taps[query.name.lower()] = (query, tap)
        return True

    def forget_closed(self) -> None:
        """Queries that have been dropped are watched no more."""
        for key, (query, _) in list(self._taps.items()):
            if self._db.queries.get(key) is not query:
                self._taps.pop(key)
                watch = self._watches.pop(key, None)
                if watch is not None:
                    self._tell(key, watch)

    def watch(self, query: Query, default: ModeSpec, spec: ModeSpec | None, look: Look) -> None:
        """Show the answers of a query from now on. Error where they go elsewhere, or the mode does not fit."""
        key = query.name.lower()
        if key not in self._taps:
            where = query.sink.path if query.sink is not None else "elsewhere"
            raise Error(f"the answers of {query.name} go to {where!r}\nhelp: leave INTO out to watch them here")
        with self._db.lock:
            mode = _mode(spec or default, query, look)
            before = self._watches.get(key)
            if isinstance(mode, Changelog) and before is not None and isinstance(before.mode, Changelog):
                mode.follow(before.mode)
            self._taps[key][1].show(mode)
            self._watches[key] = Watch(query, mode, spec)

    def unwatch(self, name: str) -> str:
        """Stop showing the answers of a query; it runs on. Its name. Error where it is not watched."""
        key = name.lower()
        watch = self._watches.get(key)
        if watch is None:
            watched = f"watched are: {', '.join(self.names())}" if self._watches else "nothing is watched"
            raise Error(f"{name} is not watched\nhelp: {watched}")
        with self._db.lock:
            self._taps[key][1].show(None)
            del self._watches[key]
        self._tell(key, watch)
        return watch.query.name

    def change(self, default: ModeSpec, look: Look) -> None:
        """The session's mode or limit has changed: watches follow. Those that cannot end, with an Error at last."""
        failed: Error | None = None
        for key, watch in list(self._watches.items()):
            self._tell(key, watch)
            try:
                self.watch(watch.query, default, watch.spec, look)
            except Error as error:
                failed = failed or error
                self.unwatch(key)
        if failed is not None:
            raise failed

    # ---------------------------------------------------------------------------------------------------- showing

    def tell(self) -> None:
        """Print what all watches have got since the last time."""
        for key, watch in list(self._watches.items()):
            self._tell(key, watch)

    def _tell(self, key: str, watch: Watch) -> None:
        with self._db.lock:
            news = watch.mode.news()
        if news and isinstance(watch.mode, LinesMode):
            self._lines(key, news)
        elif news:
            self._results.write(news)
        failure = watch.query.failure
        if failure is not None and not watch.told_failure:
            watch.told_failure = True
            ts, reason = failure
            self._results.complain(harmless(f"error: query {watch.query.name} stopped at instant {ts}: {reason}"))

    def _lines(self, key: str, news: str) -> None:
        """Lines for other programs: at once for the first query, later for the others."""
        if self._first_lines is None:
            self._first_lines = key
        if not self._one_by_one or self._first_lines == key:
            self._results.raw(news)
            return
        if key not in self._spools:
            self._spools[key] = tempfile.SpooledTemporaryFile(1 << 24)  # noqa: SIM115 closed by finish
        self._spools[key].write(news.encode())

    def drawn(self) -> int:
        """How many of them have pictures."""
        return sum(watch.mode.is_drawn for watch in self._watches.values())

    def pictures(self, height: int) -> list[list[str]]:
        """What is to be drawn in place, each at most `height` lines."""
        drawn = []
        for watch in list(self._watches.values()):
            if watch.query.failure is None and watch.mode.is_drawn:
                picture = watch.mode.picture(watch.query, height)
                if picture:
                    drawn.append(picture)
        return drawn

    def finish(self) -> None:
        """Everything has come: print what has waited for that."""
        self.tell()
        for watch in self._watches.values():
            if watch.query.failure is None:
                summary = watch.mode.summary(watch.query)
                if summary:
                    self._results.write(summary)
        for spool in self._spools.values():
            spool.seek(0)
            first = spool.readline()
            # Lines of names end what came before; objects need nothing between them.
            self._results.raw(("" if first.startswith(b"{") else "\n") + first.decode())
            for line in spool:
                self._results.raw(line.decode())
            spool.close()
        self._spools.clear()


def _mode(spec: ModeSpec, query: Query, look: Look) -> Mode:
    """The mode for a query. Error where it does not fit the query."""
    match spec.name:
        case "table":
            return TableMode(query, look)
        case "top":
            return TopMode(query, look, spec)
        case "count":
            return CountMode(query, look)
        case "csv" | "jsonl":
            return LinesMode(query, look, "csv" if spec.name == "csv" else "json")
        case _:
            return Changelog(query, look)
