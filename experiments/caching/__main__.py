"""`python -m experiments.caching [performance] [plans] [adaptivity] [--quick]`: see the package.

Writes pictures and a page each into experiments/results/. All of it takes some minutes, `--quick` one.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.caching.report import PARTS
from experiments.parts import parser_of, run_parts


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiments."""
    parser = parser_of("caching", __doc__, PARTS)
    parser.add_argument("--quick", action="store_true", help="short streams, once")
    options = parser.parse_args(arguments)
    scale, repeats = (0.1, 1) if options.quick else (0.3, 2)
    run_parts(options.parts or PARTS, lambda part: PARTS[part](scale, repeats))


if __name__ == "__main__":
    main()
