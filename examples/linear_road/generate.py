"""Makes the small data set of the Linear Road example: `python generate.py [FOLDER] [CARS]`.

One expressway of ten segments of 5280 feet. Cars enter one by one, report every 30 seconds and leave in lane 4;
feet in 30 seconds are 44 times the miles per hour. Two cars stand still in segment 6 from 300 to 540 s, and everything
before them crawls from 240 to 660 s. Same arguments, same bytes.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

REPORT_S = 30
END_S = 900
JAM_S = (240, 660)
CRASH_S = (300, 540)
CRASH_FEET = 6 * 5280 + 2000


def reports(cars: int, seed: int = 7) -> list[tuple[int, int, int, int, int, int, int]]:
    """(ts, car, speed, xway, lane, dir, xpos), in order of ts and car."""
    rng = random.Random(seed)
    found = []
    for car in range(cars):
        # Every sixth car goes the other way, where nothing is in its way.
        direction = 1 if car % 6 == 5 else 0
        exit_segment = rng.randint(4, 9)
        crashed = car in (1, 2)
        ts = car * 300 // cars
        feet = 6 * 5280 - 12_000 if crashed else 0
        while ts < END_S:
            speed = rng.randint(50, 60)
            if direction == 0 and JAM_S[0] <= ts < JAM_S[1] and 3 <= feet // 5280 <= 6:
                speed = 8
            if crashed and CRASH_S[0] <= ts < CRASH_S[1]:
                speed, feet = 0, CRASH_FEET
            leaves = feet // 5280 >= exit_segment and not (crashed and ts < CRASH_S[1])
            xpos = feet if direction == 0 else 10 * 5280 - 1 - feet
            found.append((ts, car, speed, 0, 4 if leaves else 1 + car % 3, direction, xpos))
            if leaves:
                break
            feet = min(feet + speed * 44, 10 * 5280 - 1)
            ts += REPORT_S
    return sorted(found)


def requests(cars: int, count: int, seed: int = 11) -> list[tuple[int, int, int]]:
    """(ts, car, qid) of cars that ask for their balance, in order of ts."""
    rng = random.Random(seed)
    times = sorted(rng.randrange(60, END_S) for _ in range(count))
    return [(ts, rng.randrange(cars), qid) for qid, ts in enumerate(times)]


def write(folder: Path, cars: int = 180) -> None:
    """The three files the script reads."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, types, rows in (
        ("cars.dat", "i,i,i,i,i,i,i", reports(cars)),
        ("requests.dat", "i,i,i", requests(cars, cars // 3)),
        ("upstream.dat", "i,b,i", [(0, "+", n) for n in range(5)]),
    ):
        lines = [types, *(",".join(map(str, row)) for row in rows)]
        (folder / name).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "data"), int(sys.argv[2]) if len(sys.argv) > 2 else 180)
