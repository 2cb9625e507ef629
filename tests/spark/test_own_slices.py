"""Engines that read their own slices of archives give, put together, what the definition gives; here without Spark."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

import minidsms
from minidsms.archive.compacting import compact
from minidsms.archive.format import ArchiveFile, archives_in, find
from minidsms.archive.writer import Writer
from minidsms.cql.binder import Bound, bind
from minidsms.cql.catalog import Catalog
from minidsms.cql.errors import CqlError, Error, QueryError
from minidsms.cql.parser import parse_query
from minidsms.spark.compiler import logical_plan
from minidsms.spark.engines import setting_of
from minidsms.spark.own_slices import Part, answer_slice, answers, first_failure, pasts, runner
from minidsms.spark.partitioning import lookback_of
from minidsms.spark.slicing import SLICE_BYTES, Extent, read_twice, slices
from minidsms.testing.compare import Answer, bind_case, catalog_of, difference_of, run_definition
from minidsms.testing.generators import Case, random_case
from minidsms.testing.grammar import Options
from minidsms.testing.history import Change
from minidsms.values.arrow_types import array_of_words, stored_type
from tests.long.archived import archive_feed

HOUR = 3_600_000
SLICED = Options(types=False)
"""What is read back here of the tasks' tables are words, which DATE, TIME and lists are not."""


def compact_all(folder: str) -> None:
    """Let there be one file of each partition."""
    for archive in archives_in(folder):
        compact(archive)


def expire_half(folder: str) -> None:
    """Let streams lose what is older than half of their time."""
    for archive in archives_in(folder):
        first, last = Extent.of([archive]).span
        with Writer(archive) as writer:
            writer.expire((last - first) // 2)


def answer_by_slices(
    query: Bound, catalog: Catalog, folder: str, parts: Sequence[Part], meanwhile: Callable[[str], None]
) -> Answer:
    """What the tasks of all parts give together; of a query that fails, up to its first failure. meanwhile: happens to
    the archives between planning and tasks.
    """
    setting = setting_of(query, catalog)
    inputs = pasts(setting, [find(folder, name) for name in (*query.streams, *query.relations)], parts)
    meanwhile(folder)
    changes: list[Change] = []
    failures: list[tuple[int, str]] = []
    for part in parts:
        try:
            for table in answer_slice(setting, inputs, part):
                typed = zip(table.columns[4:], query.node.schema.types)
                columns = [*table.columns[:2], *(array_of_words(c, t, stored_type(t)) for c, t in typed)]
                for ts, sign, *row in zip(*(c.to_pylist() for c in columns)):
                    assert part.begin <= ts <= part.end
                    changes.append((ts, sign, tuple(row)))
        except QueryError as error:
            first = first_failure(setting, inputs, parts[0].begin, error)
            assert first.ts is not None
            failures.append((first.ts, first.reason))
    if not failures:
        return Answer(tuple(changes))
    assert len(set(failures)) == 1, "every task tells of the same, the first"
    at, reason = failures[0]
    return Answer(tuple(c for c in changes if c[0] < at), at, reason)


def compare(folder: str, case: Case, rng: random.Random) -> bool:
    """Whether the case could be cut; it is archived, cut at random instants, and compared."""
    if case.registered or "SLACK" in str(case) or "LATE" in str(case):
        return False  # what late rows meet is not in the archive
    try:
        query = bind_case(case)
        expected = run_definition(case)
    except CqlError:
        return False
    obstacle, lookback = lookback_of(logical_plan(query.node, case.query))
    if obstacle is not None:
        return False
    archive_feed(case, case.feed, folder, rng.choice((4, 1000)), rng.choice((3, 100)))
    there = {a.metadata.name.lower() for a in archives_in(folder)} if Path(folder).exists() else set()
    if not there >= {name.lower() for name in (*query.streams, *query.relations)}:
        return False
    until = case.closed()
    first, last = Extent.of(archives_in(folder)).span
    borders = sorted({first, *(rng.randint(first, max(last, first)) for _ in range(rng.randrange(4)))})
    ends = [*(b - 1 for b in borders[1:]), max(until, first)]
    parts = [Part(begin, min(end, until), lookback) for begin, end in zip(borders, ends) if begin <= until]
    meanwhile = rng.choice((lambda folder: None, compact_all, expire_half))
    try:
        actual = answer_by_slices(query, catalog_of(case), folder, parts, meanwhile)
    except Error as error:
        assert meanwhile is expire_half and "retention has removed elements" in str(error), str(error)
        return True
    difference = difference_of(Answer(expected.changes, expected.failed_at, expected.reason), actual)
    assert not difference, f"{difference}\nparts: {parts}, {meanwhile}\n{case}"
    return True


def test_slices_together_answer_as_the_definition(tmp_path: Path) -> None:
    compared = sum(compare(str(tmp_path / str(s)), random_case(s, SLICED), random.Random(s)) for s in range(60))
    assert compared >= 12


@pytest.mark.long
def test_slices_of_many_generated_cases_answer_as_the_definition(tmp_path: Path) -> None:
    compared = sum(compare(str(tmp_path / str(s)), random_case(s, SLICED), random.Random(s)) for s in range(1000, 6000))
    assert compared >= 1000


def compact_and_expire(folder: str) -> None:
    """First the one, then the other."""
    compact_all(folder)
    expire_half(folder)


@pytest.mark.parametrize("loss", [expire_half, compact_all, compact_and_expire])
def test_tasks_read_what_there_was_when_they_were_planned_or_say_what_retention_took(
    tmp_path: Path, loss: Callable[[str], None]
) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v INTEGER, t TEXT) ARCHIVE '{tmp_path}'")
        for hour in range(0, 100, 2):
            db.push("S", (hour, str(hour)), ts=hour * HOUR)
            db.flush()
        text = "SELECT COUNT(*), MIN(v), MAX(t) FROM S [RANGE 10 HOURS]"
        query = bind(parse_query(text), db.catalog, text)
        setting = setting_of(query, db.catalog)
    _, lookback = lookback_of(logical_plan(query.node, text))
    parts = [Part(begin * HOUR, (begin + 20) * HOUR - 1, lookback) for begin in range(0, 100, 20)]
    inputs = pasts(setting, [find(str(tmp_path), "S")], parts)

    def told(number: int) -> list[object] | str:
        try:
            return [row for table in answers(setting, inputs, parts, number) for row in table.to_pylist()]
        except Error as error:
            return str(error)

    before = [told(number) for number in range(5)]
    loss(str(tmp_path))
    with minidsms.connect() as db:  # what comes later is no part of it
        db.execute(f"CREATE STREAM S (v INTEGER, t TEXT) ARCHIVE '{tmp_path}'")
        db.push("S", (-1, "z"), ts=98 * HOUR)
    after = [told(number) for number in range(5)]
    kept = [number for number in range(5) if after[number] == before[number]]
    # The first two days are gone; a slice needs the ten hours before it, too.
    assert kept == ([0, 1, 2, 3, 4] if loss is compact_all else [3, 4])
    for number in {0, 1, 2} - {*kept}:
        assert re.match(r"retention has removed .*/S', up to instant \d+\nhelp: run it again", str(after[number]))


# ---------------------------------------------------------------------------------------------------------- cutting


def extent(*files: tuple[int, int, int], of_relations: int = 0) -> Extent:
    """Of files given as first and last instant and bytes."""
    streams = tuple((ArchiveFile("", first, last, 0, 0), size) for first, last, size in files)
    return Extent(streams, ((ArchiveFile("", 0, 0, 0, 0), of_relations),) if of_relations else ())


def test_slices_cover_time_without_gap_and_hold_equally_many_bytes() -> None:
    gap = 10**12
    found = slices(extent((0, 999, 4 * SLICE_BYTES), (gap, gap + 999, 4 * SLICE_BYTES)), 10, 2, 0, gap + 999)
    assert len(found) == 8
    assert (found[0][0], found[-1][1]) == (0, gap + 999)
    assert all(a[1] + 1 == b[0] for a, b in pairwise(found))
    assert sum(begin >= gap for begin, _ in found) >= 3


def test_a_slice_is_twice_as_long_as_what_is_read_before_it() -> None:
    found = slices(extent((0, 999, 100 * SLICE_BYTES)), 100, 2, 0, 999)
    assert all(end - begin + 1 >= 200 for begin, end in found[:-1])
    assert 3 <= len(found) <= 5


def test_many_changes_of_relations_make_few_slices() -> None:
    assert len(slices(extent((0, 999, 8 * SLICE_BYTES), of_relations=4 * SLICE_BYTES), 1, 2, 0, 999)) == 2


def test_what_lies_before_slices_is_read_twice() -> None:
    whole = extent((0, 999, 100 * SLICE_BYTES))
    assert read_twice([(0, 999)], whole, 100) == 1
    assert read_twice([(0, 499), (500, 999)], whole, 100) == pytest.approx(1.1, rel=0.01)


def test_little_is_one_slice_and_nothing_is_none() -> None:
    assert slices(extent((5, 9, 100)), 3, 8, 5, 9) == [(5, 9)]
    assert slices(extent(), 3, 8, 0, -1) == []


def test_whichever_slice_comes_upon_a_failure_the_first_is_told(tmp_path: Path) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (v INTEGER) ARCHIVE '{tmp_path}'")
        db.push("S", [(2**62 if ts in (30, 70) else 1,) for ts in range(100)], ts=list(range(100)))
        db.flush()
        text = "SELECT v * 2 FROM S [NOW]"
        query = bind(parse_query(text), db.catalog, text)
        setting = setting_of(query, db.catalog)
    parts = (Part(0, 49, 2), Part(50, 99, 2))
    run = runner(setting, pasts(setting, [find(str(tmp_path), "S")], parts), parts)

    def task(number: int) -> int:
        return sum(b.num_rows for b in run(iter([pa.record_batch({"id": [number]})])))

    for number in (0, 1):
        with pytest.raises(RuntimeError, match=r"failed at instant 30: .*overflow"):
            task(number)
