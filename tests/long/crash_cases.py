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
import os
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from minidsms.connection import Connection, connect
from minidsms.cql.errors import CqlError, QueryError
from minidsms.durability import kept_files
from minidsms.durability.connection import DurableConnection
from minidsms.testing.feeds import Advance, Push, Step
from minidsms.testing.generators import Case, random_company
from minidsms.testing.grammar import Options
from minidsms.testing.user_definitions import USER_AGGREGATES, USER_FUNCTIONS, create
from tests.long.crash_files import FORMS, archived, into, lines_of
from tests.long.crash_sources import check_sources
from tests.long.crashes import Crash, Disk, crashing, end_process

OPTIONS = Options()
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
) -> list[Call]:
    """The calls of cases that share their declarations and their feed. files: what some queries write, as INTO or
    ARCHIVE says.  widenings: before which steps of the feed a stream gets one more column.  archives: of streams.
    histories: queries WITH HISTORY.

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
                calls.append(Call(case.query, f"answer{n}", with_history + files.get(n, "")))
        if i in widenings:
            calls.append(Call(f"ALTER STREAM {widenings[i]} ADD COLUMN added{i} INTEGER"))
        calls.append(Call(step=step))
    calls.append(Call(f"CREATE RELATION {LAST} (k INTEGER)"))
    return calls + [Call(ends=f"answer{n}") for n in files]


def without_crash(calls: Sequence[Call], names: Sequence[str]) -> dict[str, Kept]:
    """What a client keeps of a run that never stops. Raises CqlError where a query is refused."""
    with connect() as db:
        kept = {name: Kept() for name in names}
        for call in calls:
            call.make(db)
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
        self, calls: Sequence[Call], names: Sequence[str], folder: str, durability: str, loses: bool, rng: Random
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
        self.checkpoints = rng.choice((0.0, 0.1, 0.3))

    def run(self) -> None:
        """Make all calls, through as many crashes as come; the last attempt meets none."""
        rng = self.rng
        distance = rng.choice((10, 40, 150, 400))
        for attempt in range(100):
            disk = Disk(os.path.dirname(self.folder), 0 if attempt == 99 else rng.randint(1, distance), rng)
            done = False
            with crashing(disk):
                self.go_on()
                done = True
            if done:
                return
            self.crashes += 1
            if self.loses:
                disk.lose()

    def take(self, db: Connection) -> None:
        """Keep what is new."""
        _fetch(db, self.kept)

    def go_on(self) -> None:
        """Open the folder, find out which calls are kept, and make the others."""
        db = connect(self.folder, durability=self.durability)
        assert isinstance(db, DurableConnection)
        try:
            first = self._first_lost(db)
            if self.durability == "sync" or not self.loses:
                assert first >= self.returned, f"call {first} was lost, and {self.returned} had returned"
            for i in range(first, len(self.calls)):
                self.take(db)
                self.calls[i].make(db)
                self.returned = i + 1
                if self.rng.random() < self.checkpoints:
                    db.checkpoint()
                if self.rng.random() < self.checkpoints:
                    db.flush()
            self.take(db)
            db.close()
        except Crash:
            end_process(db)
            raise

    def _first_lost(self, db: Connection) -> int:
        """The first call that is not kept. Heartbeats cannot be told; they may come twice, as none says what is new."""
        counts: Counter[str] = Counter()
        first = 0
        for i, call in enumerate(self.calls):
            if isinstance(call.step, Advance):
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
        return db.catalog.kind_of(words[2]) is not None


class Scene:
    """What happens in the case of a seed, in a folder of its own."""

    def __init__(self, seed: int, folder: str) -> None:
        rng = Random(seed)
        self.folder = folder
        self.cases = random_company(seed, OPTIONS)
        self.forms = {n: rng.choice(FORMS) for n in range(len(self.cases)) if rng.random() < 0.3}
        """Of the queries that write files."""
        self.names = [f"answer{n}" for n in range(len(self.cases)) if n not in self.forms]
        streams, steps = sorted(self.cases[0].slack()), range(len(self.cases[0].feed))
        self._widenings = {n: rng.choice(streams) for n in steps if rng.random() < 0.05 and streams}
        self.archived = [name for name in streams if rng.random() < 0.2 and name not in self._widenings.values()]
        """Streams."""
        self.histories = [n for n, case in enumerate(self.cases) if case.registered and rng.random() < 0.3]
        """Queries WITH HISTORY."""
        self.durability = rng.choice(("sync", "sync", "batch", "os"))
        self.story = f"seed {seed}, {self.durability}"
        self.rng = rng

    def calls(self, which: str) -> list[Call]:
        """Those of a client whose files begin with this."""
        files = {n: into(form, f"{self.folder}/{which}{n}") for n, form in self.forms.items()}
        archives = {name: f"{self.folder}/{which}-streams" for name in self.archived}
        return calls_of(self.cases, files, self._widenings, archives, self.histories)

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
            is_same = Counter(map(repr, found.changes)) == Counter(map(repr, wanted.changes))
            assert is_same, f"{self.story}: {name} differs\n{self.cases[0]}"
            instants = [change[0] for change in found.changes]
            assert instants == sorted(instants), f"{self.story}: {name} is out of order"


def check_calls(calls: Sequence[Call], names: Sequence[str], folder: str, seed: int) -> int:
    """Make calls through crashes, in a new folder; how many there were. AssertionError where the answers of these
    queries are not those of a run that never stopped.
    """
    rng = Random(seed)
    expected = without_crash(calls, names)
    loses = rng.random() < 0.7
    client = Client(calls, names, folder, rng.choice(("sync", "batch", "os")), loses, rng)
    client.run()
    for name in names:
        found, wanted = client.kept[name], expected[name]
        assert found.failed_at == wanted.failed_at, name
        assert Counter(map(repr, found.changes)) == Counter(map(repr, wanted.changes)), f"seed {seed}: {name} differs"
    return client.crashes


@contextlib.contextmanager
def marking(seconds: float) -> Iterator[None]:
    """Marks of files are made so often: the clock must not decide what happens."""
    before, kept_files.MARK_S = kept_files.MARK_S, seconds
    try:
        yield
    finally:
        kept_files.MARK_S = before


def check(seed: int) -> int:
    """Run the case of a seed; how many crashes it went through. AssertionError where an answer differs."""
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(seed, folder)
        try:
            expected = without_crash(scene.calls("wanted"), scene.names)
        except CqlError:
            return 0
        rng = scene.rng
        loses = rng.random() < 0.7
        scene.story += ", machine" if loses else ", process"
        client = Client(scene.calls("found"), scene.names, folder + "/db", scene.durability, loses, rng)
        with marking(rng.choice((0.0, 1e9))):
            try:
                client.run()
            except BaseException as error:
                error.add_note(scene.story)
                raise
        scene.compare(client.kept, expected)
    return client.crashes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=100, help="processes that are killed afterwards")
    parser.add_argument("--failures", type=int, default=1, help="go on until so many cases have failed")
    options = parser.parse_args()
    failures = Failures(options.failures)
    crashes = 0
    for seed in range(options.seed, options.seed + options.cases):
        crashes += failures.of(check_sources if seed % 3 == 0 else check, seed)
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
