"""Lines as they come: the blocks do not depend on how the bytes were cut, and the limit is exact."""

from __future__ import annotations

import random

import pytest

from minidsms.sources import line_cutter
from minidsms.sources.line_cutter import LineCutter


def blocks(data: bytes, sizes: list[int]) -> list[tuple[int, int, bool, bytes]]:
    """By line: its number, where it starts, whether it is broken, and its bytes."""
    cutter, found, at = LineCutter(), [], 0
    for size in [*sizes, len(data)]:
        found += cutter.feed(data[at : at + size])
        at += size
    lines = []
    for block in [*found, *cutter.end()]:
        start = block.start
        for i, line in enumerate(block.data.splitlines(keepends=True)):
            lines.append((block.first_line + i, start, block.is_broken, line))
            start += len(line)
    return lines


@pytest.mark.parametrize("seed", range(20))
def test_a_line_is_too_long_or_not_however_its_bytes_come(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_cutter, "LONGEST_LINE", 50)
    monkeypatch.setattr(line_cutter, "_SHOWN", 9)
    rng = random.Random(seed)
    lengths = [rng.choice((0, 3, 49, 50, 51, 52, 120)) for _ in range(30)]
    data = b"".join(bytes([97 + i % 26]) * n + b"\n" for i, n in enumerate(lengths))
    whole = blocks(data, [])
    assert [(line, start, broken) for line, start, broken, _ in whole] == [
        (i + 1, sum(lengths[:i]) + i, n > 50) for i, n in enumerate(lengths)
    ]
    assert all(len(line) == n + 1 for (_, _, broken, line), n in zip(whole, lengths) if not broken)
    for _ in range(20):
        cut = blocks(data, [rng.choice((1, 5, 50, 51, 52, 200)) for _ in range(200)])
        assert [line[:3] for line in cut] == [line[:3] for line in whole]
