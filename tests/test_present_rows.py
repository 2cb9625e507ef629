"""The rows a relation holds, counted from its changes, against a counter of Python's."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from minidsms.answers import present_rows
from minidsms.answers.present_rows import PresentRows
from minidsms.elements import Batch, Column, Schema, Type
from minidsms.process.background import Background
from minidsms.synopses import row_counts

SCHEMAS = {
    "none": [],
    "integer": [Type.INTEGER],
    "mixed": [Type.FLOAT, Type.BOOLEAN, Type.INTEGER],
    "wide": [Type.INTEGER] * 62 + [Type.BOOLEAN] * 2,
}


def schema_of(types: list[Type]) -> Schema:
    return Schema.of(*((f"c{i}", type_) for i, type_ in enumerate(types)))


def column(numbers: np.ndarray, type_: Type, has_nulls: bool) -> Column:
    """Every third number is NULL, if any may be."""
    return Column(numbers.astype(type_.dtype), numbers % 3 != 2 if has_nulls else None)


def batch(numbers: list[int], sign: list[int], schema: Schema, has_nulls: bool) -> Batch:
    array = np.array(numbers, np.int64)
    columns = [column(array // (1 + i % 7), type_, has_nulls) for i, type_ in enumerate(schema.types)]
    return Batch(np.zeros(len(array), np.int64), np.array(sign, np.int8), columns)


def counted(rows: Batch) -> Counter[tuple[object, ...]]:
    valid = [np.ones(len(c), np.bool_) if c.valid is None else c.valid for c in rows.columns]
    values = [[v if there else None for v, there in zip(c.values.tolist(), m)] for c, m in zip(rows.columns, valid)]
    return Counter(zip(*values) if values else [()] * len(rows))


@pytest.mark.parametrize("types", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("has_nulls", [False, True])
@pytest.mark.parametrize("size", [1, 7, 300])
def test_rows_are_there_as_often_as_they_came_and_did_not_leave(
    monkeypatch: pytest.MonkeyPatch, types: list[Type], has_nulls: bool, size: int
) -> None:
    monkeypatch.setattr(row_counts, "_WORTH_SHRINKING", 64)
    monkeypatch.setattr(present_rows, "_MOST_WAITING", 500)
    rng = np.random.default_rng(size)
    schema = schema_of(types)
    present = PresentRows(schema, Background())
    held: list[int] = []
    for step in range(40):
        is_growing = step % 20 < 10
        changes: list[tuple[int, int]] = []
        for _ in range(size):
            if held and rng.random() < (0.3 if is_growing else 0.8):
                changes.append((held.pop(int(rng.integers(len(held)))), -1))
            else:
                held.append(int(rng.integers(400)))
                changes.append((held[-1], 1))
        present.add(batch([number for number, _ in changes], [sign for _, sign in changes], schema, has_nulls))
        if step % 5 == 4:
            assert counted(present.rows()) == counted(batch(held, [1] * len(held), schema, has_nulls))
    assert present.nbytes < 100 * (len(held) + 500) * (3 + len(types))
    present.clear()
    assert not len(present.rows())


def test_what_is_held_follows_the_rows_present_and_not_their_changes() -> None:
    schema = schema_of([Type.INTEGER])
    present = PresentRows(schema, Background())
    numbers = list(range(100_000))
    present.add(batch(numbers, [1] * len(numbers), schema, False))
    assert len(present.rows()) == 100_000 and present.nbytes > 3_000_000
    present.add(batch(numbers[5:], [-1] * len(numbers[5:]), schema, False))
    assert sorted(present.rows().column(0).values.tolist()) == [0, 1, 2, 3, 4] and present.nbytes < 10_000
