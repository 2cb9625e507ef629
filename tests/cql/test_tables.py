"""The kept tables of the parser."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest

from minidsms.cql import tables
from minidsms.cql.tree_builder import TreeBuilder


def kept() -> dict[str, object]:
    return json.loads(resources.files("minidsms.cql").joinpath("tables.json").read_text("utf-8"))


def numbered(table: Any, start: str) -> list[dict[str, str]]:
    """The actions of each state, the states numbered in the order in which a walk over sorted tokens meets them."""
    numbers = {table.start_states[start]: 0}
    found: list[dict[str, str]] = []
    for state in (queue := [table.start_states[start]]):
        actions: dict[str, str] = {}
        for token, (action, target) in sorted(table.states[state].items()):
            if isinstance(target, int):
                if target not in numbers:
                    numbers[target] = len(numbers)
                    queue.append(target)
                target = numbers[target]
            actions[token] = f"{action} {target}"
        found.append(actions)
    return found


def test_the_kept_tables_are_those_of_the_grammar() -> None:
    assert kept()["made_of"] == tables.made_of(tables.grammar()), "run `make tables`"


def test_a_parser_from_kept_tables_is_the_one_that_the_grammar_gives_where_there_are_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = tables.load(TreeBuilder()).parser.parser._parse_table
    monkeypatch.setattr(tables, "made_of", lambda grammar: {"grammar": "another"})
    made = tables.load(TreeBuilder()).parser.parser._parse_table
    assert loaded.start_states.keys() == made.start_states.keys() == {"statement", "query", "type"}
    assert loaded.states is not made.states
    for start in made.start_states:
        assert numbered(loaded, start) == numbered(made, start)
