"""What is shown of instants to whoever prints rows and changes: times, where the stream has times."""

from __future__ import annotations

import pickle

import minidsms
from minidsms import Change

TEN = 1767261600000


def test_changes_and_rows_show_times_and_hold_ticks() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (at TIMESTAMP, v INTEGER) TIMESTAMP BY at; CREATE STREAM T (v INTEGER)")
        q, r = db.query("SELECT at, v FROM S"), db.query("SELECT MAX(at) AS last FROM S [ROWS 2]")
        plain = db.query("SELECT v FROM T")
        db.push("S", [(TEN, 1), (TEN + 1500, None)])
        db.push("T", (1,), ts=TEN)
        db.advance(TEN + 2000)
        first, second = q.fetch()
        assert repr(first) == "Change(ts=2026-01-01 10:00:00, sign=1, row=(2026-01-01 10:00:00, 1))"
        assert str(second.row) == "(2026-01-01 10:00:01.5, None)" and str(r.snapshot()) == "[(2026-01-01 10:00:01.5,)]"
        assert first == (TEN, 1, (TEN, 1)) and first.ts == TEN and first.row.at == TEN
        assert pickle.loads(pickle.dumps(first)) == first and isinstance(first, Change)
        assert repr(plain.fetch()) == f"[Change(ts={TEN}, sign=1, row=(1,))]"
        assert isinstance(first.row, tuple) and hash(first) == hash(tuple(first))
