"""Who is walking through the ports of our hosts, and which attempts deserve a closer look?

Two queries over attempts to open connections. The first counts the ports each source has tried within ten seconds
without an answer. The second is a chain of filters, one of them a list of watched hosts that changes while it runs: the
kind of condition whose best order depends on the traffic (Babu 2005, chapter 4).

    python examples/intrusion.py [ATTEMPTS]
"""

from __future__ import annotations

import sys
from collections import deque

from checking import agree, generated

import minidsms

PORTS = 8
LAST_MS = 10_000

CQL = """
CREATE STREAM Syn (source TEXT, target TEXT, port INTEGER, bytes INTEGER, answered BOOLEAN, at TIMESTAMP)
    TIMESTAMP BY at FROM GENERATOR network('syn', events = {attempts}, rate = 500);
CREATE RELATION Watched (target TEXT);

CREATE QUERY scanners AS
    SELECT ISTREAM(source) FROM Syn [RANGE 10 SECONDS]
    WHERE NOT answered GROUP BY source HAVING COUNT(DISTINCT port) >= {ports};

CREATE QUERY suspicious AS
    SELECT RSTREAM(source, target, port) FROM Syn [NOW]
    WHERE NOT answered AND bytes < 100 AND port > 1024 AND target IN (SELECT target FROM Watched)
"""


def expected(attempts: int) -> tuple[set[str], int]:
    """(sources that tried enough ports within ten seconds, number of suspicious attempts)."""
    scanners: set[str] = set()
    recent: dict[str, deque[tuple[int, int]]] = {}
    suspicious = 0
    half = attempts * 1000 // 500 // 2
    for row in generated("network", "syn", events=attempts, rate=500):
        if row.answered:
            continue
        tried = recent.setdefault(row.source, deque())
        tried.append((row.at, row.port))
        while tried[0][0] <= row.at - LAST_MS:
            tried.popleft()
        if len({port for _, port in tried}) >= PORTS:
            scanners.add(row.source)
        watched = {"192.168.0.1"} if row.at < half else {"192.168.0.1", "192.168.0.2"}
        suspicious += row.bytes < 100 and row.port > 1024 and row.target in watched
    return scanners, suspicious


def main(arguments: list[str]) -> int:
    """Run both queries; half-way another host is watched."""
    attempts = int(arguments[0]) if arguments else 60_000
    half = attempts * 1000 // 500 // 2
    with minidsms.connect() as db:
        db.execute(CQL.format(attempts=attempts, ports=PORTS))
        db.push("Watched", ("192.168.0.1",), ts=0)
        db.run(until=half - 1)
        db.push("Watched", ("192.168.0.2",), ts=half)
        db.run()
        scanners = {change.row[0] for change in db.queries["scanners"].fetch()}
        suspicious = db.queries["suspicious"].fetch()
    print(f"{len(scanners)} sources tried {PORTS} ports and more within ten seconds: {', '.join(sorted(scanners))}")
    print(f"{len(suspicious)} attempts deserve a closer look; the last one: {suspicious[-1].row}")
    return agree("who scans, and how many attempts are suspicious", (scanners, len(suspicious)), expected(attempts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
