"""Connections with a page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import minidsms
from minidsms.connection import Connection


@pytest.fixture
def db() -> Iterator[Connection]:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM Pos (car INTEGER, road TEXT, speed FLOAT)")
        yield db
