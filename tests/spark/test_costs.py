"""The way is chosen by what is known of it: how many rows, how many tasks, and what such queries took before."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from minidsms.archive import files
from minidsms.archive.format import Metadata, create, find
from minidsms.archive.rates import LEAST_ROWS, keep_rate, read_rates
from minidsms.elements import Schema, Type
from minidsms.spark import explain
from minidsms.spark.costs import WAYS, Box, Estimate, estimate, least_regret, shape_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def way(rows: float, tasks: int, rates: dict[str, list[float]] | None = None, able: tuple[str, ...] = WAYS) -> str:
    """What is chosen where engines may read as many slices as there are tasks."""
    return least_regret({w: estimate(w, rows, 1 if w == "replay" else tasks, rates or {}) for w in able})


def test_one_engine_answers_what_is_little_and_many_what_is_much() -> None:
    assert way(60, 1) == way(3_000_000, 2) == "replay"
    assert way(100_000_000, 8) == "engines"
    assert way(300_000_000, 100, able=("replay", "frames")) == "frames"
    assert way(3_000_000, 2, able=("replay", "frames")) == "replay"


def test_what_was_measured_counts_and_narrows_the_box() -> None:
    rates = {"replay": [5e-5, 6e-5], "frames": [1e-6]}
    assert way(10_000_000, 4, rates, ("replay", "frames")) == "frames"
    wide, narrow = estimate("replay", 10_000_000, 1, {}), estimate("replay", 10_000_000, 1, {"replay": [2e-7]})
    assert wide.seconds.low < narrow.seconds.low < narrow.seconds.high < wide.seconds.high
    assert (wide.runs, narrow.runs) == (0, 1)


def test_a_way_that_may_be_best_and_may_be_bad_loses_to_one_that_is_never_bad() -> None:
    def of(name: str, low: float, high: float) -> Estimate:
        return Estimate(name, Box(low, high), Box(low, high), 0)

    assert least_regret({"frames": of("frames", 1, 100), "replay": of("replay", 9, 11)}) == "replay"
    assert least_regret({"frames": of("frames", 1, 9), "replay": of("replay", 10, 30)}) == "frames"


def test_rates_are_kept_by_shape_the_last_runs_alone(tmp_path: Path) -> None:
    shape = shape_of("SELECT v FROM S [RANGE 3] WHERE t = 'a'")
    assert shape == shape_of("SELECT v FROM S [RANGE 40] WHERE t = 'b''c'") != shape_of("SELECT v FROM S [RANGE 3]")
    keep_rate(str(tmp_path), shape, "replay", 10, 1.0)
    assert not os.listdir(tmp_path), "so few rows tell nothing of a row"
    for seconds in range(1, 9):
        keep_rate(str(tmp_path), shape, "replay", 1_000_000, seconds)
    keep_rate(str(tmp_path), "another", "frames", 1_000_000, 3.0)
    assert read_rates(str(tmp_path), shape) == {"replay": [4e-6, 5e-6, 6e-6, 7e-6, 8e-6]}


def test_many_may_keep_a_rate_at_a_time(tmp_path: Path) -> None:
    def keep(n: int) -> None:
        keep_rate(str(tmp_path), f"shape {n % 4}", "engines", 1_000_000, 1.0 + n)
        assert json.loads((tmp_path / "_rates.json").read_text())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(keep, range(80)))
    # Who had read before others wrote, and writes last, leaves out what they kept; nothing is left half.
    assert os.listdir(tmp_path) == ["_rates.json"]
    assert any(read_rates(str(tmp_path), f"shape {n}") for n in range(4))


@pytest.mark.parametrize("rate", ["NaN", "-1e9", "1e999", "1" * 400, "null", "[" * 100_000])
def test_rates_that_nothing_can_take_are_as_none(tmp_path: Path, rate: str) -> None:
    (tmp_path / "_rates.json").write_text(f'{{"shape": {{"replay": [{rate}]}}}}')
    assert read_rates(str(tmp_path), "shape") == {}
    keep_rate(str(tmp_path), "shape", "replay", 1_000_000, 3.0)
    assert read_rates(str(tmp_path), "shape") == {"replay": [3e-6]}


def test_a_query_that_was_run_by_every_way_is_estimated_by_what_that_took(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema.of(("k", Type.INTEGER))
    archive = create(str(tmp_path), Metadata("S", "stream", "ms", schema, 86_400_000))
    n = LEAST_ROWS
    columns = [np.arange(n), np.arange(n), np.ones(n, np.int8), np.arange(n) % 1000]
    files.write(archive, pa.table(columns, schema=archive.metadata.arrow_schema))
    query = "SELECT k FROM S [RANGE 10] WHERE k < {}"
    told = explain(query.format(3), str(tmp_path), spark=spark, analyze=True)
    assert told.count("(1 such run)") == 3 and "20,000 rows, 1 task at a time" in told
    assert explain(query.format(5), str(tmp_path), spark=spark).count("(1 such run)") == 3
    assert "none such" in explain("SELECT COUNT(*) FROM S [RANGE 10]", str(tmp_path), spark=spark)
    assert [f.statistics.rows for f in find(str(tmp_path), "S").files() if f.statistics] == [n]
