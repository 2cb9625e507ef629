"""`python -m minidsms.testing.soak --cases N --seed S`: generated cases, engine against definition, until one differs.

Each case runs under one of several batch sizes and splits of its pushes. The first difference is shrunken, shown and
ends the run with exit status 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from minidsms.cql.errors import CqlError, Error
from minidsms.testing.compare import check, run_definition
from minidsms.testing.generators import Case, random_case
from minidsms.testing.shrink import shrink

SETTINGS: tuple[dict[str, Any], ...] = (
    {"batch_size": 1, "rows_per_push": 1},
    {"batch_size": 2},
    {"batch_size": 7, "rows_per_push": 3},
    {"batch_size": 1024, "fetch_each": False},
)
"""Batch sizes, with how rows are grouped into pushes and how often answers are fetched."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soak; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m minidsms.testing.soak", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first case's seed; the others follow")
    parser.add_argument("--size", type=int, default=14, help="about how many elements a stream gets")
    parser.add_argument("--all-settings", action="store_true", help="every setting on every case, not one in turn")
    parser.add_argument("--keep-going", action="store_true", help="count differences instead of stopping")
    parser.add_argument("--refusals", action="store_true", help="list why queries were refused")
    options = parser.parse_args(arguments)
    outcomes: Counter[str] = Counter()
    started = time.perf_counter()
    for i in range(options.cases):
        seed = options.seed + i
        case = random_case(seed, size=options.size)
        chosen = SETTINGS if options.all_settings else (SETTINGS[i % len(SETTINGS)],)
        for settings in chosen:
            outcome = _outcome(case, settings)
            outcomes[outcome.split("\n")[0] if outcome.startswith("refused") else outcome[:6]] += 1
            if outcome.startswith("differs"):
                print(f"\nseed {seed}, {settings}", flush=True)
                print(_reproduction(case, settings), flush=True)
                if not options.keep_going:
                    return 1
        if i % 20 == 19 or i == options.cases - 1:
            _progress(i + 1, outcomes, time.perf_counter() - started)
    print()
    if options.refusals:
        for reason, n in outcomes.most_common():
            print(f"{n:6d}  {reason}")
    return 1 if outcomes["differ"] else 0


def _outcome(case: Case, settings: dict[str, Any]) -> str:
    """ "agreed", "refused: ..", or "differs: .." with the story."""
    try:
        return check(case, **settings)
    except AssertionError as difference:
        return f"differs: {difference}"
    except Error as error:
        return f"differs: {type(error).__name__}: {error}\n{case}"
    except Exception as error:  # any other exception out of the engine is a finding too
        return f"differs: raised {type(error).__name__}: {error}\n{case}"


def _reproduction(case: Case, settings: dict[str, Any]) -> str:
    """The story of a smaller case that differs in the same way."""
    kind = _kind(_outcome(case, settings))

    def still_fails(candidate: Case) -> bool:
        try:
            run_definition(candidate)
        except (CqlError, ValueError):  # a deletion without its insertion is no case
            return False
        return _kind(_outcome(candidate, settings)) == kind

    return _outcome(shrink(case, still_fails), settings)


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
