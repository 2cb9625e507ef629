"""The pages of an experiment: for each figure what the thesis shows, what was measured, and what is to be said of it.

What does not come from a measurement stands in the experiment's `remarks.md`. Invariant: that file has a chapter for
the setting and one for each figure, of two paragraphs: the thesis, and the remark on the measured figure beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """In Markdown."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (titles, *rows)]
    lines.insert(1, "|---" * len(titles) + "|")
    return "\n".join(lines)


class Pages:
    """Those of the experiment in one folder beside this file; they go to `results/`, as do its pictures."""

    def __init__(self, experiment: str) -> None:
        self.experiment = experiment
        self._remarks = Path(__file__).parent / experiment / "remarks.md"

    def setting(self) -> str:
        """What all figures have in common."""
        return self._chapters()["Setting"]

    def section(self, title: str, measured: str) -> str:
        """A figure of a page: the thesis, the measured, the remark."""
        thesis, beside = self._chapters()[title].split("\n\n", 1)
        return f"## {title}\n\n{thesis}\n\n{measured}\n\n{beside}\n"

    def write(self, name: str, heading: str, sections: Sequence[str]) -> str:
        """Write a page; where it is."""
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{self.experiment}_{name}.md"
        path.write_text("\n".join([f"# {heading}\n\n{self.setting()}\n", *sections]), encoding="utf-8")
        return str(path)

    def picture(self, name: str) -> Path:
        """Where a picture goes."""
        RESULTS.mkdir(exist_ok=True)
        return RESULTS / f"{self.experiment}_{name}.png"

    def shown(self, name: str) -> str:
        """A picture on a page."""
        return f"![]({self.picture(name).name})\n"

    def _chapters(self) -> dict[str, str]:
        text = self._remarks.read_text("utf-8")
        chapters = (chapter.partition("\n") for chapter in text.removeprefix("# ").split("\n# "))
        return {title: body.strip() for title, _, body in chapters}
