"""`python -m experiments`: which experiments there are, and how each is run."""

from __future__ import annotations

import ast
from pathlib import Path

FOLDER = Path(__file__).parent


def listing() -> str:
    """A line for each experiment: its command, and what it says of itself first."""
    told = {path.parent.name: path.with_name("__init__.py").read_text() for path in FOLDER.glob("*/__main__.py")}
    modules = {path.stem: path.read_text() for path in FOLDER.glob("*.py") if path != Path(__file__)}
    told |= {name: text for name, text in modules.items() if "\nif __name__ ==" in text}
    lines = [f"python -m experiments.{name:17} {_first_words(told[name])}" for name in sorted(told)]
    return "\n".join([*lines, "--help behind each tells what it takes, and where its figures go; most take minutes"])


def _first_words(module: str) -> str:
    words = " ".join((ast.get_docstring(ast.parse(module)) or "").split("\n\n")[0].split())
    return words.rpartition("`: ")[2].partition(", by `")[0].rstrip(".")


if __name__ == "__main__":
    print(listing())
