"""The Linear Road queries of section 6.11 against the definition, whatever state is reduced, on a road with few
cars."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest

import minidsms
from experiments.k_mon.linear_road import QUERIES, cars, measure
from experiments.k_mon.running import Query
from experiments.k_mon.workload import Streams
from minidsms.cql.binder import bind
from minidsms.cql.parser import parse_query
from minidsms.testing.compare import Answer, difference_of
from minidsms.testing.definition import answer
from minidsms.testing.history import History
from minidsms.testing.switching import forced_switching

MODES: list[dict[str, Any]] = [
    {"state_reduction": "off"},
    {"state_reduction": "swj"},
    {"state_reduction": "k-mon"},
    {"state_reduction": "k-mon", "sharing": False, "scheduler": "chain"},
    # So few rows show no constraint: nothing may be lost yet.
    {"state_reduction": "k-mon", "k_mon": "lossy"},
]
SIZES = (1, 2, 7, 65_536)


def runs(turn: int) -> list[tuple[dict[str, Any], bool]]:
    """Settings, each with two batch sizes that go by turns, and whether k of every constraint is drawn at random."""
    drawn = [(MODES[2], True), *((mode, False) for mode in MODES)]
    return [
        ({**mode, "batch_size": SIZES[(turn + i + 2 * second) % 4]}, is_forced)
        for i, (mode, is_forced) in enumerate(drawn)
        for second in range(2)
    ]


def road(query: Query) -> Streams:
    """Twelve cars for some minutes, in ticks of five seconds, many of which have accidents."""
    streams = cars(query.declared, 12, 260, accidents=80.0, seed=5)
    for stream in streams.values():
        stream.ts[:] = stream.ts // 5000
    return streams


def fed(streams: Streams) -> dict[str, list[tuple[int, tuple[int, ...]]]]:
    return {
        name: [(t, tuple(row)) for t, row in zip(s.ts.tolist(), zip(*(c.tolist() for c in s.columns.values())))]
        for name, s in streams.items()
    }


@pytest.mark.parametrize("name", QUERIES)
def test_every_query_agrees_with_the_definition_however_state_is_reduced(name: str) -> None:
    query = QUERIES[name].query
    rows = fed(road(query))
    until = max(items[-1][0] for items in rows.values())
    expected = None
    for settings, is_forced in runs([*QUERIES].index(name)):
        with minidsms.connect(time_unit="s", **settings) as db, contextlib.ExitStack() as forcing:
            if is_forced:
                forcing.enter_context(forced_switching(db, 1))
            for stream, declared in query.declared.items():
                db.execute(f"CREATE STREAM {stream} {declared}")
            # A tick stands for five seconds.
            text = query.text.replace("30 SECONDS", "6").replace("20 MINUTES", "240").replace("10 MINUTES", "120")
            text = text.replace("5 MINUTES", "60")
            if expected is None:
                node = bind(parse_query(text), db.catalog, "").node
                expected = Answer(tuple(answer(node, History(rows, {}, tick_ns=1_000_000_000), until)))
                assert len(expected.changes) > 5
            q = db.query(text)
            push_in_pieces(db, rows, random.Random(3))
            db.advance(until)
            got = Answer(tuple((c.ts, c.sign, tuple(c.row)) for c in q.fetch()))
        assert difference_of(expected, got) == ""


def push_in_pieces(
    db: minidsms.Connection, rows: dict[str, list[tuple[int, tuple[int, ...]]]], rng: random.Random
) -> None:
    """Rows of all streams by turns, some at a time."""
    left = {name: list(items) for name, items in rows.items()}
    while any(left.values()):
        name = rng.choice([name for name, items in left.items() if items])
        n = rng.choice([1, 2, 40])
        piece, left[name] = left[name][:n], left[name][n:]
        db.push(name, [row for _, row in piece], ts=[t for t, _ in piece])


def test_all_modes_give_as_many_rows_and_tell_what_they_hold() -> None:
    found = measure("NegTollStr", 40, minutes=10, modes=("off", "SWJ", "exact"))
    assert len({run.answers for run in found.values()}) == 1
    assert found["SWJ"].answers > 20
    assert all(run.steady_nbytes > 0 and run.spent_ns > 0 for run in found.values())
    found = measure("CurCarSeg", 40, minutes=10)
    assert found["exact"].answers == found["off"].answers > 500


def test_lossy_loses_little_where_cars_exit_soon_after_their_last_report() -> None:
    found = measure("CarExitStr", 300, minutes=30, modes=("SWJ", "exact", "lossy"))
    assert found["exact"].answers == found["SWJ"].answers > 1000
    assert 0 <= 1 - found["lossy"].answers / found["SWJ"].answers < 0.025
    assert "discarded 0;" not in found["lossy"].plan
