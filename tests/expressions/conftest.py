"""Programs are tried on tables of a few rows, too: their kernel is there before the first test."""

from __future__ import annotations

import pytest

from minidsms.kernels.expressions import run_program


@pytest.fixture(scope="session", autouse=True)
def programs() -> None:
    run_program.form().compiled()
