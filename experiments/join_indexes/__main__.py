"""`python -m experiments.join_indexes [--rows N] [--window N]`: see the package.

Writes a page and pictures into experiments/results/: some minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.join_indexes.running import Run, run
from experiments.pages import Pages, table
from experiments.pictures import pyplot, save
from minidsms.settings import INDEX_ASSESSMENTS, INDEX_MIGRATIONS, INDEX_TUNINGS

Contestants = Mapping[str, Mapping[str, Any]]
AMRI: Mapping[str, Any] = {
    "join_index": "bit_address",
    "index_assessment": "cdia",
    "index_tuning": "hybrid",
    "index_migration": "nothing",
}
ORDERING = "join ordering"
EVERY_COLUMN = 6
TUNING: Mapping[str, Contestants] = {
    "assessment": {each: {**AMRI, "index_assessment": each} for each in INDEX_ASSESSMENTS},
    "schedule": {each: {**AMRI, "index_tuning": each} for each in INDEX_TUNINGS},
    "migration": {each: {**AMRI, "index_migration": each} for each in INDEX_MIGRATIONS},
}
INDEXES: Contestants = {
    "bits, kept from the first period": {**AMRI, "pins_at": 4_500},
    "bits (AMRI)": AMRI,
    "bits by default": {"join_index": "bit_address"},
    "a hash of each column": {"join_index": "hash"},
    "patterns of the orders as written": {"join_index": "patterns", "filter_ordering": "static"},
    **{
        f"patterns, kept from {rows + 500:,} rows on": {"join_index": "patterns", "pins_at": rows, "pinned": ORDERING}
        for rows in (4_500, 9_500, 14_500)
    },
    "patterns (adaptive hashes)": {"join_index": "patterns"},
    "auto": {"join_index": "auto"},
}
PATHS = {"none": 0, "two columns": 2, "four columns": 4, "all columns": EVERY_COLUMN}


def runs(contestants: Contestants, rows: int, changing: int, window: int) -> dict[str, Run]:
    """One of each, over the same rows; their answers are compared."""
    found = {name: run(rows, changing, 1, window, **settings) for name, settings in contestants.items()}
    assert len({each.answers for each in found.values()}) == 1, "answers differ"
    return found


def figures(found: Mapping[str, Run], first: str) -> str:
    """A line for each."""
    rows = [
        [name, f"{each.inspected:,.0f}", f"{each.us:.1f}", f"{each.switches}", f"{each.nbytes / 1024:,.0f}"]
        for name, each in found.items()
    ]
    return table([first, "inspected, an element", "us, an element", "changes", "KB"], rows) + "\n"


def draw(pages: Pages, name: str, found: Mapping[str, Mapping[str, Run]]) -> None:
    """Bars for each group: what is inspected, and beside it the time."""
    heights = [0.6 + 0.25 * len(each) for each in found.values()]
    figure, axes = pyplot().subplots(
        len(found), 2, figsize=(10, sum(heights)), height_ratios=heights, sharey="row", layout="constrained"
    )
    for at, (group, each) in enumerate(found.items()):
        for axis, what, values in (
            (axes[at, 0], "inspected, an element", [one.inspected for one in each.values()]),
            (axes[at, 1], "us, an element", [one.us for one in each.values()]),
        ):
            axis.barh(range(len(values)), values)
            axis.set_yticks(range(len(values)), list(each), fontsize=8)
            axis.set_title(f"{group}: {what}", fontsize=9)
        axes[at, 0].invert_yaxis()
    save(figure, pages.picture(name), dpi=90)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiments and write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.join_indexes", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="of each stream")
    parser.add_argument("--window", type=int, default=2_000, help="rows")
    options = parser.parse_args(arguments)
    pages = Pages("join_indexes")
    for settings in (AMRI, INDEXES["a hash of each column"]):
        run(1_000, 0, 0, 100, **settings)  # what is compiled and loaded does not count
    tuning = {kind: runs(each, options.rows, EVERY_COLUMN, options.window) for kind, each in TUNING.items()}
    draw(pages, "tuning", tuning)
    paths = {name: runs(INDEXES, options.rows, changing, options.window) for name, changing in PATHS.items()}
    draw(pages, "paths", paths)
    sections = [
        pages.section("Figure 8", "\n".join([pages.shown("tuning"), *(figures(e, k) for k, e in tuning.items())])),
        pages.section("Figure 9", figures(paths["all columns"], "index")),
        pages.section(
            "Figure 10",
            "\n".join([pages.shown("paths"), *(figures(each, f"changing: {name}") for name, each in paths.items())]),
        ),
    ]
    print(pages.write("tuning", "Indexes of joins that follow access patterns", sections))


if __name__ == "__main__":
    main()
