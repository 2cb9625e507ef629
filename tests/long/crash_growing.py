"""Files that grow, are rotated and truncated while a durable connection that crashes reads them; the oracle is pushed
every row once.

The writer keeps to what makes it possible that every line is read: it rotates once a row of the present file is
durable, so that no file in between is missed, and truncates when all rows are, and while somebody reads then waits for
that to be noticed. It does both while the folder is open, and while it is not.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from minidsms.connection import Connection, connect
from minidsms.durability.connection import DurableConnection
from minidsms.sources import tail_source
from minidsms.sources.live_lines import LiveLines
from tests.long.crash_sources import COLUMNS, QUERIES
from tests.long.crashes import Crash, Disk, crashing, end_process

Row = tuple[int, str, int]
NAMES = ("k", "t", "at")
_WAIT_S = 20.0
"""So long nothing may come while something is to be read."""


class Writer:
    """Of one file. durable: rows that are known to be in the folder."""

    def __init__(self, name: str, folder: str, rng: Random) -> None:
        self.name, self.rng = name, rng
        self._is_csv = rng.random() < 0.6
        self.path = Path(folder, name + (".csv" if self._is_csv else ".jsonl"))
        instants = sorted(rng.randrange(60) for _ in range(rng.randrange(10, 120)))
        self.rows: list[Row] = [(rng.randrange(5), f"t{rng.randrange(4)}", at) for at in instants]
        self.written = self.durable = 0
        self.bad = 0
        self.truncated_at: int | None = None
        """How many rows had been written when the file was truncated last, and nobody may have noticed."""
        self._first = 0
        """Of the present file, which row."""
        self._rest = ""
        """Of a line of which the beginning is there."""
        self._old: list[Path] = []
        self._begin_file()

    @property
    def text(self) -> str:
        """The declaration."""
        options = "follow = true, poll = 0 SECONDS"
        return f"CREATE STREAM {self.name} ({COLUMNS}) TIMESTAMP BY at FROM '{self.path}' WITH ({options})"

    @property
    def has_ended(self) -> bool:
        """All is written."""
        return self.written == len(self.rows) and not self._rest

    def learn(self, db: Connection) -> None:
        """Ask how many rows are durable."""
        self.durable = db.position(self.name)
        assert self.durable <= self.written + bool(self._rest), f"{self.name} has been read twice"
        if self.truncated_at is not None and self.durable > self.truncated_at:
            self.truncated_at = None

    def step(self, db: DurableConnection | None) -> None:
        """Do something to the file. db: reads it."""
        kind = self.rng.choice(("append", "append", "append", "rotate", "truncate"))
        if kind == "rotate" and self.durable > self._first:
            self._rotate()
        elif kind == "truncate" and self.durable == self.written > self._first and not self._rest:
            self._truncate(db)
        elif not self.has_ended:
            self._append(self.rng.randint(1, 12))

    def _begin_file(self) -> None:
        self._names = list(NAMES)
        self.rng.shuffle(self._names)
        self._first = self.written
        self._write(",".join(self._names) + "\n" if self._is_csv else "")

    def _write(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)

    def _append(self, n: int) -> None:
        text, self._rest = self._rest, ""
        for row in self.rows[self.written : self.written + n]:
            if self.rng.random() < 0.05:
                text += "no,row,of,these\n"
                self.bad += 1
            text += self._line(row)
            self.written += 1
        if text.strip() and self.rng.random() < 0.2:  # the rest of the last line comes later
            kept = self.rng.randint(1, len(text.splitlines()[-1]))
            text, self._rest = text[:-kept], text[-kept:]
        self._write(text)

    def _line(self, row: Row) -> str:
        fields = dict(zip(NAMES, row))
        return (",".join(str(fields[name]) for name in self._names) if self._is_csv else json.dumps(fields)) + "\n"

    def _rotate(self) -> None:
        if self._rest:  # the last line of a file need not end
            self._write(self._rest.removesuffix("\n"))
            self._rest = ""
        while self._old:
            self._old.pop().unlink()
        self._old = [self.path.with_name(f"{self.path.name}.{self.written}")]
        self.path.rename(self._old[0])
        self._begin_file()

    def _truncate(self, db: DurableConnection | None) -> None:
        source = None if db is None else next(s for s, _ in db.reading.sources if s.path == str(self.path))
        before = list(source.notes) if isinstance(source, LiveLines) else []
        os.truncate(self.path, 0)
        self.truncated_at = self.written
        if db is not None:
            with waiting(f"{self.path} was truncated") as wait:
                while list(source.notes) == before:  # type: ignore[union-attr]
                    wait()
                    db.run_some()
        self._begin_file()


@contextlib.contextmanager
def waiting(what: str) -> Iterator[Any]:
    """Gives what is called as long as nothing happens: AssertionError after a while."""
    end_s = time.monotonic() + _WAIT_S

    def wait() -> None:
        assert time.monotonic() < end_s, f"{what}, and nothing came of it"

    yield wait


class Growing:
    """The case of a seed."""

    def __init__(self, seed: int, folder: str) -> None:
        self.rng = Random(f"growing {seed}")
        self.writers = [Writer(name, folder, self.rng) for name in ("S", "T")]
        texts = [text for text in QUERIES if " R " not in f"{text} " and "R)" not in text]
        self.queries = {f"a{n}": text for n, text in enumerate(self.rng.sample(texts, self.rng.randint(1, 4)))}
        self.kept: dict[str, list[Any]] = {name: [] for name in self.queries}
        self.until = max(row[2] for writer in self.writers for row in writer.rows) + 40
        self.checkpoints = self.rng.choice((0.0, 0.1))

    def expected(self) -> dict[str, list[Any]]:
        """The answers to every row once."""
        with connect() as db:
            for writer in self.writers:
                db.execute(f"CREATE STREAM {writer.name} ({COLUMNS}) TIMESTAMP BY at")
            queries = {name: db.query(text, name) for name, text in self.queries.items()}
            for writer in self.writers:
                db.push(writer.name, writer.rows)
            db.advance(self.until)
            return {name: query.fetch() for name, query in queries.items()}

    def take(self, db: Connection) -> None:
        """Keep what is new."""
        for name, kept in self.kept.items():
            kept += db.queries[name].fetch(ack=len(kept))

    def write_while_closed(self) -> None:
        """Nobody reads."""
        for writer in self.writers:
            for _ in range(self.rng.choice((0, 1, 3))):
                writer.step(None)

    def go_on(self, folder: str) -> bool:
        """Open the folder and read; False where it is to be opened again."""
        db = connect(folder)
        assert isinstance(db, DurableConnection)
        try:
            told = [text for text in db.warnings if "at the end of the log" not in text]
            assert not told or any(writer.truncated_at is not None for writer in self.writers), told
            for writer in self.writers:
                if db.catalog.kind_of(writer.name) is None:
                    db.execute(writer.text)
            for name, text in self.queries.items():
                if name not in db.queries:
                    db.query(text, name)
            has_ended = self._read(db)
            if has_ended:
                assert [db.stream_input(w.name).counters.rejected for w in self.writers] == [
                    w.bad for w in self.writers
                ]
                db.advance(self.until)
                self.take(db)
            db.close()
        except Crash:
            for close in db.reading.closers:
                close()
            end_process(db)
            raise
        return has_ended

    def _read(self, db: DurableConnection) -> bool:
        rng, seen_s, seen = self.rng, time.monotonic(), -1
        while True:
            self.take(db)
            for writer in self.writers:
                writer.learn(db)
                if rng.random() < 0.3:
                    writer.step(db)
            if all(writer.has_ended and writer.durable == len(writer.rows) for writer in self.writers):
                return True
            for _ in range(rng.randrange(3)):
                db.run_some()
            if rng.random() < self.checkpoints:
                db.checkpoint()
            if rng.random() < 0.03:
                return False
            if (now := sum(w.durable + w.written for w in self.writers)) != seen:
                seen_s, seen = time.monotonic(), now
            durable = [writer.durable for writer in self.writers]
            assert time.monotonic() < seen_s + _WAIT_S, f"nothing comes behind rows {durable}"


def check_growing(seed: int) -> int:
    """Run the case of a seed; how many crashes it went through. AssertionError where an answer differs."""
    with (
        tempfile.TemporaryDirectory() as inputs,
        tempfile.TemporaryDirectory() as place,
        mock.patch.object(tail_source, "_READ_BYTES", Random(seed).choice((30, 200, 1 << 20))),
    ):
        case, crashes = Growing(seed, inputs), 0
        loses, distance = case.rng.random() < 0.7, case.rng.choice((20, 60, 200))
        try:
            for attempt in range(100):
                disk = Disk(place, 0 if attempt == 99 else case.rng.randint(1, distance), case.rng)
                done = False
                with crashing(disk):
                    while not case.go_on(f"{place}/db"):
                        case.write_while_closed()
                    done = True
                if done:
                    break
                crashes += 1
                if loses:
                    disk.lose()
                case.write_while_closed()
            for name, changes in case.expected().items():
                assert Counter(case.kept[name]) == Counter(changes), f"{name} differs"
        except BaseException as error:
            error.add_note(f"seed {seed}, {case.queries}, {[writer.path.name for writer in case.writers]}")
            raise
    return crashes
