"""The parser's tables, kept as JSON beside the grammar, so that the first statement need not wait for their making.

`make tables` writes `tables.json`; it carries the digest of the grammar and lark's release, and where
either differs from what is installed the tables are made anew in memory: slower by two seconds, never wrong.

Invariant: a parser from the kept tables is the parser that the grammar gives.  lark has its own way of keeping a
parser, which unpickles a file; this one reads data only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

import lark
from lark.grammar import NonTerminal, Rule, RuleOptions, Terminal
from lark.lexer import Lexer
from lark.parsers.lalr_analysis import Reduce, Shift

_STARTS = ["statement", "query", "type"]
_FILE = "tables.json"


class Tokens(Lexer):
    """Hands lark the tokens that `lexer.statements` has already made."""

    def __init__(self, configuration: object) -> None:
        pass

    def lex(self, tokens: Any, parser_state: Any = None) -> Iterator[lark.Token]:
        return iter(tokens)


def load(transformer: Any) -> lark.Lark:
    """A parser of CQL whose trees are built by `transformer`."""
    text = grammar()
    kept = resources.files("minidsms.cql").joinpath(_FILE)
    if kept.is_file():
        content = json.loads(kept.read_text("utf-8"))
        if content["made_of"] == made_of(text):
            with suppress(LookupError, TypeError, ValueError, AttributeError):  # this lark reads others after all
                return _loaded(content, transformer)
    return make(text, transformer)


def _loaded(content: dict[str, Any], transformer: Any) -> lark.Lark:
    data, rules = content["data"], _read_rules(content["rules"], content["symbols"])
    data["options"]["lexer"] = data["parser"]["lexer_conf"]["lexer_type"] = Tokens
    data["options"]["transformer"] = None
    data["rules"] = data["parser"]["parser_conf"]["rules"] = [{"@": at} for at in range(len(rules))]
    parser: lark.Lark = lark.Lark._load_from_dict(  # type: ignore[no-untyped-call]
        data, dict(enumerate(rules)), transformer=transformer
    )
    parser.parser.parser._parse_table.states = States(content["states"], content["tokens"], rules)
    return parser


def _read_rules(written: list[Any], symbols: list[Any]) -> list[Rule]:
    """The rules of `_write_rules`; those that name one symbol share it."""
    read = [NonTerminal(name) if filter_out is None else Terminal(name, filter_out) for name, filter_out in symbols]
    return [
        Rule(read[origin], [read[symbol] for symbol in expansion], order, alias, RuleOptions(*options))
        for origin, expansion, order, alias, options in written
    ]


class States(dict[int, dict[str, tuple[Any, Any]]]):
    """The actions of each state by token, read when a parse first comes to the state: most statements see few.

    written: a state's actions, each as the number of its token and the state to shift to, or ~rule to reduce by.
    """

    def __init__(self, written: list[str], tokens: list[str], rules: list[Any]) -> None:
        self.written, self.tokens, self.rules = written, tokens, rules

    def __missing__(self, state: int) -> dict[str, tuple[Any, Any]]:
        numbers = [int(number) for number in self.written[state].split()]
        actions: dict[str, tuple[Any, Any]] = {
            self.tokens[token]: (Shift, target) if target >= 0 else (Reduce, self.rules[~target])
            for token, target in zip(numbers[::2], numbers[1::2])
        }
        self[state] = actions
        return actions


def save() -> None:
    """Write the tables of the present grammar beside it (`make tables`)."""
    text = grammar()
    parser = make(text, None)
    states = parser.parser.parser._parse_table.states
    tokens = list(dict.fromkeys(token for actions in states.values() for token in actions))
    tokens_at = {token: at for at, token in enumerate(tokens)}
    rules_at = {rule: at for at, rule in enumerate(parser.rules)}
    written = [
        " ".join(
            f"{tokens_at[token]} {target if action is Shift else ~rules_at[target]}"
            for token, (action, target) in states[state].items()
        )
        for state in range(len(states))
    ]
    content = {"made_of": made_of(text), "tokens": tokens, "states": written} | _write_rules(parser.rules)
    parser.parser.parser._parse_table.states = {}
    data, _ = parser.memo_serialize([lark.lexer.TerminalDef, Rule])
    data["options"] = {k: v for k, v in data["options"].items() if k not in ("lexer", "transformer")}
    data["rules"] = data["parser"]["parser_conf"]["rules"] = []
    content["data"] = data
    Path(__file__).with_name(_FILE).write_text(
        json.dumps(content, separators=(",", ":"), default=_plain) + "\n", "utf-8"
    )


def _write_rules(rules: list[Rule]) -> dict[str, Any]:
    """symbols: name and whether trees leave it out, None of a nonterminal.  rules: origin, expansion, order, alias,
    options, as lark's classes take them; symbols by number.
    """
    symbols: dict[tuple[str, bool | None], int] = {}

    def number(symbol: Any) -> int:
        key = str(symbol.name), symbol.filter_out if symbol.is_term else None
        return symbols.setdefault(key, len(symbols))

    written = [
        (number(r.origin), [number(s) for s in r.expansion], r.order, r.alias and str(r.alias), _options(r.options))
        for r in rules
    ]
    return {"symbols": list(symbols), "rules": written}


def _options(options: RuleOptions) -> list[Any]:
    return [options.keep_all_tokens, options.expand1, options.priority, options.template_source, options.empty_indices]


def make(text: str, transformer: Any) -> lark.Lark:
    """A parser from a grammar."""
    return lark.Lark(text, parser="lalr", lexer=Tokens, start=_STARTS, transformer=transformer, maybe_placeholders=True)


def grammar() -> str:
    """The text of `grammar.lark`."""
    return resources.files("minidsms.cql").joinpath("grammar.lark").read_text("utf-8")


def made_of(text: str) -> dict[str, str]:
    """What the tables follow from. lark: without the number of a correction, which changes no tables."""
    return {"grammar": hashlib.sha256(text.encode()).hexdigest(), "lark": ".".join(lark.__version__.split(".")[:2])}


def _plain(value: Any) -> Any:
    """What JSON has no word for."""
    if value is Tokens:
        return "Tokens"
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"the tables hold a {type(value).__name__}: {value!r}")
