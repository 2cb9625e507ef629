"""Kernels compute what their functions do in Python: variables in loops and branches, items wherever they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minidsms.machine_code import (
    Bools,
    Float64s,
    Grid,
    Int8s,
    Int64s,
    Int64Table,
    Record,
    Rows,
    grid_of,
    helper,
    int64,
    kernel,
    rows_of,
    uint64,
)
from minidsms.machine_code.definition import definition_of

_FALLS = True


class Place(Record):
    x: int
    y: int


@helper
def _step(at: Any, by: Any) -> Any:
    return (at - by if _FALLS else at + by), by + 1


@kernel
def wander(
    words: Int64s, small: Int8s, truths: Bools, floats: Float64s, table: Int64Table, row: Rows[Place], grid: Grid[Place]
) -> int:
    """Read and write from the front and from behind, by variables that some rounds leave alone."""
    kept = found = 0
    last = -1
    for i in range(len(words)):
        value = words[i]
        if truths[i]:
            kept, found = _step(kept, value)
            last = i
        elif value > 3:
            found = value
            if value == 5:
                continue
        else:
            other = found + last
            found = other * 2
        words[-1 - i] = kept + words[last]
        small[uint64(i)] = found & 63
        floats[i] = found
        floats[-1] += floats[i] / 4
        truths[i - 1] = found > kept
        table[i % table.shape[0], -1 - i % table.shape[1]] = kept + table[-1, 0] + small[i]
        table[0, 0] += 1
        row[-1 - i].x = grid[-1, i].y + value
        grid[i % 2, -1].y += row[i].x
        words[0] ^= int64(floats[i])
    return kept + found + last


@pytest.mark.parametrize("seed", range(8))
def test_a_kernel_computes_what_its_function_does_in_python(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 1 + seed
    given: tuple[Any, ...] = (
        rng.integers(-9, 9, n),
        np.zeros(n, np.int8),
        rng.random(n) < 0.4,
        np.zeros(n),
        rng.integers(-9, 9, (2, 3)),
        rows_of(Place, n),
        grid_of(Place, 2, n),
    )
    compiled, by_python = [array.copy() for array in given], [array.copy() for array in given]
    definition = definition_of(wander)
    by_attributes = [array.view(np.recarray) if array.dtype.names else array for array in by_python]
    assert definition is not None and wander(*compiled) == definition.function(*by_attributes)
    for one, other in zip(compiled, by_python):
        assert np.array_equal(one, other)
