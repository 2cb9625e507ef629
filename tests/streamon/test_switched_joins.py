"""Orders, trees, caches, routes, patterns and bits of joins switched at every k-th element: no answer shows it (T5)."""

from __future__ import annotations

import pytest

from minidsms.testing.compare import difference_of
from tests.long.switched_joins import KINDS, TECHNIQUES, Tally, main, random_case, switch_joins


def run(switches: int, seed: int, size: int) -> Tally:
    *_, tally = switch_joins(switches, seed, size)
    assert not tally.differences, tally.differences[0]
    return tally


@pytest.mark.parametrize("seed", [0, 1_000_000])
def test_switches_at_every_kth_element_are_taken_and_do_not_show(seed: int) -> None:
    tally = run(500, seed, 12)
    assert all(counts.answered > 2 for counts in tally.counts.values())
    assert all(counts.switches > (5 if kind in TECHNIQUES else 40) for kind, counts in tally.counts.items())


def test_cases_are_windows_relations_and_derived_relations_with_deletions_nulls_and_texts() -> None:
    cases = [random_case(seed, 12) for seed in range(60)]
    texts = " ".join(case.query for case in cases)
    assert all(word in texts for word in ("Rel", "GROUP BY", "PARTITION", "SLIDE", "ROWS", ".b = ", ".t = ", " < "))
    rows = [row for case in cases for step in case.feed for row in getattr(step, "rows", ())]
    assert any(sign < 0 for _, sign, _ in rows) and any(None in row for _, _, row in rows)


def test_a_difference_is_told_and_counts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tests.long.switched_joins.difference_of", lambda *answers: difference_of(*answers) or "unlike")
    assert main(["--switches", "1"]) == 1
    told = capsys.readouterr().out
    assert "unlike" in told and "forced_every" in told and all(kind in told for kind in KINDS)


@pytest.mark.parametrize("seed", [20_000_158, 30_000_062])
def test_caches_of_windows_beside_a_relation_are_switched_and_do_not_show(seed: int) -> None:
    run(1, seed, 14)


@pytest.mark.long
def test_fifty_thousand_switches_do_not_show_in_any_answer() -> None:
    run(50_000, 2_000_000, 14)
