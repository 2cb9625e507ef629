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


def shown(rule: Any) -> str:
    """All that parsers and builders of trees ask a rule for."""
    symbols = [(str(symbol.name), getattr(symbol, "filter_out", None)) for symbol in (rule.origin, *rule.expansion)]
    options = vars(rule.options) | {"empty_indices": list(rule.options.empty_indices)}
    return f"{symbols} {rule.order} {rule.alias} {options}"


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
                actions[token] = f"{action} {numbers[target]}"
            else:
                actions[token] = f"{action} {shown(target)}"
        found.append(actions)
    return found


def test_the_kept_tables_are_those_of_the_grammar() -> None:
    assert kept()["made_of"] == tables.made_of(tables.grammar()), "run `make tables`"


def test_the_kept_tables_serve_other_corrections_of_lark_and_only_those(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(tables, "make", lambda text, transformer: made.append(text))
    release = ".".join(tables.lark.__version__.split(".")[:2])
    monkeypatch.setattr(tables.lark, "__version__", f"{release}.99")
    assert tables.load(None) is not None and not made
    monkeypatch.setattr(tables.lark, "__version__", "99.0")
    assert tables.load(None) is None and len(made) == 1


def test_tables_that_lark_cannot_read_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(data: object, memo: object, transformer: object) -> None:
        raise KeyError("version")

    monkeypatch.setattr(tables.lark.Lark, "_load_from_dict", refuse)
    monkeypatch.setattr(tables, "make", lambda text, transformer: "made")
    assert tables.load(None) == "made"


def test_a_parser_from_kept_tables_is_the_one_that_the_grammar_gives_where_there_are_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded_parser = tables.load(TreeBuilder())
    monkeypatch.setattr(tables, "made_of", lambda grammar: {"grammar": "another"})
    made_parser = tables.load(TreeBuilder())
    assert list(map(shown, loaded_parser.rules)) == list(map(shown, made_parser.rules))
    loaded, made = loaded_parser.parser.parser._parse_table, made_parser.parser.parser._parse_table
    assert loaded.start_states.keys() == made.start_states.keys() == {"statement", "query", "type"}
    assert loaded.states is not made.states
    for start in made.start_states:
        assert numbered(loaded, start) == numbered(made, start)
