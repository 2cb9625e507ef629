"""Joins that several threads divide, however little there is to join."""

from __future__ import annotations

from typing import Any

import pytest

from minidsms.joins import join, stretches
from minidsms.process.side_by_side import side_by_side
from minidsms.streamon.stream_monitor import StreaMon


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Under any settings a single element is worth a thread; gives into how many stretches parts were cut."""
    counts: list[int] = []

    def noting(work: Any, count: int) -> Any:
        counts.append(count)
        return side_by_side(work, count)

    monkeypatch.setattr(join, "LEAST_ELEMENTS", 1)
    monkeypatch.setattr(join, "LEAST_ENTERING", 1)
    monkeypatch.setattr(stretches, "side_by_side", noting)
    monkeypatch.setattr(StreaMon, "threads", lambda streamon: streamon.settings["threads"])
    return counts
