"""Which sensors are wrong, and which have gone silent?

A reading is wrong when it is more than ten degrees away from the mean of its room's plausible readings in the last five
minutes. A sensor is silent when it has not read anything for a minute:
what DSTREAM says when the last reading leaves its window.

    python examples/sensors.py [READINGS]
"""

from __future__ import annotations

import sys
from collections import defaultdict, deque

from checking import agree, generated

import minidsms

CQL = """
CREATE STREAM Reading (sensor INTEGER, room TEXT, temperature FLOAT, at TIMESTAMP) TIMESTAMP BY at
    FROM GENERATOR sensors('reading', events = {readings}, rate = 2, sensors = 40, gaps = 0.6, faults = 0.01);

CREATE VIEW Room (room, mean) AS
    SELECT room, AVG(temperature) FROM Reading [RANGE 5 MINUTES]
    WHERE temperature BETWEEN -20 AND 40 GROUP BY room;

CREATE QUERY wrong AS
    SELECT RSTREAM(R.sensor, R.temperature) FROM Reading [NOW] AS R, Room
    WHERE R.room = Room.room AND ABS(R.temperature - Room.mean) > 10;

CREATE QUERY silent AS
    SELECT DSTREAM(DISTINCT sensor) FROM Reading [RANGE 1 MINUTE] WHERE temperature IS NOT NULL
"""


def expected(readings: int) -> tuple[list[tuple[int, float]], list[tuple[int, int]]]:
    """(wrong readings, (instant, sensor) of silences)."""
    rooms: dict[str, deque[tuple[int, float]]] = defaultdict(deque)
    last: dict[int, int] = {}
    wrong, silent = [], []
    end = 0
    for row in generated("sensors", "reading", events=readings, rate=2, sensors=40, gaps=0.6, faults=0.01):
        end = row.at
        if row.temperature is None:
            continue
        plausible = rooms[row.room]
        if -20 <= row.temperature <= 40:
            plausible.append((row.at, row.temperature))
        while plausible and plausible[0][0] <= row.at - 300_000:
            plausible.popleft()
        if plausible and abs(row.temperature - sum(t for _, t in plausible) / len(plausible)) > 10:
            wrong.append((row.sensor, row.temperature))
        if row.sensor in last and row.at > last[row.sensor] + 60_000:
            silent.append((last[row.sensor] + 60_000, row.sensor))
        last[row.sensor] = row.at
    silent += [(at + 60_000, sensor) for sensor, at in last.items() if at + 60_000 <= end]
    return wrong, sorted(silent)


def main(arguments: list[str]) -> int:
    """Run both queries over some hours of readings."""
    readings = int(arguments[0]) if arguments else 20_000
    with minidsms.connect() as db:
        db.execute(CQL.format(readings=readings))
        db.run()
        wrong = [change.row for change in db.queries["wrong"].fetch()]
        silent = [(change.ts, change.row[0]) for change in db.queries["silent"].fetch()]
    for sensor, temperature in wrong[:5]:
        print(f"sensor {sensor} read {temperature} degrees, far from the mean of its room")
    print(f"{len(wrong)} readings were wrong; {len(silent)} times a sensor was silent for a minute")
    return agree("every wrong reading and every silence", (wrong, sorted(silent)), expected(readings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
