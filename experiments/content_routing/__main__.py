"""`python -m experiments.content_routing [calls] [clock] [flights] [--seeds N]`: see the package.

Writes pictures and a page each into experiments/results/. With 3 seeds all of it takes some minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.content_routing.report import PARTS
from experiments.parts import parser_of, run_parts


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiments."""
    parser = parser_of("content_routing", __doc__, PARTS)
    parser.add_argument("--seeds", type=int, default=3, help="runs per point")
    options = parser.parse_args(arguments)
    run_parts(options.parts or PARTS, lambda part: PARTS[part](options.seeds))


if __name__ == "__main__":
    main()
