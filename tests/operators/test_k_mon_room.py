"""What comes back into a reduced join when found keys break leaves room for the rows that are about to come."""

from __future__ import annotations

import pytest

import minidsms
from minidsms.operators.k_mon_join import KMonJoin

follow_keys = KMonJoin._follow_keys


def bring_back(join: KMonJoin) -> None:
    """As when the keys that were found break, whenever room is made."""
    follow_keys(join)
    assert join.reduction is not None
    join.reduction.bring_back()


@pytest.mark.parametrize("length", [250, 320, 400, 500])
def test_rows_that_come_back_leave_room_for_those_about_to_come(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KMonJoin, "_follow_keys", bring_back)
    with minidsms.connect(state_reduction="k-mon", k_mon_window=20) as db:
        db.execute("CREATE STREAM A (a INTEGER, x INTEGER); CREATE STREAM B (a INTEGER, x INTEGER)")
        q = db.query(f"SELECT DSTREAM(A.x, B.x) FROM A [RANGE {length}], B [RANGE {length}] WHERE A.a = B.a")
        for first in range(0, 12_000, 300):
            keys = list(range(first, first + 300))
            for stream in "BA":
                db.push(stream, {"a": keys, "x": keys}, ts=keys)
        db.advance(20_000)
        assert [(c.ts, c.row) for c in q.fetch()] == [(key + length, (key, key)) for key in range(12_000)]
