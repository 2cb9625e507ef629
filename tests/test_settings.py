"""How values of settings may be written, and what is said of those that are none."""

from __future__ import annotations

import pytest

import minidsms
from minidsms.settings import SETTINGS, checked
from minidsms.shell.names import Names


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("filter_ordering", "A-Greedy", "a_greedy"),
        ("state_reduction", "kmon", "k-mon"),
        ("state_reduction", "K_Mon", "k-mon"),
        ("load_shedding", "Drop_Oldest", "drop oldest"),
        ("scheduler", "Round Robin", "round_robin"),
    ],
)
def test_neither_case_nor_what_joins_its_parts_counts(name: str, written: str, value: str) -> None:
    with minidsms.connect() as db:
        db.execute(f"SET {name} = '{written}'")
        assert db.settings[name] == value


def test_of_a_misspelt_word_the_nearest_is_proposed() -> None:
    with pytest.raises(minidsms.Error, match=r'choose one of: .*; did you mean "chain"'):
        checked("scheduler", "chian")
    with pytest.raises(minidsms.Error, match=r"choose one of: [a-z_, ]*$"):
        checked("scheduler", "xyz")


def test_every_word_that_is_completed_is_a_value() -> None:
    with minidsms.connect() as db:
        names = Names(db)
        for setting in SETTINGS:
            for word in names.values_of(setting):
                assert checked(setting, word) == word
