"""Queries beside DuckDB's answers, over thousands of rows and nested at random: a few cases of `make beside`."""

from __future__ import annotations

import pytest

from tests.long import beside_duckdb


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("plain", 6),
        ("plain", 25),
        ("plain", 31),
        ("plain", 590),
        ("wide", 5),
        ("streams", 5),
        ("folder", 8),
        *(("nested", seed) for seed in range(3)),
    ],
)
def test_answers_are_those_of_duckdb(kind: str, seed: int) -> None:
    assert beside_duckdb.difference_of(seed, kind) is None


def test_a_difference_is_told_with_the_command_that_shows_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(beside_duckdb, "answered_by_duckdb", lambda *_: {})
    assert beside_duckdb.main(["--kind", "plain", "--cases", "1", "--seed", "31"]) == 1
    assert "again: python -m tests.long.beside_duckdb --kind plain --cases 1 --seed 31" in capsys.readouterr().out
