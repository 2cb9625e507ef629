"""Requests to the page that no page would send: see `tests.long.malformed_requests`."""

from __future__ import annotations

import pytest

for needed in ("starlette", "uvicorn"):
    pytest.importorskip(needed, reason="the page needs minidsms[web]")


def test_whatever_is_sent_to_the_page_is_answered_or_refused_and_ends_nothing() -> None:
    from tests.long.malformed_requests import run

    answered = run(300, seed=3, breaks=20)
    assert {200, 400, 403, 404, 405, 409, 413} <= set(answered)
