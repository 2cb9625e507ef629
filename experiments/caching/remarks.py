"""What stands beside the figures, from `remarks.md`: what the thesis says, and where the measured figure differs.

Invariant: the file has a chapter for the setting and one for each figure, of two paragraphs.
"""

from __future__ import annotations

from pathlib import Path


def _read() -> dict[str, str]:
    chapters = Path(__file__).with_suffix(".md").read_text("utf-8").removeprefix("# ").split("\n# ")
    return {title: text.strip() for title, _, text in (chapter.partition("\n") for chapter in chapters)}


def setting() -> str:
    """What all figures have in common."""
    return _read()["Setting"]


def beside(title: str) -> tuple[str, str]:
    """The two paragraphs of a figure: the thesis, and what is to be said of the measured one."""
    thesis, measured = _read()[title].split("\n\n")
    return thesis, measured
