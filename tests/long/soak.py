"""`python -m tests.long.soak --cases N --seed S`: generated cases, engine against definition, until one differs.

Each case runs under settings of its own; some are several queries in one connection, of which some are dropped. The
first difference is shown as it was found, then shrunken, and ends the run with exit status 1. One that does not come
back is a difference all the same.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from unittest import mock

from minidsms.cql.errors import CqlError
from minidsms.elements import Schema
from minidsms.engine import engine
from minidsms.joins import join
from minidsms.settings import SETTINGS
from minidsms.streamon.pipelined_filters import executor
from minidsms.synopses.stream_store import StreamStore
from minidsms.testing.compare import check, check_together, run_definition
from minidsms.testing.generators import Case, random_case, random_company
from minidsms.testing.grammar import Options
from tests.long.failing_cases import random_failing
from tests.long.shrink import shrink

CHOICES: dict[str, tuple[Any, ...]] = {
    "batch_size": (1, 2, 7, 1024),
    "queue_size": (1, 3, 1_000_000),
    "scheduler": ("round_robin", "fifo", "greedy", "chain"),
    "rows_per_push": (None, 1, 3),
    "fetch_each": (True, False),
    "adaptive": ("on", "off"),
    "forced_every": (None, 1, 3),
    "filter_ordering": ("a_greedy", "sweep", "independent", "local_swaps", "optimal", "static", "sbr", "ticket"),
    "change_detection": ("auto", "cusum", "beta_cusum", "adwin", "martingale", "meta", "change_finder", "off"),
    "detector_block": (20, 1),
    "plan_logging": ("off", "on"),
    "routing": ("auto", "content", "off"),
    "routing_sample": (150, 10),
    "screening": ("auto", "off", "column", "written", "macro", "hybrid", "ticket"),
    "rearrange_period": (10_000, 1),
    "cost_model": ("measured", "fixed"),
    "profile_rate": (None, 1.0),
    "profile_window": (None, 1, 5),
    "sharing": ("on", "off"),
    "switch_seed": (None, 1, 2, 3),
    "join_plan": ("mjoin", "mjoin", "auto", "xjoin"),
    "caching": ("auto", "off", "prefix", "global"),
    "cache_memory": (2**26, 4096, 1),
    "cache_interval": (10_000, 100),
    "join_index": ("auto", "hash", "patterns", "bit_address", "bit_address"),
    "index_assessment": ("sria", "csria", "dia", "cdia_random", "cdia"),
    "index_tuning": ("hybrid", "continuous", "periodic", "triggered"),
    "index_window": (20_000, 5),
    "index_migration": ("all", "nothing", "partial"),
    "state_reduction": ("auto", "off", "swj", "k-mon", "k-mon"),
    "k_mon_window": (None, 5),
    "k_mon_chance": (0.01, 1.0),
    "compilation": (*["off"] * 39, "at once"),
    "threads": (1, 1, 2, 3),
}
"""How a case may be run: options of the engine, how rows are grouped into pushes, how often answers are fetched."""

FIRST_NUMBERS = (0, 0, 0, 2**31 - 20, 2**32 - 20)
"""Of a stream's first element: a stream gets more elements than 32 bits number, within hours."""


@contextlib.contextmanager
def numbered_from(first: int) -> Iterator[None]:
    """Let the first element of each stream have this number."""
    begin = StreamStore.__init__

    def begun(self: StreamStore, schema: Schema) -> None:
        begin(self, schema)
        self.start_at(first)

    with mock.patch.object(StreamStore, "__init__", begun):
        yield


@dataclass(frozen=True)
class Set:
    """Before some calls of a feed some of the choices are made anew, several in a row."""

    seed: int

    def __call__(self, db: Any, step: int, queries: list[Any]) -> None:
        rng = Random(f"{self.seed} {step}")
        for name in rng.choices(_SET, k=rng.choice((0, 0, 0, 1, 4))):
            db.set(name, rng.choice(CHOICES[name]))


_SET = [name for name in CHOICES if name in SETTINGS and name != "compilation"]


def random_settings(seed: int) -> dict[str, Any]:
    """One of each choice, and in two cases of five others while the case runs."""
    rng = Random(seed)
    settings = {name: rng.choice(values) for name, values in CHOICES.items()}
    return {**settings, "before": Set(seed)} if rng.random() < 0.4 else settings


@mock.patch.multiple(engine, WORTH_THREADS=1)
@mock.patch.multiple(executor, LEAST_ROWS=1)
@mock.patch.multiple(join, LEAST_ELEMENTS=1, LEAST_ENTERING=1)
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soak, in which threads divide slices of any size; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.soak", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first case's seed; the others follow")
    parser.add_argument("--size", type=int, default=14, help="about how many elements a stream gets")
    parser.add_argument("--settings", type=int, default=1, help="how many settings to run each case under")
    parser.add_argument("--together", type=float, default=0.2, help="share of cases that are several queries at once")
    parser.add_argument("--keep-going", action="store_true", help="count differences instead of stopping")
    parser.add_argument("--refusals", action="store_true", help="list why queries were refused")
    options = parser.parse_args(arguments)
    outcomes: Counter[str] = Counter()
    started = time.perf_counter()
    for i in range(options.cases):
        seed = options.seed + i
        several = Random(seed).random() < options.together
        # One case in four has several filters in every WHERE, so that there is an order to choose; in one of eight
        # much fails.
        shape = Options(filters=3 if seed % 4 == 0 else 0)
        alone = random_failing(seed) if seed % 8 == 7 else random_case(seed, shape, size=options.size)
        cases = random_company(seed, size=options.size) if several else [alone]
        for n in range(options.settings):
            settings = random_settings(seed + n)
            dropped = random_drops(cases, seed)
            first = Random(seed + n).choice(FIRST_NUMBERS)
            with numbered_from(first):
                outcome = _outcome(cases, dropped, settings)
                outcomes[outcome.split("\n")[0] if outcome.startswith("refused") else outcome[:6]] += 1
                if outcome.startswith("differs"):
                    print(f"\nseed {seed}, case {i + 1} of this process, elements from number {first}, {settings}")
                    print(outcome, flush=True)
                    print(f"\n{_reproduction(cases, dropped, settings)}", flush=True)
                    if not options.keep_going:
                        return 1
        if i % 20 == 19 or i == options.cases - 1:
            _progress(i + 1, outcomes, time.perf_counter() - started)
    print()
    if options.refusals:
        for reason, n in outcomes.most_common():
            print(f"{n:6d}  {reason}")
    return 1 if outcomes["differ"] else 0


def random_drops(cases: Sequence[Case], seed: int) -> dict[int, int]:
    """Which of several queries are closed before which call of the feed; never the first one."""
    rng = Random(seed)
    return {n: rng.randrange(len(cases[0].feed)) for n in range(1, len(cases)) if rng.random() < 0.4}


def _outcome(cases: Sequence[Case], dropped: dict[int, int], settings: dict[str, Any]) -> str:
    """ "agreed", "refused: ..", or "differs: .." with the story."""
    case = cases[0]
    dropped = {n: max(at, case.registered + 1) for n, at in dropped.items()}
    try:
        return check(case, **settings) if len(cases) == 1 else check_together(cases, dropped, **settings)
    except AssertionError as difference:
        return f"differs: {str(difference) or traceback.format_exc()}"
    except Exception as error:  # any exception out of the engine is a finding
        stories = "\n".join(map(str, cases))
        return f"differs: raised {type(error).__name__}: {error}\n{traceback.format_exc()}\n{stories}"


def _reproduction(cases: Sequence[Case], dropped: dict[int, int], settings: dict[str, Any]) -> str:
    """The story of a smaller case that differs in the same way; of several queries, one that differs alone."""
    for case in cases:
        story = _outcome([case], {}, settings)
        if story.startswith("differs"):
            break
    else:
        story = story if len(cases) == 1 else _outcome(cases, dropped, settings)
        came_back = "comes back" if story.startswith("differs") else "DOES NOT COME BACK"
        return f"The difference {came_back} when the case runs again: {story}"
    kind = _kind(story)

    def still_fails(candidate: Case) -> bool:
        try:
            run_definition(candidate)
        except (CqlError, ValueError):  # a deletion without its insertion is no case
            return False
        return _kind(_outcome([candidate], {}, settings)) == kind

    smaller = shrink(case, still_fails)
    again = _outcome([smaller], {}, settings)
    if not again.startswith("differs"):
        return f"The difference comes back SOMETIMES: {story}\n\nand once of the smaller\n{smaller}"
    return f"The difference comes back. The smallest case: {again}"


def _kind(outcome: str) -> str:
    """What sort of difference it is: the words before any detail."""
    return " ".join(outcome.split()[:3]) if outcome.startswith("differs: raised") else outcome[:12]


def _progress(done: int, outcomes: Counter[str], seconds: float) -> None:
    refused = sum(n for outcome, n in outcomes.items() if outcome.startswith("refused"))
    sys.stderr.write(
        f"\r{done} cases, {outcomes['agreed']} agreed, {refused} refused, {outcomes['differ']} differ, "
        f"{done / seconds:.1f} cases/s "
    )
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
