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
from lark.lexer import Lexer

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
    data = content["data"]
    data["options"]["lexer"] = data["parser"]["lexer_conf"]["lexer_type"] = Tokens
    data["options"]["transformer"] = None
    _number_keys(data["parser"]["parser"])
    memo = {int(key): value for key, value in content["memo"].items()}
    parser: lark.Lark = lark.Lark._load_from_dict(data, memo, transformer=transformer)  # type: ignore[no-untyped-call]
    return parser


def save() -> None:
    """Write the tables of the present grammar beside it (`make tables`)."""
    text = grammar()
    parser = make(text, None)
    data, memo = parser.memo_serialize([lark.lexer.TerminalDef, lark.grammar.Rule])
    data["options"] = {k: v for k, v in data["options"].items() if k not in ("lexer", "transformer")}
    content = {"made_of": made_of(text), "data": data, "memo": memo}
    Path(__file__).with_name(_FILE).write_text(
        json.dumps(content, separators=(",", ":"), default=_plain) + "\n", "utf-8"
    )


def make(text: str, transformer: Any) -> lark.Lark:
    """A parser from a grammar."""
    return lark.Lark(text, parser="lalr", lexer=Tokens, start=_STARTS, transformer=transformer, maybe_placeholders=True)


def grammar() -> str:
    """The text of `grammar.lark`."""
    return resources.files("minidsms.cql").joinpath("grammar.lark").read_text("utf-8")


def made_of(text: str) -> dict[str, str]:
    """What the tables follow from. lark: without the number of a correction, which changes no tables."""
    return {"grammar": hashlib.sha256(text.encode()).hexdigest(), "lark": ".".join(lark.__version__.split(".")[:2])}


def _number_keys(parser: dict[str, Any]) -> None:
    """JSON knows texts as keys only; lark's states and tokens are numbers."""
    parser["tokens"] = {int(token): name for token, name in parser["tokens"].items()}
    parser["states"] = {
        int(state): {int(token): action for token, action in actions.items()}
        for state, actions in parser["states"].items()
    }


def _plain(value: Any) -> Any:
    """What JSON has no word for."""
    if value is Tokens:
        return "Tokens"
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"the tables hold a {type(value).__name__}: {value!r}")
