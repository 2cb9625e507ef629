"""Plans found in processes of their own: those with kept kernels, those that compile, and those with the compiler
loaded find the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.streamon.found_plans import PROGRAMS

TRIES = 3
"""What filters cost is measured: on a machine where more wants to run than can, once in a while not well."""
ROOT = Path(__file__).parent.parent.parent


def found(name: str, *words: str, kept_in: Path | None = None) -> list[str]:
    """The plans that a new process finds.  kept_in: where its kernels are, if not where all are."""
    environment = dict(os.environ) if kept_in is None else {**os.environ, "NUMBA_CACHE_DIR": str(kept_in)}
    command = [sys.executable, "-m", "tests.streamon.found_plans", name, *words]
    run = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


SHOWN = {"filters", "trees"}
"""One that measures times, and one that counts, as the others do."""


@pytest.mark.parametrize("name", [n if n in SHOWN else pytest.param(n, marks=pytest.mark.long) for n in PROGRAMS])
def test_plans_are_the_same_whether_the_compiler_is_loaded_or_not(name: str) -> None:
    for _ in range(TRIES):
        plans = found(name)
        assert plans and not any("as written" in plan for plan in plans)
        if plans == found(name, "compiler"):
            return
    pytest.fail(f"{TRIES} times others than {plans} with the compiler")


def test_the_first_run_on_a_machine_orders_filters_as_the_second(tmp_path: Path) -> None:
    best = ["filter ordering: F3, F2, F1", "within 50,000: True"]
    for n in range(TRIES):
        kept_in = tmp_path / str(n)
        if found("filters", kept_in=kept_in) == found("filters", kept_in=kept_in) == best:
            return
    pytest.fail(f"{TRIES} times not {best}")


@pytest.mark.long
@pytest.mark.parametrize("name", ["orders", "caches", "trees", "constraints"])
def test_the_first_run_on_a_machine_finds_what_the_second_does(name: str, tmp_path: Path) -> None:
    assert found(name, kept_in=tmp_path) == found(name, kept_in=tmp_path)
