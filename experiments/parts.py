"""The command line of experiments in parts, each of which writes a page."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable


def parser_of(package: str, description: str | None, parts: Iterable[str]) -> argparse.ArgumentParser:
    """Of `python -m experiments.package`, that takes names of parts. description: what the package says of itself."""
    parser = argparse.ArgumentParser(prog=f"python -m experiments.{package}", description=description)
    names = list(parts)
    told = f"which of {', '.join(names)}; all of them if none is named"
    parser.add_argument("parts", nargs="*", choices=[[], *names], metavar="part", help=told)
    return parser


def run_parts(parts: Iterable[str], run: Callable[[str], object]) -> None:
    """Run one after the other, and tell what each has to say, and how long it took."""
    for part in parts:
        began = time.monotonic()
        print(f"{part}: {run(part)}, {time.monotonic() - began:.0f} s")
