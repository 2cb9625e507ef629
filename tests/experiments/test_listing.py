"""`python -m experiments` tells of every experiment."""

from __future__ import annotations

from importlib.util import find_spec

from experiments.__main__ import listing
from experiments.parts import parser_of


def test_every_experiment_is_listed_with_its_command_and_what_it_is() -> None:
    *lines, _ = listing().splitlines()
    names = [line.split()[2] for line in lines]
    assert {"experiments.filter_ordering", "experiments.scheduling", "experiments.k_mon"} <= set(names)
    assert all(find_spec(name) is not None for name in names)
    assert all(len(line.split()) > 5 and "`" not in line for line in lines)


def test_the_help_of_an_experiment_names_its_parts() -> None:
    help_text = parser_of("k_mon", "of k-Mon", ["monitoring", "cost"]).format_help()
    assert "which of monitoring, cost" in help_text and "[]" not in help_text
