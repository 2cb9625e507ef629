"""Files that cannot hold what is asked for are not opened, and answers do not depend on it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import pytest

import minidsms
from minidsms.archive import statistics
from minidsms.archive.compacting import compact
from minidsms.archive.conditions import arrow_condition, needed
from minidsms.archive.demand import AllOf, AnyOf, Comparison, Condition, IsNull
from minidsms.archive.files import read_files
from minidsms.archive.format import Archive, ArchiveFile, find
from minidsms.archive.log import _sealed, read_snapshot

_LONG = "ab" * 20
_VALUES: dict[int, list[Any]] = {
    0: [None, -(2**63), -1, 0, 3, 2**53, 2**53 + 1, 2**63 - 1],
    1: [None, -math.inf, -1.5, 0.0, 0.1, 2.0**53, math.inf],
    2: [None, "", "a", _LONG, _LONG + "b", "\U0010ffff" * 33, "\U0010ffff" * 34, "z" * 5000],
    3: [None, True, False],
}
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


def _archive(folder: Path, rng: Random) -> Archive:
    """A dozen small files; in the later ones x is FLOAT that was INTEGER, and column w is new."""
    for columns in (
        "n INTEGER, f FLOAT, t TEXT, b BOOLEAN, x INTEGER",
        "n INTEGER, f FLOAT, t TEXT, b BOOLEAN, x FLOAT, w INTEGER",
    ):
        with minidsms.connect() as db:
            db.execute(f"CREATE STREAM S ({columns}) ARCHIVE '{folder}'")
            first = max((f.last_ts for f in find(str(folder), "S").files()), default=0)
            for ts in range(first + 1, first + 7):
                few = {column: rng.sample(values, 2) for column, values in _VALUES.items()}
                x = few[0] if "w" not in columns else few[1]
                rows = [(*(rng.choice(few[c]) for c in range(4)), rng.choice(x)) for _ in range(3)]
                db.push("S", [(*row, rng.choice(few[0])) for row in rows] if "w" in columns else rows, ts=[ts] * 3)
                db.flush()
    return find(str(folder), "S")


def _condition(rng: Random, depth: int = 2) -> Condition:
    if depth and rng.random() < 0.4:
        parts = tuple(_condition(rng, depth - 1) for _ in range(2))
        return rng.choice((AllOf, AnyOf))(parts)
    column = rng.randrange(6)
    if rng.random() < 0.2:
        return IsNull(column, rng.random() < 0.5)
    value = rng.choice([v for v in _VALUES[{4: 1, 5: 0}.get(column, column)] if v is not None])
    return Comparison(column, rng.choice(_OPERATORS), value)


def test_files_left_out_hold_nothing_that_is_asked_for(tmp_path: Path) -> None:
    rng = Random(1)
    archive = _archive(tmp_path, rng)
    files, fields, left_out = archive.files(), archive.metadata.fields, 0
    assert len(files) == 12 and all(file.statistics is not None and file.statistics.rows == 3 for file in files)
    for _ in range(150):
        condition = _condition(rng)
        kept = {file.path for file in needed(files, condition, fields)}
        for file in files:
            if file.path not in kept:
                left_out += 1
                assert not list(read_files(archive, [file], where=arrow_condition(condition, fields))), condition
    assert left_out > 300
    compact(archive)
    assert [file.statistics and file.statistics.rows for file in archive.files()] == [36]


def test_a_replay_opens_only_the_files_that_may_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (k INTEGER, t TEXT) ARCHIVE '{tmp_path}'")
        for k in range(6):
            db.push("S", (k, f"text {k}"), ts=k)
            db.flush()
    for file in find(str(tmp_path), "S").files():
        if file.first_ts != 3:
            Path(file.path).write_bytes(b"whoever opens it fails")
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, t TEXT)")
        query = db.query("SELECT t FROM S [NOW] WHERE k = 3")
        db.replay(str(tmp_path))
        db.advance(4)
        assert [(c.ts, c.sign, c.row) for c in query.fetch()] == [(3, 1, ("text 3",)), (4, -1, ("text 3",))]


def test_archives_whose_log_tells_nothing_of_columns_are_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minidsms.archive.writer.statistics_of", lambda path, fields: None)
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (k INTEGER) ARCHIVE '{tmp_path}'")
        db.push("S", (1,), ts=1)
    archive = find(str(tmp_path), "S")
    assert [file.statistics for file in archive.files()] == [None]
    assert needed(archive.files(), Comparison(0, "=", 7), ["k"]) == archive.files()


def test_what_a_manifest_tells_of_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    _archive(tmp_path, Random(2))
    snapshot = read_snapshot(str(tmp_path / "S"))
    assert snapshot is not None
    for known in snapshot.statistics.values():
        assert statistics.Statistics.from_json(json.loads(json.dumps(known.to_json()))) == known
        for bound in (b for r in known.ranges.values() for b in (r.low, r.high)):
            assert not isinstance(bound, float) or math.isfinite(bound)
            assert not isinstance(bound, str) or len(bound) <= 33


@pytest.mark.parametrize(
    "told", [[3], [3, {"n": [1]}], [3, {"n": [math.nan, 1, False, True]}], [3, {"n": [[], 1, False, True]}], 7]
)
def test_a_manifest_that_tells_what_no_column_can_have_is_refused_by_name(tmp_path: Path, told: Any) -> None:
    with minidsms.connect() as db:
        db.execute(f"CREATE STREAM S (n INTEGER) ARCHIVE '{tmp_path}'")
        db.push("S", (1,), ts=1)
    manifest = max((tmp_path / "S" / "_log").iterdir())
    content = json.loads(manifest.read_bytes())["commit"]
    content["statistics"] = dict.fromkeys(content["statistics"], told)
    manifest.write_bytes(_sealed(content))
    with pytest.raises(minidsms.Error, match=f"{manifest.name}: no manifest of an archive"):
        find(str(tmp_path), "S").files()


def test_a_range_of_another_type_than_the_column_leaves_no_file_out() -> None:
    known = statistics.Statistics(3, {"n": statistics.Range("a", "b", False, True)})
    file = ArchiveFile("", 0, 0, 0, 0, known)
    for op in _OPERATORS:
        assert all(needed([file], Comparison(0, op, value), ["n"]) for value in (3, 3.5, True))
