"""What stands beside the figures, from `remarks.md`: what the thesis shows, and how the measured differs and why.

Invariant: the file has a chapter for the setting and one for each figure, of two paragraphs: the thesis, and what is to
be said of the measured figure beside it.
"""

from __future__ import annotations

from pathlib import Path


def _chapters() -> dict[str, str]:
    text = Path(__file__).with_suffix(".md").read_text("utf-8")
    chapters = (chapter.partition("\n") for chapter in text.removeprefix("# ").split("\n# "))
    return {title: body.strip() for title, _, body in chapters}


def setting() -> str:
    """What all figures have in common."""
    return _chapters()["Setting"]


def section(title: str, measured: str) -> str:
    """A figure of a page: the thesis, the measured, the remark."""
    thesis, beside = _chapters()[title].split("\n\n")
    return f"## {title}\n\n{thesis}\n\n{measured}\n\n{beside}\n"
