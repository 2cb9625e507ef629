"""k-Mon where what it lets go cannot be written: rows stay in memory, the answer is the same, the reason is told."""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

import pytest

import minidsms
from minidsms.synopses import k_mon_spill_files, k_mon_spill_index
from minidsms.testing.compare import check, run_definition
from tests.long.k_mon_cases import random_tree_case
from tests.refusing import refusing
from tests.seeds import seeds

JOIN = "SELECT ISTREAM(P.x, F.y) FROM P [RANGE 100000], F [RANGE 100000] WHERE P.k = F.k"


is_full = refusing(errno.ENOSPC)


def full_at_times(rng: Random, share: float) -> Callable[[int, int, int], None]:
    """A disk that is full at so many of the times it is asked."""
    take = k_mon_spill_files._take_room

    def take_room(number: int, begin: int, end: int) -> None:
        if rng.random() < share:
            is_full()
        take(number, begin, end)

    return take_room


def packets(db: minidsms.Connection) -> None:
    db.execute("CREATE STREAM P (k INTEGER, x INTEGER); CREATE STREAM F (k INTEGER, y INTEGER) KEY (k)")


def pushed(db: minidsms.Connection, first: int, n: int) -> None:
    keys = list(range(first, first + n))
    db.push("F", {"k": keys, "y": keys}, ts=[2 * k for k in keys])
    db.push("P", {"k": keys, "x": keys}, ts=[2 * k + 1 for k in keys])


def test_rows_stay_in_memory_and_the_reason_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k_mon_spill_files, "_take_room", is_full)
    with minidsms.connect(state_reduction="k-mon") as db:
        packets(db)
        q, other = db.query(JOIN), db.query("SELECT ISTREAM(COUNT(*)) FROM P [RANGE 10]")
        for first in range(0, 12_000, 1000):
            pushed(db, first, 1000)
        db.push("F", (7, -7), ts=50_000)
        db.advance(50_000)
        assert sorted(c.row for c in q.fetch()) == sorted([*((k, k) for k in range(12_000)), (7, -7)])
        assert len(other.fetch()) > 0
        told = [warning for warning in db.warnings if "stay in memory" in warning]
        assert len(told) == 1 and "No space left on device" in told[0] and "TMPDIR" in told[0]
        assert told[0] in q.explain(analyze=True) and "spilled 0;" in q.explain(analyze=True)


def test_rows_go_again_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    with minidsms.connect(state_reduction="k-mon") as db:
        packets(db)
        q = db.query(JOIN)
        with monkeypatch.context() as full:
            full.setattr(k_mon_spill_files, "_take_room", is_full)
            pushed(db, 0, 10_000)
            assert "spilled 0;" in q.explain(analyze=True)
        pushed(db, 10_000, 30_000)
        assert "rows of P 10,000" not in q.explain(analyze=True)
        assert "spilled 0;" not in q.explain(analyze=True)
        db.push("F", (7, -7), ts=100_000)
        db.advance(100_000)
        assert sorted(c.row for c in q.fetch()) == sorted([*((k, k) for k in range(40_000)), (7, -7)])


def test_a_folder_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    with minidsms.connect(state_reduction="k-mon") as db:
        packets(db)
        q = db.query(JOIN)
        pushed(db, 0, 10_000)
        db.advance(30_000)
        assert len(q.fetch()) == 10_000
        assert any("No such file or directory" in warning for warning in db.warnings)


@pytest.mark.parametrize("seed", seeds(6))
def test_answers_are_those_by_definition_whenever_the_disk_is_full(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take = k_mon_spill_files._take_room
    monkeypatch.setattr(k_mon_spill_files, "_STEP", 1)
    monkeypatch.setattr(k_mon_spill_index, "_YOUNG", 4)
    monkeypatch.setattr(k_mon_spill_index, "_MOST_GENERATIONS", 2)
    monkeypatch.setattr("minidsms.synopses.k_mon_spill_log._LEAST_SEGMENT", 4)
    rng = Random(seed)
    for case_seed in range(4):
        case = random_tree_case(9000 + 6 * seed + case_seed, size=30, repeats=rng.choice((0.0, 0.1, 1.0)))
        expected = run_definition(case)
        for share in (0.4, 0.9):
            monkeypatch.setattr(k_mon_spill_files, "_take_room", take)
            monkeypatch.setattr(k_mon_spill_files, "_take_room", full_at_times(rng, share))
            options = {"state_reduction": "k-mon", "forced_every": 1, "batch_size": rng.choice((1, 7, 1000))}
            assert check(case, None, expected, **options) == "agreed", (seed, options)


def test_an_error_of_reading_fails_the_query_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with minidsms.connect(state_reduction="k-mon") as db:
        packets(db)
        q, other = db.query(JOIN), db.query("SELECT ISTREAM(COUNT(*)) FROM P [RANGE 10]")
        pushed(db, 0, 10_000)
        monkeypatch.setattr(k_mon_spill_files.SpillFile, "words", property(is_full))
        db.push("F", (7, -7), ts=50_000)
        db.advance(50_000)
        with pytest.raises(minidsms.QueryError, match="out of memory of P, F cannot be read or written: No space"):
            while q.fetch():
                pass
        assert len(other.fetch()) > 0
