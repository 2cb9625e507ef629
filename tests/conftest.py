"""`pytest --rewrite` fills in what golden scripts and the docs' examples expect; the change is then read and judged.

Where several workers run the tests, the kernels are compiled before they start: else each would compile all of them.
"""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from hypothesis import HealthCheck, settings

# No test asserts a time: a slow machine, or the first compilation of a kernel, is no failure.
settings.register_profile("minidsms", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("minidsms")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        return
    kernels = importlib.import_module("minidsms.kernels")
    for module in pkgutil.iter_modules(kernels.__path__, f"{kernels.__name__}."):
        importlib.import_module(module.name)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite", action="store_true", help="write what came out into golden scripts and the docs' examples"
    )


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether outcomes are to be written instead of judged."""
    return bool(request.config.getoption("--rewrite"))
