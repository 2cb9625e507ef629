"""`python -m benchmarks.rules`: thousands of rules over one stream, beside others' ways to run them.

Conjunctions of three ranges over six columns of numbers from 0 to 999, in pushes of 1,000 rows: processor time of a
push, the median of many, the contestants in turn. The rules of 10,000 are so narrow that they get as many answers as
1,000. Rivals are given the same rows and rules and count their answers: a loop in Python, numpy rule by rule, DuckDB
with a query of 200 CASEs, once, and with a join of ranges, and Bytewax if it is installed. `--against FOLDER` runs the
same scenes in another checkout, in processes of its own, in turn with this one. Writes results/rules.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

ROWS = 1000
RESULTS = Path(__file__).parent / "results"
Rule = list[tuple[int, int, int]]
"""(column, least, from which on no more)."""


def rules(n: int, width: int, seed: int = 0) -> list[Rule]:
    """n conjunctions of three ranges of so many values."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        lows = rng.integers(0, 1000 - width, 3).tolist()
        made.append([(int(c), low, low + width) for c, low in zip(rng.choice(6, 3, replace=False), lows)])
    return made


def batches(n: int, seed: int = 1) -> list[dict[str, np.ndarray]]:
    """Pushes: a key and six columns."""
    rng = np.random.default_rng(seed)
    names = [f"a{c}" for c in range(6)]
    return [{"k": rng.integers(0, 10, ROWS), **{a: rng.integers(0, 1000, ROWS) for a in names}} for _ in range(n)]


def ours(conditions: Sequence[str], fetches: bool = False) -> tuple[Callable[[dict[str, np.ndarray]], int], float]:
    """(a function that pushes and gives the answers so far, seconds to register)."""
    import minidsms

    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER, " + ", ".join(f"a{c} INTEGER" for c in range(6)) + ")")
    began = time.process_time()
    queries = [db.query(f"SELECT ISTREAM(k, a0) FROM S WHERE {condition}") for condition in conditions]
    registered = time.process_time() - began
    at = iter(range(10**9))

    def push(batch: dict[str, np.ndarray]) -> int:
        db.push("S", batch, ts=np.full(ROWS, next(at)))
        if fetches:
            return sum(len(query.fetch()) for query in queries)
        return 0

    push.total = lambda: sum(query.results for query in queries)  # type: ignore[attr-defined]
    return push, registered


def condition(rule: Rule) -> str:
    """As CQL and SQL."""
    return " AND ".join(f"a{c} >= {low} AND a{c} < {high}" for c, low, high in rule)


def python_loop(asked: Sequence[Rule]) -> Callable[[dict[str, np.ndarray]], int]:
    """Row by row, rule by rule, as an application would write it."""

    def push(batch: dict[str, np.ndarray]) -> int:
        found = 0
        rows = list(zip(*[batch[f"a{c}"].tolist() for c in range(6)]))
        for row in rows:
            for rule in asked:
                for column, low, high in rule:
                    if not low <= row[column] < high:
                        break
                else:
                    found += 1
        return found

    return push


def numpy_rules(asked: Sequence[Rule]) -> Callable[[dict[str, np.ndarray]], int]:
    """Rule by rule over the columns."""

    def push(batch: dict[str, np.ndarray]) -> int:
        found = 0
        for rule in asked:
            mask = np.ones(ROWS, np.bool_)
            for column, low, high in rule:
                values = batch[f"a{column}"]
                mask &= (values >= low) & (values < high)
            found += len(np.flatnonzero(mask))
        return found

    return push


def duckdb_cases(asked: Sequence[Rule]) -> Callable[[dict[str, np.ndarray]], int]:
    """One query with a CASE per rule."""
    import duckdb
    import pyarrow as pa

    db = duckdb.connect(config={"threads": 1})
    parts = ", ".join(f"CASE WHEN {condition(rule)} THEN 1 ELSE 0 END AS r{i}" for i, rule in enumerate(asked))

    def push(batch: dict[str, np.ndarray]) -> int:
        rows_in = pa.table(batch)  # noqa: F841 (DuckDB finds it by name)
        found = db.execute(f"SELECT {parts} FROM rows_in").fetchnumpy()
        return int(sum(int(column.sum()) for column in found.values()))

    return push


def duckdb_join(asked: Sequence[Rule]) -> Callable[[dict[str, np.ndarray]], int]:
    """A join with a table of ranges, the whole domain where a rule asks nothing."""
    import duckdb
    import pyarrow as pa

    db = duckdb.connect(config={"threads": 1})
    bounds = [{c: (low, high) for c, low, high in rule} for rule in asked]
    columns = {f"{end}{c}": [b.get(c, (0, 1000))[e] for b in bounds] for c in range(6) for e, end in enumerate("lh")}
    db.register("rules_in", pa.table({"id": list(range(len(asked))), **columns}))
    db.execute("CREATE TABLE rules AS SELECT * FROM rules_in")
    on = " AND ".join(f"a{c} >= l{c} AND a{c} < h{c}" for c in range(6))

    def push(batch: dict[str, np.ndarray]) -> int:
        rows_in = pa.table(batch)  # noqa: F841
        return len(db.execute(f"SELECT id, k, a0 FROM rows_in JOIN rules ON {on}").fetchnumpy()["id"])

    return push


def bytewax_filters(asked: Sequence[Rule]) -> Callable[[dict[str, np.ndarray]], int]:
    """A dataflow with a filter per rule, run over the rows of a push. ImportError where it is not installed."""
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, TestingSource, run_main

    def matches(rule: Rule) -> Callable[[tuple[int, ...]], bool]:
        return lambda row: all(low <= row[column] < high for column, low, high in rule)

    def push(batch: dict[str, np.ndarray]) -> int:
        rows = list(zip(*[batch[f"a{c}"].tolist() for c in range(6)]))
        out: list[object] = []
        flow = Dataflow("rules")
        stream = op.input("in", flow, TestingSource(rows, batch_size=ROWS))
        kept = [op.filter(f"f{i}", stream, matches(rule)) for i, rule in enumerate(asked)]
        op.output("out", op.merge("all", *kept), TestingSink(out))
        run_main(flow)
        return len(out)

    return push


def timed(contestants: dict[str, Callable[[dict[str, np.ndarray]], int]], pushes: int) -> dict[str, float]:
    """Median ms of processor time a push, the contestants in turn."""
    spent: dict[str, list[float]] = {name: [] for name in contestants}
    for number, batch in enumerate(batches(pushes)):
        for name, push in contestants.items():
            began = time.process_time()
            push(batch)
            if number >= min(5, pushes - 1):
                spent[name].append(1000 * (time.process_time() - began))
    return {name: statistics.median(times) for name, times in spent.items()}


def own_scenes(pushes: int) -> dict[str, float]:
    """Of the checkout that this process runs."""
    found: dict[str, float] = {}
    contestants = {}
    scenes = {"1": (1, 200), "7": (7, 200), "100": (100, 200), "1000": (1000, 200), "10000 equal answers": (10_000, 93)}
    if os.environ.get("RULES_MOST"):
        scenes = {name: scene for name, scene in scenes.items() if scene[0] <= int(os.environ["RULES_MOST"])}
    for name, (n, width) in scenes.items():
        contestants[name], found[f"register {name}, s"] = ours([condition(rule) for rule in rules(n, width)])
    contestants["v > c"], _ = ours([f"a0 > {-i}" if i % 2 else f"a0 > {1000 + i}" for i in range(1000)])
    for name, ms in timed(contestants, pushes).items():
        found[f"{name}, ms"] = ms
        found[f"{name}, answers a push"] = contestants[name].total() / pushes  # type: ignore[attr-defined]
    found["MB at most"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def rivals(pushes: int) -> dict[str, float]:
    """1,000 rules; ours with all answers fetched as tuples, too."""
    asked = rules(1000, 200)
    texts = [condition(rule) for rule in asked]
    contestants = {
        "minidsms": ours(texts)[0],
        "minidsms, fetched": ours(texts, fetches=True)[0],
        "numpy, rule by rule": numpy_rules(asked),
        "Python loop": python_loop(asked),
        "DuckDB, join with ranges": duckdb_join(asked),
    }
    try:
        import bytewax  # noqa: F401

        contestants["Bytewax, 1,000 filters"] = bytewax_filters(asked)
    except ImportError:
        print("Bytewax is not installed")
    batch = batches(1)[0]
    counts = {name: push(batch) for name, push in contestants.items() if name != "minidsms"}
    assert len(set(counts.values())) == 1, counts
    found = timed(contestants, pushes)
    # A query of so many CASEs takes DuckDB so long to plan that it is asked a fifth of them, and once.
    cases = duckdb_cases(asked[: len(asked) // 5])
    began = time.process_time()
    cases(batch)
    found["DuckDB, 200 CASEs"] = 1000 * (time.process_time() - began)
    return found


def many(n: int) -> dict[str, float]:
    """Seconds to register, and MB, with n rules of a table."""
    import minidsms

    db = minidsms.connect()
    db.execute("CREATE STREAM S (k INTEGER, a0 INTEGER, a1 INTEGER, a2 INTEGER)")
    names = [f"{end}{c}" for c in range(3) for end in "lh"]
    db.execute("CREATE RELATION R (id INTEGER, " + ", ".join(f"{x} INTEGER" for x in names) + ") KEY (id)")
    low = np.random.default_rng(0).integers(0, 957, (3, n))
    db.push("R", {"id": np.arange(n), **{x: low[int(x[1])] + (43 if x[0] == "h" else 0) for x in names}})
    where = " AND ".join(f"a{c} >= $l{c} AND a{c} < $h{c}" for c in range(3))
    began = time.process_time()
    db.query_each(f"SELECT ISTREAM(k, a0) FROM S WHERE {where}", "R")
    registered = time.process_time() - began
    contestants = {"push": lambda batch: db.push("S", {x: batch[x] for x in ("k", "a0", "a1", "a2")}, ts=0)}
    ms = timed(contestants, 8)["push"]
    return {"register, s": registered, "push, ms": ms, "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


FAMILIES = {
    "COUNT(*)": (1000, "SELECT COUNT(*) FROM S [RANGE 60] WHERE k = {0}"),
    "ISTREAM(COUNT(*))": (1000, "SELECT ISTREAM(COUNT(*)) FROM S [RANGE 60] WHERE k = {0}"),
    "join": (
        300,
        "SELECT ISTREAM(S.v, R.w) FROM S [RANGE 10], R [RANGE 10] WHERE S.k = R.k AND S.v >= {0} AND S.v < {1}",
    ),
}
"""Queries that differ in constants: how many, and their text."""


def families(pushes: int) -> dict[str, float]:
    """ms of a push and its answers, and MB of state, as one plan and each with its own (`screening = off`)."""
    import minidsms

    found: dict[str, float] = {}
    for name, (n, text) in FAMILIES.items():
        for how, options in (("one plan", {}), ("each its own", {"screening": "off"})):
            db = minidsms.connect(**options)
            db.execute("CREATE STREAM S (k INTEGER, v INTEGER); CREATE STREAM R (k INTEGER, w INTEGER)")
            queries = [db.query(text.format(i, i + 10)) for i in range(n)]
            rng = np.random.default_rng(0)
            times = []
            for at in range(pushes):
                rows = [rng.integers(0, 1000, ROWS) for _ in range(4)]
                began = time.process_time()
                if name == "join":
                    db.push("R", {"k": rows[2][:100], "w": rows[3][:100]}, ts=np.full(100, at))
                db.push("S", {"k": rows[0], "v": rows[1]}, ts=np.full(ROWS, at))
                db.advance(at)
                times.append(1000 * (time.process_time() - began))
                for query in queries:
                    query.fetch()
            found[f"{n:,} of {name}, {how}, ms"] = statistics.median(times[len(times) // 5 :])
            found[f"{n:,} of {name}, {how}, MB"] = db.memory.nbytes / 1e6
    return found


def _elsewhere(folder: str, pushes: int) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": folder, "RULES_MOST": "1000"}
    command = [sys.executable, __file__, "--own", "--pushes", str(pushes)]
    done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rules", description=__doc__)
    parser.add_argument("--pushes", type=int, default=25)
    parser.add_argument("--against", help="the folder of another checkout")
    parser.add_argument("--own", action="store_true", help="own scenes only, as a line of JSON")
    parser.add_argument("--many", type=int, default=100_000, help="rules of the table; 0: leave it out")
    options = parser.parse_args()
    if options.own:
        print(json.dumps(own_scenes(options.pushes)))
        return
    root = str(Path(__file__).parents[1])
    found: dict[str, object] = {}
    if options.against:
        both = [(_elsewhere(options.against, options.pushes), _elsewhere(root, options.pushes)) for _ in range(3)]
        names = [name for name in both[0][0] if name in both[0][1]]
        found["against"] = {
            name: {
                "before": statistics.median(a[name] for a, _ in both),
                "now": statistics.median(b[name] for _, b in both),
            }
            for name in names
        }
    found["own"] = own_scenes(options.pushes)
    found["rivals, ms"] = rivals(max(3, options.pushes // 5))
    found["families"] = families(max(5, options.pushes // 2))
    if options.many:
        found[f"{options.many} rules of a table"] = many(options.many)
    text = json.dumps(found, indent=1)
    (RESULTS / "rules.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
