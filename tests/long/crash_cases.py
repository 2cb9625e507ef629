"""Random queries over a durable connection that crashes, again and again; the oracle is a run that never stopped.

    python -m tests.long.crash_cases --cases 10000

A client makes the calls of a case one after the other, and keeps the answers together with their position, as an
application would in its own database. After a crash it opens the folder again, finds out by `db.position` and the names
of the queries which of its calls are kept, and goes on with the first that is not.

Under 'sync', and in any case when only the process has ended, no call that has returned may be lost. The answers must
be those of the run that never stopped: at every instant the same rows as often (docs/semantics, "Comparing answers").
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import os
import re
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import Any

from minidsms.connection import Connection, connect
from minidsms.cql.errors import CqlError, MemoryLimitError, QueryError
from minidsms.durability import blocks, checkpoint, kept_files, moment
from minidsms.durability.connection import DurableConnection
from minidsms.testing.feeds import Advance, Push, Step
from minidsms.testing.generators import Case, random_company
from minidsms.testing.grammar import Options
from minidsms.testing.user_definitions import USER_AGGREGATES, USER_FUNCTIONS, create
from tests.long.crash_files import FORMS, archived, into, lines_of
from tests.long.crash_limits import Limits, is_astray
from tests.long.crash_receivers import KINDS, Receiver, connections
from tests.long.crash_sources import check_sources
from tests.long.crash_topics import ADDRESS, Broker, broker
from tests.long.crashes import Crash, Disk, crashing, end_process

OPTIONS = Options(constants=0.05)
LAST = "AllHasCome"
"""A relation that is declared when all has come."""


@dataclass
class Kept:
    """What a client keeps of one query's answers, in one transaction with their position."""

    changes: list[tuple[Any, ...]] = field(default_factory=list)
    failed_at: int | None = None


@dataclass(frozen=True)
class Call:
    """One call of the client: a function to create, a statement, a query to register, or elements."""

    text: str = ""
    query: str = ""
    into: str = ""
    ends: str = ""
    step: Step | None = None
    function: str = ""
    is_insert: bool = False
    """The elements are those of a statement."""

    def make(self, db: Connection) -> None:
        """Make it."""
        if self.function:
            create(db, self.function)
        elif self.into:
            db.execute(f"CREATE QUERY {self.query} AS {self.text} {self.into}")
        elif self.ends:
            db.execute(f"DROP QUERY {self.ends}")
        elif self.query:
            db.query(self.text, self.query)
        elif isinstance(self.step, Advance):
            db.advance(self.step.ts, self.step.stream)
        elif isinstance(self.step, Push):
            rows, ts = [row for _, _, row in self.step.rows], [ts for ts, _, _ in self.step.rows]
            rows = widened(db, self.step.name, rows)
            is_relation = self.step.name.lower() in db.catalog.relations
            one = len(rows) == 1 and not is_relation  # the short way of a single tuple
            signs = [sign for _, sign, _ in self.step.rows] if is_relation else None
            if self.is_insert and all(sign == 1 for _, sign, _ in self.step.rows):
                columns = ("ts", *db.stream_input(self.step.name).schema.names)
                places = ", ".join(f"({', '.join('?' * len(columns))})" for _ in rows)
                values = [value for at, row in zip(ts, rows) for value in (at, *row)]
                db.execute(f"INSERT INTO {self.step.name} ({', '.join(columns)}) VALUES {places}", values)
                return
            db.push(self.step.name, rows[0] if one else rows, ts=ts[0] if one else ts, sign=signs)
        else:
            db.execute(self.text)


def widened(db: Connection, name: str, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows with a number in each column that ALTER has added."""
    width = len(db.stream_input(name).schema)
    return [(*row, *(len(row) + n for n in range(width - len(row)))) for row in rows]


def calls_of(
    cases: Sequence[Case],
    files: Mapping[int, str],
    widenings: Mapping[int, str],
    archives: Mapping[str, str],
    histories: Collection[int] = (),
    inserts: Collection[int] = (),
    again: Mapping[int, int] = MappingProxyType({}),
    backfills: Mapping[int, str] = MappingProxyType({}),
) -> list[Call]:
    """The calls of cases that share their declarations and their feed. files: what some queries write, as INTO or
    ARCHIVE says.  widenings: before which steps of the feed a stream gets one more column.  archives: of streams.
    histories: queries WITH HISTORY.  inserts: steps whose elements come by statements.  again: before which steps a
    query without a file is replaced by itself.  backfills: where the past is of queries with BACKFILL.

    A relation that is declared at last says, in a folder, that a query which is not there has been dropped.
    """
    used = " ".join([*cases[0].declarations, *[case.query for case in cases]])
    calls = [Call(function=name) for name in (*USER_FUNCTIONS, *USER_AGGREGATES) if name in used]
    for text in cases[0].declarations:
        folder = archives.get(text.split()[2])
        calls.append(Call(text=text if folder is None else f"{text} ARCHIVE '{folder}'"))
    for i, step in enumerate(cases[0].feed):
        for n, case in enumerate(cases):
            if case.registered == i:
                with_history = "WITH HISTORY " if n in histories else ""
                past = f" BACKFILL FROM '{backfills[n]}'" if n in backfills else ""
                calls.append(Call(case.query, f"answer{n}", with_history + files.get(n, "") + past))
        if i in widenings:
            calls.append(Call(f"ALTER STREAM {widenings[i]} ADD COLUMN added{i} INTEGER"))
        if i in again and cases[again[i]].registered < i:
            calls.append(Call(f"CREATE OR REPLACE QUERY answer{again[i]} AS {cases[again[i]].query}"))
        calls.append(Call(step=step, is_insert=i in inserts))
    calls.append(Call(f"CREATE RELATION {LAST} (k INTEGER)"))
    return calls + [Call(ends=f"answer{n}") for n in files]


def tell(db: Connection, receivers: Mapping[str, Receiver], attached: set[str]) -> None:
    """Let receivers be told of queries that are there since lately."""
    for name in receivers.keys() & db.queries.keys() - attached:
        attached.add(name)
        receivers[name].attach(db.queries[name])


def without_crash(
    calls: Sequence[Call], names: Sequence[str], receivers: Mapping[str, Receiver] = MappingProxyType({})
) -> dict[str, Kept]:
    """What a client keeps of a run that never stops. Raises CqlError where a query is refused."""
    with connect() as db:
        kept, attached = {name: Kept() for name in names}, set[str]()
        for call in calls:
            call.make(db)
            tell(db, receivers, attached)
            _fetch(db, kept)
        return kept


def _fetch(db: Connection, kept: dict[str, Kept]) -> None:
    """Take what is new, by its position."""
    for name, one in kept.items():
        query = db.queries.get(name)
        if query is None or one.failed_at is not None or query.results < len(one.changes):
            continue  # not registered yet, or what it answered before is still to be pushed again
        try:
            one.changes += [(c.ts, c.sign, tuple(c.row)) for c in query.fetch(ack=len(one.changes))]
        except QueryError as error:
            one.failed_at = error.ts


class Client:
    """Makes the calls of one case. loses: a crash is one of the machine, not of the process alone."""

    def __init__(
        self,
        calls: Sequence[Call],
        names: Sequence[str],
        folder: str,
        durability: str,
        loses: bool,
        rng: Random,
        receivers: Mapping[str, Receiver] = MappingProxyType({}),
    ) -> None:
        self.calls = calls
        self.folder = folder
        self.durability = durability
        self.loses = loses
        self.kept = {name: Kept() for name in names}
        self.returned = 0
        """Calls that have returned."""
        self.crashes = 0
        self.rng = rng
        self.receivers = receivers
        self.broker: Broker | None = None
        self.limits: Limits | None = None
        self.options: dict[str, Any] = {}
        """Of the connection."""
        self.is_repeatable = True
        """A copy of the folder, gone on with, gives the same answers."""
        self.floor = 0
        """Calls that are known to be on disk."""
        self.copies: list[tuple[str, int, dict[str, Kept]]] = []
        """Of the folder: where, how many calls had returned, and what was kept of them."""
        self.checkpoints = rng.choice((0.0, 0.1, 0.3))
        self._others = rng.choice((0.0, 0.0, 0.03, 0.1))

    def limit(self, limits: Limits) -> None:
        """Let limits strike."""
        self.limits, self.options, self.is_repeatable = limits, limits.options, False

    def run(self) -> None:
        """Make all calls, through as many crashes as come; the last attempt meets none."""
        rng = self.rng
        distance = rng.choice((10, 40, 150, 400))
        with connections() as close_all:
            for attempt in range(100):
                disk = Disk(os.path.dirname(self.folder), 0 if attempt == 99 else rng.randint(1, distance), rng)
                if self.broker is not None:
                    self.broker.operation = disk.operation
                has_crashed = True
                with crashing(disk):
                    while not self.go_on():
                        pass
                    has_crashed = False
                close_all()
                for receiver in self.receivers.values():
                    receiver.settle()
                if not has_crashed:
                    return
                self.crashes += 1
                if self.loses:
                    disk.lose()

    def take(self, db: Connection) -> None:
        """Keep what is new."""
        _fetch(db, self.kept)

    def go_on(self) -> bool:
        """Open the folder, find out which calls are kept, and make the others; whether all have been made."""
        db, attached = connect(self.folder, durability=self.durability, **self.options), set[str]()
        assert isinstance(db, DurableConnection)
        try:
            first = self._first_lost(db)
            promised = self.returned if self.durability == "sync" or not self.loses else self.floor
            assert first >= promised, f"call {first} was lost, and {promised} had returned"
            if self.limits is not None:
                self.limits.note(db)
            tell(db, self.receivers, attached)
            for i in range(first, len(self.calls)):
                self.take(db)
                if not self._is_made(db, i):
                    db.close()
                    return False
                tell(db, self.receivers, attached)
                self.returned = i + 1
                if self.rng.random() < self.checkpoints:
                    db.checkpoint()
                if self.rng.random() < self.checkpoints:
                    db.flush()
                if self.rng.random() < self._others and self._do_another(db):
                    return False
            self.take(db)
            db.close()
        except Crash:
            end_process(db)
            raise
        return True

    def _is_made(self, db: DurableConnection, i: int) -> bool:
        """Make a call; False where the folder has to be opened again."""
        limits, call = self.limits, self.calls[i]
        if limits is None:
            call.make(db)
            return True
        is_element = isinstance(call.step, Push)
        try:
            with limits.striking(self.rng) if is_element or call.step is not None else contextlib.nullcontext():
                call.make(db)
        except MemoryLimitError:
            assert is_element and not is_astray(db)
            limits.refused.add(i)
        except MemoryError:
            if not is_astray(db):
                call.make(db)
        if not is_astray(db):
            limits.note(db)
        return not is_astray(db)

    def _do_another(self, db: DurableConnection) -> bool:
        """What is no call of the case; whether it has ended the connection."""
        match self.rng.choice(("close", "fork", "copy", "position")):
            case "close":
                self.take(db)
                db.close()
                return True
            case "fork":
                in_child(db)
            case "copy" if self.is_repeatable and not any(
                "ARCHIVE" in call.text + call.into or "BACKFILL" in call.into for call in self.calls[self.returned :]
            ):
                self.take(db)  # an archive still to be made would be there already when the copy makes it
                place = f"{self.folder}-{os.getpid()}-{len(self.copies)}-{self.crashes}"
                db.backup(place)
                self.copies.append((place, self.returned, copy.deepcopy(self.kept)))
            case "position" if isinstance(step := self.calls[self.returned - 1].step, Push):
                db.position(step.name)
                self.floor = self.returned
        return False

    def check_copies(self, expected: Mapping[str, Kept]) -> None:
        """AssertionError where a copy of the folder, gone on with, gives other answers."""
        for place, returned, kept in self.copies:
            other = Client(self.calls, list(kept), place, "sync", False, self.rng)
            other.returned, other.kept, other._others = returned, kept, 0.0
            other.go_on()
            for name, one in kept.items():
                assert is_same(one, expected[name]), f"{name} of the copy after call {returned} differs"

    def _first_lost(self, db: Connection) -> int:
        """The first call that is not kept. Heartbeats, and queries that are replaced by themselves,
        cannot be told; they may come twice, as none says what is new.
        """
        counts: Counter[str] = Counter()
        first = 0
        for i, call in enumerate(self.calls):
            if self.limits is not None and i in self.limits.refused:
                first = i + 1
                continue
            if isinstance(call.step, Advance) or " REPLACE " in call.text:
                if i < self.returned and (self.durability == "sync" or not self.loses) and first == i:
                    first = i + 1
                continue
            if isinstance(call.step, Push):
                name = call.step.name
                counts[name] += len(call.step.rows)
                position = db.position(name) if self._is_declared(db, name) else 0
                assert position >= counts[name] or position <= counts[name] - len(call.step.rows), "half a push"
                if position < counts[name]:
                    break
            elif not self._is_there(db, call):
                break
            first = i + 1
        return first

    @staticmethod
    def _is_declared(db: Connection, name: str) -> bool:
        return name.lower() in db.catalog.streams or name.lower() in db.catalog.relations

    def _is_there(self, db: Connection, call: Call) -> bool:
        if call.function:
            return call.function in db.catalog.functions or call.function in db.catalog.aggregates
        if call.ends:
            return call.ends not in db.queries
        if call.query:
            return call.query in db.queries or (bool(call.into) and self._is_declared(db, LAST))
        words = call.text.split()
        if words[0].upper() == "SET":
            return str(db.settings[words[1]]) == words[3].strip("'")
        if words[0].upper() == "ALTER":
            return self._is_declared(db, words[2]) and words[5] in db.stream_input(words[2]).schema.names
        return db.catalog.kind_of(words[2]) is not None


def holds_by_itself(case: Case) -> bool:
    """A window of the case holds its rows by itself behind a checkpoint: what begins WITH HISTORY does not see them."""
    are_dropped = any("LATE DROP" in text for text in case.declarations)
    return re.search(r"\[ROWS \d+" if are_dropped else r"\[ROWS \d+ SLIDE", case.query) is not None


def in_child(db: Connection) -> None:
    """What a child does with the connection of its parent changes nothing."""
    process = os.fork()
    if process == 0:
        with contextlib.suppress(BaseException):
            db.close()
        os._exit(0)
    os.waitpid(process, 0)


def is_same(ours: Kept, theirs: Kept) -> bool:
    """At every instant the same answers."""
    is_equal = Counter(map(repr, ours.changes)) == Counter(map(repr, theirs.changes))
    instants = [change[0] for change in ours.changes]
    return is_equal and instants == sorted(instants) and ours.failed_at == theirs.failed_at


class Scene:
    """What happens in the case of a seed, in a folder of its own."""

    def __init__(self, seed: int, folder: str, broker: Broker | None = None, may_be_limited: bool = True) -> None:
        rng = Random(seed)
        self.folder = folder
        self.broker = broker
        self.cases = random_company(seed, OPTIONS)
        self._topics = [n for n in range(len(self.cases)) if broker is not None and rng.random() < 0.1]
        """Queries that write one."""
        self.forms = {n: rng.choice(FORMS) for n in range(len(self.cases)) if rng.random() < 0.3}
        """Of the queries that write files."""
        self.forms = {n: form for n, form in self.forms.items() if n not in self._topics}
        others = [n for n in range(len(self.cases)) if n not in self.forms and n not in self._topics]
        self.told = {n: rng.choice(KINDS) for n in others if rng.random() < 0.3}
        """Of the queries whose answers somebody is told."""
        self.names = [f"answer{n}" for n in others if n not in self.told]
        streams, steps = sorted(self.cases[0].slack()), range(len(self.cases[0].feed))
        self._widenings = {n: rng.choice(streams) for n in steps if rng.random() < 0.05 and streams}
        self.archived = [name for name in streams if rng.random() < 0.2 and name not in self._widenings.values()]
        """Streams."""
        self.histories = [n for n, case in enumerate(self.cases) if case.registered and rng.random() < 0.3]
        if any(map(holds_by_itself, self.cases)):
            self.histories = []
        """Queries WITH HISTORY."""
        past = Random(f"the past of {seed}")
        self.backfills: list[int] = []
        if past.random() < 0.2:
            declared = [text.split() for text in self.cases[0].declarations]
            self.archived = [words[2] for words in declared if words[1] in ("STREAM", "RELATION")]
            self._widenings = {}
            self.backfills = [n for n, _ in enumerate(self.cases) if past.random() < 0.5]
            self.histories = [n for n in self.histories if n not in self.backfills]
        """Queries with BACKFILL."""
        self._inserts = [n for n in steps if rng.random() < 0.1]
        fetched = [n for n in others if n not in self.told]
        self._again = {n: rng.choice(fetched) for n in steps if rng.random() < 0.05 and fetched}
        self.limits: Limits | None = None
        if broker is not None and rng.random() < 0.3 and may_be_limited:
            self.limit(rng)
        self.durability = rng.choice(("sync", "sync", "batch", "os"))
        self.story = f"seed {seed}, {self.durability}"
        self.rng = rng

    def limit(self, rng: Random) -> None:
        """Let limits strike."""
        self.limits = Limits(rng.choice((0.0, 0.01, 0.05)), rng.choice((3, 10, 10**6)))
        self._again = {}  # a query that has failed would begin anew
        self.backfills = []
        self.histories = []  # a query that has failed holds no windows that later ones could see

    def receivers(self) -> dict[str, Receiver]:
        """By query."""
        return {f"answer{n}": Receiver(kind) for n, kind in self.told.items()}

    def calls(self, which: str, receivers: Mapping[str, Receiver]) -> list[Call]:
        """Those of a client whose files begin with this."""
        files = {n: into(form, f"{self.folder}/{which}{n}") for n, form in self.forms.items()}
        files |= {n: where for n in self.told if (where := receivers[f"answer{n}"].into())}
        if which == "found":  # the oracle is fetched from: without a folder a topic has no transactions
            files |= {n: f"INTO '{ADDRESS}answer{n}'" for n in self._topics}
        archives = {name: f"{self.folder}/{which}-streams" for name in self.archived}
        backfills = {n: f"{self.folder}/{which}-streams" for n in self.backfills}
        return calls_of(
            self.cases, files, self._widenings, archives, self.histories, self._inserts, self._again, backfills
        )

    def not_refused(self, receivers: Mapping[str, Receiver]) -> list[Call]:
        """Those of the oracle that no limit has refused."""
        refused = () if self.limits is None else self.limits.refused
        return [call for i, call in enumerate(self.calls("wanted", receivers)) if i not in refused]

    def is_valid(self) -> bool:
        """Nothing in it is refused."""
        with connect() as db:
            try:
                for call in calls_of(self.cases, {}, self._widenings, {}, self.histories, self._inserts):
                    call.make(db)
            except CqlError:
                return False
        return True

    def compare_limited(
        self, ours: Mapping[str, Kept], theirs: Mapping[str, Kept], told: Sequence[Mapping[str, Receiver]]
    ) -> None:
        """As the others, where limits may have made queries fail."""
        limits = self.limits
        assert limits is not None
        for name in self.names:
            found, wanted = ([(change[0], repr(change)) for change in each[name].changes] for each in (ours, theirs))
            own = theirs[name].failed_at
            assert own is None or limits.failed.get(name, own + 1) <= own, f"{self.story}: {name} has not failed"
            limits.check(name, found, wanted, story=self.story)
        for n, form in self.forms.items():
            places = (f"{self.folder}/{which}{n}" for which in ("found", "wanted"))
            rows = ([(int(row[0]), repr(row)) for row in lines_of(form, place)[1].elements()] for place in places)
            limits.check(f"answer{n}", *rows, story=self.story)
        for name in told[0]:
            lists = ([(ts, f"{sign} {row}") for ts, sign, row in each[name].told] for each in told)
            limits.check(name, *lists, story=self.story)
        for name in self.topics:
            records = [json.loads(value) for value in self.broker.committed(name)] if self.broker else []
            signs = [(record["_ts"], str(record.get("_sign", 1))) for record in records]
            limits.check(name, signs, [(ts, str(sign)) for ts, sign, _ in theirs[name].changes], story=self.story)
        for name in self.archived:
            elements = [archived(f"{self.folder}/{which}-streams", name) for which in ("found", "wanted")]
            assert elements[0] == elements[1], f"{self.story}: the archive of {name} differs\n{self.cases[0]}"

    @property
    def topics(self) -> list[str]:
        """Queries that write one."""
        return [f"answer{n}" for n in self._topics]

    def compare_topics(self, expected: Mapping[str, Kept]) -> None:
        """AssertionError where a topic has not each answer once, in order."""
        assert self.broker is not None
        for name in self.topics:
            records = [json.loads(value) for value in self.broker.committed(name)]
            found = [(row["_ts"], row.get("_sign", 1)) for row in records]
            wanted = [(ts, sign) for ts, sign, _ in expected[name].changes]
            assert Counter(found) == Counter(wanted), f"{self.story}: the topic of {name} differs"
            numbers = self.broker.numbers(name)
            assert numbers == list(range(len(found))), f"{self.story}: the topic of {name} has {numbers}"

    def compare_told(self, ours: Mapping[str, Receiver], theirs: Mapping[str, Receiver]) -> None:
        """AssertionError where receivers have been told something else."""
        for name in ours:
            found, wanted = ([*each[name].told] for each in (ours, theirs))
            story = f"{self.story}: {ours[name].kind} of {name} differs\n{self.cases[int(name.removeprefix('answer'))]}"
            assert Counter(found) == Counter(wanted), story
            instants = [ts for ts, _, _ in found]
            assert instants == sorted(instants), f"{self.story}: {name} is told out of order"

    def compare(self, ours: Mapping[str, Kept], theirs: Mapping[str, Kept]) -> None:
        """AssertionError where answers or files differ from those of a run that never stopped, whose are "wanted"."""
        for n, form in self.forms.items():
            files = [lines_of(form, f"{self.folder}/{which}{n}") for which in ("found", "wanted")]
            assert files[0] == files[1], f"{self.story}: {form} of query {n} differs\n{self.cases[n]}"
        for name in self.archived:
            elements = [archived(f"{self.folder}/{which}-streams", name) for which in ("found", "wanted")]
            assert elements[0] == elements[1], f"{self.story}: the archive of {name} differs\n{self.cases[0]}"
        left = [name for name in os.listdir(self.folder) if name.endswith(".kept")]
        assert not left, f"{self.story}: {left} is left"
        for name in self.names:
            found, wanted = ours[name], theirs[name]
            failures = f"{name} failed at {found.failed_at}, not {wanted.failed_at}"
            assert found.failed_at == wanted.failed_at, f"{self.story}: {failures}"
            assert is_same(found, wanted), f"{self.story}: {name} differs, or is out of order\n{self.cases[0]}"


def check_calls(
    calls: Sequence[Call], names: Sequence[str], folder: str, seed: int, wanted: Sequence[Call] | None = None
) -> int:
    """Make calls through crashes, in a new folder; how many there were. AssertionError where the answers of these
    queries are not those of a run that never stopped. wanted: the calls of that one, where they differ.
    """
    rng = Random(seed)
    expected = without_crash(wanted or calls, names)
    loses = rng.random() < 0.7
    client = Client(calls, names, folder, rng.choice(("sync", "batch", "os")), loses, rng)
    client.run()
    for name in names:
        assert is_same(client.kept[name], expected[name]), f"seed {seed}: {name} differs"
    return client.crashes


@contextlib.contextmanager
def marking(seconds: float) -> Iterator[None]:
    """Marks of files are made so often: the clock must not decide what happens."""
    before, kept_files.MARK_S = kept_files.MARK_S, seconds
    try:
        yield
    finally:
        kept_files.MARK_S = before


@contextlib.contextmanager
def copied_by_children(are_all: bool) -> Iterator[None]:
    """However small the state is that a checkpoint keeps, a child process copies it."""
    before, moment._COPIED_BYTES = moment._COPIED_BYTES, -1 if are_all else moment._COPIED_BYTES
    try:
        yield
    finally:
        moment._COPIED_BYTES = before


@contextlib.contextmanager
def in_blocks(are_small: bool) -> Iterator[None]:
    """Checkpoints have blocks of a few bytes and rows, or, of cases so small, none."""
    before = blocks.LEAST_BYTES, blocks.ARRAY_BYTES, checkpoint.ROWS_AT_ONCE
    if are_small:
        blocks.LEAST_BYTES, blocks.ARRAY_BYTES, checkpoint.ROWS_AT_ONCE = 32, 64, 4
    try:
        yield
    finally:
        blocks.LEAST_BYTES, blocks.ARRAY_BYTES, checkpoint.ROWS_AT_ONCE = before


def check(seed: int) -> int:
    """Run the case of a seed; how many crashes it went through. AssertionError where an answer differs."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ending:
        scene = Scene(seed, folder, ending.enter_context(broker()))
        ours, theirs = scene.receivers(), scene.receivers()
        for receiver in (*ours.values(), *theirs.values()):
            ending.callback(receiver.end)
        names = [*scene.names, *scene.topics]
        if scene.limits is not None:
            return check_limits(scene, ours, theirs) if scene.is_valid() else 0
        try:
            expected = without_crash(scene.calls("wanted", theirs), names, theirs)
        except CqlError:
            return 0
        rng = scene.rng
        loses = rng.random() < 0.7
        scene.story += ", machine" if loses else ", process"
        calls = scene.calls("found", ours)
        client = Client(calls, scene.names, folder + "/db", scene.durability, loses, rng, ours)
        client.broker = scene.broker
        with marking(rng.choice((0.0, 1e9))), in_blocks(seed % 2 == 1):
            try:
                client.run()
            except BaseException as error:
                error.add_note(scene.story)
                raise
        for receiver in theirs.values():
            receiver.settle()
        scene.compare(client.kept, expected)
        scene.compare_told(ours, theirs)
        scene.compare_topics(expected)
        if not scene.topics:  # a copy takes them
            client.check_copies(expected)
    return client.crashes


def check_limits(scene: Scene, ours: Mapping[str, Receiver], theirs: Mapping[str, Receiver]) -> int:
    """`check` of a case whose calls are limited."""
    rng = scene.rng
    loses = scene.durability == "sync" and rng.random() < 0.7  # else calls that are lost may fail otherwise
    scene.story += f", limits, {'machine' if loses else 'process'}"
    client = Client(scene.calls("found", ours), scene.names, scene.folder + "/db", scene.durability, loses, rng, ours)
    assert scene.limits is not None
    client.broker = scene.broker
    client.limit(scene.limits)
    with marking(rng.choice((0.0, 1e9))), in_blocks(rng.random() < 0.5):
        try:
            client.run()
        except BaseException as error:
            error.add_note(scene.story)
            raise
    expected = without_crash(scene.not_refused(theirs), [*scene.names, *scene.topics], theirs)
    for receiver in theirs.values():
        receiver.settle()
    scene.compare_limited(client.kept, expected, (ours, theirs))
    return client.crashes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=100, help="processes that are killed afterwards")
    parser.add_argument("--failures", type=int, default=1, help="go on until so many cases have failed")
    options = parser.parse_args()
    from tests.long.crash_growing import check_growing
    from tests.long.crash_measured import check_measured

    failures = Failures(options.failures)
    crashes = 0
    checks = (check_sources, check, check_measured, check_sources, check, check_growing)
    for seed in range(options.seed, options.seed + options.cases):
        crashes += failures.of(checks[seed % len(checks)], seed)
    print(f"{options.cases:,} cases, {crashes:,} crashes: {failures}", flush=True)
    if options.kills:
        from tests.long.crash_kills import check_kills

        seed = kills = 0
        while kills < options.kills:
            kills, seed = kills + failures.of(check_kills, options.seed + seed), seed + 1
        print(f"{seed:,} cases, {kills:,} processes killed: {failures}")
    failures.end()


class Failures:
    """Cases that have failed, each told as it does. SystemExit after the last that is waited for."""

    def __init__(self, most: int) -> None:
        self.cases: list[str] = []
        self._most = most

    def of(self, check: Callable[[int], int], seed: int) -> int:
        """How many crashes the case of a seed went through, 0 where it has failed."""
        try:
            return check(seed)
        except Exception:
            traceback.print_exc()
        self.cases.append(f"{check.__name__}({seed})")
        print(f"{self.cases[-1]} has failed", flush=True)
        if len(self.cases) == self._most:
            self.end()
        return 0

    def __str__(self) -> str:
        return ", ".join(self.cases) + " failed" if self.cases else "every answer as if there had been none"

    def end(self) -> None:
        """SystemExit, where cases have failed."""
        if self.cases:
            raise SystemExit(str(self))


if __name__ == "__main__":
    main()
