"""What a connection with a folder sheds stays shed: the log says which elements, and they are not decided upon anew."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import minidsms
from minidsms.durability.log import Log
from minidsms.durability.segments import Part
from minidsms.synopses.stream_store import StreamStore
from tests.long.crashes import end_process
from tests.seeds import seeds

QUERIES = {
    "every": "SELECT ISTREAM(k) FROM S",
    "counts": "SELECT k, COUNT(*) FROM S [RANGE 20] GROUP BY k",
    "last": "SELECT k FROM S [ROWS 3]",
    "kinds": "SELECT DISTINCT k FROM S",
}


def answers(db: minidsms.Connection) -> dict[str, Counter[str]]:
    return {name: Counter(map(repr, db.queries[name].fetch(ack=0))) for name in QUERIES}


@pytest.mark.parametrize("seed", seeds(6))
def test_what_was_shed_stays_shed(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    late = rng.choice(("", " SLACK 2", " LATE DROP"))
    db = minidsms.connect(tmp_path / "db", load_shedding="random", queue_size=12, seed=seed)
    db.execute(f"CREATE STREAM S (k INTEGER){late}")
    for name, text in QUERIES.items():
        db.execute(f"CREATE QUERY {name} AS {text}")
    now, pushed = 0, 0
    for _ in range(12):
        db.execute(f"ALTER QUERY last {rng.choice(('PAUSE', 'RESUME'))}")
        for _ in range(rng.randrange(8)):
            n = rng.choice((1, 1, 5, 40))
            ts = [now + i // 2 - (rng.randrange(2) if late else 0) for i in range(n)]
            rows = [(rng.randrange(9),) for _ in range(n)]
            db.push("S", rows[0] if n == 1 else rows, ts=ts[0] if n == 1 else ts)
            now, pushed = now + n // 2 + 2, pushed + n
        if rng.random() < 0.3:
            db.checkpoint()
        before = answers(db)
        told = vars(db.stream_input("S").counters).copy(), [q.stats()["shed"] for q in db.queries.values()]
        assert db.position("S") == pushed
        if rng.random() < 0.5:
            end_process(db)
        else:
            db.close()
        db = minidsms.connect(tmp_path / "db")
        assert answers(db) == before
        assert told == (vars(db.stream_input("S").counters), [q.stats()["shed"] for q in db.queries.values()])
    db.execute("ALTER QUERY last RESUME")
    db.advance(now + 30)
    found, shed = answers(db), db.stream_input("S").counters.shed
    assert shed > 0
    kept = [(change.ts, change.row) for change in db.queries["every"].fetch(ack=0)]
    db.close()
    with minidsms.connect() as memory:
        memory.execute("CREATE STREAM S (k INTEGER)")
        for name, text in QUERIES.items():
            memory.query(text, name)
        memory.push("S", [row for _, row in kept], ts=[ts for ts, _ in kept])
        memory.advance(now + 30)
        wanted = answers(memory)
        assert (found["counts"], found["kinds"]) == (wanted["counts"], wanted["kinds"])


@pytest.mark.parametrize("is_full", [False, True])
def test_a_push_with_shed_elements_that_is_refused_stops_the_connection(
    is_full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the log did not take that it is undone, the connection went on, and the folder had it when opened again."""
    db = minidsms.connect(tmp_path / "db", load_shedding="random", queue_size=100, seed=1)
    db.execute("CREATE STREAM S (v INTEGER)")
    db.query("SELECT v FROM S", "q").pause()
    for ts in range(0, 80, 20):
        db.push("S", [(v,) for v in range(20)], ts=range(ts, ts + 20))
    append = Log.append

    def refusing(self: Log, *payload: Part, **options: bool) -> int:
        if is_full and b'"undone"' in bytes(payload[0]):
            raise minidsms.Error("the log cannot be written: No space left")
        return append(self, *payload, **options)

    def without_memory(*given: Any, **options: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(Log, "append", refusing)
        patched.setattr(StreamStore, "append", without_memory)
        with pytest.raises(MemoryError):
            db.push("S", [(v,) for v in range(20)], ts=range(80, 100))
    with pytest.raises(minidsms.Error, match="open the folder again"):
        db.push("S", (20,), ts=100)
    db.close()
    with minidsms.connect(tmp_path / "db") as db:
        assert db.position("S") == (100 if is_full else 80)
        db.push("S", (20,), ts=100)
