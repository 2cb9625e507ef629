"""What tests of join trees share."""

from __future__ import annotations

import pytest

from minidsms.streamon import loop
from minidsms.streamon.join_trees import adaptive_trees, reoptimizer
from minidsms.streamon.loop import Budget


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees are looked at after every few elements."""
    for name, value in {"BUDGET": Budget(worth_tuples=3), "INTERVAL": 3, "ENOUGH": 2}.items():
        monkeypatch.setattr(adaptive_trees, name, value)
    monkeypatch.setattr(loop, "LONGEST_REST", 1)
    monkeypatch.setattr(loop, "REST", 1)
    monkeypatch.setattr(reoptimizer, "ENOUGH", 2)
    monkeypatch.setattr(reoptimizer, "LEAST_BAN", 10)
