"""The room for rows of a grouped aggregation: rows that are kept stay, and keep no more memory than they need."""

from __future__ import annotations

import pytest

from minidsms.elements import Int64Array
from minidsms.process.large_pages import BLOCK_WORDS
from minidsms.synopses.changed_rows import _FEW, _SPARE, ChangedRows

COLUMNS = 3
WIDTH = 1 + COLUMNS
LARGE = BLOCK_WORDS // WIDTH // 4
FEW = 100


def written(out: ChangedRows, room: int, rows: int, value: int) -> Int64Array:
    """The words of a slice for which so much room is made, and which fills so many rows with a value."""
    if room > out.fitting:
        out.make_ready(room)
    if rows > len(out.changed.ts) - out.begin:
        out.make_room(room, rows)
    end = out.begin + rows
    out.changed.ts[out.begin : end] = value
    out.changed.words[:, out.begin : end] = value
    words, _, status, is_own = out.take(end, False)
    assert status is None and is_own == (words.base is None or len(words[0]) > _FEW)
    return words


def blocks(kept: list[Int64Array]) -> int:
    """In how many pieces of memory these stand."""
    return len({id(words.base) for words in kept})


def test_rows_that_are_kept_are_not_written_again() -> None:
    out, kept = ChangedRows(COLUMNS), []
    for i in range(700):
        rows = (LARGE, FEW, 0, LARGE // 8, 5 * LARGE, 1, _FEW)[i % 7] if i < 200 else i % 3
        kept.append(written(out, max(rows, FEW), rows, i))
        if i % 7 == 0:
            kept[i // 2] = kept[-1]
    assert all((words == words.flat[0]).all() for words in kept if words.size)


@pytest.mark.parametrize("small", [0, 1, 5])
def test_large_slices_fill_a_block_though_small_ones_come_between_them(small: int) -> None:
    out, kept = ChangedRows(COLUMNS), []
    for i in range(30):
        kept.append(written(out, LARGE, LARGE // 4, i))
        for _ in range(small):
            assert written(out, FEW, FEW, i).base is None
    assert blocks(kept) == 2


def test_block_is_given_up_when_slices_stay_small() -> None:
    out = ChangedRows(COLUMNS)
    assert written(out, LARGE, LARGE, 1).base is not None
    for _ in range(100):
        written(out, FEW, FEW, 2)
    assert len(out.changed.ts) == out.fitting == FEW + _SPARE


def test_many_slices_of_few_rows_share_a_room() -> None:
    out = ChangedRows(COLUMNS)
    assert blocks([written(out, FEW, 1, i) for i in range(FEW)]) == 1


def test_few_rows_of_much_more_room_are_copied_out_of_it() -> None:
    out = ChangedRows(COLUMNS)
    out.make_room(FEW, 0)
    out.make_room(LARGE, 40 * LARGE)  # for one instant that is larger than a block
    out.changed.words[:, :LARGE] = 1
    assert out.take(LARGE, False)[0].base is None
    assert out.take(2 * LARGE, False)[0].base is not None
