"""A durable connection that crashes answers as one that never stopped: random queries on a simulated disk, and
processes that are killed. `make crashes` runs thousands.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

import minidsms
from minidsms.durability.connection import DurableConnection
from tests.long.crash_cases import check
from tests.long.crash_growing import check_growing
from tests.long.crash_kills import check_kills
from tests.long.crash_measured import check_measured
from tests.long.crash_sources import check_sources
from tests.long.crash_topics import ADDRESS, broker
from tests.long.crashes import Crash, Disk, crashing, end_process


def test_answers_after_ten_crashes_are_those_of_a_run_without() -> None:
    crashes, seed = 0, 0
    while crashes < 10:
        crashes += check(seed)
        seed += 1


def test_growing_files_are_read_once_through_rotations_truncations_and_ten_crashes() -> None:
    assert sum(check_growing(seed) for seed in (1, 2, 21, 22)) >= 10


def test_what_was_measured_is_the_same_after_crashes() -> None:
    assert check_measured(3)


def test_files_are_read_once_through_fifteen_crashes() -> None:
    crashes, seed = 0, 0
    while crashes < 15:
        crashes += check_sources(seed)
        seed += 1


def test_a_checkpoint_counts_no_rejected_row_that_is_read_again() -> None:
    assert check_sources(600015)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_answers_after_ten_kills_are_those_of_a_run_without() -> None:
    kills, seed = 0, 1
    while kills < 10:
        kills += check_kills(seed)
        seed += 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_what_limits_refused_or_made_fail_stays_so_through_kills() -> None:
    assert check_kills(10) + check_kills(20)


def test_a_topic_has_every_answer_once_wherever_the_process_ends(tmp_path: Path) -> None:
    """Before and behind each request to the broker, too."""
    crashes = 0
    with broker() as kafka:
        for at in range(1, 64):
            disk = Disk(str(tmp_path), at, Random(at))
            kafka.operation = disk.operation
            with crashing(disk):
                db = minidsms.connect(tmp_path / "db")
                assert isinstance(db, DurableConnection)
                try:
                    db.execute("CREATE STREAM IF NOT EXISTS S (k INTEGER)")
                    db.execute(f"CREATE QUERY IF NOT EXISTS q AS SELECT k FROM S INTO '{ADDRESS}t'")
                    for k in range(db.position("S"), db.position("S") + 2):
                        db.push("S", (k,), ts=k)
                    db.close()
                except Crash:
                    end_process(db)
                    raise
            crashes += disk.is_over
            if at % 2:
                disk.lose()
        kafka.operation = lambda: None
        with minidsms.connect(tmp_path / "db") as db:
            n = db.position("S")
        assert kafka.numbers("t") == list(range(n)) and crashes > 5 < n
        assert any(record.state == "aborted" for record in kafka.topics["t"])


CLIENT = """
import os, sys, minidsms
db = minidsms.connect(sys.argv[1])
if "counts" not in db.queries:
    if "s" not in db.catalog.streams:
        db.execute("CREATE STREAM S (k INTEGER, name TEXT)")
    db.query("SELECT k, name, COUNT(*) FROM S [RANGE 5] GROUP BY k, name", name="counts")
counts = db.queries["counts"]
for i in range(db.position("S"), db.position("S") + int(sys.argv[3])):
    db.push("S", (i % 3, f"text{i % 7}"), ts=i)
    with open(sys.argv[2], "r+") as kept:
        changes = counts.fetch(ack=len(kept.readlines()))
        kept.write("".join(f"{change}\\n" for change in changes))
    print(i, flush=True)
"""


def test_a_client_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    folder, answers = tmp_path / "db", tmp_path / "answers"
    answers.touch()
    for more, wait_for in ((10**6, 60), (100, None)):
        process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, folder, answers, str(more)], stdout=subprocess.PIPE, env={**os.environ}
        )
        assert process.stdout is not None
        for line in process.stdout:
            n = int(line) + 1
            if wait_for is not None and n > wait_for:
                process.send_signal(signal.SIGKILL)
                break
        process.stdout.close()
        assert process.wait() == (0 if wait_for is None else -signal.SIGKILL)
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (k INTEGER, name TEXT)")
        query = db.query("SELECT k, name, COUNT(*) FROM S [RANGE 5] GROUP BY k, name")
        for i in range(n):
            db.push("S", (i % 3, f"text{i % 7}"), ts=i)
        expected = Counter(map(str, query.fetch()))
    assert Counter(answers.read_text().splitlines()) == expected
