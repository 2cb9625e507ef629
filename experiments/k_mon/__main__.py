"""`python -m experiments.k_mon [monitoring] [..] [--quick]`: see the package. Writes pages into
experiments/results/."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.k_mon.report import PARTS, QUICKER
from experiments.parts import parser_of, run_parts


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiments."""
    parser = parser_of("k_mon", __doc__, PARTS)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, of the windows, of k")
    options = parser.parse_args(arguments)
    run_parts(options.parts or PARTS, lambda part: PARTS[part](QUICKER if options.quick else 1))


if __name__ == "__main__":
    main()
