"""Lines of whole numbers written by a kernel are, byte for byte, what Arrow writes."""

from __future__ import annotations

import numpy as np
import pytest

from minidsms.answers.results import ResultCodec
from minidsms.elements import Batch, Column, Schema, Type
from minidsms.sinks import csv_format, few_rows
from minidsms.values.dictionary import TextDictionary

EXTREMES = [0, 1, -1, 9, 10, -10, 99, 100, 10**18 - 1, 10**18, -(10**18), 2**63 - 1, -(2**63), -(2**63) + 1]
SCHEMA = Schema.of(("a", Type.INTEGER), ("b", Type.INTERVAL), ("c", Type.INTEGER))


def _both(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, bytes]:
    monkeypatch.setattr(few_rows, "FEW", -1)
    told = []
    for least in (0, 10**9):
        monkeypatch.setattr(csv_format, "KERNEL_FROM", least)
        lines = csv_format.CsvFormat(SCHEMA, ResultCodec(SCHEMA, TextDictionary(), 10**6))
        told.append(lines.text(lines.decode(batch)))
    by_kernel, by_arrow = told
    return by_kernel, by_arrow


@pytest.mark.parametrize("nulls", [False, True])
def test_kernel_and_arrow_write_the_same(nulls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    for n in (0, 1, 2, 300):
        columns = []
        for _ in SCHEMA:
            values = rng.integers(-(2**62), 2**62, n) >> rng.integers(0, 63, n)
            values[: min(n, len(EXTREMES))] = EXTREMES[: min(n, len(EXTREMES))]
            valid = rng.random(n) < 0.7 if nulls else None
            columns.append(Column(values if valid is None else np.where(valid, values, 0), valid))
        sign = rng.choice(np.array([-1, 1], np.int8), n) if n % 2 == 0 else None
        by_kernel, by_arrow = _both(Batch(np.sort(rng.integers(-5, 10**15, n)), sign, columns), monkeypatch)
        assert by_kernel == by_arrow
        assert by_kernel.count(b"\n") == n
