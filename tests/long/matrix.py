"""`python -m tests.long.matrix --companies N --seed S`: the equivalence matrix of several queries at once.

Every company, two to five queries of one connection of which many have parts in common, added and dropped at random
instants, runs under every scheduler, batch size, bound of queues, and with sharing on, off and switched at random
instants; each answer is compared with the definition's. The first difference is shown and ends the run with exit
status 1.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from minidsms.cql.errors import CqlError
from minidsms.testing.compare import difference_together, run_definition
from minidsms.testing.generators import random_company
from tests.long.soak import random_drops

SCHEDULERS = ("round_robin", "fifo", "greedy", "chain")
BATCH_SIZES = (1, 2, 7, 1024)
QUEUE_SIZES = (1, 3, 1_000_000)
SHARING = ("on", "off", "switched")


def settings(seed: int) -> Iterator[dict[str, Any]]:
    """Every cell of the matrix. seed: of the instants at which sharing is switched."""
    for scheduler, batch, queue, sharing in itertools.product(SCHEDULERS, BATCH_SIZES, QUEUE_SIZES, SHARING):
        cell: dict[str, Any] = {"scheduler": scheduler, "batch_size": batch, "queue_size": queue}
        if sharing == "switched":
            yield {**cell, "sharing": "off" if seed % 2 else "on", "switch_seed": seed}
        else:
            yield {**cell, "sharing": sharing}


def check_company(seed: int, size: int, cells: Sequence[dict[str, Any]] | None = None) -> int:
    """Compare a company in all cells of the matrix, or in some; how many were compared, 0 where a query was refused.

    Raises AssertionError at the first difference.
    """
    cases = random_company(seed, size=size)
    dropped = {n: max(at, cases[n].registered + 1) for n, at in random_drops(cases, seed).items()}
    try:
        expected = [run_definition(case) for case in cases]
    except CqlError:
        return 0
    compared = 0
    for cell in settings(seed) if cells is None else cells:
        difference = difference_together(cases, dropped, expected, **cell)
        assert not difference, f"seed {seed}: {difference}"
        compared += 1
    return compared


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the matrix; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.matrix", description=__doc__)
    parser.add_argument("--companies", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="the first company's seed; the others follow")
    parser.add_argument("--cells", type=int, default=144, help="how many cells of the matrix, drawn for each company")
    parser.add_argument("--size", type=int, default=14, help="about how many elements a stream gets")
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    compared = 0
    for i in range(options.companies):
        try:
            seed = options.seed + i
            cells = list(settings(seed))
            compared += check_company(seed, options.size, Random(seed).sample(cells, min(options.cells, len(cells))))
        except AssertionError as difference:
            print(f"\n{difference}", flush=True)
            return 1
        seconds = time.perf_counter() - started
        sys.stderr.write(f"\r{i + 1} companies, {compared} runs agreed, {compared / seconds:.0f} runs/s ")
        sys.stderr.flush()
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
