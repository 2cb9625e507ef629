"""Rows are not let go for keys of relations whose rows change so often that most come back."""

from __future__ import annotations

import minidsms
from minidsms.operators.k_mon.updates import Updates


def test_a_side_is_left_open_for_longer_each_time_that_most_rows_came_back() -> None:
    updates = Updates([3])
    written, rests = 0, []
    for _ in range(3):
        written += 2000
        updates.came_back(3, 1500)
        rest = 0
        while updates.open_sides(written) == [3]:
            rest += 1
        rests.append(rest)
    assert rests == [4, 8, 16]


def test_a_side_that_lets_more_go_than_comes_back_is_used() -> None:
    updates = Updates([3])
    updates.came_back(3, 1500)
    assert updates.open_sides(2000) == [3]
    while updates.open_sides(2000):
        pass
    updates.came_back(3, 400)
    assert updates.open_sides(4000) == []
    updates.came_back(3, 1500)
    updates.open_sides(6000)
    rest = 1
    while updates.open_sides(6000):
        rest += 1
    assert rest == 4, "it begins anew"


def test_a_join_with_groups_that_change_with_every_row_lets_none_go_for_long() -> None:
    with minidsms.connect(state_reduction="k-mon") as db:
        db.execute("CREATE STREAM O (id INTEGER, item INTEGER) KEY (id)")
        q = db.query(
            "SELECT ISTREAM(O.id, c) FROM O [RANGE 3000], "
            "(SELECT item, COUNT(*) AS c FROM O [RANGE 3000] GROUP BY item) G WHERE O.item = G.item"
        )
        for first in range(0, 9000, 300):
            ids = list(range(first, first + 300))
            db.push("O", {"id": ids, "item": [i * 7 % 100 for i in ids]}, ts=ids)
        (join,) = (op for op in q.network.operators if op.name == "KMonJoin")
        figures = join.describe().figures
        assert figures["came_back"] < 10_000
        assert figures["rows_of_O"] > 2000
