"""Blocks: a checkpoint writes what has come since the one before, and links the rest."""

from __future__ import annotations

import errno
import os
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minidsms
from minidsms.cql.errors import Error
from minidsms.durability import blocks, checkpoint, kept_state, moment
from minidsms.durability.checking import check
from minidsms.durability.connection import DurableConnection
from tests.refusing import refusing

WINDOW = "SELECT k % 10, COUNT(*), SUM(v) FROM S [RANGE 2000] GROUP BY k % 10"
GROUPS = "SELECT k, name, COUNT(*), MAX(v) FROM S GROUP BY k, name"
DERIVED = "SELECT COUNT(*), SUM(v) FROM (ISTREAM (SELECT k, v FROM S [RANGE 5] WHERE k >= 0)) [ROWS 2000 SLIDE 3]"
NEWEST = "SELECT k, name, v FROM S [PARTITION BY k ROWS 2]"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(blocks, "LEAST_BYTES", 512)
    monkeypatch.setattr(blocks, "ARRAY_BYTES", 1024)
    monkeypatch.setattr(kept_state, "_CODES_AT_ONCE", 256)
    monkeypatch.setattr(checkpoint, "ROWS_AT_ONCE", 100)
    return str(tmp_path / "db")


def opened(folder: str, *queries: str) -> DurableConnection:
    db = minidsms.connect(folder)
    assert isinstance(db, DurableConnection)
    db.execute("CREATE STREAM IF NOT EXISTS S (k INTEGER, name TEXT, v FLOAT)")
    for i, query in enumerate(queries):
        db.query(query, f"q{i}")
    return db


def push(db: DurableConnection, first: int, n: int, keys: int = 4000, at_once: int = 40) -> None:
    for i in range(first, first + n, at_once):
        rows = [(j % keys, f"name{j % keys}", float(j % 7)) for j in range(i, min(i + at_once, first + n))]
        db.push("S", rows, ts=range(i, i + len(rows)))
        for query in db.queries.values():
            query.fetch()


def sizes(db: DurableConnection) -> tuple[int, int]:
    """(bytes, bytes written) of the last checkpoint."""
    *_, nbytes, written, _ = db.execute("SHOW CHECKPOINTS").rows[-1]
    return nbytes, written


def held(db: DurableConnection) -> dict[str, Any]:
    return {name: (q.results, sorted(map(repr, q.snapshot()))) for name, q in db.queries.items()}


@pytest.mark.parametrize("by_child", [False, True])
@pytest.mark.parametrize("query", [WINDOW, GROUPS, DERIVED, NEWEST])
def test_a_checkpoint_writes_what_has_come_since_the_one_before(
    folder: str, query: str, by_child: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_child:
        monkeypatch.setattr(moment, "_COPIED_BYTES", -1)
    with minidsms.connect() as whole, opened(folder, query) as db:
        whole.execute("CREATE STREAM S (k INTEGER, name TEXT, v FLOAT)")
        whole.query(query, "q0")
        push(db, 0, 4000, at_once=200)
        push(whole, 0, 4000, at_once=200)  # type: ignore[arg-type]
        db.checkpoint()
        assert sizes(db)[1] == sizes(db)[0]
        for first in (4000, 4200, 4400):
            push(db, first, 200)
            push(whole, first, 200)  # type: ignore[arg-type]
            db.checkpoint()
            nbytes, written = sizes(db)
            assert written < 0.4 * nbytes and blocks.blocks(db.log_folder)
        assert held(db)["q0"][1] == sorted(map(repr, whole.queries["q0"].snapshot()))
        before = held(db)
    assert check(folder).blocks
    with opened(folder) as db:
        assert not db.warnings and held(db) == before
        db.checkpoint()
        nbytes, written = sizes(db)
        assert written < 0.4 * nbytes  # after it has been opened, too
        assert held(db) == before


def test_a_large_push_becomes_blocks_of_which_some_stay(folder: str) -> None:
    with opened(folder, WINDOW) as db:
        push(db, 0, 2000, at_once=2000)
        db.checkpoint()
        before = set(blocks.blocks(db.log_folder))
        push(db, 2000, 730, at_once=730)
        db.checkpoint()
        there = set(blocks.blocks(db.log_folder))
        assert len(before) == 20 and len(before & there) == 12
        assert len(there) == 12 + 1 + 8


def test_a_file_system_without_links_has_copies(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", refusing(errno.EPERM))
    with opened(folder, WINDOW, GROUPS) as db:
        push(db, 0, 3000)
        db.checkpoint()
        push(db, 3000, 100)
        db.checkpoint()
        assert sizes(db)[0] == sizes(db)[1]
        before = held(db)
    with opened(folder) as db:
        assert not db.warnings and held(db) == before


def test_another_content_with_the_same_digest_is_not_taken_for_it(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "name_of", lambda parts: f"{sum(map(len, parts))}-{'0' * 32}.block")
    with opened(folder, WINDOW, GROUPS) as db:
        for first in (0, 3000, 3100):
            push(db, first, 3000 if first == 0 else 100)
            db.checkpoint()
        before = held(db)
    with opened(folder) as db:
        assert not db.warnings and held(db) == before


@pytest.mark.parametrize("is_missing", [False, True])
def test_of_a_checkpoint_with_a_damaged_block_the_log_before_is_taken(folder: str, is_missing: bool) -> None:
    with opened(folder, WINDOW, GROUPS) as db:
        push(db, 0, 3000)
        db.checkpoint()
        older = set(blocks.blocks(db.log_folder))
        push(db, 3000, 500)
        db.checkpoint()
        push(db, 3500, 10)
        before, log = held(db), db.log_folder
        kept = set(blocks.blocks(log))
    path = os.path.join(log, min(kept & older) if is_missing else min(kept - older))
    if is_missing:
        os.unlink(path)
    else:
        damage(path)
    with pytest.raises(Error, match=os.path.basename(path)):
        check(folder)
    with opened(folder) as db:
        (warning,) = db.warnings
        assert path in warning and "nothing is lost" in warning
        assert held(db) == before
        push(db, 3510, 100)
        db.checkpoint()
        before = held(db)
    check(folder)
    with opened(folder) as db:
        assert not db.warnings and held(db) == before


def damage(path: str) -> None:
    data = bytearray(Path(path).read_bytes())
    data[len(data) // 2] ^= 4
    Path(path).write_bytes(data)


def test_a_damaged_block_that_both_logs_have_is_an_error_that_names_it(folder: str) -> None:
    with opened(folder, WINDOW) as db:
        push(db, 0, 3000)
        db.checkpoint()
        first = set(blocks.blocks(db.log_folder))
        push(db, 3000, 100)
        db.checkpoint()
        (name, *_) = first & set(blocks.blocks(db.log_folder))
        damage(os.path.join(db.log_folder, name))
        with pytest.raises(Error, match=name):
            db.checkpoint()
    with pytest.raises(Error, match=f"(?s)log-3.*{name}.*log-2.*{name}"):
        opened(folder)


def test_a_copy_has_blocks_of_its_own(folder: str, tmp_path: Path) -> None:
    with opened(folder, WINDOW, GROUPS) as db:
        push(db, 0, 3000)
        db.checkpoint()
        push(db, 3000, 100)
        db.backup(tmp_path / "copy")
        before, log = held(db), db.log_folder
        names = blocks.blocks(log)
    assert names == blocks.blocks(str(tmp_path / "copy" / "log-1"))
    shutil.rmtree(folder)
    with opened(str(tmp_path / "copy")) as db:
        assert held(db) == before


def test_a_full_disk_refuses_the_checkpoint_and_nothing_else(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(folder, WINDOW) as db:
        push(db, 0, 3000)
        with monkeypatch.context() as patched:
            patched.setattr(blocks.BlockWriter, "_write", refusing(errno.ENOSPC))
            with pytest.raises(Error, match="No space left"):
                db.checkpoint()
        assert sorted(os.listdir(folder)) == ["lock", "log-1", "minidsms.json"]
        push(db, 3000, 100)
        db.checkpoint()
        before = held(db)
    with opened(folder) as db:
        assert held(db) == before


def test_blocks_and_their_names_are_synced_before_their_log_is_named(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def synced(number: int) -> None:
        fsync(number)
        done.append(("sync", os.readlink(f"/proc/self/fd/{number}")))

    def replaced(old: Any, new: Any) -> None:
        replace(old, new)
        done.append(("name", os.fspath(new)))

    with opened(folder, WINDOW) as db:
        for first in (0, 3000):
            before = set(blocks.blocks(db.log_folder))
            push(db, first, 3000 if first == 0 else 500)
            with monkeypatch.context() as patched:
                patched.setattr(os, "fsync", synced)
                patched.setattr(os, "replace", replaced)
                db.checkpoint()
            named = done.index(("name", os.path.join(folder, "minidsms.json")))
            made = os.path.join(folder, "checkpoint", "log-1")
            there = [os.path.join(made, name) for name in set(blocks.blocks(db.log_folder)) - before]
            last = max(done.index(("sync", path)) for path in there)
            assert ("sync", made) in done[last:named]
            done.clear()


def test_parts_of_an_entry_are_taken_across_its_pieces_as_copies_that_may_be_changed(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    data = np.random.default_rng(1).bytes(blocks.LEAST_BYTES + 10)
    writer = blocks.BlockWriter(folder, folder)
    fields, rest = writer.placed([(memoryview(b"begin"),), (memoryview(data),), (memoryview(b"end"),)])
    content = blocks.Content(fields["pieces"], memoryview(b"".join(rest)), folder)  # type: ignore[arg-type]
    whole = b"begin" + data + b"end"
    assert bytes(content.whole()) == whole
    taken = [content.take(nbytes) for nbytes in (3, 40, len(whole) - 43)]
    assert b"".join(taken) == whole
    assert not taken[1].readonly and not taken[2].readonly
    with pytest.raises(ValueError, match="missing"):
        content.take(1)


@given(st.sets(st.integers(0, 10_000), min_size=1, max_size=300), st.sampled_from((1 << 12, 1 << 14, 1 << 17)))
def test_an_array_is_cut_into_all_of_its_elements(numbers: set[int], itemsize: int) -> None:
    n = len(numbers)
    at = blocks.cut(n * itemsize, n, np.array(sorted(numbers), np.int64))
    assert at[0] == 0 and at[-1] == n and at == sorted(at)


@given(st.integers(0, 1 << 40), st.integers(0, 500))
def test_elements_that_stay_are_in_the_same_pieces(first: int, later: int) -> None:
    def pieces(numbers: Any) -> set[tuple[int, ...]]:
        at = blocks.cut(len(numbers) << 16, len(numbers), numbers)
        return {tuple(numbers[a:b].tolist()) for a, b in pairwise(at)}

    before, now = np.arange(first, first + 1000), np.arange(first + later, first + later + 1000)
    assert len(pieces(now) - pieces(before)) <= later / 32 + 3
    assert max(map(len, pieces(now))) == 32
