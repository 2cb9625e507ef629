"""`python -m experiments.filter_ordering [convergence] [overhead] [adaptivity] [--seeds N]`: see the package.

Writes pictures and a page each into experiments/results/. With 5 seeds all of it takes some minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.filter_ordering.report import PARTS
from experiments.parts import parser_of, run_parts


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiments."""
    parser = parser_of("filter_ordering", __doc__, PARTS)
    parser.add_argument("--seeds", type=int, default=5, help="runs per point; confidence intervals come from them")
    options = parser.parse_args(arguments)
    run_parts(options.parts or PARTS, lambda part: PARTS[part](options.seeds))


if __name__ == "__main__":
    main()
