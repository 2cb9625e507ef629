"""Joins whose plans change at every k-th element, against the definition: `python -m tests.long.switched_joins`.

Generated n-way joins (windows of every kind, relations and derived relations, with deletions, NULLs, texts and theta
conditions) run while their orders, trees, caches, routes, indexed patterns and bits are switched to random legal ones
at every first, second, third or seventh element, by calls of one, two, seven and all rows, under every scheduler. A
*switch* is one that was taken: the plan log has it. An answer that differs is told with all that it takes to see it
again, and the exit status is 1.

Invariant: what runs depends on the seed alone.  docs/semantics T5; Babu 2005, chapter 5.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any
from unittest import mock

from minidsms.cql.errors import CqlError
from minidsms.synopses.join_caches import PAGE_BYTES, JoinCaches
from minidsms.testing.compare import Answer, difference_of, run_definition, run_together
from minidsms.testing.generators import Case
from tests.long.join_cases import random_join_case
from tests.long.mixed_joins import random_join

KINDS: dict[str, tuple[dict[str, Any], ...]] = {
    "orders": ({"join_plan": "mjoin"},),
    "trees": ({"join_plan": "auto"}, {"join_plan": "xjoin"}),
    "caches": tuple(
        {"join_plan": "mjoin", "caching": caching, "cache_memory": memory}
        for caching in ("prefix", "global")
        for memory in ("none", 4 * PAGE_BYTES, PAGE_BYTES, 1)
    ),
    "caches of one bucket": ({"join_plan": "mjoin", "caching": "prefix"}, {"join_plan": "mjoin", "caching": "global"}),
    "routes": ({"join_plan": "mjoin", "caching": "off"},),
    "patterns": (
        {"join_plan": "mjoin", "caching": "off"},
        {"join_plan": "auto"},
        {"join_plan": "mjoin", "caching": "global"},
        {"join_plan": "mjoin", "join_index": "patterns"},
    ),
    "bits": tuple({"join_index": "bit_address", "index_migration": rows} for rows in ("all", "nothing", "partial")),
}
"""What is switched, and the settings under which it is."""

TECHNIQUES = {"patterns": "join index", "bits": "join index", "routes": "join routing"}
"""Of the kinds that count the switches of one technique alone."""

EVERY = (1, 2, 3, 7)
BATCHES = (1, 2, 7, 65_536)
EMPTY = 10
"""One in so many of the cases with an empty answer is run."""
SCHEDULERS = ("round_robin", "fifo", "greedy", "chain")


@dataclass
class Count:
    """Of one kind: cases run, those with an answer that is not empty, and switches taken."""

    cases: int = 0
    answered: int = 0
    switches: int = 0


@dataclass
class Tally:
    """What a run has done. differences: the stories of answers that were not those by definition."""

    seed: int
    next_seed: int = 0
    counts: dict[str, Count] = field(default_factory=lambda: {kind: Count() for kind in KINDS})
    differences: list[str] = field(default_factory=list)

    @property
    def switches(self) -> int:
        """All that were taken."""
        return sum(each.switches for each in self.counts.values())


def switch_joins(switches: int, seed: int, size: int = 14) -> Iterator[Tally]:
    """Run cases from a seed on until so many switches have been taken; gives the tally after each case."""
    tally = Tally(seed)
    for at in count(seed):
        case = random_case(at, size)
        expected = run_definition(case)
        tally.next_seed = at + 1
        if not expected.changes and at % EMPTY:
            continue
        for kind, settings in KINDS.items():
            rng = Random(f"{at} {kind}")
            if kind == "patterns" and at % 2:  # only equalities that make a cycle have any
                case = random_join_case(at, size=size, graphs=("cycle", "complete"))
                expected = run_definition(case)
            _run(tally, case, expected, kind, dict(rng.choice(settings)), rng)
        yield tally
        if tally.switches >= switches:
            return


def random_case(seed: int, size: int) -> Case:
    """Windows alone, or relations and derived relations beside them, by turns."""
    return random_join_case(seed, size=size) if seed % 2 else random_join(seed, 5, size)


def _run(tally: Tally, case: Case, expected: Answer, kind: str, settings: dict[str, Any], rng: Random) -> None:
    settings |= {
        "forced_every": rng.choice(EVERY), "batch_size": rng.choice(BATCHES), "scheduler": rng.choice(SCHEDULERS),
        "rows_per_push": rng.choice((1, 2, None)),
    }  # fmt: skip
    taken = 0

    def note(db: Any, step: int, queries: Sequence[Any]) -> None:
        nonlocal taken
        decisions = [decision for query in queries for decision in query.decisions()]
        taken = sum(TECHNIQUES.get(kind, decision.technique) == decision.technique for decision in decisions)

    with _one_bucket() if "one bucket" in kind else mock.patch.dict({}):
        try:
            (actual,) = run_together([case], {}, before=note, **settings)
        except CqlError as error:  # an XJoin of inputs that nothing links
            assert "equalities that link all inputs" in error.reason, error.reason
            return
    counts = tally.counts[kind]
    counts.cases += 1
    counts.answered += bool(expected.changes)
    counts.switches += taken
    difference = difference_of(expected, actual)
    if difference:
        tally.differences.append(f"{difference}\n\nseed {tally.next_seed - 1}, {kind}, {settings}\n{case}")


@contextmanager
def _one_bucket() -> Iterator[None]:
    """Every cache that is made meanwhile has one bucket, so that each key drives out the last."""
    with mock.patch("minidsms.joins.by_caches.JoinCaches", lambda budget, _: JoinCaches(budget, 1)):
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, tell what was done by kind, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.switched_joins", description=__doc__)
    parser.add_argument("--switches", type=int, default=50_000, help="to be taken (default: 50,000)")
    parser.add_argument("--seed", type=int, default=0, help="of the first case (default: 0)")
    parser.add_argument("--size", type=int, default=14, help="about how many rows a stream gets (default: 14)")
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    tally = Tally(options.seed)
    for tally in switch_joins(options.switches, options.seed, options.size):
        sys.stderr.write(f"\r{tally.switches:,} switches, {len(tally.differences)} differences ")
        sys.stderr.flush()
        if tally.differences:
            break
    print(f"\nseeds {tally.seed} to {tally.next_seed - 1}, {time.perf_counter() - started:.0f} s")
    print(f"{'switched':22}{'cases':>8}{'answered':>10}{'switches':>10}")
    for kind, counts in tally.counts.items():
        print(f"{kind:22}{counts.cases:8,}{counts.answered:10,}{counts.switches:10,}")
    for story in tally.differences:
        print(f"\n{story}")
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
