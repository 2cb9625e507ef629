"""`python -m tests.long.slopes --seconds T`: what a process holds while streams flow, by kind of state.

Each kind runs in a process of its own, under a stream that is steady and never ends: keys come and go, windows are
full after a moment. With `--rate` all kinds run side by side, at so many pushes a second to each of their streams. The
slope of the resident set over the later half of the time is printed, in bytes a second and by element: that of its
floor, the least of every tenth of the samples, for what is held until a file has been written comes and goes. So are
the bytes by call of connections that are opened and closed, and of queries registered and dropped.
docs/design, point 10: state is bounded by what windows hold, not by the length of the stream.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import minidsms

_STREAMS = (
    "CREATE STREAM R (k INTEGER, v INTEGER, t TEXT); CREATE STREAM S (k INTEGER, v INTEGER, t TEXT); "
    "CREATE STREAM T (k INTEGER, v INTEGER, t TEXT)"
)
_ROWS = 500
"""Elements of each stream by push; their instants are as many."""
_SAMPLES = 200
"""How often the resident set is read."""

KINDS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "window": ({}, ("SELECT k, v FROM R [RANGE 2000]", "SELECT k FROM S [ROWS 700]")),
    "group": ({}, ("SELECT k, COUNT(*), AVG(v), MAX(v) FROM R [RANGE 2000] GROUP BY k",)),
    "group of texts": ({}, ("SELECT t, COUNT(DISTINCT v), MIN(t) FROM R [ROWS 900] GROUP BY t",)),
    "join": ({"caching": "off"}, ("SELECT ISTREAM(R.v, S.v) FROM R [RANGE 900], S [RANGE 900] WHERE R.k = S.k",)),
    "join kept in a tree": (
        {"join_plan": "xjoin"},
        ("SELECT R.v, S.v, T.v FROM R [RANGE 400], S [RANGE 400], T [RANGE 400] WHERE R.k = S.k AND S.k = T.k",),
    ),
    "caches": (
        {"caching": "global", "cache_interval": 1000, "cache_memory": 2**20},
        ("SELECT R.v, S.v, T.v FROM R [RANGE 400], S [RANGE 400], T [RANGE 400] WHERE R.k = S.k AND S.k = T.k",),
    ),
    "k-Mon": (
        {"state_reduction": "k-mon", "k_mon_window": 200},
        ("SELECT ISTREAM(R.v, S.v) FROM R [RANGE 2000], S [RANGE 2000] WHERE R.k = S.k AND S.v < 90",),
    ),
    "distinct": ({}, ("SELECT DISTINCT k, v FROM R [RANGE 2000]",)),
    "except": ({}, ("SELECT k FROM R [RANGE 900] EXCEPT SELECT k FROM S [RANGE 900]",)),
    "partition": ({}, ("SELECT * FROM R [PARTITION BY v ROWS 3]", "SELECT * FROM S [PARTITION BY k ROWS 1 RANGE 500]")),
    "outer join and subquery": (
        {},
        (
            "SELECT R.k, S.v FROM R [RANGE 500] LEFT JOIN S [RANGE 500] ON R.k = S.k",
            "SELECT k FROM R [RANGE 500] WHERE EXISTS (SELECT * FROM S [RANGE 500] WHERE S.k = R.k AND S.v < R.v)",
        ),
    ),
    "screens": ({}, tuple(f"SELECT ISTREAM(k, t) FROM R WHERE v > {i} AND k <> {i}" for i in range(90, 100))),
    "dictionary": ({}, ("SELECT ISTREAM(t || '!') FROM R", "SELECT t FROM S [ROWS 100]")),
    "archive": ({}, ("SELECT COUNT(*) FROM R [ROWS 10]",)),
    "sinks": ({}, ("SELECT ISTREAM(k, t) FROM R", "SELECT k, COUNT(*) FROM S [ROWS 50] GROUP BY k")),
}
"""Options of the connection, and queries, by the kind of state that they keep."""
_CALLS = ("connections", "registrations")


def resident() -> int:
    """Bytes of the process that stand in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Of the line that least squares lay through points.

    >>> slope([0, 1, 2], [5, 7, 9])
    2.0
    """
    if len(xs) < 2:
        return float("nan")
    x, y = np.asarray(xs, float), np.asarray(ys, float)
    spread = x - x.mean()
    return float((spread * y).sum() / max((spread * spread).sum(), 1e-12))


def floor(held: Sequence[float], parts: int = 10) -> list[int]:
    """Where the least of each part of a series stands.

    >>> floor([3, 1, 2, 9, 4, 5], 2)
    [1, 4]
    """
    ends = [len(held) * i // parts for i in range(parts + 1)]
    return [min(range(a, b), key=held.__getitem__) for a, b in pairwise(ends) if a < b]


def feed(db: minidsms.Connection, at: int, texts_last: bool) -> None:
    """One push to each stream: keys that are new in every round, and texts that are, or come back (texts_last)."""
    n = np.arange(at, at + _ROWS)
    for number, name in enumerate(("R", "S", "T")):
        texts = [f"{name} {i % 5000 if texts_last else i // 2}" for i in n.tolist()]
        db.push(name, {"k": n // 3, "v": (n * (7 + number)) % 100, "t": texts}, ts=n)


def run(kind: str, seconds: float, rate: float = 0) -> tuple[float, float, int]:
    """(bytes a second, bytes an element, elements) of one kind, over the later half of so many seconds.

    rate: pushes a second to each stream; 0 is as many as there can be.
    """
    options, texts = KINDS[kind]
    texts_last = kind not in ("dictionary", "archive")
    with tempfile.TemporaryDirectory() as folder, minidsms.connect(**options) as db:
        db.execute(_STREAMS)
        queries = [db.query(text) for text in texts]
        if kind == "archive":
            db.archive("R", str(Path(folder) / "archive"))
        if kind == "sinks":
            for i, query in enumerate(queries):
                query.into(Path(folder) / f"{i}.csv")
        times: list[float] = []
        held: list[float] = []
        elements: list[float] = []
        feed(db, 0, texts_last)  # kernels are loaded
        started = time.monotonic()
        at, due = _ROWS, seconds / 2
        while (passed := time.monotonic() - started) < seconds:
            feed(db, at, texts_last)
            at += _ROWS
            for query in queries if kind != "sinks" else ():
                query.fetch()
                if query.kind == "relation":
                    query.snapshot()
            if passed >= due:
                due += seconds / 2 / _SAMPLES
                times.append(passed)
                held.append(resident())
                elements.append(3 * at)
            if rate:
                time.sleep(max(0.0, started + at / _ROWS / rate - time.monotonic()))
        places = floor(held)
        lows = [held[i] for i in places]
        return slope([times[i] for i in places], lows), slope([elements[i] for i in places], lows), 3 * at


def connections(calls: int) -> float:
    """Bytes by call of connections opened and closed, of the later half."""

    def call(i: int) -> None:
        with minidsms.connect() as db:
            db.execute("CREATE STREAM S (a INTEGER, t TEXT)")
            query = db.query("SELECT t, COUNT(*) FROM S [ROWS 3] WHERE a > 1 GROUP BY t")
            db.push("S", [(i, f"x{i}"), (i + 1, "y")], ts=1)
            db.advance(2)
            query.fetch()

    return _bytes_per_call(call, calls)


def registrations(calls: int) -> float:
    """Bytes by call of queries registered and dropped, of the later half: equal ones, and others by their names and
    constants.
    """
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (a INTEGER, t TEXT)")
        kept = db.query("SELECT COUNT(*) FROM S [ROWS 10]")
        texts: tuple[Callable[[int], str], ...] = (
            lambda i: "SELECT t, COUNT(*) FROM S [ROWS 3] GROUP BY t",
            lambda i: f"SELECT a AS c{i} FROM S WHERE a > 3",
            lambda i: f"SELECT a FROM S WHERE a > {i} AND t = 'text {i}'",
            lambda i: f"SELECT x.a FROM S [ROWS 3] x, S [ROWS 4] y WHERE x.a = y.a AND x.a > {i}",
        )

        def call(i: int) -> None:
            query = db.query(texts[i % len(texts)](i))
            if i % 10 == 0:
                db.push("S", (i, "x"), ts=i)
                kept.fetch()
            query.close()

        return _bytes_per_call(call, calls)


def _bytes_per_call(call: Callable[[int], None], calls: int) -> float:
    half = calls // 2
    for i in range(half):
        call(i)
    gc.collect()
    before = resident()
    for i in range(half, calls):
        call(i)
    gc.collect()
    return (resident() - before) / max(1, calls - half)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per kind; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.slopes", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of each kind")
    parser.add_argument("--rate", type=float, default=0, help="pushes a second to each stream; kinds run side by side")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--registrations", type=int, default=5000)
    parser.add_argument("--kind", choices=[*KINDS, *_CALLS], help="one, in this process")
    options = parser.parse_args(arguments)
    if options.kind is None:
        return _each(sys.argv[1:] if arguments is None else list(arguments), options.rate > 0)
    if options.kind in KINDS:
        by_time, by_element, n = run(options.kind, options.seconds, options.rate)
        print(f"{options.kind:26}{by_time:12,.0f} bytes/s {by_element:9.2f} bytes/element {n:14,} elements", flush=True)
    else:
        what: Callable[[int], float] = globals()[options.kind]
        calls: int = getattr(options, options.kind)
        print(f"{options.kind:26}{what(calls):12,.1f} bytes/call {calls:14,} calls", flush=True)
    return 0


def _each(arguments: list[str], side_by_side: bool) -> int:
    command = [sys.executable, "-m", "tests.long.slopes", *arguments, "--kind"]
    failed, running = 0, []
    for kind in KINDS:
        running.append(subprocess.Popen([*command, kind]))
        if not side_by_side:
            failed += running.pop().wait() != 0
    failed += sum(process.wait() != 0 for process in running)
    failed += sum(subprocess.run([*command, kind], check=False).returncode != 0 for kind in _CALLS)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
