"""`python -m benchmarks.readme`: write the table of rates of the README from `results/rates.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS

README = Path(__file__).parent.parent / "README.md"
TITLES = {
    "filter": "filter",
    "filters10": "ten expensive filters, as written",
    "filters10_adaptive": "the same, ordered adaptively (kernels: in the best order)",
    "winagg": "COUNT and MAX by auction, 10 s every 2 s",
    "running": "the same, every change",
    "join": "join of two windows, ISTREAM",
    "mjoin3": "join of three windows, ISTREAM",
    "distinct": "DISTINCT",
    "except": "EXCEPT",
    "partition": "newest ten rows by key",
    "outer_join": "left outer join",
    "lag": "difference to the row before, by auction (LAG)",
    "running_sum": "running SUM by auction",
}
HEAD = (
    "| query | M elements/s | of the kernel | of the hashing kernel | of the counting kernel | times DuckDB "
    "| times counting DuckDB |",
    "|---|---:|---:|---:|---:|---:|---:|",
)


def table(rates: Mapping[str, Any]) -> list[str]:
    """Lines of Markdown. rates: by case, as `rates.Result.as_dict` gives them."""
    lines = list(HEAD)
    for name, title in TITLES.items():
        ratios = rates[name]["ratios"] | rates[name]["ratios_two_threads"]
        shown = [_two_digits(rates[name]["rates"]["minidsms"] / 1e6)]
        for who in ("kernel", "hashing kernel", "counting kernel", "duckdb", "counting duckdb"):
            shown.append(_two_digits(ratios[who][0]) if who in ratios else "")
        lines.append(f"| {title} | {' | '.join(shown)} |")
    return lines


def _two_digits(x: float) -> str:
    return f"{x:.0f}" if x >= 9.95 else f"{x:.1f}" if x >= 0.995 else f"{x:.2f}"


def main() -> None:
    """Put the table in the place of the one that begins with its head, and what is said of it elsewhere."""
    lines = README.read_text().splitlines()
    begin = lines.index(HEAD[0])
    end = next(i for i in range(begin, len(lines)) if not lines[i].startswith("|"))
    rates = json.loads((RESULTS / "rates.json").read_text())["rates"]
    lines[begin:end] = table(rates)
    ordered, as_written = (rates[name]["rates"]["minidsms"] for name in ("filters10_adaptive", "filters10"))
    said = re.compile(r"[0-9.]+(?= of the rate that they have as written in the table above)")
    README.write_text(said.sub(_two_digits(ordered / as_written), "\n".join(lines)) + "\n")


if __name__ == "__main__":
    main()
