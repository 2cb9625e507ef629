"""Generated streams: the same from the same arguments, in order, and shaped as they say."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

import minidsms
from minidsms.cql.errors import CqlError, Error
from minidsms.cql.parser import parse_type
from minidsms.elements import Schema
from minidsms.generators import NAMES, generator_named, open_generator
from minidsms.inputs.conversion import Converter
from minidsms.values.dictionary import TextDictionary

STREAMS = [(name, stream) for name in NAMES for stream in generator_named(name).streams]
MS = 1_000_000


def source(name: str, *args: Any, tick_ns: int = MS) -> Any:
    columns = generator_named(name).streams[args[0]][0]
    return open_generator(name, args, Schema.of(*((c, parse_type(t)) for c, t in columns.items())), tick_ns)


def rows(name: str, *args: Any, tick_ns: int = MS) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in source(name, *args, tick_ns=tick_ns).read() for row in batch.to_pylist()]


@pytest.mark.parametrize(("name", "stream"), STREAMS)
def test_equal_arguments_give_equal_rows_and_another_seed_others(name: str, stream: str) -> None:
    once = rows(name, stream, ("events", 20_000), ("seed", 5))
    assert once == rows(name, stream, ("events", 20_000), ("seed", 5))
    assert once != rows(name, stream, ("events", 20_000), ("seed", 6))


@pytest.mark.parametrize(("name", "stream"), STREAMS)
def test_fewer_events_are_a_beginning_of_more(name: str, stream: str) -> None:
    few, many = rows(name, stream, ("events", 10_000)), rows(name, stream, ("events", 20_000))
    if (name, stream) in (("network", "b"), ("network", "o")):
        # What is on its way when the events end arrives without those that would have overtaken it.
        few = few[:-200]
    assert len(few) > 10 and few == many[: len(few)]


@pytest.mark.parametrize(("name", "stream"), STREAMS)
@pytest.mark.parametrize("tick_ns", [1, MS, 1_000_000_000, 60_000_000_000])
def test_rows_fit_their_declaration_and_come_in_the_order_of_time(name: str, stream: str, tick_ns: int) -> None:
    made = source(name, stream, ("events", 20_000), ("start", 1_700_000_000), tick_ns=tick_ns)
    converter = Converter("S", made.schema, TextDictionary(), tick_ns)
    last = 1_700_000_000 * 1_000_000_000 // tick_ns
    count = 0
    for batch in made.read():
        n, columns = converter.columns(dict(zip(batch.schema.names, batch.columns)))
        at = np.asarray(columns[-1].values)
        assert at[0] >= last and (np.diff(at) >= 0).all()
        last, count = int(at[-1]), count + n
    assert count > 0 and made.bytes_read == made.bytes_total


def test_nexmark_bids_are_for_auctions_that_have_begun_by_persons_who_have_registered() -> None:
    args = (("events", 30_000), ("rate", 1000))
    begun = {row[0]: row[-1] for row in rows("nexmark", "auction", *args)}
    registered = {row[0]: row[-1] for row in rows("nexmark", "person", *args)}
    bids = rows("nexmark", "bid", *args)
    assert len(bids) == 30_000 * 46 // 50
    assert all(begun[b[0]] <= b[3] and registered[b[1]] <= b[3] for b in bids)
    hottest = Counter(b[0] for b in bids).most_common(1)[0][1]
    assert hottest > 20 * len(bids) / len(begun)


def test_network_packets_reach_b_and_o_only_after_c_and_within_the_delay() -> None:
    args = (("events", 20_000), ("delay", 20))
    c = {row[0]: row for row in rows("network", "c", *args)}
    b = {row[0]: row for row in rows("network", "b", *args) if row[0] >= 0}
    o = {row[0]: row for row in rows("network", "o", *args)}
    assert set(o) < set(b) < set(c)
    assert all(0 < b[pid][2] - c[pid][2] <= 20 for pid in b) and all(0 < o[pid][2] - b[pid][2] <= 20 for pid in o)
    assert all(b[pid][1] == c[pid][1] for pid in b)
    assert 0.55 < len(b) / len(c) < 0.65 and 0.45 < len(o) / len(b) < 0.55


def test_linear_road_cars_report_every_thirty_seconds_and_move_as_fast_as_they_say() -> None:
    last: dict[int, tuple[Any, ...]] = {}
    stood = 0
    for row in rows("linear_road", "position", ("events", 50_000), ("cars", 300)):
        car, speed, _, lane, direction, xpos, at = row
        if car in last:
            assert at - last[car][6] == 30_000 and last[car][3] != 4
            moved = (xpos - last[car][5]) * (1 if direction == 0 else -1)
            assert moved == speed * 44 or lane == 4
            stood += speed == 0
        last[car] = row
    assert stood > 0 and len(last) > 1000


def test_entries_exits_crossings_and_accidents_are_those_of_the_reports() -> None:
    args = (("events", 30_000), ("cars", 300), ("accidents", 5.0), ("seed", 4), ("crowd", 3))
    reports = rows("linear_road", "position", *args)
    entered = {r[0]: r for r in rows("linear_road", "entry", *args)}
    left = {r[0]: r for r in rows("linear_road", "exit", *args)}
    crossed = {(r[0], r[4]): r for r in rows("linear_road", "crossing", *args)}
    stopped = {r[0]: r for r in rows("linear_road", "accident", *args)}
    seen: dict[int, list[tuple[Any, ...]]] = {}
    for row in reports:
        seen.setdefault(row[0], []).append(row)
    assert sorted(entered) == sorted(seen) and set(stopped) <= set(seen)
    for car, own in seen.items():
        places = [(r[4], r[5] // 5280) for r in own]
        assert entered[car][1:] == (*places[0], own[0][6])
        assert (car in left) == (own[-1][3] == 4)
        assert car not in left or left[car][1:] == (*places[-1], own[-1][6])
        expected = [r[6] for r, place, old in zip(own, places, [None, *places]) if place != old]
        assert [r[6] for r in own if (car, r[6]) in crossed] == expected
        four = [r for i, r in enumerate(own) if i >= 3 and len({q[5] for q in own[i - 3 : i + 1]}) == 1]
        assert stopped[car][1:] == (four[0][4], four[0][5] // 5280, four[0][6]) if four else car not in stopped
    assert len(stopped) > 20 and {r[3] for r in crossed.values()} > {0, 2, 8}


def test_sensors_have_gaps_and_faults_and_stocks_walk() -> None:
    readings = rows("sensors", "reading", ("events", 30_000))
    missing = sum(r[2] is None for r in readings)
    faulty = sum(r[2] is not None and r[2] > 40 for r in readings)
    assert 200 < missing < 400 and 10 < faulty < 60
    trades = rows("stocks", "trade", ("events", 30_000))
    by_symbol: dict[str, list[int]] = {}
    for symbol, price, *_ in trades:
        by_symbol.setdefault(symbol, []).append(price)
    steps = [abs(b / a - 1) for prices in by_symbol.values() for a, b in itertools.pairwise(prices)]
    assert len(by_symbol) == 20 and max(steps) < 0.05 and sum(steps) > 0


def test_a_generator_without_end_is_read_up_to_an_instant() -> None:
    db = minidsms.connect()
    db.execute(
        "CREATE STREAM T (symbol TEXT, price INTEGER, at TIMESTAMP) TIMESTAMP BY at FROM GENERATOR stocks('trade')"
    )
    q = db.query("SELECT COUNT(*) FROM T")
    db.run(until=9_999)
    assert q.snapshot() == [(10_000,)]
    db.run(until=19_999)
    assert q.snapshot() == [(20_000,)]


def test_python_declares_the_same_generators() -> None:
    answers = []
    for source in ("", " FROM GENERATOR nexmark('bid', events = 9000, seed = 4)"):
        with minidsms.connect() as db:
            db.execute(f"CREATE STREAM B (price INTEGER, at TIMESTAMP) TIMESTAMP BY at{source}")
            q = db.query("SELECT SUM(price) FROM B")
            if not source:
                db.feed("B", "generator://nexmark/bid", events=9000, seed=4, speed=1000)
            db.run()
            answers.append(q.snapshot())
    assert answers[0] == answers[1]
    with minidsms.connect() as db:
        db.execute("CREATE STREAM B (price INTEGER, at TIMESTAMP) TIMESTAMP BY at")
        with pytest.raises(Error, match='no argument "seeds"'):
            db.feed("B", "generator://nexmark/bid", seeds=4)
        with pytest.raises(Error, match="has several streams"):
            db.feed("B", "generator://nexmark")


def test_speed_lets_event_time_pass_with_the_clock() -> None:
    db = minidsms.connect()
    db.execute(
        "CREATE STREAM T (symbol TEXT, at TIMESTAMP) TIMESTAMP BY at "
        "FROM GENERATOR stocks('trade', rate = 1000) WITH (speed = 100)"
    )
    q = db.query("SELECT COUNT(*) FROM T")
    import time

    started = time.monotonic()
    db.run(until=20_000)
    assert time.monotonic() - started > 0.15
    assert q.snapshot()[0][0] >= 20_000


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nexmrk('bid')", 'did you mean "nexmark"'),
        ("tpch('bid')", "there are: experiments, linear_road, network"),
        ("nexmark('bids')", "there are: person, auction, bid"),
        ("nexmark()", "has several streams"),
        ("nexmark('bid', 5)", "name = value"),
        ("nexmark('bid', seeds = 5)", 'did you mean "seed"'),
        ("nexmark('bid', rate = 0)", "above 0"),
        ("nexmark('bid', events = 'many')", "is a number"),
        ("nexmark('bid', events = price)", "a value or name = value"),
        ("nexmark('bid') FORMAT csv", "FORMAT describes a file"),
        ("nexmark('bid') WITH (follow = true)", "no option"),
        ("linear_road(rate = 5)", 'no argument "rate"'),
        ("nexmark('auction')", 'no column "price"'),
    ],
)
def test_a_wrong_argument_is_shown_where_it_stands(given: str, said: str) -> None:
    with pytest.raises(CqlError) as caught:
        minidsms.connect().execute(
            f"CREATE STREAM B (price INTEGER, at TIMESTAMP) TIMESTAMP BY at FROM GENERATOR {given}"
        )
    assert said in str(caught.value) and "^^^" in str(caught.value)


def test_the_filters_of_the_experiments_change_places_and_pairs_agree() -> None:
    told = np.array(rows("experiments", "filters", ("events", 80_000), ("period", 40_000)))[:, :6].astype(int) < 500
    for half in (told[:40_000], told[40_000:]):
        assert np.allclose(np.sort(half.mean(axis=0)), [0.3, 0.3, 0.6, 0.6, 0.9, 0.9], atol=0.02)
        agreement = np.corrcoef(half.T) - np.eye(6)
        assert ((agreement > 0.3).sum(axis=0) == 1).all()
    assert not np.allclose(told[:40_000].mean(axis=0), told[40_000:].mean(axis=0), atol=0.1)


def test_every_class_of_the_experiments_has_a_filter_of_its_own() -> None:
    told = np.array(rows("experiments", "classes", ("events", 50_000)))[:, :6].astype(int)
    passed = np.array([(told[told[:, 0] == c, 1:] < 500).mean(axis=0) for c in range(5)])
    assert np.allclose(passed, np.where(np.eye(5), 0.06, 0.955), atol=0.02)


def test_a_row_of_t_meets_as_many_rows_as_told_and_parents_name_children_to_come() -> None:
    r, s, t = (rows("experiments", name, ("events", 100), ("met", 3), ("multiplicity", 4)) for name in "rst")
    assert (len(r), len(s), len(t)) == (300, 300, 400)
    known = {a for a, _ in r}
    for b, _ in t[::40]:
        assert len([a for a, each, _ in s if each == b and a in known]) == 3
    children = {key: i for i, (key, _, _) in enumerate(rows("experiments", "child", ("events", 1000), ("k", 20)))}
    for i, (child, _, _) in enumerate(rows("experiments", "parent", ("events", 900), ("k", 20))):
        assert 0 <= children[child] - i // 5 <= 20
