"""The demo's answers, recomputed from the files by pandas: a different reader, clock and arithmetic.

Forty days are replayed, with the snowstorm of 8 February among them.
"""

from __future__ import annotations

import doctest
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

EXAMPLES = Path(__file__).parent.parent / "examples"
DAYS = 40


@pytest.fixture(scope="module")
def demo() -> Iterator[Any]:
    """The example's module, imported as a script's neighbours are."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        import flights

        yield flights
    finally:
        sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def replayed(demo: Any) -> Any:
    """Everything fetched: name to changes, and to the snapshot where there is one. cut: the first instant left out."""
    whole = demo.read_year()
    cut = whole.first // demo.DAY * demo.DAY + DAYS * demo.DAY
    year = whole.until(cut)
    db, queries = demo.open_queries()
    with db:
        demo.replay(db, year)
        snapshots = {name: q.snapshot() for name, q in queries.items() if q.kind == "relation"}
        changes = {name: q.fetch() for name, q in queries.items()}
        decisions = {name: q.decisions() for name, q in queries.items()}
        joins = ("in_fog", "in_fog_whole")
        kept = {name: demo.tables.join_of(db.queries[name].operator_tree()).figures for name in joins}
    return SimpleNamespace(year=year, cut=cut, changes=changes, snapshots=snapshots, decisions=decisions, kept=kept)


@pytest.fixture(scope="module")
def known(demo: Any, replayed: Any) -> Any:
    """The same days by pandas: all flights due, those that left, the weather, the registered aircraft, the airlines."""
    folder = Path(sys.modules["flights_timeline"].data_folder())
    flights = pd.read_csv(folder / "flights.csv.zip")
    flights = flights[flights.month <= 2].copy()  # the forty days, and some more
    clock = pd.to_datetime(flights[["year", "month", "day", "hour", "minute"]]).dt.tz_localize("America/New_York")
    flights["due"] = clock.map(pd.Timestamp.timestamp).astype(np.int64) // 60
    flights["date"] = clock.dt.strftime("%Y-%m-%d")
    left = flights[flights.dep_time.notna()].copy()
    left["departed"] = left.due + left.dep_delay.astype(np.int64)
    left = left[left.departed < replayed.cut].sort_values("departed", kind="stable")
    weather = pd.read_csv(folder / "weather.csv")
    weather["observed"] = pd.to_datetime(weather.time_hour, utc=True).map(pd.Timestamp.timestamp).astype(np.int64) // 60
    names = pd.read_csv(folder / "airlines.csv").set_index("carrier").name.to_dict()
    registered = set(pd.read_csv(folder / "planes.csv").tailnum)
    due = flights[flights.due < replayed.cut].sort_values("due", kind="stable")
    weather = weather[weather.observed < replayed.cut]
    return SimpleNamespace(due=due, left=left, weather=weather, registered=registered, names=names)


def slides(first: int, last: int, slide: int) -> range:
    """The multiples of the slide at which a window speaks."""
    return range(-(-first // slide) * slide, last + 1, slide)


def test_departures_stand_at_the_clock_of_new_york(known: Any, replayed: Any) -> None:
    departures = replayed.year.feeds[1].table
    assert departures["departed"].to_pylist() == known.left.departed.tolist()
    clock = pd.to_datetime(known.left.departed * 60, unit="s", utc=True).dt.tz_convert("America/New_York")
    assert (clock.dt.hour * 100 + clock.dt.minute == known.left.dep_time % 2400).all()


def test_instants_follow_the_clock_when_it_is_moved_forward_and_back(demo: Any) -> None:
    import pyarrow as pa

    timeline = sys.modules["flights_timeline"]
    dates = pa.table({"year": [2013] * 5, "month": [3, 3, 11, 11, 12], "day": [10, 10, 3, 3, 31]})
    instants = timeline.local_minutes(dates, np.array([159, 300, 59, 200, 2400]))
    assert instants[1] - instants[0] == 1
    assert instants[3] - instants[2] == 121
    assert (
        timeline.datetime.fromtimestamp(int(instants[4]) * 60, timeline.NEW_YORK).isoformat()[:16] == "2014-01-01T00:00"
    )


def test_mean_delays_of_two_hours_are_those_of_every_window(known: Any, replayed: Any) -> None:
    expected = {}
    first = int(known.left.departed.iloc[0])
    for origin, flights in known.left.groupby("origin"):
        departed, delay = flights.departed.to_numpy(), flights.dep_delay.to_numpy()
        for b in slides(first, replayed.year.last + 1440, 15):
            lo, hi = np.searchsorted(departed, (b - 120, b), side="right")
            if hi - lo >= 20:
                expected[b, origin] = (pytest.approx(delay[lo:hi].mean()), hi - lo)
    got = {(c.ts, c.row[0]): (c.row[1], c.row[2]) for c in replayed.changes["worst_hours"]}
    assert len(got) > 1000
    assert got == expected


def test_departures_meet_the_observation_of_their_hour(known: Any, replayed: Any) -> None:
    left = known.left.assign(observed=known.left.departed // 60 * 60)
    met = left.merge(known.weather[["origin", "observed", "wind_speed", "visib"]], "left", on=["origin", "observed"])
    wind = met.wind_speed.where(met.wind_speed <= 150)
    winds = np.select([wind.isna(), wind < 10, wind < 20], ["unknown", "under 10", "10 to 20"], "20 and more")
    sight = met.visib
    conditions = [sight.isna(), sight < 1, sight < 5, sight < 10]
    sights = np.select(conditions, ["no observation", "under 1 mile", "1 to 5 miles", "5 to 10 miles"], "10 miles")
    by_both = met.groupby([sights, winds]).dep_delay.agg(["size", "mean"])
    expected = {key: (int(row["size"]), pytest.approx(row["mean"])) for key, row in by_both.iterrows()}
    assert {row[:2]: row[2:] for row in replayed.snapshots["weather"]} == expected
    assert sum(row[2] for row in replayed.snapshots["weather"]) == len(known.left)


def test_a_return_joins_a_departure_with_the_next_of_the_aircraft(known: Any, replayed: Any) -> None:
    flights = known.left.sort_values(["tailnum", "departed"])
    before = flights.groupby("tailnum")[["departed", "origin", "dest", "distance"]].shift()
    away = flights.departed - before.departed
    back = (away > 0) & (away < 1440) & (away >= before.distance // 5)
    pairs = pd.DataFrame(
        {"dest": before.dest, "tailnum": flights.tailnum, "away": away, "moved": before.origin != flights.origin}
    )[back]
    expected = {
        dest: (len(g), g.tailnum.nunique(), int(g.away.min()), pytest.approx(g.away.mean()), int(g.moved.sum()))
        for dest, g in pairs.groupby("dest")
    }
    assert {row[0]: row[2:] for row in replayed.snapshots["returns"]} == expected


def test_the_last_five_flights_of_an_airline_are_its_last_five(known: Any, replayed: Any) -> None:
    last = known.left.groupby("carrier").tail(5)
    columns = ["departed", "carrier", "flight", "origin", "dest", "dep_delay"]
    expected = [(known.names[row[1]], *row) for row in last[columns].itertuples(index=False, name=None)]
    assert sorted(replayed.snapshots["last_five"]) == sorted(expected)


def test_flights_that_never_left_are_those_without_a_departure_time(known: Any, replayed: Any) -> None:
    left = set(known.left.index)
    # Near the cut a flight may be due before it and leave after it: to the replay that is one that never left.
    missing = known.due[~known.due.index.isin(left)]
    columns = ["due", "date", "origin", "carrier", "flight", "dest"]
    expected = [(due + 1440, row) for due, *rest in missing[columns].itertuples(index=False) for row in [tuple(rest)]]
    known_end = replayed.year.last + 1440
    assert len(expected) > 900
    got = [(c.ts, c.row) for c in replayed.changes["never_left"]]
    assert sorted(got) == sorted(e for e in expected if e[0] <= known_end)


def test_what_only_kennedy_serves_is_right_at_every_third_hour(known: Any, replayed: Any) -> None:
    changes = replayed.changes["only_from_jfk"]
    present: set[str] = set()
    at = 0
    departed, origin, dest = (known.left[c].to_numpy() for c in ("departed", "origin", "dest"))
    for instant in range(replayed.year.first, replayed.year.last, 180):
        while at < len(changes) and changes[at].ts <= instant:
            (present.add if changes[at].sign > 0 else present.remove)(changes[at].row[0])
            at += 1
        lo, hi = np.searchsorted(departed, (instant - 1440, instant), side="right")
        from_jfk = origin[lo:hi] == "JFK"
        assert present == set(dest[lo:hi][from_jfk]) - set(dest[lo:hi][~from_jfk])


def test_unregistered_aircraft_are_counted_once_each(known: Any, replayed: Any) -> None:
    flights = known.left[~known.left.tailnum.isin(known.registered)]
    expected = {known.names[carrier]: (len(g), g.tailnum.nunique()) for carrier, g in flights.groupby("carrier")}
    assert {row[0]: row[1:] for row in replayed.snapshots["unregistered"]} == expected


def test_a_fleet_is_the_distinct_aircraft_of_a_week(known: Any, replayed: Any) -> None:
    week = 7 * 1440
    ends = -(-known.left.departed // week) * week
    expected = {
        (end, known.names[carrier]): (g.tailnum.nunique(), len(g))
        for (end, carrier), g in known.left.groupby([ends, "carrier"])
        if end <= replayed.year.last + 1440
    }
    assert {(c.ts, c.row[0]): c.row[1:] for c in replayed.changes["fleets"]} == expected


def test_an_alert_says_that_most_flights_due_have_not_left(known: Any, replayed: Any) -> None:
    flights = known.due.join(known.left.departed)
    expected = set()
    for origin, group in flights.groupby("origin"):
        due, departed = group.due.to_numpy(), group.departed.to_numpy()
        for b in slides(replayed.year.first, replayed.year.last + 1440, 15):
            lo, hi = np.searchsorted(due, (b - 180, b), side="right")
            gone = int(((departed[lo:hi] > b - 240) & (departed[lo:hi] <= b)).sum())
            if hi - lo >= 20 and gone * 2 < hi - lo:
                expected.add((b, (origin, int(hi - lo), gone)))
    assert len(expected) > 50
    assert {(c.ts, c.row) for c in replayed.changes["standstill"]} == expected


def test_long_and_late_flights_of_kennedy_are_counted_hour_by_hour(known: Any, replayed: Any) -> None:
    left = known.left
    chosen = left[(left.origin == "JFK") & (left.distance > 1000) & (left.dep_delay > 0)]
    counts = chosen.groupby(chosen.departed.map(lambda t: -(-t // 60) * 60)).size().to_dict()
    found = {c.ts: c.row[0] for c in replayed.changes["late_and_long"]}
    assert len(found) > 24 * (DAYS - 2) and {ts: n for ts, n in found.items() if n} == {
        ts: n for ts, n in counts.items() if ts in found
    }


def test_the_order_of_filters_changes_as_the_day_does(demo: Any, replayed: Any) -> None:
    hours: dict[str, list[int]] = {"F1": [], "F2": [], "F3": []}
    for decision in replayed.decisions["late_and_long"]:
        if decision.old_plan[:2] != decision.new_plan[:2]:
            hours[decision.new_plan[:2]].append(demo.tables.local(decision.instant).hour)
    # In the morning the filter for late flights drops most, later in the day that for Kennedy.
    assert len(hours["F1"]) > 10 and len(hours["F3"]) > 10
    assert np.median(hours["F3"]) < np.median(hours["F1"])
    assert sum(hour < 10 for hour in hours["F3"]) > sum(hour < 10 for hour in hours["F1"])


def test_departures_due_in_fog_are_those_of_the_observation_of_their_hour(known: Any, replayed: Any) -> None:
    left = known.left.assign(observed=known.left.due // 60 * 60)
    met = left.merge(known.weather[["origin", "observed", "visib"]], "inner", on=["origin", "observed"])
    met = met[met.visib < 1]
    # Who leaves early, before the observation, is told when that comes.
    when = np.maximum(met.departed, met.observed)
    columns = (when, met.carrier, met.flight, met.origin, met.due, met.dep_delay.astype(int), met.visib)
    expected = sorted(zip(*(c.tolist() for c in columns)))
    assert len(expected) > 100
    assert sorted((c.ts, *c.row) for c in replayed.changes["in_fog"]) == expected


def test_the_join_with_the_weather_keeps_less_than_its_windows(replayed: Any) -> None:
    kept, whole = replayed.kept["in_fog"], replayed.kept["in_fog_whole"]
    assert kept["rows_of_d"] < whole["rows_of_d"] / 4
    assert whole["rows_of_d"] > 20_000


def test_the_tables_docstrings_say_what_happens(demo: Any) -> None:
    result = doctest.testmod(demo.tables)
    assert result.attempted > 0 and result.failed == 0


def test_texts_of_the_data_are_never_markup_nor_escape_codes(demo: Any) -> None:
    assert demo.tables.shown("[red]x[/red]\x1b[31m").plain == "[red]x[/red]·[31m"


def test_the_page_has_every_question_every_query_and_no_escape_codes(
    demo: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main(["--year", "--days", "3", "--plain"]) == 0
    page = capsys.readouterr().out
    assert "\x1b" not in page
    for name in demo.QUERIES:
        assert demo.question(name) in page
        assert f"examples/flights/{name}.cql" in page
    assert "Select (carrier, flight, due) NOT IN" in page
