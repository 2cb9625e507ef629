"""The constraints of a connection: shared, counted, forgotten, shown."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import minidsms
from minidsms.operators.k_mon.contracts import KConstraint, Kind
from minidsms.streamon.k_mon.monitoring.registry import ConstraintRegistry
from tests.streamon.k_mon.monitoring.streams import CA, OAP, RIDS, arrivals

OAC = KConstraint(Kind.OAC, "t", ("a",))


@dataclass(frozen=True, eq=False)
class Join:
    """A user."""

    name: str
    saved: int = 0

    def name_of_user(self) -> str:
        return self.name

    def tell_monitors(self) -> None:
        """It has told all."""

    def saved_nbytes(self, constraint: KConstraint) -> int:
        return self.saved if constraint == RIDS else 0


def test_queries_over_the_same_streams_share_a_monitor_and_a_new_one_finds_its_k() -> None:
    registry = ConstraintRegistry()
    first = registry.watch(OAP, Join("q1"))
    first.observe(arrivals(0, list(range(2000))))
    second = registry.watch(OAP, Join("q2"))
    assert second is first
    assert second.k == 0
    assert registry.watch(OAC, Join("q2")) is not first


def test_a_constraint_is_watched_until_its_last_user_leaves() -> None:
    registry, first, second = ConstraintRegistry(), Join("q1"), Join("q2")
    for user in (first, second, first):
        registry.watch(CA, user)
    registry.leave(CA, first)
    assert [row[7] for row in registry.table()] == ["q2"]
    registry.leave(CA, second)
    assert registry.table() == []
    registry.leave(CA, second)
    assert registry.table() == []


@pytest.mark.parametrize("constraint", [RIDS, CA, OAP, OAC], ids=str)
def test_each_kind_has_a_monitor_that_knows_its_constraint(constraint: KConstraint) -> None:
    monitor = ConstraintRegistry().watch(constraint, Join("q"))
    assert monitor.constraint == constraint
    assert monitor.k is None
    rows = arrivals(0, list(range(3000)))
    monitor.observe(rows, arrivals(0, []) if constraint.kind is Kind.RIDS else None)
    assert monitor.k == 0


def test_show_constraints_lists_stream_kind_k_users_and_what_is_saved() -> None:
    with minidsms.connect() as db:
        constraints = db.streamon.constraints
        for user in (Join("q1", 100), Join("q2", 20), Join("q2", 3)):
            constraints.watch(RIDS, user)
        users = [Join("q1", 7)]
        constraints.watch(CA, users[0]).observe(arrivals(0, np.repeat(np.arange(700), 2).tolist()))
        table = db.execute("show constraints")
        held, monitors = db.memory.nbytes, constraints.nbytes
        constraints.leave(CA, users[0])
        assert held - db.memory.nbytes == monitors - constraints.nbytes > 0
        constraints.kinds = frozenset()
        assert constraints.watch(OAP, Join("q3")).k is None
    assert table.columns[4:] == ("k", "looked at", "broken", "used by", "saves bytes")
    assert list(table) == [
        ("s", "a", "CA", None, 0, "all", 0, "q1", 0),
        ("t", "a", "RIDS", "s -> t", None, "all", 0, "q1, q2", 123),
    ]


def test_joins_of_different_windows_are_told_apart() -> None:
    registry, user = ConstraintRegistry(), Join("q1")
    for window in (None, (True, 600), (False, 50)):
        registry.watch(replace(RIDS, window=window), user)
    assert [row[3] for row in registry.table()] == ["s -> t", "s [RANGE 600] -> t", "s [ROWS 50] -> t"]


def test_what_is_not_looked_at_says_why() -> None:
    registry, user = ConstraintRegistry(), Join("q1")
    kept, broken = registry.watch(RIDS, user), registry.watch(CA, user)
    for each in (kept, broken):
        each.need(user, 400, True)
    random = np.random.default_rng(1)
    for at in range(0, 10_000, 100):
        kept.observe(arrivals(at, list(range(at, at + 100))), arrivals(at, []))
        broken.observe(arrivals(at, random.integers(0, 3000, 100).tolist()))
    assert {row[2]: row[4:6] for row in registry.table()} == {"CA": (None, "given up"), "RIDS": (0, "resting")}
