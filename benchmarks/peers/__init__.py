"""Other stream engines on the same queries, where they are installed; each in a process of its own.

They are compared by rate only: their windows and emissions mean something else (no retraction, output per tuple or per
commit), which is why no checksum is demanded of them. Each module here is run by the interpreter that has its engine,
reads ts, auction and price from the .npy files of the folder given to it, and prints how many elements it read and in
how many seconds. The seconds hold the start of the peer's dataflow (Pathway: about a second or more), not of its
interpreter; the engine's hold no start. Give many events where that matters.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks import contestants
from benchmarks.cases import CASES

PEERS = ("bytewax", "pathway")
OUTSIDE = {"flink": "flink", "spark": "spark-submit"}
QUERIES = ("filter", "running")


def interpreter(peer: str) -> str | None:
    """A Python that has the peer: $BENCH_PEERS_PYTHON, or this one."""
    for python in (os.environ.get("BENCH_PEERS_PYTHON"), sys.executable):
        if python and subprocess.run([python, "-c", f"import {peer}"], capture_output=True).returncode == 0:
            return python
    return None


def measure(console: Console, events: int = 100_000) -> dict[str, Any]:
    """Elements per second of each peer and of the engine over the same input; says which peers are not here."""
    found: dict[str, Any] = {}
    for name in QUERIES:
        case = next(c for c in CASES if c.name == name)
        feeds = case.feeds(events)
        contestants.engine(case, feeds)
        ours = len(feeds["bid"]) / contestants.engine(case, feeds).seconds
        found[name] = {"minidsms": round(ours)}
        console.print(f"{name}: minidsms {ours / 1e6:.3f} M/s")
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder, "ts.npy"), feeds["bid"].ts)
            for column in ("auction", "price"):
                np.save(Path(folder, f"{column}.npy"), feeds["bid"].array(column))
            for peer in PEERS:
                rate = _rate(peer, name, folder, console)
                if rate is not None:
                    found[name][peer] = round(rate)
                    console.print(f"{name}: {peer} {rate / 1e6:.3f} M/s, minidsms is {ours / rate:.1f} times as fast")
    for engine, command in OUTSIDE.items():
        if shutil.which(command) is None:
            console.print(f"{engine}: skipped, there is no {command} on the path")
        else:
            console.print(f"{engine}: skipped, {command} is here but this version has no program for it")
    return found


def _rate(peer: str, query: str, folder: str, console: Console) -> float | None:
    python = interpreter(peer)
    if python is None:
        console.print(f"{query}: {peer} skipped, it is not installed (set BENCH_PEERS_PYTHON to a Python that has it)")
        return None
    program = Path(__file__).parent / f"{peer}_queries.py"
    try:
        done = subprocess.run([python, str(program), query, folder], capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        console.print(f"{query}: {peer} skipped, it took over five minutes")
        return None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        console.print(f"{query}: {peer} failed: {reason}", markup=False)
        return None
    figures = json.loads(done.stdout.strip().splitlines()[-1])
    return float(figures["elements"] / figures["seconds"])
