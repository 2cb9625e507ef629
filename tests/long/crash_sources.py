"""Random queries over files that a durable connection reads while it crashes; the oracle is a run that never stopped.

As `crash_cases`, but nobody pushes: the folder alone knows how far each file has been read.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
from pyarrow import ipc, parquet

from minidsms.archive import replay
from minidsms.connection import Connection, connect
from minidsms.durability.connection import DurableConnection
from minidsms.sources import blocks, columnar_source, source
from tests.long.crash_files import FORMS as ANSWER_FORMS
from tests.long.crash_files import into, lines_of
from tests.long.crashes import Crash, Disk, crashing, end_process

FORMATS = ("csv", "csv.gz", "jsonl", "parquet", "arrow", "growing.csv", "growing.jsonl")
COLUMNS = "k INTEGER, t TEXT, at INTEGER"
QUERIES = (
    "SELECT ISTREAM(at, t) FROM S WHERE k < 3",
    "SELECT k, COUNT(*), MIN(t) FROM S [RANGE 7] GROUP BY k",
    "SELECT t, COUNT(*) FROM S [ROWS 5] GROUP BY t",
    "SELECT SUM(k) FROM S",
    "SELECT DISTINCT t FROM S [RANGE 20 SLIDE 5]",
    "SELECT S.at, T.at FROM S [RANGE 3], T [RANGE 5] WHERE S.k = T.k",
    "SELECT RSTREAM(S.t, R.v) FROM S [NOW], R WHERE S.k = R.k",
    "SELECT k, MAX(at) FROM T [PARTITION BY k ROWS 2] GROUP BY k",
    "SELECT ISTREAM(t) FROM T [RANGE 4] WHERE k IN (SELECT k FROM R)",
    "SELECT DSTREAM(k) FROM S [RANGE 6] UNION SELECT k FROM T [RANGE 2]",
)


@contextlib.contextmanager
def small_blocks(nbytes: int = 256, rows: int = 16) -> Iterator[None]:
    """Files are read in blocks of so many bytes, or rows."""
    begin, batch_rows = blocks.BlockReader.__init__, source.BATCH_ROWS

    def small(self: blocks.BlockReader, path: str, file: Any, marks: blocks.Marks, *_: Any) -> None:
        begin(self, path, file, marks, nbytes)

    blocks.BlockReader.__init__ = small  # type: ignore[assignment, method-assign]
    setattr(columnar_source, "BATCH_ROWS", rows)  # noqa: B010 it is imported there
    poll_s, replay.POLL_S = replay.POLL_S, 0.0
    try:
        yield
    finally:
        blocks.BlockReader.__init__ = begin  # type: ignore[method-assign]
        setattr(columnar_source, "BATCH_ROWS", batch_rows)  # noqa: B010
        replay.POLL_S = poll_s


def write_rows(path: str, names: list[str], rows: list[tuple[Any, ...]], rng: Random) -> None:
    """Write a file of the kind its name says; of texts, with lines that cannot be read among them."""
    if path.endswith((".parquet", ".arrow")):
        table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
        if path.endswith(".parquet"):
            parquet.write_table(table, path, row_group_size=rng.choice((7, 40, 1000)))
            return
        with ipc.new_file(path, table.schema) as file:
            file.write_table(table, max_chunksize=rng.choice((7, 40, 1000)))
        return
    is_csv, may_span = "csv" in path, "growing" not in path
    lines = [",".join(names)] if is_csv else []
    for row in rows:
        if rng.random() < 0.03:
            lines.append("no,row,of,these" if is_csv else "{no row")
        if not is_csv:
            lines.append(json.dumps(dict(zip(names, row))))
            continue
        shown = [f'"{v}\nand on"' if may_span and isinstance(v, str) and rng.random() < 0.1 else str(v) for v in row]
        lines.append(",".join(shown))
    text = "".join(line + "\n" for line in lines).encode()
    with gzip.open(path, "wb") if path.endswith(".gz") else open(path, "wb") as file:
        file.write(text)


class Case:
    """Files, what is declared over them, and queries, of which some write files."""

    def __init__(self, seed: int, place: str) -> None:
        rng = Random(seed)
        self.declared = []
        self.archive = f"{place}/archive" if Random(f"archive {seed}").random() < 0.2 else ""
        """Of all inputs, which are then replayed, and have no sources."""
        for name in ("S", "T"):
            path = f"{place}/{name}.{rng.choice(FORMATS)}"
            instants = sorted(rng.randrange(60) for _ in range(rng.randrange(20, 200)))
            rows = [(rng.randrange(5), f"t{rng.randrange(4)}", at) for at in instants]
            write_rows(path, ["k", "t", "at"], rows, rng)
            options = " WITH (follow = true, stop_after = 0 SECONDS, poll = 0 SECONDS)" if "growing" in path else ""
            self.declared.append(f"CREATE STREAM {name} ({COLUMNS}) TIMESTAMP BY at FROM '{path}'{options}")
        path = f"{place}/R.{rng.choice(FORMATS[:5])}"
        changes = sorted((rng.randrange(50), 1, i, f"v{i}") for i in range(5))
        changes += [(at + 10, -1, k, v) for at, _, k, v in changes]
        write_rows(path, ["ts", "sign", "k", "v"], sorted(changes), Random(0))
        self.declared.append(f"CREATE RELATION R (k INTEGER, v TEXT) FROM '{path}'")
        self.queries = rng.sample(QUERIES, rng.randrange(1, 5))
        if self.archive:
            self._write_archive()
        self.in_files = {n: rng.choice(ANSWER_FORMS) for n in range(len(self.queries)) if rng.random() < 0.4}

    def _write_archive(self) -> None:
        rng = Random(len(self.archive))
        with connect(archive_rows=rng.choice((5, 30, 1000))) as db:
            for text in self.declared:
                db.execute(text)
                db.archive(text.split()[2], self.archive)
            while db.run_some(rng.randrange(60)):
                if rng.random() < 0.3:
                    db.flush()
            db.run()
        self.declared = [text.partition(" FROM ")[0] for text in self.declared]

    def read(self, db: Connection) -> None:
        """Read everything."""
        if self.archive:
            db.replay(self.archive)  # one that had begun
            if isinstance(db, DurableConnection):
                db.replay(self.archive)
            db.finish_unfed()
        db.run()

    def declare(self, db: Connection, place: str) -> None:
        """Make those of the declarations and queries that are not there."""
        for text in self.declared:
            if db.catalog.kind_of(text.split()[2]) is None:
                db.execute(text)
        for n, text in enumerate(self.queries):
            if f"a{n}" not in db.queries:
                file = into(self.in_files[n], f"{place}/{n}") if n in self.in_files else ""
                db.execute(f"CREATE QUERY a{n} AS {text} {file}")

    def take(self, db: Connection, kept: dict[str, list[Any]]) -> None:
        """Take what is new, by its position."""
        for n in range(len(self.queries)):
            if n not in self.in_files:
                kept[f"a{n}"] += db.queries[f"a{n}"].fetch(ack=len(kept[f"a{n}"]))

    def nothing(self) -> dict[str, list[Any]]:
        """Of each query that is fetched from."""
        return {f"a{n}": [] for n in range(len(self.queries)) if n not in self.in_files}


def check_sources(seed: int) -> int:
    """Run the case of a seed; how many crashes it went through. AssertionError where an answer differs."""
    rng = Random(seed)
    with tempfile.TemporaryDirectory() as inputs, tempfile.TemporaryDirectory() as place, small_blocks():
        case = Case(seed, inputs)
        for folder in ("wanted", "found"):
            os.mkdir(f"{place}/{folder}")
        expected = case.nothing()
        with connect() as db:
            case.declare(db, f"{place}/wanted")
            case.read(db)
            case.take(db, expected)
            rejected = [each.counters.rejected for each in db.inputs]
        found, crashes = case.nothing(), 0
        loses, checkpoints, distance = rng.random() < 0.7, rng.choice((0.0, 0.1)), rng.choice((20, 60, 200))
        for attempt in range(100):
            disk = Disk(f"{place}/found", 0 if attempt == 99 else rng.randint(1, distance), rng)
            done = False
            with crashing(disk):
                _go_on(case, f"{place}/found", found, rejected, rng, checkpoints)
                done = True
            if done:
                break
            crashes += 1
            if loses:
                disk.lose()
        story = f"seed {seed}\n{case.declared}\n{case.queries}"
        for name, changes in expected.items():
            assert Counter(found[name]) == Counter(changes), f"{name} differs, {story}"
        for n in case.in_files:
            ours, theirs = (lines_of(case.in_files[n], f"{place}/{folder}/{n}") for folder in ("found", "wanted"))
            assert ours == theirs, f"{case.in_files[n]} of a{n} differs, {story}"
    return crashes


def _read_some(case: Case, db: Connection, rng: Random) -> bool:
    if not case.archive:
        return db.run_some(rng.choice((None, None, rng.randrange(80))))
    left = rng.randrange(12)

    def stop() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    return db.replay(case.archive, stop=stop, follow=rng.random() < 0.3) > 0


def _go_on(
    case: Case, place: str, found: dict[str, list[Any]], rejected: list[int], rng: Random, checkpoints: float
) -> None:
    db = connect(f"{place}/db")
    assert isinstance(db, DurableConnection)
    try:
        case.declare(db, place)
        case.take(db, found)
        while _read_some(case, db, rng) or rng.random() < 0.5:
            case.take(db, found)
            if rng.random() < checkpoints:
                db.checkpoint()
        case.read(db)
        case.take(db, found)
        assert [each.counters.rejected for each in db.inputs] == rejected
        db.close()
    except Crash:
        for close in db.reading.closers:
            close()
        end_process(db)
        raise
