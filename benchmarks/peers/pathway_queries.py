"""filter in Pathway; `running` over a sliding window by join is minutes long, so it counts by group without expiry."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pathway as pw


class Bid(pw.Schema):
    ts: int
    auction: int
    price: int


if __name__ == "__main__":
    columns = {name: np.load(Path(sys.argv[2], f"{name}.npy")) for name in ("ts", "auction", "price")}
    bids = pw.debug.table_from_pandas(pd.DataFrame(columns), schema=Bid)
    if sys.argv[1] == "filter":
        result = bids.filter(bids.auction % 123 == 0).select(pw.this.auction, pw.this.price)
    else:
        result = bids.groupby(bids.auction).reduce(bids.auction, n=pw.reducers.count(), top=pw.reducers.max(bids.price))
    pw.io.null.write(result)
    start = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    print(json.dumps({"elements": len(columns["ts"]), "seconds": time.perf_counter() - start}))
