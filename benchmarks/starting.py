"""From the start of a process to its first answer: with compiled kernels kept, and without.

Beside the clock stands processor time, which other processes disturb less; the end of a process comes after its answer
and is counted apart.
"""

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
_TELL = "\nimport time\nprint(time.process_time(), flush=True)\n"


def measure(rounds: int = 3) -> dict[str, float]:
    """Least seconds of some rounds; cold once. `nothing` is numpy alone, `numba` its compiler.

    .. on the processor: of this process, without the one that compiles beside it.  .. to the end: of the process.
    """
    programs = {
        "nothing": "import numpy",
        "numba": "import numba",
        "import": "import minidsms\nminidsms.connect",
        "warm": FIRST_ANSWER,
    }
    _run(FIRST_ANSWER, {})
    found: dict[str, float] = {}
    for name, text in programs.items():
        runs = [_run(text, {}) for _ in range(rounds)]
        found[name], found[f"{name}, on the processor"], found[f"{name}, to the end"] = (min(of) for of in zip(*runs))
    with tempfile.TemporaryDirectory() as fresh:
        alone = {"NUMBA_CACHE_DIR": fresh, "MINIDSMS_COMPILE_AHEAD": "0"}
        found["cold in one process"], found["cold in one process, on the processor"], _ = _run(FIRST_ANSWER, alone)
    # What is compiled beside the first run is finished behind it, and may be kept while the folder goes.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as fresh:
        found["cold"], found["cold, on the processor"], _ = _run(FIRST_ANSWER, {"NUMBA_CACHE_DIR": fresh})
    return {name: round(seconds, 3) for name, seconds in found.items()}


def _run(program: str, environment: dict[str, str]) -> tuple[float, float, float]:
    """Seconds until the program has done its work, of the processor's time too, and until its process has ended."""
    start = time.perf_counter()
    command = [sys.executable, "-c", program + _TELL]
    with subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        on_processor = process.stdout.readline()
        answered = time.perf_counter() - start
        process.wait()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return answered, float(on_processor), time.perf_counter() - start
