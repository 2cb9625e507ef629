"""Makes the small data set of the NEXMark example: `python generate.py [FOLDER]`. Same arguments, same bytes."""

from __future__ import annotations

import random
import sys
from pathlib import Path

NAMES = ("Ada", "Ben", "Cho", "Dev", "Eva", "Finn", "Gul", "Hana", "Ivo", "Jun")
PLACES = (("Portland", "OR"), ("Boise", "ID"), ("Palo Alto", "CA"), ("Phoenix", "AZ"), ("Kent", "WA"))
CATEGORIES = ("books", "maps", "lamps")


def tables(seed: int = 3, bids: int = 120) -> dict[str, list[tuple[object, ...]]]:
    """The rows of each file under its header, in order of ts (ms); a bid comes twice a second."""
    rng = random.Random(seed)
    people, auctions, offers = [], [], []
    for i in range(len(NAMES)):
        people.append((i, NAMES[i], *rng.choice(PLACES), i * 4_000))
    for i in range(15):
        ts = 500 + i * 3_500
        auctions.append(
            (i, rng.randrange(min(len(NAMES), 1 + ts // 4_000)), rng.randrange(3), rng.randint(10, 90), ts + 9_000, ts)
        )
    for i in range(bids):
        ts = 1_000 + i * 500
        open_ = [a[0] for a in auctions if a[5] <= ts][-4:]
        offers.append((rng.choice(open_), rng.randrange(len(NAMES)), rng.randint(10, 400), ts))
    return {
        "person": [("id", "name", "city", "state", "ts"), *people],
        "auction": [("id", "seller", "category", "reserve", "expires", "ts"), *auctions],
        "bid": [("auction", "bidder", "price", "ts"), *offers],
        "category": [("id", "name"), *enumerate(CATEGORIES)],
    }


def write(folder: Path) -> None:
    """The files the queries read."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables().items():
        (folder / f"{name}.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "data"))
