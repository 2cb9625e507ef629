"""Which machines were hotter than 80 degrees on average over ten seconds, told to whoever asks until we are stopped?

A service in one process: readings come over TCP, alarms go to all clients that have connected, and are kept in files;
`SIGTERM` or Ctrl-C stops it cleanly. A tutorial builds it step by step: docs/tutorial.md.

    python examples/service.py [--readings PORT] [--alarms PORT] [--folder FOLDER]
    python examples/service.py --check
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import socket
import sys
import tempfile
import threading
from pathlib import Path

from checking import agree

import minidsms

CQL = """
CREATE STREAM Reading (machine TEXT, degrees FLOAT, at TIMESTAMP)
    TIMESTAMP BY at SLACK 1 SECOND LATE DROP
    FROM 'tcp-listen://127.0.0.1:{readings}' FORMAT json WITH (idle_after = 2 SECONDS);

CREATE VIEW Hot AS
    SELECT machine, AVG(degrees) AS mean FROM Reading [RANGE 10 SECONDS]
    GROUP BY machine HAVING AVG(degrees) > 80 AND COUNT(*) >= 3;

CREATE QUERY alarms AS SELECT ISTREAM(machine) FROM Hot INTO 'tcp-listen://127.0.0.1:{alarms}' FORMAT json;

CREATE QUERY kept AS SELECT ISTREAM(machine, mean) FROM Hot
    INTO '{folder}/alarms-{{n}}.parquet' WITH (roll_rows = 1000, roll_after = 1 HOUR)
"""


def start(readings: int, alarms: int, folder: Path) -> minidsms.Connection:
    """The service, ready to run; port 0 takes a free one."""
    db = minidsms.connect(memory_limit="500 MB")
    db.execute(CQL.format(readings=readings, alarms=alarms, folder=folder))
    return db


def ports(db: minidsms.Connection) -> tuple[int, int]:
    """Where readings are taken, and where alarms are told."""
    places = (next(iter(db.execute("SHOW SOURCES")))[1], next(iter(db.execute("SHOW SINKS")))[1])
    taken, told = (int(place.rpartition(":")[2]) for place in places)
    return taken, told


def serve(options: argparse.Namespace) -> int:
    """Run until a signal comes."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    options.folder.mkdir(parents=True, exist_ok=True)
    with start(options.readings, options.alarms, options.folder) as db:
        for which in (signal.SIGTERM, signal.SIGINT):
            signal.signal(which, lambda *_: db.stop())
        logging.info("readings at port %d, alarms at port %d", *ports(db))
        db.run()
        for table in ("SHOW SOURCES", "SHOW SINKS"):
            print(db.execute(table))
    return 0


def check() -> int:
    """Run the service for a moment: a machine that heats up, a client that listens, and a stop."""
    sent = [{"machine": "press", "degrees": 70.0 + second, "at": second * 1000} for second in range(30)]
    with tempfile.TemporaryDirectory() as folder, start(0, 0, Path(folder)) as db:
        readings, alarms = ports(db)
        running = threading.Thread(target=db.run)
        running.start()
        with socket.create_connection(("127.0.0.1", alarms)) as client:
            lines = client.makefile()
            while not any("has connected" in str(row[5]) for row in db.execute("SHOW SINKS")):
                pass
            with socket.create_connection(("127.0.0.1", readings)) as sender:
                sender.sendall("".join(json.dumps(reading) + "\n" for reading in sent).encode())
                alarm = json.loads(lines.readline())
            print(f"alarm: {alarm['machine']} at {alarm['_ts']}")
        db.stop()
        running.join()
        print(db.execute("SHOW SOURCES"))
    # The mean of the ten seconds up to s is 70 + s - 4.5 once there are ten; it passes 80 at 15.
    return agree("when the alarm was told", (alarm["machine"], alarm["_ts"]), ("press", "1970-01-01 00:00:15.000Z"))


def main(arguments: list[str]) -> int:
    """Serve, or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--readings", type=int, default=9000, help="the port that takes readings")
    parser.add_argument("--alarms", type=int, default=9001, help="the port that tells alarms")
    parser.add_argument("--folder", type=Path, default=Path("alarms"), help="where alarms are kept")
    parser.add_argument("--check", action="store_true", help="run for a moment, and check the answer")
    options = parser.parse_args(arguments)
    return check() if options.check else serve(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
