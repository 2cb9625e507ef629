"""Reduced joins of thousands of rows: no answer shows the reduction (docs/semantics T5; Babu 2005, chapter 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from minidsms.testing.compare import Answer
from minidsms.testing.feeds import Push, Step
from tests.long import reduced_joins
from tests.long.large_joins import large_join
from tests.long.reduced_joins import REDUCTIONS, Tally, difference_of, main, reduce_joins


def run(cases: int, seed: int, rows: int | None = None) -> Tally:
    *_, tally = reduce_joins(cases, seed, rows)
    assert not tally.differences, tally.differences[0]
    return tally


def test_reductions_of_joins_of_a_thousand_rows_do_not_show_though_rows_come_back() -> None:
    tally = run(12, 100, 2000)
    assert tally.answered > 8
    assert sum(counts.reduced for counts in tally.counts.values()) > 16
    assert sum(counts.returned for counts in tally.counts.values()) > 4


def keys_that_come_again(feed: Sequence[Step], name: str) -> int:
    """How many keys of a stream come twice or more often."""
    keys = Counter(row[0] for step in feed if isinstance(step, Push) and step.name == name for _, _, row in step.rows)
    return sum(n > 1 for key, n in keys.items() if key is not None)


def test_cases_have_inputs_of_every_kind_keys_of_every_type_and_some_that_break() -> None:
    cases = [large_join(seed, 200) for seed in range(60)]
    texts = " ".join(text for case in cases for text in (*case.declarations, case.query))
    words = ("RELATION", "KEY", "TEXT", "FLOAT", "TIMESTAMP", "[ROWS", "SLIDE", "NOW", "PARTITION BY", "GROUP BY", "T4")
    assert all(word in texts for word in words)
    rows = [element for case in cases for step in case.feed if isinstance(step, Push) for element in step.rows]
    assert any(sign < 0 for _, sign, _ in rows) and any(None in row for _, _, row in rows)
    repeats = [keys_that_come_again(case.feed, name) for case in cases for name in sorted(case.slack())]
    assert min(repeats) == 0 and any(0 < n < 10 for n in repeats)


def test_deletions_from_relations_are_of_rows_that_are_there() -> None:
    for seed in range(20):
        held: Counter[tuple[str, object]] = Counter()
        pushes = [step for step in large_join(seed, 300).feed if isinstance(step, Push)]
        for step in pushes:
            for _, sign, row in step.rows:
                held[step.name, row] += sign
                assert held[step.name, row] >= 0


def test_rows_that_a_lossy_reduction_loses_are_told_with_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lossy = {name: {**options, "k_mon": "lossy"} for name, options in REDUCTIONS.items()}
    monkeypatch.setattr(reduced_joins, "REDUCTIONS", lossy)
    assert main(["--cases", "30", "--rows", "1000"]) == 1
    told = capsys.readouterr().out
    assert "at instant" in told and "'k_mon': 'lossy'" in told and "CREATE" in told
    again = told.split("again: python -m tests.long.reduced_joins ")[1].split("\n")[0]
    assert main(again.split()) == 1
    assert capsys.readouterr().out.split("\n\n")[1] == told.split("\n\n")[1]


def test_a_call_that_raises_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(REDUCTIONS, "swj", {"state_reduction": "none of them"})
    for name in sorted(REDUCTIONS):
        monkeypatch.setitem(REDUCTIONS, name, REDUCTIONS["swj"])
    assert main(["--cases", "1", "--rows", "20"]) == 1
    assert "Error: " in capsys.readouterr().out


def test_answers_differ_by_a_row_by_an_instant_and_by_the_snapshot() -> None:
    whole = Answer(((1, 1, ("a",)), (2, -1, ("a",))), snapshot=())
    assert (
        difference_of(whole, Answer(((1, 1, ("a",)), (1, 1, ("b",)), (1, -1, ("b",)), (2, -1, ("a",))), snapshot=()))
        == ""
    )
    assert difference_of(whole, Answer(((1, 1, ("a",)),), snapshot=())) == "at instant 2 has ('a',) +0, not -1"
    assert "instant 1" in difference_of(whole, Answer(((2, 1, ("a",)), (2, -1, ("a",))), snapshot=()))
    assert "snapshot" in difference_of(whole, Answer(whole.changes, snapshot=(("a",),)))


@pytest.mark.long
def test_reductions_of_two_hundred_large_joins_do_not_show() -> None:
    run(200, 2_000_000)
