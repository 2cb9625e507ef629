"""The log: what a full, failing or damaged disk does to it."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import minidsms
from minidsms.cql.errors import Error
from minidsms.durability import entry
from minidsms.durability import log as log_module
from minidsms.durability.entry import Rows
from minidsms.durability.log import Log
from minidsms.durability.segments import FRAME, HEADER, entries, segments
from minidsms.elements import Field, Schema, Type
from minidsms.values.dictionary import TextDictionary
from tests.long.crashes import with_holes
from tests.refusing import refusing


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path)


def payloads(folder: str) -> list[bytes]:
    return [bytes(found.payload) for found in entries(folder)]


def written(folder: str, *texts: bytes) -> str:
    """A closed log of these entries; its last segment."""
    log = Log(folder, "sync")
    for text in texts:
        log.append(text)
    log.close()
    return segments(folder)[-1].path


def test_entries_come_back_in_order(folder: str) -> None:
    written(folder, b"one", b"", b"three")
    written(folder, b"four")
    assert payloads(folder) == [b"one", b"", b"three", b"four"]


@pytest.mark.parametrize("cut", [1, 5, 20, 28])
def test_an_entry_that_is_cut_off_has_not_been_written(folder: str, cut: int) -> None:
    path = written(folder, b"one", b"two")
    os.truncate(path, os.path.getsize(path) - cut if cut < 28 else 0)
    log = Log(folder, "sync")
    log.append(b"other")
    log.close()
    assert payloads(folder) == ([b"one", b"other"] if cut < 28 else [b"other"])


def test_segments_follow_each_other(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "SEGMENT_BYTES", 100)
    texts = [bytes([65 + i]) * 30 for i in range(9)]
    written(folder, *texts)
    assert len(segments(folder)) > 2
    assert payloads(folder) == texts


def test_damage_before_the_end_is_named(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "SEGMENT_BYTES", 100)
    written(folder, *[b"x" * 60] * 6)
    first = segments(folder)[0].path
    data = bytearray(Path(first).read_bytes())
    data[50] ^= 1
    Path(first).write_bytes(data)
    with pytest.raises(Error, match=r"00000000000000000000.log' is damaged at byte \d+: entry 0"):
        Log(folder, "sync")
    os.unlink(first)
    os.unlink(segments(folder)[0].path)
    assert len(payloads(folder)) > 0  # a log may begin anywhere
    os.unlink(segments(folder)[1].path) if len(segments(folder)) > 2 else None


def test_a_segment_of_another_version_is_refused(folder: str) -> None:
    path = written(folder, b"one")
    data = bytearray(Path(path).read_bytes())
    data[13] = 9
    Path(path).write_bytes(data)
    with pytest.raises(Error, match="version 9 of the format; this minidsms reads up to 3"):
        Log(folder, "sync")


@pytest.mark.parametrize("begun", [b"", b"minidsms"])
def test_a_segment_whose_header_was_never_synced_has_no_entries(folder: str, begun: bytes) -> None:
    path = written(folder)
    Path(path).write_bytes(begun.ljust(HEADER.size, b"\0"))
    written(folder, b"one")
    assert payloads(folder) == [b"one"]
    Path(path).write_bytes(b"minidsms".ljust(HEADER.size, b"\0") + Path(path).read_bytes()[HEADER.size :])
    with pytest.raises(Error, match="does not begin as a segment"):
        Log(folder, "sync")


def test_a_full_disk_refuses_the_push_whole_and_heals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = minidsms.connect(str(tmp_path / "db"))
    db.execute("CREATE STREAM S (k INTEGER)")
    counts = db.query("SELECT COUNT(*) FROM S [RANGE 10]")
    db.push("S", (1,), ts=0)
    write = os.write

    def full(number: int, data: bytes) -> int:
        if len(data) > 10:
            return write(number, bytes(data)[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    for rows, ts in (((2,), 1), ([(3,), (4,)], [1, 1])):
        with pytest.raises(Error, match=r"nothing has been taken: No space left.*\nhelp: make room there"):
            db.push("S", rows, ts=ts)
    monkeypatch.undo()
    db.push("S", (5,), ts=1)
    db.advance(1)
    assert [c.row for c in counts.fetch() if c.sign > 0][-1] == (2,)
    assert db.position("S") == 2
    db.close()
    with minidsms.connect(str(tmp_path / "db")) as db:
        assert db.position("S") == 2


def test_after_a_failed_sync_nothing_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = minidsms.connect(str(tmp_path / "db"))
    db.execute("CREATE STREAM S (k INTEGER)")

    monkeypatch.setattr(os, "fsync", refusing(errno.EIO))
    with pytest.raises(Error, match=r"could not be synced(.|\n)*open the folder again"):
        db.push("S", (1,), ts=0)
    monkeypatch.undo()
    with pytest.raises(Error, match="could not be synced"):
        db.push("S", (2,), ts=1)
    db.close()
    with minidsms.connect(str(tmp_path / "db")) as db:
        assert db.position("S") == 1


def test_damage_to_what_was_synced_is_told_from_what_a_crash_has_left(tmp_path: Path) -> None:
    """Random logs: what was not synced may have holes, and is cut off; damage before a whole entry that was written
    after a sync is an error.
    """
    for seed in range(300):
        rng, folder = Random(seed), str(tmp_path / str(seed))
        os.mkdir(folder)
        log, synced, size, told, texts = Log(folder, "os"), 0, HEADER.size, [], []
        for _ in range(rng.randrange(1, 12)):
            if rng.random() < 0.4:
                log.sync()
                synced, size = log.next, log._size
            told.append(synced)
            texts.append(rng.randbytes(rng.choice((0, 5, 100))))
            if texts[-1] and rng.random() < 0.1:
                log.append(b"refused")
                log.retract(log.next - 1)
            log.append(texts[-1])
        log.abandon()
        (segment,) = segments(folder)
        path = Path(segment.path)
        whole = path.read_bytes()
        path.write_bytes(with_holes(whole, size, rng))
        assert payloads(folder)[:synced] == texts[:synced], f"seed {seed}"
        path.write_bytes(whole)
        for found in entries(folder):
            damaged = bytearray(whole)
            damaged[rng.randrange(found.start, found.end)] ^= 1 << rng.randrange(8)
            path.write_bytes(damaged)
            if any(known > found.number for known in told[found.number + 1 :]):
                with pytest.raises(Error, match=f"damaged at byte {found.start}: entry {found.number} is not what was"):
                    Log(folder, "sync")
                assert path.read_bytes() == damaged
            else:
                assert payloads(folder) == texts[: found.number]


def test_a_folder_damaged_amid_its_last_segment_is_not_opened(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path / "db") as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        for k in range(100):
            db.push("S", (k,), ts=k)
    (segment,) = segments(str(tmp_path / "db" / "log-1"))
    found = list(entries(str(tmp_path / "db" / "log-1")))[50]
    data = bytearray(Path(segment.path).read_bytes())
    data[found.end - 1] ^= 1
    Path(segment.path).write_bytes(data)
    with pytest.raises(
        Error, match=r"entry 50 is not what was written, and had been synced when entry \d+ was written"
    ):
        minidsms.connect(tmp_path / "db")
    os.truncate(segment.path, found.start)  # as the error says
    with minidsms.connect(tmp_path / "db") as db:
        assert 0 < db.position("S") < 100 and not db.warnings


@pytest.mark.parametrize("durability", ["batch", "os"])
def test_position_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str) -> None:
    monkeypatch.setattr(log_module, "BATCH_S", 1000.0)
    with minidsms.connect(str(tmp_path / "db"), durability=durability) as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        db.push("S", (1,), ts=0)
        synced: list[int] = []
        monkeypatch.setattr(os, "fsync", synced.append)
        db.push("S", (1,), ts=1)
        assert not synced
        assert db.position("S") == 2
        assert len(synced) == 1


def test_batch_syncs_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    monkeypatch.setattr(log_module, "BATCH_S", 0.001)
    with minidsms.connect(str(tmp_path / "db"), durability="batch") as db:
        db.execute("CREATE STREAM S (k INTEGER)")
        synced = threading.Event()
        monkeypatch.setattr(os, "fsync", lambda number: synced.set())
        db.push("S", (1,), ts=0)
        assert synced.wait(240)
        monkeypatch.undo()


def test_an_entry_is_not_taken_for_another_of_the_same_content(folder: str) -> None:
    path = written(folder, b"same", b"same", b"other")
    data, size = Path(path).read_bytes(), FRAME.size + 4
    first = data[HEADER.size :][:size]
    for copied in (first, first[:16] + data[HEADER.size + size :][16:24] + b"same"):  # with the other's number, too
        Path(path).write_bytes(data[: HEADER.size + size] + copied + data[HEADER.size + 2 * size :])
        assert payloads(folder) == [b"same"]


def test_large_rows_are_written_as_small_ones_are() -> None:
    """Buffer by buffer, without a copy; also of slices, with NULLs and texts."""
    schema = Schema.of(("k", Type.INTEGER), ("v", Type.FLOAT), ("b", Type.BOOLEAN), ("t", Type.TEXT))
    rows = Rows(schema, TextDictionary(), True)
    for n in (0, 1, 7, 10_000):
        at = np.arange(n)
        batch = pa.record_batch(
            [
                pa.array(at), pa.array(np.ones(n, np.int8)), pa.array(at, mask=at % 3 == 0),
                pa.array(at / 2), pa.array(at % 2 == 0, mask=at % 5 == 0),
                pa.array([f"t{i}" if i % 4 else None for i in at], pa.string()),
            ],
            ["_ts", "_sign", "0", "1", "2", "3"],
        )  # fmt: skip
        for each in (batch, batch.slice(n // 3, n // 2)):
            data = b"".join(rows.encoded_batch(each))
            assert data == each.serialize().to_pybytes()
            assert rows.batch(memoryview(data)).equals(each)


def test_a_row_is_written_as_arrow_writes_it_and_read_back() -> None:
    random = Random(1)
    types = (Type.INTEGER, Type.TEXT, Type.FLOAT, Type.BOOLEAN, Type.TEXT)
    dictionary = TextDictionary()
    schema = Schema(tuple(Field(f"c{i}", type_) for i, type_ in enumerate(types)))
    rows, reader = Rows(schema, dictionary, False), Rows(schema, dictionary, False)
    for i in range(400):
        texts = ["".join(random.choices("aü中😀", k=random.randint(0, 4))) for _ in range(2)]
        floats = [0.5, math.inf, -2e300, 5e-324]
        values: list[Any] = [random.randrange(-(2**63), 2**63), texts[0], random.choice(floats), i % 2 == 0, texts[1]]
        values = [None if random.random() < 0.05 else value for value in values]
        stored = [dictionary.code(v) if isinstance(v, str) else v for v in values]
        message = bytes(rows.encoded_row(i, stored))
        arrays = [
            pa.array([i]),
            *(pa.array([v], kind) for v, kind in zip(values, rows.batch(memoryview(message)).schema.types[1:])),
        ]
        batch = pa.RecordBatch.from_arrays(arrays, names=["_ts", *map(str, range(5))])
        assert message == batch.serialize().to_pybytes()
        assert reader.decoded(memoryview(message)) == (i, None, tuple(values))


@pytest.mark.parametrize("name", ["s", 'a "b" \\ ü é'])
def test_entries_that_come_often_are_written_as_all_are(name: str) -> None:
    assert entry.advance(-5, None) == entry.encoded({"kind": "advance", "ts": -5, "stream": None})
    assert entry.advance(1 << 61, name) == entry.encoded({"kind": "advance", "ts": 1 << 61, "stream": name})
    assert entry.taken(name, 12) == entry.encoded({"kind": "taken", "query": name, "until": 12})


def test_a_heartbeat_of_a_callback_is_one_entry(tmp_path: Path) -> None:
    with minidsms.connect(tmp_path) as db:
        db.execute("CREATE STREAM S (k INTEGER); CREATE STREAM T (k INTEGER)")
        db.query("SELECT ISTREAM(k) FROM S").on_change(lambda change: db.advance(change.ts, "T"))
        db.push("S", (1,), ts=0)
        before = db.log.next  # type: ignore[attr-defined]
        db.push("S", (2,), ts=1)
        assert db.log.next == before + 3  # type: ignore[attr-defined]  # the push, the heartbeat, what was told
