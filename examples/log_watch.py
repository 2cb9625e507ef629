"""Is the share of failed requests in a growing log above ten percent, over the last 200 requests?

The log is written while it is read, rotated on the way, and the alarms are appended to a file that others may follow.

    python examples/log_watch.py [REQUESTS]
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import threading
from collections import deque
from pathlib import Path

from checking import agree

import minidsms

CQL = """
CREATE STREAM Request (ts INTEGER, path TEXT, status INTEGER) TIMESTAMP BY ts
    FROM '{log}' WITH (follow = true, poll = 5 MILLISECONDS, stop_after = 1 SECOND);

CREATE VIEW Failures (failed, requests) AS
    SELECT SUM(CASE WHEN status >= 500 THEN 1 ELSE 0 END), COUNT(*) FROM Request [ROWS 200];

CREATE QUERY alarms AS
    SELECT ISTREAM(failed * 10 > requests AS too_many) FROM Failures WHERE requests = 200
    INTO '{alarms}' WITH (append = true)
"""


def requests(count: int) -> list[tuple[int, str, int]]:
    """Requests of which more fail for a while."""
    random_ = random.Random(7)
    failing = range(count // 3, count // 2)
    return [
        (ts, f"/item/{random_.randrange(50)}", 503 if random_.random() < (0.3 if ts in failing else 0.02) else 200)
        for ts in range(count)
    ]


def write(log: Path, rows: list[tuple[int, str, int]]) -> None:
    """Write the log in pieces; half-way it is rotated."""
    for part, rows_of_part in enumerate((rows[: len(rows) // 2], rows[len(rows) // 2 :])):
        if part:
            log.rename(log.with_suffix(".1"))
        with log.open("w") as file:
            file.write("ts,path,status\n")
            for i, row in enumerate(rows_of_part):
                file.write(",".join(map(str, row)) + "\n")
                if i % 500 == 0:
                    file.flush()


def expected(count: int) -> list[tuple[int, bool]]:
    """(instant, too many) whenever it changes."""
    last: deque[bool] = deque(maxlen=200)
    told: list[tuple[int, bool]] = []
    for ts, _, status in requests(count):
        last.append(status >= 500)
        if len(last) == 200:
            too_many = sum(last) * 10 > 200
            if not told or told[-1][1] != too_many:
                told.append((ts, too_many))
    return told


def main(arguments: list[str]) -> int:
    """Write and read at once."""
    count = int(arguments[0]) if arguments else 6_000
    with tempfile.TemporaryDirectory() as folder:
        log, alarms = Path(folder, "access.csv"), Path(folder, "alarms.jsonl")
        log.write_text("ts,path,status\n")
        writer = threading.Thread(target=write, args=(log, requests(count)))
        with minidsms.connect() as db:
            db.execute(CQL.format(log=log, alarms=alarms))
            writer.start()
            db.run()
            writer.join()
            for row in db.execute("SHOW SOURCES"):
                print(f"{row[4]:,} requests read; {row[6] or 'no rotation'}")
        found = [json.loads(line) for line in alarms.read_text().splitlines()]
    told = [(line["_ts"], line["too_many"]) for line in found]
    for ts, too_many in told:
        print(f"request {ts}: {'more' if too_many else 'no more'} than a tenth of the last 200 requests failed")
    return agree("when the alarm went on and off", told, expected(count))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
