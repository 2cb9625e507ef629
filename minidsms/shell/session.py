"""A session of the shell: a connection, what is shown of it and how, and what has been said so far.

The session knows nothing of terminals: the interactive shell and the one that reads from a pipe share it.

Invariant: whatever a statement or command does, it is done when the call returns, or the Error says why not; only
feeds go on by themselves, in steps that the caller takes (`step_feeds`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from minidsms.counted import counted
from minidsms.cql.errors import CqlError, Error
from minidsms.shell.harmless import error_line, harmless
from minidsms.shell.instants import Instants, duration, number
from minidsms.shell.modes.mode import Look, ModeSpec
from minidsms.shell.results import Results
from minidsms.shell.screen import Screen
from minidsms.shell.splitting import Input, split
from minidsms.shell.statement_log import StatementLog
from minidsms.shell.watching import Watches

if TYPE_CHECKING:
    from minidsms.connection import Connection
    from minidsms.cql import syntax
    from minidsms.process.safety import Safety
    from minidsms.query import Query
    from minidsms.shell.configuration import Configuration
    from minidsms.shell.feed import Feed
    from minidsms.shell.plan_drawing import PlanDrawing
    from minidsms.sinks.sink import Sink


class Quit(Exception):
    """The session is to end."""


class Session:
    """See the module.

    is_interactive: somebody is there to ask for what they want to see; otherwise every query is watched, feeds run to
    their ends at once, and errors end the session.
    """

    def __init__(
        self,
        screen: Screen,
        configuration: Configuration,
        safety: Safety,
        is_interactive: bool,
        clock: Callable[[], float] = time.monotonic,
        only_looks: bool = False,
    ) -> None:
        self.screen = screen
        self.results = Results(screen)
        self.configuration = configuration
        self.is_interactive = is_interactive
        self.only_looks = only_looks
        """It is only asked what there is: what waits in a folder goes on waiting."""
        self.clock = clock
        self.mode: ModeSpec = configuration.mode
        self.limit: int = configuration.limit if is_interactive else 0
        self.timer: bool = configuration.timer
        self.feeds: list[Feed] = []
        self.plan_shown: tuple[Query, PlanDrawing] | None = None
        self.on_step: Callable[[Feed], object] = lambda feed: None
        self._sinks: list[tuple[str, Sink]] = []
        self._reading: list[str] = []
        self._told_of_advance = False
        self._begin(safety)

    def _begin(self, safety: Safety) -> None:
        from minidsms.connection import connect
        from minidsms.process.safety import STANDARD

        given = dict(self.configuration.settings)
        is_safe = safety.is_safe or given.pop("safe", "off") == "on"
        folders = (*safety.folders, *given.pop("allowed_paths", ())) if not safety.is_safe else safety.folders
        given |= {"safe": is_safe, "allowed_paths": (*folders, STANDARD)}
        self.db: Connection = connect(self.configuration.db, **given)
        self.instants = Instants(self.db)
        self.log = StatementLog()
        self.watches = Watches(self.db, self.results, one_by_one=not self.is_interactive)
        for query in self.db.queries.values():
            self._adopt_kept(query)

    def begin_anew(self) -> None:
        """Close the connection and go on with an empty one. Error where a folder keeps it."""
        if self.configuration.db is not None:
            raise Error(f"the connection is that of the folder {self.configuration.db!r}, and is not empty")
        self.stop_feeds()
        self.plan_shown = None
        self.db.close()
        self._begin(self.db.safety)

    @property
    def safety(self) -> Safety:
        """What may be touched: the connection's."""
        return self.db.safety

    def close(self) -> None:
        """End everything; files that queries write stand in their places afterwards."""
        self.stop_feeds()
        try:
            self.results.redirect(None)
        finally:
            self.db.close()

    def abandon(self) -> None:
        """End everything after an error: files that queries were writing are left as they were."""
        self.stop_feeds()
        for query in list(self.db.queries.values()):
            query.discard_sink()
        self.close()

    def written(self) -> list[tuple[str, Sink]]:
        """The sinks that queries of this session were given by INTO, by the query's name."""
        return self._sinks

    # ----------------------------------------------------------------------------------------------------- input

    def run_text(self, text: str) -> None:
        """Run every input of a text. Raises Error at the first that fails; lines in errors are those of the text."""
        for each in split(text):
            self.run_input(each, text)

    def run_input(self, each: Input, text: str) -> None:
        """Run one input of a text."""
        started = self.clock()
        if each.is_command:
            from minidsms.shell.commands import run_command

            run_command(self, each.text)
        else:
            # As many lines before it as in the whole: an error then names the line the reader sees.
            try:
                self.execute("\n" * text.count("\n", 0, each.start) + each.text)
            except CqlError as error:
                error.hint = _command_within(each.text) or error.hint
                raise
        if self.timer:
            self.results.write(f"Run Time: {duration(self.clock() - started)}\n")

    def run_file(self, path: str) -> None:
        """Run the inputs of a file. Error where it cannot be read, or reads itself."""
        import os

        from minidsms.shell.reading import read_statements

        self.safety.check_path(path)
        place = os.path.realpath(path)
        if place in self._reading:
            raise Error(f"{path!r} reads itself")
        text = read_statements(path)
        self._reading.append(place)
        try:
            self.run_text(text)
        finally:
            self._reading.pop()

    def execute(self, cql: str) -> None:
        """Carry out statements and show what they give."""
        from minidsms.cql import syntax
        from minidsms.cql.parser import parse

        for statement in parse(cql):
            start, end = statement.span
            with self.db.lock:
                warned = len(self.db.warnings)
                known = set(self.db.queries)
                result = self.db.execute("\n" * cql.count("\n", 0, start) + cql[start:end])
                new = [query for key, query in self.db.queries.items() if key not in known]
                for query in new:
                    if not self.watches.adopt(query) and query.sink is not None:
                        self._sinks.append((query.name, query.sink))
                self.watches.forget_closed()
                if new or not isinstance(statement, syntax.QueryStatement):
                    self.log.note(statement, new[0].name if new else "")
            for warning in self.db.warnings[warned:]:
                self.screen.warn(harmless(warning))
            self._show(statement, result, new)

    def _show(self, statement: syntax.Statement, result: object, new: list[Query]) -> None:
        """What a statement has given."""
        from minidsms.answers.table import Table
        from minidsms.cql import syntax

        if isinstance(result, Table):
            self.results.table(result, self.mode)
            return
        if isinstance(statement, syntax.RowChange):
            self._hint_at_advance()
        for query in new:
            if query.sink is not None and query.sink.path != "-":
                self.screen.note(harmless(f"{query.name} runs and writes {query.sink.path}"))
            elif isinstance(statement, syntax.QueryStatement) or not self.is_interactive:
                self._watch_new(query)
                self._hint_at_feed()
                self._hint_at_past(query)
                self._hint_at_present(query)
            else:
                self.screen.note(harmless(f"{query.name} runs; .watch {query.name} shows its answers"))
                self._hint_at_feed()
        if isinstance(statement, syntax.CreateStream | syntax.CreateRelation) and statement.source is not None:
            self.screen.note("its source waits: register queries, then .feed begins to read")

    def _adopt_kept(self, query: Query) -> None:
        """A query that a folder has kept: where nobody is at the keyboard, all that waits is shown."""
        if self.only_looks:
            return
        if self.is_interactive:
            self.watches.adopt(query)
            return
        try:
            self.watches.adopt(query, (self.mode, self.look()))
        except Error:
            self.watches.adopt(query, (ModeSpec("changelog"), self.look()))

    def _watch_new(self, query: Query) -> None:
        try:
            self.watches.watch(query, self.mode, None, self.look())
        except Error as error:
            # The mode does not fit this query; its changes do.
            self.screen.note(harmless(f"{str(error).splitlines()[0]}: mode changelog for {query.name}"))
            self.watches.watch(query, self.mode, ModeSpec("changelog"), self.look())

    def _hint_at_feed(self) -> None:
        driver = self.db.source_driver
        if driver is not None and not driver.has_ended and not self.feeds:
            self.screen.note("the sources wait: .feed begins to read")

    def _hint_at_advance(self) -> None:
        """Say, once, why what has been inserted is not answered yet."""
        from minidsms.activity import measure

        if not self._told_of_advance:
            self._tell_who_waits([query.name for query in measure(self.db).queries.values() if query.lag])

    def _hint_at_present(self, query: Query) -> None:
        """Say why a query over relations alone does not show yet what they hold."""
        network = query.network
        if not network.streams and any(relation.last_ts is not None for relation in network.relations):
            self._tell_who_waits([query.name])

    def _tell_who_waits(self, names: list[str]) -> None:
        if names and self.is_interactive:
            self._told_of_advance = True
            they = f"{', '.join(names)} {'waits' if len(names) == 1 else 'wait'}"
            self.screen.note(harmless(f"{they} until nothing more can come at this instant: .advance +1s says so"))

    def _hint_at_past(self, query: Query) -> None:
        from minidsms.inputs.stream_input import StreamInput

        streams = [stream for stream in query.network.streams if isinstance(stream, StreamInput)]
        passed = [stream.definition.name for stream in streams if stream.greatest_ts is not None]
        if passed and self.is_interactive:
            are = f"{', '.join(passed)} {'has' if len(passed) == 1 else 'have'} had rows"
            self.screen.note(
                harmless(f"{are}: {query.name} sees those from now on; register it before .feed to see all")
            )

    # ------------------------------------------------------------------------------------------------- watching

    def look(self) -> Look:
        """How results are shown now."""
        return Look(self.screen.styles, self.instants, self.limit)

    def query_named(self, name: str) -> Query:
        """A running query. Error with those there are."""
        query = self.db.queries.get(name.lower())
        if query is None:
            names = ", ".join(q.name for q in self.db.queries.values())
            there = f"there are: {names}" if names else "no query is running; write a SELECT .. ;"
            raise Error(f'no query "{name}"\nhelp: {there}')
        return query

    # --------------------------------------------------------------------------------------------------- feeding

    def begin_feed(self, feed: Feed) -> None:
        """Let a feed run: to its end where nobody is at the keyboard, else in steps."""
        self.feeds.append(feed)
        if not self.is_interactive:
            self.finish_feeds()

    def finish_feeds(self) -> None:
        """Take steps until every feed has ended."""
        while self.feeds:
            rest = self.step_feeds()
            self.watches.tell()
            self.screen.flush()
            if self.feeds and all(feed.is_stalled for feed in self.feeds):
                self.screen.warn("a paused stream holds the rest of its source back")
                self.stop_feeds()
            if rest:
                time.sleep(rest)

    def step_feeds(self) -> float:
        """One step of every feed. Seconds until the next is due."""
        rests = []
        for feed in list(self.feeds):
            try:
                rest = feed.step()
            except Error as error:
                self.feeds.remove(feed)
                if not self.is_interactive:
                    raise
                self.screen.error(error_line(error))
                continue
            self.on_step(feed)
            if rest is None:
                self.feeds.remove(feed)
                self.watches.tell()
                self.screen.note(harmless(said_of(feed)))
                self._tell_losses(feed)
                self._tell_open_windows(feed)
            else:
                rests.append(rest)
        return min(rests, default=0.0)

    def _tell_losses(self, feed: Feed) -> None:
        for name in feed.names:
            lost = feed.lost(name)
            if lost:
                examples = feed.inputs[name].rejected.examples()
                self.screen.warn(harmless(f"{name}: {counted(lost, 'row')} left out{examples}"))

    def _tell_open_windows(self, feed: Feed) -> None:
        """Say until when time has to go on for the last windows to be shown, where the streams stay open."""
        from minidsms.plan.reading import end_of

        if not self.is_interactive:
            return

        streams = set(map(id, feed.inputs.values()))
        for query in list(self.db.queries.values()):
            latest = query.latest_seen
            if latest is None or query.inputs_ended or not any(id(s) in streams for s in query.network.streams):
                continue
            end = end_of(query.logical, latest)
            if end > query.network.progress:
                at = self.instants.show(end)
                shown = at.replace(" ", "T")
                self.screen.note(
                    harmless(f"{query.name} shows its last window at {at}: .advance {shown}, or feed more")
                )

    def stop_feeds(self) -> None:
        """Leave the rest of all feeds unread."""
        for feed in self.feeds:
            feed.stop()
        self.feeds.clear()


def said_of(feed: Feed) -> str:
    """What a feed has done, in words."""
    rate = feed.rows / feed.took_s if feed.took_s > 0 else 0.0
    return f"fed {counted(feed.rows, 'row')} into {', '.join(feed.names)} in {duration(feed.took_s)} ({number(rate)}/s)"


def _command_within(statement: str) -> str:
    """The way out where a command's line has been taken for one of the statement before it."""
    from minidsms.shell.commands import ALIASES, COMMANDS

    names = (line[1:].partition(" ")[0].lower() for line in statement.splitlines()[1:] if line.startswith("."))
    found = next((name for name in names if name in COMMANDS or name in ALIASES), None)
    return "" if found is None else f'a ";" ends the statement before .{found}'
