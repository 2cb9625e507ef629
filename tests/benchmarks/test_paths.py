"""The ways in and out that are measured."""

from __future__ import annotations

import pytest

from benchmarks import paths


def test_every_way_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ALONE", 3), ("ROWS", 50), ("ROUNDS", 1)):
        monkeypatch.setattr(paths, name, value)
    found = paths.measure()
    assert [len(table) for table in found.values()] == [len(paths.FORMS), len(paths.TAKEN), 7, 4]
    assert all(figure >= 0 for table in found.values() for figures in table.values() for figure in figures.values())
