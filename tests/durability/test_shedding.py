"""What a connection with a folder sheds stays shed: the log says which elements, and they are not decided upon anew."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

import minidsms
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
