"""Which households use twice their usual power, if the readings are in a data frame?

A polars or pandas frame goes in, a continuous query runs over it in the order of time, a frame comes out. Both are
needed: pip install polars pandas

    python examples/frames.py [HOURS]
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
from checking import agree

import minidsms

CQL = """
CREATE STREAM Use (house INTEGER, kwh FLOAT, at TIMESTAMP) TIMESTAMP BY at;
CREATE VIEW Usual (house, mean) AS SELECT house, AVG(kwh) FROM Use [RANGE 24 HOURS] GROUP BY house;
SELECT RSTREAM(Use.house, kwh, mean) FROM Use [NOW], Usual WHERE Use.house = Usual.house AND kwh > 2 * mean
"""


def readings(hours: int) -> pd.DataFrame:
    """What ten houses use, hour by hour: whole 64ths of a kWh, so that sums are exact in every order."""
    random = np.random.default_rng(5)
    hour, house = np.divmod(np.arange(hours * 10), 10)
    at = np.datetime64("2024-01-01", "h") + hour.astype("timedelta64[h]")
    kwh = np.round(random.gamma(2.0, 0.4, hours * 10) * 64) / 64
    return pd.DataFrame({"house": house, "at": at.astype("datetime64[ms]"), "kwh": kwh})


def expected(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The same by pandas: a rolling mean of a day for each house."""
    by_house = frame.set_index("at").groupby("house").kwh.rolling("24h").mean().rename("mean").reset_index()
    merged = frame.merge(by_house, on=["house", "at"])
    found = merged[merged.kwh > 2 * merged["mean"]]
    return sorted((row.at.isoformat(), row.house, row.kwh) for row in found.itertuples())


def main(arguments: list[str]) -> int:
    """Run the query over some weeks."""
    frame = readings(int(arguments[0]) if arguments else 24 * 30)
    with minidsms.connect() as db:
        query = db.execute(CQL)
        db.feed("Use", frame)
        db.run()
        found = query.fetch_arrow().to_pandas()
    found["at"] = found["_ts"].dt.tz_localize(None)
    print(found[["at", "house", "kwh", "mean"]].tail(5).to_string(index=False))
    got = sorted((row.at.isoformat(), row.house, row.kwh) for row in found.itertuples())
    return agree("who used twice as much as usual, and when", got, expected(frame))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
