"""Waiting for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 240.0
"""On a machine that is busy and has its kernels to compile."""


def soon(claim: Callable[[], object]) -> None:
    """Wait until a claim is true; it fails if it never is."""
    end_s = time.monotonic() + PATIENCE_S
    while not claim():
        assert time.monotonic() < end_s, "it did not come true"
        time.sleep(0.002)
