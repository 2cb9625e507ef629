"""The experiment of schedulers, from its first line to its figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import scheduling


def test_the_experiment_prints_a_line_for_each_kind_of_plan_and_scheduler(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(scheduling, "RESULTS", tmp_path)
    scheduling.main(["--plans", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines[:4]] == ["paths", "paths", "trees", "trees"]
    assert all(line.startswith("real operators") for line in lines[4:])
    assert (tmp_path / "scheduling.png").stat().st_size > 0
