"""The answer is the defined one under every scheduler, also when it changes while queries run (docs/semantics T5)."""

from __future__ import annotations

import pytest

from minidsms import connect
from minidsms.cql.errors import CqlError, Error
from minidsms.scheduler import SCHEDULERS
from minidsms.testing.compare import check, check_together, run_definition
from minidsms.testing.generators import random_case, random_company

CASES = 2
SETTINGS = [*({"scheduler": name} for name in SCHEDULERS), {"scheduler": "chain", "chain_latency_bound": 2}]


@pytest.mark.parametrize("queue_size", [1, 3, 1_000_000])
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: " ".join(map(str, settings.values())))
def test_the_answer_does_not_depend_on_the_scheduler(settings: dict[str, object], queue_size: int) -> None:
    for seed in range(70_000, 70_000 + CASES):
        check(random_case(seed), batch_size=1 + seed % 3, queue_size=queue_size, **settings)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_queries_side_by_side_get_their_answers(name: str) -> None:
    for seed in range(71_000, 71_003):
        check_together(random_company(seed), {}, queue_size=1 + seed % 2, scheduler=name)


@pytest.mark.long
@pytest.mark.parametrize("start", range(72_000, 74_000, 100))
def test_the_answer_does_not_depend_on_the_scheduler_in_two_thousand_cases(start: int) -> None:
    for seed in range(start, start + 100):
        case = random_case(seed)
        try:
            expected = run_definition(case)
        except CqlError:
            continue
        for settings in SETTINGS:
            for queue_size in (1, 3, 1_000_000):
                check(case, expected=expected, queue_size=queue_size, **settings)


def answers(schedulers: list[str]) -> list[tuple[int, int, tuple[object, ...]]]:
    """The answers of a join while the scheduler becomes each of these in turn."""
    with connect(batch_size=7, queue_size=3) as db:
        db.execute("CREATE STREAM L (k INTEGER, v INTEGER); CREATE STREAM R (k INTEGER, w INTEGER)")
        query = db.query(
            "SELECT L.k, COUNT(*), SUM(w) FROM L [RANGE 20], R [ROWS 15] WHERE L.k = R.k AND v % 3 > 0 GROUP BY L.k"
        )
        changes = []
        for i in range(40):
            db.execute(f"SET scheduler = {schedulers[i % len(schedulers)]}")
            instants = list(range(10 * i, 10 * i + 10))
            db.push("L", [(ts % 4, ts) for ts in instants], ts=instants)
            db.push("R", [(ts % 5, ts) for ts in instants], ts=instants)
            changes += [(change.ts, change.sign, change.row) for change in query.fetch()]
        return sorted(changes, key=repr)


def test_the_scheduler_may_change_while_queries_run() -> None:
    expected = answers(["round_robin"])
    assert len(expected) > 100
    assert answers(["chain", "greedy", "fifo", "round_robin"]) == expected
    assert answers(["greedy", "chain"]) == expected


def test_the_settings_of_the_scheduler_are_shown_and_checked() -> None:
    with connect(scheduler="chain", chain_latency_bound=50) as db:
        shown = {name: value for name, value, _ in db.execute("SHOW SETTINGS")}
        assert (shown["scheduler"], shown["chain_latency_bound"]) == ("chain", 50)
        db.execute("SET chain_latency_bound = none")
        assert db.settings["chain_latency_bound"] is None
        with pytest.raises(Error, match="whole number of ticks"):
            db.execute("SET chain_latency_bound = -1")
        with pytest.raises(Error, match="round_robin, fifo, greedy, chain"):
            db.execute("SET scheduler = lottery")
