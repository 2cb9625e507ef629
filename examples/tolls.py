"""Where is the traffic jammed on the expressway, and which cars have just driven into a jam?

Linear Road in small (Arasu et al., VLDB 2004; the whole of it is in examples/linear_road): cars report every 30
seconds; a segment is jammed when its cars of the last minute are slower than 40 miles an hour on average or one of them
stands still.

    python examples/tolls.py [REPORTS]
"""

from __future__ import annotations

import sys
from collections import defaultdict

from checking import agree, generated

import minidsms

CQL = """
CREATE STREAM Pos (car INTEGER, speed INTEGER, dir INTEGER, xpos INTEGER, at TIMESTAMP) TIMESTAMP BY at
    FROM GENERATOR linear_road(events = {reports}, cars = 200, accidents = 4);

CREATE VIEW Seg (car, speed, dir, seg) AS SELECT RSTREAM(car, speed, dir, xpos / 5280) FROM Pos [NOW];

CREATE VIEW Jam (dir, seg) AS
    SELECT dir, seg FROM Seg [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY dir, seg HAVING AVG(speed) < 40 OR MIN(speed) = 0;

CREATE QUERY jams AS SELECT ISTREAM(dir, seg) FROM Jam;

CREATE QUERY caught AS
    SELECT RSTREAM(S.car, S.dir, S.seg) FROM Seg [NOW] AS S, Jam AS J
    WHERE S.dir = J.dir AND S.seg = J.seg AND S.speed > 60
"""


def expected(reports: int) -> tuple[set[tuple[int, int, int]], int]:
    """(instant, direction, segment) where a jam begins; how many fast cars were in one."""
    rows = generated("linear_road", "position", events=reports, cars=200, accidents=4.0)
    by_minute: dict[int, dict[tuple[int, int], list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        # The window at instant b, a whole minute, holds what came after b - 60,000 and up to b.
        by_minute[-(-row.at // 60_000)][row.dir, row.xpos // 5280].append(row.speed)
    jams: dict[int, set[tuple[int, int]]] = {}
    for minute, segments in by_minute.items():
        jams[minute] = {s for s, speeds in segments.items() if sum(speeds) < 40 * len(speeds) or min(speeds) == 0}
    begun = {
        (minute * 60_000, *segment)
        for minute, jammed in jams.items()
        for segment in jammed - jams.get(minute - 1, set())
    }
    caught = sum(row.speed > 60 and (row.dir, row.xpos // 5280) in jams.get(row.at // 60_000, ()) for row in rows)
    return begun, caught


def main(arguments: list[str]) -> int:
    """Run both queries over some minutes of traffic."""
    reports = int(arguments[0]) if arguments else 20_000
    with minidsms.connect() as db:
        db.execute(CQL.format(reports=reports))
        db.run()
        jams = {(change.ts, *change.row) for change in db.queries["jams"].fetch()}
        caught = [change.row for change in db.queries["caught"].fetch()]
    for ts, direction, segment in sorted(jams)[:5]:
        print(f"minute {ts // 60_000}: segment {segment} is jammed in direction {direction}")
    print(f"{len(jams)} jams; {len(caught)} reports of cars at more than 60 miles an hour in a jam")
    return agree("every jam, and how many cars were caught", (jams, len(caught)), expected(reports))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
