"""`python -m experiments.caching [performance] [plans] [adaptivity] [--quick]`: see the package.

Writes pictures and a page each into experiments/results/. All of it takes some minutes, `--quick` one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from experiments.caching.report import PARTS


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiments."""
    parser = argparse.ArgumentParser(prog="python -m experiments.caching", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="which; all of them if none is named")
    parser.add_argument("--quick", action="store_true", help="short streams, once")
    options = parser.parse_args(arguments)
    for part in options.parts or PARTS:
        began = time.monotonic()
        told = PARTS[part](0.1, 1) if options.quick else PARTS[part](0.3, 2)
        print(f"{part}: {told}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
