"""How much of a customer's traffic went over the links C, B and O of the network within the last ten minutes?

The motivating query of Babu 2005, section 1.3: packets enter the network over C, some go on over the backbone link B,
and some of these leave over O. A three-way join of windows on the packet's number, and a sum that is always current.

    python examples/network_monitoring.py [PACKETS]
"""

from __future__ import annotations

import sys

from checking import agree, generated, value_at

import minidsms

RATE = 40
WINDOW_MS = 600_000

CQL = """
CREATE STREAM C (pid INTEGER, size INTEGER, at TIMESTAMP) TIMESTAMP BY at
    FROM GENERATOR network('c', events = {packets}, rate = {rate});
CREATE STREAM B (pid INTEGER, size INTEGER, at TIMESTAMP) TIMESTAMP BY at
    FROM GENERATOR network('b', events = {packets}, rate = {rate});
CREATE STREAM O (pid INTEGER, size INTEGER, at TIMESTAMP) TIMESTAMP BY at
    FROM GENERATOR network('o', events = {packets}, rate = {rate});

SELECT SUM(C.size)
FROM C [RANGE 10 MINUTES], B [RANGE 10 MINUTES], O [RANGE 10 MINUTES]
WHERE C.pid = B.pid AND B.pid = O.pid
"""


def expected(packets: int, minutes: range) -> list[int]:
    """The sums at the ends of minutes: a packet counts while all its three appearances are in the windows."""
    links = [
        {row.pid: row for row in generated("network", link, events=packets, rate=RATE)} for link in ("c", "b", "o")
    ]
    sums = []
    for minute in minutes:
        now = minute * 60_000
        present = [{pid for pid, row in link.items() if now - WINDOW_MS < row.at <= now} for link in links]
        sums.append(sum(links[0][pid].size for pid in set.intersection(*present)))
    return sums


def main(arguments: list[str]) -> int:
    """Run the query, print the sum of every minute, and check it."""
    packets = int(arguments[0]) if arguments else 30_000
    minutes = range(1, packets // RATE // 60 + 1)
    with minidsms.connect() as db:
        query = db.execute(CQL.format(packets=packets, rate=RATE))
        db.run()
        changes = query.fetch()
    sums = [value_at(changes, minute * 60_000) for minute in minutes]
    for minute, total in zip(minutes, sums):
        print(f"minute {minute:3}: {total:>10,} bytes from the customer went over C, B and O in the last ten minutes")
    return agree("the sum at the end of every minute", sums, expected(packets, minutes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
