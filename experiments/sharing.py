"""`python -m experiments.sharing`: what many queries over one stream cost against one, sharing on and off.

Three kinds of queries: the same one again and again; filters with different constants; windows of different lengths,
grouped. Prints a table and writes experiments/results/sharing.md and sharing.png: processor time per push, per row
pushed, for registering the last query, and bytes held by stores and operators.  Babu 2005, sections 2.3.1 and 2.4.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.pictures import pyplot, save
from minidsms.connection import Connection, connect

RESULTS = Path(__file__).parent / "results"
KINDS = {
    "the same query": lambda i: "SELECT k, COUNT(*), SUM(v) FROM S [RANGE 5000] GROUP BY k",
    "filters v = c": lambda i: f"SELECT ISTREAM(k, v) FROM S WHERE v = {i}",
    "filters v > c": lambda i: f"SELECT ISTREAM(k, v) FROM S WHERE v > {100_000 - i}",
    "groups by k over ranges": lambda i: f"SELECT k, COUNT(*) FROM S [RANGE {4000 + i}] GROUP BY k",
}
DOMAIN = 100_000
TICKS = 1000


@dataclass(frozen=True)
class Figures:
    """Of one connection: milliseconds to register the last query and per push, bytes, answers per push."""

    queries: int
    register_ms: float
    push_ms: float
    nbytes: int
    answers: float


def measure(kind: str, queries: int, sharing: str, rows: int, pushes: int, seed: int) -> Figures:
    """Register so many queries, fill the windows, then push; the median of the pushes."""
    rng = np.random.default_rng(seed)
    with connect(sharing=sharing) as db:
        db.execute("CREATE STREAM S (k INTEGER, v INTEGER)")
        registered = []
        running = []
        for i in range(queries):
            start = time.process_time()
            running.append(db.query(KINDS[kind](i)))
            registered.append(time.process_time() - start)
        times = []
        before = 0
        for n in range(7 + pushes):
            ts = np.sort(rng.integers(n * TICKS, (n + 1) * TICKS, rows))
            data = {"k": rng.integers(0, 10, rows), "v": rng.integers(0, DOMAIN, rows)}
            start = time.process_time()
            db.push("S", data, ts=ts)
            if n >= 7:  # the windows are full, what is compiled or loaded once has been
                times.append(time.process_time() - start)
            else:
                before = sum(q.results for q in running)
            for q in running:
                q.fetch_arrow()
        answers = (sum(q.results for q in running) - before) / pushes
        return Figures(
            queries,
            1000 * statistics.median(registered[-20:]),
            1000 * statistics.median(times),
            _held(db),
            answers,
        )


def _held(db: Connection) -> int:
    return db.stream_store("S")[0].nbytes + sum(group.nbytes for group in db.groups.all)


def table(kind: str, rows: int, shared: Sequence[Figures], alone: Sequence[Figures]) -> str:
    """In Markdown; `times one` is the push against that of a single query."""
    one = shared[0].push_ms
    off = {f.queries: f for f in alone}
    lines = [
        f"## {kind[0].upper()}{kind[1:]}, {rows:,} rows a push",
        "",
        "| queries | answers a push | ms a push | times one | not shared, ms | register, ms | MB | not shared, MB |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for f in shared:
        other = off.get(f.queries)
        unshared = ("", "") if other is None else (f"{other.push_ms:.2f}", f"{other.nbytes / 1e6:.2f}")
        lines.append(
            f"| {f.queries:,} | {f.answers:,.0f} | {f.push_ms:.2f} | {f.push_ms / one:.1f} | {unshared[0]} | "
            f"{f.register_ms:.2f} | {f.nbytes / 1e6:.2f} | {unshared[1]} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(prog="python -m experiments.sharing", description=__doc__)
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--rows", type=int, default=1000, help="rows in a push")
    parser.add_argument("--pushes", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    figure, axes = pyplot().subplots(1, len(KINDS), figsize=(4 * len(KINDS), 4), sharey=True)
    parts = ["# Many queries over one stream", "", "`python -m experiments.sharing`; processor time.", ""]
    for axis, kind in zip(axes, KINDS):
        curves = {}
        for sharing in ("on", "off"):
            curves[sharing] = [
                measure(kind, n, sharing, options.rows, options.pushes, options.seed) for n in options.queries
            ]
        parts.append(table(kind, options.rows, curves["on"], curves["off"]))
        print(parts[-1], flush=True)
        one = curves["on"][0].push_ms
        for sharing, label in (("on", "shared"), ("off", "not shared")):
            axis.plot(options.queries, [f.push_ms / one for f in curves[sharing]], marker="o", label=label)
        axis.plot(options.queries, options.queries, color="grey", linestyle=":", label="one by one")
        axis.set(xscale="log", yscale="log", title=kind, xlabel="queries")
    axes[0].set_ylabel("time of a push, times that of one query")
    axes[0].legend()
    save(figure, RESULTS / "sharing.png", dpi=120)
    (RESULTS / "sharing.md").write_text("\n".join(parts))


if __name__ == "__main__":
    main()
