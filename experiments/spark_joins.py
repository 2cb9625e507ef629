"""`python -m experiments.spark_joins`: the order of joins on Spark, as written, by independent estimates, by samples.

Three streams over archives, joined by DataFrame operations with Spark's adaptive execution on. The orders compared:
as the query is written; as an optimizer chooses that takes the shares of the filters for independent; and as boxes
around samples say (docs/spark.md). Writes experiments/results/spark_joins.md and spark_joins.png: processor seconds of
Java and its workers, planning and sampling included, of the first query in a session and of later ones.  Babu 2005,
section 7.2.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa

from benchmarks.offload import cpu_s
from experiments.pictures import pyplot, save
from minidsms.archive.format import find
from minidsms.spark.costs import Box
from minidsms.spark.join_order import Sizes

RESULTS = Path(__file__).parent / "results"
SPAN = 1_000_000
CARS, OWNERS, HEAVY = 4, 2000, 0.3
"""HEAVY: the share of the rows that are of one owner, where keys are skewed."""
ORDERS = ("as written", "independent", "samples")
WARM, ROUNDS, FIRSTS = 3, 7, 3
"""Rounds before those that count; those; and sessions in which a first query is measured."""
DECLARED = {
    "Trip": "car INTEGER, owner INTEGER, driver INTEGER",
    "Sale": "car INTEGER, make INTEGER, model INTEGER, colour INTEGER, trim INTEGER, code INTEGER, price INTEGER",
    "Fine": "owner INTEGER, driver INTEGER, amount INTEGER, height INTEGER",
}
_QUERY = (
    "SELECT T.car, S.price, F.amount FROM {} WHERE T.car = S.car AND T.{key} = F.{key} AND S.price <= F.height AND {}"
)
_FROM = {"T": "Trip [RANGE 1000] T", "S": "Sale [RANGE 100000] S", "F": "Fine [RANGE 20000] F"}
_LIVES = {"T": 1000.0, "S": 100_000.0, "F": 20_000.0}
_SAME = "make = 3 AND model = 3 AND colour = 3 AND trim = 3"
CASES = {
    "independent predicates, written well": ("TFS", "owner", "amount = 7 AND make = 3"),
    "independent predicates, written badly": ("TSF", "owner", "amount = 7 AND make = 3"),
    "correlated predicates": ("TSF", "owner", f"{_SAME} AND amount < 30"),
    "skewed keys": ("TFS", "driver", "make = 3 AND code = 7 AND amount < 20"),
}
"""By name: the order of FROM, the key of trips and fines, and the filters. Make says model, colour and trim; amounts,
codes and prices are equally frequent; driver 0 has nearly every third trip and fine. Few heights are great, so that
whatever the price, one pair in some thousands passes.
"""
_SHARES = {"make = 3": 0.1, "model = 3": 0.1, "colour = 3": 0.1, "trim = 3": 0.1, "code = 7": 0.001}
_SHARES |= {"amount = 7": 0.01, "amount < 20": 0.2, "amount < 30": 0.3}


def write_archives(folder: str, rows: int) -> None:
    """Trips; a third as many sales; as many fines as sales."""
    from minidsms.archive import files
    from minidsms.archive.format import Metadata, create
    from minidsms.elements import Schema, Type

    rng = np.random.default_rng(1)
    for name, columns in DECLARED.items():
        schema = Schema.of(*((column.split()[0], Type.INTEGER) for column in columns.split(", ")))
        archive = create(folder, Metadata(name, "stream", "ms", schema, 86_400_000))
        n = rows if name == "Trip" else rows // 3
        make = rng.integers(0, 10, n)
        data = {"car": rng.integers(0, CARS, n), "owner": rng.integers(0, OWNERS, n)}
        data |= {"make": make, "model": make, "colour": make, "trim": make, "amount": rng.integers(0, 100, n)}
        data |= {
            "price": rng.integers(0, 1_000_000, n),
            "height": (1e6 * rng.random(n) ** 2000).astype(np.int64),
            "code": rng.integers(0, 1000, n),
        }
        data["driver"] = np.where(rng.random(n) < HEAVY, 0, data["owner"])
        own = {"_ts": np.sort(rng.integers(0, SPAN, n)), "_arrival": np.arange(n), "_sign": np.ones(n, np.int8)}
        columns_of = own | {field: data[field] for field in archive.metadata.fields}
        files.write(archive, pa.table(columns_of, schema=archive.metadata.arrow_schema))


def query_of(case: str, order: Sequence[str] | None = None) -> str:
    """A case's text, with its inputs in this order."""
    written, key, filters = CASES[case]
    return _QUERY.format(", ".join(_FROM[name] for name in order or written), filters, key=key)


def independent(case: str, rows: int) -> str:
    """The order that costs least where each filter passes what it passes alone, and keys are uniform."""
    counts = {"T": float(rows), "S": rows / 3, "F": rows / 3}
    for condition in CASES[case][2].split(" AND "):
        counts["F" if "amount" in condition else "S"] *= _SHARES[condition]
    names = list(CASES[case][0])
    pairs = {("S", "T"): 1 / CARS, ("F", "T"): 1 / OWNERS}
    shares = {}
    for (a, b), share in pairs.items():
        i, j = sorted((names.index(a), names.index(b)))
        shares[i, j] = Box(share, share)
    sizes = Sizes(tuple(Box(counts[n], counts[n]) for n in names), tuple(_LIVES[n] for n in names), shares, float(SPAN))
    order = "".join(names[i] for i in sizes.least_regret()[0])
    return {"STF": "TSF", "FTS": "TFS"}.get(order, order)


def measure(folder: str, case: str, orders: Sequence[str], rounds: int) -> dict[str, list[dict[str, float]]]:
    """Carry a case out in orders by turns, in one session: the seconds of processors and on the clock of each, round
    after round, and how many changes came.
    """
    from minidsms.spark import running
    from minidsms.spark.session import session

    spark = session("local[2]", {"spark.sql.shuffle.partitions": "8", "spark.driver.memory": "3g"})
    java = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    rows = sum(file.statistics.rows for file in find(folder, "Trip").files() if file.statistics is not None)
    kept_order = mock.patch.object(running, "order_joins", lambda root, *_: root)  # nothing is sampled then
    found: dict[str, list[dict[str, float]]] = {order: [] for order in orders}
    for turn in range(rounds):
        for order in orders if turn % 2 else orders[::-1]:
            text = query_of(case, independent(case, rows) if order == "independent" else None)
            cpu, here, clock = cpu_s(java), time.process_time(), time.perf_counter()
            with contextlib.nullcontext() if order == "samples" else kept_order:
                changes = running.prepare(text, folder, spark=spark, by="frames").frame().count()
            seconds = time.perf_counter() - clock
            spent = cpu_s(java) - cpu + time.process_time() - here
            found[order].append({"cpu_s": spent, "seconds": seconds, "changes": changes})
    return found


@dataclass
class Found:
    """Of a case: processor seconds by order, of each round or session, and how many changes it answers."""

    changes: float
    first: dict[str, list[float]]
    later: dict[str, list[float]]


def report(cases: Mapping[str, Found], rows: int) -> None:
    """Write the page and the picture."""
    lines = [
        "# The order of joins on Spark",
        "",
        f"`python -m experiments.spark_joins --rows {rows}`: {rows:,} trips, a third as many sales and fines.",
        "Processor seconds, planning and samples included, in sessions of `local[2]`. Adaptive execution is on in all:",
        "as written is what it does alone. Where independent estimates give that order too, both are one run.",
        "",
    ]
    titles = {
        "later": "Later queries of a session, the orders by turns: medians of "
        f"{ROUNDS} rounds after {WARM}; of the ratios inside a round median, least and greatest.",
        "first": "The first query of a session, which loads and compiles Java's classes: medians of "
        f"{FIRSTS} sessions each.",
    }
    for which, title in titles.items():
        lines += [title, "", "| | changes | " + " | ".join(ORDERS) + " | written / samples | independent / samples |"]
        lines.append("|---|---:|" + "---:|" * (len(ORDERS) + 2))
        for case, found in cases.items():
            of = getattr(found, which)
            figures = [f"{found.changes:,.0f}", *(f"{statistics.median(of[order]):.2f}" for order in ORDERS)]
            for order in ORDERS[:2]:
                ratios = [a / b for a, b in zip(of[order], of["samples"])]
                figures.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
            lines.append(f"| {case} | " + " | ".join(figures) + " |")
        lines.append("")
    (RESULTS / "spark_joins.md").write_text("\n".join([*lines, "![](spark_joins.png)", ""]), encoding="utf-8")
    figure, axes = pyplot().subplots(1, 2, figsize=(11, 4), sharey=True)
    places = np.arange(len(cases))
    for axis, which in zip(axes, titles):
        for k, order in enumerate(ORDERS):
            medians = [statistics.median(getattr(found, which)[order]) for found in cases.values()]
            axis.barh(places + 0.27 * (1 - k), medians, 0.25, label=order)
        axis.set_yticks(places, list(cases))
        axis.set_xlabel("processor seconds")
        axis.set_title({"later": "later queries of a session", "first": "the first query of a session"}[which])
    axes[0].legend(title="order of joins")
    save(figure, RESULTS / "spark_joins.png", dpi=110)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment; every session is a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m experiments.spark_joins", description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000, help="trips")
    parser.add_argument("--case", choices=list(CASES), action="append", help="may be repeated (default: all)")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one is not None:
        folder, case, rounds, *orders = options.one
        print(json.dumps(measure(folder, case, orders, int(rounds))))
        return
    cases: dict[str, Found] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_archives(folder, options.rows)

        def session(case: str, rounds: int, *orders: str) -> dict[str, list[dict[str, float]]]:
            command = [sys.executable, "-m", "experiments.spark_joins", "--one", folder, case, f"{rounds}", *orders]
            told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found: dict[str, list[dict[str, float]]] = json.loads(told.splitlines()[-1])
            return found

        for case in options.case or CASES:
            is_written = independent(case, options.rows) == CASES[case][0]
            orders = [order for order in ORDERS if not (order == "independent" and is_written)]
            runs = [session(case, WARM + ROUNDS, *orders)]
            runs += [session(case, 1, order) for _ in range(FIRSTS) for order in orders]
            (changes,) = {one["changes"] for run in runs for of in run.values() for one in of}  # all give the same
            assert changes, "where nothing is answered, answers that agree prove nothing"
            later = {order: [one["cpu_s"] for one in of[WARM:]] for order, of in runs[0].items()}
            first = {order: [run[order][0]["cpu_s"] for run in runs[1:] if order in run] for order in orders}
            for found in (first, later):
                found.setdefault("independent", found["as written"])
            cases[case] = Found(changes, first, later)
            print(case, cases[case], flush=True)
    report(cases, options.rows)


if __name__ == "__main__":
    main()
