"""How late do the airlines leave, day by day since January, and now?

A year of departures from New York lies in raw files, a file per month, out of order. Spark puts all but the last weeks
into an archive and answers the query over them; the query then goes on live with the rest, as if it had been running
since New Year.

    python examples/flights_backfilled.py [DAYS]

DAYS: of the year, all by default; the last tenth of them come live. Needs `pip install 'minidsms[spark]'`.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from checking import agree
from flights_timeline import data_folder, read_table
from pyarrow import csv

import minidsms

STREAM = "CREATE STREAM Departure (time_hour TIMESTAMP, carrier TEXT, dep_delay INTEGER) TIMESTAMP BY time_hour"
QUERY = """
    SELECT carrier, COUNT(*) AS late, AVG(dep_delay) AS minutes
    FROM Departure [RANGE 1 DAY]
    WHERE dep_delay > 30
    GROUP BY carrier
"""
DAY = 86_400


def read_departures(days: int) -> pa.Table:
    """The departures of the first days of the year, in the order of the file: hour (UTC), airline, delay or NULL."""
    table = read_table(data_folder() / "flights.csv.zip").select(["time_hour", "carrier", "dep_delay"])
    hour = pc.cast(pc.cast(table["time_hour"], pa.timestamp("s", "UTC")), pa.int64())
    first = pc.min(hour).as_py()
    table = table.set_column(0, "time_hour", hour)
    return table.filter(pc.less(hour, first + days * DAY))


def write_raw(departures: pa.Table, folder: Path) -> None:
    """A CSV file for every thirty days."""
    month = (departures["time_hour"].to_numpy() - departures["time_hour"].to_numpy().min()) // (30 * DAY)
    for number in np.unique(month).tolist():
        csv.write_csv(departures.filter(pa.array(month == number)), folder / f"departures-{number:02}.csv")


def push(db: minidsms.Connection, departures: pa.Table) -> None:
    """What comes live, in the order of its time."""
    ordered = departures.sort_by("time_hour")
    db.push("Departure", ordered)
    db.advance(ordered["time_hour"][-1].as_py())


def netted(query: minidsms.Query) -> dict[int, Counter[Any]]:
    """What has changed at each instant."""
    found: dict[int, Counter[Any]] = {}
    for ts, sign, (carrier, late, minutes) in query.fetch():
        found.setdefault(ts, Counter())[carrier, late, round(minutes, 6)] += sign
    return found


def main(arguments: list[str]) -> int:
    from minidsms.spark.ingest import ingest

    departures = read_departures(int(arguments[0]) if arguments else 365)
    hours = departures["time_hour"].to_numpy()
    seam = int(hours.min() + (hours.max() - hours.min()) * 9 // 10)
    past, rest = departures.filter(pa.array(hours <= seam)), departures.filter(pa.array(hours > seam))
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder, "raw")
        raw.mkdir()
        write_raw(past, raw)
        done = ingest(str(raw), f"{folder}/data", STREAM, "csv", time_unit="s")
        print(f"{done.rows:,} departures in the archive, {done.rejected} rejected")
        with minidsms.connect(time_unit="s", backfill="spark") as db:
            db.execute(STREAM)
            query = db.execute(f"CREATE QUERY late AS {QUERY} BACKFILL FROM '{folder}/data'")
            backfilled = query.stats()["results"]
            push(db, rest)
            print(f"{backfilled:,} changes of the past from Spark, {query.stats()['results'] - backfilled:,} live ones")
            answer, now = netted(query), sorted(query.snapshot(), key=lambda row: -row[1])
    for carrier, late, minutes in now[:3]:
        print(f"  {carrier}: {late} departures of the last day more than half an hour late, {minutes:.0f} minutes each")
    with minidsms.connect(time_unit="s") as db:
        db.execute(STREAM)
        query = db.query(QUERY)
        push(db, departures)
        return agree("every change of the year", answer, netted(query))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
