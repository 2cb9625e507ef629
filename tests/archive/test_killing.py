"""A process that is killed while it archives loses nothing that a flush has acknowledged, and leaves no broken file."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyarrow import parquet

from minidsms.archive.format import find
from tests.archive.reading import rows
from tests.long import spark_kills
from tests.seeds import seeds

_VICTIM = """
import random, sys
import minidsms
folder, seed = sys.argv[1], int(sys.argv[2])
rng = random.Random(seed)
db = minidsms.connect(archive_rows=300, archive_interval="5 MILLISECONDS")
db.execute("CREATE STREAM S (v INTEGER, t TEXT) SLACK 50; CREATE STREAM T (v INTEGER)")
db.archive("S", folder, partition=200)
db.archive("T", folder, partition=1000)
v = 0
while True:
    for _ in range(rng.randrange(1, 6)):
        n = rng.randrange(1, 150)
        rows = [(v + i, f"text {v + i}") for i in range(n)]
        db.push("S", rows, ts=[v + i + rng.randrange(40) for i in range(n)])
        db.push("T", (v,), ts=v)
        v += n
    db.flush()
    print(v, flush=True)
"""


def _kill_one(folder: Path, seed: int) -> None:
    rng = random.Random(seed)
    command = [sys.executable, "-c", _VICTIM, str(folder), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = 0
        for _ in range(rng.randrange(1, 12)):
            acknowledged = int(process.stdout.readline())
        time.sleep(rng.random() * 0.02)
        process.kill()
        # What it could still say before the end counts too.
        said = process.stdout.read().split("\n")[:-1]
    acknowledged = int(said[-1]) if said else acknowledged
    values = sorted(row["v"] for row in rows(folder, "S"))
    assert values[:acknowledged] == list(range(acknowledged))
    assert len(set(values)) == len(values)
    assert all(row["t"] == f"text {row['v']}" for row in rows(folder, "S"))
    for name in "ST":
        for file in find(str(folder), name).files():
            parquet.ParquetFile(file.path).read()


@pytest.mark.parametrize("seed", seeds(3))
def test_killing_the_process_loses_nothing_acknowledged(tmp_path: Path, seed: int) -> None:
    _kill_one(tmp_path, seed)


@pytest.mark.long
def test_killing_it_a_hundred_times_loses_nothing_acknowledged(tmp_path: Path) -> None:
    for seed in range(100):
        _kill_one(tmp_path / str(seed), seed)


@pytest.mark.long
def test_killing_writers_and_compactions_loses_and_repeats_nothing() -> None:
    assert spark_kills.main(["--kills", "10", "--kind", "compact"]) == 0
