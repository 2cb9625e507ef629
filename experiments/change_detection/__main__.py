"""`python -m experiments.change_detection [detectors] [replays] [engine] [--seeds N]`: see the package.

Writes pictures and a page each into experiments/results/. All of it takes some ten minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.change_detection.report import PARTS
from experiments.parts import parser_of, run_parts


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiments."""
    parser = parser_of("change_detection", __doc__, PARTS)
    parser.add_argument("--seeds", type=int, default=2, help="streams per point, or rounds of timed runs")
    options = parser.parse_args(arguments)
    run_parts(options.parts or PARTS, lambda part: PARTS[part](options.seeds))


if __name__ == "__main__":
    main()
