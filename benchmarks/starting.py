"""From the start of a process to its first answer: with compiled kernels in the cache, and without."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

GOAL_S = {"import": 0.5, "warm": 0.5, "cold": 15.0}

FIRST_ANSWER = """
import minidsms
db = minidsms.connect()
db.execute("CREATE STREAM S (k INTEGER, v INTEGER); CREATE STREAM T (k INTEGER, w INTEGER)")
q = db.query("SELECT k, COUNT(*), MAX(v) FROM S [RANGE 10] GROUP BY k")
j = db.query("SELECT ISTREAM(v, w) FROM S [RANGE 10], T [RANGE 10] WHERE S.k = T.k")
db.push("S", (1, 2), ts=0)
db.push("T", (1, 3), ts=0)
db.advance(0)
assert len(q.fetch()) == 1 and len(j.fetch()) == 1
"""


def measure(rounds: int = 3) -> dict[str, float]:
    """Least seconds of some rounds; cold once. `nothing` is numpy alone, `numba` its compiler."""
    programs = {
        "nothing": "import numpy",
        "numba": "import numba",
        "import": "import minidsms",
        "warm": FIRST_ANSWER,
    }
    _seconds(FIRST_ANSWER, {})
    found = {name: min(_seconds(text, {}) for _ in range(rounds)) for name, text in programs.items()}
    with tempfile.TemporaryDirectory() as fresh:
        found["cold"] = _seconds(FIRST_ANSWER, {"NUMBA_CACHE_DIR": fresh})
    return {name: round(seconds, 3) for name, seconds in found.items()}


def _seconds(program: str, environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, **environment})
    return time.perf_counter() - start
