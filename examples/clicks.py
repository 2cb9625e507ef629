"""How many clicks has each minute, which five pages are seen most, how long are sessions, what do the sections of a
changing site get, and who has not paid ten seconds after the checkout?

Two million rows of a day, up to three seconds out of order, with a few that come too late.

    python examples/clicks.py [ROWS]
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from typing import Any

import numpy as np
from checking import agree

import minidsms

DECLARATIONS = """
CREATE STREAM Event (at TIMESTAMP, user INTEGER, page TEXT, kind TEXT, purchase INTEGER)
    TIMESTAMP BY at SLACK 3 SECONDS LATE DROP;
CREATE RELATION Section (page TEXT, section TEXT) KEY (page)
"""
QUESTIONS = {
    "minutes": """
        SELECT ISTREAM(window_start, COUNT(*)) FROM Event [TUMBLE 1 MINUTE] GROUP BY window_start
    """,
    "pages": """
        SELECT ISTREAM(window_end, page, COUNT(*) AS views) FROM Event [TUMBLE 10 MINUTES]
        GROUP BY window_end, page ORDER BY views DESC LIMIT 5
    """,
    "sessions": """
        SELECT user, start, last - start AS length
        FROM (SELECT DSTREAM(user, window_start AS start, MAX(ts) AS last)
              FROM Event [SESSION 30 MINUTES PARTITION BY user] GROUP BY user, window_start) AS s
        WHERE s.ts = last + 30 MINUTES
    """,
    "sections": """
        SELECT ISTREAM(window_end, section, COUNT(*))
        FROM (SELECT RSTREAM(section) FROM Event [NOW] JOIN Section USING (page)) [TUMBLE 1 HOUR]
        GROUP BY window_end, section
    """,
    "unpaid": """
        SELECT purchase FROM (
            SELECT DSTREAM(purchase, ts AS since) FROM Event [RANGE 10 SECONDS]
            WHERE kind = 'checkout' AND purchase NOT IN
                (SELECT purchase FROM Event [RANGE 10 SECONDS] WHERE kind = 'paid')) AS d
        WHERE d.ts = since + 10 SECONDS
    """,
}
START, DAY, BLOCK = 1_767_225_600_000, 86_400_000, 50_000
PAGES = [f"/page/{i}" for i in range(200)]


def events(rows: int) -> dict[str, Any]:
    """The columns of a day in the order of arrival; `at` in milliseconds since 1970."""
    rng = np.random.default_rng(11)
    at = START + np.sort(rng.integers(0, DAY, rows))
    kind = np.full(rows, "view", object)
    purchase: list[int | None] = [None] * rows
    checkouts = np.flatnonzero(rng.random(rows) < 0.02)
    kind[checkouts] = "checkout"
    for number, row in enumerate(checkouts.tolist()):
        purchase[row] = number
        paid = int(np.searchsorted(at, at[row] + rng.integers(500, 15_000)))
        if paid < rows and kind[paid] == "view" and rng.random() < 0.9:
            kind[paid], purchase[paid] = "paid", number
    # The sixth power makes few users and pages frequent.
    user = (rng.random(rows) ** 6 * max(rows // 20, 10)).astype(np.int64)
    page = np.array(PAGES, object)[(rng.random(rows) ** 2 * len(PAGES)).astype(np.int64)]
    delay = np.where(rng.random(rows) < 0.0005, 10_000, rng.integers(0, 3_000, rows))
    order = np.argsort(at + delay, kind="stable")
    return {
        "at": at[order],
        "user": user[order],
        "page": page[order],
        "kind": kind[order],
        "purchase": np.array(purchase, object)[order],
    }


def section_of(page: int, hour: int) -> str:
    """A page is in one section of ten; at noon half of the pages move to another one."""
    return f"section {(page + (hour >= 12 and page % 2)) % 10}"


def moves() -> list[tuple[int, int, list[tuple[str, str]]]]:
    """(instant, sign, rows): the changes of the sections."""
    numbers = range(len(PAGES))
    changed = [i for i in numbers if section_of(i, 0) != section_of(i, 12)]
    noon = START + DAY // 2
    return [
        (START - 1, 1, [(PAGES[i], section_of(i, 0)) for i in numbers]),
        (noon, -1, [(PAGES[i], section_of(i, 0)) for i in changed]),
        (noon, 1, [(PAGES[i], section_of(i, 12)) for i in changed]),
    ]


def in_time(columns: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The rows that are not too late, in the order of time."""
    latest = np.maximum.accumulate(columns["at"])
    kept = np.flatnonzero(columns["at"] >= np.concatenate([[START], latest[:-1]]) - 3_000)
    kept = kept[np.argsort(columns["at"][kept], kind="stable")]
    return list(zip(*(columns[name][kept].tolist() for name in columns)))


def expected(rows: int) -> dict[str, list[tuple[Any, ...]]]:
    """The answers by plain loops, as far as the last row closes them."""
    rows_in_time = in_time(events(rows))
    end = rows_in_time[-1][0]
    minutes: Counter[int] = Counter()
    pages: dict[int, Counter[str]] = defaultdict(Counter)
    sections: dict[int, Counter[str]] = defaultdict(Counter)
    open_: dict[int, tuple[int, int]] = {}
    sessions, since, paid = [], {}, {}
    for at, user, page, kind, purchase in rows_in_time:
        minutes[at // 60_000 * 60_000] += 1
        pages[at // 600_000 * 600_000 + 600_000][page] += 1
        section = section_of(PAGES.index(page), (at - START) // 3_600_000)
        sections[at // 3_600_000 * 3_600_000 + 3_600_000][section] += 1
        start, last = open_.get(user, (at, at))
        if at >= last + 1_800_000:
            sessions.append((user, start, last - start))
            start = at
        open_[user] = start, at
        if kind != "view":
            (since if kind == "checkout" else paid)[purchase] = at
    sessions += [(user, start, last - start) for user, (start, last) in open_.items() if last + 1_800_000 <= end]
    best = {
        window: sorted(((-n, page) for page, n in counts.items()))[:5]
        for window, counts in pages.items()
        if window <= end
    }
    return {
        "minutes": sorted((m, n) for m, n in minutes.items() if m + 60_000 <= end),
        "pages": sorted((window, page, -n) for window, found in best.items() for n, page in found),
        "sessions": sorted(sessions),
        "sections": sorted((h, s, n) for h, counts in sections.items() if h <= end for s, n in counts.items()),
        "unpaid": sorted(
            (p,) for p, at in since.items() if at + 10_000 <= end and not at - 10_000 < paid.get(p, -1) < at + 10_000
        ),
    }


def answers(rows: int) -> dict[str, list[tuple[Any, ...]]]:
    """The answers of the engine."""
    columns = events(rows)
    begun = time.process_time()
    with minidsms.connect() as db:
        db.execute(DECLARATIONS)
        queries = {name: db.query(question, name) for name, question in QUESTIONS.items()}
        changes = moves()
        for first in range(0, rows, BLOCK):
            block = {name: values[first : first + BLOCK] for name, values in columns.items()}
            while changes and changes[0][0] <= block["at"].max():
                at, sign, changed = changes.pop(0)
                db.push("Section", changed, ts=at, sign=sign)
            db.push("Event", block)
        db.advance(int(columns["at"].max()))
        found = {name: sorted(change.row for change in query.fetch()) for name, query in queries.items()}
        late = db.execute("SHOW STREAMS").rows[0][3]
    print(f"{rows:,} rows, {late} of them too late, in {time.process_time() - begun:.1f} s of processor time")
    return found


def main(arguments: list[str]) -> int:
    """Ask all five questions at once."""
    rows = int(arguments[0]) if arguments else 2_000_000
    got = answers(rows)
    print(
        f"{len(got['sessions'])} sessions have ended; the longest: {max(length for *_, length in got['sessions'])} ms"
    )
    print(f"{len(got['unpaid'])} checkouts were not paid within ten seconds")
    return agree("every answer to the five questions", got, expected(rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
